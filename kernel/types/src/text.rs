//! Names people give to things, made safe to store, compare and show.
//!
//! Two names that look alike should be alike: text is normalised (NFC), outer white space goes, inner runs become
//! one space. Control, bidirectional and invisible characters are refused, because they let one name pose as
//! another in a terminal, a log or an approval dialog.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use unicode_normalization::UnicodeNormalization;

/// Longest name, in characters after normalisation.
// fixed: part of the published wire format; clients validate against it.
pub const NAME_CHARS_MAX: usize = 100;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Name(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    #[error("a name needs at least one visible character")]
    Empty,
    #[error("a name has at most {NAME_CHARS_MAX} characters")]
    TooLong,
    #[error(
        "character U+{0:04X} is not allowed in a name: it is a control, direction or invisible character"
    )]
    Forbidden(u32),
}

impl Name {
    pub fn parse(raw: &str) -> Result<Self, NameError> {
        // Refuse before normalising: work is bounded by the input, and four bytes a character is the most there is.
        if raw.len() > NAME_CHARS_MAX * 16 {
            return Err(NameError::TooLong);
        }
        if let Some(bad) = raw.chars().find(|&c| is_forbidden(c)) {
            return Err(NameError::Forbidden(u32::from(bad)));
        }
        let normal: String = raw.nfc().collect();
        let folded = normal.split_whitespace().collect::<Vec<_>>().join(" ");
        match folded.chars().count() {
            0 => Err(NameError::Empty),
            n if n > NAME_CHARS_MAX => Err(NameError::TooLong),
            _ => Ok(Self(folded)),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Control (C0, C1), line separators, bidirectional controls, zero-width, variation and tag characters, those that look like a
/// space and are none, and code points that are not characters at all.
pub fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFC}' | '\u{16FE4}' | '\u{1D159}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
        || u32::from(c) & 0xFFFE == 0xFFFE
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&raw).map_err(D::Error::custom)
    }
}

impl JsonSchema for Name {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A name for people. Normalised (NFC, white space folded); control, direction and invisible characters are refused.",
            "minLength": 1,
            "maxLength": NAME_CHARS_MAX,
            "examples": ["research"],
        })
    }
}

/// A word to look things up by, or to hand on: bounded, and without characters that no stored text has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Text<const MOST: usize>(String);

impl<const MOST: usize> Text<MOST> {
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<const MOST: usize> TryFrom<String> for Text<MOST> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.chars().count() > MOST {
            return Err(format!("at most {MOST} characters"));
        }
        match text.chars().find(|&c| is_forbidden(c)) {
            Some(bad) => Err(format!("character U+{:04X} is not allowed here", u32::from(bad))),
            None => Ok(Self(text)),
        }
    }
}

impl<const MOST: usize> JsonSchema for Text<MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Text{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": MOST})
    }
}

//! One line of `entries.jsonl`: its number, and what it calls itself.
//!
//! Every entry starts with `{"index":N,`. The number is part of what is hashed, so it cannot be changed unnoticed; it
//! is read here without a JSON parser, because it is looked at in every line and the rest only in a suspicious one.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

const INDEX_PREFIX: &[u8] = b"{\"index\":";
const INDEX_DIGITS_MAX: usize = 19;
const ID_CHARS_SHOWN_MAX: usize = 64;

/// The `id` a line gives itself. The line may be an attacker's, so it is only ever shown escaped and cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryId(String);

impl EntryId {
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Identified<'a> {
            #[serde(borrow)]
            id: Cow<'a, str>,
        }
        let identified: Identified<'_> = serde_json::from_slice(line).ok()?;
        Some(Self(identified.id.chars().take(ID_CHARS_SHOWN_MAX).collect()))
    }
}

impl fmt::Display for EntryId {
    /// Only printable ASCII comes out: no terminal escape, no look-alike, no change of direction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_default())
    }
}

/// The number a line gives itself, if it starts the way every entry does.
pub(super) fn number_of(line: &[u8]) -> Option<u64> {
    split_number(line).map(|(number, _)| number)
}

/// Writes the line into `changed` as it would read with another number: what it was before someone renumbered it.
pub(super) fn renumber(line: &[u8], number: u64, changed: &mut Vec<u8>) -> bool {
    let Some((_, rest)) = split_number(line) else { return false };
    changed.clear();
    changed.extend_from_slice(INDEX_PREFIX);
    changed.extend_from_slice(number.to_string().as_bytes());
    changed.extend_from_slice(rest);
    true
}

fn split_number(line: &[u8]) -> Option<(u64, &[u8])> {
    let text = line.strip_prefix(INDEX_PREFIX)?;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let leading_zero = digits > 1 && text.first() == Some(&b'0');
    if digits == 0 || digits > INDEX_DIGITS_MAX || leading_zero || text.get(digits) != Some(&b',') {
        return None;
    }
    let number = text[..digits].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some((number, &text[digits..]))
}

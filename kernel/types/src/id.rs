//! Typed, prefixed, sortable identifiers: `org_01jc…`.
//!
//! Beneath is a UUIDv7, so ids of one kind sort by creation time and PostgreSQL stores sixteen bytes. The prefix
//! names the kind to people and logs; the type parameter names it to the compiler, so an organization's id cannot
//! be passed where a project's is wanted. The text is Crockford base32 in lower case, 26 characters, no padding;
//! exactly one text exists per id, so ids compare as strings too.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::{Clock, Entropy};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_CHARS: usize = 26;

/// What an id identifies: `pub enum Organization {}` with a prefix.
pub trait Kind: 'static {
    /// Two to five lower-case letters, unique in the product.
    const PREFIX: &'static str;
    /// The resource's name in audit entries and events, e.g. `organization`.
    const NAME: &'static str;
}

/// An identifier of a `K`.
pub struct Id<K> {
    uuid: Uuid,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Id<K> {
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self { uuid, kind: PhantomData }
    }

    /// The form PostgreSQL stores. A reference, because query parameters are references.
    pub const fn as_uuid(&self) -> &Uuid {
        &self.uuid
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.uuid == other.uuid
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.uuid.cmp(&other.uuid)
    }
}
impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.uuid.hash(state);
    }
}

impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = base32(self.uuid.as_u128());
        write!(f, "{}_{}", K::PREFIX, std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not an id of the wanted kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("expected an id like {prefix}_{example}")]
pub struct ParseIdError {
    prefix: &'static str,
    example: &'static str,
}

impl<K: Kind> FromStr for Id<K> {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = ParseIdError { prefix: K::PREFIX, example: "01jcqz3k8vf4t9x2m7n5p6r8sd" };
        let Some(body) = text.strip_prefix(K::PREFIX).and_then(|rest| rest.strip_prefix('_')) else {
            return Err(error);
        };
        parse_base32(body).map(|value| Self::from_uuid(Uuid::from_u128(value))).ok_or(error)
    }
}

impl<K: Kind> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl<K: Kind> JsonSchema for Id<K> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        let mut name: String = K::NAME.split('_').map(capitalised).collect();
        name.push_str("Id");
        name.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": format!("Identifier of {} {}, sortable by creation time.", article(K::NAME), K::NAME.replace('_', " ")),
            "pattern": format!("^{}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$", K::PREFIX),
            "examples": [format!("{}_01jcqz3k8vf4t9x2m7n5p6r8sd", K::PREFIX)],
        })
    }
}

/// Makes ids from the injected clock and randomness.
#[derive(Clone)]
pub struct IdMaker {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl IdMaker {
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy }
    }

    pub fn make<K: Kind>(&self) -> Id<K> {
        let mut random = [0u8; 10];
        self.entropy.fill(&mut random);
        let millis = u64::try_from(self.clock.now().as_millisecond()).unwrap_or(0);
        Id::from_uuid(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }
}

fn base32(value: u128) -> [u8; TEXT_CHARS] {
    let mut text = [0u8; TEXT_CHARS];
    for (place, slot) in text.iter_mut().rev().enumerate() {
        *slot = ALPHABET[usize::try_from((value >> (5 * place)) & 31).unwrap_or(0)];
    }
    text
}

fn parse_base32(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    // 26 characters hold 130 bits: the first may carry only the top three of our 128.
    if bytes.len() != TEXT_CHARS || bytes[0] > b'7' {
        return None;
    }
    bytes.iter().try_fold(0u128, |value, byte| {
        let digit = ALPHABET.iter().position(|symbol| symbol == byte)?;
        Some((value << 5) | digit as u128)
    })
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

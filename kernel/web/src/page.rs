//! Pages of a listing: a bounded number of items in a stable order, and a cursor to the next ones.

use std::time::Duration;

use db::Settings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::limits;

/// One page.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Pass as `cursor` to get the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A number within bounds that are part of the wire format: outside of them the request is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct Bounded<const LOW: u64, const HIGH: u64>(u64);

impl<const LOW: u64, const HIGH: u64> Bounded<LOW, HIGH> {
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<const LOW: u64, const HIGH: u64> TryFrom<u64> for Bounded<LOW, HIGH> {
    type Error = String;

    fn try_from(value: u64) -> Result<Self, String> {
        if (LOW..=HIGH).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("expected a number from {LOW} to {HIGH}"))
        }
    }
}

impl<const LOW: u64, const HIGH: u64> JsonSchema for Bounded<LOW, HIGH> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("From{LOW}To{HIGH}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": LOW, "maximum": HIGH})
    }
}

/// Items on a page, as a caller may ask.
pub type PageLimit = Bounded<1, 200>;
/// Seconds to wait for a state, as a caller may ask.
pub type WaitSeconds = Bounded<1, 60>;

/// How many items a caller gets: what it asks for, within the platform's limit.
pub fn page_limit(asked: Option<PageLimit>, settings: &Settings) -> u32 {
    let most = settings.get(&limits::PAGE_LIMIT_MAX);
    let asked = asked.and_then(|limit| u32::try_from(limit.get()).ok());
    asked.unwrap_or_else(|| settings.get(&limits::PAGE_LIMIT_DEFAULT)).clamp(1, most)
}

/// How long a caller's `?wait=` may hold its request: what it asks for, within the platform's limit.
pub fn patience(asked: Option<WaitSeconds>, settings: &Settings) -> Duration {
    let most = settings.get(&limits::WAIT_SECONDS_MAX);
    Duration::from_secs(asked.map_or(most, WaitSeconds::get).min(most))
}

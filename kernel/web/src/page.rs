//! Pages of a listing: a bounded number of items in a stable order, and a cursor to the next ones.

use db::Settings;
use schemars::JsonSchema;
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

/// How many items a caller gets: what it asks for, within the platform's limit.
pub fn page_limit(asked: Option<u32>, settings: &Settings) -> u32 {
    let most = settings.get(&limits::PAGE_LIMIT_MAX);
    asked.unwrap_or_else(|| settings.get(&limits::PAGE_LIMIT_DEFAULT)).clamp(1, most)
}

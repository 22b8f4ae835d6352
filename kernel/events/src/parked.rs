//! Events that a consumer could not digest, for operators to see.

use db::{DbError, Reader};
use schemars::JsonSchema;
use serde::Serialize;
use types::Timestamp;

use crate::log_event::EventId;
use crate::store;

/// An event that a consumer gave up on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ParkedEvent {
    /// Who could not digest it.
    pub consumer: String,
    /// Its place in the log.
    pub position: i64,
    pub event_id: EventId,
    /// The event's type.
    pub event_type: String,
    /// What went wrong the last time.
    pub error: String,
    pub attempts: i32,
    pub parked_at: Timestamp,
}

/// The newest parked events.
pub async fn parked(reader: &Reader, limit: u32) -> Result<Vec<ParkedEvent>, DbError> {
    let rows = reader.query(store::PARKED_LIST, &[&i64::from(limit)]).await?;
    let event = |row: &db::Row| ParkedEvent {
        consumer: row.get(0),
        position: row.get(1),
        event_id: EventId::from_uuid(row.get(2)),
        event_type: row.get(3),
        error: row.get(4),
        attempts: row.get(5),
        parked_at: row.get(6),
    };
    Ok(rows.iter().map(event).collect())
}

//! One event, as the log keeps it and as the world sees it.

use db::Row;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::{Id, Kind, Timestamp};
use uuid::Uuid;

/// Kind of an event's id. Beneath it is the uuid of the audit entry written with it.
pub enum EventKind {}
impl Kind for EventKind {
    const PREFIX: &'static str = "evt";
    const NAME: &'static str = "event";
}
pub type EventId = Id<EventKind>;

/// An event with its place in the log.
#[derive(Debug, Clone)]
pub struct LogEvent {
    pub position: i64,
    pub sequenced_at: Timestamp,
    pub epoch: i32,
    pub id: EventId,
    pub at: Timestamp,
    pub organization: Option<Uuid>,
    pub project: Option<Uuid>,
    pub event_type: String,
    pub subject: String,
    pub generation: i64,
    pub data: Box<RawValue>,
    pub correlation_id: Uuid,
    pub causation_id: Option<String>,
    pub traceparent: Option<String>,
}

impl LogEvent {
    /// From the columns of `store::EVENTS_AFTER`.
    pub(crate) fn from_row(row: &Row) -> Self {
        let data: String = row.get(10);
        Self {
            position: row.get(0),
            sequenced_at: row.get(1),
            epoch: row.get(2),
            id: EventId::from_uuid(row.get(3)),
            at: row.get(4),
            organization: row.get(5),
            project: row.get(6),
            event_type: row.get(7),
            subject: row.get(8),
            generation: row.get(9),
            data: RawValue::from_string(data).unwrap_or_default(),
            correlation_id: row.get(11),
            causation_id: row.get(12),
            traceparent: row.get(13),
        }
    }

    /// The event in its public envelope.
    pub fn to_cloud_event(&self) -> CloudEvent {
        CloudEvent {
            specversion: "1.0",
            id: self.id,
            source: "/gpuaas",
            event_type: self.event_type.clone(),
            subject: self.subject.clone(),
            time: self.at.to_string(),
            datacontenttype: "application/json",
            gpuaasposition: self.position.to_string(),
            gpuaasgeneration: self.generation.to_string(),
            gpuaascorrelation: authz::CorrelationId::from_uuid(self.correlation_id).to_string(),
            traceparent: self.traceparent.clone(),
            data: self.data.clone(),
        }
    }
}

/// CloudEvents 1.0, structured JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CloudEvent {
    pub specversion: &'static str,
    /// Unique; the same event always has the same id, so consumers can drop duplicates.
    pub id: EventId,
    pub source: &'static str,
    /// `gpuaas.<domain>.<resource>.<event>`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Id of the resource it is about.
    pub subject: String,
    /// When it happened.
    pub time: String,
    pub datacontenttype: &'static str,
    /// Place in the log. Grows by one from event to event.
    pub gpuaasposition: String,
    /// The resource's generation after the change.
    pub gpuaasgeneration: String,
    /// Ties the event to the request that caused it.
    pub gpuaascorrelation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What happened; its schema depends on `type` and is in the AsyncAPI document.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub data: Box<RawValue>,
}

//! An event as a NATS message.

use async_nats::jetstream::message::PublishMessage;
use events::{EventId, LogEvent};

/// Place in the log. Grows by one from event to event, so a consumer sees repetitions and gaps.
pub const POSITION_HEADER: &str = "Gpuaas-Position";
/// Which history the position belongs to; grows when the log is restored from a backup.
pub const EPOCH_HEADER: &str = "Gpuaas-Epoch";
/// W3C trace context of the request that caused the event.
pub const TRACEPARENT_HEADER: &str = "traceparent";

/// The event in its envelope. `follows` is the stream sequence of the message before it.
pub(crate) fn from_event(event: &LogEvent, follows: u64) -> Result<PublishMessage, serde_json::Error> {
    let body = serde_json::to_vec(&event.to_cloud_event())?;
    let mut message = PublishMessage::build()
        .message_id(event.id.to_string())
        .expected_stream(crate::stream::STREAM)
        .expected_last_sequence(follows)
        .header("Content-Type", "application/cloudevents+json")
        .header(POSITION_HEADER, event.position.to_string().as_str())
        .header(EPOCH_HEADER, event.epoch.to_string().as_str());
    if let Some(traceparent) = &event.traceparent {
        message = message.header(TRACEPARENT_HEADER, traceparent.as_str());
    }
    Ok(message.payload(body.into()))
}

/// What a message of the stream says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub epoch: i32,
    pub position: i64,
    pub id: EventId,
}

/// `None` if somebody else put it there.
pub(crate) fn mark(headers: &async_nats::HeaderMap) -> Option<Mark> {
    let text = |name: &str| headers.get(name).map(|value| value.as_str());
    Some(Mark {
        epoch: text(EPOCH_HEADER)?.parse().ok()?,
        position: text(POSITION_HEADER)?.parse().ok()?,
        id: text(async_nats::header::NATS_MESSAGE_ID.as_ref())?.parse().ok()?,
    })
}

/// Can this be a subject to publish to? Event types are constants and always can; a row that somebody wrote by hand
/// must not block everything behind it.
pub(crate) fn is_subject(event_type: &str) -> bool {
    event_type.starts_with(crate::stream::SUBJECT_PREFIX)
        && event_type.split('.').all(|token| {
            !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic() && b != b'*' && b != b'>')
        })
}

//! One batch on its way: sent without waiting, acknowledged in order, stopped at the first that is not.

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{Context, PublishAckFuture, PublishError, PublishErrorKind};
use events::LogEvent;

use crate::message;

/// How far a batch came.
pub(crate) struct Outcome {
    /// The stream's sequence after the last acknowledged message; `None` if it has to be read again.
    pub sequence: Option<u64>,
    pub failure: Option<Failure>,
}

pub(crate) struct Failure {
    pub position: i64,
    pub error: String,
    /// The server will never take this one, however often it is asked.
    pub refused_for_good: bool,
}

/// Publishes `events` so that they follow `sequence` in the stream.
pub(crate) async fn publish(jetstream: &Context, events: &[LogEvent], sequence: u64) -> Outcome {
    let mut sent = Vec::with_capacity(events.len());
    let mut not_sent = None;
    for (event, follows) in events.iter().zip(sequence..) {
        match send(jetstream, event, follows).await {
            Ok(acknowledgement) => sent.push((event.position, acknowledgement)),
            Err(failure) => {
                not_sent = Some(failure);
                break;
            }
        }
    }
    let mut last = sequence;
    for (position, acknowledgement) in sent {
        match acknowledgement.await {
            Ok(acknowledged) => last = acknowledged.sequence.max(last),
            Err(error) => {
                let refused_for_good = is_refusal(&error);
                let failure = Failure { position, error: describe(&error), refused_for_good };
                // Those behind a refused one name a predecessor that never came: they were refused with it.
                let sequence = refused_for_good.then_some(last);
                return Outcome { sequence, failure: Some(failure) };
            }
        }
    }
    let known = not_sent.as_ref().is_none_or(|failure| failure.refused_for_good);
    Outcome { sequence: known.then_some(last), failure: not_sent }
}

async fn send(jetstream: &Context, event: &LogEvent, follows: u64) -> Result<PublishAckFuture, Failure> {
    let position = event.position;
    let refuse = |error: String| Failure { position, error, refused_for_good: true };
    if !message::is_subject(&event.event_type) {
        return Err(refuse(format!("{:?} is no subject of the stream", event.event_type)));
    }
    let message = message::from_event(event, follows).map_err(|error| refuse(error.to_string()))?;
    jetstream.send_publish(event.event_type.clone(), message).await.map_err(|error| Failure {
        position,
        refused_for_good: is_refusal(&error),
        error: describe(&error),
    })
}

/// Too large, for the connection or for the stream. Everything else may pass: a full disk is emptied, a stream is
/// made anew, a server comes back.
fn is_refusal(error: &PublishError) -> bool {
    if matches!(error.kind(), PublishErrorKind::MaxPayloadExceeded) {
        return true;
    }
    let source = std::error::Error::source(error);
    source.and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>()).is_some_and(|error| {
        [ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM, ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM]
            .contains(&error.error_code())
    })
}

fn describe(error: &PublishError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{}: {source}", error.kind()),
        None => error.kind().to_string(),
    }
}

//! The stream on the NATS server: made where it is missing, kept to our limits, and read at its end.

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use db::Settings;

use crate::message::{self, Mark};
use crate::settings::{DUPLICATE_WINDOW_SECONDS, STREAM_AGE_SECONDS, STREAM_BYTES_MAX, STREAM_REPLICAS};

/// The stream's name.
pub const STREAM: &str = "GPUAAS_EVENTS";
/// What it takes: every event type.
pub const SUBJECTS: &str = "gpuaas.>";
pub(crate) const SUBJECT_PREFIX: &str = "gpuaas.";

/// Where the stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    /// What the next message has to name as its predecessor.
    pub sequence: u64,
    pub last: Last,
}

/// The last message there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Nothing,
    Ours(Mark),
    /// Published by somebody who is not us.
    Unknown,
}

/// Makes sure that the stream is there, and reads its end. In this order: whatever is stored after the sequence was
/// read makes our next message be refused, so a stale answer does no harm.
pub(crate) async fn end(jetstream: &Context, settings: &Settings) -> Result<End, String> {
    let stream = open(jetstream, settings).await?;
    let sequence = stream.cached_info().state.last_sequence;
    let last = match stream.get_last_raw_message_by_subject(SUBJECTS).await {
        Ok(message) => message::mark(&message.headers).map_or(Last::Unknown, Last::Ours),
        Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Last::Nothing,
        Err(error) => return Err(format!("the stream's last message cannot be read: {error}")),
    };
    Ok(End { sequence, last })
}

async fn open(jetstream: &Context, settings: &Settings) -> Result<Stream, String> {
    match jetstream.get_stream(STREAM).await {
        Ok(stream) => {
            keep_limits(jetstream, &stream.cached_info().config, settings).await;
            Ok(stream)
        }
        Err(error) if is_missing(&error.kind()) => {
            tracing::warn!(stream = STREAM, "the NATS stream is not there; it is made");
            let made = jetstream.create_stream(limited(fresh(), settings)).await;
            made.map_err(|error| format!("the stream cannot be made: {error}"))
        }
        Err(error) => Err(format!("the stream cannot be looked up: {error}")),
    }
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// Changed settings reach the stream; everything else an operator set on it (placement, mirrors) stays.
async fn keep_limits(jetstream: &Context, present: &Config, settings: &Settings) {
    let wanted = limited(present.clone(), settings);
    if limits(&wanted) == limits(present) {
        return;
    }
    match jetstream.update_stream(wanted).await {
        Ok(_) => tracing::info!(stream = STREAM, "the stream's limits were brought up to the settings"),
        Err(error) => tracing::warn!(stream = STREAM, %error, "the stream keeps its old limits"),
    }
}

fn fresh() -> Config {
    Config {
        name: STREAM.to_owned(),
        description: Some("Events of GPUaaS, copied from its log. Do not publish here.".to_owned()),
        subjects: vec![SUBJECTS.to_owned()],
        storage: StorageType::File,
        allow_direct: true,
        ..Config::default()
    }
}

fn limited(config: Config, settings: &Settings) -> Config {
    let age = STREAM_AGE_SECONDS.seconds(settings);
    Config {
        max_age: age,
        max_bytes: i64::try_from(settings.get(&STREAM_BYTES_MAX)).unwrap_or(i64::MAX),
        num_replicas: settings.get(&STREAM_REPLICAS) as usize,
        // The server refuses a window longer than what it keeps.
        duplicate_window: DUPLICATE_WINDOW_SECONDS.seconds(settings).min(age),
        ..config
    }
}

fn limits(config: &Config) -> impl PartialEq {
    (config.max_age, config.max_bytes, config.num_replicas, config.duplicate_window)
}

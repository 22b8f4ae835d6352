//! How much the stream keeps, and how long the relay waits for it.

use db::{Setting, SettingInfo};

pub static STREAM_AGE_SECONDS: Setting<u64> = Setting::new(
    "relay.stream_age_seconds",
    7 * 24 * 3600,
    "How long the NATS stream keeps events, in seconds. Older events are not published again after a loss.",
)
.at_least(60);
pub static STREAM_BYTES_MAX: Setting<u64> = Setting::new(
    "relay.stream_bytes_max",
    4 << 30,
    "Most bytes the NATS stream keeps; the oldest events go first.",
)
.at_least(1 << 20);
pub static STREAM_REPLICAS: Setting<u32> =
    Setting::new("relay.stream_replicas", 1, "On how many servers of a NATS cluster the stream is kept.")
        .between(1, 5);
pub static DUPLICATE_WINDOW_SECONDS: Setting<u64> = Setting::new(
    "relay.duplicate_window_seconds",
    120,
    "How long the NATS server recognises an event that is published again, in seconds.",
)
.at_least(1);

/// The settings of this crate, for the reference.
pub static SETTINGS: fn() -> Vec<SettingInfo> = || {
    vec![
        STREAM_AGE_SECONDS.info(),
        STREAM_BYTES_MAX.info(),
        STREAM_REPLICAS.info(),
        DUPLICATE_WINDOW_SECONDS.info(),
    ]
};

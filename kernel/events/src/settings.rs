//! How long events are kept, and how patiently they are worked on.

use std::time::Duration;

use db::{Setting, SettingInfo, Settings};

pub static LOG_RETENTION_SECONDS: Setting<u64> = Setting::new(
    "events.log_retention_seconds",
    30 * 24 * 3600,
    "How long events can be replayed by cursor, in seconds. Older cursors get 410. What a consumer has not read is kept longer.",
)
.at_least(3600);
static OUTBOX_RETENTION_SECONDS: Setting<u64> = Setting::new(
    "events.outbox_retention_seconds",
    2 * 24 * 3600,
    "How long sequenced events stay in the outbox, in seconds; never longer than events.log_retention_seconds.",
)
.at_least(3600);

/// How long sequenced events stay in the outbox. Not longer than in the log: after a restore, what the outbox has and the log
/// has not is taken for events that never had a position, and would happen a second time.
pub fn outbox_retention(settings: &Settings) -> Duration {
    let (outbox, log) = (OUTBOX_RETENTION_SECONDS.seconds(settings), LOG_RETENTION_SECONDS.seconds(settings));
    if outbox > log {
        tracing::warn!(
            "events.outbox_retention_seconds is longer than events.log_retention_seconds, which is used instead: correct one"
        );
    }
    outbox.min(log)
}

pub static SWEEP_MS: Setting<u64> = Setting::new(
    "events.sweep_ms",
    1_000,
    "How often sequencer, feed and consumers look for work when nobody nudges them, in milliseconds.",
)
.at_least(10);
pub static CONSUMER_LEASE_SECONDS: Setting<u64> = Setting::new(
    "events.consumer_lease_seconds",
    10,
    "How long a dead consumer's place stays taken, in seconds. A living one renews it while it works.",
)
.at_least(1);
pub static CONSUMER_ATTEMPTS_MAX: Setting<u32> = Setting::new(
    "events.consumer_attempts_max",
    8,
    "How often a consumer tries an event before it is parked.",
)
.at_least(1);
pub static CONSUMER_BACKOFF_MS: Setting<u64> = Setting::new(
    "events.consumer_backoff_ms",
    200,
    "First pause after a failed event, in milliseconds; doubles each time.",
);

pub static CONSUMER_COMPARE_SECONDS: Setting<u64> = Setting::new(
    "events.consumer_compare_seconds",
    15,
    "How often a consumer compares its place with what its target really has, in seconds.",
)
.at_least(1);

/// The settings of this crate, for the reference.
pub static SETTINGS: fn() -> Vec<SettingInfo> = || {
    vec![
        LOG_RETENTION_SECONDS.info(),
        OUTBOX_RETENTION_SECONDS.info(),
        SWEEP_MS.info(),
        CONSUMER_LEASE_SECONDS.info(),
        CONSUMER_ATTEMPTS_MAX.info(),
        CONSUMER_BACKOFF_MS.info(),
        CONSUMER_COMPARE_SECONDS.info(),
    ]
};

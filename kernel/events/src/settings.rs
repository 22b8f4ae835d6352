//! How long events are kept, and how patiently they are worked on.

use db::{Setting, SettingInfo};

pub static LOG_RETENTION_SECONDS: Setting<u64> = Setting::new(
    "events.log_retention_seconds",
    30 * 24 * 3600,
    "How long events can be replayed by cursor, in seconds. Older cursors get 410. What a consumer has not read is kept longer.",
)
.checked(|v| *v >= 3600);
pub static OUTBOX_RETENTION_SECONDS: Setting<u64> = Setting::new(
    "events.outbox_retention_seconds",
    2 * 24 * 3600,
    "How long sequenced events stay in the outbox, in seconds.",
)
.checked(|v| *v >= 3600);
pub static SWEEP_MS: Setting<u64> = Setting::new(
    "events.sweep_ms",
    1_000,
    "How often sequencer, feed and consumers look for work when nobody nudges them, in milliseconds.",
)
.checked(|v| *v >= 10);
pub static CONSUMER_LEASE_SECONDS: Setting<u64> = Setting::new(
    "events.consumer_lease_seconds",
    10,
    "How long a dead consumer's place stays taken, in seconds. A living one renews it while it works.",
)
.checked(|v| *v >= 1);
pub static CONSUMER_ATTEMPTS_MAX: Setting<u32> = Setting::new(
    "events.consumer_attempts_max",
    8,
    "How often a consumer tries an event before it is parked.",
)
.checked(|v| *v >= 1);
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
.checked(|v| *v >= 1);

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

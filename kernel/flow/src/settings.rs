//! How flows are run.

use db::{Setting, SettingInfo};

pub static SWEEP_MS: Setting<u64> = Setting::new(
    "flow.sweep_ms",
    1_000,
    "How often due flows are looked for when nobody nudges, in milliseconds.",
)
.at_least(10);
pub static LEASE_SECONDS: Setting<u64> =
    Setting::new("flow.lease_seconds", 30, "How long a dead worker's flows stay leased, in seconds.")
        .at_least(1);
pub static AT_ONCE_MAX: Setting<u32> =
    Setting::new("flow.at_once_max", 32, "Flows one replica works on at the same time, per kind.")
        .at_least(1);
pub static BACKOFF_MS: Setting<u64> = Setting::new(
    "flow.backoff_ms",
    250,
    "First pause after a failed step, in milliseconds; doubles each time.",
);
pub static BACKOFF_SECONDS_MAX: Setting<u64> =
    Setting::new("flow.backoff_seconds_max", 300, "Longest pause after failed steps, in seconds.");
pub static KEEP_DONE_SECONDS: Setting<u64> = Setting::new(
    "flow.keep_done_seconds",
    7 * 24 * 3600,
    "How long finished flows are kept for looking at, in seconds.",
);

/// The settings of this crate, for the reference.
pub static SETTINGS: fn() -> Vec<SettingInfo> = || {
    vec![
        SWEEP_MS.info(),
        LEASE_SECONDS.info(),
        AT_ONCE_MAX.info(),
        BACKOFF_MS.info(),
        BACKOFF_SECONDS_MAX.info(),
        KEEP_DONE_SECONDS.info(),
    ]
};

//! The limits and times of this domain.

use db::{Setting, SettingInfo};

pub static VALUE_BYTES_MAX: Setting<u32> =
    Setting::new("secrets.value_bytes_max", 64 << 10, "Largest value of a secret, in bytes.").at_least(32);
pub static ROTATION_OVERLAP_SECONDS: Setting<u64> = Setting::new(
    "secrets.rotation_overlap_seconds",
    24 * 3600,
    "How long the version before a rotation can still be delivered, in seconds.",
)
.per_project();
pub static REWRAP_BATCH_MAX: Setting<u32> = Setting::new(
    "secrets.rewrap_batch_max",
    100,
    "Data keys wrapped anew in one transaction when the key encryption key changes.",
)
.at_least(1);

pub static DESTROY_BATCH_MAX: Setting<u32> =
    Setting::new("secrets.destroy_batch_max", 100, "Ended versions of secrets destroyed in one transaction.")
        .at_least(1);

pub fn settings() -> Vec<SettingInfo> {
    vec![
        VALUE_BYTES_MAX.info(),
        ROTATION_OVERLAP_SECONDS.info(),
        REWRAP_BATCH_MAX.info(),
        DESTROY_BATCH_MAX.info(),
    ]
}

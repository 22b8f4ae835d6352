//! How fast the log is sealed and copied, and how much is handled at once.

use db::{Setting, SettingInfo};

pub static SEAL_INTERVAL_MS: Setting<u64> = Setting::new(
    "audit.seal_interval_ms",
    500,
    "Least time between two seals, in milliseconds. An entry is sealed at most twice this long after its commit.",
)
.between(10, 60_000);
pub static SEAL_BATCH_MAX: Setting<u32> = Setting::new(
    "audit.seal_batch_max",
    2_000,
    "Most entries sealed in one transaction; more are sealed in the next, at once.",
)
.between(1, 20_000);
pub static SEAL_BATCH_BYTES_MAX: Setting<u64> = Setting::new(
    "audit.seal_batch_bytes_max",
    32 * 1024 * 1024,
    "Most bytes of before and after states sealed in one transaction: bounds the sealer's memory.",
)
.at_least(1024);
pub static SEAL_LATE_SECONDS: Setting<u64> = Setting::new(
    "audit.seal_late_seconds",
    60,
    "How long an entry may wait for its seal before the sealer calls it an alarm and readiness warns, in seconds.",
)
.at_least(1);
pub static KEY_RENEW_MS: Setting<u64> = Setting::new(
    "audit.key_renew_ms",
    10_000,
    "How often a sealer looks for a newer signing key, in milliseconds.",
)
.at_least(100);
pub static REPLICATE_INTERVAL_MS: Setting<u64> = Setting::new(
    "audit.replicate_interval_ms",
    2_000,
    "How often sealed entries are copied to the second place, in milliseconds.",
)
.at_least(10);
pub static REPLICATE_BATCH_MAX: Setting<u32> = Setting::new(
    "audit.replicate_batch_max",
    5_000,
    "Most entries in one object of the copy, as long as a single seal is not larger.",
)
.at_least(1);
pub static RETENTION_DAYS: Setting<u32> = Setting::new(
    "audit.retention_days",
    400,
    "How many days entries stay in the database, whole months at a time. Older ones leave it once the second place is \
     found to hold them as they were sealed; without a second place they stay.",
)
.at_least(30);
pub static PRUNE_INTERVAL_SECONDS: Setting<u64> = Setting::new(
    "audit.prune_interval_seconds",
    3_600,
    "How often it is looked for a month of entries that may leave the database, in seconds. One goes at a time.",
)
.at_least(1);
pub static WITNESS_INTERVAL_MS: Setting<u64> = Setting::new(
    "audit.witness_interval_ms",
    60_000,
    "How often the newest checkpoint is sent to the witness, in milliseconds.",
)
.at_least(10);
pub static WITNESS_TIMEOUT_MS: Setting<u64> = Setting::new(
    "audit.witness_timeout_ms",
    10_000,
    "How long one delivery to the witness may take, in milliseconds.",
)
.at_least(100);
pub static DELIVERY_RETRY_MS: Setting<u64> = Setting::new(
    "audit.delivery_retry_ms",
    15_000,
    "Pause after a failed copy or delivery, in milliseconds.",
)
.at_least(10);
pub static PAGE_LIMIT_MAX: Setting<u32> = Setting::new(
    "audit.page_limit_max",
    100,
    "Most entries on a page of the audit log. Proofs of scattered entries are costly, hence fewer than elsewhere.",
)
.between(1, 100);

/// The settings of this crate, for the reference.
pub fn settings() -> Vec<SettingInfo> {
    vec![
        SEAL_INTERVAL_MS.info(),
        SEAL_BATCH_MAX.info(),
        SEAL_BATCH_BYTES_MAX.info(),
        SEAL_LATE_SECONDS.info(),
        KEY_RENEW_MS.info(),
        REPLICATE_INTERVAL_MS.info(),
        REPLICATE_BATCH_MAX.info(),
        RETENTION_DAYS.info(),
        PRUNE_INTERVAL_SECONDS.info(),
        WITNESS_INTERVAL_MS.info(),
        WITNESS_TIMEOUT_MS.info(),
        DELIVERY_RETRY_MS.info(),
        PAGE_LIMIT_MAX.info(),
    ]
}

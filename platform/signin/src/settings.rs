//! The limits of signing in.

use db::{Setting, SettingInfo};

pub static CLOCK_SKEW_SECONDS: Setting<u64> = Setting::new(
    "signin.clock_skew_seconds",
    60,
    "How far the clock of somebody whose tokens we check may be from ours, in seconds.",
)
.between(0, 600);
pub static PROVIDER_TIMEOUT_MS: Setting<u64> = Setting::new(
    "signin.provider_timeout_ms",
    5_000,
    "How long one question to an identity provider may take, in milliseconds.",
)
.between(100, 60_000);
pub static PROVIDER_BYTES_MAX: Setting<u64> = Setting::new(
    "signin.provider_bytes_max",
    1024 * 1024,
    "The largest answer of an identity provider that is read, in bytes.",
)
.at_least(4096);
pub static TOKEN_BYTES_MAX: Setting<u64> = Setting::new(
    "signin.token_bytes_max",
    32 * 1024,
    "The largest signed token that is looked at, in bytes.",
)
.at_least(1024);
pub static DISCOVERY_SECONDS: Setting<u64> = Setting::new(
    "signin.discovery_seconds",
    3600,
    "How long an identity provider's description of itself is believed, in seconds.",
);
pub static JWKS_SECONDS: Setting<u64> = Setting::new(
    "signin.jwks_seconds",
    3600,
    "How long an identity provider's published keys are believed, in seconds: how late the withdrawal of a key may bite.",
);
pub static JWKS_REFETCH_SECONDS: Setting<u64> = Setting::new(
    "signin.jwks_refetch_seconds",
    10,
    "Least time between two looks at an identity provider's keys because a token named an unknown one, in seconds.",
)
.at_least(1);
pub static JWKS_KEYS_MAX: Setting<u64> =
    Setting::new("signin.jwks_keys_max", 100, "The most keys an identity provider may publish.").at_least(1);
pub static GROUPS_MAX: Setting<u64> = Setting::new(
    "signin.groups_max",
    1_000,
    "The most groups a person may be in at an identity provider; one who is in more is not signed in.",
)
.at_least(1);
pub static LOGOUT_TOKEN_SECONDS_MAX: Setting<u64> = Setting::new(
    "signin.logout_token_seconds_max",
    600,
    "How long a provider's logout token may be good for, in seconds: as long its id is remembered.",
);

pub fn settings() -> Vec<SettingInfo> {
    vec![
        CLOCK_SKEW_SECONDS.info(),
        PROVIDER_TIMEOUT_MS.info(),
        PROVIDER_BYTES_MAX.info(),
        TOKEN_BYTES_MAX.info(),
        DISCOVERY_SECONDS.info(),
        JWKS_SECONDS.info(),
        JWKS_REFETCH_SECONDS.info(),
        JWKS_KEYS_MAX.info(),
        GROUPS_MAX.info(),
        LOGOUT_TOKEN_SECONDS_MAX.info(),
    ]
}

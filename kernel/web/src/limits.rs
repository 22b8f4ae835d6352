//! Limits on everything a caller can send, all of them settings.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use db::{Setting, SettingInfo, Settings};
use governor::clock::{Clock as _, QuantaClock, QuantaInstant, Reference as _};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use types::{Error, ErrorCode, ErrorKind, Result};

use crate::operation::RateClass;

pub static BODY_TOO_LARGE: ErrorCode = ErrorCode::new(
    "body_too_large",
    ErrorKind::TooLarge,
    "The body is larger than this server takes",
    "Send less at once; the limit is in 'details'.",
);
pub static RATE_LIMITED: ErrorCode = ErrorCode::new(
    "rate_limited",
    ErrorKind::RateLimited,
    "Too many requests",
    "Wait for the time in Retry-After, then go on more slowly.",
);
pub static REQUEST_TIMEOUT: ErrorCode = ErrorCode::new(
    "request_timeout",
    ErrorKind::Timeout,
    "The request took longer than allowed",
    "Repeat it with the same Idempotency-Key: it is applied at most once.",
);
pub static TOO_BUSY: ErrorCode = ErrorCode::new(
    "too_busy",
    ErrorKind::Unavailable,
    "The server is answering as many requests as it can",
    "Nothing was changed. Try again after the time in Retry-After.",
);

pub static BODY_BYTES_MAX: Setting<u32> =
    Setting::new("web.body_bytes_max", 1 << 20, "Largest request body, in bytes.").at_least(1024);
pub static REQUEST_SECONDS_MAX: Setting<u64> = Setting::new(
    "web.request_seconds_max",
    30,
    "Longest time a request may take, in seconds; waiting (`?wait=`) comes on top.",
)
.at_least(1);
pub static ANONYMOUS_BODY_SECONDS_MAX: Setting<u64> = Setting::new(
    "web.anonymous_body_seconds_max",
    5,
    "Longest time in which the body of a caller who has not signed in may arrive, in seconds; \
     for others it is `web.request_seconds_max`.",
)
.at_least(1);
pub static REQUESTS_AT_ONCE_MAX: Setting<u32> = Setting::new(
    "web.requests_at_once_max",
    512,
    "Requests answered at the same time by one replica; more get 503. A quarter is kept for callers who have little under \
     way, half of that for operators. Beside them as many bodies may be arriving from callers who have signed in, and as \
     many from others.",
)
.at_least(1);
pub static REQUESTS_PER_CALLER_MAX: Setting<u32> = Setting::new(
    "web.requests_at_once_per_caller_max",
    128,
    "Requests answered at the same time for one caller by one replica; more get 429.",
)
.at_least(1)
.per_organization()
.only_lower();
pub static REQUESTS_PER_ORGANIZATION_MAX: Setting<u32> = Setting::new(
    "web.requests_at_once_per_organization_max",
    256,
    "Requests answered at the same time by one replica for all keys of one organization; more get 429.",
)
.at_least(1)
.per_organization()
.only_lower();
pub static WAITING_AT_ONCE_MAX: Setting<u32> = Setting::new(
    "web.waiting_at_once_max",
    2_048,
    "Requests that wait with `?wait=` at the same time on one replica; more get 503. They are not among those answered. A \
     quarter is kept for callers who have few, half of that for operators.",
)
.at_least(1);
pub static WAITING_PER_CALLER_MAX: Setting<u32> = Setting::new(
    "web.waiting_at_once_per_caller_max",
    128,
    "Requests of one caller that wait with `?wait=` at the same time on one replica; more get 429.",
)
.at_least(1)
.per_organization()
.only_lower();
pub static WAITING_PER_ORGANIZATION_MAX: Setting<u32> = Setting::new(
    "web.waiting_at_once_per_organization_max",
    256,
    "Requests of all keys of one organization that wait with `?wait=` at the same time on one replica; more get 429.",
)
.at_least(1)
.per_organization()
.only_lower();
pub static STREAMS_PER_CALLER_MAX: Setting<u32> = Setting::new(
    "web.streams_per_caller_max",
    64,
    "Event streams one caller may have open at the same time per replica; more get 429.",
)
.at_least(1);
pub static STREAM_RECHECK_SECONDS: Setting<u64> = Setting::new(
    "web.stream_recheck_seconds",
    3,
    "How often an open event stream's credential is checked, in seconds: a revoked one is cut off within this time.",
)
.between(1, 60);
pub static WAIT_SECONDS_MAX: Setting<u64> =
    Setting::new("web.wait_seconds_max", 60, "Longest time `?wait=` may hold a request, in seconds.");
pub static PAGE_LIMIT_DEFAULT: Setting<u32> =
    Setting::new("web.page_limit_default", 50, "Items on a page when the caller does not say.").at_least(1);
pub static PAGE_LIMIT_MAX: Setting<u32> =
    Setting::new("web.page_limit_max", 200, "Most items on a page.").at_least(1);
pub static READS_PER_SECOND: Setting<u32> =
    Setting::new("web.reads_per_second", 2_000, "Reads a caller may make per second and replica.")
        .at_least(1);
pub static WRITES_PER_SECOND: Setting<u32> =
    Setting::new("web.writes_per_second", 500, "Changes a caller may make per second and replica.")
        .at_least(1);
pub static GUESSES_PER_MINUTE: Setting<u32> = Setting::new(
    "web.guesses_per_minute",
    60,
    "Sign-in attempts and wrong credentials per minute, address and replica.",
)
.at_least(1);

/// The settings of this crate, for the reference.
pub static SETTINGS: fn() -> Vec<SettingInfo> = || {
    vec![
        BODY_BYTES_MAX.info(),
        REQUEST_SECONDS_MAX.info(),
        ANONYMOUS_BODY_SECONDS_MAX.info(),
        REQUESTS_AT_ONCE_MAX.info(),
        REQUESTS_PER_CALLER_MAX.info(),
        REQUESTS_PER_ORGANIZATION_MAX.info(),
        WAITING_AT_ONCE_MAX.info(),
        WAITING_PER_CALLER_MAX.info(),
        WAITING_PER_ORGANIZATION_MAX.info(),
        STREAMS_PER_CALLER_MAX.info(),
        STREAM_RECHECK_SECONDS.info(),
        WAIT_SECONDS_MAX.info(),
        PAGE_LIMIT_DEFAULT.info(),
        PAGE_LIMIT_MAX.info(),
        READS_PER_SECOND.info(),
        WRITES_PER_SECOND.info(),
        GUESSES_PER_MINUTE.info(),
    ]
};

/// A limiter and the rate it was made for.
type Rated = (u32, Arc<Limiter>);
type Limiter = RateLimiter<String, DashMapStateStore<String>, QuantaClock, StateInformationMiddleware>;

/// Rate limits per caller and class.
pub struct Limits {
    settings: Settings,
    /// A changed setting makes a new one.
    limiters: Mutex<[Option<Rated>; 3]>,
    /// Addresses that have used up their wrong credentials, and until when.
    guessers: Mutex<HashMap<String, QuantaInstant>>,
}

/// Callers remembered at once per class, before idle ones are forgotten.
const CALLERS_MAX: usize = 50_000; // fixed: a bound on memory, not on callers

impl Limits {
    pub fn new(settings: Settings) -> Self {
        Self { settings, limiters: Mutex::default(), guessers: Mutex::default() }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn check(&self, class: RateClass, caller: &str) -> Result<()> {
        let Err(wait) = self.limiter(class).check_key(&caller.to_owned()) else { return Ok(()) };
        Err(rate_limited(class, wait.wait_time_from(QuantaClock::default().now())))
    }

    /// Has this address used up its wrong credentials? Asking counts as nothing.
    pub(crate) fn refuse_guesser(&self, address: &str) -> Result<()> {
        let now = QuantaClock::default().now();
        let mut guessers = self.guessers.lock().unwrap_or_else(PoisonError::into_inner);
        match guessers.get(address) {
            Some(until) if *until > now => {
                Err(rate_limited(RateClass::Guess, until.duration_since(now).into()))
            }
            Some(_) => {
                guessers.remove(address);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Counts a wrong credential against the address it came from.
    pub(crate) fn count_guess(&self, address: &str) -> Result<()> {
        let now = QuantaClock::default().now();
        let (until, outcome) = match self.limiter(RateClass::Guess).check_key(&address.to_owned()) {
            Ok(state) if state.remaining_burst_capacity() > 0 => return Ok(()),
            Ok(state) => (now + state.quota().replenish_interval().into(), Ok(())),
            Err(wait) => {
                (wait.earliest_possible(), Err(rate_limited(RateClass::Guess, wait.wait_time_from(now))))
            }
        };
        let mut guessers = self.guessers.lock().unwrap_or_else(PoisonError::into_inner);
        if guessers.len() >= CALLERS_MAX {
            guessers.retain(|_, until| *until > now);
        }
        guessers.insert(address.to_owned(), until);
        outcome
    }

    fn limiter(&self, class: RateClass) -> Arc<Limiter> {
        let (slot, rate) = match class {
            RateClass::Read => (0, self.settings.get(&READS_PER_SECOND)),
            RateClass::Write => (1, self.settings.get(&WRITES_PER_SECOND)),
            RateClass::Guess => (2, self.settings.get(&GUESSES_PER_MINUTE)),
        };
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made_for, limiter)) = &limiters[slot]
            && *made_for == rate
        {
            if limiter.len() > CALLERS_MAX {
                limiter.retain_recent();
            }
            return Arc::clone(limiter);
        }
        let burst = NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN);
        let quota =
            if class == RateClass::Guess { Quota::per_minute(burst) } else { Quota::per_second(burst) };
        let limiter =
            Arc::new(RateLimiter::dashmap_with_clock(quota, QuantaClock::default()).with_middleware());
        limiters[slot] = Some((rate, Arc::clone(&limiter)));
        limiter
    }
}

fn rate_limited(class: RateClass, wait: Duration) -> Error {
    let what = match class {
        RateClass::Read => "reads",
        RateClass::Write => "changes",
        RateClass::Guess => "sign-in attempts",
    };
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    RATE_LIMITED.error(format!("too many {what} in a short time")).with_retry_after_ms(wait_ms)
}

/// A caller, or its organization, has as many of something under way as it may.
pub(crate) fn crowded(what: &str, whose: &str, setting: &Setting<u32>, most: u32) -> Error {
    RATE_LIMITED
        .error(format!("you have {most} {what} at the same time, which is the most for one {whose}"))
        .with_details(serde_json::json!({"limit": setting.key, "at_once_max": most}))
        .with_retry_after_ms(1_000)
}

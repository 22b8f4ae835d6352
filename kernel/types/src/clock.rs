//! Time is injected, never read from the machine by a domain: a test steps it, a crash drill rewinds it.
//!
//! Timestamps are microseconds, because that is what PostgreSQL keeps; a finer value would change on its way
//! through the database and break every comparison of "what I wrote" with "what I read".

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

pub use jiff::Timestamp;

/// Where `now` comes from.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// The machine's clock, cut to microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    micros: AtomicI64,
}

impl ManualClock {
    pub fn at(start: Timestamp) -> Self {
        Self { micros: AtomicI64::new(start.as_microsecond()) }
    }

    pub fn advance(&self, by: Duration) {
        self.micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.micros.load(Ordering::SeqCst)).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// The one spelling of a point in time in sealed bytes: UTC, always six decimals, so that equal times are equal bytes
/// whatever a later version of the wire format does.
pub fn format_micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// A time as a caller writes it. What is wrong with one is said in our words, not in those of the calendar's library.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Moment(Timestamp);

impl Moment {
    pub const fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl TryFrom<String> for Moment {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
            .map(Self)
            .map_err(|_| "a time with its zone is needed, such as 2026-01-31T12:00:00Z, before 9999-12-30")
    }
}

impl schemars::JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

//! How late the machinery is: events that wait for a position, and readers that wait for nothing but themselves.

use db::{DbError, Internal, Settings};
use types::{Clock, Timestamp};

use crate::settings::LOG_RETENTION_SECONDS;
use crate::store;

/// How far a consumer or projection is behind the log's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lag {
    pub consumer: String,
    pub positions: i64,
    /// When the oldest event that it has not read got its position.
    pub since: Option<Timestamp>,
}

impl Lag {
    /// Since when events wait for this reader that nobody would keep otherwise.
    pub fn holds_back(&self, now: Timestamp, settings: &Settings) -> Option<Timestamp> {
        let end = self.since?.checked_add(LOG_RETENTION_SECONDS.seconds(settings)).ok()?;
        (end < now).then_some(end)
    }
}

pub async fn lags(internal: &Internal) -> Result<Vec<Lag>, DbError> {
    let rows = internal.query(store::CONSUMER_LAGS, &[]).await?;
    let lag = |row: &db::Row| Lag { consumer: row.get(0), positions: row.get(1), since: row.get(2) };
    Ok(rows.iter().map(lag).collect())
}

/// When the oldest event that waits for its position was written.
pub async fn oldest_waiting(internal: &Internal) -> Result<Option<Timestamp>, DbError> {
    Ok(internal.query_opt(store::OUTBOX_OLDEST_WAITING, &[]).await?.map(|row| row.get(0)))
}

/// Sets the gauges. Needs the login that may read the outbox.
pub async fn measure(internal: &Internal, clock: &dyn Clock, settings: &Settings) -> Result<(), DbError> {
    let now = clock.now();
    metrics::gauge!("gpuaas_outbox_oldest_seconds").set(age(oldest_waiting(internal).await?, now));
    for lag in lags(internal).await? {
        let held_back = age(lag.holds_back(now, settings), now);
        let label = [("consumer", lag.consumer)];
        metrics::gauge!("gpuaas_consumer_lag_positions", &label).set(lag.positions as f64);
        metrics::gauge!("gpuaas_consumer_lag_seconds", &label).set(age(lag.since, now));
        metrics::gauge!("gpuaas_log_held_back_seconds", &label).set(held_back);
    }
    Ok(())
}

fn age(since: Option<Timestamp>, now: Timestamp) -> f64 {
    since.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0))
}

//! Gives events their positions.
//!
//! Reading an outbox by sequence number or by time skips transactions that commit late. So the sequencer goes by
//! transaction id, and only up to the oldest transaction still running: below that line everything is committed or
//! gone for good. Any number of sequencers may run; an advisory lock lets one work at a time, and the mark moves only
//! from the position it was read at, so a stale one changes nothing.

use db::settings::Settings;
use db::{DbError, Internal, Nudges, Topic};
use tokio_util::sync::CancellationToken;
use types::Clock;
use uuid::Uuid;

use crate::settings::SWEEP_MS;
use crate::store;

pub struct Sequencer {
    internal: Internal,
    clock: std::sync::Arc<dyn Clock>,
    nudges: Nudges,
    settings: Settings,
}

/// Events moved in one transaction: bounds its length, and with it how long it holds back others' horizon.
const BATCH: i64 = 2_000;

impl Sequencer {
    pub fn new(
        internal: Internal,
        clock: std::sync::Arc<dyn Clock>,
        nudges: Nudges,
        settings: Settings,
    ) -> Self {
        Self { internal, clock, nudges, settings }
    }

    /// Works until told to stop. Errors are logged and tried again: the outbox waits.
    pub async fn run(&self, stop: CancellationToken) {
        let mut committed = self.nudges.listen(Topic::Committed);
        while !stop.is_cancelled() {
            match self.step().await {
                Ok(moved) if moved >= BATCH => continue,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "sequencer could not move events, will try again"),
            }
            tokio::select! {
                () = committed.wait(SWEEP_MS.millis(&self.settings)) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Moves one batch. Returns how many events got a position.
    pub async fn step(&self) -> Result<i64, DbError> {
        let now = self.clock.now();
        let moved = self
            .internal
            .bookkeeping(&["spine.log", "spine.sequencer"], async |tx| -> Result<i64, DbError> {
                let Some(mark) = tx.query_opt(store::SEQUENCER_TAKE, &[]).await? else {
                    return Err(DbError::Unexpected("spine.sequencer has no row".to_owned()));
                };
                if !mark.get::<_, bool>(0) {
                    return Ok(0);
                }
                let (position, xid, id): (i64, String, Uuid) = (mark.get(1), mark.get(2), mark.get(3));
                let rows = tx.query(store::SEQUENCER_STEP, &[&position, &xid, &id, &BATCH, &now]).await?;
                let (moved, marked): (i64, i64) = rows.first().map_or((0, 0), |row| (row.get(0), row.get(1)));
                if moved > 0 && marked == 0 {
                    return Err(DbError::Unexpected("another sequencer moved the mark".to_owned()));
                }
                Ok(moved)
            })
            .await?;
        if moved > 0 {
            metrics::counter!("gpuaas_events_sequenced_total").increment(moved.unsigned_abs());
            self.nudges.nudge(Topic::Log);
        }
        Ok(moved)
    }
}

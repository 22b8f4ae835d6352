//! Gives events their positions.
//!
//! Reading an outbox by sequence number or by time skips transactions that commit late. So the sequencer goes by
//! transaction id, and only up to the oldest transaction still running: below that line everything is committed or
//! gone for good. Any number of sequencers may run; an advisory lock lets one work at a time, and the mark moves only
//! from the position it was read at, so a stale one changes nothing.

use std::time::Duration;

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
// fixed: how soon to look again while events are held back
const HELD_BACK_FIRST: Duration = Duration::from_millis(1);
// fixed: bounds what a long transaction costs us
const HELD_BACK_MOST: Duration = Duration::from_millis(64);

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
        let mut pause = HELD_BACK_FIRST;
        while !stop.is_cancelled() {
            let held_back = match self.work().await {
                Ok(done) if done.moved >= BATCH => continue,
                Ok(done) => done.held_back,
                Err(error) => {
                    tracing::warn!(%error, "sequencer could not move events, will try again");
                    false
                }
            };
            // Whoever holds events back may end without a word to us: a backup, a vacuum, somebody else's database.
            let wait = if held_back { pause } else { SWEEP_MS.millis(&self.settings) };
            pause = if held_back { (pause * 2).min(HELD_BACK_MOST) } else { HELD_BACK_FIRST };
            tokio::select! {
                () = committed.wait(wait) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Moves one batch. Returns how many events got a position.
    pub async fn step(&self) -> Result<i64, DbError> {
        self.work().await.map(|done| done.moved)
    }

    async fn work(&self) -> Result<Done, DbError> {
        let now = self.clock.now();
        let done = self
            .internal
            .bookkeeping(&["spine.log", "spine.sequencer"], async |tx| -> Result<Done, DbError> {
                let Some(mark) = tx.query_opt(store::SEQUENCER_TAKE, &[]).await? else {
                    return Err(DbError::Unexpected("spine.sequencer has no row".to_owned()));
                };
                if !mark.get::<_, bool>(0) {
                    return Ok(Done { moved: 0, held_back: false });
                }
                let (position, xid, id): (i64, String, Uuid) = (mark.get(1), mark.get(2), mark.get(3));
                let params: db::Params<'_> = &[&position, &xid, &id, &BATCH, &now];
                let Some(row) = tx.query_opt(store::SEQUENCER_STEP, params).await? else {
                    return Ok(Done { moved: 0, held_back: false });
                };
                let (moved, marked): (i64, i64) = (row.get(0), row.get(1));
                if moved > 0 && marked == 0 {
                    return Err(DbError::Unexpected("another sequencer moved the mark".to_owned()));
                }
                Ok(Done { moved, held_back: row.get(2) })
            })
            .await?;
        if done.moved > 0 {
            metrics::counter!("gpuaas_events_sequenced_total").increment(done.moved.unsigned_abs());
            self.nudges.nudge(Topic::Log);
        }
        Ok(done)
    }
}

struct Done {
    moved: i64,
    /// Are there committed events that an older, still running transaction keeps from getting a position?
    held_back: bool,
}

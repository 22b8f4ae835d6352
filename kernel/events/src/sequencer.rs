//! Gives events their positions.
//!
//! Reading an outbox by sequence number or by time skips transactions that commit late. So the sequencer goes by
//! transaction id, and only up to the oldest transaction still running: below that line everything is committed or
//! gone for good. Any number of sequencers may run; an advisory lock lets one work at a time, and the mark moves only
//! from the position it was read at, so a stale one changes nothing.
//!
//! Transaction ids compare only within one PostgreSQL. A sequencer that finds its mark was made by another one (somebody
//! brought a dump here by hand; `pg_upgrade` looks the same) moves in first: nothing is lost, nothing gets a second
//! position, and a new epoch begins.

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
                Ok(done) if done.more => continue,
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
        let batch = self
            .internal
            .bookkeeping(&["spine.log", "spine.sequencer"], async |tx| -> Result<Option<Done>, DbError> {
                let Some(mark) = take(tx).await? else { return Ok(Some(Done::default())) };
                if !mark.is_of_this_cluster {
                    return Ok(None);
                }
                let params: db::Params<'_> = &[&mark.position, &mark.xid, &mark.id, &BATCH, &now];
                let Some(row) = tx.query_opt(store::SEQUENCER_STEP, params).await? else {
                    return Ok(Some(Done::default()));
                };
                let (moved, marked): (i64, i64) = (row.get(0), row.get(1));
                if moved > 0 && marked == 0 {
                    return Err(DbError::Unexpected("another sequencer moved the mark".to_owned()));
                }
                Ok(Some(Done { moved, more: moved >= BATCH, held_back: row.get(2) }))
            })
            .await?;
        let done = match batch {
            Some(done) => done,
            None => self.move_in().await?,
        };
        if done.moved > 0 {
            metrics::counter!("gpuaas_events_sequenced_total").increment(done.moved.unsigned_abs());
            self.nudges.nudge(Topic::Log);
        }
        Ok(done)
    }

    /// Makes this PostgreSQL the one the mark belongs to, in one transaction.
    async fn move_in(&self) -> Result<Done, DbError> {
        let tables = &["spine.outbox", "spine.log", "spine.sequencer"];
        self.internal
            .bookkeeping(tables, async |tx| -> Result<Done, DbError> {
                match take(tx).await? {
                    Some(mark) if !mark.is_of_this_cluster => {}
                    _ => return Ok(Done::default()),
                }
                tx.query(store::ADOPT_PATIENCE, &[]).await?;
                tx.query(store::ADOPT_FORGET, &[]).await?;
                let Some(row) = tx.query_opt(store::ADOPT, &[]).await? else { return Ok(Done::default()) };
                let (moved, epoch): (i64, i32) = (row.get(0), row.get(1));
                tracing::warn!(
                    epoch,
                    moved,
                    "the event log came from another PostgreSQL: a new epoch begins, cursors of the former one have expired"
                );
                Ok(Done { moved, more: true, held_back: false })
            })
            .await
    }
}

/// The mark as it was read.
struct Mark {
    position: i64,
    xid: String,
    id: Uuid,
    /// Was it made by the PostgreSQL it is in?
    is_of_this_cluster: bool,
}

/// Reads the mark, if no other sequencer is at work.
async fn take(tx: &mut db::Bookkeeping) -> Result<Option<Mark>, DbError> {
    let Some(row) = tx.query_opt(store::SEQUENCER_TAKE, &[]).await? else {
        return Err(DbError::Unexpected("spine.sequencer has no row".to_owned()));
    };
    let mark = Mark { position: row.get(1), xid: row.get(2), id: row.get(3), is_of_this_cluster: row.get(4) };
    Ok(row.get::<_, bool>(0).then_some(mark))
}

#[derive(Default)]
struct Done {
    moved: i64,
    /// Is there probably more to do at once?
    more: bool,
    /// Are there committed events that an older, still running transaction keeps from getting a position?
    held_back: bool,
}

//! Dropping what is old from the database, once it is safe elsewhere.
//!
//! Entries leave as whole partitions, a month at a time and one per call. Before a month goes, every one of its entries
//! must be sealed, delivered to the second place, and found there just now with exactly the bytes that were sealed: a
//! mark that says "delivered" is not enough to throw the original away. One entry that fails any of this keeps its
//! month. Without a second place nothing is ever pruned.
//!
//! What stays: numbers and hashes of all entries (`audit.leaf`), so proofs of the remaining ones go on as before, and a
//! row in `audit.pruned`. Exports take the lines of pruned entries from the second place.

use std::sync::Arc;
use std::time::Duration;

use blob::Blobs;
use db::{DbError, Internal, Settings};
use merkle::leaf_hash;
use tokio_util::sync::CancellationToken;
use types::{Clock, Timestamp};
use uuid::Uuid;

use crate::copy::Copy;
use crate::delivery::DeliveryError;
use crate::replica::unavailable;
use crate::settings::{PRUNE_INTERVAL_SECONDS, RETENTION_DAYS};
use crate::store;

pub struct Pruner {
    internal: Internal,
    clock: Arc<dyn Clock>,
    settings: Settings,
    blobs: Blobs,
}

/// A month of entries that may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    pub partition: String,
    pub entries: u64,
}

/// Entries compared at once.
// fixed: bounds memory; a larger page is no faster
const PAGE: i64 = 1_000;
const SECONDS_PER_DAY: u64 = 24 * 3600; // fixed: the calendar's

impl Pruner {
    /// `internal` works under the sealer's login.
    pub fn new(internal: Internal, clock: Arc<dyn Clock>, settings: Settings, blobs: Blobs) -> Self {
        Self { internal, clock, settings, blobs }
    }

    /// Works until told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(Pruned { partition, entries })) => {
                    tracing::info!(partition, entries, "old audit entries left the database");
                }
                Err(error @ DeliveryError::Alarm(_)) => {
                    metrics::counter!("gpuaas_audit_alarms_total", "alarm" => "pruner").increment(1);
                    tracing::error!(%error, "old audit entries stay, because their copy is not what was sealed");
                }
                Err(error) => tracing::warn!(%error, "old audit entries could not be pruned, will try again"),
            }
            tokio::select! {
                () = tokio::time::sleep(PRUNE_INTERVAL_SECONDS.seconds(&self.settings)) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Drops the oldest partition that may go, if there is one.
    pub async fn step(&self) -> Result<Option<Pruned>, DeliveryError> {
        let now = self.clock.now();
        let kept = Duration::from_secs(u64::from(self.settings.get(&RETENTION_DAYS)) * SECONDS_PER_DAY);
        let before = now.checked_sub(kept).unwrap_or(Timestamp::MIN);
        let Some(row) = self.internal.query_opt(store::PRUNE_CANDIDATE, &[&before]).await? else {
            return Ok(None);
        };
        let (partition, lower, upper): (String, Timestamp, Timestamp) = (row.get(0), row.get(1), row.get(2));
        let delivered: i64 = row.get(3);
        let Some((entries, last_index)) = self.compare(lower, upper, delivered).await? else {
            return Ok(None);
        };
        let params: db::Params<'_> = &[&partition, &lower, &upper, &entries, &last_index, &now];
        self.internal.bookkeeping_one(&["audit.pruned"], store::PRUNE, params).await?;
        Ok(Some(Pruned { partition, entries: store::unsigned(entries) }))
    }

    /// Compares every entry of a month with its copy. Returns how many there are and the largest number among them;
    /// `None` while one of them is not sealed or not delivered yet.
    async fn compare(
        &self,
        lower: Timestamp,
        upper: Timestamp,
        delivered: i64,
    ) -> Result<Option<(i64, i64)>, DeliveryError> {
        let mut copy = Copy::new(&self.blobs);
        let (mut entries, mut last_index) = (0, -1);
        let (mut at, mut id) = (lower, Uuid::nil());
        loop {
            let rows = self.internal.query(store::PRUNE_PAGE, &[&at, &id, &upper, &PAGE]).await?;
            let Some(last) = rows.last() else { return Ok(Some((entries, last_index))) };
            (at, id) = (last.get(0), last.get(1));
            for row in &rows {
                let index: Option<i64> = row.get(2);
                let Some(index) = index.filter(|index| *index < delivered) else { return Ok(None) };
                let sealed = store::hash(row.get(3))
                    .ok_or_else(|| DbError::Unexpected(format!("leaf {index} is no hash")))?;
                let line = copy.line(store::unsigned(index)).await.map_err(unavailable)?;
                if line.is_none_or(|line| leaf_hash(&line) != sealed) {
                    return Err(DeliveryError::Alarm(format!(
                        "entry {index} is not in the second place as it was sealed"
                    )));
                }
                entries += 1;
                last_index = last_index.max(index);
            }
        }
    }
}

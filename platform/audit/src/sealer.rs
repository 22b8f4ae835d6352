//! Puts entries in order into the Merkle log and signs what it has so far.
//!
//! Reading entries by time or by id would skip transactions that commit late. So the sealer goes by transaction id, and
//! only up to the oldest transaction still running: below that line everything is committed or gone for good, however
//! many numbers were skipped. Numbers in the log are its own and have no gaps.
//!
//! A seal is one transaction: read the edge, read the next entries, hash and sign in memory, write leaves, nodes,
//! checkpoint and the new edge. A crash anywhere leaves the edge where it was, and the next attempt computes the same
//! leaves again. Any number of sealers may run; an advisory lock lets one work at a time, and the edge moves only from
//! the size it was read at, so a stale one writes nothing.
//!
//! A new key takes over with the next seal: that checkpoint is a hand-over, signed with both (`merkle::chain`), and from
//! then on the log is known by the new key. A sealer that still has the old one is refused and fetches the new one.
//!
//! An entry that stays unsealed for long is an alarm, whatever the reason: a transaction that never ends holds back all that
//! come after it, and nothing fails.
//!
//! Two things stop it, loudly, because going on would be worse: a signing key other than the one the log is known by, and
//! not handed over to (checkpoints kept elsewhere would stop verifying), and a PostgreSQL other than the one the
//! transaction ids came from (new entries could sort before the mark and never be seen).

use std::sync::Arc;
use std::time::Duration;

use db::{DbError, Internal, Nudges, Settings, Topic};
use futures::future::BoxFuture;
use merkle::tree::FrontierError;
use merkle::{
    Checkpoint, CheckpointError, Frontier, Handover, Hash, SignedNote, SignerKey, StoredHash, leaf_hash,
};
use tokio_util::sync::CancellationToken;
use types::{Clock, Timestamp};
use uuid::Uuid;

use crate::canonical::EntryRow;
use crate::settings::{
    KEY_RENEW_MS, SEAL_BATCH_BYTES_MAX, SEAL_BATCH_MAX, SEAL_INTERVAL_MS, SEAL_LATE_SECONDS,
};
use crate::store;

/// The keys to sign with.
#[derive(Clone)]
pub struct SealKeys {
    pub current: Arc<SignerKey>,
    /// The one before, as long as the log is still known by it.
    pub former: Option<Arc<SignerKey>>,
}

/// Where the keys come from: who keeps them is the server's business.
pub trait KeySource: Send + Sync + 'static {
    fn keys(&self) -> SealKeys;
    /// Looks whether there is a newer key. An error is for the operator's log.
    fn renew(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// Keys that stay as they are.
impl KeySource for SealKeys {
    fn keys(&self) -> SealKeys {
        self.clone()
    }

    fn renew(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

impl From<SignerKey> for SealKeys {
    fn from(key: SignerKey) -> Self {
        Self { current: Arc::new(key), former: None }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("another sealer moved the tree")]
    Overtaken,
    #[error("the tree's edge is damaged: {0}")]
    Frontier(#[from] FrontierError),
    #[error("the tree has {size} entries, its edge {edge}")]
    EdgeSize { size: u64, edge: u64 },
    #[error("the checkpoint cannot be signed: {0}")]
    Sign(#[from] CheckpointError),
    #[error(
        "the log is signed with the key {known}, and this sealer has {ours}. The log's own key is kept by the secrets \
         domain: restore the database together with the secrets.key it belongs to. A new key comes with `gpuaasd audit \
         rotate-key` and nothing else: one that the old key did not hand over to would make every checkpoint kept \
         elsewhere worthless"
    )]
    OtherKey { known: String, ours: String },
    #[error(
        "the log comes from another PostgreSQL server, whose transaction ids do not compare with this one's: new entries \
         could hide behind old ones. Bring databases back with `gpuaasd restore`, which takes care of it"
    )]
    OtherCluster,
}

const TABLES: &[&str] =
    &["audit.tree", "audit.era", "audit.leaf", "audit.node", "audit.checkpoint", "audit.signing_key"];

pub struct Sealer {
    internal: Internal,
    clock: Arc<dyn Clock>,
    nudges: Nudges,
    settings: Settings,
    keys: Arc<dyn KeySource>,
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub sealed: usize,
    /// More entries are waiting than fit into one transaction.
    pub full: bool,
}

impl Sealer {
    /// `internal` works under the sealer's login.
    pub fn new(
        internal: Internal,
        clock: Arc<dyn Clock>,
        nudges: Nudges,
        settings: Settings,
        keys: Arc<dyn KeySource>,
    ) -> Self {
        Self { internal, clock, nudges, settings, keys }
    }

    /// Works until told to stop. Entries that came during a pause are sealed together after it.
    pub async fn run(&self, stop: CancellationToken) {
        let mut committed = self.nudges.listen(Topic::Committed);
        let mut renewed = self.clock.now();
        let mut lateness = Lateness::default();
        while !stop.is_cancelled() {
            let pause = KEY_RENEW_MS.millis(&self.settings).as_secs_f64();
            if seconds_between(renewed, self.clock.now()) >= pause {
                self.renew_keys().await;
                renewed = self.clock.now();
            }
            if self.turn(&mut lateness).await {
                continue;
            }
            let interval = SEAL_INTERVAL_MS.millis(&self.settings);
            tokio::select! {
                // The pause comes first: a steady trickle of entries gives one checkpoint per interval, not one each.
                () = async { tokio::time::sleep(interval).await; committed.wait(interval).await } => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Seals one batch and looks how late the rest is. Does more wait already? Also a sealer that is always at work must
    /// notice that it falls behind.
    pub(crate) async fn turn(&self, lateness: &mut Lateness) -> bool {
        let step = self.step_with_newest_key().await;
        match &step {
            Ok(_) => {}
            Err(error @ (SealError::Db(_) | SealError::Overtaken)) => {
                tracing::warn!(%error, "entries could not be sealed, will try again");
            }
            Err(error) => {
                metrics::counter!("gpuaas_audit_alarms_total", "alarm" => "sealer").increment(1);
                tracing::error!(%error, "the audit log is not being sealed");
            }
        }
        if let Ok(lag) = self.lag().await {
            lateness.note(lag, SEAL_LATE_SECONDS.seconds(&self.settings), self.clock.now());
        }
        step.is_ok_and(|step| step.full)
    }

    /// Seals one batch; if another sealer has handed the log over to a newer key, with that one.
    async fn step_with_newest_key(&self) -> Result<Step, SealError> {
        match self.step().await {
            Err(SealError::OtherKey { .. }) => {
                self.renew_keys().await;
                self.step().await
            }
            step => step,
        }
    }

    async fn renew_keys(&self) {
        if let Err(error) = self.keys.renew().await {
            tracing::warn!(error, "the audit log's key could not be looked up, the one at hand stays in use");
        }
    }

    /// Seals one batch.
    pub async fn step(&self) -> Result<Step, SealError> {
        let (now, keys) = (self.clock.now(), self.keys.keys());
        let entries_max = i64::from(self.settings.get(&SEAL_BATCH_MAX));
        let bytes_max = store::signed(self.settings.get(&SEAL_BATCH_BYTES_MAX));
        let batch = self
            .internal
            .bookkeeping(TABLES, async |tx| -> Result<Option<Batch>, SealError> {
                let Some((edge, signers)) = take(tx, &keys, now).await? else { return Ok(None) };
                let params: db::Params<'_> =
                    &[&edge.done_xid, &edge.done_id, &entries_max, &bytes_max, &edge.era];
                let rows = tx.query(store::SEAL_BATCH, params).await?;
                if rows.is_empty() {
                    return Ok(None);
                }
                let batch = Batch::seal(edge, rows.iter().map(store::entry_row), &signers)?;
                batch.write(tx, now).await?;
                if let Signers::Handover { new, .. } = signers {
                    let (size, key) = (store::signed(batch.frontier.size()), new.verifier().to_string());
                    let published = tx.query_opt(store::KEY_PUBLISH, &[&size, &key, &now]).await?;
                    published.ok_or(SealError::Overtaken)?;
                    tracing::info!(size, key, "the audit log has a new key");
                }
                Ok(Some(batch))
            })
            .await?;
        let Some(batch) = batch else { return Ok(Step { sealed: 0, full: false }) };
        batch.note(now);
        let sealed = batch.ids.len();
        Ok(Step {
            sealed,
            full: store::signed(sealed as u64) >= entries_max || batch.bytes >= bytes_max.unsigned_abs() / 2,
        })
    }

    /// How long the oldest entry without a place has been waiting.
    async fn lag(&self) -> Result<Duration, DbError> {
        let oldest = oldest_unsealed(&self.internal).await?;
        Ok(oldest.map_or(Duration::ZERO, |at| Duration::from_secs_f64(seconds_between(at, self.clock.now()))))
    }
}

/// Says that entries are late when they become so, and again each time as much time has passed.
#[derive(Default)]
pub(crate) struct Lateness {
    pub(crate) said: Option<Timestamp>,
}

impl Lateness {
    pub(crate) fn note(&mut self, lag: Duration, limit: Duration, now: Timestamp) {
        metrics::gauge!("gpuaas_audit_entry_lag_seconds").set(lag.as_secs_f64());
        if lag <= limit {
            self.said = None;
        } else if self.said.is_none_or(|said| seconds_between(said, now) >= limit.as_secs_f64()) {
            self.said = Some(now);
            metrics::counter!("gpuaas_audit_alarms_total", "alarm" => "late").increment(1);
            tracing::error!(
                seconds = lag.as_secs(),
                "an audit entry has not been sealed for long: a transaction that does not end, or an error above, holds \
                 the sealer back; see docs/runbooks/seal-lag.md"
            );
        }
    }
}

/// When the oldest entry that is not sealed was written.
pub async fn oldest_unsealed(internal: &Internal) -> Result<Option<Timestamp>, DbError> {
    Ok(internal.query_opt(store::OLDEST_UNSEALED, &[]).await?.map(|row| row.get(0)))
}

/// The tree as it was read.
struct Edge {
    size: u64,
    frontier: Frontier,
    done_xid: String,
    done_id: Uuid,
    era: i32,
}

/// Who signs the next checkpoint.
enum Signers<'k> {
    One(&'k SignerKey),
    /// The log changes its key.
    Handover {
        old: &'k SignerKey,
        new: &'k SignerKey,
    },
}

impl<'k> Signers<'k> {
    /// The keys at hand, for a log known by `known`.
    fn of(keys: &'k SealKeys, known: Option<&str>) -> Result<Self, SealError> {
        let ours = keys.current.verifier().to_string();
        match (known, &keys.former) {
            (None, _) => Ok(Self::One(&keys.current)),
            (Some(known), _) if known == ours => Ok(Self::One(&keys.current)),
            (Some(known), Some(former)) if known == former.verifier().to_string() => {
                Ok(Self::Handover { old: former, new: &keys.current })
            }
            (Some(known), _) => Err(SealError::OtherKey { known: known.to_owned(), ours }),
        }
    }

    fn sign(&self, size: u64, root: Hash) -> Result<SignedNote, CheckpointError> {
        let checkpoint = |key: &SignerKey| Checkpoint::new(key.verifier().name(), size, root);
        match self {
            Self::One(key) => checkpoint(key).sign(key),
            Self::Handover { old, new } => Handover::sign(checkpoint(old), old, new),
        }
    }
}

/// Reads the edge, if no other sealer is at work; publishes the key before the first entry.
async fn take<'k>(
    tx: &mut db::Bookkeeping,
    keys: &'k SealKeys,
    now: Timestamp,
) -> Result<Option<(Edge, Signers<'k>)>, SealError> {
    let Some(row) = tx.query_opt(store::TREE_TAKE, &[]).await? else {
        return Err(DbError::Unexpected("audit.tree has no row".to_owned()).into());
    };
    if !row.get::<_, bool>(0) {
        return Ok(None);
    }
    let size: i64 = row.get(1);
    let mut era: i32 = row.get(6);
    if !row.get::<_, bool>(5) {
        let adopted = tx.query_opt(store::ERA_ADOPT, &[&era]).await?;
        era = adopted.ok_or(SealError::OtherCluster)?.get(0);
    }
    let known: Option<&str> = row.get(7);
    let signers = Signers::of(keys, known)?;
    if known.is_none() {
        // The edge may be older than the lock: it was read by the statement that asked for it.
        let key = keys.current.verifier().to_string();
        let published = tx.query_opt(store::KEY_PUBLISH, &[&size, &key, &now]).await?;
        published.ok_or(SealError::Overtaken)?;
    }
    let edge = Edge {
        size: store::unsigned(size),
        frontier: Frontier::from_bytes(row.get(2))?,
        done_xid: row.get(3),
        done_id: row.get(4),
        era,
    };
    if edge.frontier.size() != edge.size {
        return Err(SealError::EdgeSize { size: edge.size, edge: edge.frontier.size() });
    }
    Ok(Some((edge, signers)))
}

/// A sealed batch, column by column as it is written.
struct Batch {
    from: u64,
    era: i32,
    frontier: Frontier,
    hashes: Vec<Vec<u8>>,
    xids: Vec<String>,
    ids: Vec<Uuid>,
    times: Vec<Timestamp>,
    node_levels: Vec<i16>,
    node_indexes: Vec<i64>,
    node_hashes: Vec<Vec<u8>>,
    note: String,
    bytes: u64,
}

impl Batch {
    /// Pure: the same edge and entries give the same tree, whoever computes it.
    fn seal(
        edge: Edge,
        entries: impl Iterator<Item = EntryRow>,
        signers: &Signers<'_>,
    ) -> Result<Self, SealError> {
        let mut batch = Self {
            from: edge.size,
            era: edge.era,
            frontier: edge.frontier,
            hashes: Vec::new(),
            xids: Vec::new(),
            ids: Vec::new(),
            times: Vec::new(),
            node_levels: Vec::new(),
            node_indexes: Vec::new(),
            node_hashes: Vec::new(),
            note: String::new(),
            bytes: 0,
        };
        for entry in entries {
            batch.append(entry);
        }
        batch.note = signers.sign(batch.frontier.size(), batch.frontier.root())?.to_string();
        Ok(batch)
    }

    fn append(&mut self, entry: EntryRow) {
        let line = entry.line(self.frontier.size());
        self.bytes += line.len() as u64;
        let hash = leaf_hash(line.as_bytes());
        for StoredHash { level, index, hash } in self.frontier.append(hash) {
            self.node_levels.push(i16::from(level));
            self.node_indexes.push(store::signed(index));
            self.node_hashes.push(hash.as_bytes().to_vec());
        }
        self.hashes.push(hash.as_bytes().to_vec());
        self.xids.push(entry.xid);
        self.ids.push(entry.id);
        self.times.push(entry.at);
    }

    async fn write(&self, tx: &mut db::Bookkeeping, now: Timestamp) -> Result<(), SealError> {
        let (root, frontier) = (self.frontier.root(), self.frontier.to_bytes());
        let params: db::Params<'_> = &[
            &store::signed(self.from),
            &store::signed(self.frontier.size()),
            &frontier,
            &self.xids.last(),
            &self.ids.last(),
            &now,
            &self.hashes,
            &self.xids,
            &self.ids,
            &self.times,
            &self.node_levels,
            &self.node_indexes,
            &self.node_hashes,
            &root.as_bytes().as_slice(),
            &self.note,
            &self.era,
        ];
        match tx.query_opt(store::SEAL_WRITE, params).await? {
            Some(_) => Ok(()),
            None => Err(SealError::Overtaken),
        }
    }

    fn note(&self, now: Timestamp) {
        metrics::counter!("gpuaas_audit_sealed_total").increment(self.ids.len() as u64);
        // The size is a count that a metric's float holds exactly up to 2^53.
        metrics::gauge!("gpuaas_audit_log_size").set(self.frontier.size() as f64);
        // From when the entry's transaction began: an upper bound of the time since its commit, which nobody records.
        let lag = metrics::histogram!("gpuaas_audit_seal_lag_seconds");
        for at in &self.times {
            lag.record(seconds_between(*at, now));
        }
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    (to.duration_since(from)).as_secs_f64().max(0.0)
}

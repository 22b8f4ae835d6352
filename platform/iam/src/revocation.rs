//! What was taken away, as every replica knows it within a second.
//!
//! A change that takes something away from somebody (a key revoked, a session ended, a role withdrawn, an organization
//! suspended) says so in its own transaction with [`revoke`], and must: whoever remembers identities asks nobody else.
//! Each replica follows these rows ([`Revocations`]); [`Remembered`](crate::Remembered) uses what it learned.
//!
//! Followed by transaction id, not by a sequence or a time, which are taken when a row is written while the row appears
//! when it is committed: one that commits late would be passed by (docs/decisions/0012). Each answer names its floor,
//! the oldest transaction that was still under way; the next question asks for everything from there on. Rows are
//! therefore read more than once, which does no harm.
//!
//! Invariants
//! - Whoever loads something takes [`Revocations::mark`] *before*. Every revocation that the load did not see has an id
//!   that is not below the mark's floor, so it is found by [`Revocations::is_revoked_since`] once it has been followed.
//! - The age counts from when the last question that got an answer was *asked*. A replica that hears nothing grows old;
//!   it never takes silence for good news.
//! - When the history may have a hole (another connection, as a server that crashed may give ids out again; another timeline, a floor that moved backwards, silence longer
//!   than rows are kept, too many rows) everything remembered before is void.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use db::{DbError, Internal, Line, Nudges, Row, Setting, SettingInfo, Settings, Topic, Tx};
use tokio_util::sync::CancellationToken;
use types::Timestamp;
use uuid::Uuid;

use crate::store;

pub static REVOCATION_POLL_MS: Setting<u64> = Setting::new(
    "iam.revocation_poll_ms",
    300,
    "How often a replica asks what was revoked when nobody tells it to look, in milliseconds.",
)
.between(10, 60_000);
pub static REVOCATION_STALE_MS: Setting<u64> = Setting::new(
    "iam.revocation_stale_ms",
    1_000,
    "A replica that has not learned for so long what was revoked asks the database about every caller, in milliseconds. \
     How long a revoked credential may live on.",
)
.between(50, 60_000);
pub static REVOCATION_KEEP_SECONDS: Setting<u64> = Setting::new(
    "iam.revocation_keep_seconds",
    24 * 3600,
    "How long it is kept what was revoked, for replicas that could not ask meanwhile, in seconds.",
)
.at_least(3600);

pub(crate) fn settings() -> Vec<SettingInfo> {
    vec![REVOCATION_POLL_MS.info(), REVOCATION_STALE_MS.info(), REVOCATION_KEEP_SECONDS.info()]
}

// fixed: bounds memory and one answer; beyond it everything is looked up anew, which is slower and as safe
const REVOCATIONS_MAX: usize = 100_000;
const ANSWER_MAX: i64 = 10_000; // fixed: see above

/// What was revoked; tells readers of the table what an id is. Ids are unique whatever they name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A key, a session, a token.
    Credential,
    /// A person, a service account, an agent: it may do nothing any more.
    Principal,
    /// What a principal may do changed; the subject is the principal.
    Authority,
    /// Everybody in an organization.
    Organization,
    /// What a role contains changed.
    Role,
    /// A session at an identity provider, and what was signed in with it.
    ProviderSession,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Principal => "principal",
            Self::Authority => "authority",
            Self::Organization => "organization",
            Self::Role => "role",
            Self::ProviderSession => "provider_session",
        }
    }
}

/// Tells every replica to forget what it remembers about `subject`, if this transaction commits. Also for what is given
/// (a new role): it takes effect as fast.
pub async fn revoke(tx: &mut Tx<'_>, kind: Kind, subject: Uuid) -> Result<(), DbError> {
    tx.execute(store::REVOCATION_INSERT, &[&kind.name(), &subject]).await?;
    tx.nudge(Topic::Revocation);
    Ok(())
}

/// Deletes what is older than any replica asks for; returns how many.
pub async fn prune(internal: &Internal, settings: &Settings) -> Result<i64, DbError> {
    let keep = i64::try_from(settings.get(&REVOCATION_KEEP_SECONDS)).unwrap_or(i64::MAX);
    let rows = internal.bookkeeping_one(&["iam.revocation"], store::REVOCATION_PRUNE, &[&keep]).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// How much was known when something was loaded: every revocation below the floor was visible to the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    floor: i64,
    /// Counts how often everything had to be forgotten.
    epoch: u64,
}

/// One replica's knowledge of what was revoked. Cheap to clone.
#[derive(Clone)]
pub struct Revocations {
    inner: Arc<Inner>,
}

struct Inner {
    line: Line,
    nudges: Nudges,
    settings: Settings,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// Nothing until the first answer.
    latest: Option<Latest>,
    epoch: u64,
    /// The newest transaction that revoked each subject.
    revoked: HashMap<Uuid, i64>,
}

/// What the last answer said beside revocations.
struct Latest {
    asked: Instant,
    floor: i64,
    /// The database's time, which also decides what is pruned.
    at: Timestamp,
    /// Which history the floor belongs to.
    history: String,
}

impl Revocations {
    /// `line` is of the login that migrations call `app`. Asks nothing yet: see [`Revocations::run`].
    pub fn new(line: Line, nudges: Nudges, settings: Settings) -> Self {
        Self { inner: Arc::new(Inner { line, nudges, settings, known: RwLock::default() }) }
    }

    /// Follows until asked to stop: after each nudge, and often enough without.
    pub async fn run(&self, stop: CancellationToken) {
        let mut nudge = self.inner.nudges.listen(Topic::Revocation);
        let mut answered = true;
        while !stop.is_cancelled() {
            let outcome = self.poll().await;
            match &outcome {
                Err(error) if answered => {
                    tracing::warn!(%error, "what was revoked is not known; callers are looked up")
                }
                Ok(()) if !answered => tracing::info!("what was revoked is known again"),
                _ => {}
            }
            answered = outcome.is_ok();
            metrics::gauge!("gpuaas_revocation_age_seconds")
                .set(self.age().map_or(f64::INFINITY, |age| age.as_secs_f64()));
            tokio::select! {
                () = nudge.wait(REVOCATION_POLL_MS.millis(&self.inner.settings)) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Asks once.
    pub async fn poll(&self) -> Result<(), DbError> {
        let floor = self.known().latest.as_ref().map(|latest| latest.floor);
        // Longer would not help: by then we count as knowing nothing.
        let patience = REVOCATION_STALE_MS.millis(&self.inner.settings);
        let asked = Instant::now();
        let rows = self.inner.line.query(patience, store::REVOCATION_FOLLOW, &[&floor, &ANSWER_MAX]).await?;
        self.learn(asked, &rows);
        Ok(())
    }

    fn learn(&self, asked: Instant, rows: &[Row]) {
        let Some(first) = rows.first() else { return };
        let latest = Latest { asked, floor: first.get(0), at: first.get(1), history: first.get(2) };
        let keep = REVOCATION_KEEP_SECONDS.seconds(&self.inner.settings);
        let mut known = self.inner.known.write().unwrap_or_else(PoisonError::into_inner);
        let complete = i64::try_from(rows.len()).is_ok_and(|rows| rows < ANSWER_MAX);
        if !complete || known.latest.as_ref().is_some_and(|before| !latest.continues(before, keep)) {
            known.forget();
        }
        for row in rows {
            if let (Some(xid), Some(subject)) = (row.get::<_, Option<i64>>(3), row.get(4)) {
                let newest = known.revoked.entry(subject).or_insert(xid);
                *newest = xid.max(*newest);
            }
        }
        if known.revoked.len() > REVOCATIONS_MAX {
            known.forget();
        }
        known.latest = Some(latest);
    }

    /// What a load that begins now can count on; nothing before the first answer.
    pub fn mark(&self) -> Option<Mark> {
        let known = self.known();
        known.latest.as_ref().map(|latest| Mark { floor: latest.floor, epoch: known.epoch })
    }

    /// Was it revoked, as far as we know, in a way that a load at `mark` may not have seen? Says nothing about how old
    /// our knowledge is.
    pub fn is_revoked_since(&self, subject: Uuid, mark: Mark) -> bool {
        self.known().is_revoked_since(subject, mark)
    }

    /// How long ago the last question that got an answer was asked; nothing before the first.
    pub fn age(&self) -> Option<Duration> {
        self.known().latest.as_ref().map(|latest| latest.asked.elapsed())
    }

    /// Is our knowledge young enough, and none of the subjects revoked since?
    pub(crate) fn vouch_for(&self, subjects: &[Uuid], mark: Mark) -> bool {
        let stale = REVOCATION_STALE_MS.millis(&self.inner.settings);
        let known = self.known();
        known.latest.as_ref().is_some_and(|latest| latest.asked.elapsed() <= stale)
            && !subjects.iter().any(|subject| known.is_revoked_since(*subject, mark))
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.inner.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_revoked_since(&self, subject: Uuid, mark: Mark) -> bool {
        mark.epoch != self.epoch || self.revoked.get(&subject).is_some_and(|xid| *xid >= mark.floor)
    }

    /// Voids every mark given out so far.
    fn forget(&mut self) {
        tracing::info!("everything remembered about callers is forgotten");
        metrics::counter!("gpuaas_revocation_forgotten_total").increment(1);
        self.epoch += 1;
        self.revoked.clear();
    }
}

impl Latest {
    /// Did nothing happen in between that we could not see?
    fn continues(&self, before: &Self, keep: Duration) -> bool {
        let oldest = self.at.checked_sub(keep / 2).unwrap_or(Timestamp::UNIX_EPOCH);
        self.history == before.history && self.floor >= before.floor && before.at >= oldest
    }
}

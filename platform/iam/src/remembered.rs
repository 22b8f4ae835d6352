//! Answers kept in memory until somebody takes back what they rest on.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;

use db::{DbError, Setting, SettingInfo, Settings};
use types::{Clock, ErrorCode, ErrorKind, Result, Timestamp};
use uuid::Uuid;

use crate::revocation::{Mark, Revocations};

pub static REVOCATION_UNKNOWN: ErrorCode = ErrorCode::new(
    "revocation_unknown",
    ErrorKind::Unavailable,
    "It cannot be told right now whether your credential is still good",
    "Nothing was changed. Try again after the time in Retry-After; operators look at the connection to the database.",
);

pub static REMEMBER_SECONDS: Setting<u64> = Setting::new(
    "iam.remember_seconds",
    60,
    "How long a replica remembers who a caller is before it looks again although nothing was revoked, in seconds.",
)
.at_least(1);
pub static LOOK_UP_TIMEOUT_MS: Setting<u64> = Setting::new(
    "iam.look_up_timeout_ms",
    3_000,
    "How long a request waits for the database to say who is calling, in milliseconds.",
)
.at_least(10);

pub(crate) fn settings() -> Vec<SettingInfo> {
    vec![REMEMBER_SECONDS.info(), LOOK_UP_TIMEOUT_MS.info()]
}

/// What a look-up found.
pub struct Loaded<V> {
    pub value: V,
    /// Whatever, when revoked, makes the value wrong: the credential, its principal, their organizations, roles held.
    /// What rests on nothing cannot be revoked, and is not remembered.
    pub subjects: Vec<Uuid>,
    /// From then on the value is wrong by itself.
    pub until: Option<Timestamp>,
}

/// A cache whose hits are as good as asking the database a second ago, and cost no round trip.
///
/// A remembered value counts only if all of this holds; otherwise it is loaded again:
/// - none of its subjects was revoked since just before it was loaded, as far as this replica knows;
/// - this replica's knowledge of revocations is not older than `iam.revocation_stale_ms`;
/// - it has not ended by itself (`until`), and was loaded at most `iam.remember_seconds` ago.
///
/// If loading fails where something was remembered, the answer is `revocation_unknown`: refused, never guessed. A caller
/// that was found wrong is a value, not an error, and is loaded again each time unless it names subjects.
///
/// Whoever changes what a value is made from calls [`revoke`](crate::revocation::revoke) in the same transaction, with a
/// subject that values name. That is the whole contract: a forgotten call lives on for `iam.remember_seconds`.
pub struct Remembered<K, V> {
    revocations: Revocations,
    clock: Arc<dyn Clock>,
    settings: Settings,
    entries: moka::sync::Cache<K, Arc<Entry<V>>>,
}

struct Entry<V> {
    loaded: Loaded<V>,
    mark: Mark,
    asked: Instant,
}

impl<K, V> Remembered<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub fn new(revocations: Revocations, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let entries = moka::sync::Cache::new(100_000); // fixed: bounds memory; a miss costs one look-up
        Self { revocations, clock, settings, entries }
    }

    /// The remembered value if it counts, else what `load` finds.
    pub async fn get<F>(&self, key: K, load: impl FnOnce() -> F) -> Result<V>
    where
        F: Future<Output = Result<Loaded<V>>>,
    {
        let entry = self.entries.get(&key);
        if let Some(entry) = &entry
            && self.counts(entry)
        {
            return Ok(entry.loaded.value.clone());
        }
        // Before the load: what is revoked while it runs may or may not be in what it finds.
        let (mark, asked) = (self.revocations.mark(), Instant::now());
        let patience = LOOK_UP_TIMEOUT_MS.millis(&self.settings);
        // Boxed, so that a hit does not carry the room that a look-up takes.
        let in_time = tokio::time::timeout(patience, Box::pin(load())).await;
        let silent = |_| Err(DbError::Connect("PostgreSQL does not answer".to_owned()).into());
        match in_time.unwrap_or_else(silent) {
            Ok(loaded) => {
                let value = loaded.value.clone();
                match mark {
                    Some(mark) if !loaded.subjects.is_empty() => {
                        self.entries.insert(key, Arc::new(Entry { loaded, mark, asked }));
                    }
                    _ => self.entries.invalidate(&key),
                }
                Ok(value)
            }
            Err(error) if entry.is_some() => Err(REVOCATION_UNKNOWN
                .error("the database cannot be asked whether the credential was revoked")
                .with_retry_after_ms(1_000)
                .caused_by(error)),
            Err(error) => Err(error),
        }
    }

    fn counts(&self, entry: &Entry<V>) -> bool {
        entry.asked.elapsed() <= REMEMBER_SECONDS.seconds(&self.settings)
            && entry.loaded.until.is_none_or(|until| until > self.clock.now())
            && self.revocations.vouch_for(&entry.loaded.subjects, entry.mark)
    }
}

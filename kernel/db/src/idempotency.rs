//! Repeated requests get the first one's result.
//!
//! An advisory lock on (actor, operation, key), taken first in the transaction, makes a concurrent twin wait for the
//! original (at most the login's lock timeout, then 409); the look-up after it then sees the original's result. The
//! result is inserted in the same transaction as the change: after a crash either both are there or neither is.
//! Rejected: inserting the record first. It costs a second write for the result, and a unique index cannot span
//! the table's time partitions, while the lock does.

use authz::{Actor, Idempotency};
use jiff::ToSpan as _;
use tokio_postgres::Statement;
use types::Timestamp;

use crate::Params;
use crate::error::{DbError, IDEMPOTENCY_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED};
use crate::pool::{Connection, at_most_one};

pub(crate) const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";
/// The newest, if there are several: when a key is used again after its day, a server whose clock is behind sees both.
pub(crate) const FIND: &str = "SELECT body_hash, result::text FROM spine.idempotency
    WHERE key_hash = $1 AND operation = $2 AND actor = $3 AND at > $4 ORDER BY at DESC LIMIT 1";

/// How long a result is kept for retries. Part of the API's contract, and the partitions' size depends on it.
const KEPT_HOURS: i64 = 24; // fixed: documented contract, see docs/guides/http.md

/// What an earlier request with the same key left.
pub(crate) enum Earlier {
    Nothing,
    Result(String),
}

/// Everything needed to ask, prepared before the transaction opens.
pub(crate) struct Lookup {
    lock: Statement,
    find: Statement,
    actor: String,
    key: Idempotency,
    since: Timestamp,
}

impl Lookup {
    pub(crate) async fn prepare(
        connection: &Connection,
        actor: &Actor,
        key: &Idempotency,
        now: Timestamp,
    ) -> Result<Self, DbError> {
        Ok(Self {
            lock: connection.prepare(LOCK).await?,
            find: connection.prepare(FIND).await?,
            actor: actor_key(actor),
            key: key.clone(),
            since: now.checked_sub(KEPT_HOURS.hours()).unwrap_or(Timestamp::MIN),
        })
    }

    /// Both statements go out in one packet; the second has its own snapshot, taken after the lock was granted.
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Earlier, types::Error> {
        let lock_key = self.lock_key();
        let hash: &[u8] = &self.key.key_hash;
        let lock_params: Params<'_> = &[&lock_key];
        let find_params: Params<'_> = &[&hash, &self.key.operation, &self.actor, &self.since];
        let (locked, found) = futures::join!(
            connection.client.execute(&self.lock, lock_params),
            connection.client.query(&self.find, find_params),
        );
        if let Err(error) = locked.map_err(DbError::from) {
            return Err(if error.is_lock_timeout() {
                IDEMPOTENCY_IN_PROGRESS
                    .error("the first request with this key has not finished")
                    .with_retry_after_ms(1_000)
            } else {
                error.into()
            });
        }
        let Some(row) = at_most_one(found.map_err(DbError::from)?)? else {
            return Ok(Earlier::Nothing);
        };
        let (body_hash, result): (Vec<u8>, String) = (row.get(0), row.get(1));
        if body_hash != self.key.body_hash {
            return Err(IDEMPOTENCY_KEY_REUSED.error("the key was first used with another path or body"));
        }
        Ok(Earlier::Result(result))
    }

    fn lock_key(&self) -> i64 {
        use aws_lc_rs::digest;
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in [self.actor.as_bytes(), self.key.operation.as_bytes(), &self.key.key_hash] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut first = [0u8; 8];
        first.copy_from_slice(&hash.finish().as_ref()[..8]);
        i64::from_be_bytes(first)
    }
}

/// Keys of different callers never meet.
pub(crate) fn actor_key(actor: &Actor) -> String {
    format!("{:?}:{}", actor.subject.kind, actor.subject.id)
}

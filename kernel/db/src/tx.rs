//! The transaction every change of state goes through.

use std::sync::Arc;

use authz::{Action, Context, Permit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tracing::Instrument as _;
use types::{Clock, Id, IdMaker, Kind, Timestamp};

use crate::change::Change;
use crate::error::{DbError, INTERNAL_ERROR};
use crate::idempotency::{Lookup, actor_key};
use crate::internal::Internal;
use crate::nudge::{Nudges, Topic};
use crate::pool::{Pool, at_most_one};
use crate::read::Reader;
use crate::transaction::{Stopped, Transaction};
use crate::{Params, record};

/// The database as domains see it. Cheap to clone.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    clock: Arc<dyn Clock>,
    ids: IdMaker,
    nudges: Nudges,
    backstop: bool,
}

/// Proof that the transaction wrote down what it did. Made only by [`Tx::record`] and [`Tx::unchanged`].
pub struct Recorded<T> {
    value: T,
}

impl Recorded<()> {
    /// What the caller of `change` gets, and what a retry of the same request gets again.
    pub fn with<T>(self, value: T) -> Recorded<T> {
        Recorded { value }
    }
}

impl Db {
    pub fn new(pool: Pool, clock: Arc<dyn Clock>, ids: IdMaker, nudges: Nudges) -> Self {
        Self { inner: Arc::new(Inner { pool, clock, ids, nudges, backstop: false }) }
    }

    /// For tests: every bookkeeping transaction is checked against the tables it really wrote, and a read cannot write.
    pub fn with_backstop(pool: Pool, clock: Arc<dyn Clock>, ids: IdMaker, nudges: Nudges) -> Self {
        Self { inner: Arc::new(Inner { pool, clock, ids, nudges, backstop: true }) }
    }

    /// Reads what the permit allows.
    pub fn read<A: Action>(&self, permit: &Permit<A>) -> Reader {
        Reader::new(&self.inner.pool, permit, self.inner.backstop)
    }

    /// Work of our own that is no change of domain state: leases, positions, caches. `worker` names it in errors.
    pub fn internal(&self, worker: &'static str) -> Internal {
        Internal::new(self.inner.pool.clone(), worker, self.inner.backstop)
    }

    pub fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    pub fn nudges(&self) -> &Nudges {
        &self.inner.nudges
    }

    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.inner.clock)
    }

    pub fn make_id<K: Kind>(&self) -> Id<K> {
        self.inner.ids.make()
    }

    pub fn ids(&self) -> &IdMaker {
        &self.inner.ids
    }

    /// Runs `work` in one transaction and commits it together with the changes it recorded. If the request was
    /// already carried out under the same idempotency key, `work` has no effect and its first result is returned.
    pub async fn change<A, T, F>(&self, context: &Context, permit: Permit<A>, work: F) -> types::Result<T>
    where
        A: Action,
        T: Serialize + DeserializeOwned,
        F: AsyncFnOnce(&mut Tx<'_>) -> types::Result<Recorded<T>>,
    {
        let span = tracing::debug_span!(target: trace::TARGET, "transaction", action = A::NAME);
        self.transact(context, permit, work).instrument(span).await
    }

    async fn transact<A, T, F>(&self, context: &Context, permit: Permit<A>, work: F) -> types::Result<T>
    where
        A: Action,
        T: Serialize + DeserializeOwned,
        F: AsyncFnOnce(&mut Tx<'_>) -> types::Result<Recorded<T>>,
    {
        let connection = self.inner.pool.get(permit.share()).await?;
        let now = self.now();
        let lookup = match &context.idempotency {
            Some(key) => Some(Lookup::prepare(&connection, &context.actor, key, now).await?),
            None => None,
        };
        let mut tx = Tx {
            transaction: Transaction::new(connection, permit.scope(), lookup),
            changes: Vec::new(),
            topics: Vec::new(),
            now,
            ids: &self.inner.ids,
        };
        let outcome = work(&mut tx).await;
        let Tx { mut transaction, changes, topics, .. } = tx;
        let opened = if outcome.is_ok() && !changes.is_empty() { transaction.open().await } else { Ok(()) };
        if let Some(stopped) = transaction.stopped.take() {
            transaction.rollback().await;
            return match stopped {
                Stopped::Replay(result) => replay(context, &result),
                Stopped::Refused(error) => Err(error),
            };
        }
        opened?;
        let recorded = match outcome {
            Ok(recorded) if !changes.is_empty() => recorded,
            Ok(recorded) => {
                transaction.rollback().await;
                return Ok(recorded.value);
            }
            Err(error) => {
                transaction.rollback().await;
                return Err(error);
            }
        };
        Box::pin(self.commit(context, permit.policy_version(), transaction, &changes, now, &recorded.value))
            .await?;
        for change in &changes {
            context.trail.note_recorded(change.action);
        }
        for topic in topics.into_iter().chain([Topic::Committed]) {
            self.inner.nudges.nudge(topic);
        }
        Ok(recorded.value)
    }

    async fn commit<T: Serialize>(
        &self,
        context: &Context,
        policy_version: u64,
        mut transaction: Transaction,
        changes: &[Change],
        now: Timestamp,
        value: &T,
    ) -> types::Result<()> {
        let rows = record::Rows::new(changes, context, policy_version, now, &self.inner.ids);
        let (record, rows_params) = rows.statement();
        let Some(key) = &context.idempotency else {
            transaction.commit_after(&[(record, &rows_params)]).await?;
            return Ok(());
        };
        let result = serde_json::to_string(value)
            .map_err(|error| INTERNAL_ERROR.error("the result cannot be kept").caused_by(error))?;
        let (actor, key_hash, body_hash): (String, &[u8], &[u8]) =
            (actor_key(&context.actor), &key.key_hash, &key.body_hash);
        let keep: Params<'_> = &[&actor, &key.operation, &key_hash, &now, &body_hash, &result];
        transaction.commit_after(&[(record, &rows_params), (record::KEEP_RESULT, keep)]).await?;
        Ok(())
    }
}

fn replay<T: DeserializeOwned>(context: &Context, result: &str) -> types::Result<T> {
    context.trail.note_replayed();
    serde_json::from_str(result).map_err(|error| {
        INTERNAL_ERROR.error("the first result of this request cannot be read").caused_by(error)
    })
}

/// An open transaction. Statements run in order; nothing is visible to others until `change` commits.
pub struct Tx<'a> {
    transaction: Transaction,
    changes: Vec<Change>,
    topics: Vec<Topic>,
    now: Timestamp,
    ids: &'a IdMaker,
}

impl Tx<'_> {
    /// When this transaction happens: the same for everything it writes.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn make_id<K: Kind>(&self) -> Id<K> {
        self.ids.make()
    }

    pub async fn query(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DbError> {
        self.transaction.query(sql, params).await
    }

    pub async fn query_opt(&mut self, sql: &'static str, params: Params<'_>) -> Result<Option<Row>, DbError> {
        at_most_one(self.query(sql, params).await?)
    }

    pub async fn query_one(&mut self, sql: &'static str, params: Params<'_>) -> Result<Row, DbError> {
        self.query_opt(sql, params).await?.ok_or(DbError::NotOneRow { found: 0 })
    }

    /// Runs a statement whose rows nobody needs.
    pub async fn execute(&mut self, sql: &'static str, params: Params<'_>) -> Result<(), DbError> {
        self.query(sql, params).await.map(drop)
    }

    /// Says who is to look again once this is committed. Never before: they would look and find nothing.
    pub fn nudge(&mut self, topic: Topic) {
        if !self.topics.contains(&topic) {
            self.topics.push(topic);
        }
    }

    /// Writes down one change; audit entry and event are committed with it.
    pub fn record(&mut self, change: Change) -> Recorded<()> {
        self.changes.push(change);
        Recorded { value: () }
    }

    /// Many changes of one operation, written in one statement.
    pub fn record_many(&mut self, changes: impl IntoIterator<Item = Change>) -> Recorded<()> {
        self.changes.extend(changes);
        Recorded { value: () }
    }

    /// Nothing had to change. Whatever the transaction wrote, and did not record, is rolled back.
    pub fn unchanged<T>(&self, value: T) -> Recorded<T> {
        Recorded { value }
    }
}

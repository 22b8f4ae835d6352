//! A transaction on one connection, opened with its first statement and never left open.
//!
//! `BEGIN`, the idempotency look-up and the first statement travel in one packet. A transaction that is dropped in
//! the middle (a panic, a cancelled task) takes its connection with it: a connection goes back to the pool only when
//! the server said that the transaction is over.

use std::task::Poll;

use authz::Scope;
use tokio_postgres::Row;

use crate::Params;
use crate::error::DbError;
use crate::idempotency::{Earlier, Lookup};
use crate::pool::PooledConnection;

pub(crate) struct Transaction {
    /// Gone once the connection is not fit for reuse.
    connection: Option<PooledConnection>,
    scope: Scope,
    lookup: Option<Lookup>,
    phase: Phase,
    /// A statement failed, so the server will only roll back. It answers COMMIT with ROLLBACK and no error.
    failed: bool,
    /// Why the opening stopped the work, if it did.
    pub(crate) stopped: Option<Stopped>,
}

#[derive(PartialEq, Eq)]
enum Phase {
    NotOpened,
    Open,
    Over,
}

pub(crate) enum Stopped {
    /// An earlier request with the same key has this result.
    Replay(String),
    Refused(types::Error),
}

impl Transaction {
    pub(crate) fn new(connection: PooledConnection, scope: Scope, lookup: Option<Lookup>) -> Self {
        Self {
            connection: Some(connection),
            scope,
            lookup,
            phase: Phase::NotOpened,
            failed: false,
            stopped: None,
        }
    }

    pub(crate) async fn query(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DbError> {
        let result = self.run(sql, params).await;
        self.failed |= result.is_err();
        result
    }

    /// Opens a transaction that had no statement yet, so that its idempotency look-up is made before its COMMIT.
    pub(crate) async fn open(&mut self) -> Result<(), DbError> {
        match self.phase {
            Phase::NotOpened => self.query("SELECT", &[]).await.map(drop),
            Phase::Open | Phase::Over => Ok(()),
        }
    }

    async fn run(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DbError> {
        if self.phase != Phase::NotOpened {
            let connection = self.connection()?;
            let statement = connection.prepare(sql).await?;
            return Ok(connection.client.query(&statement, params).await?);
        }
        let statement = self.connection()?.prepare(sql).await?;
        self.phase = Phase::Open;
        let connection = self.connection()?;
        let lookup = self.lookup.as_ref();
        let opened = connection
            .scoped(self.scope, async {
                let first = connection.client.query(&statement, params);
                Ok(match lookup {
                    None => {
                        let (begun, rows) = futures::join!(connection.client.batch_execute("BEGIN"), first);
                        (begun, Ok(Earlier::Nothing), rows)
                    }
                    Some(lookup) => {
                        let begin = connection.client.batch_execute("BEGIN");
                        futures::join!(begin, lookup.run(connection), first)
                    }
                })
            })
            .await;
        let (begun, earlier, rows) = opened?;
        begun?;
        match earlier {
            Ok(Earlier::Nothing) => Ok(rows?),
            Ok(Earlier::Result(result)) => Err(self.stop(Stopped::Replay(result))),
            Err(error) => Err(self.stop(Stopped::Refused(error))),
        }
    }

    /// Runs the last statements and COMMIT in one packet. If a statement fails, PostgreSQL turns COMMIT into ROLLBACK
    /// and the statement's error is ours.
    pub(crate) async fn commit_after(&mut self, last: &[(&'static str, Params<'_>)]) -> Result<u64, DbError> {
        if self.failed {
            self.rollback().await;
            return Err(DbError::Unexpected(
                "a statement failed, and the work went on regardless".to_owned(),
            ));
        }
        self.open().await?;
        let written = write_and_commit(self.connection()?, last).await;
        match written {
            Ok(rows) => {
                self.close(true);
                Ok(rows)
            }
            Err(Broken { error, reusable }) => {
                self.close(reusable);
                Err(error)
            }
        }
    }

    pub(crate) async fn rollback(&mut self) {
        if self.phase != Phase::Open {
            return;
        }
        let fine = match self.connection.as_ref() {
            Some(connection) => connection.client.batch_execute("ROLLBACK").await.is_ok(),
            None => false,
        };
        self.close(fine);
    }

    fn stop(&mut self, why: Stopped) -> DbError {
        self.stopped = Some(why);
        DbError::Unexpected("the transaction was stopped before its first statement".to_owned())
    }

    fn close(&mut self, reusable: bool) {
        self.phase = Phase::Over;
        if let (false, Some(connection)) = (reusable, self.connection.take()) {
            connection.discard();
        }
    }

    fn connection(&self) -> Result<&crate::pool::Connection, DbError> {
        match (&self.connection, &self.phase) {
            (Some(connection), Phase::NotOpened | Phase::Open) => Ok(connection),
            _ => Err(DbError::Unexpected("the transaction is over".to_owned())),
        }
    }
}

/// A COMMIT that did not come about, and whether the connection is at rest again.
struct Broken {
    error: DbError,
    reusable: bool,
}

impl Broken {
    /// What an error says that came back after COMMIT was sent.
    fn after_commit(error: tokio_postgres::Error) -> Self {
        let lost = crate::error::connection_lost(&error);
        Self { error: if lost { DbError::CommitUnknown(error) } else { error.into() }, reusable: !lost }
    }
}

async fn write_and_commit(
    connection: &crate::pool::Connection,
    last: &[(&'static str, Params<'_>)],
) -> Result<u64, Broken> {
    let unsent = |error| Broken { error, reusable: false };
    let mut statements = Vec::with_capacity(last.len());
    for (sql, params) in last {
        statements.push((connection.prepare(sql).await.map_err(unsent)?, *params));
    }
    let mut writes = std::pin::pin!(futures::future::try_join_all(
        statements.iter().map(|(statement, params)| connection.client.execute(statement, params)),
    ));
    // A parameter that cannot be encoded fails at the first poll, with nothing sent. COMMIT must not follow then: the
    // change would be there without its audit entry.
    let sent = futures::poll!(&mut writes);
    if let Poll::Ready(Err(error)) = sent {
        return Err(unsent(error.into()));
    }
    let commit = connection.client.batch_execute("COMMIT");
    let (written, committed) = match sent {
        Poll::Ready(written) => (written, commit.await),
        Poll::Pending => futures::join!(writes, commit),
    };
    let rows = written.map_err(Broken::after_commit)?;
    committed.map_err(Broken::after_commit)?;
    Ok(rows.into_iter().sum())
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.phase == Phase::Open {
            self.close(false);
        }
    }
}

//! Work that is not domain state: positions, leases, marks, read models. No audit entry, no event, no permit; in
//! exchange every table is named where it is written, listed with a reason in `architecture.toml`, and a test server
//! checks that nothing else was touched.

use authz::Scope;
use tokio_postgres::Row;

use crate::Params;
use crate::backstop;
use crate::error::DbError;
use crate::pool::{Pool, at_most_one};
use crate::read;
use crate::transaction::Transaction;

/// A worker's access, across organizations.
#[derive(Clone)]
pub struct Internal {
    pool: Pool,
    worker: &'static str,
    backstop: bool,
}

impl Internal {
    pub fn new(pool: Pool, worker: &'static str, backstop: bool) -> Self {
        Self { pool, worker, backstop }
    }

    pub fn worker(&self) -> &'static str {
        self.worker
    }

    /// A read; what it writes fails on a test server.
    pub async fn query(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DbError> {
        let connection = self.pool.get(Scope::Platform).await?;
        read::rows(connection, Scope::Platform, self.backstop, sql, params).await
    }

    pub async fn query_opt(&self, sql: &'static str, params: Params<'_>) -> Result<Option<Row>, DbError> {
        at_most_one(self.query(sql, params).await?)
    }

    /// Runs `work` in a transaction that may write only `tables`, and commits it.
    pub async fn bookkeeping<T, E, F>(&self, tables: &'static [&'static str], work: F) -> Result<T, E>
    where
        E: From<DbError>,
        F: AsyncFnOnce(&mut Bookkeeping) -> Result<T, E>,
    {
        let connection = self.pool.get(Scope::Platform).await?;
        let mut tx = Bookkeeping { transaction: Transaction::new(connection, Scope::Platform, None) };
        let before =
            if self.backstop { backstop::count(&mut tx.transaction).await? } else { backstop::Counts::new() };
        let outcome = work(&mut tx).await;
        let mut transaction = tx.transaction;
        match outcome {
            Err(error) => {
                transaction.rollback().await;
                Err(error)
            }
            Ok(value) => {
                if self.backstop {
                    backstop::check(&mut transaction, self.worker, tables, &before).await?;
                }
                transaction.commit_after(&[]).await?;
                Ok(value)
            }
        }
    }

    /// One statement, one packet, one round trip: for what a worker does all the time.
    pub async fn bookkeeping_one(
        &self,
        tables: &'static [&'static str],
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, DbError> {
        if !self.backstop {
            return self.query(sql, params).await;
        }
        self.bookkeeping(tables, async |tx| tx.query(sql, params).await).await
    }
}

/// An open bookkeeping transaction.
pub struct Bookkeeping {
    transaction: Transaction,
}

impl Bookkeeping {
    pub async fn query(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DbError> {
        self.transaction.query(sql, params).await
    }

    pub async fn query_opt(&mut self, sql: &'static str, params: Params<'_>) -> Result<Option<Row>, DbError> {
        at_most_one(self.query(sql, params).await?)
    }
}

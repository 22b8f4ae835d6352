//! Reads: a permit in, rows out. One round trip each, no explicit transaction; but on a test server one in which a write
//! fails, because a statement that writes belongs into a change or into bookkeeping.

use authz::{Action, Permit, Scope};
use tokio_postgres::Row;

use crate::Params;
use crate::error::DbError;
use crate::pool::{Pool, PooledConnection, at_most_one};
use crate::transaction::Transaction;

/// Reads what one permit allows.
#[derive(Clone)]
pub struct Reader {
    pool: Pool,
    scope: Scope,
    share: Scope,
    backstop: bool,
}

impl Reader {
    pub(crate) fn new<A: Action>(pool: &Pool, permit: &Permit<A>, backstop: bool) -> Self {
        Self { pool: pool.clone(), scope: permit.scope(), share: permit.share(), backstop }
    }

    pub async fn query(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DbError> {
        rows(self.pool.get(self.share).await?, self.scope, self.backstop, sql, params).await
    }

    pub async fn query_opt(&self, sql: &'static str, params: Params<'_>) -> Result<Option<Row>, DbError> {
        at_most_one(self.query(sql, params).await?)
    }
}

pub(crate) async fn rows(
    connection: PooledConnection,
    scope: Scope,
    backstop: bool,
    sql: &'static str,
    params: Params<'_>,
) -> Result<Vec<Row>, DbError> {
    if !backstop {
        return connection.query(scope, sql, params).await;
    }
    let mut transaction = Transaction::new(connection, scope, None);
    transaction.query("SET TRANSACTION READ ONLY", &[]).await?;
    let rows = transaction.query(sql, params).await;
    transaction.rollback().await;
    rows
}

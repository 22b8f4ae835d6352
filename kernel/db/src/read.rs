//! Reads: a permit in, rows out. One round trip each, no explicit transaction.

use authz::{Action, Permit, Scope};
use tokio_postgres::Row;

use crate::Params;
use crate::error::DbError;
use crate::pool::{Pool, at_most_one};

/// Reads what one permit allows.
#[derive(Clone)]
pub struct Reader {
    pool: Pool,
    scope: Scope,
    share: Scope,
}

impl Reader {
    pub(crate) fn new<A: Action>(pool: &Pool, permit: &Permit<A>) -> Self {
        Self { pool: pool.clone(), scope: permit.scope(), share: permit.share() }
    }

    pub async fn query(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DbError> {
        self.pool.get(self.share).await?.query(self.scope, sql, params).await
    }

    pub async fn query_opt(&self, sql: &'static str, params: Params<'_>) -> Result<Option<Row>, DbError> {
        at_most_one(self.query(sql, params).await?)
    }
}

//! A connection of one's own, for a worker who must notice when nobody answers.
//!
//! A pool is the wrong place for it: where requests have taken every connection the worker would wait behind them, and
//! a connection whose other end vanished without a word goes back into the pool and swallows the next question, too.
//! Here a question that is not answered in time takes the connection with it; the next one makes another.

use std::sync::Mutex;
use std::time::Duration;

use tokio_postgres::Row;

use crate::Params;
use crate::error::DbError;
use crate::internal::Internal;
use crate::pool::{Pool, PoolOptions, Target, lock};

/// One worker's line to PostgreSQL. For reads; one question at a time.
pub struct Line {
    target: Target,
    worker: &'static str,
    backstop: bool,
    open: Mutex<Option<Internal>>,
}

impl Line {
    /// Does not connect yet.
    pub fn new(target: Target, worker: &'static str, backstop: bool) -> Self {
        Self { target, worker, backstop, open: Mutex::default() }
    }

    /// Asks, and hangs up when there is no answer within `patience`.
    pub async fn query(
        &self,
        patience: Duration,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, DbError> {
        let internal = self.internal(patience)?;
        let Ok(answer) = tokio::time::timeout(patience, internal.query(sql, params)).await else {
            *lock(&self.open) = None;
            return Err(DbError::Connect("PostgreSQL does not answer".to_owned()));
        };
        answer
    }

    fn internal(&self, patience: Duration) -> Result<Internal, DbError> {
        let mut open = lock(&self.open);
        if let Some(internal) = &*open {
            return Ok(internal.clone());
        }
        let options = PoolOptions { connections_max: 1, waiting_max: 1, wait_timeout: patience };
        let internal = Internal::new(Pool::new(self.target.clone(), options)?, self.worker, self.backstop);
        Ok(open.insert(internal).clone())
    }
}

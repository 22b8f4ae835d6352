//! The log itself, for whoever keeps a copy of it elsewhere and has to find out how much of the copy is left.

use db::{DbError, Internal};
use types::Timestamp;

use crate::feed::{read_after, read_head};
use crate::log_event::LogEvent;
use crate::store;

#[derive(Clone)]
pub struct Log {
    internal: Internal,
}

/// The newest position, and the history it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    pub epoch: i32,
    pub position: i64,
}

impl Log {
    pub fn new(internal: Internal) -> Self {
        Self { internal }
    }

    pub async fn end(&self) -> Result<LogEnd, DbError> {
        let head = read_head(&self.internal).await?;
        Ok(LogEnd { epoch: head.epoch, position: head.position })
    }

    /// The event at a position, if there is one and it is still kept.
    pub async fn event_at(&self, position: i64) -> Result<Option<LogEvent>, DbError> {
        let next = read_after(&self.internal, position.saturating_sub(1), Timestamp::UNIX_EPOCH, 1).await?;
        Ok(next.into_iter().find(|event| event.position == position))
    }

    /// Everything after the returned position is newer than `at`, or all that is kept.
    pub async fn position_before(&self, at: Timestamp) -> Result<i64, DbError> {
        let row = self.internal.query_opt(store::POSITION_BEFORE, &[&at]).await?;
        row.map(|row| row.get(0)).ok_or(DbError::NotOneRow { found: 0 })
    }
}

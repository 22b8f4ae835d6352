//! The last check, on test servers: what did this transaction really write?
//!
//! PostgreSQL counts the rows a transaction touched per table. A bookkeeping transaction that wrote a table it did
//! not name has changed state without an audit entry, and fails instead of committing.

use std::collections::HashMap;

use types::{ErrorCode, ErrorKind};

use crate::error::DbError;
use crate::transaction::Transaction;

pub static UNRECORDED_CHANGE: ErrorCode = ErrorCode::new(
    "unrecorded_change",
    ErrorKind::Internal,
    "A change of state was about to be committed without its audit entry",
    "This is a bug in the server: report the correlation id to the operator.",
);

const WRITTEN: &str = "
SELECT n.nspname || '.' || c.relname, sum(s.n_tup_ins + s.n_tup_upd + s.n_tup_del)::bigint
FROM pg_stat_xact_all_tables s
JOIN pg_class c ON c.oid = coalesce(pg_partition_root(s.relid), s.relid)
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE s.n_tup_ins + s.n_tup_upd + s.n_tup_del > 0 AND n.nspname NOT LIKE 'pg\\_%'
GROUP BY 1";

/// Rows written per table, as PostgreSQL has counted them in this session and not yet reported. Earlier transactions
/// may still be among them, so only the difference between two counts means anything.
pub(crate) type Counts = HashMap<String, i64>;

pub(crate) async fn count(transaction: &mut Transaction) -> Result<Counts, DbError> {
    let rows = transaction.query(WRITTEN, &[]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Fails if anything but `allowed` was written since `before`.
pub(crate) async fn check(
    transaction: &mut Transaction,
    worker: &str,
    allowed: &[&str],
    before: &Counts,
) -> Result<(), DbError> {
    for (table, written) in count(transaction).await? {
        if written > before.get(&table).copied().unwrap_or(0) && !allowed.contains(&table.as_str()) {
            transaction.rollback().await;
            return Err(DbError::Unexpected(format!(
                "{}: the worker {worker} wrote {table}, which it did not name as bookkeeping",
                UNRECORDED_CHANGE.code
            )));
        }
    }
    Ok(())
}

//! The last check, on test servers: what did this transaction really write?
//!
//! PostgreSQL counts the rows a transaction touched per table. A bookkeeping transaction that wrote a table it did
//! not name has changed state without an audit entry, and fails instead of committing.

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
SELECT DISTINCT n.nspname || '.' || c.relname
FROM pg_stat_xact_all_tables s
JOIN pg_class c ON c.oid = coalesce(pg_partition_root(s.relid), s.relid)
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE s.n_tup_ins + s.n_tup_upd + s.n_tup_del > 0 AND n.nspname NOT LIKE 'pg\\_%'";

pub(crate) async fn check(
    transaction: &mut Transaction,
    worker: &str,
    allowed: &[&str],
) -> Result<(), DbError> {
    for row in transaction.query(WRITTEN, &[]).await? {
        let table: String = row.get(0);
        if !allowed.contains(&table.as_str()) {
            transaction.rollback().await;
            return Err(DbError::Unexpected(format!(
                "{}: the worker {worker} wrote {table}, which it did not name as bookkeeping",
                UNRECORDED_CHANGE.code
            )));
        }
    }
    Ok(())
}

//! What a database needs to be told after it was copied into another PostgreSQL.
//!
//! The spine orders by transaction id, and those ids mean nothing in another cluster: there they start low again, so
//! the copied rows would look as if they came from the future. Events and audit entries are seen to by those who order
//! them (`events::NEW_CLUSTER`, `audit::NEW_CLUSTER`); leases of workers that are no more end here.

use tokio_postgres::Client;

use crate::error::DbError;
use crate::login::check_prefix;

/// A server somebody wants to restore onto, before anything is changed.
pub struct Found {
    pub is_superuser: bool,
    pub has_database: bool,
}

pub async fn look(admin: &Client, database: &str) -> Result<Found, DbError> {
    let sql = "SELECT rolsuper, EXISTS (SELECT FROM pg_database WHERE datname = $1)
               FROM pg_roles WHERE rolname = current_user";
    let row = admin.query_one(sql, &[&database]).await?;
    Ok(Found { is_superuser: row.get(0), has_database: row.get(1) })
}

/// Removes a database, if it is there and nobody is connected to it.
pub async fn remove(admin: &Client, database: &str) -> Result<(), DbError> {
    check_prefix(database)?;
    Ok(admin.batch_execute(&format!("DROP DATABASE IF EXISTS {database}")).await?)
}

/// Gives a database its name; fails if there is one of that name.
pub async fn rename(admin: &Client, database: &str, name: &str) -> Result<(), DbError> {
    check_prefix(database)?;
    check_prefix(name)?;
    Ok(admin.batch_execute(&format!("ALTER DATABASE {database} RENAME TO {name}")).await?)
}

/// Run once, by a superuser, in the restored database, before anything else connects.
pub const NEW_CLUSTER: [&str; 2] = [
    "UPDATE spine.consumer SET lease_until = '-infinity'",
    "UPDATE spine.flow SET lease_until = '-infinity' WHERE done_at IS NULL",
];

/// What a backup is as of: the exported snapshot, the time, the server, the last position, the number of audit entries.
pub const SNAPSHOT_FACTS: &str = "
SELECT pg_export_snapshot(), clock_timestamp(), current_setting('server_version'), last_position,
       (SELECT count(*) FROM spine.audit_entry)
FROM spine.sequencer";

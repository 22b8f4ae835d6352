//! PostgreSQL logins: each role of `gpuaasd` connects with only the grants it needs.
//!
//! Roles are cluster-wide, so they are made by `gpuaasd db init` (or by `up`), never by a migration, and carry the
//! installation's prefix. Time limits sit on the login: no code path can forget them.

use types::Secret;

use crate::error::DbError;

/// Who connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Login {
    /// Owns the schemas; only migrations use it.
    Owner,
    /// Domain reads and writes, under row-level security.
    App,
    /// Reads only, under row-level security.
    Reader,
    /// Reads audit entries, writes the Merkle log.
    Sealer,
    /// Reads the outbox, writes the log.
    Relay,
    /// Reads everything, for backups.
    Backup,
}

impl Login {
    pub const ALL: [Self; 6] =
        [Self::Owner, Self::App, Self::Reader, Self::Sealer, Self::Relay, Self::Backup];

    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::App => "app",
            Self::Reader => "reader",
            Self::Sealer => "sealer",
            Self::Relay => "relay",
            Self::Backup => "backup",
        }
    }

    pub fn role_name(self, prefix: &str) -> String {
        format!("{prefix}_{}", self.suffix())
    }

    /// Settings of the login: a statement, a wait for a lock and a forgotten transaction all end by themselves.
    const fn limits(self) -> [(&'static str, &'static str); 3] {
        match self {
            // Migrations fail fast rather than queue everybody behind their lock; the runner retries.
            Self::Owner => [
                ("statement_timeout", "10min"),
                ("lock_timeout", "1s"),
                ("idle_in_transaction_session_timeout", "1min"),
            ],
            Self::Backup => [
                ("statement_timeout", "0"),
                ("lock_timeout", "10s"),
                ("idle_in_transaction_session_timeout", "1h"),
            ],
            Self::App | Self::Reader | Self::Sealer | Self::Relay => [
                ("statement_timeout", "15s"),
                // Shorter than anyone waits for a connection: who queues behind a row gives way to others in time.
                ("lock_timeout", "1s"),
                ("idle_in_transaction_session_timeout", "10s"),
            ],
        }
    }
}

/// The logins' prefix and the database's name are spliced into SQL as identifiers: letters, digits and underscores only.
pub fn check_prefix(prefix: &str) -> Result<(), DbError> {
    let fine = !prefix.is_empty()
        && prefix.len() <= 40 // fixed: PostgreSQL cuts identifiers at 63 bytes, the suffix needs the rest
        && prefix.starts_with(|c: char| c.is_ascii_lowercase())
        && prefix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if fine {
        Ok(())
    } else {
        Err(DbError::Unexpected(format!(
            "bad name {prefix:?} for logins or a database: at most 40 of a-z, 0-9 and _"
        )))
    }
}

/// The logins that the server has already.
pub async fn existing(admin: &tokio_postgres::Client, prefix: &str) -> Result<Vec<Login>, DbError> {
    let mut found = Vec::new();
    for login in Login::ALL {
        let role = login.role_name(prefix);
        if admin.query_opt("SELECT FROM pg_roles WHERE rolname = $1", &[&role]).await?.is_some() {
            found.push(login);
        }
    }
    Ok(found)
}

/// Makes or repairs the logins, each with its own password, and the database. `admin` must be allowed to create roles
/// and databases.
pub async fn init(
    admin: &tokio_postgres::Client,
    prefix: &str,
    database: &str,
    password_of: impl Fn(Login) -> Secret,
) -> Result<(), DbError> {
    check_prefix(prefix)?;
    check_prefix(database)?;
    let existing = existing(admin, prefix).await?;
    for login in Login::ALL {
        let role = login.role_name(prefix);
        // In one transaction with its password: a login without one could not be told from another installation's.
        let create = if existing.contains(&login) { String::new() } else { format!("CREATE ROLE {role};") };
        let bypass = if login == Login::Backup { "BYPASSRLS" } else { "NOBYPASSRLS" };
        // The server logs failing statements with their text, so it gets a ready verifier and never the password.
        let quoted = postgres_protocol::password::scram_sha_256(password_of(login).expose().as_bytes());
        admin
            .batch_execute(&format!(
                "{create} ALTER ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE {bypass} PASSWORD '{quoted}'"
            ))
            .await?;
        for (name, value) in login.limits() {
            admin.batch_execute(&format!("ALTER ROLE {role} SET {name} = '{value}'")).await?;
        }
    }
    admin.batch_execute(&format!("GRANT pg_read_all_data TO {}", Login::Backup.role_name(prefix))).await?;
    if admin.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&database]).await?.is_none() {
        admin
            .batch_execute(&format!(
                "CREATE DATABASE {database} OWNER {} TEMPLATE template0 ENCODING 'UTF8'",
                Login::Owner.role_name(prefix)
            ))
            .await?;
    }
    // PostgreSQL lets everybody make temporary tables: room on the disk that no limit of ours counts.
    admin.batch_execute(&format!("REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC")).await?;
    Ok(())
}

/// Refuses to run as a login that row-level security does not bind.
pub async fn assert_confined(client: &tokio_postgres::Client) -> Result<(), DbError> {
    let row = client
        .query_one(
            "SELECT current_user::text, rolsuper OR rolbypassrls,
                    EXISTS (SELECT FROM pg_namespace WHERE nspname = 'spine' AND pg_has_role(current_user, nspowner, 'member'))
             FROM pg_roles WHERE rolname = current_user",
            &[],
        )
        .await?;
    let (name, unbound, owner): (String, bool, bool) = (row.get(0), row.get(1), row.get(2));
    if unbound || owner {
        return Err(DbError::Unexpected(format!(
            "the login {name} is a superuser, bypasses row-level security or owns the schema; \
             tenants would not be kept apart. Run `gpuaasd db init` and use the login ending in _app"
        )));
    }
    Ok(())
}

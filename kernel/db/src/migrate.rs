//! Schema migrations: one list per domain, applied in order, each in its own transaction, under one advisory lock.
//!
//! Versions N and N+1 of the server run side by side, so a migration only expands; what contracts comes one release
//! later. A migration that cannot get its lock within the owner's lock timeout gives way and tries again: queueing
//! for a lock would stop everyone behind it. A database that is ahead of this binary is refused by name.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use tokio_postgres::Client;

use crate::error::DbError;
use crate::login::{Login, check_prefix};

/// One step of a domain's schema.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    pub version: i32,
    pub name: &'static str,
    pub sql: &'static str,
}

/// The migrations of one domain (or of the spine).
#[derive(Debug, Clone, Copy)]
pub struct MigrationSet {
    pub domain: &'static str,
    pub migrations: &'static [Migration],
}

#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error(
        "the database was written by a newer version: it has migration {version} of '{domain}', this binary knows up to {known}. \
         Start the newer gpuaasd again, or restore a backup made before the upgrade"
    )]
    Newer { domain: String, version: i32, known: i32 },
    #[error(
        "migration {version} of '{domain}' was changed after it was applied. Released migrations are never edited: add a new one"
    )]
    Changed { domain: &'static str, version: i32 },
    #[error("migration {version} '{name}' of '{domain}' failed: {error}")]
    Failed { domain: &'static str, version: i32, name: &'static str, error: DbError },
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}

const LOCK_KEY: i64 = 0x6770_7561_6173; // "gpuaas"
// fixed: between two looks at whether another runner is done
const RUNNER_PAUSE: Duration = Duration::from_millis(50);
const LOCK_ATTEMPTS: u32 = 30;
// fixed: how politely a migration asks again; a person watches it, no operator tunes it.
const LOCK_PAUSE: Duration = Duration::from_millis(500);

/// Brings the database to this binary's schema. Returns how many migrations were applied.
pub async fn run(client: &Client, prefix: &str, sets: &[MigrationSet]) -> Result<usize, MigrateError> {
    check_prefix(prefix)?;
    if let Some(0) = pending(client, sets).await? {
        return Ok(0);
    }
    // Asked for again and again, not waited for: the owner's lock timeout, which is short so that a migration gives way
    // to running work, would end the wait for another runner as well.
    while !client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK_KEY]).await?.get::<_, bool>(0) {
        tokio::time::sleep(RUNNER_PAUSE).await;
    }
    let result = apply_all(client, prefix, sets).await;
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK_KEY]).await?;
    result
}

/// How many migrations are still to be applied; `None` if the database is empty. Errs if it is ahead of us.
pub async fn pending(client: &Client, sets: &[MigrationSet]) -> Result<Option<usize>, MigrateError> {
    let exists: bool =
        client.query_one("SELECT to_regclass('public.gpuaas_migration') IS NOT NULL", &[]).await?.get(0);
    if !exists {
        return Ok(None);
    }
    let rows = client
        .query("SELECT domain, version, checksum FROM public.gpuaas_migration ORDER BY domain, version", &[])
        .await?;
    let mut applied: BTreeMap<(String, i32), Vec<u8>> = BTreeMap::new();
    for row in rows {
        applied.insert((row.get(0), row.get(1)), row.get(2));
    }
    let mut missing = 0;
    for set in sets {
        for migration in set.migrations {
            match applied.remove(&(set.domain.to_owned(), migration.version)) {
                None => missing += 1,
                Some(sum) if sum == checksum(migration) => {}
                Some(_) => {
                    return Err(MigrateError::Changed { domain: set.domain, version: migration.version });
                }
            }
        }
    }
    if let Some(((domain, version), _)) = applied.pop_first() {
        let known = sets
            .iter()
            .filter(|set| set.domain == domain)
            .flat_map(|set| set.migrations)
            .map(|m| m.version)
            .max();
        return Err(MigrateError::Newer { domain, version, known: known.unwrap_or(0) });
    }
    Ok(Some(missing))
}

async fn apply_all(client: &Client, prefix: &str, sets: &[MigrationSet]) -> Result<usize, MigrateError> {
    client
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS public.gpuaas_migration (
                 domain text COLLATE \"C\", version integer, name text NOT NULL, checksum bytea NOT NULL,
                 applied_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (domain, version))",
        )
        .await?;
    let mut count = 0;
    for set in sets {
        for migration in set.migrations {
            let known = client
                .query_opt(
                    "SELECT FROM public.gpuaas_migration WHERE domain = $1 AND version = $2",
                    &[&set.domain, &migration.version],
                )
                .await?;
            if known.is_none() {
                apply(client, prefix, set.domain, migration).await?;
                count += 1;
            }
        }
    }
    grant_migration_table(client, prefix).await?;
    Ok(count)
}

async fn apply(
    client: &Client,
    prefix: &str,
    domain: &'static str,
    migration: &Migration,
) -> Result<(), MigrateError> {
    let sql = with_logins(migration.sql, prefix);
    let name = migration.name;
    let script = format!("BEGIN;\n{sql}\n;");
    for attempt in 1.. {
        let outcome = match client.batch_execute(&script).await {
            Ok(()) => {
                client
                    .execute(
                        "INSERT INTO public.gpuaas_migration (domain, version, name, checksum) VALUES ($1, $2, $3, $4)",
                        &[&domain, &migration.version, &name, &checksum(migration)],
                    )
                    .await?;
                client.batch_execute("COMMIT").await
            }
            Err(error) => {
                client.batch_execute("ROLLBACK").await?;
                Err(error)
            }
        };
        match outcome.map_err(DbError::from) {
            Ok(()) => break,
            Err(error) if error.is_lock_timeout() && attempt < LOCK_ATTEMPTS => {
                tracing::info!(
                    domain,
                    name,
                    attempt,
                    "migration gives way to running work and will try again"
                );
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            Err(error) => {
                return Err(MigrateError::Failed { domain, version: migration.version, name, error });
            }
        }
    }
    tracing::info!(domain, version = migration.version, name, "migration applied");
    Ok(())
}

/// Every login may read which migrations were applied: roles check at start that the schema fits them.
async fn grant_migration_table(client: &Client, prefix: &str) -> Result<(), MigrateError> {
    let roles: Vec<String> = Login::ALL.iter().map(|login| login.role_name(prefix)).collect();
    client.batch_execute(&format!("GRANT SELECT ON public.gpuaas_migration TO {}", roles.join(", "))).await?;
    Ok(())
}

/// Replaces `${app}` and its like by the installation's logins.
pub fn with_logins(sql: &str, prefix: &str) -> String {
    Login::ALL.iter().fold(sql.to_owned(), |text, login| {
        text.replace(&format!("${{{}}}", login.suffix()), &login.role_name(prefix))
    })
}

fn checksum(migration: &Migration) -> Vec<u8> {
    digest(&SHA256, migration.sql.as_bytes()).as_ref().to_vec()
}

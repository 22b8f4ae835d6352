//! PostgreSQL's own programs, which know best how to copy a database.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use db::Login;
use postgres_server::Binaries;
use tokio::process::Command;
use tokio_postgres::config::Host;

use super::manifest::Facts;
use crate::Failure;
use crate::database::Database;

/// Dumps the database as of one moment. The facts are read in the very snapshot that is dumped.
pub async fn dump(database: &Database, programs: &Binaries, to: &Path) -> Result<Facts, Failure> {
    let client = database.target(Login::Backup)?.connect().await?;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    client.batch_execute(begin).await.map_err(db::DbError::from)?;
    let row = client.query_one(db::restore::SNAPSHOT_FACTS, &[]).await.map_err(db::DbError::from)?;
    let snapshot: String = row.get(0);
    let facts = Facts {
        taken_at: row.get(1),
        database_version: row.get(2),
        log_position: row.get(3),
        audit_entries: row.get(4),
    };
    let mut command = program(programs, "pg_dump", database, Login::Backup)?;
    // Without large objects: we have none, any login can make one, and this one may not read it.
    command.args(["--format=custom", "--no-owner", "--no-blobs", "--snapshot", &snapshot, "--file"]).arg(to);
    run(command, "pg_dump").await?;
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(to, private)
        .map_err(|error| Failure::new(format!("{}: {error}", to.display())))?;
    Ok(facts)
}

/// Can the dump be read to its end?
pub async fn check(programs: &Binaries, dump: &Path) -> Result<(), Failure> {
    let mut command = Command::new(programs.directory().join("pg_restore"));
    command.args(["--list"]).arg(dump);
    run(command, "pg_restore --list").await
}

/// Loads a dump into an empty database, as its owner, all or nothing.
pub async fn load(database: &Database, programs: &Binaries, dump: &Path) -> Result<(), Failure> {
    let mut command = program(programs, "pg_restore", database, Login::Owner)?;
    command.args(["--no-owner", "--single-transaction", "--exit-on-error", "--dbname", database.name()]);
    command.arg(dump);
    run(command, "pg_restore").await
}

/// A program of PostgreSQL that connects as we would. The password goes through the environment of the child, which
/// only its own user can read, never onto a command line.
fn program(programs: &Binaries, name: &str, database: &Database, login: Login) -> Result<Command, Failure> {
    let config = &database.target(login)?.config;
    let host = match config.get_hosts().first() {
        Some(Host::Unix(path)) => path.display().to_string(),
        Some(Host::Tcp(host)) => host.clone(),
        None => return Err(Failure::new("the database's host is not known")),
    };
    let mut command = Command::new(programs.directory().join(name));
    command
        .env("PGHOST", host)
        .env("PGPORT", config.get_ports().first().copied().unwrap_or(5432).to_string());
    command.env("PGUSER", config.get_user().unwrap_or_default());
    command.env("PGDATABASE", config.get_dbname().unwrap_or_default());
    if let Some(password) = config.get_password() {
        command.env("PGPASSWORD", String::from_utf8_lossy(password).into_owned());
    }
    match database.tls_ca() {
        // No less than our own connections ask for: the right authority, and the name we called.
        Some(authority) => command.env("PGSSLMODE", "verify-full").env("PGSSLROOTCERT", authority),
        None => command.env("PGSSLMODE", "disable"),
    };
    Ok(command)
}

async fn run(mut command: Command, name: &str) -> Result<(), Failure> {
    let output = command.output().await.map_err(|error| {
        Failure::new(format!("{name} cannot be run: {error}. It comes with PostgreSQL; name an installation with --postgres-dir"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!(
        "{name} failed: {}",
        said.trim().lines().last().unwrap_or("it did not say why")
    )))
}

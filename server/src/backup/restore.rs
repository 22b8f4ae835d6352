//! Bringing a backup back, onto an empty machine.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use db::{DbError, Login};
use postgres_server::{DataDirLock, Server};

use super::manifest::Manifest;
use super::{DUMP, KEYS, UNFINISHED, copy_keys, dump};
use crate::embedded::{binaries, data_directory, open_database};
use crate::{Failure, telemetry, terminal};

#[derive(Args)]
pub struct RestoreArguments {
    /// The backup's directory
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The data directory to make; must be empty
    #[arg(long)]
    data_dir: PathBuf,
    /// A PostgreSQL installation to use when none is installed
    #[arg(long, env = "GPUAAS_POSTGRES_DIR", value_name = "DIR")]
    postgres_dir: Option<PathBuf>,
}

pub async fn restore(arguments: RestoreArguments) -> Result<(), Failure> {
    telemetry::start(
        telemetry::LogFormat::Human,
        "warn,gpuaasd=info",
        &telemetry::TelemetryConfig::default(),
    )?;
    let began = Instant::now();
    let manifest = Manifest::read_checked(&arguments.from)?;
    let data_dir = data_directory(Some(arguments.data_dir))?;
    let mut inside = std::fs::read_dir(&data_dir)
        .map_err(|error| Failure::new(format!("{}: {error}", data_dir.display())))?;
    if inside.next().is_some() {
        return Err(Failure::new(format!(
            "{} is not empty: a restore never overwrites, name a new directory",
            data_dir.display()
        )));
    }
    let lock = DataDirLock::acquire(&data_dir)?;
    let mark = data_dir.join(UNFINISHED);
    crate::files::write_private(&mark, "")?;
    copy_keys(&arguments.from.join(KEYS), &data_dir)?;
    let (database, admin, server) =
        open_database(&lock, &data_dir, None, arguments.postgres_dir.clone()).await?;
    let programs = binaries(&data_dir, arguments.postgres_dir).await?;
    database.init(&admin).await?;
    dump::load(&database.target(Login::Owner)?, &programs, &arguments.from.join(DUMP)).await?;
    settle_in(&database, &admin).await?;
    let migrated = database.migrate().await?;
    database.check(&[Login::App]).await?;
    let found = facts(&database).await?;
    stop(server).await?;
    if found != (manifest.facts.log_position, manifest.facts.audit_entries) {
        return Err(Failure::new(format!(
            "the restored database has event position {} and {} audit entries, the backup promised {} and {}",
            found.0, found.1, manifest.facts.log_position, manifest.facts.audit_entries
        )));
    }
    std::fs::remove_file(&mark).map_err(|error| Failure::new(format!("{}: {error}", mark.display())))?;
    terminal::say(&format!(
        "Restored {manifest}.\n\
         Lost: everything after {}.\n\
         Took {:.1} s, {migrated} migrations applied. Start it with: gpuaasd up --data-dir {}",
        manifest.facts.taken_at,
        began.elapsed().as_secs_f64(),
        data_dir.display()
    ));
    Ok(())
}

/// The copy lives in another PostgreSQL now: what referred to the old one's transactions is told so.
async fn settle_in(database: &crate::database::Database, admin: &db::Target) -> Result<(), Failure> {
    let mut target = admin.clone();
    target.config.dbname(database.name());
    let client = target.connect().await?;
    client.batch_execute("BEGIN").await.map_err(DbError::from)?;
    for step in [db::restore::NEW_CLUSTER, audit::NEW_CLUSTER] {
        client.batch_execute(step).await.map_err(DbError::from)?;
    }
    client.batch_execute("COMMIT").await.map_err(DbError::from)?;
    Ok(())
}

async fn facts(database: &crate::database::Database) -> Result<(i64, i64), Failure> {
    let client = database.target(Login::Backup)?.connect().await?;
    let row = client.query_one(db::restore::SNAPSHOT_FACTS, &[]).await.map_err(DbError::from)?;
    Ok((row.get(3), row.get(4)))
}

async fn stop(server: Option<Server>) -> Result<(), Failure> {
    match server {
        Some(server) => Ok(server.stop().await?),
        None => Ok(()),
    }
}

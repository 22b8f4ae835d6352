//! Bringing a backup back: into an empty data directory, or onto a PostgreSQL of yours.
//!
//! What is half restored must never be taken for whole. A data directory carries a mark until the end; on a server the
//! work is done in a database of another name, which gets its own as the very last step.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgGroup, Args};
use db::{DbError, Login, Target};
use postgres_server::{Binaries, DataDirLock, Server};
use tokio_postgres::Client;

use super::manifest::Manifest;
use super::{DUMP, KEYS, SECRETS_KEY, SECRETS_KEY_OLD, UNFINISHED, copy_key, copy_keys, dump};
use crate::config::{self, Config};
use crate::database::Database;
use crate::embedded::{binaries, client_programs, data_directory, open_database};
use crate::files::PRIVATE;
use crate::process::app_for_command;
use crate::{Failure, telemetry, terminal};

#[derive(Args)]
#[command(group = ArgGroup::new("onto").required(true).args(["data_dir", "config"]))]
pub struct RestoreArguments {
    /// The backup's directory
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The data directory to make; must be empty. Has no default, so that nothing is restored into it by accident
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The configuration of a larger installation, whose PostgreSQL has no such database yet
    #[arg(long, value_name = "FILE", requires = "admin_url")]
    config: Option<PathBuf>,
    /// With --config: a PostgreSQL URL of a superuser
    #[arg(long, env = "GPUAAS_ADMIN_URL", hide_env_values = true, value_name = "URL")]
    admin_url: Option<String>,
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
    let backup = Backup { directory: &arguments.from, manifest };
    let (migrated, next) = match (arguments.data_dir, arguments.config, arguments.admin_url) {
        (Some(directory), ..) => into_directory(&backup, directory, arguments.postgres_dir).await?,
        (None, Some(file), Some(url)) => onto_server(&backup, &file, &url, arguments.postgres_dir).await?,
        _ => return Err(Failure::new("name --data-dir, or --config with --admin-url")),
    };
    terminal::say(&format!(
        "Restored {}.\nLost: everything after {}.\nTook {:.1} s, {migrated} migrations applied. {next}",
        backup.manifest,
        backup.manifest.facts.taken_at,
        began.elapsed().as_secs_f64(),
    ));
    Ok(())
}

/// A backup that was checked.
struct Backup<'a> {
    directory: &'a Path,
    manifest: Manifest,
}

/// How many migrations were applied, and what to do next.
type Done = (usize, String);

async fn into_directory(
    backup: &Backup<'_>,
    directory: PathBuf,
    postgres_dir: Option<PathBuf>,
) -> Result<Done, Failure> {
    let data_dir = data_directory(Some(directory))?;
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
    copy_keys(&backup.directory.join(KEYS), &data_dir)?;
    let (database, admin, server) = open_database(&lock, &data_dir, None, postgres_dir.clone()).await?;
    let programs = binaries(&data_dir, postgres_dir).await?;
    let migrated = fill(backup, &database, &admin, &programs).await?;
    stop(server).await?;
    std::fs::remove_file(&mark).map_err(|error| Failure::new(format!("{}: {error}", mark.display())))?;
    Ok((migrated, format!("Start it with: gpuaasd up --data-dir {}", data_dir.display())))
}

async fn onto_server(
    backup: &Backup<'_>,
    file: &Path,
    admin_url: &str,
    postgres_dir: Option<PathBuf>,
) -> Result<Done, Failure> {
    let config = config::load(file)?;
    let (database, admin) = (config.database()?, config.admin(admin_url)?);
    let programs = client_programs(postgres_dir).await?;
    let client = admin.connect().await?;
    refuse_unless_free(&client, database.name()).await?;
    // Whatever an earlier attempt left under this name was never used.
    let unfinished = database.beside(&format!("{}_restoring", database.name()));
    db::restore::remove(&client, unfinished.name()).await?;
    let filled = async {
        let migrated = fill(backup, &unfinished, &admin, &programs).await?;
        bring_secrets_key(backup, &config, &unfinished).await?;
        Ok::<usize, Failure>(migrated)
    };
    let migrated = match filled.await {
        Ok(migrated) => migrated,
        Err(failure) => {
            if let Err(error) = db::restore::remove(&client, unfinished.name()).await {
                tracing::warn!(%error, database = unfinished.name(), "what was restored so far could not be removed");
            }
            return Err(failure);
        }
    };
    db::restore::rename(&client, unfinished.name(), database.name()).await?;
    let place = match config.audit.replica {
        Some(_) => {
            "Before that, set audit.replica to a new, empty place: the former one holds entries that this log has not. "
        }
        None => "",
    };
    Ok((migrated, format!("{place}Start its roles with: gpuaasd run --config {} --role …", file.display())))
}

/// Asked before anything is changed.
async fn refuse_unless_free(admin: &Client, name: &str) -> Result<(), Failure> {
    let found = db::restore::look(admin, name).await?;
    if found.has_database {
        return Err(Failure::new(format!(
            "the server has a database {name} already: a restore never overwrites. Nothing was changed. Choose another \
             server or another database.name, or rename the one that is there"
        )));
    }
    if !found.is_superuser {
        return Err(Failure::new(
            "the user of --admin-url is no superuser, and a restore has to rewrite what belongs to the old server. \
             Nothing was changed. Name a superuser",
        ));
    }
    Ok(())
}

/// A key that came with the backup is put where the configuration wants one, unless there is one; what is there in the
/// end must open the secrets.
async fn bring_secrets_key(backup: &Backup<'_>, config: &Config, database: &Database) -> Result<(), Failure> {
    let Some(secrets) = &config.secrets else { return Ok(()) };
    let (kept, wanted) = (backup.directory.join(KEYS), &secrets.key_file);
    if !wanted.exists() {
        copy_key(&kept.join(SECRETS_KEY_OLD), &wanted.with_added_extension("old"), PRIVATE)?;
        copy_key(&kept.join(SECRETS_KEY), wanted, PRIVATE)?;
    }
    let app = app_for_command(database.clone(), config.secret_keys()?).await?;
    let checked = app.secrets.check_keys().await;
    app.db.pool().close();
    Ok(checked?)
}

/// Makes logins and database, loads the dump, and sees to it that what is there is what was promised.
async fn fill(
    backup: &Backup<'_>,
    database: &Database,
    admin: &Target,
    programs: &Binaries,
) -> Result<usize, Failure> {
    database.init(admin).await?;
    dump::load(database, programs, &backup.directory.join(DUMP)).await?;
    let (found, promised) = (facts(database).await?, &backup.manifest.facts);
    if found != (promised.log_position, promised.audit_entries) {
        return Err(Failure::new(format!(
            "the restored database has event position {} and {} audit entries, the backup promised {} and {}",
            found.0, found.1, promised.log_position, promised.audit_entries
        )));
    }
    settle_in(database, admin).await?;
    let migrated = database.migrate().await?;
    database.check(&[Login::App]).await?;
    Ok(migrated)
}

/// The copy lives in another PostgreSQL now: what referred to the old one's transactions is told so.
async fn settle_in(database: &Database, admin: &Target) -> Result<(), Failure> {
    let mut target = admin.clone();
    target.config.dbname(database.name());
    let client = target.connect().await?;
    client.batch_execute("BEGIN").await.map_err(DbError::from)?;
    let steps = [&db::restore::NEW_CLUSTER[..], &events::NEW_CLUSTER, &[audit::NEW_CLUSTER]];
    for step in steps.concat() {
        client.batch_execute(step).await.map_err(DbError::from)?;
    }
    client.batch_execute("COMMIT").await.map_err(DbError::from)?;
    Ok(())
}

async fn facts(database: &Database) -> Result<(i64, i64), Failure> {
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

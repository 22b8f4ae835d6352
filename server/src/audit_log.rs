//! `gpuaasd audit`: take the log out, and check what was taken out.
//!
//! `export` reads a running installation; `verify` needs nothing but files, so that an auditor can run it on a machine
//! that has never seen ours.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use db::{Db, Internal, Login, Nudges, Target};
use merkle::{Outside, verify_export};
use types::{Clock, IdMaker, SystemClock, SystemEntropy};

use crate::database::Database;
use crate::{Failure, config, terminal, up};

#[derive(Subcommand)]
pub enum AuditCommand {
    /// Write the sealed log to a new directory, while the server runs
    Export(ExportArguments),
    /// Check an export, without any server; fails and names the first bad entry if there is one
    Verify(VerifyArguments),
}

#[derive(Args)]
pub struct ExportArguments {
    /// Data directory of a running `gpuaasd up` [default: the one `up` uses]
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// The PostgreSQL that `up` was told to use instead of a private one
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
    /// Configuration of an installation with its own PostgreSQL
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data_dir", "database_url"])]
    config: Option<PathBuf>,
    /// Directory to make; it must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Args)]
pub struct VerifyArguments {
    /// The export
    directory: PathBuf,
    /// The log's verifier key, kept elsewhere (audit.vkey)
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// One of the log's checkpoints, kept elsewhere
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
}

pub async fn command(command: AuditCommand) -> Result<(), Failure> {
    match command {
        AuditCommand::Export(arguments) => export(arguments).await,
        AuditCommand::Verify(arguments) => verify(arguments),
    }
}

async fn export(arguments: ExportArguments) -> Result<(), Failure> {
    let failed = |error: audit::ExportFailure| Failure::new(error.to_string());
    let database = database(&arguments)?;
    database.check().await?;
    audit::record_export(&recorder(&database)?).await.map_err(failed)?;
    let reader = Internal::new(database.pool(Login::Reader, 1)?, "audit export", false);
    let exported = audit::export(&reader, &arguments.out).await.map_err(failed)?;
    terminal::say(&format!(
        "{entries} entries written to {directory}, with the checkpoint over them and {earlier} earlier ones.\n\
         Check them anywhere: gpuaasd audit verify {directory} --key FILE --checkpoint FILE, with a key and a checkpoint that \
         were kept elsewhere.",
        entries = exported.entries,
        directory = arguments.out.display(),
        earlier = exported.earlier_checkpoints,
    ));
    Ok(())
}

/// Just enough of the server to write down that the log is being taken out.
fn recorder(database: &Database) -> Result<Db, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ids = IdMaker::new(Arc::clone(&clock), Arc::new(SystemEntropy));
    Ok(Db::new(database.pool(Login::App, 1)?, clock, ids, Nudges::default()))
}

fn database(arguments: &ExportArguments) -> Result<Database, Failure> {
    if let Some(path) = &arguments.config {
        return config::load(path)?.database();
    }
    // A directory that was named is not made: a typing error should not look like an installation without entries.
    let data_dir = match &arguments.data_dir {
        Some(named) => named.clone(),
        None => up::data_directory(None)?,
    };
    if let Some(url) = &arguments.database_url {
        return up::named_database(&data_dir, url).map(|(database, _)| database);
    }
    let running = postgres_server::find_running(&data_dir)?;
    let mut config = tokio_postgres::Config::new();
    config.host_path(&running.socket_dir).port(postgres_server::PORT).dbname("gpuaas");
    Ok(Database::new(Target::plain(config), "gpuaas", running.password))
}

fn verify(arguments: VerifyArguments) -> Result<(), Failure> {
    let outside = Outside { key: arguments.key, checkpoint: arguments.checkpoint };
    let report = verify_export(&arguments.directory, &outside).map_err(|error| Failure::new(error.to_string()))?;
    terminal::say(&report.to_string());
    match report.problem {
        None => Ok(()),
        Some(problem) => Err(Failure::new(format!("the export does not verify: {problem}"))),
    }
}

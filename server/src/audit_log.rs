//! `gpuaasd audit`: take the log out, and check what was taken out.
//!
//! `export` reads a running installation; `verify` needs nothing but files, so that an auditor can run it on a machine
//! that has never seen ours.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use db::{Db, Internal, Login, Nudges};
use merkle::{Outside, verify_export};
use types::{Clock, IdMaker, SystemClock, SystemEntropy};

use crate::database::Database;
use crate::installation::Installation;
use crate::{Failure, terminal};

#[derive(Subcommand)]
pub enum AuditCommand {
    /// Write the sealed log to a new directory, while the server runs
    Export(ExportArguments),
    /// Check an export, without any server; fails and names the first bad entry if there is one
    Verify(VerifyArguments),
}

#[derive(Args)]
pub struct ExportArguments {
    #[command(flatten)]
    installation: Installation,
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
    let database = arguments.installation.database()?;
    database.check(&[Login::App, Login::Reader]).await?;
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

fn verify(arguments: VerifyArguments) -> Result<(), Failure> {
    let outside = Outside { key: arguments.key, checkpoint: arguments.checkpoint };
    let report =
        verify_export(&arguments.directory, &outside).map_err(|error| Failure::new(error.to_string()))?;
    terminal::say(&report.to_string());
    match report.problem {
        None => Ok(()),
        Some(problem) => Err(Failure::new(format!("the export does not verify: {problem}"))),
    }
}

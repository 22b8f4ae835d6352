//! `gpuaasd audit`: take the log out, check what was taken out, change the log's key.
//!
//! `export` and `rotate-key` work on a running installation; `verify` needs nothing but files, so that an auditor can run
//! it on a machine that has never seen ours.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use audit::{KeySource, Sealer};
use authz::{Actor, Context};
use blob::Blobs;
use clap::{Args, Subcommand};
use db::{Db, Internal, Login, Nudges};
use merkle::{Outside, verify_export};
use types::{Clock, IdMaker, SystemClock, SystemEntropy};

use crate::audit_key::LogKeys;
use crate::database::Database;
use crate::installation::Installation;
use crate::process::{Process, ProcessOptions};
use crate::{Failure, terminal};

#[derive(Subcommand)]
pub enum AuditCommand {
    /// Write the sealed log to a new directory, while the server runs
    ///
    /// Anyone can then check it with `gpuaasd audit verify`, without us. That it was taken out is an entry of the log too.
    #[command(
        after_help = "Examples:\n  gpuaasd audit export --out my-export\n  gpuaasd audit export --config gpuaas.toml --out my-export"
    )]
    Export(ExportArguments),
    /// Check an export, without any server; fails and names the first bad entry if there is one
    ///
    /// With a key and a checkpoint that were kept elsewhere, nobody can have rewritten the log unseen. Without them it is
    /// only compared with itself.
    #[command(
        after_help = "Examples:\n  gpuaasd audit verify my-export\n  gpuaasd audit verify my-export --key audit.vkey --checkpoint last-month/checkpoint"
    )]
    Verify(VerifyArguments),
    /// Give the log a new signing key, which the old one hands over to; nothing stops meanwhile
    ///
    /// Do it when the key may have been seen, or by the calendar. Interrupted, it is finished by running it again.
    #[command(
        after_help = "Examples:\n  gpuaasd audit rotate-key\n  gpuaasd audit rotate-key --config gpuaas.toml"
    )]
    RotateKey(RotateArguments),
}

#[derive(Args)]
pub struct RotateArguments {
    #[command(flatten)]
    installation: Installation,
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
        AuditCommand::RotateKey(arguments) => rotate_key(arguments).await,
    }
}

async fn export(arguments: ExportArguments) -> Result<(), Failure> {
    let failed = |error: audit::ExportFailure| Failure::new(error.to_string());
    let database = arguments.installation.database()?;
    database.check(&[Login::App, Login::Reader]).await?;
    audit::record_export(&recorder(&database)?, &*crate::assemble::decider()?).await.map_err(failed)?;
    let reader = Internal::new(database.pool(Login::Reader, 1)?, "audit export", false);
    // Opened only if it is needed: opening makes a directory that is not there.
    let needed = audit::needs_copy(&reader).await.map_err(failed)?;
    let replica = arguments.installation.replica()?.filter(|_| needed);
    let blobs = replica.as_ref().map(Blobs::open).transpose();
    let blobs = blobs.map_err(|error| Failure::new(error.to_string()))?;
    let exported = audit::export(&reader, blobs.as_ref(), &arguments.out).await.map_err(failed)?;
    let left_out = match exported.left_out {
        0 => String::new(),
        count => format!(
            "Not in it: {count} newer, this export's own among them; they were not sealed yet. For those, export again in a \
             moment.\n"
        ),
    };
    terminal::say(&format!(
        "{entries} entries written to {directory}, with the checkpoint over them and {earlier} earlier ones.\n{left_out}\
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

/// How often the hand-over is tried before somebody is asked to look. A running sealer looks for the new key every ten
/// seconds by default, and then hands over as well as we do.
// fixed: a person waits for it
const ATTEMPTS_MAX: u32 = 120;
// fixed: the pause between two attempts; a person waits for it
const PAUSE: Duration = Duration::from_millis(500);
/// Least time in which a hand-over that was interrupted can be finished.
// fixed: below an hour nobody would get round to it
const OVERLAP_MIN: Duration = Duration::from_secs(3600);

/// Makes a new key and hands over to it. Run again after an interruption, it finishes what was begun.
async fn rotate_key(arguments: RotateArguments) -> Result<(), Failure> {
    let database = arguments.installation.database()?;
    database.check(&[Login::App, Login::Sealer]).await?;
    let process = Process::start(ProcessOptions {
        database,
        logins: vec![Login::App, Login::Sealer],
        connections: 1,
        keys: Arc::new(arguments.installation.secret_keys()?),
        tls: false,
        backstop: false,
        settings: db::Settings::default(),
    })
    .await?;
    let app = process.app()?;
    let keys = Arc::new(LogKeys::open(&app, &arguments.installation.log_name()?, None).await?);
    if keys.is_handing_over() {
        terminal::say("A new key is there already and has not taken over yet: finishing that.");
    } else {
        // Without the old key there is no hand-over, and without a hand-over no going on.
        let overlap = secrets::ROTATION_OVERLAP_SECONDS.seconds(&app.settings);
        if overlap < OVERLAP_MIN {
            return Err(Failure::new(format!(
                "the setting secrets.rotation_overlap_seconds is {}: should this be interrupted, the old key would be gone \
                 before it can hand over. Set it to {} or more",
                overlap.as_secs(),
                OVERLAP_MIN.as_secs()
            )));
        }
        let context = Context::new(Actor::system(iam::SYSTEM_BOOTSTRAP), app.db.make_id());
        keys.rotate(&context).await?;
    }
    let internal = process.internal(Login::Sealer, "audit rotate-key")?;
    let source: Arc<dyn KeySource> = Arc::clone(&keys) as Arc<dyn KeySource>;
    let (clock, nudges) = (Arc::clone(&app.clock), app.db.nudges().clone());
    let sealer = Sealer::new(internal, clock, nudges, app.settings.clone(), source);
    for _ in 0..ATTEMPTS_MAX {
        let sealed = sealer.step().await;
        keys.look().await?;
        if !keys.is_handing_over() {
            terminal::say(&format!(
                "The log is signed with a new key from now on:\n{}\nGive it to those who verify; what they kept before \
                 still counts.",
                keys.keys().current.verifier()
            ));
            return Ok(());
        }
        if let Err(error) = sealed {
            tracing::warn!(%error, "the hand-over will be tried again");
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Failure::new(
        "the new key is made, and the log is still signed with the old one: nothing could be sealed. See that the role \
         audit-sealer works (docs/runbooks/seal-lag.md), then run this again",
    ))
}

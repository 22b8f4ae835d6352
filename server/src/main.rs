//! `gpuaasd`: the whole control plane in one binary.
//!
//! `up` runs everything in one process on an embedded default; `run` runs chosen roles against an external PostgreSQL.
//! This file only reads the command line; each command has a file of its own.

mod assemble;
mod audit_key;
mod audit_log;
mod backup;
mod config;
mod contracts;
mod database;
mod embedded;
mod error_pages;
mod files;
mod health;
mod installation;
mod listen;
mod node_tls;
mod operator;
mod passwords;
mod process;
mod roles;
mod run;
mod secret_keys;
mod system;
mod telemetry;
mod terminal;
#[cfg(test)]
mod tests;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use db::DbError;

/// GPUaaS: a GPU cloud you can run yourself.
#[derive(Parser)]
#[command(name = "gpuaasd", version = VERSION, about, long_about = LONG_ABOUT)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const LONG_ABOUT: &str = "GPUaaS: a GPU cloud you can run yourself.

`gpuaasd up` starts everything on this machine with a private PostgreSQL in the data directory.
`gpuaasd run` starts chosen roles against your own PostgreSQL and NATS, as many replicas as you like.";

#[derive(Subcommand)]
enum Command {
    /// Start everything on this machine, ready in seconds, nothing to configure
    ///
    /// All that matters is in the data directory: stop it, start it again, and everything is there. It prints a link to sign
    /// in with and commands worth trying.
    #[command(
        after_help = "Examples:\n  gpuaasd up\n  gpuaasd up --listen 127.0.0.1:9080 --data-dir ./try --ready-file ready.json"
    )]
    Up(up::UpArguments),
    /// Run roles of a larger installation
    ///
    /// Each role may run on any number of machines; every role must run on at least one. Prepare the database once with
    /// `gpuaasd db init`.
    #[command(
        after_help = "Examples:\n  gpuaasd run --role api,outbox-relay,audit-sealer,platform-worker --config gpuaas.toml\n  gpuaasd run --role api --config gpuaas.toml"
    )]
    Run(run::RunArguments),
    /// Hand out sign-in links and keys of the platform's operator
    #[command(subcommand)]
    Operator(operator::OperatorCommand),
    /// Copy everything into a directory while the server runs
    ///
    /// Consistent as of one moment, and checked before it is called done. The backup of an `up` holds its keys: keep it as
    /// you keep a key. That of a larger installation holds none: keep its secrets.key elsewhere.
    #[command(
        after_help = "Examples:\n  gpuaasd backup --out /mnt/backups/monday\n  gpuaasd backup --config gpuaas.toml --out /mnt/backups/monday"
    )]
    Backup(backup::BackupArguments),
    /// Bring a backup back, into an empty data directory or onto a PostgreSQL of yours
    ///
    /// Never overwrites anything. Says what was lost, and how long it took.
    #[command(
        after_help = "Examples:\n  gpuaasd restore --from /mnt/backups/monday --data-dir /var/lib/gpuaas\n  GPUAAS_ADMIN_URL=postgresql://admin@db.example/postgres gpuaasd restore --from /mnt/backups/monday --config gpuaas.toml"
    )]
    Restore(backup::RestoreArguments),
    /// Prepare a database for `gpuaasd run`: logins, schema, migrations
    #[command(subcommand)]
    Db(database::DbCommand),
    /// Take the audit log out, or check one that was taken out
    #[command(subcommand)]
    Audit(audit_log::AuditCommand),
    /// Change the key that protects secrets
    #[command(subcommand)]
    Secrets(secret_keys::SecretsCommand),
    /// Check or explain configuration files
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Write what others build on: API, events, errors, settings, permissions
    #[command(hide = true)]
    Contracts {
        /// Directory to write into
        #[arg(long, default_value = "contracts")]
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // One provider for the whole process; a second installation attempt can only mean it is already there.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return terminal::fail(&format!("the asynchronous runtime could not start: {error}")),
    };
    let result = runtime.block_on(async {
        match arguments.command {
            Command::Up(arguments) => Box::pin(up::up(arguments)).await,
            Command::Run(arguments) => Box::pin(run::run(arguments)).await,
            Command::Operator(command) => Box::pin(operator::command(command)).await,
            Command::Backup(arguments) => Box::pin(backup::backup(arguments)).await,
            Command::Restore(arguments) => Box::pin(backup::restore(arguments)).await,
            Command::Db(command) => database::command(command).await,
            Command::Audit(command) => Box::pin(audit_log::command(command)).await,
            Command::Secrets(command) => Box::pin(secret_keys::command(command)).await,
            Command::Config(command) => config::command(command),
            Command::Contracts { out } => contracts::write(&out),
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => terminal::fail(&with_remedy(failure.to_string())),
    }
}

/// A full disk can stop any of a hundred writes, each with its own words: what to do about it is said here, once.
fn with_remedy(mut text: String) -> String {
    const FULL: &str = "The disk is full: free some space, then start again.";
    if text.contains("No space left on device") && !text.contains(FULL) {
        text = format!("{}. {FULL}", text.trim_end_matches('.'));
    }
    text
}

/// Why a command could not do its work, in words for the person who typed it: what happened, why, what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<types::Error> for Failure {
    fn from(error: types::Error) -> Self {
        let cause = error.cause().map(|cause| format!(" ({cause})")).unwrap_or_default();
        Self(format!("{}{cause}. {}", error.message(), error.code().remedy))
    }
}

const UNREACHABLE: &str = "See that PostgreSQL runs, and that host and port are right (database.host and database.port in the \
                           configuration, or the URL you gave)";

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        match &error {
            DbError::Tls(fault) => Self(format!("{error}. {}", database::tls_remedy(fault))),
            DbError::Connect(_) => Self(format!("{error}. {UNREACHABLE}")),
            _ => Self(error.to_string()),
        }
    }
}

macro_rules! failure_from {
    ($($type:ty),*) => {
        $(impl From<$type> for Failure {
            fn from(error: $type) -> Self {
                Self(error.to_string())
            }
        })*
    };
}
failure_from!(
    db::migrate::MigrateError,
    postgres_server::PostgresError,
    relay::RelayError,
    secrets::KeyFileError
);

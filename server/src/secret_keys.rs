//! The key encryption key: which one a start uses, and `gpuaasd secrets`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use db::{Internal, Login};
use secrets::{Keyring, MissingKey, Rewrapped};
use types::SystemEntropy;

use crate::assemble::App;
use crate::database::Database;
use crate::{Failure, config, process, terminal};

#[derive(Subcommand)]
pub enum SecretsCommand {
    /// Protect every secret with the new key, so that the older one can go
    ///
    /// For `gpuaasd run`; `up` does it by itself when it starts with a new key. Nothing stops meanwhile.
    #[command(after_help = "Example:\n  gpuaasd secrets rewrap --config gpuaas.toml")]
    Rewrap {
        /// The configuration; secrets.key_file is the new key, and the one before lies beside it with the ending .old
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

pub async fn command(command: SecretsCommand) -> Result<(), Failure> {
    let SecretsCommand::Rewrap { config } = command;
    let config = config::load(&config)?;
    if config.secrets.is_none() {
        return Err(Failure::new("the configuration has no section [secrets], so there is no key to change"));
    }
    let database = config.database()?;
    database.check(&[Login::App]).await?;
    let app = process::app_for_command(database, config.secret_keys()?).await?;
    app.secrets.check_keys().await?;
    let done = app.secrets.rewrap(&app.iam.bootstrap_context()).await?;
    let Rewrapped { rewrapped, unreadable } = &done;
    if unreadable.is_empty() {
        terminal::say(&format!(
            "{rewrapped} data keys are wrapped with the new key. The older one protects nothing any more: remove the file \
             ending in .old on every replica, and keep it as long as you keep backups that need it."
        ));
        return Ok(());
    }
    Err(Failure::new(format!(
        "{rewrapped} data keys are wrapped with the new key, but these were altered and open with no key: {unreadable:?}. \
         Rotate or retire those secrets; the older key does not help them"
    )))
}

/// The keys of an embedded installation. A new one is made for a new database, and when the former one was put aside; never
/// in place of one that was lost.
pub async fn of_data_directory(data_dir: &Path, database: &Database) -> Result<Keyring, Failure> {
    let internal = Internal::new(database.pool(Login::App, 1)?, "secrets.keys", false);
    let in_use = secrets::keys_in_use(&internal).await?;
    let (path, missing) = (data_dir.join("secrets.key"), MissingKey::Make { in_use: &in_use });
    Ok(Keyring::from_file(&path, missing, Arc::new(SystemEntropy))?)
}

/// Makes sure that the key at hand opens what is stored, and moves everything to it if it is new.
pub async fn renew(app: &App) -> Result<(), Failure> {
    app.secrets.check_keys().await?;
    if !app.secrets.has_older_key() {
        return Ok(());
    }
    let done = app.secrets.rewrap(&app.iam.bootstrap_context()).await?;
    if done.unreadable.is_empty() {
        tracing::info!(
            rewrapped = done.rewrapped,
            "secrets.key.old protects nothing any more and can be removed"
        );
    } else {
        tracing::error!(unreadable = ?done.unreadable, "some data keys were altered and could not be moved to the new key");
    }
    Ok(())
}

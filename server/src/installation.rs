//! Which installation a command works on: a running `gpuaasd up` by its data directory, or a larger one by its
//! configuration file.

use std::path::PathBuf;
use std::sync::Arc;

use blob::BlobConfig;
use clap::Args;
use secrets::{Keyring, MissingKey};
use types::SystemEntropy;

use crate::config;
use crate::database::Database;
use crate::embedded::{data_directory, named_database, running_database};
use crate::{Failure, up};

#[derive(Args)]
pub struct Installation {
    /// The data directory of a running `gpuaasd up` [default: /var/lib/gpuaas for root, else ~/.local/share/gpuaas]
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    data_dir: Option<PathBuf>,
    /// The PostgreSQL that `up` was told to use instead of a private one
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL", conflicts_with = "config")]
    database_url: Option<String>,
    /// The configuration of a larger installation, instead of a data directory
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Installation {
    pub fn database(&self) -> Result<Database, Failure> {
        if let Some(file) = &self.config {
            return config::load(file)?.database();
        }
        // A directory that was named is not made: a typing error should not look like an empty installation.
        let data_dir = match &self.data_dir {
            // Absolute, because PostgreSQL's programs take a path that does not begin with `/` for a host's name.
            Some(named) => std::path::absolute(named)
                .map_err(|error| Failure::new(format!("the data directory {}: {error}", named.display())))?,
            None => data_directory(None)?,
        };
        match &self.database_url {
            Some(url) => named_database(&data_dir, url).map(|(database, _)| database),
            None => running_database(&data_dir),
        }
    }

    /// The keys that protect its secrets.
    pub fn secret_keys(&self) -> Result<Keyring, Failure> {
        if let Some(file) = &self.config {
            return config::load(file)?.secret_keys();
        }
        let data_dir = data_directory(self.data_dir.clone())?;
        let file = data_dir.join("secrets.key");
        Ok(Keyring::from_file(&file, MissingKey::Refuse, Arc::new(SystemEntropy))?)
    }

    /// Where people reach the server with a browser.
    pub fn url(&self) -> Result<String, Failure> {
        if let Some(file) = &self.config {
            return config::load(file)?.public_url();
        }
        up::url(&data_directory(self.data_dir.clone())?)
    }

    /// The audit log's second place, if it has one.
    pub fn replica(&self) -> Result<Option<BlobConfig>, Failure> {
        match &self.config {
            Some(file) => Ok(config::load(file)?.audit.replica),
            None => Ok(Some(up::replica(&data_directory(self.data_dir.clone())?))),
        }
    }

    /// The audit log's name.
    pub fn log_name(&self) -> Result<String, Failure> {
        match &self.config {
            Some(file) => Ok(config::load(file)?.audit.log_name),
            None => Ok(config::default_log_name()),
        }
    }

    /// The data directory, if that is what it is about.
    pub fn data_dir(&self) -> Result<Option<PathBuf>, Failure> {
        match &self.config {
            Some(_) => Ok(None),
            None => data_directory(self.data_dir.clone()).map(Some),
        }
    }
}

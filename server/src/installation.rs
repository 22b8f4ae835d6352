//! Which installation a command works on: a running `gpuaasd up` by its data directory, or a larger one by its
//! configuration file.

use std::path::PathBuf;

use clap::Args;

use crate::Failure;
use crate::config;
use crate::database::Database;
use crate::embedded::{data_directory, running_database};

#[derive(Args)]
pub struct Installation {
    /// The data directory of a running `gpuaasd up`
    #[arg(long, conflicts_with = "config")]
    data_dir: Option<PathBuf>,
    /// The configuration of a larger installation, instead of a data directory
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Installation {
    pub fn database(&self) -> Result<Database, Failure> {
        match &self.config {
            Some(file) => config::load(file)?.database(),
            None => running_database(&data_directory(self.data_dir.clone())?),
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

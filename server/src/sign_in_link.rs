//! `gpuaasd sign-in-link`: a new one-time link, for whoever owns the machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::embedded::{data_directory, running_database};
use crate::process::{Process, ProcessOptions};
use crate::{Failure, terminal};

#[derive(Args)]
pub struct SignInLinkArguments {
    /// The data directory of the running `gpuaasd up`
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Where that server answers
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
}

pub async fn sign_in_link(arguments: SignInLinkArguments) -> Result<(), Failure> {
    let database = running_database(&data_directory(arguments.data_dir)?)?;
    let settings = db::Settings::default();
    let options = ProcessOptions { database, connections: 1, tls: false, backstop: false, settings };
    let process = Process::start(options).await?;
    let seeded = process.app.iam.seed().await?;
    terminal::say(&crate::up::sign_in_link(&process.app.iam, &seeded, arguments.listen).await?);
    Ok(())
}

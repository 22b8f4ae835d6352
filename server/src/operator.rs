//! `gpuaasd operator`: what only the owner of the machine or of the database may hand out.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use db::Login;
use iam::SeededKey;

use crate::assemble::App;
use crate::files::write_private;
use crate::installation::Installation;
use crate::process::app_for_command;
use crate::{Failure, terminal};

#[derive(Subcommand)]
pub enum OperatorCommand {
    /// Make a new one-time sign-in link for the platform's operator
    ///
    /// Open it in a browser. It works once and not for long; whoever has it is the operator, so hand it to nobody else.
    #[command(
        after_help = "Examples:\n  gpuaasd operator sign-in-link\n  gpuaasd operator sign-in-link --config gpuaas.toml"
    )]
    SignInLink {
        #[command(flatten)]
        installation: Installation,
        /// Where the browser reaches the server [default: where `up` answers, or the configuration's public.url]
        #[arg(long)]
        url: Option<String>,
    },
    /// Make a new API key of the platform's operator and write it to a file only you can read
    ///
    /// Programs send it as `Authorization: Bearer KEY`. It is shown nowhere else and cannot be read again.
    #[command(
        after_help = "Examples:\n  gpuaasd operator key --out operator.key\n  gpuaasd operator key --config gpuaas.toml --out backup-job.key --name backup-job"
    )]
    Key {
        #[command(flatten)]
        installation: Installation,
        /// Where to write it; must not exist yet
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// What the key is for, shown in listings
        #[arg(long, default_value = "operator")]
        name: String,
    },
}

pub async fn command(command: OperatorCommand) -> Result<(), Failure> {
    match command {
        OperatorCommand::SignInLink { installation, url } => {
            // Before a code is made that nobody would ever see.
            let url = url.map_or_else(|| installation.url(), Ok)?;
            let app = open(&installation).await?;
            let operator = app.iam.seed_operator().await?;
            let link = app.iam.sign_in_link(operator, url.trim_end_matches('/')).await?;
            terminal::say(&link);
        }
        OperatorCommand::Key { installation, out, name } => {
            // Before a key is made that nobody would ever see.
            if out.symlink_metadata().is_ok() {
                return Err(Failure::new(format!(
                    "{} exists already, and may hold a key in use: name a new file",
                    out.display()
                )));
            }
            let app = open(&installation).await?;
            app.iam.seed_operator().await?;
            let key = app.iam.seed_key(SeededKey::Operator, &name).await?;
            write_private(&out, key.expose())?;
            terminal::say(&format!("The key is in {}.", out.display()));
        }
    }
    Ok(())
}

async fn open(installation: &Installation) -> Result<Arc<App>, Failure> {
    let database = installation.database()?;
    database.check(&[Login::App]).await?;
    app_for_command(database, secrets::Keyring::empty()).await
}

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
    SignInLink {
        #[command(flatten)]
        installation: Installation,
        /// Where the server answers, as the browser reaches it
        #[arg(long, default_value = "http://127.0.0.1:8080")]
        url: String,
    },
    /// Make a new API key of the platform's operator and write it to a file only you can read
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

//! The passwords of the database's logins: a file for each in one directory, `app.password`, `relay.password` and so on.
//!
//! A process reads those of the roles it runs and no others, so a machine holds only what its own roles may open.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use db::Login;
use types::{Secret, SystemEntropy};

use crate::Failure;
use crate::files::write_private;

#[derive(Clone)]
pub struct Passwords {
    directory: PathBuf,
}

impl Passwords {
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    pub fn of(&self, login: Login) -> Result<Secret, Failure> {
        let path = self.path(login);
        let failed = |why: &dyn std::fmt::Display| {
            Failure::new(format!(
                "the password of the database login \"{}\" cannot be read from {}: {why}. Put it there; \
                 `gpuaasd db init` gives the login the password that is in its file",
                login.suffix(),
                path.display()
            ))
        };
        let text = read_secret(&path).map_err(|error| failed(&error))?;
        if text.expose().is_empty() { Err(failed(&"it is empty")) } else { Ok(text) }
    }

    /// Makes a password for each login that has none. For `up`, whose logins nobody else uses.
    pub fn make_missing(&self) -> Result<(), Failure> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).map_err(|error| {
            Failure::new(format!("the directory {} cannot be made: {error}", self.directory.display()))
        })?;
        for path in Login::ALL.map(|login| self.path(login)) {
            if !path.exists() {
                write_private(&path, random().expose())?;
            }
        }
        Ok(())
    }

    fn path(&self, login: Login) -> PathBuf {
        self.directory.join(format!("{}.password", login.suffix()))
    }
}

/// What a file with one secret in it holds, without the end of its line.
pub fn read_secret(path: &Path) -> std::io::Result<Secret> {
    let text = Secret::new(std::fs::read_to_string(path)?);
    Ok(Secret::new(text.expose().trim().to_owned()))
}

fn random() -> Secret {
    let mut bytes = [0u8; 24];
    types::Entropy::fill(&SystemEntropy, &mut bytes);
    Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

//! The way to a server that another process runs: for commands that work beside a running `gpuaasd up`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use types::Secret;

use crate::error::{PostgresError, Result};
use crate::layout::Layout;
use crate::password;
use crate::server::PORT;

/// Where a data directory's server listens, and what opens it. Says nothing about whether it answers.
#[derive(Debug)]
pub struct Running {
    socket_dir: PathBuf,
    password: Secret,
}

impl Running {
    /// Fails if no server is running on the data directory.
    pub fn at(data_dir: &Path) -> Result<Self> {
        let layout = Layout::of(data_dir);
        let socket_dir = match fs::read_to_string(layout.socket_elsewhere()) {
            Ok(named) => PathBuf::from(named.trim()),
            Err(error) if error.kind() == ErrorKind::NotFound => layout.socket_dir(),
            Err(error) => return Err(PostgresError::io("read", &layout.socket_elsewhere())(error)),
        };
        if !socket_dir.join(format!(".s.PGSQL.{PORT}")).exists() {
            return Err(PostgresError::NotRunning { data_dir: data_dir.to_owned() });
        }
        Ok(Self { socket_dir, password: password::read(&layout)? })
    }

    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    pub const fn port(&self) -> u16 {
        PORT
    }

    pub const fn password(&self) -> &Secret {
        &self.password
    }
}

//! The way to a server that another process runs: for commands that work beside a running `gpuaasd up`.

use std::path::{Path, PathBuf};

use types::Secret;

use crate::error::{PostgresError, Result};
use crate::layout::Layout;
use crate::server::PORT;
use crate::{password, socket};

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
        // Recorded only when the directory beside the cluster is no path for a socket.
        let socket_dir = std::fs::read_to_string(layout.socket_elsewhere())
            .map_or_else(|_| layout.socket_dir(), |text| PathBuf::from(text.trim()));
        if !socket::socket_in(&socket_dir).exists() {
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

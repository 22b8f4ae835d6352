//! The way to a server that another process runs: for commands beside `gpuaasd up`.
//!
//! No lock is taken and nothing is started or stopped. Whoever may read the password file may come in.

use std::path::{Path, PathBuf};

use types::Secret;

use crate::error::{PostgresError, Result};
use crate::layout::Layout;
use crate::{password, socket};

/// How to reach a running server.
pub struct Running {
    /// The directory to give to a client as its host; the port is [`crate::PORT`].
    pub socket_dir: PathBuf,
    /// The password of [`crate::SUPERUSER`].
    pub password: Secret,
}

/// Finds the server of a data directory, if one runs there.
pub fn find_running(data_dir: &Path) -> Result<Running> {
    let data_dir = data_dir.canonicalize().map_err(PostgresError::io("find", data_dir))?;
    let layout = Layout::of(&data_dir);
    let socket_dir = socket::prepared(&layout);
    if std::fs::symlink_metadata(socket::socket_in(&socket_dir)).is_err() {
        return Err(PostgresError::NotRunning { data_dir });
    }
    Ok(Running { socket_dir, password: password::read(&layout)? })
}

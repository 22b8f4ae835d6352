//! Where things are below the data directory, and how they get there: each path and each mode is named once.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{PostgresError, Result};

/// Others may pass through, to what they may open, but not look around: the server's account has to get to its
/// cluster through directories that belong to root.
const PASSABLE: u32 = 0o711;
pub(crate) const PRIVATE: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
const READABLE_FILE: u32 = 0o644;

/// A log longer than this is set aside at the next start; together with the one set aside, that bounds the disk
/// that past runs can fill.
const LOG_LIMIT_BYTES: u64 = 16 * 1024 * 1024;

pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { root: data_dir.join("postgres") }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn cluster(&self) -> PathBuf {
        self.root.join("cluster")
    }

    /// Where initdb works; renamed to [`Self::cluster`] when it is done.
    pub(crate) fn unfinished_cluster(&self) -> PathBuf {
        self.root.join("cluster.unfinished")
    }

    pub(crate) fn socket_dir(&self) -> PathBuf {
        self.root.join("socket")
    }

    /// Names the socket directory when [`Self::socket_dir`] is no path for a socket.
    pub(crate) fn socket_elsewhere(&self) -> PathBuf {
        self.root.join("socket.elsewhere")
    }

    pub(crate) fn password(&self) -> PathBuf {
        self.root.join("password")
    }

    /// The password in a file that the server's account can read, there only while initdb runs.
    pub(crate) fn initdb_password(&self) -> PathBuf {
        self.root.join("initdb.password")
    }

    pub(crate) fn initdb_log(&self) -> PathBuf {
        self.root.join("initdb.log")
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.root.join("postgresql.conf")
    }

    pub(crate) fn access_rules(&self) -> PathBuf {
        self.root.join("pg_hba.conf")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    /// Opens the log for appending and tells how long it is, so that an error quotes only this run's words.
    pub(crate) fn open_log(&self) -> Result<(File, u64)> {
        let path = self.log();
        if fs::metadata(&path).is_ok_and(|log| log.len() > LOG_LIMIT_BYTES) {
            let aside = self.root.join("log.previous");
            fs::rename(&path, &aside).map_err(PostgresError::io("set the log aside as", &aside))?;
        }
        let open = || {
            let file = OpenOptions::new().create(true).append(true).mode(PRIVATE_FILE).open(&path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        open().map_err(PostgresError::io("open the log", &path))
    }
}

/// Makes a directory that the server's account can pass through, if it is not there yet. One that is there keeps
/// its mode: the operator may have closed it on purpose, and then the account's check says so.
pub(crate) fn create_passable(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let create = || {
        DirBuilder::new().recursive(true).create(path)?;
        // Not by the builder's mode, which the umask would cut.
        fs::set_permissions(path, Permissions::from_mode(PASSABLE))
    };
    create().map_err(PostgresError::io("make the directory", path))
}

/// Makes a private directory; fails if anything is there already.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE).create(path)
}

/// Replaces a file that only we may read, whole or not at all, and on disk when this returns.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    replace(path, text, PRIVATE_FILE).map_err(PostgresError::io("write", path))
}

/// Replaces a file that the server's account may read.
pub(crate) fn write_readable(path: &Path, text: &str) -> Result<()> {
    replace(path, text, READABLE_FILE).map_err(PostgresError::io("write", path))
}

/// Makes the names in a directory (a rename, a new file) survive a power cut.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let unfinished = path.with_added_extension("unfinished");
    remove_if_there(&unfinished)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    path.parent().map_or(Ok(()), sync_directory)
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(PostgresError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

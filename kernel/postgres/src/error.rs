//! What can go wrong, told to the person who ran `gpuaasd up`: what happened, why, and what to do next.
//!
//! PostgreSQL explains its own failures well, but in a log that nobody looks at; so an error about a server that
//! failed carries the last lines of that log and, where its words are known, the remedy.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::binaries::{OLDEST_MAJOR, Version};

pub type Result<T, E = PostgresError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error(
        "No PostgreSQL server of version {OLDEST_MAJOR} or newer was found in /usr/lib/postgresql or on the PATH. \
         Install one (Debian and Ubuntu: apt install postgresql), or name the directory it is in."
    )]
    NotInstalled,

    #[error(
        "{} is not a PostgreSQL server: {reason}. Name a directory that holds the programs `postgres` and \
         `initdb`, or one whose `bin` does.",
        .path.display()
    )]
    NotAServer { path: PathBuf, reason: String },

    #[error(
        "{} is PostgreSQL {version}, which is too old. Install version {OLDEST_MAJOR} or newer.",
        .path.display()
    )]
    TooOld { path: PathBuf, version: Version },

    #[error(
        "The database in {} was made by PostgreSQL {made_by} and only a server of version {made_by} can open it; \
         found: {found}. Install PostgreSQL {made_by} or name its directory; to move to another version, upgrade \
         the database with pg_upgrade first.",
        .cluster.display()
    )]
    WrongVersion { cluster: PathBuf, made_by: u16, found: String },

    #[error(
        "{} is there but holds no PostgreSQL database ({reason}). Something damaged it or put it there: restore it \
         from a backup, or move it away to begin with an empty database.",
        .cluster.display()
    )]
    NotACluster { cluster: PathBuf, reason: String },

    #[error(
        "{} is in use by {}. Only one instance can run on a directory: stop that one, or choose another directory.",
        .data_dir.display(), .pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    AlreadyRunning { data_dir: PathBuf, pid: Option<u32> },

    #[error("No server is running on {}. Start it with `gpuaasd up --data-dir {}` first.", .data_dir.display(), .data_dir.display())]
    NotRunning { data_dir: PathBuf },

    #[error("Could not {doing} {}: {source}.", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },

    #[error("The database in {} belongs to user id {owner}: {reason}.", .cluster.display())]
    ForeignCluster { cluster: PathBuf, owner: u32, reason: &'static str },

    #[error(
        "PostgreSQL refuses to run as root, and there is neither a user `postgres` nor a user `nobody` to run it \
         as. Create one: useradd --system postgres."
    )]
    NoAccount,

    #[error(
        "PostgreSQL would run as user {account}, who may not pass through the directory {0}. Open it (chmod o+x {0}) \
         or use a directory somewhere else.",
        .directory.display()
    )]
    ClosedDirectory { directory: PathBuf, account: String },

    #[error(
        "The superuser's password is missing: {} is gone, while the database it belongs to is still there. Restore \
         that file from a backup.",
        .path.display()
    )]
    PasswordLost { path: PathBuf },

    #[error("PostgreSQL could not make a new database in {} ({status}). {said}", .cluster.display())]
    InitialisationFailed { cluster: PathBuf, status: String, said: LogTail },

    #[error("PostgreSQL did not start ({status}). {said}")]
    StartFailed { status: String, said: LogTail },

    #[error("PostgreSQL was not ready after {seconds} s, so it was stopped again. {said}")]
    StartTimeout { seconds: u64, said: LogTail },

    #[error("PostgreSQL ended by itself ({status}). {said}")]
    Died { status: String, said: LogTail },

    #[error(
        "PostgreSQL (process {}) works on {} and did not stop within {seconds} s of being told to. See what it is \
         waiting for (a hanging disk?), stop it by hand, then start again.",
        .pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "), .cluster.display()
    )]
    DoesNotStop { cluster: PathBuf, pids: Vec<u32>, seconds: u64 },
}

impl PostgresError {
    /// For `map_err` on a file operation: names what was being done and to what.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

/// At most so much of a log goes into an error.
const TAIL_BYTES: u64 = 4096;
const TAIL_LINES: usize = 12;

/// The end of what PostgreSQL said since a given moment, and what to do about it.
#[derive(Debug)]
pub struct LogTail {
    path: PathBuf,
    lines: String,
}

impl LogTail {
    /// Reads the log from `since` (the length it had before); a log that cannot be read is an empty one, because
    /// this is already the telling of another failure.
    pub(crate) fn read(path: &Path, since: u64) -> Self {
        let lines = tail(path, since).unwrap_or_default();
        Self { path: path.to_owned(), lines }
    }
}

impl std::fmt::Display for LogTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (remedy(&self.lines), self.lines.is_empty()) {
            (_, true) => write!(f, "It said nothing; its log is {}.", self.path.display()),
            (Some(remedy), false) => {
                write!(f, "{remedy} The last it said, in {}:\n{}", self.path.display(), self.lines)
            }
            (None, false) => write!(f, "The last it said, in {}:\n{}", self.path.display(), self.lines),
        }
    }
}

fn tail(path: &Path, since: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(since.max(length.saturating_sub(TAIL_BYTES))))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

/// What to do about the failures people really meet, told apart by PostgreSQL's own words (we set `lc_messages` to
/// C, so they are always these). The order matters: exhausted shared memory also says "no space left on device".
fn remedy(said: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 8] = [
        (
            "could not create shared memory segment",
            "Raise the kernel's limits kernel.shmmni and kernel.shmall.",
        ),
        ("could not resize shared memory segment", "Give /dev/shm more room."),
        ("No space left on device", "The disk is full: free some space, then start again."),
        ("could not map anonymous shared memory", "Free some memory or lower shared_buffers."),
        ("invalid value for parameter", "Correct that setting."),
        ("unrecognized configuration parameter", "Remove that setting: this version does not know it."),
        ("could not locate a valid checkpoint record", "The database is damaged: restore it from a backup."),
        ("Permission denied", "Give the account that runs PostgreSQL access to that file."),
    ];
    KNOWN.iter().find(|(words, _)| said.contains(words)).map(|(_, remedy)| *remedy)
}

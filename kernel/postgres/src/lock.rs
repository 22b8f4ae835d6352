//! One process per data directory.
//!
//! A lock by `flock` rather than a pid file: the kernel gives it up when the holder dies, however it dies, so there
//! is no stale lock to judge. The pid inside is for the message only. The file stays when the lock goes, because
//! removing it would let two processes each hold the lock of "the" file.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{PostgresError, Result};
use crate::layout::create_passable;

const ATTEMPTS: u32 = 100;
const ATTEMPTS_IF_ALIVE: u32 = 25;
const PAUSE: Duration = Duration::from_millis(20);

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Proof that this process owns a data directory; given up when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct DataDirLock {
    data_dir: PathBuf,
    _held: Arc<Held>,
}

impl DataDirLock {
    /// Takes the lock, making the directory if need be.
    pub fn acquire(data_dir: &Path) -> Result<Self> {
        Self::acquire_patiently(data_dir, || std::thread::sleep(PAUSE))
    }

    /// Tries again after each `pause`: a holder that was just killed keeps the lock until the kernel has cleared it away,
    /// and until then it may look alive.
    pub(crate) fn acquire_patiently(data_dir: &Path, mut pause: impl FnMut()) -> Result<Self> {
        create_passable(data_dir)?;
        let data_dir = data_dir.canonicalize().map_err(PostgresError::io("find", data_dir))?;
        let path = data_dir.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(PostgresError::io("open", &path))?;
        for attempt in 1.. {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {
                    let pid = holder(&mut file);
                    let most = if pid.is_none_or(is_alive) { ATTEMPTS_IF_ALIVE } else { ATTEMPTS };
                    if attempt >= most {
                        return Err(PostgresError::AlreadyRunning { data_dir, pid });
                    }
                    pause();
                }
                Err(error) => return Err(PostgresError::io("lock", &path)(error.into())),
            }
        }
        let note = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        note(&mut file).map_err(PostgresError::io("write", &path))?;
        Ok(Self { data_dir, _held: Arc::new(Held(file)) })
    }

    /// The directory, as an absolute path without links.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }
}

#[derive(Debug)]
struct Held(File);

impl Drop for Held {
    /// Given up explicitly: closing the file is not enough while a child, forked by another thread at this very
    /// moment and not yet executing its program, has it open too.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.0, FlockOperation::Unlock) {
            tracing::warn!(%error, "could not give up the lock of the data directory");
        }
    }
}

/// Who holds the lock, by its own word; unknown in the instant before it has written that down.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

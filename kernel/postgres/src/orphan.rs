//! What a predecessor left running on the cluster, and how it is brought to an end.
//!
//! We hold the data directory's lock, so whoever started a server that still runs here is gone. It is **stopped,
//! not adopted**: it normally is stopping already (its parent-death signal has reached it), it may have been
//! started with other settings or by another minor version's program, and it would not die with us, being nobody's
//! child. A restart costs a few tenths of a second; an adopted server would be a second kind of server for good.
//!
//! Which processes those are, the kernel tells: every PostgreSQL process works in the directory of its cluster and
//! is named `postgres`. The pid in `postmaster.pid` tells nothing: after a crash of the machine that number may be
//! anybody's. This also finds the children of a server that was itself killed; they take a moment to notice, and a
//! new server refuses to start as long as one of them holds the shared memory.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{PostgresError, Result};
use crate::layout::remove_if_there;
use crate::process::{ProcessHandle, STOP_TIMEOUT_SECONDS};

/// Brings every PostgreSQL process that works in `directory` to an end.
pub(crate) async fn end_all(directory: &Path) -> Result<()> {
    let io = || PostgresError::io("look for what still runs on", directory);
    let found = working_in(directory).map_err(io())?;
    let leaders: Vec<u32> = found.iter().filter(|process| process.leads(&found)).map(Process::pid).collect();
    for pid in &leaders {
        tracing::warn!(pid, directory = %directory.display(), "stopping a PostgreSQL that a former run left behind");
    }
    let mut staying = Vec::new();
    // The leaders first: when a server has ended, all its processes have.
    for process in found.iter().filter(|process| leaders.contains(&process.pid())) {
        if !process.handle.stop_server().await.map_err(io())? {
            staying.push(process.pid());
        }
    }
    if staying.is_empty() {
        return Ok(());
    }
    Err(PostgresError::DoesNotStop {
        cluster: directory.to_owned(),
        pids: staying,
        seconds: STOP_TIMEOUT_SECONDS,
    })
}

/// Removes a lock file of PostgreSQL's that names a live process. Called when no PostgreSQL works on the cluster,
/// so that process is an unrelated one to which the number has passed; PostgreSQL would take it for a server and
/// refuse to start. A file that names a dead process stays: PostgreSQL sees that itself, and checks the shared
/// memory by what else the file says.
pub(crate) fn remove_misleading_lock(path: &Path) -> Result<()> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(PostgresError::io("read", path)(error)),
    };
    let pid: Option<u32> = text.lines().next().and_then(|line| line.trim().parse().ok());
    let Some(pid) = pid.filter(|pid| Path::new("/proc").join(pid.to_string()).exists()) else {
        return Ok(());
    };
    tracing::info!(pid, path = %path.display(), "removing a lock file that names an unrelated process");
    remove_if_there(path).map_err(PostgresError::io("remove", path))
}

struct Process {
    handle: ProcessHandle,
    parent: u32,
}

impl Process {
    fn pid(&self) -> u32 {
        self.handle.pid()
    }

    /// A server, or a process whose server is gone; a SIGINT only cancels what the latter is doing.
    fn leads(&self, all: &[Self]) -> bool {
        !all.iter().any(|other| other.pid() == self.parent)
    }
}

fn working_in(directory: &Path) -> io::Result<Vec<Process>> {
    let directory = match fs::metadata(directory) {
        Ok(directory) => directory,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if parent_if_working_in(&entry.path(), &directory).is_none() {
            continue;
        }
        // Asked once more with the process in hand: between the first answer and the handle, the number may have
        // passed to another process.
        let Some(handle) = ProcessHandle::open(pid)? else { continue };
        if let Some(parent) = parent_if_working_in(&entry.path(), &directory) {
            found.push(Process { handle, parent });
        }
    }
    Ok(found)
}

/// The parent of the process described in `/proc/PID`, if that is a `postgres` working in `directory`. A process
/// that we may not look at is not ours. Compared by device and inode, so that links and bind mounts do not matter.
fn parent_if_working_in(process: &Path, directory: &fs::Metadata) -> Option<u32> {
    let works_in = fs::metadata(process.join("cwd")).ok()?;
    if (works_in.dev(), works_in.ino()) != (directory.dev(), directory.ino()) {
        return None;
    }
    let status = fs::read_to_string(process.join("status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if field("Name:") != Some("postgres") {
        return None;
    }
    field("PPid:")?.parse().ok()
}

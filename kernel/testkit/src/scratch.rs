//! A directory of one test, gone at its end.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use types::{Entropy as _, SystemEntropy};

pub struct Scratch {
    path: PathBuf,
    /// Closed when we end, however we end.
    _lifeline: Option<std::process::ChildStdin>,
}

/// Waits for its input to end, which is when the test process has; then for a PostgreSQL in the directory, which
/// dies of the same, and removes everything.
const SWEEPER: &str = r#"
cat >/dev/null
tries=0
while [ -e "$1/postgres/cluster/postmaster.pid" ] && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
rm -rf "$1""#;

/// A file system in memory, if the machine has one with room. Copying a database there costs 30 ms; on the build
/// machine's disk, which is asked to forget 300 files a moment later, 200 ms and more.
const MEMORY: &str = "/dev/shm";
const MEMORY_MIN_BYTES: u64 = 2 * 1024 * 1024 * 1024;

impl Scratch {
    /// A new directory that other accounts may pass through: PostgreSQL does not run as root.
    pub fn new(name: &str) -> Self {
        Self::below(&std::env::temp_dir(), name)
    }

    /// The same in memory, where that is possible.
    pub fn in_memory(name: &str) -> Self {
        let has_room = rustix::fs::statvfs(MEMORY)
            .is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= MEMORY_MIN_BYTES);
        if has_room { Self::below(Path::new(MEMORY), name) } else { Self::new(name) }
    }

    fn below(parent: &Path, name: &str) -> Self {
        let mut bytes = [0u8; 6];
        SystemEntropy.fill(&mut bytes);
        let suffix: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = parent.join(format!("gpuaas-{name}-{suffix}"));
        fs::create_dir(&path).expect("make a scratch directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).expect("open the scratch directory");
        let lifeline = sweep_after_us(&path).expect("start the sweeper of a scratch directory");
        Self { path, _lifeline: lifeline }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn sweep_after_us(path: &Path) -> io::Result<Option<std::process::ChildStdin>> {
    let mut sweeper = Command::new("/bin/sh")
        .args(["-c", SWEEPER, "sweeper"])
        .arg(path)
        .current_dir("/")
        // Of its own, so that Ctrl-C ends the tests and not those who clean up after them.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let lifeline = sweeper.stdin.take();
    // Reaped by a thread of its own: it may end at once, with this scratch, or long after.
    std::thread::spawn(move || sweeper.wait());
    Ok(lifeline)
}

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

impl Scratch {
    /// A new directory that other accounts may pass through: PostgreSQL does not run as root.
    pub fn new(name: &str) -> Self {
        let mut bytes = [0u8; 6];
        SystemEntropy.fill(&mut bytes);
        let suffix: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("gpuaas-{name}-{suffix}"));
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

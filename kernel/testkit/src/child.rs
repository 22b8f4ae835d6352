//! A process a test started: it can be killed without mercy, and never outlives the test.
//!
//! As in `postgres_server`, a thread of its own spawns the process and waits for it: the parent-death signal is sent
//! when the *thread* that forked ends, and a thread of tokio's may end before the test does.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;

use crate::eventually::DEADLINE;

pub struct Child {
    name: String,
    pid: u32,
    pidfd: OwnedFd,
    log: PathBuf,
    ending: watch::Receiver<Option<ExitStatus>>,
}

impl Child {
    /// Starts a program. What it says goes to `log`, and into the message of a failing test.
    pub fn spawn(program: &Path, arguments: &[&str], environment: &[(&str, &str)], log: &Path) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let said = File::create(log).expect("make a log file");
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("clone a log file"))
            .stderr(said);
        let (started, start) = mpsc::channel();
        let (ended, ending) = watch::channel(None);
        std::thread::spawn(move || keep(command, &started, &ended));
        let (pid, pidfd) = start
            .recv()
            .expect("the keeper answers")
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { name, pid, pidfd, log: log.to_owned(), ending }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// `kill -9`, and waits until the process is gone.
    pub async fn kill(&self) {
        self.signal(Signal::KILL);
        self.ended().await;
    }

    /// Asks it to end, as a service manager would, and waits.
    pub async fn terminate(&self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    pub fn signal(&self, signal: Signal) {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => panic!("{} cannot be signalled: {error}", self.name),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ending.borrow().is_some()
    }

    pub async fn ended(&self) -> ExitStatus {
        let mut ending = self.ending.clone();
        let waited = tokio::time::timeout(DEADLINE, ending.wait_for(Option::is_some)).await;
        match waited {
            Ok(Ok(status)) => status.expect("waited for"),
            _ => panic!("{} does not end.\n{}", self.name, self.said()),
        }
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

type Started = std::io::Result<(u32, OwnedFd)>;

fn keep(mut command: Command, started: &mpsc::Sender<Started>, ended: &watch::Sender<Option<ExitStatus>>) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    // We have not waited for it yet, so the number is still its own.
    let number = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    let pidfd = pidfd_open(number, PidfdFlags::empty()).map_err(std::io::Error::from);
    let _ = started.send(pidfd.map(|pidfd| (child.id(), pidfd)));
    let status = child.wait().expect("wait for a child");
    ended.send_replace(Some(status));
}

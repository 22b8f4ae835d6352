//! A child process that does not outlive us, and handles by which processes are signalled and waited for.
//!
//! Every child has a **keeper**: a thread that spawns it and then does nothing but wait for it. The kernel sends
//! the parent-death signal when the *thread* that forked ends, not the process; a thread of tokio's pool may end
//! after ten idle seconds and would take the database with it. The keeper cannot end before its child, and
//! ends with our process however that dies, `kill -9` included. The signal is set by `setpriv` after the change of
//! account (which would clear it), because setting it ourselves between fork and exec needs unsafe code. Two gaps
//! remain, and `orphan` closes both at the next start: we may be killed in the instant before `setpriv` has set the
//! signal, and a machine may lack `setpriv`.
//!
//! Processes are held by pidfd, never by number: a number may belong to another program by the time it is used.
//!
//! Children get a process group of their own, so that Ctrl-C in a terminal reaches us and not the database under
//! our feet, and a bare environment, so that no `PG…` variable of the operator's shell changes what they do.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::account::Account;

const SETPRIV: [&str; 2] = ["/usr/bin/setpriv", "/bin/setpriv"];

/// Between two looks at whether a process has ended.
const END_POLL: Duration = Duration::from_millis(3);
/// A fast shutdown rolls back, writes a checkpoint and ends; a large one takes its time on a slow disk.
const FAST_STOP_TIMEOUT: Duration = Duration::from_secs(45);
/// An immediate shutdown only waits for the server's own processes to go.
const IMMEDIATE_STOP_TIMEOUT: Duration = Duration::from_secs(15);
pub(crate) const STOP_TIMEOUT_SECONDS: u64 = FAST_STOP_TIMEOUT.as_secs() + IMMEDIATE_STOP_TIMEOUT.as_secs();

/// A running process, ours or not.
pub(crate) struct ProcessHandle {
    pid: u32,
    pidfd: OwnedFd,
}

impl ProcessHandle {
    /// `None` if there is no such process.
    pub(crate) fn open(pid: u32) -> io::Result<Option<Self>> {
        let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match pidfd_open(number, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Some(Self { pid, pidfd })),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal; one to a process that has ended goes nowhere.
    pub(crate) fn signal(&self, signal: Signal) {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(pid = self.pid, ?signal, %error, "could not signal PostgreSQL"),
        }
    }

    /// Waits until the process has ended, at most for `limit`; tells whether it has. By looking again and again:
    /// tokio can wait for a descriptor that is not a socket only through unsafe code.
    pub(crate) async fn ended_within(&self, limit: Duration) -> io::Result<bool> {
        let begun = Instant::now();
        while !self.has_ended()? {
            if begun.elapsed() >= limit {
                return Ok(false);
            }
            sleep(END_POLL).await;
        }
        Ok(true)
    }

    /// A pidfd becomes readable when its process ends.
    fn has_ended(&self) -> io::Result<bool> {
        let mut watched = [PollFd::new(&self.pidfd, PollFlags::IN)];
        match poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Stops a PostgreSQL server: first fast (SIGINT: sessions end, a checkpoint is written), then at once (SIGQUIT:
    /// the next start recovers from the log of changes). Never by SIGKILL, which leaves its processes behind.
    pub(crate) async fn stop_server(&self) -> io::Result<bool> {
        self.signal(Signal::INT);
        if self.ended_within(FAST_STOP_TIMEOUT).await? {
            return Ok(true);
        }
        tracing::warn!(pid = self.pid, "PostgreSQL is slow to stop; stopping it at once");
        self.signal(Signal::QUIT);
        self.ended_within(IMMEDIATE_STOP_TIMEOUT).await
    }
}

/// What a child is started with.
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<std::ffi::OsString>,
    pub(crate) account: &'a Account,
    /// Takes both its standard output and its standard error.
    pub(crate) log: File,
    /// What the child gets when we die or drop it.
    pub(crate) last_signal: Signal,
}

/// How a child ended; unknown when another part of the program has reaped it.
pub(crate) type Ending = Option<ExitStatus>;

/// A child with its keeper. Dropping it sends the last signal and does not wait.
pub(crate) struct Child {
    handle: ProcessHandle,
    ending: watch::Receiver<Option<Ending>>,
    last_signal: Signal,
}

impl Child {
    pub(crate) async fn spawn(launch: Launch<'_>) -> io::Result<Self> {
        let last_signal = launch.last_signal;
        let command = command(launch)?;
        let (started, start) = oneshot::channel();
        let (ended, ending) = watch::channel(None);
        thread::Builder::new()
            .name("postgres-keeper".to_owned())
            .spawn(move || keep(command, last_signal, started, &ended))?;
        let handle = start.await.map_err(io::Error::other)??;
        Ok(Self { handle, ending, last_signal })
    }

    pub(crate) fn handle(&self) -> &ProcessHandle {
        &self.handle
    }

    /// Waits until the child has ended and is reaped.
    pub(crate) async fn wait(&self) -> Ending {
        let mut ending = self.ending.clone();
        ending.wait_for(Option::is_some).await.ok().and_then(|ending| ending.flatten())
    }

    /// How it ended, if it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        *self.ending.borrow()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ending().is_none() {
            self.handle.signal(self.last_signal);
        }
    }
}

/// An ending in words.
pub(crate) fn describe(ending: Ending) -> String {
    ending.map_or_else(|| "how it ended is unknown".to_owned(), |status| status.to_string())
}

fn command(launch: Launch<'_>) -> io::Result<Command> {
    let mut command = match SETPRIV.iter().map(Path::new).find(|path| path.exists()) {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.arg("--pdeathsig").arg(signal_name(launch.last_signal)).arg("--").arg(launch.program);
            command
        }
        None => {
            tracing::warn!("there is no setpriv (package util-linux): if we are killed, PostgreSQL runs on");
            Command::new(launch.program)
        }
    };
    launch.account.run(&mut command);
    command
        .args(launch.arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(launch.log.try_clone()?)
        .stderr(launch.log);
    Ok(command)
}

fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "INT",
        Signal::QUIT => "QUIT",
        _ => "KILL",
    }
}

/// The keeper's life.
fn keep(
    mut command: Command,
    last_signal: Signal,
    started: oneshot::Sender<io::Result<ProcessHandle>>,
    ended: &watch::Sender<Option<Ending>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let handle = match ProcessHandle::open(child.id()) {
        Ok(Some(handle)) => Ok(handle),
        Ok(None) => Err(io::Error::other("the process ended before it could be watched")),
        Err(error) => Err(error),
    };
    if handle.is_err() {
        // What cannot be watched must not run.
        let _ = child.kill();
    }
    if let Err(Ok(handle)) = started.send(handle) {
        // Nobody waits for it any more.
        handle.signal(last_signal);
    }
    let status = child.wait();
    ended.send_replace(Some(status.ok()));
}

//! The server under test: `gpuaasd up` as a child process, and how fast it came up.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::Result;
use crate::client::Connection;
use crate::cpu::Processes;

/// What the server logs once PostgreSQL takes connections (kernel/postgres).
const POSTGRES_READY: &str = "PostgreSQL is ready";
// fixed: a first start runs initdb, which may take its time on a slow disk
const START_PATIENCE: Duration = Duration::from_secs(120);
// fixed: between two attempts to connect to a port that is not open yet
const PAUSE: Duration = Duration::from_millis(1);

/// The limits that exist to stop what this program does. Everything else is as shipped.
const SETTINGS: [&str; 2] = ["web.reads_per_second=1000000", "web.writes_per_second=1000000"];

pub struct Gpuaasd {
    process: Child,
    log: Receiver<(Instant, String)>,
    data_dir: PathBuf,
    pub address: SocketAddr,
    pub ready: Ready,
    pub key: String,
    pub times: StartTimes,
}

/// The ready file, as far as we need it.
#[derive(Debug, Deserialize)]
pub struct Ready {
    pub operator_key_file: PathBuf,
    pub org: String,
}

#[derive(Debug, Clone, Copy)]
pub struct StartTimes {
    /// From the start of the process to its first healthy answer.
    pub whole: Duration,
    /// From "PostgreSQL is ready" to there.
    pub after_postgres: Duration,
}

impl Gpuaasd {
    /// Starts the server on `data_dir` and returns when it has answered that it is healthy.
    pub fn start(program: &Path, data_dir: &Path) -> Result<Self> {
        let ready_file = data_dir.join("ready.json");
        // A free port, known beforehand so that the first answer can be waited for.
        let address = free_address()?;
        let mut command = Command::new(program);
        command.args(["up", "--node-listen", "127.0.0.1:0", "--log-format", "json", "--listen"]);
        command.arg(address.to_string()).arg("--data-dir").arg(data_dir).arg("--ready-file").arg(&ready_file);
        for setting in SETTINGS {
            command.args(["--setting", setting]);
        }
        command.env_remove("DATABASE_URL").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let begun = Instant::now();
        let mut process = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let log = follow_log(&mut process)?;
        let healthy = match wait_until_healthy(&mut process, address, begun) {
            Ok(healthy) => healthy,
            Err(broken) => return Err(give_up(process, &log, &broken.to_string()).into()),
        };
        let postgres = log.try_iter().find(|(_, line)| line.contains(POSTGRES_READY));
        let (postgres, _) = postgres.ok_or("gpuaasd did not say when PostgreSQL was ready")?;
        let ready: Ready = serde_json::from_str(&wait_for_file(&ready_file, begun)?)?;
        let key = fs::read_to_string(&ready.operator_key_file)?.trim().to_owned();
        let times = StartTimes { whole: healthy - begun, after_postgres: healthy - postgres };
        Ok(Self { process, log, data_dir: data_dir.to_owned(), address, ready, key, times })
    }

    /// Stops the server in order and waits for its end.
    pub fn stop(mut self) -> Result<()> {
        self.terminate();
        let status = self.process.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(format!("gpuaasd ended with {status}: {}", said(&self.log)).into())
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn processes(&self) -> Result<Processes> {
        Ok(Processes { server: Some(self.pid()), postmaster: Some(self.postmaster()?) })
    }

    pub fn postmaster(&self) -> Result<u32> {
        let text = fs::read_to_string(self.data_dir.join("postgres/cluster/postmaster.pid"))?;
        Ok(text.lines().next().unwrap_or("").trim().parse()?)
    }

    /// The way into its PostgreSQL, as the superuser.
    pub fn admin(&self) -> Result<tokio_postgres::Config> {
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.data_dir.join("postgres/socket")).user("postgres").dbname("postgres");
        config.password(fs::read_to_string(self.data_dir.join("postgres/password"))?.trim());
        Ok(config)
    }

    fn terminate(&self) {
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
}

impl Drop for Gpuaasd {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.terminate();
            let _ = self.process.wait();
        }
    }
}

/// A port of this machine that nobody uses.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

/// Passes on what the server logs, with the time each line came; also keeps its pipe from filling.
fn follow_log(process: &mut Child) -> Result<Receiver<(Instant, String)>> {
    let output = process.stderr.take().ok_or("gpuaasd has no standard error")?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
            if sender.send((Instant::now(), line)).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// The listener is bound long before it is served, so the first request mostly waits in the kernel's queue and is
/// answered the moment there is somebody to answer.
fn wait_until_healthy(process: &mut Child, address: SocketAddr, begun: Instant) -> Result<Instant> {
    while begun.elapsed() < START_PATIENCE {
        if let Some(status) = process.try_wait()? {
            return Err(format!("gpuaasd ended with {status} before it was ready").into());
        }
        if let Ok(mut connection) = Connection::open(address)
            && connection.succeed(b"GET /internal/readyz HTTP/1.1\r\nhost: bench\r\n\r\n").is_ok()
        {
            return Ok(Instant::now());
        }
        std::thread::sleep(PAUSE);
    }
    Err("gpuaasd was not healthy in time".into())
}

fn wait_for_file(path: &Path, begun: Instant) -> Result<String> {
    loop {
        match fs::read_to_string(path) {
            Ok(text) => return Ok(text),
            Err(error) if begun.elapsed() > START_PATIENCE => {
                return Err(format!("{}: {error}", path.display()).into());
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn give_up(mut process: Child, log: &Receiver<(Instant, String)>, broken: &str) -> String {
    let _ = process.kill();
    let _ = process.wait();
    format!("{broken}. It said: {}", said(log))
}

fn said(log: &Receiver<(Instant, String)>) -> String {
    let lines: Vec<String> = log.try_iter().map(|(_, line)| line).collect();
    lines.iter().rev().take(5).rev().cloned().collect::<Vec<_>>().join("\n")
}

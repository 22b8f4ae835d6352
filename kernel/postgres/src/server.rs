//! A running server, from the first poll for readiness to the last wait for its end.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::net::UnixStream;
use types::Secret;

use crate::account::Account;
use crate::binaries::{Binaries, Version, cluster_major};
use crate::error::{LogTail, PostgresError, Result};
use crate::layout::{Layout, create_passable};
use crate::lock::DataDirLock;
use crate::process::{Child, Launch, STOP_TIMEOUT_SECONDS, describe};
use crate::{configuration, initialise, orphan, password, socket};

/// The cluster's superuser.
pub const SUPERUSER: &str = "postgres";
/// Not a TCP port (there is none), only the number in the socket's name.
pub const PORT: u16 = 5432;

/// Recovery after a crash replays at most a checkpoint's distance of changes: seconds, on a slow disk minutes.
/// Giving up earlier would stop the recovery and begin it anew with the next start, for ever.
const START_TIMEOUT: Duration = Duration::from_secs(600);
/// Between two looks at a file of a few bytes.
const READY_POLL: Duration = Duration::from_millis(3);
/// How often a long start says that it is still at it.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// The line of `postmaster.pid` with the server's state, and what it says when connections are accepted.
const STATUS_LINE: usize = 7;
const STATUS_READY: &str = "ready";

/// How to start a server.
#[derive(Debug, Clone)]
pub struct Options {
    pub binaries: Binaries,
    /// Additions to `postgresql.conf`, by name and unquoted value; they outrank our own.
    pub settings: Vec<(String, String)>,
    /// `false` for clusters that tests throw away: nothing waits for the disk.
    pub durable: bool,
}

/// A running server. [`stop`](Self::stop) ends it in order; dropping it only tells it to end.
pub struct Server {
    child: Child,
    layout: Layout,
    socket_dir: PathBuf,
    password: Secret,
    version: Version,
    log_begins: u64,
    options: Options,
    /// As long as the server runs, the directory is taken.
    lock: DataDirLock,
}

impl Server {
    /// Starts the server of a data directory and returns when it accepts connections. Makes the cluster if there is
    /// none; ends what a former run left running. Dropping the future ends whatever it had started.
    pub async fn start(lock: &DataDirLock, options: Options) -> Result<Self> {
        let begun = Instant::now();
        let layout = Layout::of(lock.data_dir());
        let Options { binaries, settings, durable } = options.clone();
        let account = Account::for_cluster(&layout.cluster())?;
        create_passable(layout.root())?;
        account.check_way_to(layout.root())?;
        account.check_way_to(binaries.directory())?;

        orphan::end_all(&layout.cluster()).await?;
        match cluster_major(&layout.cluster())? {
            None => initialise::initialise(&layout, &binaries, &account, durable).await?,
            Some(made_by) if made_by == binaries.version().major => {}
            Some(made_by) => {
                let (cluster, found) = (layout.cluster(), binaries.to_string());
                return Err(PostgresError::WrongVersion { cluster, made_by, found });
            }
        }
        orphan::remove_misleading_lock(&layout.cluster().join("postmaster.pid"))?;
        let password = password::read(&layout)?;
        let socket_dir = socket::prepare(&layout, &account)?;
        configuration::write(&layout, &settings, durable)?;

        let (log, log_begins) = layout.open_log()?;
        let program = binaries.program("postgres");
        let launch = Launch {
            program: &program,
            arguments: configuration::arguments(&layout, &socket_dir),
            account: &account,
            log,
            // Nobody misses the checkpoint of a cluster that is thrown away.
            last_signal: if durable { Signal::INT } else { Signal::QUIT },
        };
        let child = Child::spawn(launch).await.map_err(PostgresError::io("start", &program))?;
        let version = binaries.version();
        let lock = lock.clone();
        let server = Self { child, layout, socket_dir, password, version, log_begins, options, lock };
        server.wait_until_ready().await?;
        tracing::info!(%version, pid = server.pid(), elapsed_ms = begun.elapsed().as_millis(), "PostgreSQL is ready");
        Ok(server)
    }

    /// Stops the server in order (sessions end, a checkpoint is written) and waits until it is gone. Bounded: if
    /// that takes too long, the server is stopped at once, which costs the next start a recovery but no data.
    pub async fn stop(self) -> Result<()> {
        let cluster = self.layout.cluster();
        let stopped = self.child.handle().stop_server().await;
        if !stopped.map_err(PostgresError::io("wait for the end of the server on", &cluster))? {
            let (pids, seconds) = (vec![self.pid()], STOP_TIMEOUT_SECONDS);
            return Err(PostgresError::DoesNotStop { cluster, pids, seconds });
        }
        let ending = self.child.wait().await;
        tracing::info!(status = describe(ending), "PostgreSQL has stopped");
        socket::clean_up(&self.layout, &self.socket_dir)
    }

    /// Resolves when the server ends without having been told to by us, with the error to report. For `select!`
    /// beside whatever needs the database.
    pub async fn failure(&self) -> PostgresError {
        let ending = self.child.wait().await;
        PostgresError::Died { status: describe(ending), said: self.said() }
    }

    /// Starts a server that has ended anew, in the same place: clients find it where it was.
    pub async fn restart(&mut self) -> Result<()> {
        *self = Self::start(&self.lock, self.options.clone()).await?;
        Ok(())
    }

    /// The directory to give to a client as its host.
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    pub fn port(&self) -> u16 {
        PORT
    }

    /// The password of [`SUPERUSER`].
    pub fn password(&self) -> &Secret {
        &self.password
    }

    /// Where that password is kept.
    pub fn password_file(&self) -> PathBuf {
        self.layout.password()
    }

    pub fn version(&self) -> Version {
        self.version
    }

    pub fn pid(&self) -> u32 {
        self.child.handle().pid()
    }

    /// Where the server writes its log.
    pub fn log_file(&self) -> PathBuf {
        self.layout.log()
    }

    /// Everything a client needs but the password, so that it may be logged and shown.
    pub fn connection_string(&self, user: &str, database: &str) -> String {
        let host = quoted(&self.socket_dir.to_string_lossy());
        format!("host={host} port={PORT} user={} dbname={}", quoted(user), quoted(database))
    }

    async fn wait_until_ready(&self) -> Result<()> {
        let begun = Instant::now();
        let mut next_progress = PROGRESS_INTERVAL;
        let socket = socket::socket_in(&self.socket_dir);
        loop {
            if let Some(ending) = self.child.ending() {
                return Err(PostgresError::StartFailed { status: describe(ending), said: self.said() });
            }
            if self.says_ready() && UnixStream::connect(&socket).await.is_ok() {
                return Ok(());
            }
            if begun.elapsed() >= START_TIMEOUT {
                return Err(PostgresError::StartTimeout {
                    seconds: START_TIMEOUT.as_secs(),
                    said: self.said(),
                });
            }
            if begun.elapsed() >= next_progress {
                tracing::info!(elapsed_s = begun.elapsed().as_secs(), "PostgreSQL is still starting");
                next_progress += PROGRESS_INTERVAL;
            }
            tokio::select! {
                _ = self.child.wait() => {}
                () = tokio::time::sleep(READY_POLL) => {}
            }
        }
    }

    /// Whether `postmaster.pid` is this server's and says that it accepts connections.
    fn says_ready(&self) -> bool {
        let Ok(text) = fs::read_to_string(self.layout.cluster().join("postmaster.pid")) else { return false };
        let line = |number| text.lines().nth(number).map(str::trim);
        line(0) == Some(self.pid().to_string().as_str()) && line(STATUS_LINE) == Some(STATUS_READY)
    }

    fn said(&self) -> LogTail {
        LogTail::read(&self.layout.log(), self.log_begins)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("pid", &self.pid()).field("socket_dir", &self.socket_dir).finish()
    }
}

/// A value in a connection string.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

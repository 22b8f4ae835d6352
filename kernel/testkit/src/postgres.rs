//! Throwaway PostgreSQL servers: the one all tests share, and private ones for tests that break theirs.

use std::sync::{OnceLock, mpsc};

use postgres_server::{Binaries, DataDirLock, Options, SUPERUSER, Server};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Handle;
use tokio_postgres::{Client, Config};

use crate::scratch::Scratch;

/// Names the shared server, as a connection string of its superuser; set by `test-servers`.
pub(crate) const VARIABLE: &str = "GPUAAS_TEST_POSTGRES";

/// A server tests make databases on.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) admin: Config,
}

impl Cluster {
    pub(crate) async fn client(&self, database: &str) -> Client {
        let mut config = self.admin.clone();
        config.dbname(database);
        db::Target::plain(config).connect().await.expect("connect to the test server as its superuser")
    }
}

/// A runtime that lives as long as the process. Each test has its own, which ends with it; what outlives tests (the
/// shared server, the dropping of databases) runs here.
pub(crate) fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name("testkit".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))
            .expect("a thread");
        handle
    })
}

/// The server of this test run: the named one, or one of this process.
pub(crate) fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| {
        if let Ok(named) = std::env::var(VARIABLE) {
            let admin =
                named.parse().unwrap_or_else(|error| panic!("{VARIABLE} is no connection string: {error}"));
            return Cluster { admin };
        }
        let (sender, receiver) = mpsc::channel();
        runtime().spawn(async move {
            let server = PrivatePostgres::start().await;
            let _ = sender.send(server.cluster());
            // It ends with the process: by the parent-death signal, and its directory by the sweeper.
            std::mem::forget(server);
        });
        receiver.recv().expect("the shared test server starts; see the panic above")
    })
}

/// The shared server's connection string, for programs a test starts.
pub fn shared_connection() -> String {
    connection_string(&shared().admin)
}

pub(crate) fn connection_string(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(tokio_postgres::config::Host::Unix(path)) => path.display().to_string(),
        Some(tokio_postgres::config::Host::Tcp(name)) => name.clone(),
        None => panic!("the test server has no address"),
    };
    let port = config.get_ports().first().copied().unwrap_or(postgres_server::PORT);
    let password = String::from_utf8_lossy(config.get_password().unwrap_or_default()).into_owned();
    let (user, database) =
        (config.get_user().unwrap_or(SUPERUSER), config.get_dbname().unwrap_or("postgres"));
    format!("host='{host}' port={port} user='{user}' password='{password}' dbname='{database}'")
}

/// A server of one test alone, which may restart and crash it.
pub struct PrivatePostgres {
    scratch: Scratch,
    lock: DataDirLock,
    server: Option<Server>,
}

impl PrivatePostgres {
    pub async fn start() -> Self {
        let scratch = Scratch::in_memory("pg");
        let lock = DataDirLock::acquire(scratch.path()).expect("lock the scratch directory");
        let server = start(&lock).await;
        Self { scratch, lock, server: Some(server) }
    }

    /// Stops the server in order and starts it again. Sessions end with "terminating connection".
    pub async fn restart(&mut self) {
        self.server.take().expect("it runs").stop().await.expect("stop PostgreSQL");
        self.server = Some(start(&self.lock).await);
    }

    /// Ends the server at once, without a checkpoint, and starts it again: it has to recover.
    pub async fn crash(&mut self) {
        let server = self.server.take().expect("it runs");
        let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, Signal::QUIT).expect("signal PostgreSQL");
        server.failure().await;
        drop(server);
        self.server = Some(start(&self.lock).await);
    }

    pub async fn stop(mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await.expect("stop PostgreSQL");
        }
    }

    /// Everything a client needs, the password included.
    pub fn connection(&self) -> String {
        connection_string(&self.cluster().admin)
    }

    pub(crate) fn cluster(&self) -> Cluster {
        let server = self.server.as_ref().expect("it runs");
        let mut admin = Config::new();
        admin.host_path(server.socket_dir()).port(server.port()).user(SUPERUSER);
        admin.password(server.password().expose()).dbname("postgres");
        Cluster { admin }
    }

    pub fn directory(&self) -> &std::path::Path {
        self.scratch.path()
    }
}

async fn start(lock: &DataDirLock) -> Server {
    let named = std::env::var_os("GPUAAS_POSTGRES_DIR");
    let mut candidates = Binaries::installed().await;
    if let Some(directory) = named {
        candidates.push(Binaries::at(directory.as_ref()).await.expect("GPUAAS_POSTGRES_DIR is a PostgreSQL"));
    }
    let binaries = Binaries::for_cluster(lock.data_dir(), &candidates)
        .expect("a PostgreSQL server: run `tools/install postgres`, or install the package postgresql");
    let settings = [
        ("max_connections", "400"),
        ("shared_buffers", "128MB"),
        // Tests are short and their databases thrown away: nothing is worth cleaning, or remembering at a checkpoint.
        ("autovacuum", "off"),
        ("max_wal_size", "512MB"),
        ("checkpoint_timeout", "1h"),
        ("jit", "off"),
        ("log_min_messages", "panic"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Server::start(lock, Options { binaries, settings, durable: false }).await.expect("start PostgreSQL")
}

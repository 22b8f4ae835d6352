//! A wire between the pool and PostgreSQL that counts round trips and breaks at the worst moment.
//!
//! What a round trip is, only the client's waiting tells: messages sent one after the other without waiting are one.
//! So the proxy keeps answers back until the client has been silent for a while. By then it has sent all it could
//! without an answer, and each delivery ends one round trip. (Counting changes of direction on a fast socket would
//! count pipelined statements as often as the server happened to answer early; the server's own statistics know
//! statements, not waiting.)

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use db::Target;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio_postgres::config::Host;

use crate::postgres::shared;
use crate::scratch::Scratch;

/// How long a client must be silent before it counts as waiting. Its own pauses between two pipelined messages are
/// microseconds; a busy machine's are not.
const SILENCE: Duration = Duration::from_millis(40);

pub struct Proxy {
    scratch: Scratch,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    counting: AtomicBool,
    round_trips: AtomicUsize,
    lose_commit: AtomicBool,
    swallowing: AtomicBool,
}

impl Proxy {
    /// A proxy in front of the shared server, passing everything on until told otherwise.
    pub async fn start() -> Self {
        let scratch = Scratch::new("proxy");
        let server = socket_of(&shared().admin);
        let listener = UnixListener::bind(socket_in(scratch.path())).expect("listen on a socket");
        let state = Arc::new(State::default());
        let accepting = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server =
                    UnixStream::connect(&server).await.expect("connect to the server behind the proxy");
                tokio::spawn(carry(client, server, Arc::clone(&accepting)));
            }
        });
        Self { scratch, state }
    }

    /// Counts the round trips of `work`.
    pub async fn round_trips<T>(&self, work: impl Future<Output = T>) -> (T, usize) {
        self.state.round_trips.store(0, Ordering::SeqCst);
        self.state.counting.store(true, Ordering::SeqCst);
        let value = work.await;
        self.state.counting.store(false, Ordering::SeqCst);
        (value, self.state.round_trips.load(Ordering::SeqCst))
    }

    /// The next COMMIT reaches the server and is carried out, but its answer is lost with the connection.
    pub fn lose_next_commit_reply(&self) {
        self.state.lose_commit.store(true, Ordering::SeqCst);
    }

    /// From now on nothing arrives any more, and nobody is told: what a firewall that forgot the connection looks like.
    /// When it ends, new connections work; those it met stay dead.
    pub fn swallow(&self, everything: bool) {
        self.state.swallowing.store(everything, Ordering::SeqCst);
    }

    /// The same login and database by way of this proxy.
    pub fn redirect(&self, target: &Target) -> Target {
        let from = &target.config;
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.scratch.path()).port(postgres_server::PORT);
        config.user(from.get_user().expect("a login")).dbname(from.get_dbname().expect("a database"));
        config.password(from.get_password().unwrap_or_default());
        Target::plain(config)
    }
}

fn socket_in(directory: &Path) -> PathBuf {
    directory.join(format!(".s.PGSQL.{}", postgres_server::PORT))
}

fn socket_of(config: &tokio_postgres::Config) -> PathBuf {
    match config.get_hosts().first() {
        Some(Host::Unix(directory)) => socket_in(directory),
        other => panic!("the proxy stands before a server on a Unix socket, not {other:?}"),
    }
}

async fn carry(mut client: UnixStream, mut server: UnixStream, state: Arc<State>) {
    let (mut from_client, mut from_server) = (vec![0u8; 65_536], vec![0u8; 65_536]);
    let mut held: Vec<u8> = Vec::new();
    let mut asked = false;
    let mut losing = false;
    let mut dead = false;
    loop {
        let counting = state.counting.load(Ordering::SeqCst);
        tokio::select! {
            biased;
            read = client.read(&mut from_client) => {
                let Ok(length @ 1..) = read else { return };
                dead |= state.swallowing.load(Ordering::SeqCst);
                if dead { continue }
                let bytes = &from_client[..length];
                losing |= contains(bytes, b"COMMIT\0") && state.lose_commit.swap(false, Ordering::SeqCst);
                asked = true;
                if server.write_all(bytes).await.is_err() { return }
            }
            read = server.read(&mut from_server) => {
                let Ok(length @ 1..) = read else { return };
                dead |= state.swallowing.load(Ordering::SeqCst);
                if dead { continue }
                held.extend_from_slice(&from_server[..length]);
                // The server says that it is done; now nobody will hear it.
                if losing && contains(&held, b"COMMIT\0") { return }
            }
            () = tokio::time::sleep(if counting { SILENCE } else { Duration::ZERO }), if !held.is_empty() && !losing => {
                if counting && std::mem::take(&mut asked) {
                    state.round_trips.fetch_add(1, Ordering::SeqCst);
                }
                if client.write_all(&held).await.is_err() { return }
                held.clear();
            }
        }
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

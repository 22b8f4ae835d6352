//! The floor under any axum server: a fixed reply, no routing to speak of, no state.
//!
//! A process of its own, because CPU time is counted per process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use axum::Router;
use axum::routing::get;

use crate::Result;

/// Serves on a free port, whose address is the first line of standard output, until standard input ends: so it ends
/// with whoever started it, however that one ended.
pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let router = Router::new().route("/hello", get(async || "hello"));
        let serving = axum::serve(tap_nodelay(listener), router).into_future();
        let parent_gone =
            tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        tokio::select! {
            served = serving => Ok(served?),
            _ = parent_gone => Ok(()),
        }
    })
}

/// As our own listener does: a reply should not wait for more to come.
fn tap_nodelay(listener: tokio::net::TcpListener) -> impl axum::serve::Listener<Addr = SocketAddr> {
    use axum::serve::ListenerExt as _;
    listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    })
}

/// The hello server, running.
pub struct Hello {
    process: Child,
    pub address: SocketAddr,
}

impl Hello {
    pub fn start() -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("hello")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = process.stdout.take().ok_or("the hello server has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        Ok(Self { address: line.trim().parse()?, process })
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Hello {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

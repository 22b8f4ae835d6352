//! A real NATS server with JetStream, which tests restart and wipe.

use std::path::{Path, PathBuf};

use crate::child::Child;
use crate::eventually::eventually;
use crate::net::free_port;
use crate::scratch::Scratch;

pub struct NatsServer {
    scratch: Scratch,
    port: u16,
    child: Child,
}

impl NatsServer {
    pub async fn start() -> Self {
        let scratch = Scratch::new("nats");
        let port = free_port();
        let child = spawn(scratch.path(), port).await;
        Self { scratch, port, child }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// `kill -9`.
    pub async fn kill(&self) {
        self.child.kill().await;
    }

    /// Starts it again on the same port, with what it has on disk.
    pub async fn start_again(&mut self) {
        self.child.kill().await;
        self.child = spawn(self.scratch.path(), self.port).await;
    }

    /// Throws JetStream's store away and starts again: what a lost disk looks like.
    pub async fn start_again_empty(&mut self) {
        self.child.kill().await;
        std::fs::remove_dir_all(store(self.scratch.path())).expect("wipe JetStream's store");
        self.child = spawn(self.scratch.path(), self.port).await;
    }
}

fn store(directory: &Path) -> PathBuf {
    directory.join("jetstream")
}

async fn spawn(directory: &Path, port: u16) -> Child {
    let store = store(directory);
    let port_text = port.to_string();
    let arguments =
        ["-a", "127.0.0.1", "-p", &port_text, "-js", "-sd", store.to_str().expect("a path of ours")];
    let child = Child::spawn(&program(), &arguments, &[], &directory.join("nats.log"));
    eventually("NATS accepts connections", async || {
        assert!(!child.has_ended(), "nats-server ended:\n{}", child.said());
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    })
    .await;
    child
}

fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("GPUAAS_NATS_SERVER") {
        return path.into();
    }
    // kernel/testkit lies two below the root.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(".tools/nats/bin/nats-server");
    assert!(
        path.exists(),
        "there is no NATS server at {}: run `tools/install nats`, or name one in GPUAAS_NATS_SERVER",
        path.display()
    );
    path
}

//! A NATS server of a test's own, with options, whose files a test may exchange; and the stream as consumers see it.

use std::fs;
use std::path::{Path, PathBuf};

use async_nats::jetstream::consumer::pull::OrderedConfig;
use futures::StreamExt as _;
use testkit::{Child, DEADLINE, Scratch, eventually};

use crate::message::{Mark, mark};
use crate::{NatsTarget, STREAM};

pub struct Nats {
    binary: PathBuf,
    scratch: Scratch,
    port: u16,
    options: String,
    child: Option<Child>,
}

/// A message as a consumer outside sees it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub mark: Mark,
    pub resource: String,
    pub generation: i64,
}

impl Nats {
    /// `options`: further lines of its configuration. Not started yet.
    pub fn new(options: &str) -> Self {
        let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/nats/bin/nats-server");
        let binary = std::env::var_os("GPUAAS_NATS_SERVER").map_or(installed, PathBuf::from);
        assert!(binary.exists(), "{} is missing: run `tools/install nats`", binary.display());
        let (scratch, port) = (Scratch::new("nats"), testkit::free_port());
        Self { binary, scratch, port, options: options.to_owned(), child: None }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// What JetStream has on the disk.
    pub fn store(&self) -> PathBuf {
        self.scratch.path().join("store")
    }

    pub fn target(&self) -> NatsTarget {
        NatsTarget { url: self.url(), credentials: None, tls: None }
    }

    pub async fn start(&mut self) {
        let config = self.scratch.path().join("nats.conf");
        let store = self.store();
        let text = format!(
            "host: 127.0.0.1\nport: {}\njetstream {{ store_dir: {:?} }}\n{}\n",
            self.port, store, self.options
        );
        fs::write(&config, text).unwrap();
        let arguments = ["-c", config.to_str().unwrap()];
        self.child = Some(Child::spawn(&self.binary, &arguments, &[], &self.scratch.path().join("log")));
        let address = ("127.0.0.1", self.port);
        eventually("NATS listens", async || tokio::net::TcpStream::connect(address).await.is_ok()).await;
    }

    /// `kill -9`.
    pub async fn kill(&mut self) {
        if let Some(child) = self.child.take() {
            child.kill().await;
        }
    }

    pub async fn restart(&mut self) {
        self.kill().await;
        self.start().await;
    }

    /// Kills it, takes everything it had stored away, and starts it again.
    pub async fn wipe(&mut self) {
        self.kill().await;
        fs::remove_dir_all(self.store()).unwrap();
        self.start().await;
    }

    pub async fn jetstream(&self) -> async_nats::jetstream::Context {
        async_nats::jetstream::new(async_nats::connect(self.url()).await.unwrap())
    }

    /// The stream's last sequence; 0 where there is none.
    pub async fn last_sequence(&self) -> u64 {
        match self.jetstream().await.get_stream(STREAM).await {
            Ok(stream) => stream.cached_info().state.last_sequence,
            Err(_) => 0,
        }
    }

    /// Everything in the stream, from its beginning up to the event at `position`, repetitions dropped the way a
    /// consumer does: what is not after the last position seen.
    pub async fn read_until(&self, position: i64) -> Vec<Seen> {
        let stream = self.jetstream().await.get_stream(STREAM).await.unwrap();
        let consumer = stream.create_consumer(OrderedConfig::default()).await.unwrap();
        let mut messages = consumer.messages().await.unwrap();
        let mut seen: Vec<Seen> = Vec::new();
        let read = async {
            while seen.last().is_none_or(|last| last.mark.position < position) {
                let message = messages.next().await.unwrap().unwrap();
                let mark = mark(message.headers.as_ref().unwrap()).unwrap();
                if seen.last().is_some_and(|last| mark.position <= last.mark.position) {
                    continue;
                }
                let body: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
                assert_eq!(body["id"], mark.id.to_string());
                assert_eq!(body["gpuaasposition"], mark.position.to_string());
                assert_eq!(body["type"], message.subject.as_str());
                let generation = body["gpuaasgeneration"].as_str().unwrap().parse().unwrap();
                seen.push(Seen { mark, resource: body["subject"].as_str().unwrap().to_owned(), generation });
            }
        };
        tokio::time::timeout(DEADLINE, read).await.expect("the stream does not have all events");
        seen
    }
}

//! Real `gpuaasd` processes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::child::Child;
use crate::eventually::eventually_some;
use crate::http_client::HttpClient;
use crate::small_disk::SmallDisk;

/// A running `gpuaasd`; killed when dropped.
pub struct Gpuaasd {
    pub child: Child,
    /// What it wrote to its ready file; null for `run`, which has none.
    pub ready: Value,
    url: String,
}

impl Gpuaasd {
    /// `gpuaasd up` on a directory of the test, with the backstop on, on a port of its own choice. Returns when it is
    /// ready. A second call on the same directory finds what the first one left.
    pub async fn up(directory: &Path) -> Self {
        Self::up_with(directory, &["--backstop"]).await
    }

    pub async fn up_with(directory: &Path, further: &[&str]) -> Self {
        Self::start_up(directory, Vec::new(), further).await
    }

    /// `gpuaasd up` on a disk that can be filled.
    pub async fn up_on(disk: &SmallDisk) -> Self {
        Self::start_up(disk.directory(), disk.enter(), &[]).await
    }

    async fn start_up(directory: &Path, before: Vec<String>, further: &[&str]) -> Self {
        let ready_file = directory.join("ready.json");
        let _ = std::fs::remove_file(&ready_file);
        let (data, ready) = (directory.join("data"), ready_file.clone());
        let program = binary();
        let mut arguments: Vec<&str> = before.iter().map(String::as_str).chain([text(&program)]).collect();
        arguments.extend(["up", "--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0"]);
        arguments.extend(["--data-dir", text(&data)]);
        arguments.extend(["--ready-file", text(&ready)]);
        arguments.extend(further);
        let child =
            Child::spawn(Path::new(arguments[0]), &arguments[1..], &[], &directory.join("gpuaasd.log"));
        let ready: Value = eventually_some("gpuaasd is up", async || {
            assert!(!child.has_ended(), "gpuaasd up ended:\n{}", child.said());
            serde_json::from_slice(&std::fs::read(&ready_file).ok()?).ok()
        })
        .await;
        let url = ready["url"].as_str().expect("the ready file names the url").to_owned();
        Self { child, ready, url }
    }

    /// `gpuaasd run` with a configuration file; `url` is its internal listener, whose readiness is awaited.
    pub async fn run(roles: &str, config: &Path, url: &str) -> Self {
        let log = config.with_extension(format!("{}.log", roles.replace(',', "-")));
        let arguments = ["run", "--role", roles, "--config", text(config)];
        let child = Child::spawn(&binary(), &arguments, &[], &log);
        let client = HttpClient::new(url);
        eventually_some("gpuaasd runs", async || {
            assert!(!child.has_ended(), "gpuaasd run ended:\n{}", child.said());
            let reply = client.send(http::Method::GET, "/internal/readyz", &[], None).await.ok()?;
            reply.status.is_success().then_some(())
        })
        .await;
        Self { child, ready: Value::Null, url: url.to_owned() }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Nobody in particular.
    pub fn anonymous(&self) -> HttpClient {
        HttpClient::new(&self.url)
    }

    /// The platform's operator.
    pub fn operator(&self) -> HttpClient {
        self.with_key("operator_key_file")
    }

    /// The owner of the organization `demo`.
    pub fn tenant(&self) -> HttpClient {
        self.with_key("tenant_key_file")
    }

    fn with_key(&self, which: &str) -> HttpClient {
        let file = self.ready[which].as_str().expect("the ready file names key files");
        self.anonymous().with_token(&std::fs::read_to_string(file).expect("a key file"))
    }
}

/// The program to test: named by cargo to the tests of its own package, else beside the test's own.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("CARGO_BIN_EXE_gpuaasd") {
        return path.into();
    }
    let test = std::env::current_exe().expect("the test knows its path");
    let target = test.parent().and_then(Path::parent).expect("tests lie in target/…/deps");
    let path = target.join("gpuaasd");
    assert!(path.exists(), "there is no {}: build it with `cargo build -p gpuaasd`", path.display());
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of ours is text")
}

//! A real S3 server (SeaweedFS), for the integrations lane: it checks signatures and honours conditional writes.

use std::path::{Path, PathBuf};

use http::Method;

use crate::child::Child;
use crate::eventually::eventually;
use crate::http_client::HttpClient;
use crate::net::free_port;
use crate::scratch::Scratch;

pub struct S3Server {
    scratch: Scratch,
    port: u16,
    _child: Child,
}

/// Made by the server when the first object comes.
const BUCKET: &str = "objects";
const KEY_ID: &str = "testkit";

impl S3Server {
    pub async fn start() -> Self {
        let scratch = Scratch::new("s3");
        let path = |name: &str| scratch.path().join(name);
        std::fs::create_dir(path("data")).expect("make a directory");
        for (file, secret) in [("s3.secret", "right"), ("wrong.secret", "wrong")] {
            std::fs::write(path(file), secret).expect("write a secret of a test");
        }
        let identities = format!(
            r#"{{"identities": [{{"name": "{KEY_ID}", "actions": ["Admin", "Read", "Write", "List"],
                "credentials": [{{"accessKey": "{KEY_ID}", "secretKey": "right"}}]}}]}}"#
        );
        std::fs::write(path("identities.json"), identities).expect("write the identities");
        let port = free_port();
        let child = spawn(scratch.path(), port);
        let client = HttpClient::new(&format!("http://127.0.0.1:{port}"));
        eventually("the S3 server answers", async || {
            assert!(!child.has_ended(), "weed ended:\n{}", child.said());
            let answer = client.send(Method::GET, "/healthz", &[], None).await;
            answer.is_ok_and(|reply| reply.status.is_success())
        })
        .await;
        Self { scratch, port, _child: child }
    }

    /// Where objects below `prefix` are kept, as `blob` reads it.
    pub fn line(&self, prefix: &str) -> String {
        let secret = self.scratch.path().join("s3.secret");
        format!(
            "s3://{BUCKET}/{prefix}?endpoint=http://127.0.0.1:{}&access_key_id={KEY_ID}&secret_access_key_file={}",
            self.port,
            secret.display()
        )
    }
}

/// Master, volume server, filer and S3 in one process, all on loopback. Telemetry to its makers is off.
fn spawn(directory: &Path, port: u16) -> Child {
    let text = |name: &str| directory.join(name).to_str().expect("a path of ours").to_owned();
    let mut arguments = vec![
        "server".to_owned(),
        format!("-dir={}", text("data")),
        "-ip=127.0.0.1".to_owned(),
        "-ip.bind=127.0.0.1".to_owned(),
        "-filer".to_owned(),
        "-s3".to_owned(),
        format!("-s3.port={port}"),
        format!("-s3.config={}", text("identities.json")),
        "-s3.port.iceberg=0".to_owned(),
        "-s3.port.lance=0".to_owned(),
        "-master.telemetry=false".to_owned(),
        "-master.volumeSizeLimitMB=64".to_owned(),
    ];
    for name in ["master", "volume", "filer"] {
        arguments.push(format!("-{name}.port={}", free_port()));
    }
    for name in ["master", "volume", "filer", "s3"] {
        arguments.push(format!("-{name}.port.grpc={}", free_port()));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Child::spawn(&program(), &arguments, &[], &directory.join("weed.log"))
}

fn program() -> PathBuf {
    // kernel/testkit lies two below the root.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/seaweedfs/bin/weed");
    assert!(path.exists(), "there is no S3 server at {}: run `tools/install seaweedfs`", path.display());
    path
}

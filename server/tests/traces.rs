//! A request's trace goes on in whoever handles the event it caused: HTTP, transaction, outbox, consumer.
//!
//! The real binary, and a collector of a few lines that speaks OTLP over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

const DEADLINE: Duration = Duration::from_secs(60);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
/// Of a request just before the end.
const LAST_TRACE: &str = "1af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

type Spans = Arc<Mutex<Vec<Span>>>;

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Keeps every span it is sent. Returns its address.
async fn collector(spans: Spans) -> String {
    let take = async move |body: Bytes| {
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/traces", post(take));
    tokio::spawn(async move { hyper_serve(listener, router).await });
    format!("http://{address}/v1/traces")
}

async fn hyper_serve(listener: tokio::net::TcpListener, router: Router) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let socket = hyper_util::rt::TokioIo::new(socket);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(socket, service).await;
        });
    }
}

/// `gpuaasd up` in a directory of its own; ended by SIGTERM, as an operator would.
struct Up {
    child: Child,
    directory: PathBuf,
    ready: serde_json::Value,
}

impl Up {
    async fn start(otlp_endpoint: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("traces-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o711)).unwrap();
        let ready_file = directory.join("ready.json");
        let child = Command::new(env!("CARGO_BIN_EXE_gpuaasd"))
            .args(["up", "--listen", "127.0.0.1:0", "--otlp-endpoint", otlp_endpoint, "--data-dir"])
            .arg(directory.join("data"))
            .arg("--ready-file")
            .arg(&ready_file)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut up = Self { child, directory, ready: serde_json::Value::Null };
        until("gpuaasd is ready", || {
            assert!(up.child.try_wait().unwrap().is_none(), "gpuaasd ended");
            ready_file.exists()
        })
        .await;
        up.ready = serde_json::from_str(&fs::read_to_string(&ready_file).unwrap()).unwrap();
        up
    }

    fn text(&self, key: &str) -> &str {
        self.ready[key].as_str().unwrap()
    }

    async fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        until("gpuaasd has ended", || self.child.try_wait().unwrap().is_some()).await;
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

async fn make_organization(up: &Up, trace: &str) -> reqwest::StatusCode {
    let key = fs::read_to_string(Path::new(up.text("operator_key_file"))).unwrap();
    let request = reqwest::Client::new()
        .post(format!("{}/api/v1/orgs", up.text("url")))
        .bearer_auth(key.trim())
        .header("traceparent", format!("00-{trace}-{CALLER}-01"))
        .json(&serde_json::json!({"name": format!("Traced {trace}")}));
    request.send().await.unwrap().status()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn one_trace_from_the_request_to_the_consumer() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let spans = Spans::default();
    let mut up = Up::start(&collector(Arc::clone(&spans)).await).await;
    assert!(make_organization(&up, TRACE).await.is_success());
    until("the consumer's span arrives", || named(&spans, TRACE, "consume").is_some()).await;
    assert!(make_organization(&up, LAST_TRACE).await.is_success());
    up.stop().await;
    named(&spans, LAST_TRACE, "request").expect("what was gathered before the end is sent at the end");
    let request = named(&spans, TRACE, "request").expect("the request's span");
    let transaction = named(&spans, TRACE, "transaction").expect("the transaction's span");
    let consume = named(&spans, TRACE, "consume").expect("the consumer's span");
    let parents: HashMap<&str, String> =
        [("request", &request), ("transaction", &transaction), ("consume", &consume)]
            .map(|(name, span)| (name, hex(&span.parent_span_id)))
            .into();
    assert_eq!(parents["request"], CALLER, "the request continues the caller's trace");
    assert_eq!(parents["transaction"], hex(&request.span_id));
    assert_eq!(
        parents["consume"],
        hex(&request.span_id),
        "the consumer continues the request that caused the event"
    );
}

/// The trace's first span with this name.
fn named(spans: &Spans, trace: &str, name: &str) -> Option<Span> {
    let spans = spans.lock().unwrap();
    spans.iter().find(|span| span.name == name && hex(&span.trace_id) == trace).cloned()
}

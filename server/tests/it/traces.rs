//! A request's trace goes on in whoever handles the event it caused: HTTP, transaction, outbox, consumer.
//!
//! The real binary, and a collector of a few lines that speaks OTLP over HTTP.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use http::Method;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;
use testkit::{Gpuaasd, Scratch, eventually};

use crate::shared::unique;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
/// Of a request just before the end.
const LAST_TRACE: &str = "1af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

type Spans = Arc<Mutex<Vec<Span>>>;

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

async fn make_organization(gpuaasd: &Gpuaasd, trace: &str) {
    let traceparent = format!("00-{trace}-{CALLER}-01");
    let headers = [("traceparent", traceparent.as_str())];
    let body = json!({"name": unique("Traced")});
    gpuaasd.operator().send(Method::POST, "/api/v1/orgs", &headers, Some(&body)).await.unwrap().expect(201);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn one_trace_from_the_request_to_the_consumer() {
    let spans = Spans::default();
    let endpoint = collector(Arc::clone(&spans)).await;
    let directory = Scratch::new("traces");
    let gpuaasd = Gpuaasd::up_with(directory.path(), &["--otlp-endpoint", &endpoint]).await;
    make_organization(&gpuaasd, TRACE).await;
    eventually("the consumer's span arrives", async || named(&spans, TRACE, "consume").is_some()).await;
    make_organization(&gpuaasd, LAST_TRACE).await;
    gpuaasd.child.terminate().await;
    named(&spans, LAST_TRACE, "request").expect("what was gathered before the end is sent at the end");
    let request = named(&spans, TRACE, "request").expect("the request's span");
    let transaction = named(&spans, TRACE, "transaction").expect("the transaction's span");
    let consume = named(&spans, TRACE, "consume").expect("the consumer's span");
    assert_eq!(hex(&request.parent_span_id), CALLER, "the request continues the caller's trace");
    assert_eq!(hex(&transaction.parent_span_id), hex(&request.span_id));
    assert_eq!(
        hex(&consume.parent_span_id),
        hex(&request.span_id),
        "the consumer continues the request's trace"
    );
}

/// The trace's first span with this name.
fn named(spans: &Spans, trace: &str, name: &str) -> Option<Span> {
    let spans = spans.lock().unwrap();
    spans.iter().find(|span| span.name == name && hex(&span.trace_id) == trace).cloned()
}

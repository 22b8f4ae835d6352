//! Server-sent events on the wire.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};

/// One event. `id` is what a client sends back as `Last-Event-ID` to go on after it.
#[derive(Debug, Clone)]
pub struct SseEvent {
    pub id: String,
    pub event: String,
    /// JSON on one line.
    pub data: String,
}

// fixed: below the idle timeouts of common proxies (60 s), above chatter
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A response that streams events and, in silence, heartbeats.
pub fn stream_response(events: impl Stream<Item = SseEvent> + Send + 'static) -> crate::Response {
    let opening = futures::stream::once(async { Bytes::from_static(b": connected\n\n") });
    let beats = futures::stream::unfold(Box::pin(events), |mut events| async move {
        let bytes = match tokio::time::timeout(HEARTBEAT, events.next()).await {
            Ok(Some(event)) => {
                Bytes::from(format!("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.event, event.data))
            }
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b": heartbeat\n\n"),
        };
        Some((bytes, events))
    });
    let body = opening.chain(beats).map(Ok::<_, std::convert::Infallible>);
    let mut response = axum::response::Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

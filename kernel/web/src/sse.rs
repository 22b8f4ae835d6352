//! Server-sent events on the wire.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use tokio::sync::oneshot;
use types::Result;

use crate::caller::Caller;
use crate::context::Found;
use crate::dispatch::Gate;
use crate::limits;
use crate::places::Place;

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

/// A stream that its caller may have, for as long as the caller is who it was.
pub(crate) struct OpenStream {
    gate: Arc<Gate>,
    caller: Caller,
    place: Place,
}

impl OpenStream {
    /// One of the caller's streams, unless it has as many as it may.
    pub fn begin(gate: &Arc<Gate>, caller: Caller) -> Result<Self> {
        let most = gate.limits.settings().get(&limits::STREAMS_PER_CALLER_MAX);
        let place = gate.streams.take(&caller.key, most).ok_or_else(|| {
            limits::crowded("event streams open", "caller", &limits::STREAMS_PER_CALLER_MAX, most)
        })?;
        Ok(Self { gate: Arc::clone(gate), caller, place })
    }

    /// Ends the response's stream soon after the caller's credential has ended. The credential is watched by a task of
    /// its own: were it checked only when the client takes something, one that stops reading for a while would get
    /// what happened after its credential was revoked.
    pub fn guard(self, response: crate::Response) -> crate::Response {
        let (mut open, ended) = oneshot::channel::<()>();
        tokio::spawn(async move {
            tokio::select! {
                () = self.until_revoked() => {}
                () = open.closed() => {}
            }
            drop(self.place);
        });
        response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended)))
    }

    async fn until_revoked(&self) {
        let Some(credential) = &self.caller.credential else { return std::future::pending().await };
        let before = &self.caller.identity;
        loop {
            tokio::time::sleep(limits::STREAM_RECHECK_SECONDS.seconds(self.gate.limits.settings())).await;
            match self.gate.callers.authenticator.identify(credential).await {
                Ok(Found::Good(now)) if now.actor == before.actor && now.standing == before.standing => {}
                // Gone, or its roles have changed: the caller comes back with its cursor and is judged anew.
                Ok(_) => return,
                // This says nothing about the credential, and while the database is away no events come either.
                Err(error) => {
                    tracing::debug!(%error, "a stream's credential could not be checked, will try again")
                }
            }
        }
    }
}

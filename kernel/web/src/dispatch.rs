//! A request's way from the socket to its handler and back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use authz::{Context, CorrelationId};
use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::{MethodFilter, MethodRouter, on};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::json;
use tracing::Instrument as _;
use types::{Error, IdMaker, Result};

use crate::browser;
use crate::caller::{Callers, peer_key};
use crate::context::{self, Authenticator, CORRELATION_HEADER};
use crate::input::RawInput;
use crate::limits::{self, Limits};
use crate::operation::{Endpoint, Kind, OperationInfo};
use crate::places::Places;
use crate::problem::{self, to_response};
use crate::room::{self, Guest, Room, Seat};
use crate::sse::OpenStream;

/// What stands before every endpoint.
pub struct Gate {
    pub(crate) callers: Callers,
    pub(crate) limits: Limits,
    ids: IdMaker,
    /// Callers who are being identified.
    door: Room,
    pub(crate) under_way: Room,
    /// Requests that stepped aside (`?wait=`).
    pub(crate) waiting: Room,
    bodies: Room,
    /// Bodies of callers nobody knows: they take nobody's place but of their like.
    anonymous_bodies: Room,
    pub(crate) streams: Arc<Places>,
}

impl Gate {
    pub fn new(authenticator: Arc<dyn Authenticator>, limits: Limits, ids: IdMaker) -> Arc<Self> {
        Arc::new(Self {
            callers: Callers::new(authenticator),
            limits,
            ids,
            door: Room::new(&room::DOOR),
            under_way: Room::new(&room::REQUESTS),
            waiting: Room::new(&room::WAITING),
            bodies: Room::new(&room::BODIES),
            anonymous_bodies: Room::new(&room::BODIES),
            streams: Arc::default(),
        })
    }
}

/// Routes for all endpoints, plus the answers for paths and methods nobody declared.
pub fn router(endpoints: &[Endpoint], gate: &Arc<Gate>) -> Router {
    let mut by_path: BTreeMap<&'static str, MethodRouter> = BTreeMap::new();
    for endpoint in endpoints {
        let route = by_path
            .remove(endpoint.info.path)
            .unwrap_or_else(|| refuse_method(endpoints, endpoint.info.path, gate));
        by_path.insert(endpoint.info.path, add(route, endpoint.clone(), Arc::clone(gate)));
    }
    let mut router = Router::new();
    for (path, route) in by_path {
        router = router.route(path, route);
    }
    let gate = Arc::clone(gate);
    router.fallback(async move |request: Request| {
        let (head, _) = request.into_parts();
        let correlation = context::correlation(&head, &gate.ids);
        let response = if browser::asks_for_page(&head.headers) {
            browser::no_such_page()
        } else {
            to_response(&problem::NO_SUCH_ROUTE.error("no operation has this path"), Some(correlation))
        };
        finish(response, correlation)
    })
}

fn add(route: MethodRouter, endpoint: Endpoint, gate: Arc<Gate>) -> MethodRouter {
    // Every method of the registry converts; GET for the impossible rest, which the registry's test would catch.
    let filter = MethodFilter::try_from(endpoint.info.method.clone()).unwrap_or(MethodFilter::GET);
    let endpoint = Arc::new(endpoint);
    route.merge(on(filter, async move |path: RawPathParams, request: Request| {
        serve(&gate, &endpoint, path, request).await
    }))
}

fn refuse_method(endpoints: &[Endpoint], path: &'static str, gate: &Arc<Gate>) -> MethodRouter {
    let allowed: Vec<&str> = endpoints
        .iter()
        .filter(|other| other.info.path == path)
        .map(|other| other.info.method.as_str())
        .collect();
    let allowed = allowed.join(", ");
    let gate = Arc::clone(gate);
    MethodRouter::new().fallback(async move |request: Request| {
        let (head, _) = request.into_parts();
        let correlation = context::correlation(&head, &gate.ids);
        let error =
            problem::METHOD_NOT_ALLOWED.error(format!("{} is not offered here, only {allowed}", head.method));
        let mut response = finish(to_response(&error, Some(correlation)), correlation);
        if let Ok(value) = HeaderValue::try_from(allowed.as_str()) {
            response.headers_mut().insert(header::ALLOW, value);
        }
        response
    })
}

async fn serve(
    gate: &Arc<Gate>,
    endpoint: &Arc<Endpoint>,
    path: RawPathParams,
    request: Request,
) -> crate::Response {
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let correlation = context::correlation(&head, &gate.ids);
    let span = tracing::info_span!("request", operation = endpoint.info.id, correlation_id = %correlation);
    trace::continue_from(&span, context::traceparent(&head));
    let if_none_match = head.headers.get(header::IF_NONE_MATCH).cloned();
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let result = answer(gate, endpoint, head, path, body, correlation).instrument(span.clone()).await;
    let response = match result {
        Ok(response) => not_modified(response, if_none_match.as_ref()),
        Err(error) => to_response(&error, Some(correlation)).with_cause(error),
    };
    note(&span, endpoint, &response, started);
    finish(response, correlation)
}

async fn answer(
    gate: &Arc<Gate>,
    endpoint: &Arc<Endpoint>,
    head: axum::http::request::Parts,
    path: Vec<(String, String)>,
    body: axum::body::Body,
    correlation: CorrelationId,
) -> Result<crate::Response> {
    context::refuse_doubled_headers(&head)?;
    let settings = gate.limits.settings();
    let door = gate.door.enter(&Guest::unknown(peer_key(&head)), settings)?;
    let caller = gate.callers.identify(&head, &gate.limits).await?;
    drop(door);
    if endpoint.info.permission.is_some() && caller.identity.actor.is_anonymous() {
        return Err(authz::UNAUTHENTICATED.error("this needs a signed-in caller"));
    }
    gate.limits.check(endpoint.info.rate, &caller.key)?;
    let guest = Guest::new(&caller);
    let mut context = context::context(&caller.identity, correlation, &head);
    let mut bytes = Bytes::new();
    if endpoint.info.mutates() && !body.is_end_stream() {
        bytes = read_body(body, gate, &guest, caller.identity.actor.is_anonymous()).await?;
    }
    let seat = Arc::new(Seat::take(gate, guest)?);
    if endpoint.info.method == Method::POST {
        context.idempotency = context::idempotency(&head, &endpoint.info, &bytes)?;
    }
    let trail_of = context.clone();
    let input = RawInput {
        context,
        home: caller.identity.home,
        expires_at: caller.identity.expires_at,
        path,
        query: head.uri.query().map(str::to_owned),
        headers: head.headers,
        body: bytes,
        seat,
    };
    let stream = match endpoint.info.kind {
        Kind::Json => None,
        Kind::Sse => Some(OpenStream::begin(gate, caller)?),
    };
    let response = run(endpoint, input, settings).await?;
    keep_promises(&endpoint.info, &trail_of, &response)?;
    Ok(match stream {
        None => response,
        Some(stream) => stream.guard(response),
    })
}

/// A change goes on when its client hangs up or its time is over; only the reply is lost, and a retry with the same
/// idempotency key gets it. It keeps its seat until it has ended, or hanging up would be a way around the limits.
async fn run(endpoint: &Arc<Endpoint>, input: RawInput, settings: &db::Settings) -> Result<crate::Response> {
    let time = limits::REQUEST_SECONDS_MAX.seconds(settings);
    let late = || limits::REQUEST_TIMEOUT.error("no answer within the time limit");
    let seat = Arc::clone(&input.seat);
    let work = (endpoint.handler)(input);
    let work = async move {
        let _seat = seat;
        work.await
    };
    if endpoint.info.mutates() {
        let task = tokio::spawn(work.in_current_span());
        return match tokio::time::timeout(time, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => {
                Err(problem::BROKEN_CONTRACT.error("the request's task ended abnormally").caused_by(error))
            }
            Err(_) => Err(late()),
        };
    }
    let time = time + limits::WAIT_SECONDS_MAX.seconds(settings);
    tokio::time::timeout(time, work).await.unwrap_or_else(|_| Err(late()))
}

/// Did the handler do what its declaration says? See the crate's invariants.
fn keep_promises(info: &OperationInfo, context: &Context, response: &crate::Response) -> Result<()> {
    if !response.status().is_success() {
        return Ok(());
    }
    if let Some(permission) = info.permission
        && !context.trail.has_decision(permission.name)
    {
        return Err(problem::BROKEN_CONTRACT
            .error(format!("{} answered without asking for {}", info.id, permission.name)));
    }
    let recorded = context.trail.recorded();
    let fine = match info.audit {
        Some(action) => recorded.is_empty() || recorded.iter().any(|name| name == action),
        None => recorded.is_empty() || info.mutates(),
    };
    if fine {
        return Ok(());
    }
    Err(problem::BROKEN_CONTRACT
        .error(format!("{} recorded {recorded:?}, but declares {:?}", info.id, info.audit)))
}

/// Reads a body within bounds of size, time and number.
async fn read_body(body: axum::body::Body, gate: &Gate, guest: &Guest, is_anonymous: bool) -> Result<Bytes> {
    let settings = gate.limits.settings();
    let limit = settings.get(&limits::BODY_BYTES_MAX);
    let too_large = || {
        limits::BODY_TOO_LARGE
            .error(format!("the body has more than {limit} bytes"))
            .with_details(json!({"bytes_max": limit}))
    };
    // Before a byte of it is asked for: a client that sent `Expect: 100-continue` need not send any.
    if body.size_hint().lower() > u64::from(limit) {
        return Err(too_large());
    }
    let room = if is_anonymous { &gate.anonymous_bodies } else { &gate.bodies };
    let _stay = room.enter(guest, settings)?;
    let mut time = limits::REQUEST_SECONDS_MAX.seconds(settings);
    if is_anonymous {
        time = time.min(limits::ANONYMOUS_BODY_SECONDS_MAX.seconds(settings));
    }
    let limited = http_body_util::Limited::new(body, limit as usize);
    match tokio::time::timeout(time, limited.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => {
            Err(crate::input::INVALID_REQUEST.error("the body ended early or is garbled").caused_by(error))
        }
        Err(_) => Err(limits::REQUEST_TIMEOUT.error("the body did not arrive within the time limit")),
    }
}

fn not_modified(response: crate::Response, if_none_match: Option<&HeaderValue>) -> crate::Response {
    let Some(etag) = response.headers().get(header::ETAG) else { return response };
    if response.status() != StatusCode::OK || if_none_match != Some(etag) {
        return response;
    }
    let headers = HeaderMap::from_iter([(header::ETAG, etag.clone())]);
    (StatusCode::NOT_MODIFIED, headers).into_response()
}

/// The error behind a problem response, for the log.
#[derive(Clone)]
struct Cause(Arc<Error>);

trait WithCause {
    fn with_cause(self, error: Error) -> Self;
}

impl WithCause for crate::Response {
    fn with_cause(mut self, error: Error) -> Self {
        self.extensions_mut().insert(Cause(Arc::new(error)));
        self
    }
}

/// One log line and the metrics of one request.
fn note(span: &tracing::Span, endpoint: &Endpoint, response: &crate::Response, started: Instant) {
    let status = response.status();
    let elapsed = started.elapsed();
    let operation = endpoint.info.id;
    metrics::counter!("gpuaas_http_requests_total", "operation" => operation, "status" => status_label(status)).increment(1);
    if endpoint.info.kind == Kind::Json {
        metrics::histogram!("gpuaas_http_request_seconds", "operation" => operation)
            .record(elapsed.as_secs_f64());
    }
    let _entered = span.enter();
    let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    match response.extensions().get::<Cause>() {
        Some(Cause(error)) if status.is_server_error() => {
            tracing::error!(status = status.as_u16(), elapsed_us, error = ?error, "request failed");
        }
        Some(Cause(error)) => {
            tracing::info!(status = status.as_u16(), elapsed_us, error = %error, "request refused")
        }
        None => tracing::debug!(status = status.as_u16(), elapsed_us, "request answered"),
    }
}

fn status_label(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}

/// Headers every reply of the API carries.
fn finish(mut response: crate::Response, correlation: CorrelationId) -> crate::Response {
    const FIXED: [(HeaderName, &str); 5] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let headers = response.headers_mut();
    for (name, value) in FIXED {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::try_from(correlation.to_string()) {
        headers.insert(CORRELATION_HEADER, value);
    }
    response
}

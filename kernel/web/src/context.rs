//! Who is calling, and under which ids their request runs.

use std::sync::Arc;

use authz::{Actor, Context, CorrelationId, Idempotency, Standing};
use aws_lc_rs::digest;
use axum::http::request::Parts;
use axum::http::{HeaderName, header};
use futures::future::BoxFuture;
use serde_json::json;
use types::{IdMaker, Result, Secret, Timestamp};
use uuid::Uuid;

use crate::input::INVALID_REQUEST;
use crate::operation::OperationInfo;

/// Who a credential belongs to.
#[derive(Debug, Clone)]
pub struct Identity {
    pub actor: Actor,
    pub standing: Arc<Standing>,
    /// The organization the credential was made in, if any.
    pub home: Option<Uuid>,
    /// When the credential ends by itself, if that is known.
    pub expires_at: Option<Timestamp>,
}

impl Identity {
    pub fn anonymous() -> Self {
        Self { actor: Actor::anonymous(), standing: Arc::default(), home: None, expires_at: None }
    }
}

/// What a caller shows to say who it is.
#[derive(Debug, Clone)]
pub struct Credential {
    pub text: Secret,
    /// If it is wrong, is its bearer a caller without one? So for cookies, which browsers send unasked: a stale one is
    /// no reason to refuse what needs no session.
    pub optional: bool,
}

/// What a look-up of a credential found.
#[derive(Debug, Clone)]
pub enum Found {
    Good(Identity),
    /// Ours, but over, and shown again by a program that nobody asked: a browser's tab left open. Nobody guesses what
    /// once was good, so this is not held against anyone.
    Stale,
    /// Nobody's. Also for a key that has ended: who goes on using one should be slowed down.
    Wrong,
}

/// Tells who is calling.
pub trait Authenticator: Send + Sync + 'static {
    /// The credential in a request's head, if there is one. Looks nothing up.
    fn credential(&self, head: &Parts) -> Result<Option<Credential>>;

    /// Whose it is.
    fn identify<'a>(&'a self, credential: &'a Credential) -> BoxFuture<'a, Result<Found>>;
}

pub(crate) const CORRELATION_HEADER: &str = "x-correlation-id";
const IDEMPOTENCY_HEADER: &str = "idempotency-key";
// fixed: part of the API's contract
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

/// Headers of which the first would win silently, while a proxy or a log may have looked at the second.
static SINGLE_HEADERS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    HeaderName::from_static(IDEMPOTENCY_HEADER),
    header::IF_MATCH,
    header::CONTENT_TYPE,
    HeaderName::from_static("last-event-id"),
];

pub(crate) fn refuse_doubled_headers(head: &Parts) -> Result<()> {
    let is_doubled = |name: &&HeaderName| head.headers.get_all(*name).iter().nth(1).is_some();
    let Some(name) = SINGLE_HEADERS.iter().find(is_doubled) else { return Ok(()) };
    Err(INVALID_REQUEST
        .error(format!("{name}: this header came more than once"))
        .with_details(json!({"in": "header", "field": name.as_str()})))
}

/// The caller's correlation id if it has our form, else a new one: a foreign text never reaches our logs.
pub(crate) fn correlation(head: &Parts, ids: &IdMaker) -> CorrelationId {
    head.headers
        .get(CORRELATION_HEADER)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| ids.make())
}

pub(crate) fn context(identity: &Identity, correlation_id: CorrelationId, head: &Parts) -> Context {
    let mut context = Context::new(identity.actor.clone(), correlation_id);
    context.standing = Arc::clone(&identity.standing);
    // The request's own span where it is traced, so that what it causes becomes its child; else the caller's, handed on.
    context.traceparent = trace::current().or_else(|| traceparent(head).map(str::to_owned));
    context
}

/// The trace the caller is in. A foreign text never reaches our rows.
pub(crate) fn traceparent(head: &Parts) -> Option<&str> {
    let text = head.headers.get("traceparent")?.to_str().ok()?;
    trace::is_traceparent(text).then_some(text)
}

/// The caller's promise about retries, bound to path and body.
pub(crate) fn idempotency(
    head: &Parts,
    operation: &OperationInfo,
    body: &[u8],
) -> Result<Option<Idempotency>> {
    let Some(value) = head.headers.get(IDEMPOTENCY_HEADER) else { return Ok(None) };
    let key = value.as_bytes();
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_CHARS_MAX || !key.iter().all(u8::is_ascii_graphic) {
        return Err(INVALID_REQUEST.error(format!(
            "Idempotency-Key: 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters without spaces are allowed"
        )));
    }
    Ok(Some(Idempotency {
        operation: operation.id,
        key_hash: sha256(&[key]),
        // The key, which is stored nowhere, goes in first: a body may hold a guessable secret, and its bare hash in the
        // database would be enough to try guesses on.
        body_hash: sha256(&[
            key,
            b"\n",
            head.uri.path().as_bytes(),
            b"\n",
            head.uri.query().unwrap_or("").as_bytes(),
            b"\n",
            body,
        ]),
    }))
}

pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in parts {
        hash.update(part);
    }
    let mut bytes = [0u8; 32];
    bytes.copy_from_slice(hash.finish().as_ref());
    bytes
}

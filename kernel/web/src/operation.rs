//! The declaration of one operation: everything anyone needs to know about it, in one place.

use std::marker::PhantomData;
use std::sync::Arc;

use authz::{Action, ActionInfo, Context};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::{ErrorCode, Result};

use crate::input::{self, RawInput};
use crate::room::Seat;

/// What a reply is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Json,
    /// Server-sent events.
    Sse,
}

/// How often a caller may do this; the numbers are settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateClass {
    Read,
    Write,
    /// Signing in and anything else worth guessing at.
    Guess,
}

/// Who else offers this operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Exposure {
    /// The command of the `gpuaas` CLI, e.g. `org create`.
    pub cli: Option<&'static str>,
    /// Is it a tool for AI agents?
    pub mcp: bool,
}

/// Path, query or body of an operation that has none.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Everything about an operation but its code.
#[derive(Clone)]
pub struct OperationInfo {
    /// `resource.verb`, unique: the name of the SDK method, the MCP tool and the idempotency scope.
    pub id: &'static str,
    pub method: Method,
    pub path: &'static str,
    pub kind: Kind,
    pub tag: &'static str,
    pub summary: &'static str,
    pub description: &'static str,
    pub permission: Option<ActionInfo>,
    pub audit: Option<&'static str>,
    pub rate: RateClass,
    pub exposure: Exposure,
    pub errors: Vec<&'static ErrorCode>,
    pub success: StatusCode,
    pub etag: bool,
    pub example: Option<fn() -> (Value, Value)>,
    pub(crate) path_schema: SchemaOf,
    pub(crate) query_schema: SchemaOf,
    /// `None` for operations that take no body.
    pub body_schema: Option<SchemaOf>,
    pub(crate) reply_schema: SchemaOf,
}

impl OperationInfo {
    pub fn mutates(&self) -> bool {
        self.method != Method::GET
    }
}

/// One request, parsed and attributed.
#[derive(Debug)]
pub struct Call<P = Nothing, Q = Nothing, B = Nothing> {
    pub context: Context,
    /// The organization of the caller's credential, if it belongs to one.
    pub home: Option<uuid::Uuid>,
    /// When the caller's credential ends by itself, if that is known.
    pub expires_at: Option<types::Timestamp>,
    pub path: P,
    pub query: Q,
    pub body: B,
    /// The generation the caller insists on (`If-Match`).
    pub if_match: Option<i64>,
    /// Where an event stream should go on (`Last-Event-ID`).
    pub last_event_id: Option<String>,
    /// Where the request is, for one that waits.
    pub seat: Arc<Seat>,
}

/// A successful answer.
pub struct Reply<T> {
    body: T,
    generation: Option<i64>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl<T> Reply<T> {
    pub fn new(body: T) -> Self {
        Self { body, generation: None, headers: Vec::new() }
    }

    /// With the resource's generation as its ETag.
    #[must_use]
    pub fn with_generation(mut self, generation: i64) -> Self {
        self.generation = Some(generation);
        self
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl<T> From<T> for Reply<T> {
    fn from(body: T) -> Self {
        Self::new(body)
    }
}

pub(crate) type Handler = Arc<dyn Fn(RawInput) -> BoxFuture<'static, Result<crate::Response>> + Send + Sync>;

/// A registered operation.
#[derive(Clone)]
pub struct Endpoint {
    pub info: OperationInfo,
    pub(crate) handler: Handler,
}

type Phantom<P, Q, B> = PhantomData<fn() -> (P, Q, B)>;

/// Builder of an [`Endpoint`]; the type parameters are path, query and body.
pub struct Operation<P = Nothing, Q = Nothing, B = Nothing> {
    info: OperationInfo,
    input: Phantom<P, Q, B>,
}

/// Parsed input of an operation.
pub trait Input: DeserializeOwned + JsonSchema + Send + 'static {}
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Input for T {}

impl<P: Input, Q: Input> Operation<P, Q, Nothing> {
    pub fn get(path: &'static str, id: &'static str) -> Self {
        Self::new(Method::GET, path, id, StatusCode::OK, None)
    }

    /// A POST without a body, for verbs on a resource.
    pub fn post_empty(path: &'static str, id: &'static str) -> Self {
        Self::new(Method::POST, path, id, StatusCode::OK, None)
    }
}

impl<P: Input, Q: Input, B: Input> Operation<P, Q, B> {
    /// A POST that makes something.
    pub fn post(path: &'static str, id: &'static str) -> Self {
        Self::new(Method::POST, path, id, StatusCode::CREATED, Some(|g| g.subschema_for::<B>()))
    }

    /// A PUT that gives something a value, whether it had one or not.
    pub fn put(path: &'static str, id: &'static str) -> Self {
        Self::new(Method::PUT, path, id, StatusCode::OK, Some(|g| g.subschema_for::<B>()))
    }

    /// A PATCH that changes some fields.
    pub fn patch(path: &'static str, id: &'static str) -> Self {
        Self::new(Method::PATCH, path, id, StatusCode::OK, Some(|g| g.subschema_for::<B>()))
    }

    fn new(
        method: Method,
        path: &'static str,
        id: &'static str,
        success: StatusCode,
        body_schema: Option<SchemaOf>,
    ) -> Self {
        let rate = if method == Method::GET { RateClass::Read } else { RateClass::Write };
        let info = OperationInfo {
            id,
            method,
            path,
            kind: Kind::Json,
            tag: id.split('.').next().unwrap_or(id),
            summary: "",
            description: "",
            permission: None,
            audit: None,
            rate,
            exposure: Exposure::default(),
            errors: Vec::new(),
            success,
            etag: false,
            example: None,
            path_schema: |g| P::json_schema(g),
            query_schema: |g| Q::json_schema(g),
            body_schema,
            reply_schema: |g| Nothing::json_schema(g),
        };
        Self { info, input: PhantomData }
    }

    /// One line, and what a person should know beyond it.
    #[must_use]
    pub fn about(mut self, summary: &'static str, description: &'static str) -> Self {
        (self.info.summary, self.info.description) = (summary, description);
        self
    }

    /// The permission the handler asks for. A mutating operation records the same action.
    #[must_use]
    pub fn permission<A: Action>(mut self) -> Self {
        self.info.permission = Some(ActionInfo::of::<A>());
        if self.info.mutates() {
            self.info.audit = Some(A::NAME);
        }
        self
    }

    /// A read that may itself be recorded, under the permission it asks for.
    #[must_use]
    pub fn audited_read(mut self) -> Self {
        self.info.audit = self.info.permission.map(|permission| permission.name);
        self
    }

    #[must_use]
    pub fn rate(mut self, rate: RateClass) -> Self {
        self.info.rate = rate;
        self
    }

    #[must_use]
    pub fn cli(mut self, command: &'static str) -> Self {
        self.info.exposure.cli = Some(command);
        self
    }

    #[must_use]
    pub fn mcp(mut self) -> Self {
        self.info.exposure.mcp = true;
        self
    }

    /// The codes beyond those every operation can answer with.
    #[must_use]
    pub fn errors(mut self, errors: impl IntoIterator<Item = &'static ErrorCode>) -> Self {
        self.info.errors.extend(errors);
        self
    }

    #[must_use]
    pub fn success(mut self, status: StatusCode) -> Self {
        self.info.success = status;
        self
    }

    /// The reply carries an ETag, and a mutation honours `If-Match`.
    #[must_use]
    pub fn etag(mut self) -> Self {
        self.info.etag = true;
        self
    }

    /// A request body (null if none) and the reply to it.
    #[must_use]
    pub fn example(mut self, example: fn() -> (Value, Value)) -> Self {
        self.info.example = Some(example);
        self
    }

    /// The code, for an operation that answers with JSON.
    pub fn handler<T, F, Fut>(mut self, handler: F) -> Endpoint
    where
        T: Serialize + JsonSchema + Send + 'static,
        F: Fn(Call<P, Q, B>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Reply<T>>> + Send + 'static,
    {
        self.info.reply_schema = |g| g.subschema_for::<T>();
        let success = self.info.success;
        let has_body = self.info.body_schema.is_some();
        self.finish(move |raw| {
            let call = input::parse::<P, Q, B>(raw, has_body).map(&handler);
            Box::pin(async move { Ok(json_response(success, call?.await?)) })
        })
    }

    /// The code, for an operation that answers with a stream of events, each of type `T`.
    pub fn stream<T, F, Fut>(mut self, handler: F) -> Endpoint
    where
        T: Serialize + JsonSchema + Send + 'static,
        F: Fn(Call<P, Q, B>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<crate::Response>> + Send + 'static,
    {
        self.info.reply_schema = |g| g.subschema_for::<T>();
        self.info.kind = Kind::Sse;
        self.finish(move |raw| {
            let call = input::parse::<P, Q, B>(raw, false).map(&handler);
            Box::pin(async move { call?.await })
        })
    }

    fn finish(
        self,
        handler: impl Fn(RawInput) -> BoxFuture<'static, Result<crate::Response>> + Send + Sync + 'static,
    ) -> Endpoint {
        Endpoint { info: self.info, handler: Arc::new(handler) }
    }
}

fn json_response<T: Serialize>(status: StatusCode, reply: Reply<T>) -> crate::Response {
    let bytes = match serde_json::to_vec(&reply.body) {
        Ok(bytes) => Bytes::from(bytes),
        Err(error) => return crate::to_response(&crate::problem::unserialisable(error), None),
    };
    let mut headers = HeaderMap::with_capacity(reply.headers.len() + 2);
    headers.insert(axum::http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(Ok(etag)) =
        reply.generation.map(|generation| HeaderValue::try_from(format!("\"{generation}\"")))
    {
        headers.insert(axum::http::header::ETAG, etag);
    }
    headers.extend(reply.headers);
    (status, headers, bytes).into_response()
}

/// A handler that owns its way to the domain: `on!(iam, |call: Call<…>| iam.project_get(…).await)`.
#[macro_export]
macro_rules! on {
    ($domain:ident, |$call:ident : $type:ty| $body:expr) => {{
        let owned = $domain.clone();
        move |$call: $type| {
            let $domain = owned.clone();
            async move { $body }
        }
    }};
}

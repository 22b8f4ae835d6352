//! Errors on the wire: `application/problem+json` (RFC 9457) with a catalogued code, a remedy and the correlation id.

use authz::CorrelationId;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use types::{Error, ErrorCode, ErrorKind};

use crate::{input, limits};

pub static METHOD_NOT_ALLOWED: ErrorCode = ErrorCode::new(
    "method_not_allowed",
    ErrorKind::Invalid,
    "This path does not take that method",
    "Use one of the methods in the Allow header.",
);
pub static NO_SUCH_ROUTE: ErrorCode = ErrorCode::new(
    "no_such_route",
    ErrorKind::NotFound,
    "There is nothing at this path",
    "Look the path up on the API page at /api.",
);
pub static BROKEN_CONTRACT: ErrorCode = ErrorCode::new(
    "broken_contract",
    ErrorKind::Internal,
    "The operation did not keep what it declares",
    "This is a bug in the server: report the correlation id to the operator.",
);
pub static SECRET_ALREADY_DELIVERED: ErrorCode = ErrorCode::new(
    "secret_already_delivered",
    ErrorKind::Conflict,
    "The first reply to this request carried a secret, which is shown only once",
    "If the first reply was lost, retire what it made (its id is in 'details') and make a new one.",
);

/// The codes the web layer itself can answer with.
pub fn catalogue() -> Vec<&'static ErrorCode> {
    vec![
        &METHOD_NOT_ALLOWED,
        &NO_SUCH_ROUTE,
        &BROKEN_CONTRACT,
        &SECRET_ALREADY_DELIVERED,
        &input::INVALID_REQUEST,
        &input::UNSUPPORTED_MEDIA_TYPE,
        &input::PRECONDITION_FAILED,
        &limits::BODY_TOO_LARGE,
        &limits::RATE_LIMITED,
        &limits::REQUEST_TIMEOUT,
        &limits::TOO_BUSY,
        &authz::UNAUTHENTICATED,
        &authz::FORBIDDEN,
        &authz::NOT_FOUND,
    ]
}

/// What an error looks like to a client.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// Address of the page that explains the code.
    #[serde(rename = "type")]
    pub type_url: String,
    /// The code's meaning, the same every time.
    pub title: String,
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// Stable identifier of the kind of error.
    pub code: String,
    /// What to do next.
    pub remedy: String,
    /// Quote this when you ask for help.
    pub correlation_id: Option<String>,
    /// Particulars for programs; which ones depends on the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

pub fn status_of(code: &ErrorCode) -> StatusCode {
    if *code == METHOD_NOT_ALLOWED {
        return StatusCode::METHOD_NOT_ALLOWED;
    }
    if *code == input::UNSUPPORTED_MEDIA_TYPE {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE;
    }
    match code.kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden | ErrorKind::ApprovalRequired => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorKind::Gone => StatusCode::GONE,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Exhausted => StatusCode::PAYMENT_REQUIRED,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Is a client told to come back? Then it is always told when.
pub(crate) fn is_retryable(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

/// When to come back, where whoever found the error knows no better.
const RETRY_AFTER_MS: u64 = 1_000; // fixed: the smallest time the header can say

pub fn to_response(error: &Error, correlation: Option<CorrelationId>) -> crate::Response {
    let code = error.code();
    let status = status_of(code);
    let problem = Problem {
        type_url: format!("/errors/{}", code.code),
        title: code.title.to_owned(),
        status: status.as_u16(),
        detail: error.message().to_owned(),
        code: code.code.to_owned(),
        remedy: code.remedy.to_owned(),
        correlation_id: correlation.map(|id| id.to_string()),
        details: error.details().cloned(),
    };
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"gpuaas\""));
    }
    let default = is_retryable(status).then_some(RETRY_AFTER_MS);
    if let Some(millis) = error.retry_after_ms().or(default) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(millis.div_ceil(1_000).max(1)));
    }
    response
}

pub(crate) fn unserialisable(cause: serde_json::Error) -> Error {
    BROKEN_CONTRACT.error("the reply could not be written as JSON").caused_by(cause)
}

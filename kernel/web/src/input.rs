//! From bytes to typed input. Whatever is wrong becomes a 4xx that says where and what, never a 5xx.

use authz::Context;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use types::{Error, ErrorCode, ErrorKind, Result};

use crate::operation::{Call, Nothing};

pub static INVALID_REQUEST: ErrorCode = ErrorCode::new(
    "invalid_request",
    ErrorKind::Invalid,
    "The request does not fit the operation's schema",
    "Correct the field named in 'details' and send it again; the API page shows the schema.",
);
pub static UNSUPPORTED_MEDIA_TYPE: ErrorCode = ErrorCode::new(
    "unsupported_media_type",
    ErrorKind::Invalid,
    "The body is not JSON",
    "Send JSON with 'Content-Type: application/json'.",
);
pub static PRECONDITION_FAILED: ErrorCode = ErrorCode::new(
    "precondition_failed",
    ErrorKind::PreconditionFailed,
    "Someone changed it since you read it",
    "Read it again, apply your change to what you find, and send that with the new ETag in If-Match.",
);

/// Does the caller still see what it means to change?
pub fn check_generation(if_match: Option<i64>, generation: i64) -> Result<()> {
    match if_match {
        Some(expected) if expected != generation => {
            Err(PRECONDITION_FAILED.error(format!("it is at generation {generation}, not {expected}")))
        }
        _ => Ok(()),
    }
}

/// A request before its parts are typed.
pub(crate) struct RawInput {
    pub context: Context,
    pub home: Option<uuid::Uuid>,
    pub path: Vec<(String, String)>,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

pub(crate) fn parse<P, Q, B>(raw: RawInput, has_body: bool) -> Result<Call<P, Q, B>>
where
    P: DeserializeOwned,
    Q: DeserializeOwned,
    B: DeserializeOwned,
{
    let path: Map<String, Value> =
        raw.path.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    let path =
        serde_path_to_error::deserialize(Value::Object(path)).map_err(|error| invalid("path", &error))?;
    let pairs = serde_urlencoded::Deserializer::new(form_pairs(raw.query.as_deref().unwrap_or("")));
    let query = serde_path_to_error::deserialize(pairs).map_err(|error| invalid("query", &error))?;
    Ok(Call {
        path,
        query,
        body: if has_body { json_body(&raw.headers, &raw.body)? } else { no_body(&raw.body)? },
        if_match: if_match(&raw.headers)?,
        last_event_id: raw
            .headers
            .get("last-event-id")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
        context: raw.context,
        home: raw.home,
    })
}

fn form_pairs(query: &str) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(query.as_bytes())
}

fn json_body<B: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<B> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = content_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(UNSUPPORTED_MEDIA_TYPE.error(format!("the body's Content-Type is {content_type:?}")));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| invalid("body", &error))?;
    json.end().map_err(|error| {
        INVALID_REQUEST.error(format!("body: {error}")).with_details(json!({"in": "body"}))
    })?;
    Ok(value)
}

fn no_body<B: DeserializeOwned>(body: &Bytes) -> Result<B> {
    // An empty object is what many clients send when they have nothing to say.
    if !(body.is_empty() || body.as_ref() == b"{}") {
        return Err(INVALID_REQUEST
            .error("this operation takes no body")
            .with_details(json!({"in": "body"})));
    }
    serde_json::to_value(Nothing {})
        .and_then(serde_json::from_value)
        .map_err(|error| INVALID_REQUEST.error(error.to_string()))
}

fn if_match(headers: &HeaderMap) -> Result<Option<i64>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or("").trim();
    if text == "*" {
        return Ok(None);
    }
    let generation =
        text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).and_then(|inner| inner.parse().ok());
    match generation {
        Some(generation) => Ok(Some(generation)),
        None => Err(INVALID_REQUEST
            .error("If-Match: expected an ETag as it was given, like \"3\", or *")
            .with_details(json!({"in": "header", "field": "If-Match"}))),
    }
}

fn invalid<E: std::fmt::Display>(part: &str, error: &serde_path_to_error::Error<E>) -> Error {
    let (field, message) = (error.path().to_string(), error.inner().to_string());
    let place = if field == "." { part.to_owned() } else { format!("{part}.{field}") };
    INVALID_REQUEST
        .error(format!("{place}: {message}"))
        .with_details(json!({"in": part, "field": if field == "." { Value::Null } else { field.into() }}))
}

//! From bytes to typed input. Whatever is wrong becomes a 4xx that says where and what, never a 5xx.

use std::sync::Arc;

use authz::Context;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Map, Value, json};
use serde_path_to_error::Segment;
use types::{Error, ErrorCode, ErrorKind, Result};

use crate::operation::{Call, Nothing};
use crate::room::Seat;

#[cfg(test)]
mod tests;

pub static INVALID_REQUEST: ErrorCode = ErrorCode::new(
    "invalid_request",
    ErrorKind::Invalid,
    "The request does not fit the operation's schema",
    "Correct the field named in 'details' and send it again; the API page shows the schema.",
);
pub static UNSUPPORTED_MEDIA_TYPE: ErrorCode = ErrorCode::new(
    "unsupported_media_type",
    ErrorKind::Invalid,
    "The body is not plain JSON",
    "Send JSON in UTF-8 with 'Content-Type: application/json' and no 'Content-Encoding'.",
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
    pub expires_at: Option<types::Timestamp>,
    pub path: Vec<(String, String)>,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub seat: Arc<Seat>,
}

pub(crate) fn parse<P, Q, B>(raw: RawInput, has_body: bool) -> Result<Call<P, Q, B>>
where
    P: DeserializeOwned,
    Q: DeserializeOwned,
    B: DeserializeOwned,
{
    let path: Map<String, Value> =
        raw.path.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    let path = serde_path_to_error::deserialize(Value::Object(path))
        .map_err(|error| invalid("path", error.path(), &error.inner().to_string()))?;
    let pairs = serde_urlencoded::Deserializer::new(form_pairs(raw.query.as_deref().unwrap_or("")));
    let query = serde_path_to_error::deserialize(pairs)
        .map_err(|error| invalid("query", error.path(), &error.inner().to_string()))?;
    refuse_packed(&raw.headers)?;
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
        expires_at: raw.expires_at,
        seat: raw.seat,
    })
}

fn form_pairs(query: &str) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(query.as_bytes())
}

/// What `Content-Type` says about the encoding of text, if anything.
fn charset(content_type: &str) -> Option<&str> {
    let pairs = content_type.split(';').skip(1).filter_map(|pair| pair.split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    named.next().map(|(_, value)| value.trim().trim_matches('"'))
}

/// Bodies are taken as they are: what one unpacks to is not known before it is unpacked.
fn refuse_packed(headers: &HeaderMap) -> Result<()> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            Err(UNSUPPORTED_MEDIA_TYPE.error(format!("the body's Content-Encoding is {coding:?}")))
        }
        _ => Ok(()),
    }
}

fn json_body<B: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<B> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = content_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(UNSUPPORTED_MEDIA_TYPE.error(format!("the body's Content-Type is {content_type:?}")));
    }
    if let Some(charset) = charset(content_type)
        && !charset.eq_ignore_ascii_case("utf-8")
    {
        return Err(
            UNSUPPORTED_MEDIA_TYPE.error(format!("the body's charset is {charset:?}, and JSON is UTF-8"))
        );
    }
    let refused =
        |what: &str| INVALID_REQUEST.error(format!("body: {what}")).with_details(json!({"in": "body"}));
    if body.is_empty() {
        return Err(refused("it is empty, and this operation needs one"));
    }
    // serde's derives take a list for a struct, its values in the order of the fields.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(refused("it has to be a JSON object, which begins with '{'"));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| invalid("body", error.path(), &in_words(error.inner())))?;
    json.end().map_err(|_| refused("something follows after the JSON value"))?;
    Ok(value)
}

/// What is wrong with a body, without the line and column that serde adds: the field says where, and a program that
/// sends its JSON on one line has no use for them.
fn in_words(error: &serde_json::Error) -> String {
    let full = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let what = full.strip_suffix(&place).unwrap_or(&full);
    match error.classify() {
        Category::Data | Category::Io => what.to_owned(),
        Category::Eof => "the JSON ends too early".to_owned(),
        Category::Syntax if what == "recursion limit exceeded" => "it is nested too deeply".to_owned(),
        Category::Syntax => format!("this is not JSON: {what}"),
    }
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

fn invalid(part: &str, path: &serde_path_to_error::Path, message: &str) -> Error {
    let (field, message) = match (field(path), missing(message)) {
        (None, Some(name)) => (Some(name.to_owned()), "this field is missing".to_owned()),
        (Some(around), Some(name)) => (Some(format!("{around}.{name}")), "this field is missing".to_owned()),
        (field, None) => (field, plain(message)),
    };
    let place = field.as_ref().map_or_else(|| part.to_owned(), |field| format!("{part}.{field}"));
    INVALID_REQUEST.error(format!("{place}: {message}")).with_details(json!({"in": part, "field": field}))
}

/// The field that serde did not find. Its reader was at the object around it, so the path does not name it.
fn missing(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.strip_suffix('`')
}

/// What is wrong with a value, in words of JSON. serde and the parsers of query values name Rust's types and terms, which
/// callers need not know. A value that was sent is not repeated: it may be long, or a secret in the wrong place.
fn plain(message: &str) -> String {
    if let Some(number) = wrong_number(message) {
        return number.to_owned();
    }
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.replace("provided string was not `true` or `false`", "expected true or false");
    };
    if found.starts_with("unknown variant ") {
        return format!("expected {expected}");
    }
    let expected = plain_type(expected);
    match found.strip_prefix("invalid type: ").or_else(|| found.strip_prefix("invalid value: ")) {
        Some(found) => format!("expected {expected}, found {}", plain_value(found)),
        None => format!("{found}, expected {expected}"),
    }
}

/// Query values are text, and their numbers fail with the words of Rust's parser.
fn wrong_number(message: &str) -> Option<&'static str> {
    match message {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            Some("expected a whole number, in digits")
        }
        "number too large to fit in target type" => Some("the number is too large"),
        "number too small to fit in target type" => Some("the number is too small"),
        _ => None,
    }
}

fn plain_type(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, not below 0",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        _ if expected.starts_with("enum ") || expected.starts_with("variant ") => {
            "one of the words in the schema"
        }
        _ => expected,
    }
}

/// What was found instead, by its kind; small values, which are easily recognized, by themselves.
fn plain_value(found: &str) -> String {
    let value = found.split('`').nth(1);
    match (found.split(' ').next().unwrap_or_default(), value) {
        ("string", _) => "a string".to_owned(),
        ("integer" | "floating", Some(number)) => format!("the number {number}"),
        ("boolean", Some(value)) => value.to_owned(),
        ("sequence", _) => "a list".to_owned(),
        ("map", _) => "an object".to_owned(),
        _ => found.to_owned(),
    }
}

/// The field a path leads to, if it leads to one. Where the reader broke off between two fields, to the one around them.
fn field(path: &serde_path_to_error::Path) -> Option<String> {
    let text = path.to_string();
    let known = match path.iter().next_back() {
        None => return None,
        Some(Segment::Unknown) => text.trim_end_matches('?').trim_end_matches('.'),
        Some(_) => &text,
    };
    (!known.is_empty()).then(|| known.to_owned())
}

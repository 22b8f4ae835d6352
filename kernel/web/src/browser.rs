//! Pages for people, without a build step: the API browser, one page per error code, and the list of all codes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _};
use axum::routing::get;
use bytes::Bytes;
use serde_json::Value;
use types::ErrorCode;

use crate::problem::status_of;

/// The page of one error code, as Markdown.
#[derive(Debug, Clone, Copy)]
pub struct ErrorPage {
    pub code: &'static str,
    pub markdown: &'static str,
}

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// `/api`, `/api/v1/openapi.json`, `/errors`, `/errors/{code}` and their assets.
pub fn pages(openapi: &Value, errors: &'static [ErrorPage], codes: &[&'static ErrorCode]) -> Router {
    // Made once and shared by all replies: anyone may ask for these, as often as they like.
    let document = Bytes::from(serde_json::to_string(openapi).unwrap_or_default());
    let list = Bytes::from(shell("Errors", &error_list(codes)));
    let errors: Arc<BTreeMap<&str, Bytes>> =
        Arc::new(codes.iter().filter_map(|code| Some((code.code, error_page(errors, code)?))).collect());
    Router::new()
        .route("/api", get(async || page(include_str!("../assets/api.html"))))
        .route("/assets/api.js", get(async || asset("text/javascript", include_str!("../assets/api.js"))))
        .route("/assets/style.css", get(async || asset("text/css", include_str!("../assets/style.css"))))
        .route("/api/v1/openapi.json", get(async move || asset("application/json", document)))
        .route("/errors", get(async move || page(list)))
        .route(
            "/errors/{code}",
            get(async move |Path(code): Path<String>| match errors.get(code.as_str()) {
                Some(html) => page(html.clone()),
                None => no_such_code(),
            }),
        )
}

/// An HTML page with the strict policy every page has.
pub fn page(html: impl Into<Bytes>) -> crate::Response {
    let mut response = Html(html.into()).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

pub fn asset(content_type: &'static str, text: impl Into<Bytes>) -> crate::Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text.into()).into_response()
}

/// Is it a person's browser? Programs that take anything, or JSON, get the problem as JSON.
pub(crate) fn asks_for_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|media| media.split(';').next().unwrap_or_default().trim() == "text/html")
}

/// For a person at a path that leads nowhere.
pub(crate) fn no_such_page() -> crate::Response {
    let body = shell(
        "No such page",
        "<h1>No such page</h1><p>There is nothing at this address. Go to <a href=\"/\">the start page</a>, or look the path \
         up among <a href=\"/api\">the operations of the API</a>.</p>",
    );
    (StatusCode::NOT_FOUND, page(body)).into_response()
}

fn no_such_code() -> crate::Response {
    let body = shell(
        "No such error code",
        "<h1>No such error code</h1><p>See <a href=\"/errors\">all of them</a>.</p>",
    );
    (StatusCode::NOT_FOUND, page(body)).into_response()
}

fn error_page(errors: &[ErrorPage], known: &ErrorCode) -> Option<Bytes> {
    let found = errors.iter().find(|page| page.code == known.code)?;
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, pulldown_cmark::Parser::new(found.markdown));
    // Under the heading, which is the code: what a caller sees of it.
    let seen = format!("</h1><p class=\"soft\">{} · {}</p>", status_of(known), known.title);
    Some(shell(found.code, &html.replacen("</h1>", &seen, 1)).into())
}

/// Every code with its meaning, by name. The texts are our own and hold no HTML.
fn error_list(codes: &[&'static ErrorCode]) -> String {
    let by_code: BTreeMap<&str, &ErrorCode> = codes.iter().map(|code| (code.code, *code)).collect();
    let rows: String = by_code
        .values()
        .map(|code| {
            let (name, status) = (code.code, status_of(code).as_u16());
            format!(
                "<tr><td><a href=\"/errors/{name}\"><code>{name}</code></a></td><td>{status}</td><td>{}</td></tr>",
                code.title
            )
        })
        .collect();
    format!(
        "<h1>Errors</h1><p>An error of the API has one of these codes. Its page says why it happens and what to do.</p>\
         <table><thead><tr><th scope=\"col\">Code</th><th scope=\"col\">Status</th><th scope=\"col\">Meaning</th></tr></thead>\
         <tbody>{rows}</tbody></table>"
    )
}

/// A whole page around some HTML of ours.
pub fn shell(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title} · GPUaaS</title><link rel=\"stylesheet\" href=\"/assets/style.css\"></head>\
         <body><header><a href=\"/\">GPUaaS</a><nav><a href=\"/api\">API</a><a href=\"/errors\">Errors</a></nav></header><main>{body}</main></body></html>"
    )
}

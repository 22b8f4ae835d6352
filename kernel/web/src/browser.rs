//! Pages for people, without a build step: the API browser and one page per error code.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _};
use axum::routing::get;
use serde_json::Value;

/// The page of one error code, as Markdown.
#[derive(Debug, Clone, Copy)]
pub struct ErrorPage {
    pub code: &'static str,
    pub markdown: &'static str,
}

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// `/api`, `/api/v1/openapi.json`, `/errors/{code}` and their assets.
pub fn pages(openapi: &Value, errors: &'static [ErrorPage]) -> Router {
    let document = Arc::new(serde_json::to_string(openapi).unwrap_or_default());
    Router::new()
        .route("/api", get(async || page(include_str!("../assets/api.html"))))
        .route("/assets/api.js", get(async || asset("text/javascript", include_str!("../assets/api.js"))))
        .route("/assets/style.css", get(async || asset("text/css", include_str!("../assets/style.css"))))
        .route(
            "/api/v1/openapi.json",
            get(async move || {
                ([(header::CONTENT_TYPE, "application/json")], document.as_str().to_owned()).into_response()
            }),
        )
        .route("/errors/{code}", get(async move |Path(code): Path<String>| error_page(errors, &code)))
}

/// An HTML page with the strict policy every page has.
pub fn page(html: impl Into<String>) -> crate::Response {
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

pub fn asset(content_type: &'static str, text: &'static str) -> crate::Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

fn error_page(errors: &[ErrorPage], code: &str) -> crate::Response {
    let Some(found) = errors.iter().find(|page| page.code == code) else {
        let body = shell(
            "No such error code",
            "<h1>No such error code</h1><p>See <a href=\"/api\">the API</a>.</p>",
        );
        return (StatusCode::NOT_FOUND, page(body)).into_response();
    };
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, pulldown_cmark::Parser::new(found.markdown));
    page(shell(found.code, &html))
}

/// A whole page around some HTML of ours.
pub fn shell(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title} · GPUaaS</title><link rel=\"stylesheet\" href=\"/assets/style.css\"></head>\
         <body><header><a href=\"/\">GPUaaS</a><nav><a href=\"/api\">API</a></nav></header><main>{body}</main></body></html>"
    )
}

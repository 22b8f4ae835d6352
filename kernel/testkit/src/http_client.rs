//! A small HTTP client for tests: one connection per request, nothing hidden, nothing retried.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Speaks to one server, with or without a token.
#[derive(Clone)]
pub struct HttpClient {
    authority: String,
    token: Option<String>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Fails the test, showing the body, unless the status is the expected one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    /// The problem's code.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl HttpClient {
    /// `url` as in the ready file: `http://127.0.0.1:8080`.
    pub fn new(url: &str) -> Self {
        let authority = url.strip_prefix("http://").expect("tests speak plain HTTP on loopback");
        Self { authority: authority.trim_end_matches('/').to_owned(), token: None }
    }

    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.trim().to_owned());
        self
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], None).await.expect("an answer")
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, &[], Some(body)).await.expect("an answer")
    }

    /// Any request with any headers. Errs when the server goes away in the middle, which a crash test wants to see.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> std::io::Result<Reply> {
        whole(self.open(method, path, headers, body).await?).await
    }

    /// Posts a form, as a page of a provider's would.
    pub async fn post_form(&self, path: &str, headers: &[(&str, &str)], form: &str) -> Reply {
        let form_type = ("content-type", "application/x-www-form-urlencoded");
        let headers = [headers, &[form_type]].concat();
        let response = self.request(Method::POST, path, &headers, Bytes::from(form.to_owned())).await;
        whole(response.expect("an answer")).await.expect("a whole answer")
    }

    /// The head of the answer, with the body still to come: for streams.
    pub async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> std::io::Result<http::Response<hyper::body::Incoming>> {
        let Some(body) = body else { return self.request(method, path, headers, Bytes::new()).await };
        let headers = [&[("content-type", "application/json")], headers].concat();
        self.request(method, path, &headers, Bytes::from(body.to_string())).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::io::Result<http::Response<hyper::body::Incoming>> {
        let stream = TcpStream::connect(&self.authority).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        let mut request = http::Request::builder().method(method).uri(path).header("host", &self.authority);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).expect("a well-formed request");
        sender.send_request(request).await.map_err(std::io::Error::other)
    }
}

async fn whole(response: http::Response<hyper::body::Incoming>) -> std::io::Result<Reply> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    Ok(Reply { status: parts.status, headers: parts.headers, body })
}

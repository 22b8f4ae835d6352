//! Whatever is sent: a 4xx with a problem body, and nothing written.

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::shared::gpuaasd;

/// Sends raw bytes as a body and returns status and code.
async fn post_raw(path: &str, content_type: &str, body: &[u8]) -> (u16, String) {
    let token = std::fs::read_to_string(gpuaasd().ready["operator_key_file"].as_str().unwrap()).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        token.trim(),
        body.len()
    );
    raw(head.as_bytes(), body).await
}

async fn raw(head: &[u8], body: &[u8]) -> (u16, String) {
    let address = gpuaasd().url().strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(head).await.unwrap();
    // The server may answer and hang up before it has read everything: that is not the test's failure.
    let _ = stream.write_all(body).await;
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply).await;
    let text = String::from_utf8_lossy(&reply).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let json: Value =
        text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok()).unwrap_or_default();
    (status, json["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn bad_bodies_are_refused_with_a_code() {
    let deep = "[".repeat(100_000);
    let deep_object = format!("{{\"name\": {}1{}}}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    let huge = format!("{{\"name\": \"{}\"}}", "x".repeat(3 << 20));
    let long_name = format!("{{\"name\": \"{}\"}}", "x".repeat(101));
    let json_type = "application/json";
    let cases: Vec<(&str, &str, &[u8], u16, &str)> = vec![
        ("random bytes", json_type, &[0xff, 0x00, 0xfe, 0x9c, 0x80], 400, "invalid_request"),
        ("empty", json_type, b"", 400, "invalid_request"),
        ("not an object", json_type, b"[]", 400, "invalid_request"),
        ("values in a list", json_type, b"[\"x\"]", 400, "invalid_request"),
        ("null", json_type, b"null", 400, "invalid_request"),
        ("wrong type", json_type, b"{\"name\": 5}", 400, "invalid_request"),
        ("unknown field", json_type, b"{\"name\": \"x\", \"owner\": \"y\"}", 400, "invalid_request"),
        ("twice the same field", json_type, b"{\"name\": \"x\", \"name\": \"y\"}", 400, "invalid_request"),
        ("trailing text", json_type, b"{\"name\": \"x\"} {}", 400, "invalid_request"),
        ("deep array", json_type, deep.as_bytes(), 400, "invalid_request"),
        ("deep object", json_type, deep_object.as_bytes(), 400, "invalid_request"),
        ("lone surrogate", json_type, b"{\"name\": \"\\ud800\"}", 400, "invalid_request"),
        ("control character", json_type, b"{\"name\": \"a\\u0000b\"}", 400, "invalid_request"),
        ("bidi override", json_type, "{\"name\": \"a\u{202e}b\"}".as_bytes(), 400, "invalid_request"),
        ("only spaces", json_type, b"{\"name\": \"   \"}", 400, "invalid_request"),
        ("too long a name", json_type, long_name.as_bytes(), 400, "invalid_request"),
        (
            "our own label",
            json_type,
            b"{\"name\": \"x\", \"labels\": {\"gpuaas.demo\": \"1\"}}",
            400,
            "invalid_request",
        ),
        ("too large", json_type, huge.as_bytes(), 413, "body_too_large"),
        ("form", "application/x-www-form-urlencoded", b"name=x", 415, "unsupported_media_type"),
        ("no type", "", b"{\"name\": \"x\"}", 415, "unsupported_media_type"),
    ];
    let before = count().await;
    for (what, content_type, body, status, code) in cases {
        assert_eq!(post_raw("/api/v1/orgs", content_type, body).await, (status, code.to_owned()), "{what}");
    }
    assert_eq!(count().await, before, "a refused request left something behind");
}

/// Organizations with a name these tests would have made.
async fn count() -> usize {
    let reply = gpuaasd().operator().get("/api/v1/orgs?name=x&limit=200").await.expect(200);
    reply.json()["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn bad_paths_queries_and_headers_are_refused_with_a_code() {
    let operator = gpuaasd().operator();
    let org = gpuaasd().ready["org"].as_str().unwrap();
    let cases = [
        (Method::GET, "/api/v1/orgs/org_short".to_owned(), 400, "invalid_request"),
        (Method::GET, format!("/api/v1/orgs/{}", org.replace("org_", "prj_")), 400, "invalid_request"),
        (Method::GET, format!("/api/v1/orgs/{}", org.to_uppercase()), 400, "invalid_request"),
        (Method::GET, "/api/v1/orgs/%00".to_owned(), 400, "invalid_request"),
        (Method::GET, "/api/v1/orgs/org_01jcqz3k8vf4t9x2m7n5p6r8sd".to_owned(), 404, "not_found"),
        (Method::GET, "/api/v1/orgs?limit=0".to_owned(), 400, "invalid_request"),
        (Method::GET, "/api/v1/orgs?limit=201".to_owned(), 400, "invalid_request"),
        (Method::GET, "/api/v1/orgs?limit=-1".to_owned(), 400, "invalid_request"),
        (Method::GET, "/api/v1/orgs?limit=1&limit=2".to_owned(), 400, "invalid_request"),
        (Method::GET, "/api/v1/orgs?colour=red".to_owned(), 400, "invalid_request"),
        (Method::GET, "/api/v1/orgs?state=gone".to_owned(), 400, "invalid_request"),
        (Method::GET, "/api/v1/orgs?cursor=AAAA".to_owned(), 400, "invalid_cursor"),
        (Method::GET, format!("/api/v1/orgs/{org}?wait=archived&wait_seconds=61"), 400, "invalid_request"),
        (Method::GET, "/api/v1/events?cursor=nonsense".to_owned(), 400, "invalid_cursor"),
        (Method::GET, "/api/v1/events?cursor=1-99999999999".to_owned(), 400, "invalid_cursor"),
        (Method::GET, "/api/v1/events?cursor=99-1".to_owned(), 410, "cursor_expired"),
        (Method::DELETE, format!("/api/v1/orgs/{org}"), 405, "method_not_allowed"),
        (Method::GET, "/api/v1/nothing".to_owned(), 404, "no_such_route"),
        (Method::GET, "/node/v1/tasks".to_owned(), 404, "no_such_route"),
    ];
    for (method, path, status, code) in cases {
        let reply = operator.send(method.clone(), &path, &[], None).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (status, code), "{method} {path}");
    }
    let body = json!({"name": "x"});
    let long = "k".repeat(256);
    for key in ["", "with space", "ünicode", long.as_str()] {
        let reply = operator
            .send(Method::POST, "/api/v1/orgs", &[("idempotency-key", key)], Some(&body))
            .await
            .unwrap();
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "invalid_request"), "{key:?}");
    }
}

#[tokio::test]
async fn garbage_on_the_wire_is_answered_or_cut_off() {
    let long_header = format!("GET / HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "a".repeat(100_000));
    let cases: Vec<&[u8]> =
        vec![b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n", long_header.as_bytes()];
    for bytes in cases {
        let (status, _) = raw(bytes, b"").await;
        assert!(
            status == 0 || (400..500).contains(&status),
            "{status} for {:?}",
            &bytes[..bytes.len().min(20)]
        );
    }
    gpuaasd().operator().get("/api/v1/orgs").await.expect(200);
}

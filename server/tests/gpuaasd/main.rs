//! The server as an operator meets it: a real process, started, asked, killed and started again.

// A test has its thread to itself: a large future overflows nobody's stack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_futures)]

use serde_json::json;
use testkit::{Gpuaasd, Scratch};

#[tokio::test]
async fn up_answers_and_keeps_everything_through_kill_9() {
    let scratch = Scratch::in_memory("up");
    let server = Gpuaasd::up(scratch.path()).await;
    server.anonymous().get("/internal/readyz").await.expect(200);
    server.anonymous().get("/api/v1/orgs").await.expect(401);
    let made =
        server.operator().post("/api/v1/orgs", &json!({"name": "Acme Research"})).await.expect(201).json();
    server.child.kill().await;

    let server = Gpuaasd::up(scratch.path()).await;
    let path = format!("/api/v1/orgs/{}", made["id"].as_str().unwrap());
    assert_eq!(server.operator().get(&path).await.expect(200).json()["name"], "Acme Research");
    assert_eq!(
        server.tenant().get(&path).await.expect(404).code(),
        "not_found",
        "another tenant's is not to be seen"
    );
    assert!(server.child.terminate().await.success(), "{}", server.child.said());
}

//! The promises of the crate on a real S3 server.
//!
//! For the integrations lane (`make test-integrations`), because the server is a large download; plain `cargo test` does
//! not build it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod promises;

use blob::*;
use promises::{check_race, check_store, path};
use testkit::S3Server;

#[tokio::test]
async fn s3_keeps_every_promise() {
    let server = S3Server::start().await;
    let blobs = Blobs::open(&server.line("below/here").parse().unwrap()).unwrap();
    check_store(&blobs).await;
    check_race(&blobs).await;
}

#[tokio::test]
async fn a_wrong_secret_is_refused_and_says_so() {
    let server = S3Server::start().await;
    let wrong = server.line("x").replace("s3.secret", "wrong.secret");
    let blobs = Blobs::open(&wrong.parse().unwrap()).unwrap();
    let error = blobs.get(&path("a")).await.unwrap_err();
    assert!(matches!(error, BlobError::Denied { .. }), "{error}");
}

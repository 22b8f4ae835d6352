//! The promises of the crate on a real S3 server.
//!
//! For the integrations lane (`cargo test -p blob --test s3`), because such a server takes minutes to get; plain
//! `cargo test` does not build it. Any server with conditional puts will do; Garage checks signatures too, moto does not.

#![allow(clippy::unwrap_used, clippy::panic)]

mod promises;

use blob::*;
use promises::{check_race, check_store};

#[tokio::test]
async fn s3_keeps_every_promise() {
    let variable = |name: &str| {
        let name = format!("GPUAAS_TEST_S3_{name}");
        std::env::var(&name).unwrap_or_else(|_| {
            panic!("set {name}: GPUAAS_TEST_S3_ENDPOINT, _BUCKET (an empty one), _KEY_ID and _KEY_FILE")
        })
    };
    let config = S3Config {
        endpoint: Some(variable("ENDPOINT")),
        bucket: variable("BUCKET"),
        region: "us-east-1".to_owned(),
        prefix: Some("below/here".to_owned()),
        access_key_id: Some(variable("KEY_ID")),
        secret_access_key_file: Some(variable("KEY_FILE").into()),
        limits: BlobLimits::default(),
    };
    let blobs = Blobs::open(&BlobConfig::S3(config)).unwrap();
    check_store(&blobs).await;
    check_race(&blobs).await;
}

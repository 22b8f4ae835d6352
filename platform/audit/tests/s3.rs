//! The audit log's second place on a real S3 server.
//!
//! For the integrations lane (`make test-integrations`); plain `cargo test` does not build it. What a copy must be is
//! tested against a directory, beside the code; here only that a bucket serves as well.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use audit::{Delivery, DeliveryError, Replica, SealKeys, Sealer};
use blob::{BlobPath, Blobs};
use db::{Internal, Login};
use merkle::{Outside, SignerKey, verify_export};
use testkit::{S3Server, SPINE, Scratch, TestDb};

const ENTRIES: &str = "
INSERT INTO spine.audit_entry (id, at, actor_kind, actor_id, action, resource_kind, resource_id, generation,
    correlation_id, policy_version)
SELECT gen_random_uuid(), now(), 'user', 'opr_test', 'test.thing.change', 'thing', 'thg_' || n, 1, gen_random_uuid(), 1
FROM generate_series(1, 300) n";

fn delivery(test: &TestDb, server: &S3Server) -> Delivery {
    let internal = || Internal::new(test.pool(Login::Sealer, 1), "s3", true);
    let blobs = Blobs::open(&server.line("audit").parse().unwrap()).unwrap();
    let replica = Arc::new(Replica::new(internal(), blobs));
    Delivery::new(internal(), Arc::clone(&test.clock), test.settings.clone(), replica)
}

/// All objects below a directory, in the order of their names.
async fn joined(blobs: &Blobs, directory: &str) -> Vec<u8> {
    let prefix = BlobPath::parse(directory).unwrap();
    let mut bytes = Vec::new();
    for object in blobs.list(Some(&prefix), None, 1_000).await.unwrap() {
        bytes.extend_from_slice(&blobs.get(&object.path).await.unwrap().unwrap());
    }
    bytes
}

#[tokio::test]
async fn a_bucket_holds_a_copy_that_verifies_and_is_never_overwritten() {
    let server = S3Server::start().await;
    let test = TestDb::with(&[SPINE, iam::MIGRATION_SET, audit::MIGRATION_SET]).await;
    let keys = SealKeys::from(SignerKey::from_seed("audit.s3", &[7; 32]).unwrap());
    let sealer = Sealer::new(
        Internal::new(test.pool(Login::Sealer, 1), "sealer", true),
        Arc::clone(&test.clock),
        test.nudges.clone(),
        test.settings.clone(),
        Arc::new(keys.clone()),
    );
    let first = delivery(&test, &server);
    first.look_around().await.unwrap();
    for _ in 0..3 {
        test.run(ENTRIES).await;
        while sealer.step().await.unwrap().sealed > 0 {}
        while first.step().await.unwrap().is_some() {}
    }
    // A process that starts anew finds its place, and begins nothing again.
    let again = delivery(&test, &server);
    again.look_around().await.unwrap();
    assert_eq!(again.step().await.unwrap(), None);

    let blobs = Blobs::open(&server.line("audit").parse().unwrap()).unwrap();
    let scratch = Scratch::new("s3-export");
    for (directory, file) in [("entries", "entries.jsonl"), ("leaves", "leaves"), ("keys", "key")] {
        std::fs::write(scratch.path().join(file), joined(&blobs, directory).await).unwrap();
    }
    let newest = BlobPath::parse(&format!("checkpoints/{:020}", 900)).unwrap();
    std::fs::write(scratch.path().join("checkpoint"), blobs.get(&newest).await.unwrap().unwrap()).unwrap();
    let kept = Scratch::new("s3-key");
    let key_file = kept.path().join("audit.vkey");
    std::fs::write(&key_file, format!("{}\n", keys.current.verifier())).unwrap();
    let outside = Outside { key: Some(key_file), checkpoint: None };
    let report = verify_export(scratch.path(), &outside).unwrap();
    assert!(report.is_clean() && report.entries == 900, "{report}");

    // Somebody is there before us with another history: nothing is replaced.
    let taken = BlobPath::parse(&format!("entries/{:020}-{:020}.jsonl", 900, 1200)).unwrap();
    let _ = blobs.put_new(&taken, "another history".into()).await.unwrap();
    test.run(ENTRIES).await;
    while sealer.step().await.unwrap().sealed > 0 {}
    assert!(matches!(again.step().await, Err(DeliveryError::Alarm(_))));
    assert_eq!(blobs.get(&taken).await.unwrap().unwrap(), "another history");
}

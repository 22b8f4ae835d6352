//! The audit log's key is changed under a running server, and an auditor who kept the old one still verifies.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use testkit::{Gpuaasd, Scratch, binary, eventually};

fn gpuaasd(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(binary()).args(arguments).args(paths).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn a_new_signing_key_takes_over_while_the_server_runs() {
    let scratch = Scratch::new("rotate-key");
    let server = Gpuaasd::up(scratch.path()).await;
    let (data, old_key) = (scratch.path().join("data"), scratch.path().join("old.vkey"));
    let published = data.join("audit.vkey");
    std::fs::copy(&published, &old_key).unwrap();
    let keys = async || {
        let listed = server.anonymous().get("/api/v1/audit/key").await;
        if listed.status != 200 { 0 } else { listed.json()["keys"].as_array().unwrap().len() }
    };
    eventually("the log has its first key", async || keys().await == 1).await;
    let rotated = gpuaasd(&["audit", "rotate-key", "--data-dir"], &[&data]);
    assert!(rotated.status.success(), "{}", text(&rotated));
    assert_eq!(keys().await, 2);
    let shown = server.anonymous().get("/api/v1/audit/key").await.expect(200).json();
    let new_key = shown["keys"][1]["verifier_key"].as_str().unwrap().to_owned();
    assert!(text(&rotated).contains(&new_key), "{}", text(&rotated));
    let handover = shown["keys"][1]["handover"].as_str().unwrap();
    assert!(handover.contains(&new_key) && handover.matches('\u{2014}').count() == 2, "{handover}");

    // The running sealer takes the new key up, and publishes it.
    server.operator().post("/api/v1/orgs", &json!({"name": "afterwards"})).await.expect(201);
    eventually("the server signs with the new key", async || {
        let note = server.anonymous().get("/api/v1/audit/checkpoint").await.expect(200).json();
        let note = merkle::SignedNote::parse(note["note"].as_str().unwrap().as_bytes()).unwrap();
        let key: merkle::VerifierKey = new_key.parse().unwrap();
        note.signatures().len() == 1 && note.verify(&[key]).is_ok()
    })
    .await;
    eventually("the new key is published", async || {
        std::fs::read_to_string(&published).unwrap().trim() == new_key
    })
    .await;
    let export = scratch.path().join("export");
    let exported = Command::new(binary())
        .args(["audit", "export", "--data-dir"])
        .arg(&data)
        .arg("--out")
        .arg(&export)
        .output()
        .unwrap();
    assert!(exported.status.success(), "{}", text(&exported));
    for key in [&old_key, &published] {
        let verified = Command::new(binary())
            .args(["audit", "verify"])
            .arg(&export)
            .arg("--key")
            .arg(key)
            .output()
            .unwrap();
        assert!(verified.status.success(), "{}", text(&verified));
        assert!(!text(&verified).contains("UNANCHORED"), "{}", text(&verified));
    }
    // Without the hand-over the old key leads nowhere.
    std::fs::write(export.join("handovers"), "").unwrap();
    let cut = Command::new(binary())
        .args(["audit", "verify"])
        .arg(&export)
        .arg("--key")
        .arg(&old_key)
        .output()
        .unwrap();
    assert!(!cut.status.success() && text(&cut).contains("hand-overs"), "{}", text(&cut));
    // The rotation is itself in the log.
    let entries = std::fs::read_to_string(export.join("entries.jsonl")).unwrap();
    assert!(entries.contains("\"action\":\"secrets.secret.rotate\""));
}

//! The drill: a backup taken under a running server, brought back on an empty machine.

use std::process::Command;

use http::Method;
use serde_json::json;
use testkit::db::Login;
use testkit::{Gpuaasd, Scratch, binary};

use crate::installation::{gpuaasd, text};

#[tokio::test]
async fn a_restored_server_goes_on_where_the_backup_was_taken() {
    let (old, new) = (Scratch::new("backup-old"), Scratch::new("backup-new"));
    let first = Gpuaasd::up(old.path()).await;
    let kept = first.operator().post("/api/v1/orgs", &json!({"name": "kept"})).await.expect(201).json();
    // Enough transactions that the new server's ids begin among the old one's.
    for number in 0..80 {
        let body = json!({"name": format!("earlier {number}")});
        first.operator().post("/api/v1/orgs", &body).await.expect(201);
    }
    let backup = old.path().join("backup");
    let data = old.path().join("data");
    let made = gpuaasd(&["backup"], &[("--data-dir", &data), ("--out", &backup)]);
    assert!(made.status.success(), "{}", text(&made));
    first.operator().post("/api/v1/orgs", &json!({"name": "too late"})).await.expect(201);

    let restored = gpuaasd(&["restore"], &[("--from", &backup), ("--data-dir", &new.path().join("data"))]);
    let report = text(&restored);
    assert!(restored.status.success(), "{report}");
    assert!(report.contains("Lost: everything after") && report.contains("Took"), "{report}");

    let second = Gpuaasd::up(new.path()).await;
    let operator = second.operator();
    let found = operator.get(&format!("/api/v1/orgs/{}", kept["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(found.json(), kept, "the operator's key and the data came along");
    assert_eq!(operator.get("/api/v1/orgs?name=too%20late").await.expect(200).json()["items"], json!([]));
    // A cursor of the old history is told so; new events get positions.
    let stale = operator.send(Method::GET, "/api/v1/events?cursor=1-1", &[], None).await.unwrap().expect(410);
    assert_eq!(stale.code(), "cursor_expired");
    operator.post("/api/v1/orgs", &json!({"name": "afterwards"})).await.expect(201);
    testkit::eventually("the organization's summary is counted from new events", async || {
        let listed = operator.get("/api/v1/orgs?name=afterwards").await.expect(200).json();
        let id = listed["items"][0]["id"].as_str().unwrap().to_owned();
        operator.get(&format!("/api/v1/orgs/{id}/summary")).await.status == 200
    })
    .await;
    // The audit log goes on over the seam: what is exported right after the restore verifies.
    let (restored, export) = (new.path().join("data"), new.path().join("export"));
    let exported = gpuaasd(&["audit", "export"], &[("--data-dir", &restored), ("--out", &export)]);
    assert!(exported.status.success(), "{}", text(&exported));
    let verified = Command::new(binary()).args(["audit", "verify"]).arg(&export).output().unwrap();
    assert!(verified.status.success(), "{}", text(&verified));
}

#[tokio::test]
async fn a_backup_that_was_changed_or_is_not_one_is_refused() {
    let scratch = Scratch::new("backup-damaged");
    let server = Gpuaasd::up(scratch.path()).await;
    let (data, backup) = (scratch.path().join("data"), scratch.path().join("backup"));
    leave_things_behind(&data).await;
    let made = gpuaasd(&["backup"], &[("--data-dir", &data), ("--out", &backup)]);
    assert!(made.status.success(), "{}", text(&made));
    let again = gpuaasd(&["backup"], &[("--data-dir", &data), ("--out", &backup)]);
    assert!(!again.status.success() && text(&again).contains("never overwrites"), "{}", text(&again));
    // From where the operator stands: a relative directory is one too.
    let relative = Command::new(binary())
        .args(["backup", "--data-dir", "data", "--out", "relative"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert!(relative.status.success(), "{}", text(&relative));
    let onto = gpuaasd(&["restore"], &[("--from", &backup), ("--data-dir", &data)]);
    assert!(!onto.status.success() && text(&onto).contains("not empty"), "{}", text(&onto));
    let dump = backup.join("database.dump");
    let mut bytes = std::fs::read(&dump).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&dump, bytes).unwrap();
    let fresh = scratch.path().join("fresh");
    let damaged = gpuaasd(&["restore"], &[("--from", &backup), ("--data-dir", &fresh)]);
    assert!(!damaged.status.success() && text(&damaged).contains("changed or damaged"), "{}", text(&damaged));
    // A restore that was cut off is not taken for a whole one.
    let half = scratch.path().join("half");
    std::fs::create_dir(&half).unwrap();
    std::fs::write(half.join("restore.unfinished"), "").unwrap();
    let started =
        gpuaasd(&["up", "--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0"], &[("--data-dir", &half)]);
    assert!(!started.status.success() && text(&started).contains("did not finish"), "{}", text(&started));
    let nothing = gpuaasd(&["restore"], &[("--from", scratch.path()), ("--data-dir", &fresh)]);
    assert!(!nothing.status.success() && text(&nothing).contains("not a backup"), "{}", text(&nothing));
    drop(server);
    let stopped = gpuaasd(&["backup"], &[("--data-dir", &fresh), ("--out", &scratch.path().join("other"))]);
    assert!(
        !stopped.status.success() && text(&stopped).contains("No server is running"),
        "{}",
        text(&stopped)
    );
}

/// What a login can put into the database without being granted anything: it must not keep a backup from being made.
async fn leave_things_behind(data: &std::path::Path) {
    let running = postgres_server::Running::at(data).unwrap();
    for login in [Login::App, Login::Reader, Login::Sealer, Login::Relay] {
        let file = data.join(format!("passwords/{}.password", login.suffix()));
        let mut config = tokio_postgres::Config::new();
        config.host_path(running.socket_dir()).port(running.port()).dbname("gpuaas");
        config.user(login.role_name("gpuaas")).password(std::fs::read_to_string(file).unwrap());
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("SELECT lo_create(0)").await.unwrap();
        let refused = client.batch_execute("CREATE TEMP TABLE t ()").await.unwrap_err();
        assert_eq!(refused.as_db_error().map(|error| error.code().code()), Some("42501"), "{refused:?}");
    }
}

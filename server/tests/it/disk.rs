//! A full disk: a real one, a few hundred megabytes large.

use std::process::Command;

use http::Method;
use serde_json::json;
use testkit::{Gpuaasd, HttpClient, SmallDisk, binary, eventually};

const FULL: &str = "The disk is full: free some space, then start again.";

/// `up` on a disk where it cannot run: it must say why.
fn refused(disk: &SmallDisk) {
    let enter = disk.enter();
    let output = Command::new(&enter[0])
        .args(&enter[1..])
        .arg(binary())
        .args(["up", "--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0", "--data-dir"])
        .arg(disk.directory().join("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(FULL), "{said}");
}

#[tokio::test]
async fn a_disk_too_small_for_a_database_is_named_and_freed_it_is_enough() {
    let disk = SmallDisk::mount("disk-small", 300).await;
    // Nothing fits; the lock and keys do; initdb fails early, and late.
    for room in [0, 1, 12, 30] {
        disk.fill_but(room);
        refused(&disk);
        disk.free();
    }
    let server = Gpuaasd::up_on(&disk).await;
    assert!(server.child.terminate().await.success(), "{}", server.child.said());
}

fn operator(server: &Gpuaasd, disk: &SmallDisk) -> HttpClient {
    let key = std::fs::read_to_string(disk.file("operator.key")).unwrap();
    server.anonymous().with_token(key.trim())
}

/// Makes organizations until one is refused because the disk is full; the names of those that were made.
async fn make_until_refused(operator: &HttpClient, prefix: &str) -> Vec<String> {
    let mut made = Vec::new();
    // Files grow by pages, so some changes still succeed.
    for number in 0..5_000 {
        let name = format!("{prefix}-{number}");
        let body = json!({"name": name});
        let reply = operator.send(Method::POST, "/api/v1/orgs", &[], Some(&body)).await.unwrap();
        if reply.status == 201 {
            made.push(name);
            continue;
        }
        let body = reply.text();
        assert!(reply.status == 503 && body.contains("disk is full"), "{body}");
        return made;
    }
    panic!("the disk is full and nothing is refused")
}

async fn all_there(operator: &HttpClient, names: &[String]) {
    for name in names {
        let found = operator.get(&format!("/api/v1/orgs?name={name}")).await.expect(200).json();
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "{name} was acknowledged and is gone");
    }
}

/// Asks for new files of the write-ahead log until there is none to be had, which ends PostgreSQL.
async fn exhaust_the_log(server: &Gpuaasd, disk: &SmallDisk) {
    let mut config = tokio_postgres::Config::new();
    config.host_path(disk.file("postgres/socket")).user("postgres").dbname("postgres");
    config.password(std::fs::read_to_string(disk.file("postgres/password")).unwrap().trim());
    let next = "SELECT pg_logical_emit_message(false, 'test', 'something'); SELECT pg_switch_wal()";
    eventually("the server gives up", async || {
        if let Ok((client, connection)) = config.connect(tokio_postgres::NoTls).await {
            tokio::spawn(connection);
            let _ = client.batch_execute(next).await;
        }
        server.child.has_ended()
    })
    .await;
}

#[tokio::test]
async fn a_disk_that_fills_while_running_loses_nothing_and_is_usable_again_when_freed() {
    let disk = SmallDisk::mount("disk-fills", 300).await;
    let first = Gpuaasd::up_on(&disk).await;
    let client = operator(&first, &disk);
    disk.fill_but(0);
    let mut made = make_until_refused(&client, "first").await;
    client.get("/api/v1/orgs").await.expect(200);
    disk.free();
    eventually("changes are taken again, without a restart", async || {
        let body = json!({"name": "between"});
        matches!(client.post("/api/v1/orgs", &body).await.status.as_u16(), 201 | 409)
    })
    .await;
    disk.fill_but(0);
    made.extend(make_until_refused(&client, "second").await);
    // Worse: not even the log of what was done can be written. PostgreSQL ends, and we with it, with a reason.
    exhaust_the_log(&first, &disk).await;
    assert!(first.child.said().contains(FULL), "{}", first.child.said());
    refused(&disk);
    disk.free();
    let second = Gpuaasd::up_on(&disk).await;
    all_there(&operator(&second, &disk), &made).await;
    assert!(second.child.terminate().await.success(), "{}", second.child.said());
}

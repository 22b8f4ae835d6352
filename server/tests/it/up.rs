//! `gpuaasd up` in trouble: each fault a clear error that says what to do, and nothing lost.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use testkit::db::Login;
use testkit::{Gpuaasd, PrivatePostgres, Scratch, binary, eventually, free_port};

use crate::installation::Installation;

fn up(data_dir: &Path, flags: &[&str]) -> Output {
    Command::new(binary())
        .args(["up", "--node-listen", "127.0.0.1:0", "--data-dir"])
        .arg(data_dir)
        .args(flags)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    assert!(!output.status.success(), "it started");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn after_kill_nine_it_recovers_with_everything_it_acknowledged() {
    let directory = Scratch::new("kill-nine");
    let first = Gpuaasd::up(directory.path()).await;
    let made = first.operator().post("/api/v1/orgs", &json!({"name": "survivor"})).await.expect(201).json();
    first.child.kill().await;
    let second = Gpuaasd::up(directory.path()).await;
    let found =
        second.operator().get(&format!("/api/v1/orgs/{}", made["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(found.json(), made);
    assert_eq!(first.ready["org"], second.ready["org"], "the default organization is made once");
    let status = second.child.terminate().await;
    assert!(status.success(), "SIGTERM ends it cleanly, not with {status}");
    assert!(!directory.path().join("ready.json").exists(), "the ready file goes when the server goes");
}

#[tokio::test]
async fn a_postgresql_that_dies_is_started_again() {
    let directory = Scratch::new("postgres-dies");
    let server = Gpuaasd::up(directory.path()).await;
    let pid_file = directory.path().join("data/postgres/cluster/postmaster.pid");
    let postmaster = || std::fs::read_to_string(&pid_file).unwrap().lines().next().unwrap().to_owned();
    for round in 0..2 {
        let name = format!("before death {round}");
        let made = server.operator().post("/api/v1/orgs", &json!({"name": name})).await.expect(201).json();
        let killed = Command::new("kill").args(["-9", &postmaster()]).status().unwrap();
        assert!(killed.success());
        let path = format!("/api/v1/orgs/{}", made["id"].as_str().unwrap());
        eventually("it answers again", async || {
            let reply = server.operator().send(http::Method::GET, &path, &[], None).await;
            reply.is_ok_and(|reply| reply.status == 200 && reply.json() == made)
        })
        .await;
    }
    assert!(server.child.terminate().await.success(), "{}", server.child.said());
}

#[tokio::test]
async fn a_second_instance_and_a_taken_port_are_named() {
    let directory = Scratch::new("second");
    let first = Gpuaasd::up(directory.path()).await;
    let second = said(&up(&directory.path().join("data"), &["--listen", "127.0.0.1:0"]));
    assert!(second.contains("is in use by process"), "{second}");
    assert!(second.contains(&first.child.pid().to_string()), "{second}");
    let address = first.url().strip_prefix("http://").unwrap();
    let other = Scratch::new("port");
    let taken = said(&up(&other.path().join("data"), &["--listen", address]));
    assert!(taken.contains("already in use") && taken.contains("--listen"), "{taken}");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    let directory = Scratch::new("newer");
    let first = Gpuaasd::up(directory.path()).await;
    let running = postgres_server::Running::at(&directory.path().join("data")).unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host_path(running.socket_dir()).port(running.port()).dbname("gpuaas").user("gpuaas_owner");
    let password = std::fs::read(directory.path().join("data/passwords/owner.password")).unwrap();
    config.password(password);
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let newer = "INSERT INTO public.gpuaas_migration (domain, version, name, checksum) VALUES ('iam', 999, 'later', '')";
    client.batch_execute(newer).await.unwrap();
    first.child.terminate().await;
    let refused = said(&up(&directory.path().join("data"), &["--listen", "127.0.0.1:0"]));
    assert!(refused.contains("newer version") && refused.contains("999"), "{refused}");
}

#[tokio::test]
async fn the_postgresql_of_another_installation_is_left_alone() {
    let theirs = Installation::new("anothers-postgres").await;
    let url = theirs.postgres.connection();
    let ours = Scratch::new("up-on-anothers");
    let data_dir = ours.path().join("data");
    let flags = ["--listen", "127.0.0.1:0", "--database-url", &url];
    let with_no_password = said(&up(&data_dir, &flags));
    let passwords = data_dir.join("passwords");
    assert!(!passwords.exists(), "a refusal leaves nothing that a next try would take for its own");
    std::fs::create_dir(&passwords).unwrap();
    for login in Login::ALL {
        std::fs::write(passwords.join(format!("{}.password", login.suffix())), "another").unwrap();
    }
    let with_others = said(&up(&data_dir, &flags));
    for refused in [with_no_password, with_others] {
        assert!(refused.contains("belongs to another installation"), "{refused}");
        assert!(refused.contains("Nothing was changed"), "{refused}");
    }
    for login in Login::ALL {
        theirs.client(login).await;
    }
}

#[tokio::test]
async fn on_a_named_postgresql_it_starts_again() {
    let (postgres, directory) = (PrivatePostgres::start().await, Scratch::new("up-named"));
    let url = postgres.connection();
    for _ in 0..2 {
        let server = Gpuaasd::up_with(directory.path(), &["--database-url", &url]).await;
        assert!(server.child.terminate().await.success(), "{}", server.child.said());
    }
}

#[test]
fn plaintext_is_for_this_machine_only() {
    let directory = Scratch::new("plaintext");
    let refused = said(&up(directory.path(), &["--listen", &format!("0.0.0.0:{}", free_port())]));
    assert!(refused.contains("loopback") && refused.contains("gpuaasd run"), "{refused}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let refused = said(&up(Path::new("/proc/gpuaas"), &["--listen", "127.0.0.1:0"]));
    assert!(refused.contains("/proc/gpuaas"), "{refused}");
}

#[test]
fn a_setting_that_would_be_ignored_is_refused() {
    let directory = Scratch::new("bad-setting");
    for (setting, reason) in [
        ("web.page_limit_maxx=100", "there is no setting web.page_limit_maxx"),
        ("web.page_limit_max=0", "0 is not a value for the setting web.page_limit_max"),
        ("web.page_limit_max=many", "\"many\" is not a value for the setting web.page_limit_max"),
    ] {
        let flags = ["--listen", "127.0.0.1:0", "--setting", setting];
        let refused = said(&up(&directory.path().join("data"), &flags));
        assert!(refused.contains(reason) && !refused.contains(".."), "{setting}: {refused}");
    }
}

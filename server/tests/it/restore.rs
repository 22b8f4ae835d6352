//! Backups of and restores onto a PostgreSQL that somebody else runs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;
use testkit::{Gpuaasd, HttpClient, Scratch, eventually, free_port};
use tokio_postgres::config::Host;

use crate::database_tls::{authority, tls_in_front};
use crate::installation::{Installation, gpuaasd, text};

/// Databases, logins and their passwords: what a refused restore must leave as it was.
async fn state(installation: &Installation) -> Vec<String> {
    let admin = installation.administrator().await;
    let sql = "SELECT 'database ' || datname FROM pg_database
               UNION ALL SELECT 'login ' || rolname || ' ' || coalesce(rolpassword, '') FROM pg_authid ORDER BY 1";
    admin.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn what_up_had_runs_on_a_server_elsewhere_and_comes_back() {
    let directory = Scratch::new("restore-external");
    let first = Gpuaasd::up(directory.path()).await;
    let made = first.operator().post("/api/v1/orgs", &json!({"name": "moved"})).await.expect(201).json();
    let token = std::fs::read_to_string(first.ready["operator_key_file"].as_str().unwrap()).unwrap();
    let (data, backup) = (directory.path().join("data"), directory.path().join("backup"));
    let output = gpuaasd(&["backup"], &[("--data-dir", &data), ("--out", &backup)]);
    assert!(output.status.success(), "{}", text(&output));
    drop(first);

    let elsewhere = Installation::bare("restore-elsewhere").await;
    let public = format!("127.0.0.1:{}", free_port());
    let key_file = elsewhere.path().join("secrets.key");
    let sections = format!("[public]\nlisten = \"{public}\"\n[secrets]\nkey_file = {key_file:?}\n");
    let config = elsewhere.config("all", &sections);
    let onto = || {
        let arguments = ["restore", "--admin-url", &elsewhere.postgres.connection()];
        gpuaasd(&arguments, &[("--from", &backup), ("--config", &config.file)])
    };
    // A key that opens nothing: refused, and no half restored database stays under any name.
    std::fs::write(&key_file, [9u8; 32]).unwrap();
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let refused = onto();
    assert!(!refused.status.success() && text(&refused).contains("is not here"), "{}", text(&refused));
    assert!(!state(&elsewhere).await.iter().any(|line| line.starts_with("database gpuaas")));
    // Without one, the backup's own is put in place.
    std::fs::remove_file(&key_file).unwrap();
    let restored = onto();
    assert!(
        restored.status.success() && text(&restored).contains("Lost: everything after"),
        "{}",
        text(&restored)
    );
    assert_eq!(std::fs::read(&key_file).unwrap(), std::fs::read(data.join("secrets.key")).unwrap());
    assert_eq!(mode(&key_file), 0o600);
    let before = state(&elsewhere).await;
    let again = onto();
    assert!(!again.status.success() && text(&again).contains("never overwrites"), "{}", text(&again));
    assert_eq!(state(&elsewhere).await, before, "a refused restore changes nothing");

    let roles = "api,audit-sealer,outbox-relay,platform-worker";
    let second = elsewhere.run(roles, &config).await;
    let operator = HttpClient::new(&format!("http://{public}")).with_token(&token);
    let path = format!("/api/v1/orgs/{}", made["id"].as_str().unwrap());
    assert_eq!(operator.get(&path).await.expect(200).json(), made);
    operator.post("/api/v1/orgs", &json!({"name": "made elsewhere"})).await.expect(201);
    let admin = elsewhere.superuser().await;
    for behind in [
        "SELECT count(*) FROM spine.outbox o, spine.sequencer s WHERE (o.xid, o.id) > (s.done_xid, s.done_id)",
        "SELECT count(*) FROM spine.audit_entry e WHERE NOT EXISTS (SELECT FROM audit.leaf l WHERE l.entry_id = e.id)",
    ] {
        eventually("everything is sequenced and sealed", async || {
            admin.query_one(behind, &[]).await.unwrap().get::<_, i64>(0) == 0
        })
        .await;
    }
    // And back again, without the keys: those of a larger installation are kept by who runs it.
    let (from_there, back) = (directory.path().join("from-there"), Scratch::new("restore-back"));
    let output = gpuaasd(&["backup"], &[("--config", &config.file), ("--out", &from_there)]);
    assert!(output.status.success() && !from_there.join("keys").exists(), "{}", text(&output));
    assert!(second.child.terminate().await.success());
    let output = gpuaasd(&["restore"], &[("--from", &from_there), ("--data-dir", &back.path().join("data"))]);
    assert!(output.status.success(), "{}", text(&output));
    std::fs::copy(&key_file, back.path().join("data/secrets.key")).unwrap();
    let third = Gpuaasd::up(back.path()).await;
    let found = third.operator().get("/api/v1/orgs?name=made%20elsewhere").await.expect(200).json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
}

#[tokio::test]
async fn every_key_of_a_data_directory_comes_along_with_its_mode() {
    let (directory, new) = (Scratch::new("restore-keys"), Scratch::new("restore-keys-new"));
    let server = Gpuaasd::up(directory.path()).await;
    let (data, backup) = (directory.path().join("data"), directory.path().join("backup"));
    std::fs::write(data.join("secrets.key.old"), [5u8; 32]).unwrap();
    std::fs::set_permissions(data.join("secrets.key.old"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let output = gpuaasd(&["backup"], &[("--data-dir", &data), ("--out", &backup)]);
    assert!(output.status.success(), "{}", text(&output));
    drop(server);
    let restored = new.path().join("data");
    let output = gpuaasd(&["restore"], &[("--from", &backup), ("--data-dir", &restored)]);
    assert!(output.status.success(), "{}", text(&output));
    for name in [
        "operator.key",
        "tenant.key",
        "audit.vkey",
        "secrets.key",
        "secrets.key.old",
        "node-tls/ca.pem",
        "node-tls/ca.key",
        "node-tls/server.pem",
        "node-tls/server.key",
    ] {
        let (old, new) = (data.join(name), restored.join(name));
        assert_eq!(std::fs::read(&old).unwrap(), std::fs::read(&new).unwrap(), "{name}");
        assert_eq!(mode(&old), mode(&new), "{name}");
    }
    assert_eq!(mode(&backup), 0o700);
    assert_eq!(mode(&backup.join("keys/node-tls")), 0o700);
}

/// Somebody between us and the server who lets our own connection pass and takes pg_dump's, password and all.
#[tokio::test]
async fn pg_dump_asks_for_the_certificate_that_we_trust() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let installation = Installation::new("restore-tls").await;
    let connection: tokio_postgres::Config = installation.postgres.connection().parse().unwrap();
    let Some(Host::Unix(host)) = connection.get_hosts().first() else { panic!("a socket") };
    let socket = host.join(".s.PGSQL.5432");
    let (right, wrong) = (authority("ours"), authority("another"));
    let ca = installation.path().join("ca.pem");
    std::fs::write(&ca, &right.ca_pem).unwrap();
    let plain = std::fs::read_to_string(installation.config("plain", "").file).unwrap();
    for (name, honest, fine) in [("honest", usize::MAX, true), ("between", 1, false)] {
        let port = tls_in_front(socket.clone(), &right, &wrong, honest).await;
        let over_tls = format!("host = \"localhost\"\nport = {port}\ntls_ca = {ca:?}");
        let file = installation.path().join(format!("{name}.toml"));
        std::fs::write(&file, plain.replace(&format!("host = {host:?}"), &over_tls)).unwrap();
        let out = installation.path().join(name);
        let made = tokio::task::spawn_blocking(move || {
            gpuaasd(&["backup"], &[("--config", &file), ("--out", &out)])
        })
        .await
        .unwrap();
        let said = text(&made);
        assert_eq!(made.status.success(), fine, "{name}: {said}");
        assert!(fine || (said.contains("pg_dump") && said.contains("certificate verify failed")), "{said}");
    }
}

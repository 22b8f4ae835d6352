//! No value in the database, in the log, in errors or in debug output; and no way past the tenants' walls.

use super::fixture::*;
use super::wire::{Api, key_header};
use crate::*;
use db::Login;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing_subscriber::util::SubscriberInitExt as _;
use types::Secret;

const MARKERS: [&str; 3] = ["plaintext-of-the-first", "plaintext-of-the-second", "864209753186420"];

/// The tables that hold one of these texts in any column: as it is, in hexadecimal or in base64.
async fn tables_with(world: &World, texts: &[&[u8]]) -> Vec<String> {
    use base64::Engine as _;
    let admin = world.superuser().await;
    let tables = admin
        .query(
            "SELECT table_schema || '.' || quote_ident(table_name) FROM information_schema.tables
             WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'",
            &[],
        )
        .await
        .unwrap();
    assert!(tables.len() > 20, "the scan sees the schemas: {} tables", tables.len());
    let patterns: Vec<String> = texts
        .iter()
        .flat_map(|text| {
            let hex: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
            // Cut to whole groups of three bytes, so that the pattern does not depend on what follows.
            let base64 = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&text[..text.len() / 3 * 3]);
            [String::from_utf8_lossy(text).into_owned(), hex, base64]
        })
        .collect();
    let mut found = Vec::new();
    for row in tables {
        let table: String = row.get(0);
        // A row's text has every column in it, bytes in hexadecimal.
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {table} AS t, unnest($1::text[]) AS pattern WHERE strpos(t::text, pattern) > 0)"
        );
        if admin.query_one(&sql, &[&patterns]).await.unwrap().get(0) {
            found.push(table);
        }
    }
    found
}

#[tokio::test]
async fn the_scan_finds_what_is_there() {
    let world = World::new().await;
    world.store("a name to be found", "value").await;
    assert!(!tables_with(&world, &[b"a name to be found"]).await.is_empty());
    world.run("UPDATE secrets.secret_version SET sealed = 'plain bytes'::bytea").await;
    assert_eq!(tables_with(&world, &[b"plain bytes"]).await, ["secrets.secret_version"]);
}

#[tokio::test]
async fn no_table_holds_a_value_or_a_seed() {
    let world = World::new().await;
    let api = Api::new(&world).await;
    let body = serde_json::json!({"name": "one", "purpose": "test", "value": MARKERS[0]});
    let made = api.post("/secrets", &body, &[key_header("key-1")]).await;
    let id = made.json["id"].as_str().unwrap().to_owned();
    let rotated = serde_json::json!({"value": MARKERS[1]});
    let path = format!("/secrets/{id}/rotate");
    assert_eq!(api.post(&path, &rotated, &[key_header("key-2")]).await.status, 200);
    world.deliver(id.parse().unwrap(), None).await.unwrap();
    let generate = serde_json::json!({"name": "two", "purpose": "test"});
    let generated = api.post("/secrets/generate", &generate, &[key_header("key-3")]).await;
    let value = generated.json["value"].as_str().unwrap().to_owned();
    let (name, purpose) = (types::Name::parse("signer").unwrap(), Purpose::parse("test").unwrap());
    world.secrets.ensure_signing_key(&world.worker(), &name, &purpose).await.unwrap();
    let seed = world.secrets.signing_key(&world.worker(), &name, &purpose).await.unwrap().seed;
    assert_eq!(world.count("SELECT count(*) FROM spine.idempotency").await, 3);
    let plaintexts =
        [MARKERS[0].as_bytes(), MARKERS[1].as_bytes(), value.as_bytes(), seed.expose().as_slice(), &[1; 32]];
    assert_eq!(tables_with(&world, &plaintexts).await, [""; 0]);
}

/// The hash kept for idempotency must not be one that guesses can be tried on.
#[tokio::test]
async fn no_table_holds_a_bare_hash_of_a_body() {
    use aws_lc_rs::digest::{SHA256, digest};
    let world = World::new().await;
    let api = Api::new(&world).await;
    let body = serde_json::json!({"name": "one", "purpose": "test", "value": "1234"});
    assert_eq!(api.post("/secrets", &body, &[key_header("key-1")]).await.status, 201);
    let path = format!("/api/v1/projects/{}/secrets", world.acme.project);
    for guess in [format!("{path}\n\n{body}"), body.to_string(), "1234".to_owned()] {
        let hash = digest(&SHA256, guess.as_bytes());
        assert_eq!(tables_with(&world, &[hash.as_ref()]).await, [""; 0], "{guess}");
    }
}

/// Everything `tracing` says, kept.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_log_line_and_no_reply_holds_a_value() {
    let said = Said::default();
    let writer = said.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // Not tracing's own function: this one also listens to the `log` crate, which the PostgreSQL driver speaks.
    let listening = subscriber.set_default();
    let world = World::new().await;
    let api = Api::new(&world).await;
    let mut replies = String::new();
    let fine = serde_json::json!({"name": "one", "purpose": "test", "value": MARKERS[0]});
    let number: serde_json::Value = MARKERS[2].parse::<u64>().unwrap().into();
    let bodies = [
        (fine.clone(), 201),
        (fine, 409),
        (serde_json::json!({"name": "two", "purpose": "test", "value": number}), 400),
        (serde_json::json!({"name": "two", "purpose": "test", "value": [MARKERS[0]]}), 400),
        (serde_json::json!({"name": "two", "purpose": "test", "value": {"is": MARKERS[0]}}), 400),
        (serde_json::json!({"name": "two", "purpose": "test", "value": MARKERS[0].repeat(4000)}), 400),
        (serde_json::json!({"name": "two", "purpose": "No", "value": MARKERS[0]}), 400),
    ];
    for (body, status) in bodies {
        let reply = api.post("/secrets", &body, &[]).await;
        assert_eq!(reply.status, status, "{}", reply.text);
        replies.push_str(&reply.text);
    }
    world.run("UPDATE secrets.secret_version SET sealed = sealed || '\\x00'").await;
    let page = api.get("/secrets").await;
    let id = page.json["items"][0]["id"].as_str().unwrap().to_owned();
    let broken = world.deliver(id.parse().unwrap(), None).await.unwrap_err();
    replies.push_str(&format!("{} {broken} {broken:?}", page.text));
    drop(listening);
    let log = String::from_utf8(said.0.lock().unwrap().clone()).unwrap();
    for said in ["secret_value_size", "INSERT INTO secrets.secret", "executing statement"] {
        assert!(log.contains(said), "it was not listening: {said:?} is missing");
    }
    for marker in MARKERS {
        assert!(!replies.contains(marker), "a reply holds {marker}");
        if let Some(line) = log.lines().find(|line| line.contains(marker)) {
            panic!("a log line holds {marker}: {line}");
        }
    }
}

#[tokio::test]
async fn debug_output_holds_no_value() {
    let world = World::new().await;
    let info = world.store("one", MARKERS[0]).await;
    let delivered = world.deliver(info.id, None).await.unwrap();
    let new = NewSecret {
        holder: Holder::Platform,
        name: info.name.clone(),
        purpose: info.purpose.clone(),
        value: Secret::new(MARKERS[0].to_owned()),
    };
    let generated = Generated { info, value: Secret::new(MARKERS[0].to_owned()) };
    let text = format!("{delivered:?} {new:?} {generated:?} {:?}", DataKey::new([65; 32]));
    assert!(text.contains("***") && !text.contains(MARKERS[0]) && !text.contains("65, 65"), "{text}");
}

/// Row-level security, with the app's own login and no help from our code.
#[tokio::test]
async fn one_tenants_session_reaches_no_row_of_another() {
    let world = World::new().await;
    let info = world.store("mine", "value").await;
    world.deliver(info.id, None).await.unwrap();
    let (name, purpose) = (types::Name::parse("signer").unwrap(), Purpose::parse("test").unwrap());
    world.secrets.ensure_signing_key(&world.worker(), &name, &purpose).await.unwrap();
    let client = world.client(Login::App).await;
    for (organization, visible) in [
        ("".to_owned(), 0),
        (world.rival.organization.as_uuid().to_string(), 0),
        (world.acme.organization.as_uuid().to_string(), 1),
    ] {
        let scope = "SELECT set_config('gpuaas.org', $1, false), set_config('gpuaas.platform', 'off', false)";
        client.execute(scope, &[&organization]).await.unwrap();
        for table in ["secret", "secret_version", "delivery"] {
            let row = client.query_one(&format!("SELECT count(*) FROM secrets.{table}"), &[]).await.unwrap();
            assert_eq!(row.get::<_, i64>(0), visible, "{table} as {organization:?}");
        }
        let steal =
            client.execute("UPDATE secrets.secret_version SET destroyed_at = NULL", &[]).await.unwrap();
        assert_eq!(i64::try_from(steal).unwrap(), visible);
    }
    let client = world.client(Login::Reader).await;
    client.batch_execute("SELECT set_config('gpuaas.platform', 'on', false)").await.unwrap();
    assert!(
        client.query("SELECT sealed FROM secrets.secret_version", &[]).await.is_err(),
        "readers see no ciphertext"
    );
}

/// The same, asked of the catalog: a table that comes later cannot be forgotten.
#[tokio::test]
async fn every_table_has_its_wall() {
    let test = testkit::TestDb::with(&[testkit::SPINE, iam::MIGRATION_SET, MIGRATION_SET]).await;
    let tables = testkit::check_walls(&test).await;
    for table in ["secrets.secret", "secrets.secret_version", "secrets.delivery"] {
        assert!(tables.iter().any(|walled| walled == table), "{table} has no org_id");
    }
}

//! Readiness: says no when work would fail here, and nothing else; what is late is a warning.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{HttpClient, eventually, free_port};

use crate::installation::{Installation, gpuaasd, text};

async fn warnings(client: &HttpClient) -> Vec<Value> {
    let body = client.get("/internal/readyz").await.expect(200).json();
    assert_eq!(body["ready"], true);
    body["warnings"].as_array().unwrap().clone()
}

#[tokio::test]
async fn what_is_late_is_a_warning_and_a_busy_pool_is_nothing() {
    let installation = Installation::new("readiness").await;
    let public = format!("127.0.0.1:{}", free_port());
    let sections = format!("[public]\nlisten = \"{public}\"\n{}", installation.secrets());
    let api_config = installation.config("api", &sections);
    // One connection, which the requests below keep busy.
    let narrow = std::fs::read_to_string(&api_config.file)
        .unwrap()
        .replace("[database]", "[database]\nconnections = 1");
    std::fs::write(&api_config.file, narrow).unwrap();
    let admin = installation.superuser().await;
    let soon = "INSERT INTO spine.setting (key, value, set_by, set_at) VALUES
        ('system.late_seconds', '1', '{}', now()), ('audit.seal_late_seconds', '1', '{}', now())";
    admin.batch_execute(soon).await.unwrap();
    let key = installation.path().join("operator.key");
    let made = gpuaasd(&["operator", "key"], &[("--config", &api_config.file), ("--out", &key)]);
    assert!(made.status.success(), "{}", text(&made));
    // Nobody sequences, nobody seals.
    let api = installation.run("api", &api_config).await;
    let internal = api.anonymous();
    eventually("both are late", async || warnings(&internal).await.len() == 2).await;
    let said = format!("{:?}", warnings(&internal).await);
    assert!(said.contains("outbox-relay") && said.contains("audit-sealer"), "{said}");
    let metrics = internal.get("/internal/metrics").await.expect(200).text();
    for name in ["gpuaas_outbox_oldest_seconds ", "gpuaas_audit_entry_lag_seconds "] {
        let value =
            metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{metrics}"));
        assert!(value.parse::<f64>().unwrap() > 1.0, "{value}");
    }
    let workers = installation
        .run("outbox-relay,audit-sealer", &installation.config("workers", &installation.secrets()))
        .await;
    eventually("nothing is late any more", async || warnings(&internal).await.is_empty()).await;

    // A transaction that does not end: the sealer runs and fails at nothing, and yet seals nothing.
    let operator =
        HttpClient::new(&format!("http://{public}")).with_token(&std::fs::read_to_string(&key).unwrap());
    admin.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    operator.post("/api/v1/orgs", &json!({"name": "held back"})).await.expect(201);
    eventually("the sealer raises the alarm", async || {
        let metrics = workers.anonymous().get("/internal/metrics").await.expect(200).text();
        metrics.contains("gpuaas_audit_alarms_total{alarm=\"late\"}")
            && workers.child.said().contains("an audit entry has not been sealed for long")
    })
    .await;
    eventually("so does readiness", async || warnings(&internal).await.len() == 2).await;
    admin.batch_execute("ROLLBACK").await.unwrap();
    eventually("nothing is late any more", async || warnings(&internal).await.is_empty()).await;

    // Requests that wait for a lock hold the one connection, and more wait for it.
    admin.batch_execute("BEGIN; LOCK TABLE iam.organization IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let waiting: Vec<_> = (0..8)
        .map(|number| {
            let operator = operator.clone();
            tokio::spawn(async move {
                let body = json!({"name": format!("waiting {number}")});
                operator
                    .send(Method::POST, "/api/v1/orgs", &[], Some(&body))
                    .await
                    .map(|reply| reply.status.as_u16())
            })
        })
        .collect();
    eventually("the pool is busy", async || {
        let metrics = internal.get("/internal/metrics").await.expect(200).text();
        metrics.lines().any(|line| line.strip_prefix("gpuaas_db_waiting ").is_some_and(|count| count != "0"))
    })
    .await;
    let answered = tokio::time::timeout(Duration::from_secs(1), internal.get("/internal/readyz")).await;
    answered.expect("readiness does not queue behind requests").expect(200);
    admin.batch_execute("ROLLBACK").await.unwrap();
    for request in waiting {
        request.await.unwrap().unwrap();
    }
    drop(workers);
    // And without a database it is not ready.
    let Installation { postgres, .. } = installation;
    postgres.stop().await;
    let gone = internal.get("/internal/readyz").await.expect(503).json();
    assert_eq!(gone["problem"], "the database does not answer");
}

#[tokio::test]
async fn a_stored_setting_that_is_ignored_is_warned_of_once() {
    let installation = Installation::new("stored-setting").await;
    let admin = installation.superuser().await;
    let store = async |key: &str, value: &str| {
        let sql = format!(
            "INSERT INTO spine.setting (key, value, set_by, set_at) VALUES ('{key}', '{value}', '{{}}', now())
             ON CONFLICT (scope_id, key) DO UPDATE SET value = excluded.value"
        );
        admin.batch_execute(&sql).await.unwrap();
    };
    store("web.page_limit_max", "0").await;
    // The relay has no domains of its own, and knows their settings all the same.
    let relay = installation.run("outbox-relay", &installation.config("relay", "")).await;
    let warned = |words: &str| relay.child.said().matches(words).count();
    let refused = "0 is not a value for the setting web.page_limit_max";
    eventually("it tells what it found", async || warned(refused) == 1).await;
    for key in ["web.mistyped", "web.unheard_of"] {
        store(key, "1").await;
        eventually("it tells what was added", async || warned(key) == 1).await;
    }
    assert_eq!((warned(refused), warned("web.mistyped")), (1, 1), "each once: {}", relay.child.said());
}

#[tokio::test]
async fn a_second_place_of_another_history_is_a_warning_and_stays_as_it_is() {
    let installation = Installation::new("second-place").await;
    let place = installation.path().join("place");
    for object in [format!("entries/{:020}-{:020}.jsonl", 7, 9), format!("checkpoints/{:020}", 9)] {
        let object = place.join(object);
        std::fs::create_dir_all(object.parent().unwrap()).unwrap();
        std::fs::write(object, "lost in a restore\n").unwrap();
    }
    let sections = format!("{}[audit]\nreplica = {place:?}\n", installation.secrets());
    let sealer = installation.run("audit-sealer", &installation.config("sealer", &sections)).await;
    let internal = sealer.anonymous();
    eventually("readiness warns", async || {
        let said = format!("{:?}", warnings(&internal).await);
        said.contains("does not reach its replica") && said.contains("a new, empty place")
    })
    .await;
    assert_eq!(std::fs::read_dir(place.join("entries")).unwrap().count(), 1, "nothing is written beside it");
}

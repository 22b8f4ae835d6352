//! Settings over HTTP: they take effect everywhere without a restart, and a tenant has only its own.

use http::Method;
use serde_json::{Value, json};
use testkit::{Gpuaasd, HttpClient, Scratch, eventually, free_port};

use crate::installation::{Installation, gpuaasd as command, text};
use crate::shared::gpuaasd;

const PAGE: &str = "/api/v1/settings/web.page_limit_default";

async fn put(client: &HttpClient, path: &str, value: Value, if_match: Option<&str>) -> testkit::Reply {
    let header = if_match.map(|etag| ("if-match", etag));
    let body = json!({"value": value});
    client.send(Method::PUT, path, header.as_slice(), Some(&body)).await.unwrap()
}

async fn clear(client: &HttpClient, path: &str) -> testkit::Reply {
    client.send(Method::POST, &format!("{path}/clear"), &[], None).await.unwrap()
}

/// What a listing that does not say how much it wants gets.
async fn page_length(client: &HttpClient) -> usize {
    client.get("/api/v1/orgs").await.expect(200).json()["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_change_takes_effect_on_every_replica_without_a_restart() {
    let installation = Installation::new("settings").await;
    let mut apis = Vec::new();
    let mut running = Vec::new();
    for name in ["first", "second"] {
        let address = format!("127.0.0.1:{}", free_port());
        let sections = format!("[public]\nlisten = \"{address}\"\n{}", installation.secrets());
        let config = installation.config(name, &sections);
        let key = installation.path().join("operator.key");
        if !key.exists() {
            let made = command(&["operator", "key"], &[("--config", &config.file), ("--out", &key)]);
            assert!(made.status.success(), "{}", text(&made));
        }
        running.push(installation.run("api", &config).await);
        let token = std::fs::read_to_string(key).unwrap();
        apis.push(HttpClient::new(&format!("http://{address}")).with_token(&token));
    }
    let [first, second] = &apis[..] else { panic!("two replicas") };
    for number in 0..3 {
        first.post("/api/v1/orgs", &json!({"name": format!("org {number}")})).await.expect(201);
    }
    assert_eq!((page_length(first).await, page_length(second).await), (3, 3));
    // Whoever has set it sees it at once; the other replica hears of it.
    let set = put(first, PAGE, json!(1), Some("\"0\"")).await.expect(200);
    assert_eq!(set.headers["etag"], "\"1\"");
    assert_eq!((&set.json()["value"], &set.json()["source"]), (&json!(1), &json!("platform")));
    assert_eq!(page_length(first).await, 1);
    eventually("the second replica has the new value", async || page_length(second).await == 1).await;
    // Read there, it cannot be overwritten by someone who read it before.
    assert_eq!(put(second, PAGE, json!(2), Some("\"0\"")).await.expect(412).code(), "precondition_failed");
    assert_eq!(put(second, PAGE, json!(0), None).await.expect(400).code(), "setting_invalid");
    put(second, PAGE, json!(2), Some("\"1\"")).await.expect(200);
    eventually("the first replica has it too", async || page_length(first).await == 2).await;
    let cleared = clear(first, PAGE).await.expect(200).json();
    assert_eq!((&cleared["value"], &cleared["source"]), (&json!(50), &json!("default")));
    eventually("and the default again", async || page_length(second).await == 3).await;
}

#[tokio::test]
async fn a_tenant_sets_what_an_organization_may_and_nothing_of_the_platforms() {
    let (tenant, own) = (gpuaasd().tenant(), gpuaasd().ready["org"].as_str().unwrap());
    let organization = format!("/api/v1/orgs/{own}/settings");
    let projects = tenant.get(&format!("/api/v1/orgs/{own}/projects")).await.expect(200).json();
    let project = format!("/api/v1/projects/{}/settings", projects["items"][0]["id"].as_str().unwrap());
    let overlap = "secrets.rotation_overlap_seconds";
    put(&tenant, &format!("{organization}/{overlap}"), json!(7200), None).await.expect(200);
    let inherited = tenant.get(&format!("{project}/{overlap}")).await.expect(200).json();
    assert_eq!((&inherited["value"], &inherited["source"]), (&json!(7200), &json!("organization")));
    let listed = tenant.get(&project).await.expect(200).json();
    assert!(listed["items"].as_array().unwrap().contains(&inherited), "{listed}");
    // Only lower than the platform's.
    let at_once = format!("{organization}/web.requests_at_once_per_organization_max");
    let loose = put(&tenant, &at_once, json!(100_000), None).await.expect(400);
    assert_eq!(loose.code(), "setting_invalid");
    assert!(
        loose.text().contains("cannot be higher than what holds outside, which is 256"),
        "{}",
        loose.text()
    );
    // How the platform runs itself is not shown, and cannot be changed from inside.
    let hidden = format!("{organization}/web.body_bytes_max");
    assert_eq!(tenant.get(&hidden).await.expect(404).code(), "setting_unknown");
    assert_eq!(put(&tenant, &hidden, json!(2048), None).await.expect(404).code(), "setting_unknown");
    for path in ["/api/v1/settings", PAGE] {
        assert_eq!(tenant.get(path).await.expect(403).code(), "forbidden");
    }
    assert_eq!(put(&tenant, PAGE, json!(1), None).await.expect(403).code(), "forbidden");
    assert_eq!(clear(&tenant, PAGE).await.expect(403).code(), "forbidden");
    clear(&tenant, &format!("{organization}/{overlap}")).await.expect(200);
}

/// A limit that an organization has lowered binds the organization, and nobody else.
#[tokio::test]
async fn an_organizations_own_limit_binds_it() {
    let directory = Scratch::new("settings-limit");
    let server = Gpuaasd::up(directory.path()).await;
    let (tenant, own) = (server.tenant(), server.ready["org"].as_str().unwrap().to_owned());
    let setting = "web.waiting_at_once_per_organization_max";
    let path = format!("/api/v1/orgs/{own}/settings/{setting}");
    put(&tenant, &path, json!(1), None).await.expect(200);
    let (waiting, waited) = (tenant.clone(), format!("/api/v1/orgs/{own}?wait=archived&wait_seconds=10"));
    // Again and again: it may be the one that is too many.
    let waits = tokio::spawn(async move {
        loop {
            waiting.get(&waited).await;
        }
    });
    eventually("the second request is one too many", async || {
        let reply = tenant.get(&format!("/api/v1/orgs/{own}?wait=archived&wait_seconds=1")).await;
        reply.status.as_u16() == 429 && reply.json()["details"]["limit"] == setting
    })
    .await;
    server.operator().get(&format!("/api/v1/orgs/{own}")).await.expect(200);
    waits.abort();
}

//! One `gpuaasd up` for all tests that do not need one of their own.

use std::sync::OnceLock;

use serde_json::{Value, json};
use testkit::{Gpuaasd, HttpClient, Scratch};

struct Shared {
    gpuaasd: Gpuaasd,
    _directory: Scratch,
}

/// Starts on first use; dies with the test process.
pub fn gpuaasd() -> &'static Gpuaasd {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    let start = || {
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let directory = Scratch::new("server-shared");
            let flags = [
                ["--backstop", "--setting", "web.guesses_per_minute=1000"].as_slice(),
                &["--setting", "web.stream_recheck_seconds=1"],
            ]
            .concat();
            let gpuaasd = runtime.block_on(Gpuaasd::up_with(directory.path(), &flags));
            // The child's keeper lives on this runtime.
            std::mem::forget(runtime);
            Shared { gpuaasd, _directory: directory }
        })
        .join()
        .unwrap()
    };
    &SHARED.get_or_init(start).gpuaasd
}

/// A name no other test uses.
pub fn unique(name: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{name} {}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A new organization, as its JSON.
pub async fn organization(operator: &HttpClient, name: &str) -> Value {
    operator.post("/api/v1/orgs", &json!({"name": unique(name)})).await.expect(201).json()
}

/// A key of an organization's owner, which reaches nothing else. The operator, who made the organization, becomes that.
pub async fn owner(organization: &Value) -> HttpClient {
    let operator = gpuaasd().operator();
    let me = operator.get("/api/v1/session").await.expect(200).json();
    let body = json!({"person_id": me["actor"]["id"]});
    let appointed = operator.post(&format!("/api/v1/orgs/{}/owners", id(organization)), &body).await;
    assert!([201, 409].contains(&appointed.status.as_u16()), "{:?}", appointed.json());
    let body = json!({"name": unique("owner"), "org_id": id(organization)});
    let mut secret = String::new();
    testkit::eventually("the operator is known as owner", async || {
        let made = operator.post("/api/v1/keys", &body).await;
        secret = made.json()["secret"].as_str().unwrap_or_default().to_owned();
        made.status == 201
    })
    .await;
    gpuaasd().anonymous().with_token(&secret)
}

/// A key of somebody else who owns the demo organization.
pub async fn second_owner() -> HttpClient {
    let key = format!("gpuaas_key_{}", unique("second").replace(' ', "-"));
    let sql = format!(
        "WITH who AS (
             INSERT INTO iam.person (id, name, state, state_since, created_at, updated_at)
             VALUES (gen_random_uuid(), 'second', 'active', now(), now(), now()) RETURNING id
         ), holds AS (
             INSERT INTO iam.role_grant (id, org_id, person_id, role, created_at, created_by)
             SELECT gen_random_uuid(), o.id, who.id, 'organization.owner', now(), 'test'
             FROM who, iam.organization o WHERE o.name = 'demo'
         )
         INSERT INTO iam.api_key (id, name, person_id, key_hash, created_at)
         SELECT gen_random_uuid(), 'second', id, sha256('{key}'), now() FROM who"
    );
    database().await.batch_execute(&sql).await.unwrap();
    gpuaasd().anonymous().with_token(&key)
}

/// The id in a reply.
pub fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

/// Straight to the shared server's database, past every rule: for what no operation offers yet.
pub async fn database() -> tokio_postgres::Client {
    let key_file = gpuaasd().ready["operator_key_file"].as_str().unwrap();
    let running = postgres_server::Running::at(std::path::Path::new(key_file).parent().unwrap()).unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host_path(running.socket_dir()).port(running.port()).dbname("gpuaas");
    config.user(postgres_server::SUPERUSER).password(running.password().expose());
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

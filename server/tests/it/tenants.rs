//! Every operation that is declared, tried by callers who must not get in. The list comes from the served document, so
//! an operation cannot be forgotten.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::{Value, json};
use testkit::eventually;

use crate::shared::{database, gpuaasd, id, organization, owner, unique};

struct Operation {
    method: Method,
    path: String,
    name: String,
    public: bool,
    body: Option<Value>,
}

/// Everything the server serves, which is everything that is declared.
async fn operations() -> Vec<Operation> {
    let document = gpuaasd().anonymous().get("/api/v1/openapi.json").await.expect(200).json();
    let all = operations_of(&document);
    let declared = serde_json::from_str(include_str!("../../../contracts/openapi.json")).unwrap();
    let names = |all: &[Operation]| all.iter().map(|operation| operation.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&all), names(&operations_of(&declared)));
    all
}

fn operations_of(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let body = &operation["requestBody"]["content"]["application/json"];
            all.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path: with_examples(path, operation, document),
                name: operation["x-gpuaas-operation"].as_str().unwrap().to_owned(),
                public: operation["x-gpuaas-permission"].is_null(),
                body: body.is_object().then(|| body["example"].clone()),
            });
        }
    }
    assert!(!all.is_empty());
    all
}

#[tokio::test]
async fn nobody_gets_in_without_a_credential() {
    let anonymous = gpuaasd().anonymous();
    let bogus = gpuaasd().anonymous().with_token("gpuaas_key_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    for operation in operations().await {
        if operation.public {
            continue;
        }
        let path = fill(&operation.path, "org_01jcqz3k8vf4t9x2m7n5p6r8sd", "prj_01jcqz3k8vf4t9x2m7n5p6r8sd");
        for client in [&anonymous, &bogus] {
            let reply =
                client.send(operation.method.clone(), &path, &[], operation.body.as_ref()).await.unwrap();
            assert_eq!(
                (reply.status.as_u16(), reply.code().as_str()),
                (401, "unauthenticated"),
                "{}",
                operation.name
            );
            assert!(reply.headers.contains_key("www-authenticate"));
        }
    }
}

#[tokio::test]
async fn another_tenants_things_look_like_missing_ones() {
    let operator = gpuaasd().operator();
    let foreign = organization(&operator, "foreign").await;
    let path = format!("/api/v1/orgs/{}/projects", id(&foreign));
    let project = operator.post(&path, &json!({"name": "theirs"})).await.expect(201).json();
    let missing = ("org_01jcqz3k8vf4t9x2m7n5p6r8sd", "prj_01jcqz3k8vf4t9x2m7n5p6r8sd");
    let tenant = gpuaasd().tenant();
    let of_a_tenant = |operation: &Operation| {
        ["{org_id}", "{project_id}"].iter().any(|tenant| operation.path.contains(tenant)) && !operation.public
    };
    let (inside, outside): (Vec<_>, Vec<_>) = operations().await.into_iter().partition(of_a_tenant);
    assert!(!inside.is_empty());
    for Operation { path, name, .. } in outside {
        let named = ["/api/v1/orgs/", "/api/v1/projects/"].iter().any(|prefix| path.starts_with(prefix));
        assert!(!named, "{name} has a tenant in its path and is not tried");
    }
    for operation in inside {
        let mut answers = Vec::new();
        for (org, prj) in [(id(&foreign), id(&project)), missing] {
            let path = fill(&operation.path, org, prj);
            let reply =
                tenant.send(operation.method.clone(), &path, &[], operation.body.as_ref()).await.unwrap();
            let mut problem = reply.json();
            problem["correlation_id"] = Value::Null;
            answers.push((reply.status.as_u16(), problem));
        }
        // What is the platform's own says so to everybody alike.
        let of_the_platform =
            !["{org_id}", "{project_id}"].iter().any(|tenant| operation.path.contains(tenant));
        let refused = answers[0].0 == 404 || of_the_platform && answers[0].0 == 403;
        assert!(refused, "{}: {}", operation.name, answers[0].1);
        assert_eq!(answers[0], answers[1], "{} tells foreign from missing", operation.name);
    }
    let unchanged = operator.get(&format!("/api/v1/projects/{}", id(&project))).await.expect(200).json();
    assert_eq!(unchanged, project);
}

#[tokio::test]
async fn a_tenant_sees_and_does_only_what_is_its_own() {
    let tenant = gpuaasd().tenant();
    let own = gpuaasd().ready["org"].as_str().unwrap();
    organization(&gpuaasd().operator(), "unseen").await;
    let listed = tenant.get("/api/v1/orgs").await.expect(200).json();
    let ids: Vec<&str> = listed["items"].as_array().unwrap().iter().map(id).collect();
    assert_eq!(ids, [own]);
    for (path, body) in [
        ("/api/v1/orgs".to_owned(), json!({"name": "mine"})),
        (format!("/api/v1/orgs/{own}/archive"), json!({})),
    ] {
        assert_eq!(tenant.post(&path, &body).await.expect(403).code(), "forbidden");
    }
    for path in ["/api/v1/events/parked", "/api/v1/audit"] {
        assert_eq!(tenant.get(path).await.expect(403).code(), "forbidden", "{path}");
    }
    let foreign_events = tenant.get("/api/v1/events?org_id=org_01jcqz3k8vf4t9x2m7n5p6r8sd").await.expect(404);
    assert_eq!(foreign_events.code(), "not_found");
}

/// The path with an example for every parameter that is not a tenant's: a well-formed id of something that is not there.
fn with_examples(path: &str, operation: &Value, document: &Value) -> String {
    let mut filled = path.to_owned();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        if parameter["in"] != "path" || ["org_id", "project_id"].contains(&name) {
            continue;
        }
        let schema = parameter["schema"]["$ref"].as_str().map_or(&parameter["schema"], |reference| {
            document.pointer(reference.trim_start_matches('#')).expect("a schema that is there")
        });
        let example =
            schema["examples"][0].as_str().unwrap_or_else(|| panic!("{path}: {name} shows no example"));
        filled = filled.replace(&format!("{{{name}}}"), example);
    }
    filled
}

fn fill(path: &str, org: &str, project: &str) -> String {
    path.replace("{org_id}", org).replace("{project_id}", project)
}

/// Changes of one row wait for each other, each with a connection. Those of one tenant must leave some to the others.
#[tokio::test]
async fn a_tenant_that_queues_for_one_row_keeps_nobody_else_waiting() {
    let (operator, database) = (gpuaasd().operator(), database().await);
    let (busy, quiet) = (organization(&operator, "busy").await, organization(&operator, "quiet").await);
    let keys = [owner(&busy).await, owner(&busy).await];
    let other = owner(&quiet).await;
    let name = busy["name"].as_str().unwrap();
    database.batch_execute("BEGIN").await.unwrap();
    database.execute("SELECT FROM iam.organization WHERE name = $1 FOR UPDATE", &[&name]).await.unwrap();

    let path = format!("/api/v1/orgs/{}", id(&busy));
    let (mut attack, over) = (tokio::task::JoinSet::new(), Arc::new(AtomicBool::new(false)));
    let answers = Arc::new(Mutex::new(BTreeSet::new()));
    // A few more than the pool and its queue hold.
    for number in 0..140 {
        let (key, path) = (keys[number % 2].clone(), path.clone());
        let (over, answers) = (Arc::clone(&over), Arc::clone(&answers));
        attack.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let body = json!({"name": unique("busy")});
                let code = key.send(Method::PATCH, &path, &[], Some(&body)).await.unwrap().code();
                answers.lock().unwrap().insert(code);
            }
        });
    }
    eventually("changes queue for the row", async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        database.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) >= 4
    })
    .await;
    let path = format!("/api/v1/orgs/{}", id(&quiet));
    for _ in 0..20 {
        other.get(&path).await.expect(200);
        let body = json!({"name": unique("quiet")});
        other.send(Method::PATCH, &path, &[], Some(&body)).await.unwrap().expect(200);
        other.post(&format!("{path}/projects"), &json!({"name": unique("quiet")})).await.expect(201);
    }
    // The platform can deal with the busy one all the same.
    operator.get(&format!("/api/v1/orgs/{}", id(&busy))).await.expect(200);

    let told = async || answers.lock().unwrap().contains("organization_busy");
    eventually("the busy one is told why it is refused", told).await;
    assert!(!answers.lock().unwrap().contains("overloaded"), "{answers:?}");
    over.store(true, Ordering::Relaxed);
    database.batch_execute("ROLLBACK").await.unwrap();
    attack.join_all().await;
}

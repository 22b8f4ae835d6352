//! Every operation that is declared, tried by callers who must not get in. The list comes from the served document, so
//! an operation cannot be forgotten.

use http::Method;
use serde_json::{Value, json};

use crate::shared::{gpuaasd, id, organization};

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
    let of_a_tenant = |operation: &Operation| operation.path.contains('{') && !operation.public;
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
        assert_eq!(answers[0].0, 404, "{}: {}", operation.name, answers[0].1);
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

//! What every operation does alike: ETags, idempotency, pages, waiting, ids, headers.

use std::collections::BTreeSet;

use http::Method;
use serde_json::json;

use crate::shared::{gpuaasd, id, organization, second_owner, unique};

#[tokio::test]
async fn etags_keep_two_writers_apart() {
    let operator = gpuaasd().operator();
    let made = operator.post("/api/v1/orgs", &json!({"name": unique("etag")})).await.expect(201);
    assert_eq!(made.headers["etag"], "\"1\"");
    let path = format!("/api/v1/orgs/{}", id(&made.json()));
    let rename = async |tag: &str, name: &str| {
        operator.send(Method::PATCH, &path, &[("if-match", tag)], Some(&json!({"name": name}))).await.unwrap()
    };
    let first = rename("\"1\"", &unique("first")).await.expect(200);
    assert_eq!(first.headers["etag"], "\"2\"");
    let second = rename("\"1\"", &unique("second")).await.expect(412);
    assert_eq!(second.code(), "precondition_failed");
    let unchanged = operator.get(&path).await.expect(200).json();
    assert_eq!(unchanged["name"], first.json()["name"]);
    let not_modified = operator.send(Method::GET, &path, &[("if-none-match", "\"2\"")], None).await.unwrap();
    assert_eq!((not_modified.status.as_u16(), not_modified.body.len()), (304, 0));
}

#[tokio::test]
async fn renaming_to_the_same_name_changes_nothing() {
    let operator = gpuaasd().operator();
    let made = organization(&operator, "same").await;
    let path = format!("/api/v1/orgs/{}", id(&made));
    let body = json!({"name": made["name"]});
    let again = operator.send(Method::PATCH, &path, &[], Some(&body)).await.unwrap().expect(200);
    assert_eq!(again.json(), made);
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer_and_has_one_effect() {
    let operator = gpuaasd().operator();
    let (name, key) = (unique("retry"), unique("key").replace(' ', "-"));
    let body = json!({"name": name});
    let attempts = (0..20).map(|_| {
        let (operator, key, body) = (operator.clone(), key.clone(), body.clone());
        tokio::spawn(async move {
            operator
                .send(Method::POST, "/api/v1/orgs", &[("idempotency-key", &key)], Some(&body))
                .await
                .unwrap()
        })
    });
    let mut answers = BTreeSet::new();
    for attempt in attempts.collect::<Vec<_>>() {
        answers.insert(attempt.await.unwrap().expect(201).text());
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    let other = json!({"name": unique("other")});
    let reused =
        operator.send(Method::POST, "/api/v1/orgs", &[("idempotency-key", &key)], Some(&other)).await;
    assert_eq!(reused.unwrap().expect(409).code(), "idempotency_key_reused");
}

#[tokio::test]
async fn a_key_belongs_to_its_caller_and_a_refusal_is_not_kept() {
    let (operator, tenant) = (gpuaasd().operator(), second_owner().await);
    let org = gpuaasd().ready["org"].as_str().unwrap();
    let path = format!("/api/v1/orgs/{org}/projects");
    let (name, key) = (unique("shared key"), unique("key").replace(' ', "-"));
    let headers = [("idempotency-key", key.as_str())];
    let body = json!({"name": name});
    operator.send(Method::POST, &path, &headers, Some(&body)).await.unwrap().expect(201);
    // Another caller's same key is another key: this one really tries, and the name is taken.
    let refused = tenant.send(Method::POST, &path, &headers, Some(&body)).await.unwrap().expect(409);
    assert_eq!(refused.code(), "name_taken");
    // A refusal is not stored: the same key may be used for a corrected request.
    tenant
        .send(Method::POST, &path, &headers, Some(&json!({"name": unique("corrected")})))
        .await
        .unwrap()
        .expect(201);
}

#[tokio::test]
async fn pages_are_stable_and_complete() {
    let operator = gpuaasd().operator();
    let parent = organization(&operator, "pages").await;
    let path = format!("/api/v1/orgs/{}/projects", id(&parent));
    let mut expected = Vec::new();
    for number in 0..7 {
        let project = operator.post(&path, &json!({"name": format!("p{number}")})).await.expect(201).json();
        expected.push(id(&project).to_owned());
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = operator.get(&format!("{path}?limit=2{cursor}")).await.expect(200).json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|project| id(project).to_owned()));
        assert!(page["items"].as_array().unwrap().len() <= 2);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
        // A change between pages moves nothing.
        operator.post(&format!("/api/v1/projects/{}/archive", expected[0]), &json!({})).await.expect(200);
    }
    assert_eq!(seen, expected);
    let elsewhere = operator.get(&format!("{path}?state=active{cursor}")).await.expect(400);
    assert_eq!(elsewhere.code(), "invalid_cursor");
    let archived = operator.get(&format!("{path}?state=archived")).await.expect(200).json();
    assert_eq!(archived["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn archiving_an_organization_archives_its_projects_and_frees_its_name() {
    let operator = gpuaasd().operator();
    let made = organization(&operator, "archive").await;
    let path = format!("/api/v1/orgs/{}", id(&made));
    for number in 0..3 {
        operator.post(&format!("{path}/projects"), &json!({"name": format!("p{number}")})).await.expect(201);
    }
    let archiving = operator.post(&format!("{path}/archive"), &json!({})).await.expect(202).json();
    assert_eq!(archiving["state"], "archiving");
    let archived = operator.get(&format!("{path}?wait=archived&wait_seconds=30")).await.expect(200).json();
    assert_eq!(archived["state"], "archived");
    let active = operator.get(&format!("{path}/projects?state=active")).await.expect(200).json();
    assert_eq!(active["items"], json!([]));
    let refused = operator.post(&format!("{path}/projects"), &json!({"name": "late"})).await.expect(409);
    assert_eq!(refused.code(), "archived");
    operator.post("/api/v1/orgs", &json!({"name": made["name"]})).await.expect(201);
    testkit::eventually("the summary counts the archived projects", async || {
        let summary = operator.get(&format!("{path}/summary")).await.expect(200).json();
        summary["projects_active"] == 0 && summary["projects_archived"] == 3
    })
    .await;
}

#[tokio::test]
async fn replies_carry_the_correlation_id_and_security_headers() {
    let operator = gpuaasd().operator();
    let sent = "cor_01jcqz3k8vf4t9x2m7n5p6r8sd";
    let reply =
        operator.send(Method::GET, "/api/v1/orgs", &[("x-correlation-id", sent)], None).await.unwrap();
    assert_eq!(reply.headers["x-correlation-id"], sent);
    let foreign =
        operator.send(Method::GET, "/api/v1/orgs", &[("x-correlation-id", "<script>")], None).await.unwrap();
    assert!(foreign.headers["x-correlation-id"].to_str().unwrap().starts_with("cor_"));
    for (name, value) in
        [("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"), ("cache-control", "no-store")]
    {
        assert_eq!(reply.headers[name], value);
    }
    let page = gpuaasd().anonymous().get("/").await.expect(200);
    assert!(page.headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
}

#[tokio::test]
async fn every_error_code_has_a_page_at_its_address() {
    let anonymous = gpuaasd().anonymous();
    let problem = anonymous.get("/api/v1/orgs").await.expect(401);
    assert_eq!(problem.headers["content-type"], "application/problem+json");
    let address = problem.json()["type"].as_str().unwrap().to_owned();
    let page = anonymous.get(&address).await.expect(200).text();
    for part in ["What to do.", "401 Unauthorized", problem.json()["title"].as_str().unwrap()] {
        assert!(page.contains(part), "{part} is not on the page: {page}");
    }
    anonymous.get("/errors/no_such_code").await.expect(404);
    let list = anonymous.get("/errors").await.expect(200).text();
    let catalogue: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../../../contracts/errors.json")).unwrap();
    for code in catalogue.iter().map(|entry| entry["code"].as_str().unwrap()) {
        assert!(list.contains(&format!("href=\"/errors/{code}\"")), "{code} is not in the list");
    }
    assert!(anonymous.get("/").await.expect(200).text().contains("href=\"/errors\""));
}

#[tokio::test]
async fn the_document_is_served_and_health_answers() {
    let anonymous = gpuaasd().anonymous();
    let document = anonymous.get("/api/v1/openapi.json").await.expect(200).json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(anonymous.get("/internal/healthz").await.expect(200).text(), "ok\n");
    assert_eq!(anonymous.get("/internal/readyz").await.expect(200).json()["ready"], true);
    gpuaasd().operator().get("/api/v1/orgs").await.expect(200);
    let metrics = anonymous.get("/internal/metrics").await.expect(200).text();
    assert!(metrics.contains("gpuaas_http_requests_total"), "{metrics}");
    testkit::eventually("how late events are is measured", async || {
        let metrics = anonymous.get("/internal/metrics").await.expect(200).text();
        metrics.contains("gpuaas_outbox_oldest_seconds")
    })
    .await;
}

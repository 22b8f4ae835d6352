//! The API as a tenant sees it.

use super::fixture::*;
use crate::*;
use axum::body::Body;
use axum::http::{Method, Request, header};
use http_body_util::BodyExt as _;
use iam::SeededKey;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt as _;

/// A tenant's client, bound to one project.
pub struct Api {
    router: axum::Router,
    token: String,
    project: String,
}

pub struct Answer {
    pub status: u16,
    pub text: String,
    pub json: Value,
}

pub fn key_header(key: &str) -> (&'static str, String) {
    ("idempotency-key", key.to_owned())
}

impl Api {
    pub async fn new(world: &World) -> Self {
        Self::of(world, &world.acme).await
    }

    pub async fn of(world: &World, tenant: &Tenant) -> Self {
        let key = world.iam.seed_key(SeededKey::Owner(tenant.organization), "test").await.unwrap();
        let gate = web::Gate::new(
            Arc::new(world.credentials()),
            web::Limits::new(world.settings.clone()),
            world.db.ids().clone(),
        );
        let router = web::router(&world.secrets.domain().endpoints, &gate);
        Self { router, token: key.expose().clone(), project: tenant.project.to_string() }
    }

    pub async fn post(&self, path: &str, body: &Value, headers: &[(&'static str, String)]) -> Answer {
        self.send(Method::POST, path, body.to_string(), headers).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, String::new(), &[]).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: String,
        headers: &[(&'static str, String)],
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1/projects/{}{path}", self.project))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status, json: serde_json::from_str(&text).unwrap_or_default(), text }
    }
}

impl Answer {
    fn code(&self) -> &str {
        self.json["code"].as_str().unwrap_or("")
    }
}

#[tokio::test]
async fn a_secret_goes_in_and_never_comes_out() {
    let world = World::new().await;
    let api = Api::new(&world).await;
    let body = json!({"name": "one", "purpose": "test", "value": "the value itself"});
    let made = api.post("/secrets", &body, &[]).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = made.json["id"].as_str().unwrap().to_owned();
    let rotated =
        api.post(&format!("/secrets/{id}/rotate"), &json!({"value": "the value itself, newer"}), &[]).await;
    assert_eq!((rotated.status, &rotated.json["version"]), (200, &json!(2)));
    world.deliver(id.parse().unwrap(), None).await.unwrap();
    let got = api.get(&format!("/secrets/{id}")).await;
    let list = api.get("/secrets?purpose=test").await;
    let deliveries = api.get(&format!("/secrets/{id}/deliveries")).await;
    assert_eq!(deliveries.json["items"][0]["recipient"], json!({"kind": "node", "id": "node_7"}));
    let retired = api.post(&format!("/secrets/{id}/retire"), &json!({}), &[]).await;
    assert_eq!((retired.status, &retired.json["state"]), (200, &json!("retired")));
    for answer in [&made, &rotated, &got, &list, &deliveries, &retired] {
        assert!(answer.status < 300 && !answer.text.contains("the value itself"), "{}", answer.text);
    }
    let again = api.post(&format!("/secrets/{id}/rotate"), &json!({"value": "late"}), &[]).await;
    assert_eq!((again.status, again.code()), (409, "secret_retired"));
}

#[tokio::test]
async fn a_missing_value_is_called_missing() {
    let world = World::new().await;
    let api = Api::new(&world).await;
    let secret = world.store("one", "value").await;
    let path = format!("/secrets/{}/rotate", secret.id);
    let answer = api.post(&path, &json!({}), &[]).await;
    assert_eq!(answer.status, 400, "{}", answer.json);
    assert_eq!(answer.json["details"]["field"], "value");
    assert_eq!(answer.json["detail"], "body.value: this field is missing");
}

#[tokio::test]
async fn a_generated_value_is_shown_once() {
    let world = World::new().await;
    let api = Api::new(&world).await;
    let body = json!({"name": "made here", "purpose": "test"});
    let first = api.post("/secrets/generate", &body, &[key_header("retry-me")]).await;
    assert_eq!(first.status, 201, "{}", first.text);
    let (id, value) = (first.json["secret"]["id"].clone(), first.json["value"].as_str().unwrap().to_owned());
    assert_eq!(value.len(), 43);
    let second = api.post("/secrets/generate", &body, &[key_header("retry-me")]).await;
    assert_eq!((second.status, second.code()), (409, "secret_already_delivered"));
    assert_eq!(second.json["details"]["secret_id"], id);
    assert!(!second.text.contains(&value));
    assert_eq!(world.count("SELECT count(*) FROM secrets.secret").await, 1);
    let kept = format!("SELECT count(*) FROM spine.idempotency WHERE strpos(result::text, '{value}') > 0");
    assert_eq!(world.count(&kept).await, 0);
    assert_eq!(world.count("SELECT count(*) FROM spine.idempotency").await, 1);
    let delivered = world.deliver(id.as_str().unwrap().parse().unwrap(), None).await.unwrap();
    assert_eq!(delivered.value.expose(), &value);
    let deliveries = api.get(&format!("/secrets/{}/deliveries", id.as_str().unwrap())).await;
    assert_eq!(deliveries.json["items"][0]["recipient"]["kind"], "user", "showing it was a delivery");
}

#[tokio::test]
async fn a_retried_create_makes_one_secret() {
    let world = World::new().await;
    let api = Api::new(&world).await;
    let body = json!({"name": "one", "purpose": "test", "value": "value"});
    let first = api.post("/secrets", &body, &[key_header("same")]).await;
    let second = api.post("/secrets", &body, &[key_header("same")]).await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.json, second.json);
    let other = json!({"name": "one", "purpose": "test", "value": "other"});
    let third = api.post("/secrets", &other, &[key_header("same")]).await;
    assert_eq!((third.status, third.code()), (409, "idempotency_key_reused"));
}

#[tokio::test]
async fn another_tenant_and_nobody_get_the_same_answer() {
    let world = World::new().await;
    let mine = Api::new(&world).await;
    let made = mine.post("/secrets", &json!({"name": "one", "purpose": "test", "value": "value"}), &[]).await;
    let id = made.json["id"].as_str().unwrap().to_owned();
    let mut rival = Api::of(&world, &world.rival).await;
    let missing: SecretId = nobody();
    // A foreign project, a missing project, and a foreign secret in one's own project.
    let missing_project: iam::ProjectId = nobody();
    let places = [
        (world.acme.project.to_string(), id.clone()),
        (missing_project.to_string(), missing.to_string()),
        (world.rival.project.to_string(), id.clone()),
        (world.rival.project.to_string(), missing.to_string()),
    ];
    for (project, secret) in places {
        let own = project == world.rival.project.to_string();
        rival.project = project;
        let value = json!({"value": "stolen"});
        let mut answers = vec![
            rival.get(&format!("/secrets/{secret}")).await,
            rival.get(&format!("/secrets/{secret}/deliveries")).await,
            rival.post(&format!("/secrets/{secret}/rotate"), &value, &[]).await,
            rival.post(&format!("/secrets/{secret}/retire"), &json!({}), &[]).await,
        ];
        if !own {
            let body = json!({"name": "n", "purpose": "test", "value": "v"});
            answers.push(rival.get("/secrets").await);
            answers.push(rival.post("/secrets", &body, &[]).await);
            answers
                .push(rival.post("/secrets/generate", &json!({"name": "n", "purpose": "test"}), &[]).await);
        }
        for answer in answers {
            let seen = (answer.status, answer.code(), answer.json["detail"].as_str().unwrap());
            assert_eq!(seen, (404, "not_found", "no secret with this id"));
        }
    }
    assert_eq!(mine.get(&format!("/secrets/{id}")).await.json["version"], 1, "nothing happened to it");
    rival.token = "gpuaas_key_wrong".to_owned();
    assert_eq!(rival.get("/secrets").await.status, 401);
}

#[tokio::test]
async fn an_operator_is_told_that_a_project_is_missing() {
    let world = World::new().await;
    let mut api = Api::new(&world).await;
    api.token = world.iam.seed_key(SeededKey::Operator, "operator").await.unwrap().expose().clone();
    assert_eq!(api.get("/secrets").await.status, 200);
    let missing: iam::ProjectId = nobody();
    api.project = missing.to_string();
    let answer = api.get("/secrets").await;
    assert_eq!((answer.status, answer.json["detail"].as_str()), (404, Some("no project with this id")));
}

//! The event stream as a client follows it.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use testkit::HttpClient;

use crate::shared::{database, gpuaasd, id, organization, unique};

/// Reads events until `enough` says so.
async fn follow(
    client: &HttpClient,
    path: &str,
    headers: &[(&str, &str)],
    enough: impl Fn(&[(String, Value)]) -> bool,
) -> Vec<(String, Value)> {
    let mut body = client.open(Method::GET, path, headers, None).await.unwrap().into_body();
    let (mut text, mut seen) = (String::new(), Vec::new());
    let reading = async {
        while !enough(&seen) {
            let frame = body.frame().await.expect("the stream goes on").unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
            while let Some((event, rest)) = text.split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned()))
            {
                text = rest;
                let field =
                    |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let (Some(cursor), Some(data)) = (field("id: "), field("data: ")) {
                    seen.push((cursor, serde_json::from_str(&data).unwrap()));
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the events come in time");
    seen
}

#[tokio::test]
async fn a_client_that_comes_back_misses_nothing() {
    let operator = gpuaasd().operator();
    let made = organization(&operator, "events").await;
    let path = format!("/api/v1/events?cursor=0&org_id={}", id(&made));
    let first = follow(&operator, &path, &[], |seen| !seen.is_empty()).await;
    assert_eq!(first[0].1["type"], "gpuaas.iam.organization.created");
    assert_eq!(first[0].1["data"]["organization"]["name"], made["name"]);
    for number in 0..5 {
        let body = json!({"name": format!("p{number}")});
        operator.post(&format!("/api/v1/orgs/{}/projects", id(&made)), &body).await.expect(201);
    }
    let again = format!("/api/v1/events?org_id={}", id(&made));
    let rest = follow(&operator, &again, &[("last-event-id", &first[0].0)], |seen| seen.len() == 5).await;
    let names: Vec<&Value> = rest.iter().map(|(_, event)| &event["data"]["project"]["name"]).collect();
    assert_eq!(names, ["p0", "p1", "p2", "p3", "p4"]);
}

#[tokio::test]
async fn events_carry_the_requests_correlation_id() {
    let operator = gpuaasd().operator();
    let body = json!({"name": unique("correlated")});
    let reply = operator.post("/api/v1/orgs", &body).await.expect(201);
    let correlation = reply.headers["x-correlation-id"].to_str().unwrap().to_owned();
    let made = reply.json();
    let path = format!("/api/v1/events?cursor=0&subject={}", id(&made));
    let seen = follow(&operator, &path, &[], |seen| !seen.is_empty()).await;
    assert_eq!(seen[0].1["gpuaascorrelation"], correlation);
}

#[tokio::test]
async fn a_tenants_stream_has_only_its_own_events() {
    let (operator, tenant) = (gpuaasd().operator(), gpuaasd().tenant());
    let own = gpuaasd().ready["org"].as_str().unwrap();
    organization(&operator, "not theirs").await;
    let name = unique("theirs");
    tenant.post(&format!("/api/v1/orgs/{own}/projects"), &json!({"name": name})).await.expect(201);
    let is_last = |seen: &[(String, Value)]| {
        seen.last().is_some_and(|(_, event)| event["data"]["project"]["name"] == name)
    };
    let seen = follow(&tenant, "/api/v1/events?cursor=0", &[], is_last).await;
    assert!(seen.iter().all(|(_, event)| {
        let data = &event["data"];
        [
            &data["project"]["org_id"],
            &data["organization"]["id"],
            &data["grant"]["org_id"],
            &data["key"]["org_id"],
            &data["org_id"],
        ]
        .iter()
        .any(|org| **org == *own)
    }));
    let types = format!("/api/v1/events?cursor=0&type={}", "gpuaas.iam.project.*");
    let projects = follow(&tenant, &types, &[], is_last).await;
    assert!(
        projects.iter().all(|(_, event)| event["type"].as_str().unwrap().starts_with("gpuaas.iam.project."))
    );
}

/// Keys of the demo organization with these texts, valid until told otherwise.
async fn keys<const N: usize>(texts: [&str; N]) -> [HttpClient; N] {
    let insert = "INSERT INTO iam.api_key (id, org_id, name, person_id, key_hash, created_at)
                  SELECT gen_random_uuid(), org_id, 'test', person_id, sha256($1::text::bytea), now()
                  FROM iam.api_key WHERE org_id IS NOT NULL ORDER BY id LIMIT 1";
    for text in texts {
        assert_eq!(database().await.execute(insert, &[&text]).await.unwrap(), 1);
    }
    texts.map(|text| gpuaasd().anonymous().with_token(text))
}

#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked_or_expires() {
    let texts = [unique("gpuaas_key_revoked"), unique("gpuaas_key_expiring"), unique("gpuaas_key_good")]
        .map(|text| text.replace(' ', "-"));
    let [revoked, expiring, good] = keys([&*texts[0], &*texts[1], &*texts[2]]).await;
    let open = async |client: &HttpClient| {
        let reply = client.open(Method::GET, "/api/v1/events", &[], None).await.unwrap();
        assert_eq!(reply.status().as_u16(), 200);
        reply.into_body()
    };
    let ended = [open(&revoked).await, open(&expiring).await];
    let mut going_on = open(&good).await;
    let end =
        "WITH ended AS (UPDATE iam.api_key SET revoked_at = CASE WHEN key_hash = sha256($1::text::bytea) THEN now() END,
                      expires_at = CASE WHEN key_hash = sha256($2::text::bytea) THEN now() END
               WHERE key_hash IN (sha256($1::text::bytea), sha256($2::text::bytea)) RETURNING id)
         INSERT INTO iam.revocation (kind, subject) SELECT 'credential', id FROM ended";
    assert_eq!(database().await.execute(end, &[&texts[0], &texts[1]]).await.unwrap(), 2);
    for stream in ended {
        tokio::time::timeout(Duration::from_secs(20), stream.collect())
            .await
            .expect("the stream ends")
            .expect("as a stream ends, not in the middle of a word");
    }
    for client in [&revoked, &expiring] {
        assert_eq!(client.get("/api/v1/events").await.expect(401).code(), "unauthenticated");
    }
    let name = unique("still followed");
    let own = gpuaasd().ready["org"].as_str().unwrap();
    good.post(&format!("/api/v1/orgs/{own}/projects"), &json!({"name": name})).await.expect(201);
    let mut seen = String::new();
    while !seen.contains(&name) {
        let frame = tokio::time::timeout(Duration::from_secs(20), going_on.frame()).await.expect("an event");
        seen.push_str(std::str::from_utf8(frame.unwrap().unwrap().data_ref().unwrap()).unwrap());
    }
}

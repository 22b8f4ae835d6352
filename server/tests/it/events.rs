//! The event stream as a client follows it.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use testkit::HttpClient;

use crate::shared::{gpuaasd, id, organization, unique};

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
        [&data["project"]["org_id"], &data["organization"]["id"], &data["org_id"]]
            .iter()
            .any(|org| **org == *own)
    }));
    let types = format!("/api/v1/events?cursor=0&type={}", "gpuaas.iam.project.*");
    let projects = follow(&tenant, &types, &[], is_last).await;
    assert!(
        projects.iter().all(|(_, event)| event["type"].as_str().unwrap().starts_with("gpuaas.iam.project."))
    );
}

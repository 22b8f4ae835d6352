//! Signing in with the one-time link.

use http::Method;
use serde_json::json;
use testkit::{Scratch, binary, eventually};

use crate::installation::Installation;
use crate::shared::{gpuaasd, unique};

/// A fresh code, made the way the machine's owner makes one.
fn code() -> String {
    link().split_once('#').expect("the code is after the #").1.to_owned()
}

fn link() -> String {
    let data = std::path::Path::new(gpuaasd().ready["operator_key_file"].as_str().unwrap()).parent().unwrap();
    let made = std::process::Command::new(binary())
        .args(["operator", "sign-in-link", "--data-dir"])
        .arg(data)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_link_leads_to_where_up_answers() {
    let (url, link) = (gpuaasd().ready["url"].as_str().unwrap(), link());
    assert!(link.starts_with(&format!("{url}/sign-in#")), "{link} is not at {url}");
}

#[tokio::test]
async fn a_link_of_a_larger_installation_leads_to_where_people_reach_it() {
    let installation = Installation::new("sign-in-address").await;
    let cases = [
        ("[public]\nlisten = \"127.0.0.1:8088\"", "", Ok("http://127.0.0.1:8088/sign-in#")),
        ("[public]\nlisten = \"192.0.2.1:443\"\ntls_key = \"k\"", "", Ok("https://192.0.2.1:443/sign-in#")),
        (
            "[public]\nlisten = \"0.0.0.0:443\"\nurl = \"https://cloud.example/\"",
            "",
            Ok("https://cloud.example/sign-in#"),
        ),
        ("[public]\nlisten = \"0.0.0.0:443\"", "", Err("Set public.url")),
        ("[public]\nlisten = \"0.0.0.0:443\"\nurl = \"cloud.example\"", "", Err("public.url")),
        ("", "", Err("--url")),
        ("", "https://named.example", Ok("https://named.example/sign-in#")),
    ];
    for (section, named, expected) in cases {
        let config = installation.config("address", section);
        let mut arguments = vec!["operator", "sign-in-link"];
        if !named.is_empty() {
            arguments.extend(["--url", named]);
        }
        let made = crate::installation::gpuaasd(&arguments, &[("--config", &config.file)]);
        let said = crate::installation::text(&made);
        match expected {
            Ok(begin) => {
                assert!(made.status.success() && said.starts_with(begin), "{section} {named}: {said}")
            }
            Err(words) => assert!(!made.status.success() && said.contains(words), "{section}: {said}"),
        }
    }
}

#[tokio::test]
async fn a_link_works_once_even_in_a_race() {
    let body = json!({"code": code()});
    let attempts: Vec<_> = (0..10)
        .map(|_| {
            let body = body.clone();
            tokio::spawn(async move {
                gpuaasd().anonymous().post("/api/v1/sessions", &body).await.status.as_u16()
            })
        })
        .collect();
    let mut statuses = Vec::new();
    for attempt in attempts {
        statuses.push(attempt.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![201], vec![401; 9]].concat());
}

#[tokio::test]
async fn a_session_cookie_signs_in_but_only_our_own_pages_may_change_things() {
    let anonymous = gpuaasd().anonymous();
    let signed_in = anonymous.post("/api/v1/sessions", &json!({"code": code()})).await.expect(201);
    let set = signed_in.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
    let cookie = set.split(';').next().unwrap().to_owned();
    let with = async |method: Method, path: &str, more: &[(&str, &str)], body: Option<&serde_json::Value>| {
        let mut headers = vec![("cookie", cookie.as_str())];
        headers.extend(more);
        anonymous.send(method, path, &headers, body).await.unwrap()
    };
    with(Method::GET, "/api/v1/orgs", &[], None).await.expect(200);
    let session = with(Method::GET, "/api/v1/session", &[], None).await.expect(200).json();
    assert!(session["expires_at"].is_string(), "{session}");
    assert_eq!(session, signed_in.json(), "who one is and until when, as told when signing in");
    let key = gpuaasd().operator().get("/api/v1/session").await.expect(200).json();
    assert!(key.get("expires_at").is_none(), "a key has no end: {key}");
    let body = json!({"name": unique("from a page")});
    for elsewhere in
        [vec![], vec![("origin", "https://evil.example")], vec![("sec-fetch-site", "cross-site")]]
    {
        let refused = with(Method::POST, "/api/v1/orgs", &elsewhere, Some(&body)).await.expect(403);
        assert_eq!(refused.code(), "cross_site_request");
    }
    with(Method::POST, "/api/v1/orgs", &[("sec-fetch-site", "same-origin")], Some(&body)).await.expect(201);
}

#[tokio::test]
async fn a_session_that_is_over_is_nobodys() {
    let anonymous = gpuaasd().anonymous();
    let signed_in = anonymous.post("/api/v1/sessions", &json!({"code": code()})).await.expect(201);
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let with =
        async |path: &str| anonymous.send(Method::GET, path, &[("cookie", &cookie)], None).await.unwrap();
    with("/api/v1/session").await.expect(200);
    let sql = "WITH over AS (UPDATE iam.session SET expires_at = now()
                             WHERE token_hash = sha256(convert_to($1, 'UTF8')) RETURNING id)
               INSERT INTO iam.revocation (kind, subject) SELECT 'credential', id FROM over";
    let token = cookie.split_once('=').unwrap().1;
    assert_eq!(crate::shared::database().await.execute(sql, &[&token]).await.unwrap(), 1);
    eventually("the session is over", async || with("/api/v1/orgs").await.status == 401).await;
}

#[test]
fn a_new_operator_key_never_replaces_a_file() {
    let directory = Scratch::new("key-overwrite");
    let mine = directory.path().join("mine");
    std::fs::write(&mine, "in use").unwrap();
    let data = std::path::Path::new(gpuaasd().ready["operator_key_file"].as_str().unwrap()).parent().unwrap();
    let refused =
        crate::installation::gpuaasd(&["operator", "key"], &[("--data-dir", data), ("--out", &mine)]);
    let said = crate::installation::text(&refused);
    assert!(!refused.status.success() && said.contains("exists already"), "{said}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "in use");
}

//! Providers that are down, confused, slow or hostile.

use std::collections::HashMap;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use serde_json::{Value, json};
use types::Secret;

use super::fake_provider::*;
use super::forge::*;
use crate::*;

#[tokio::test]
async fn a_sign_in_from_beginning_to_end() {
    let scene = Scene::new().await;
    let wish = Wish {
        acr_values: vec!["urn:strong".to_owned(), "urn:mid".to_owned()],
        max_age: Some(Duration::from_secs(300)),
        prompt: Some(Prompt::Login),
    };
    let (url, attempt) = scene.provider.begin(&wish).await.unwrap();
    let url = reqwest::Url::parse(&url).unwrap();
    let asked: HashMap<_, _> = url.query_pairs().into_owned().collect();
    let challenge = encode(digest(&SHA256, attempt.verifier.expose().as_bytes()));
    let expected = [
        ("tenant", "t"),
        ("response_type", "code"),
        ("response_mode", "fragment"),
        ("client_id", CLIENT),
        ("redirect_uri", "http://127.0.0.1:9/sign-in/done"),
        ("scope", "openid email groups"),
        ("state", attempt.state.expose()),
        ("nonce", attempt.nonce.expose()),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("acr_values", "urn:strong urn:mid"),
        ("max_age", "300"),
        ("prompt", "login"),
    ];
    assert_eq!(asked, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());

    let claims = json!({"acr": "urn:strong", "amr": ["pwd", "otp"], "email": "ada@example.test", "email_verified": true});
    let token = key("RS256").sign(&with(&scene.claims(&attempt), claims));
    scene.fake.says("/token", json!({"id_token": token, "access_token": "opaque", "token_type": "Bearer"}));
    let signed_in = scene.finish(&attempt).await.unwrap();
    assert_eq!((signed_in.issuer.as_str(), signed_in.subject.as_str()), (scene.fake.issuer.as_str(), "ada"));
    assert_eq!(signed_in.provider_session.as_deref(), Some("s1"));
    assert_eq!(signed_in.groups, Some(vec!["ml".to_owned()]));
    let email = Some("ada@example.test".to_owned());
    assert_eq!(signed_in.profile, Profile { name: None, email, email_verified: true });
    assert_eq!(signed_in.assurance.amr, ["pwd", "otp"]);
    assert!(signed_in.assurance.strong);

    let exchange = &scene.fake.asked("/token")[0];
    let pair = STANDARD.encode("gpuaas:a+secret%3A+with+%2B+and+%25");
    assert_eq!(exchange.authorization, Some(format!("Basic {pair}")));
    let form = [
        ("grant_type", "authorization_code"),
        ("code", "the-code"),
        ("redirect_uri", "http://127.0.0.1:9/sign-in/done"),
        ("code_verifier", attempt.verifier.expose()),
    ];
    assert_eq!(exchange.form, form.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[tokio::test]
async fn a_client_proves_itself_as_it_is_configured() {
    let secret = || Secret::new("s".to_owned());
    for (auth, expected) in [(ClientAuth::Post(secret()), Some("s")), (ClientAuth::Public, None)] {
        let scene = Scene::with(json!({}), |config| config.client_auth = auth).await;
        scene.sign_in(json!({})).await.unwrap();
        let asked = &scene.fake.asked("/token")[0];
        assert_eq!(asked.authorization, None);
        assert_eq!(asked.form.get("client_id").map(String::as_str), Some(CLIENT));
        assert_eq!(asked.form.get("client_secret").map(String::as_str), expected);
    }
}

#[tokio::test]
async fn no_two_attempts_share_a_secret() {
    let scene = Scene::new().await;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..3 {
        let (_, attempt) = scene.provider.begin(&Wish::default()).await.unwrap();
        for secret in [&attempt.state, &attempt.nonce, &attempt.verifier] {
            assert_eq!(secret.expose().len(), 43);
            assert!(seen.insert(secret.expose().clone()));
        }
    }
}

#[tokio::test]
async fn a_description_that_does_not_hold_is_refused() {
    let (bad, down) = (&PROVIDER_MISCONFIGURED, &PROVIDER_UNREACHABLE);
    let scene = Scene::new().await;
    let right = scene.fake.description();
    let slash = format!("{}/", scene.fake.issuer);
    let elsewhere = Answer::Redirect(format!("{}/elsewhere", scene.fake.issuer));
    scene.fake.says("/elsewhere", right.clone());
    let says = |changes: Value| Answer::Json(200, with(&right, changes));
    for (answer, code, text) in [
        (says(json!({"issuer": slash})), bad, "another issuer"),
        (says(json!({"issuer": "https://evil.test"})), bad, "another issuer"),
        (says(json!({"issuer": null})), bad, "another issuer"),
        (says(json!({"token_endpoint": null})), bad, "no token_endpoint"),
        (says(json!({"jwks_uri": 7})), bad, "no jwks_uri"),
        (says(json!({"token_endpoint": "http://login.example.test/token"})), bad, "not an https:// one"),
        (says(json!({"jwks_uri": "file:///etc/passwd"})), bad, "names no host"),
        (says(json!({"authorization_endpoint": "javascript:alert(1)"})), bad, "names no host"),
        (says(json!({"authorization_endpoint": "https://a@b.test/"})), bad, "contains a user name"),
        (says(json!({"end_session_endpoint": "https://b.test/#x"})), bad, "contains a fragment"),
        (says(json!({"code_challenge_methods_supported": ["plain"]})), bad, "PKCE"),
        (Answer::Json(404, json!({})), bad, "answered 404"),
        (Answer::Text(200, "<html>"), bad, "not a JSON object"),
        (Answer::Text(200, r#"{"issuer":"a","issuer":"b"}"#), bad, "not a JSON object"),
        (elsewhere, bad, "sends us elsewhere"),
        (Answer::Endless, bad, "too long"),
        (Answer::Json(500, right.clone()), down, "answered 500"),
        (Answer::Json(429, right.clone()), down, "answered 429"),
    ] {
        scene.fake.answers(DISCOVERY, answer);
        refused(scene.provider.begin(&Wish::default()).await, code, text);
    }
    assert_eq!(scene.fake.times_asked("/elsewhere"), 0, "a redirect was followed");
    // A fault is not remembered: when the provider is well again, so are we.
    scene.fake.says(DISCOVERY, right);
    scene.sign_in(json!({})).await.unwrap();
}

#[tokio::test]
async fn a_provider_that_is_gone_is_unreachable() {
    let scene = Scene::with(json!({}), |config| {
        config.issuer = format!("http://127.0.0.1:{}", testkit::free_port());
    })
    .await;
    refused(scene.provider.begin(&Wish::default()).await, &PROVIDER_UNREACHABLE, "cannot be reached");
}

/// The provider goes away between the two halves of a sign-in.
#[tokio::test]
async fn the_code_exchange_fails_for_what_it_is() {
    let (bad, down, no) = (&PROVIDER_MISCONFIGURED, &PROVIDER_UNREACHABLE, &SIGN_IN_REJECTED);
    let scene = Scene::new().await;
    let (_, attempt) = scene.provider.begin(&Wish::default()).await.unwrap();
    for (answer, code, text) in [
        (Answer::Json(400, json!({"error": "invalid_grant"})), no, "does not accept the code"),
        (Answer::Json(401, json!({"error": "invalid_client"})), bad, "client id and secret"),
        (Answer::Json(400, json!({"error": "<script>"})), bad, "refuses to exchange"),
        (Answer::Json(200, json!({"access_token": "opaque"})), bad, "without an id token"),
        (Answer::Text(200, "<html>"), bad, "not a JSON object"),
        (Answer::Redirect("http://127.0.0.1:9/".to_owned()), bad, "sends us elsewhere"),
        (Answer::Endless, bad, "too long"),
        (Answer::Json(503, json!({})), down, "answered 503"),
    ] {
        scene.fake.answers("/token", answer);
        refused(scene.finish(&attempt).await, code, text);
    }
}

#[tokio::test]
async fn hostile_id_tokens_are_refused() {
    let scene = Scene::new().await;
    let seconds = NOW;
    for (changes, text) in [
        (json!({"nonce": "another"}), "belongs to another sign-in"),
        (json!({"nonce": null}), "no nonce"),
        (json!({"nonce": 7}), "nonce has the wrong form"),
        (json!({"iss": "https://evil.test"}), "another issuer"),
        (json!({"aud": "another"}), "somebody else"),
        (json!({"exp": seconds - 61}), "expired"),
        (json!({"iat": seconds + 61}), "in the future"),
        (json!({"auth_time": seconds + 61}), "in the future"),
        (json!({"sub": ""}), "sub has the wrong form"),
        (json!({"sid": 7}), "sid has the wrong form"),
        (json!({"acr": ["urn:strong"]}), "acr has the wrong form"),
        (json!({"amr": "pwd"}), "amr has the wrong form"),
        (json!({"at_hash": "AAAA"}), "not the id token's own"),
        (json!({"events": {}}), "another kind"),
    ] {
        refused(scene.sign_in(changes).await, &SIGN_IN_REJECTED, text);
    }
    let forger = Key::new("RS256", "RS256");
    let forged = scene.sign_in_with(&forger, &Wish::default(), json!({})).await;
    refused(forged, &SIGN_IN_REJECTED, "signature is wrong");
    scene.sign_in(json!({})).await.unwrap();
}

#[tokio::test]
async fn an_access_token_must_be_the_id_tokens_own() {
    for (alg, hash) in
        [("RS256", &SHA256), ("PS256", &SHA256), ("ES256", &SHA256), ("ES384", &SHA384), ("EdDSA", &SHA512)]
    {
        let scene = Scene::new().await;
        scene.fake.publishes(&[key(alg)]);
        let whole = digest(hash, b"opaque");
        let right = encode(&whole.as_ref()[..hash.output_len() / 2]);
        let sign_in = |at_hash: String| scene.sign_in_with(key(alg), &WISH, json!({"at_hash": at_hash}));
        sign_in(right).await.unwrap();
        let swapped = encode(&digest(hash, b"another").as_ref()[..hash.output_len() / 2]);
        refused(sign_in(swapped).await, &SIGN_IN_REJECTED, "not the id token's own");
    }
}

static WISH: Wish = Wish { acr_values: Vec::new(), max_age: None, prompt: None };

#[tokio::test]
async fn an_answer_of_another_attempt_or_provider_is_refused_before_the_code_is_shown() {
    let scene = Scene::new().await;
    let (_, attempt) = scene.provider.begin(&WISH).await.unwrap();
    let issuer = scene.fake.issuer.clone();
    let right = Callback {
        state: attempt.state.expose(),
        issuer: Some(&issuer),
        code: Some("the-code"),
        error: None,
    };
    for (callback, text) in [
        (Callback { state: "", ..right }, "another sign-in"),
        (Callback { state: "another", ..right }, "another sign-in"),
        (Callback { issuer: Some("https://evil.test"), ..right }, "another provider"),
        (Callback { issuer: None, ..right }, "another provider"),
        (Callback { code: None, ..right }, "no code"),
    ] {
        refused(scene.provider.finish(&attempt, &callback).await, &SIGN_IN_REJECTED, text);
    }
    assert_eq!(scene.fake.times_asked("/token"), 0);

    // A provider that does not say that it names itself need not; if it does, it must be right all the same.
    let scene = Scene::new().await;
    let silent = json!({"authorization_response_iss_parameter_supported": null});
    scene.fake.says(DISCOVERY, with(&scene.fake.description(), silent));
    let (_, attempt) = scene.provider.begin(&WISH).await.unwrap();
    let token = key("RS256").sign(&scene.claims(&attempt));
    scene.fake.says("/token", json!({"id_token": token}));
    let right = Callback { state: attempt.state.expose(), issuer: None, code: Some("the-code"), error: None };
    let other = Callback { issuer: Some("https://evil.test"), ..right };
    refused(scene.provider.finish(&attempt, &other).await, &SIGN_IN_REJECTED, "another provider");
    scene.provider.finish(&attempt, &right).await.unwrap();
}

#[tokio::test]
async fn errors_that_come_through_the_browser_are_not_repeated() {
    let scene = Scene::new().await;
    let (_, attempt) = scene.provider.begin(&WISH).await.unwrap();
    let issuer = scene.fake.issuer.clone();
    for (error, code, text) in [
        ("access_denied", &SIGN_IN_REJECTED, "did not let you in"),
        ("login_required", &SIGN_IN_REJECTED, "needs you to sign in"),
        ("temporarily_unavailable", &PROVIDER_UNREACHABLE, "cannot answer now"),
        ("invalid_scope", &PROVIDER_MISCONFIGURED, "scope"),
        ("<script>alert(1)</script>", &SIGN_IN_REJECTED, "answered with an error"),
    ] {
        let state = attempt.state.expose();
        // A code beside an error does not count.
        let callback = Callback { state, issuer: Some(&issuer), code: Some("the-code"), error: Some(error) };
        refused(scene.provider.finish(&attempt, &callback).await, code, text);
    }
    assert_eq!(scene.fake.times_asked("/token"), 0);
}

#[tokio::test]
async fn keys_that_change_in_mid_flight_are_found_and_unknown_ones_asked_for_seldom() {
    let scene = Scene::new().await;
    let jwks = || scene.fake.times_asked("/jwks");
    let sign_in = |key| scene.sign_in_with(key, &WISH, json!({}));
    sign_in(key("RS256")).await.unwrap();
    sign_in(key("RS256")).await.unwrap();
    assert_eq!(jwks(), 1, "known keys are not asked for again");

    // The provider changes its key between our look at it and its next token.
    let (second, third, stranger) =
        (Key::new("second", "ES256"), Key::new("third", "EdDSA"), Key::new("stranger", "EdDSA"));
    scene.fake.publishes(&[&second]);
    sign_in(&second).await.unwrap();
    assert_eq!(jwks(), 2);
    refused(sign_in(key("RS256")).await, &SIGN_IN_REJECTED, "does not publish");
    for _ in 0..20 {
        refused(sign_in(&stranger).await, &SIGN_IN_REJECTED, "does not publish");
    }
    assert_eq!(jwks(), 2, "unknown key ids make us ask again and again");
    scene.fake.publishes(&[&second, &third]);
    scene.advance(10);
    sign_in(&third).await.unwrap();
    assert_eq!(jwks(), 3);
    sign_in(&second).await.unwrap();
    refused(sign_in(&stranger).await, &SIGN_IN_REJECTED, "does not publish");
    assert_eq!(jwks(), 3);

    // A key that is withdrawn stops working when the set is looked at again, and not before.
    scene.fake.publishes(&[&third]);
    sign_in(&second).await.unwrap();
    scene.advance(3600);
    refused(sign_in(&second).await, &SIGN_IN_REJECTED, "does not publish");
    sign_in(&third).await.unwrap();
}

#[tokio::test]
async fn keys_that_cannot_be_had_are_told_apart() {
    for (answer, code, text) in [
        (Answer::Json(500, json!({})), &PROVIDER_UNREACHABLE, "answered 500"),
        (Answer::Endless, &PROVIDER_MISCONFIGURED, "too long"),
        (Answer::Redirect("/".to_owned()), &PROVIDER_MISCONFIGURED, "elsewhere"),
        (Answer::Json(200, json!({"keys": []})), &PROVIDER_MISCONFIGURED, "no keys that we can use"),
        (
            Answer::Json(200, json!({"keys": vec![json!({}); 101]})),
            &PROVIDER_MISCONFIGURED,
            "no keys that we can use",
        ),
    ] {
        let scene = Scene::new().await;
        scene.fake.answers("/jwks", answer);
        refused(scene.sign_in(json!({})).await, code, text);
    }
}

#[tokio::test]
async fn a_provider_that_keeps_silent_is_given_up() {
    for path in [DISCOVERY, "/token", "/jwks", "/userinfo"] {
        let scene = Scene::with(json!({"signin.provider_timeout_ms": 500}), |_| {}).await;
        let outcome = async {
            let (_, attempt) = scene.provider.begin(&WISH).await?;
            let token = key("RS256").sign(&with(&scene.claims(&attempt), json!({"groups": null})));
            scene.fake.says("/token", json!({"id_token": token, "access_token": "opaque"}));
            scene.fake.answers(path, Answer::Silence);
            scene.finish(&attempt).await
        };
        scene.fake.answers(path, Answer::Silence);
        // On a busy machine an earlier question may be the one that is given up: the answer is the same.
        refused(outcome.await, &PROVIDER_UNREACHABLE, "in time");
    }
}

#[tokio::test]
async fn an_issuer_is_a_plain_address() {
    for issuer in ["https://login.example.test?x=", "https://login.example.test/#"] {
        let scene = Scene::with(json!({}), |config| config.issuer = issuer.to_owned()).await;
        refused(scene.provider.begin(&WISH).await, &PROVIDER_MISCONFIGURED, "neither a query nor a fragment");
    }
}

#[tokio::test]
async fn a_hundred_people_ask_once() {
    let scene = Scene::new().await;
    let all = join_all((0..100).map(|_| scene.provider.begin(&WISH))).await;
    assert!(all.into_iter().all(|begun| begun.is_ok()));
    assert_eq!(scene.fake.times_asked(DISCOVERY), 1);
}

/// Nobody waits for all those before them to give up.
#[tokio::test]
async fn nobody_stands_in_line_behind_a_dead_provider() {
    let scene = Scene::with(json!({"signin.provider_timeout_ms": 100}), |_| {}).await;
    scene.fake.answers(DISCOVERY, Answer::Silence);
    let all = join_all((0..200).map(|_| scene.provider.begin(&WISH)));
    let all = tokio::time::timeout(Duration::from_secs(10), all).await.expect("all are answered soon");
    for begun in all {
        refused(begun, &PROVIDER_UNREACHABLE, "in time");
    }
}

#[tokio::test]
async fn how_strong_a_login_was_is_what_the_provider_answered() {
    let scene = Scene::new().await;
    let strong_wish = Wish { acr_values: vec!["urn:strong".to_owned()], ..Wish::default() };
    for (changes, strong) in [
        (json!({}), false),
        (json!({"acr": "urn:basic", "amr": ["pwd"]}), false), // asked for strong, answered with basic and success
        (json!({"acr": "urn:strong"}), true),
        (json!({"acr": "URN:STRONG"}), false),
        (json!({"amr": ["pwd", "hwk"]}), true),
    ] {
        let signed_in = scene.sign_in_with(key("RS256"), &strong_wish, changes.clone()).await.unwrap();
        assert_eq!(signed_in.assurance.strong, strong, "{changes}");
    }
}

#[tokio::test]
async fn how_fresh_a_login_was_is_what_the_provider_answered() {
    let scene = Scene::new().await;
    let wish =
        Wish { max_age: Some(Duration::from_secs(300)), prompt: Some(Prompt::Login), ..Wish::default() };
    let sign_in = |changes| scene.sign_in_with(key("RS256"), &wish, changes);
    sign_in(json!({"auth_time": NOW - 360})).await.unwrap();
    refused(sign_in(json!({"auth_time": NOW - 361})).await, &SIGN_IN_REJECTED, "older login");
    refused(sign_in(json!({"auth_time": null})).await, &SIGN_IN_REJECTED, "older login");
    // Nobody demanded it: an old login is an old login, and known as such.
    let old = scene.sign_in(json!({"auth_time": NOW - 90_000})).await.unwrap().assurance;
    let (day, minute) = (Duration::from_secs(86_400), Duration::from_secs(60));
    assert!(!old.is_fresh(day, now(), minute) && old.is_fresh(day * 2, now(), minute));
    let unknown = scene.sign_in(json!({"auth_time": null})).await.unwrap().assurance;
    assert!(!unknown.is_fresh(Duration::MAX, now(), minute));
}

#[tokio::test]
async fn groups_come_from_where_they_are() {
    let ml = Some(vec!["ml".to_owned()]);
    for (path, claims, expected) in [
        ("groups", json!({"groups": "ml"}), ml.clone()),
        ("groups", json!({"groups": []}), Some(vec![])),
        ("realm_access.roles", json!({"realm_access": {"roles": ["ml"]}}), ml.clone()),
        ("https://a.test/groups", json!({"https://a.test/groups": ["ml"]}), ml.clone()),
        ("groups.x", json!({"groups": ["ml"]}), None),
    ] {
        let scene = Scene::with(json!({}), |config| config.groups = ClaimPath::new(path)).await;
        scene.fake.says("/userinfo", json!({"sub": "ada"}));
        let got = scene.sign_in(claims).await.unwrap().groups;
        assert_eq!(got, expected, "{path}");
    }
    assert_eq!([ClaimPath::new(""), ClaimPath::new("a..b"), ClaimPath::new(".a")], [None, None, None]);

    let scene = Scene::with(json!({"signin.groups_max": 2}), |_| {}).await;
    for (groups, text) in [
        (json!(7), "neither a text nor a list"),
        (json!(["a", 7]), "neither a text nor a list"),
        (json!({"a": true}), "neither a text nor a list"),
        (json!(["a", "b", "c"]), "too many groups"),
    ] {
        refused(scene.sign_in(json!({"groups": groups})).await, &PROVIDER_MISCONFIGURED, text);
    }
}

#[tokio::test]
async fn groups_from_userinfo_must_be_the_same_persons() {
    let scene = Scene::new().await;
    scene.fake.says("/userinfo", json!({"sub": "ada", "groups": ["ops"]}));
    let absent = || scene.sign_in(json!({"groups": null}));
    assert_eq!(absent().await.unwrap().groups, Some(vec!["ops".to_owned()]));
    assert_eq!(scene.fake.asked("/userinfo")[0].authorization.as_deref(), Some("Bearer opaque"));
    scene.fake.says("/userinfo", json!({"sub": "eve", "groups": ["admins"]}));
    refused(absent().await, &SIGN_IN_REJECTED, "somebody else");
    scene.fake.says("/userinfo", json!({"groups": ["admins"]}));
    refused(absent().await, &SIGN_IN_REJECTED, "somebody else");
    scene.fake.answers("/userinfo", Answer::Json(401, json!({})));
    refused(absent().await, &PROVIDER_MISCONFIGURED, "userinfo");
    scene.fake.answers("/userinfo", Answer::Json(503, json!({})));
    refused(absent().await, &PROVIDER_UNREACHABLE, "503");
    // With groups in the token nobody asks.
    let before = scene.fake.times_asked("/userinfo");
    scene.sign_in(json!({})).await.unwrap();
    assert_eq!(scene.fake.times_asked("/userinfo"), before);
}

#[tokio::test]
async fn logout_tokens_are_believed_only_if_they_are_ones() {
    let scene = Scene::new().await;
    let event = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    let right = json!({"iss": scene.fake.issuer, "aud": CLIENT, "iat": NOW, "exp": NOW + 120, "jti": "j1",
        "sub": "ada", "sid": "s1", "events": event});
    let sign = |changes| key("RS256").sign_typed("logout+jwt", &with(&right, changes));
    let got = scene.provider.logged_out(&sign(json!({}))).await.unwrap();
    let expires_at = types::Timestamp::from_second(NOW + 120).unwrap();
    let (subject, provider_session) = (Some("ada".to_owned()), Some("s1".to_owned()));
    assert_eq!(got, LoggedOut { subject, provider_session, token_id: "j1".to_owned(), expires_at });
    let got = scene.provider.logged_out(&sign(json!({"sub": null}))).await.unwrap();
    assert_eq!((got.subject, got.provider_session.as_deref()), (None, Some("s1")));

    for (changes, text) in [
        (json!({"sub": null, "sid": null}), "names nobody"),
        (json!({"nonce": "n"}), "another kind"),
        (json!({"events": null}), "no events"),
        (json!({"events": {}}), "something else"),
        (json!({"events": {"http://schemas.openid.net/event/backchannel-logout": true}}), "something else"),
        (json!({"events": ["http://schemas.openid.net/event/backchannel-logout"]}), "something else"),
        (json!({"jti": null}), "no jti"),
        (json!({"exp": null}), "no exp"),
        (json!({"exp": NOW - 61}), "expired"),
        (json!({"exp": NOW + 90_000}), "too long"),
        (json!({"iss": "https://evil.test"}), "another issuer"),
        (json!({"aud": "another"}), "somebody else"),
        (json!({"sid": 7}), "sid has the wrong form"),
    ] {
        refused(scene.provider.logged_out(&sign(changes)).await, &SIGN_IN_REJECTED, text);
    }
    let id_token = scene.sign_in(json!({})).await.unwrap().id_token;
    refused(scene.provider.logged_out(id_token.expose()).await, &SIGN_IN_REJECTED, "another kind");
    for rubbish in ["", "a.b.c", &"x".repeat(1 << 20)] {
        refused(scene.provider.logged_out(rubbish).await, &SIGN_IN_REJECTED, "refused");
    }
}

#[tokio::test]
async fn signing_out_at_the_provider_needs_a_place_for_it() {
    let scene = Scene::new().await;
    let hint = Secret::new("a.b.c".to_owned());
    let url = scene.provider.logout_url(Some(&hint), "https://us.test/out", "st").await.unwrap().unwrap();
    let expected = format!(
        "{}/logout?client_id=gpuaas&post_logout_redirect_uri=https%3A%2F%2Fus.test%2Fout&state=st&id_token_hint=a.b.c",
        scene.fake.issuer
    );
    assert_eq!(url, expected);
    let scene = Scene::new().await;
    scene.fake.says(DISCOVERY, with(&scene.fake.description(), json!({"end_session_endpoint": null})));
    assert_eq!(scene.provider.logout_url(None, "https://us.test/out", "st").await.unwrap(), None);
}

//! Against a real provider, npm's `oidc-provider`: what the fake says is right must be right there, too.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Browser, OidcProvider, Visit, eventually};
use types::{Clock as _, Secret, SystemClock, SystemEntropy};

use super::fake_provider::{Fake, config, refused, settings};
use crate::*;

const REDIRECT: &str = "http://127.0.0.1:9/sign-in/done";
const OUT: &str = "http://127.0.0.1:9/signed-out";
const ALGORITHMS: [&str; 5] = ["RS256", "PS256", "ES256", "ES384", "EdDSA"];

/// One client per algorithm, named after it; `logout_to` hears of people who sign out.
async fn start(logout_to: &str) -> OidcProvider {
    let client = |alg: &str| {
        let auth = if alg == "PS256" { "client_secret_post" } else { "client_secret_basic" };
        json!({
            "client_id": alg, "client_secret": "a secret: with + and %", "redirect_uris": [REDIRECT],
            "id_token_signed_response_alg": alg, "token_endpoint_auth_method": auth,
            "backchannel_logout_uri": logout_to, "backchannel_logout_session_required": true,
            "post_logout_redirect_uris": [OUT],
        })
    };
    OidcProvider::start(&Value::from(ALGORITHMS.map(client).to_vec())).await
}

fn provider(op: &OidcProvider, alg: &str) -> Provider {
    let settings = settings(json!({"signin.provider_timeout_ms": 20_000}));
    let secret = Secret::new("a secret: with + and %".to_owned());
    let client_auth = if alg == "PS256" { ClientAuth::Post(secret) } else { ClientAuth::Basic(secret) };
    let strong = StrongRule { acr: vec!["urn:gpuaas:strong".to_owned()], amr: Vec::new() };
    let config = ProviderConfig {
        client_id: alg.to_owned(),
        client_auth,
        redirect_uri: REDIRECT.to_owned(),
        strong,
        ..config(&op.issuer)
    };
    let outgoing = Outgoing::new(Mode::Development, settings.clone()).unwrap();
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    Provider::new(config, Surroundings { outgoing, clock, entropy, settings })
}

/// What the page at our address would read from the fragment and send on.
struct Brought(HashMap<String, String>);

impl Brought {
    fn from(visit: &Visit) -> Self {
        let (page, fragment) = visit.address.split_once('#').expect("the answer is in the fragment");
        assert_eq!(page, REDIRECT);
        Self(form_urlencoded::parse(fragment.as_bytes()).into_owned().collect())
    }

    fn callback(&self) -> Callback<'_> {
        let get = |name: &str| self.0.get(name).map(String::as_str);
        let state = get("state").unwrap_or_default();
        Callback { state, issuer: get("iss"), code: get("code"), error: get("error") }
    }
}

async fn sign_in(provider: &Provider, browser: &mut Browser) -> types::Result<SignedIn> {
    let (url, attempt) = provider.begin(&Wish::default()).await?;
    let brought = Brought::from(&browser.sign_in(&url, "ada").await);
    provider.finish(&attempt, &brought.callback()).await
}

#[tokio::test]
async fn somebody_signs_in_with_each_algorithm() {
    let op = start("http://127.0.0.1:9/").await;
    op.control(&json!({"user": {"sub": "ada", "groups": ["ml-admins", "ops"]}})).await;
    for alg in ALGORITHMS {
        let provider = provider(&op, alg);
        let signed_in =
            sign_in(&provider, &mut op.browser()).await.unwrap_or_else(|error| panic!("{alg}: {error:?}"));
        assert_eq!((signed_in.issuer.as_str(), signed_in.subject.as_str()), (op.issuer.as_str(), "ada"));
        assert_eq!(signed_in.groups, Some(vec!["ml-admins".to_owned(), "ops".to_owned()]));
        assert_eq!(signed_in.profile.email.as_deref(), Some("ada@example.test"));
        assert!(signed_in.profile.email_verified && signed_in.provider_session.is_some());
        let Assurance { acr, amr, auth_time, strong } = signed_in.assurance;
        assert_eq!((acr.as_deref(), amr, strong), (Some("urn:gpuaas:basic"), vec!["pwd".to_owned()], false));
        assert!(auth_time.is_some());
    }
}

#[tokio::test]
async fn a_code_is_good_once_and_only_with_its_verifier() {
    let op = start("http://127.0.0.1:9/").await;
    let provider = provider(&op, "RS256");
    let mut browser = op.browser();
    let (url, attempt) = provider.begin(&Wish::default()).await.unwrap();
    let brought = Brought::from(&browser.sign_in(&url, "ada").await);
    provider.finish(&attempt, &brought.callback()).await.unwrap();
    let twice = provider.finish(&attempt, &brought.callback()).await;
    refused(twice, &SIGN_IN_REJECTED, "does not accept the code");

    // Somebody who stole the code, but has not the browser's attempt.
    let (url, attempt) = provider.begin(&Wish::default()).await.unwrap();
    let brought = Brought::from(&browser.sign_in(&url, "ada").await);
    let stolen = Attempt { verifier: Secret::new("x".repeat(43)), ..attempt };
    let outcome = provider.finish(&stolen, &brought.callback()).await;
    refused(outcome, &SIGN_IN_REJECTED, "does not accept the code");

    let (url, attempt) = provider.begin(&Wish::default()).await.unwrap();
    let brought = Brought::from(&op.browser().visit(&url, &json!({"abort": true})).await);
    refused(provider.finish(&attempt, &brought.callback()).await, &SIGN_IN_REJECTED, "did not let you in");
}

#[tokio::test]
async fn a_stronger_and_fresher_login_is_asked_for_and_judged() {
    let op = start("http://127.0.0.1:9/").await;
    let provider = provider(&op, "ES256");
    let mut browser = op.browser();
    sign_in(&provider, &mut browser).await.unwrap();

    // The provider knows the person already, and asks nothing.
    let (url, attempt) = provider.begin(&Wish::default()).await.unwrap();
    let visit = browser.sign_in(&url, "ada").await;
    assert!(visit.asked.is_empty(), "{visit:?}");
    provider.finish(&attempt, &Brought::from(&visit).callback()).await.unwrap();

    let wish = Wish {
        acr_values: vec!["urn:gpuaas:strong".to_owned()],
        max_age: Some(Duration::from_secs(300)),
        prompt: Some(Prompt::Login),
    };
    let (url, attempt) = provider.begin(&wish).await.unwrap();
    let login = json!({"accountId": "ada", "acr": "urn:gpuaas:strong", "amr": ["pwd", "otp"]});
    let visit = browser.visit(&url, &json!({"login": login})).await;
    let params = &visit.asked[0]["params"];
    assert_eq!((&params["acr_values"], &params["max_age"]), (&json!("urn:gpuaas:strong"), &json!("300")));
    assert_eq!(visit.asked[0]["prompt"]["name"], "login");
    let assurance = provider.finish(&attempt, &Brought::from(&visit).callback()).await.unwrap().assurance;
    assert!(assurance.strong && assurance.amr == ["pwd", "otp"]);
    assert!(assurance.is_fresh(wish.max_age.unwrap(), SystemClock.now(), Duration::ZERO));

    // The same wish, answered with a password alone: success there, not strong here.
    let (url, attempt) = provider.begin(&wish).await.unwrap();
    let visit = op.browser().sign_in(&url, "ada").await;
    let assurance = provider.finish(&attempt, &Brought::from(&visit).callback()).await.unwrap().assurance;
    assert!(!assurance.strong, "{assurance:?}");
}

#[tokio::test]
async fn keys_change_clocks_differ_and_servers_fail() {
    let op = start("http://127.0.0.1:9/").await;
    let provider = provider(&op, "EdDSA");
    sign_in(&provider, &mut op.browser()).await.unwrap();
    for rotation in ["add", "replace"] {
        // A provider of ours that has not looked again lately.
        let provider = self::provider(&op, "RS256");
        sign_in(&provider, &mut op.browser()).await.unwrap();
        op.control(&json!({"rotate": rotation})).await;
        sign_in(&provider, &mut op.browser()).await.unwrap_or_else(|error| panic!("{rotation}: {error:?}"));
    }

    // 30 s are within what clocks may differ by; two hours are not, either way.
    let provider = self::provider(&op, "RS256");
    for skew in [-30, 30] {
        op.control(&json!({"skew": skew})).await;
        sign_in(&provider, &mut op.browser()).await.unwrap_or_else(|error| panic!("{skew} s: {error:?}"));
    }
    for (skew, text) in [(-7200, "expired"), (7200, "in the future")] {
        op.control(&json!({"skew": skew})).await;
        refused(sign_in(&provider, &mut op.browser()).await, &SIGN_IN_REJECTED, text);
    }
    op.control(&json!({"skew": 0, "fail": {"/token": 503}})).await;
    refused(sign_in(&provider, &mut op.browser()).await, &PROVIDER_UNREACHABLE, "503");
    op.control(&json!({"fail": {}})).await;
    sign_in(&provider, &mut op.browser()).await.unwrap();
}

#[tokio::test]
async fn signing_out_there_is_told_here() {
    let listener = Fake::start().await;
    listener.says("/logout", json!({}));
    let op = start(&format!("{}/logout", listener.issuer)).await;
    let provider = provider(&op, "PS256");
    let mut browser = op.browser();
    let signed_in = sign_in(&provider, &mut browser).await.unwrap();
    let url = provider.logout_url(Some(&signed_in.id_token), OUT, "the-state").await.unwrap().unwrap();
    assert_eq!(browser.sign_out(&url).await, format!("{OUT}?state=the-state"));
    eventually("the provider told us", async || listener.times_asked("/logout") == 1).await;
    let token = listener.asked("/logout")[0].form["logout_token"].clone();
    let logged_out =
        provider.logged_out(&token).await.unwrap_or_else(|error| panic!("{error:?}\n{}", op.said()));
    assert_eq!(logged_out.provider_session, signed_in.provider_session);
    assert!(!logged_out.token_id.is_empty() && logged_out.expires_at > SystemClock.now());
    // Another client of the same provider does not take it for its own.
    let other = self::provider(&op, "RS256");
    refused(other.logged_out(&token).await, &SIGN_IN_REJECTED, "somebody else");
}

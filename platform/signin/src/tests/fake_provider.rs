//! A provider that does whatever a test tells it to, which a real one never would.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use db::Settings;
use serde_json::{Value, json};
use types::{ManualClock, Secret, SeededEntropy};

use super::forge::{CLIENT, Key, id_claims, jwks_of, key, now, with};
use crate::*;

#[derive(Clone)]
pub enum Answer {
    Json(u16, Value),
    Text(u16, &'static str),
    Redirect(String),
    /// Never ends sending.
    Endless,
    /// Never begins.
    Silence,
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub authorization: Option<String>,
    pub form: HashMap<String, String>,
}

#[derive(Default)]
struct Script {
    answers: HashMap<String, Answer>,
    asked: Vec<Asked>,
}

/// The fake itself.
#[derive(Clone)]
pub struct Fake {
    pub issuer: String,
    script: Arc<Mutex<Script>>,
}

pub const DISCOVERY: &str = "/.well-known/openid-configuration";

impl Fake {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let fake = Self { issuer, script: Arc::default() };
        let router = Router::new().fallback(answer).with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        fake.says(DISCOVERY, fake.description());
        fake.publishes(&[key("RS256")]);
        fake
    }

    pub fn description(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.issuer);
        json!({
            "issuer": self.issuer, "authorization_endpoint": at("/authorize?tenant=t"), "token_endpoint": at("/token"),
            "jwks_uri": at("/jwks"), "userinfo_endpoint": at("/userinfo"), "end_session_endpoint": at("/logout"),
            "code_challenge_methods_supported": ["plain", "S256"], "response_modes_supported": ["query", "fragment"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    pub fn answers(&self, path: &str, answer: Answer) {
        self.script.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    pub fn says(&self, path: &str, value: Value) {
        self.answers(path, Answer::Json(200, value));
    }

    pub fn publishes(&self, keys: &[&Key]) {
        self.says("/jwks", Value::Object(jwks_of(keys)));
    }

    pub fn asked(&self, path: &str) -> Vec<Asked> {
        let script = self.script.lock().unwrap();
        script.asked.iter().filter(|asked| asked.path == path).cloned().collect()
    }

    pub fn times_asked(&self, path: &str) -> usize {
        self.asked(path).len()
    }
}

async fn answer(State(fake): State<Fake>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let authorization =
        request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    let form = form_urlencoded::parse(&body).into_owned().collect();
    let answer = {
        let mut script = fake.script.lock().unwrap();
        script.asked.push(Asked { path: path.clone(), authorization, form });
        script.answers.get(&path).cloned()
    };
    let response = |status: u16, body: Body| Response::builder().status(status).body(body).unwrap();
    match answer {
        None => response(404, Body::empty()),
        Some(Answer::Json(status, value)) => response(status, Body::from(value.to_string())),
        Some(Answer::Text(status, text)) => response(status, Body::from(text)),
        Some(Answer::Redirect(to)) => {
            Response::builder().status(302).header("location", to).body(Body::empty()).unwrap()
        }
        Some(Answer::Endless) => {
            let spaces = || Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 65_536]));
            response(200, Body::from_stream(futures::stream::iter(std::iter::repeat_with(spaces))))
        }
        Some(Answer::Silence) => std::future::pending().await,
    }
}

/// A provider of ours that speaks to a fake, with a clock that stands.
pub struct Scene {
    pub fake: Fake,
    pub clock: Arc<ManualClock>,
    pub provider: Provider,
}

pub fn settings(changes: Value) -> Settings {
    Settings::with_overrides(changes.as_object().unwrap().clone().into_iter().collect())
}

pub fn config(issuer: &str) -> ProviderConfig {
    ProviderConfig {
        issuer: issuer.to_owned(),
        trust: Trust::Operator,
        client_id: CLIENT.to_owned(),
        client_auth: ClientAuth::Basic(Secret::new("a secret: with + and %".to_owned())),
        redirect_uri: "http://127.0.0.1:9/sign-in/done".to_owned(),
        scopes: vec!["email".to_owned(), "groups".to_owned()],
        groups: ClaimPath::new("groups"),
        strong: StrongRule { acr: vec!["urn:strong".to_owned()], amr: vec!["hwk".to_owned()] },
    }
}

impl Scene {
    pub async fn new() -> Self {
        Self::with(json!({}), |_| {}).await
    }

    pub async fn with(changes: Value, configure: impl FnOnce(&mut ProviderConfig)) -> Self {
        let fake = Fake::start().await;
        let mut config = config(&fake.issuer);
        configure(&mut config);
        let clock = Arc::new(ManualClock::at(now()));
        // A busy machine is not a slow provider: only tests of slowness are in a hurry.
        let settings = settings(with(&json!({"signin.provider_timeout_ms": 20_000}), changes));
        let outgoing = Outgoing::new(Mode::Development, settings.clone()).unwrap();
        let entropy = Arc::new(SeededEntropy::new(1));
        let surroundings = Surroundings { outgoing, clock: clock.clone(), entropy, settings };
        Self { provider: Provider::new(config, surroundings), fake, clock }
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// The claims of a right id token for this attempt.
    pub fn claims(&self, attempt: &Attempt) -> Value {
        let seconds = types::Clock::now(&*self.clock).as_second();
        let times = json!({"exp": seconds + 300, "iat": seconds, "auth_time": seconds - 10});
        let own =
            json!({"iss": self.fake.issuer, "nonce": attempt.nonce.expose(), "sid": "s1", "groups": ["ml"]});
        with(&with(&id_claims(), times), own)
    }

    /// What the browser brings back when all is well.
    pub async fn finish(&self, attempt: &Attempt) -> types::Result<SignedIn> {
        let issuer = self.fake.issuer.clone();
        let state = attempt.state.expose();
        let callback = Callback { state, issuer: Some(&issuer), code: Some("the-code"), error: None };
        self.provider.finish(attempt, &callback).await
    }

    /// A whole sign-in, with the id token's claims changed and signed by `key`.
    pub async fn sign_in_with(&self, key: &Key, wish: &Wish, changes: Value) -> types::Result<SignedIn> {
        let (_, attempt) = self.provider.begin(wish).await?;
        let token = key.sign(&with(&self.claims(&attempt), changes));
        self.fake
            .says("/token", json!({"id_token": token, "access_token": "opaque", "token_type": "Bearer"}));
        self.finish(&attempt).await
    }

    pub async fn sign_in(&self, changes: Value) -> types::Result<SignedIn> {
        self.sign_in_with(key("RS256"), &Wish::default(), changes).await
    }
}

/// Fails the test unless it failed so, with this in its message.
#[track_caller]
pub fn refused<T>(outcome: types::Result<T>, code: &'static types::ErrorCode, says: &str) {
    let Err(error) = outcome else { panic!("it was accepted; expected {}: {says}", code.code) };
    assert_eq!(error.code().code, code.code, "{error:?}");
    assert!(error.message().contains(says), "{error:?} does not say {says:?}");
}

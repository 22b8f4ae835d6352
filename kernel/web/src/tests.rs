//! The gate as callers meet it, without a database: who gets in, and how much of the server one of them can have.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use authz::{Action, Actor, ActorKind, Grant, Place, Standing};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::header;
use axum::http::request::Parts;
use db::Settings;
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use testkit::eventually;
use testkit::toy::{self, AllowAll, ThingCreate, ThingRead};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use types::{IdMaker, Secret, SystemClock, SystemEntropy};

use crate::{
    Authenticator, Call, Credential, Endpoint, Found, Gate, Identity, Limits, Nothing, Operation, Reply,
    Response, SseEvent, stream_response,
};

/// Knows some names by heart; whoever shows one is it, and `…@acme` belongs to an organization; others are operators. Counts how often it was asked.
#[derive(Default)]
struct Names {
    good: Mutex<Vec<&'static str>>,
    look_ups: AtomicUsize,
}

impl Authenticator for Names {
    fn credential(&self, head: &Parts) -> types::Result<Option<Credential>> {
        let shown = head.headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
        Ok(shown.map(|text| Credential { optional: text.starts_with("cookie"), text: Secret::new(text) }))
    }

    fn identify<'a>(&'a self, credential: &'a Credential) -> BoxFuture<'a, types::Result<Found>> {
        self.look_ups.fetch_add(1, Ordering::SeqCst);
        let known = self.good.lock().unwrap().iter().find(|name| **name == credential.text.expose()).copied();
        let identity = known.map(|name| Identity {
            actor: Actor::new(ActorKind::User, name),
            home: name.split_once('@').map(|(_, home)| organization(home)),
            standing: Arc::new(if name.contains('@') { Standing::default() } else { operator() }),
            ..Identity::anonymous()
        });
        let is_stale = credential.text.expose().starts_with("cookie-of-yesterday");
        let found = identity.map_or(if is_stale { Found::Stale } else { Found::Wrong }, Found::Good);
        Box::pin(async { Ok(found) })
    }
}

fn operator() -> Standing {
    Standing::of([Grant::fixed(Place::Platform, "platform.operator")])
}

/// The organization `…@name` belongs to.
fn organization(name: &str) -> uuid::Uuid {
    toy::org(name.bytes().fold(0, |number, byte| number << 8 | u128::from(byte)))
}

/// A server whose operations wait until they are let go.
struct Server {
    router: Router,
    names: Arc<Names>,
    /// One permit lets one request go.
    go: Arc<Semaphore>,
    /// Requests that are being handled.
    inside: Arc<AtomicUsize>,
}

impl Server {
    fn new(good: &[&'static str], settings: &[(&str, u32)]) -> Self {
        let names = Arc::new(Names { good: Mutex::new(good.to_vec()), look_ups: AtomicUsize::new(0) });
        let settings: HashMap<String, Value> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let ids = IdMaker::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
        let gate =
            Gate::new(Arc::<Names>::clone(&names), Limits::new(Settings::with_overrides(settings)), ids);
        let (go, inside) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let wait = {
            let (go, inside) = (Arc::clone(&go), Arc::clone(&inside));
            move |_| {
                let (go, inside) = (Arc::clone(&go), Arc::clone(&inside));
                async move {
                    inside.fetch_add(1, Ordering::SeqCst);
                    go.acquire().await.unwrap().forget();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    Ok(Reply::new(Nothing {}))
                }
            }
        };
        let aside = {
            let (go, inside) = (Arc::clone(&go), Arc::clone(&inside));
            move |call: Call| {
                let (go, inside) = (Arc::clone(&go), Arc::clone(&inside));
                async move {
                    call.seat.look(async { Ok(()) }, |()| false).await?;
                    inside.fetch_add(1, Ordering::SeqCst);
                    go.acquire().await.unwrap().forget();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    call.seat.look(async { Ok(()) }, |()| true).await?;
                    Ok(Reply::new(Nothing {}))
                }
            }
        };
        let endpoints = [
            Operation::<Nothing, Nothing>::get("/now", "toy.now")
                .handler(|_| async { Ok(Reply::new(Nothing {})) }),
            Operation::<Nothing, Nothing>::get("/wait", "toy.wait").handler(wait.clone()),
            Operation::<Nothing, Nothing>::get("/aside", "toy.aside").handler(aside),
            Operation::<Nothing, Nothing, Order>::post("/order", "toy.order")
                .handler(|_| async { Ok(Reply::new(Nothing {})) }),
            Operation::<Nothing, Nothing>::post_empty("/change", "toy.change").handler(wait),
            Operation::<Nothing, Nothing>::get("/stream", "toy.stream").stream::<Nothing, _, _>(|_| async {
                Ok(stream_response(futures::stream::pending::<SseEvent>()))
            }),
        ];
        let endpoints = [endpoints.as_slice(), &promising()].concat();
        Self { router: crate::router(&endpoints, &gate), names, go, inside }
    }

    /// A request from an address, with a credential if one is named.
    async fn send(&self, method: &str, path: &str, address: &str, credential: &str) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        if !credential.is_empty() {
            request = request.header(header::AUTHORIZATION, credential);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let peer: SocketAddr = format!("{address}:1").parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// A request whose body we wait for, in a task of its own.
    async fn slow_body(&self, address: &str, credential: &str) -> Held {
        let asked = Arc::new(AtomicUsize::new(0));
        let body = {
            let asked = Arc::clone(&asked);
            futures::stream::poll_fn(move |_| {
                asked.fetch_add(1, Ordering::SeqCst);
                std::task::Poll::<Option<Result<String, std::io::Error>>>::Pending
            })
        };
        let mut request = Request::post("/order").body(Body::from_stream(body)).unwrap();
        if !credential.is_empty() {
            request.headers_mut().insert(header::AUTHORIZATION, credential.parse().unwrap());
        }
        let peer: SocketAddr = format!("{address}:1").parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        let router = self.router.clone();
        let task = tokio::spawn(async move { router.oneshot(request).await.unwrap().status().as_u16() });
        eventually("the body is waited for", async || asked.load(Ordering::SeqCst) > 0).await;
        task
    }

    async fn get(&self, path: &str, address: &str, credential: &str) -> u16 {
        self.send("GET", path, address, credential).await.status().as_u16()
    }

    fn look_ups(&self) -> usize {
        self.names.look_ups.load(Ordering::SeqCst)
    }

    /// A request that is now being handled, in a task of its own.
    async fn held(
        self: &Arc<Self>,
        method: &'static str,
        path: &'static str,
        credential: &'static str,
    ) -> Held {
        let before = self.inside.load(Ordering::SeqCst);
        let server = Arc::clone(self);
        let task = tokio::spawn(async move {
            server.send(method, path, "192.0.2.1", credential).await.status().as_u16()
        });
        eventually("the request is inside", async || self.inside.load(Ordering::SeqCst) > before).await;
        task
    }
}

/// Operations that declare an action, and keep to it or not.
fn promising() -> [Endpoint; 5] {
    type Toy = Operation<Nothing, Nothing>;
    [
        Toy::get("/asks", "toy.asks")
            .permission::<ThingRead>()
            .handler(|call| answer::<ThingRead>(call, &[])),
        Toy::get("/asks-for-less", "toy.asks_for_less")
            .permission::<ThingCreate>()
            .handler(|call| answer::<ThingRead>(call, &[])),
        Toy::get("/reads-and-records", "toy.reads_and_records")
            .permission::<ThingRead>()
            .handler(|call| answer::<ThingRead>(call, &["toy.thing.read"])),
        Toy::post_empty("/records", "toy.records")
            .permission::<ThingCreate>()
            .handler(|call| answer::<ThingCreate>(call, &["toy.thing.create"])),
        Toy::post_empty("/records-another", "toy.records_another")
            .permission::<ThingCreate>()
            .handler(|call| answer::<ThingCreate>(call, &["toy.thing.delete"])),
    ]
}

/// Asks for `A`, and answers as if it had committed changes with these actions.
async fn answer<A: Action>(call: Call, recorded: &[&str]) -> types::Result<Reply<Nothing>> {
    authz::authorize::<A>(&AllowAll, &call.context, toy::resource(toy::org(1)))?;
    for action in recorded {
        call.context.trail.note_recorded(action);
    }
    Ok(Reply::new(Nothing {}))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)] // only its parsing is of interest
struct Order {
    name: String,
    items: Vec<Item>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
struct Item {
    count: u32,
}

type Held = tokio::task::JoinHandle<u16>;

async fn problem(response: Response) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

const HERE: &str = "192.0.2.1";
const ELSEWHERE: &str = "192.0.2.2";

#[tokio::test]
async fn beyond_the_limit_a_guess_costs_no_look_up() {
    let server = Server::new(&["alice", "bob"], &[("web.guesses_per_minute", 3)]);
    assert_eq!(server.get("/now", HERE, "alice").await, 200);
    for guess in 0..3 {
        assert_eq!(server.get("/now", HERE, &format!("guess-{guess}")).await, 401);
    }
    assert_eq!(server.look_ups(), 4);
    for guess in 0..20 {
        let refused = server.send("GET", "/now", HERE, &format!("more-{guess}")).await;
        assert!(refused.headers().contains_key(header::RETRY_AFTER));
        assert_eq!(problem(refused).await["code"], "rate_limited");
        let with_cookie = server.get("/now", HERE, &format!("cookie-{guess}")).await;
        assert_eq!(with_cookie, 429, "a cookie can be guessed as well");
    }
    assert_eq!(server.look_ups(), 4, "nothing was looked up for an address over its limit");

    assert_eq!(server.get("/now", HERE, "alice").await, 200, "a neighbour that was here before goes on");
    assert_eq!(server.get("/now", HERE, "bob").await, 429, "a new one cannot be told from a guess");
    assert_eq!(server.get("/now", HERE, "").await, 200, "no credential is no guess");
    assert_eq!(server.get("/now", ELSEWHERE, "bob").await, 200);
    assert_eq!(server.get("/now", HERE, "bob").await, 200, "and from now on it is known");

    server.names.good.lock().unwrap().clear();
    assert_eq!(server.get("/now", HERE, "alice").await, 429, "revoked: looked up, wrong, one guess too many");
    let before = server.look_ups();
    assert_eq!(server.get("/now", HERE, "alice").await, 429);
    assert_eq!(server.look_ups(), before, "and now it is like any other");
}

/// What is declared is what clients and auditors rely on: a handler that does otherwise must not look as if it had worked.
#[tokio::test]
async fn an_operation_that_breaks_its_declaration_fails() {
    let server = Server::new(&["alice"], &[]);
    for (method, path) in [("GET", "/asks"), ("POST", "/records")] {
        assert_eq!(server.send(method, path, HERE, "alice").await.status(), 200, "{path}");
    }
    for (method, path) in
        [("GET", "/asks-for-less"), ("GET", "/reads-and-records"), ("POST", "/records-another")]
    {
        let broken = server.send(method, path, HERE, "alice").await;
        assert_eq!(broken.status(), 500, "{path}");
        assert_eq!(problem(broken).await["code"], "broken_contract", "{path}");
    }
}

#[tokio::test]
async fn a_tab_left_open_locks_nobody_out() {
    let server = Server::new(&["alice"], &[("web.guesses_per_minute", 3)]);
    for _ in 0..10 {
        assert_eq!(server.get("/now", HERE, "cookie-of-yesterday").await, 200, "as nobody in particular");
    }
    assert_eq!(server.get("/now", HERE, "alice").await, 200, "who was not seen here yet gets in");
}

#[tokio::test]
async fn one_network_of_ipv6_is_one_address() {
    let server = Server::new(&[], &[("web.guesses_per_minute", 3)]);
    for host in 0..3 {
        assert_eq!(server.get("/now", &format!("[2001:db8::{host}]"), "guess").await, 401);
    }
    assert_eq!(server.get("/now", "[2001:db8::ffff]", "guess").await, 429);
    assert_eq!(server.get("/now", "[2001:db8:0:1::1]", "guess").await, 401, "the network beside it");
    assert_eq!(server.get("/now", "[::ffff:192.0.2.1]", "guess").await, 401, "IPv4 in the clothes of IPv6");
}

#[tokio::test]
async fn a_caller_who_waits_leaves_places_for_the_others() {
    let server = Arc::new(Server::new(
        &["alice", "bob", "carol"],
        &[("web.requests_at_once_per_caller_max", 2), ("web.requests_at_once_max", 4)],
    ));
    let waiting = [server.held("GET", "/wait", "alice").await, server.held("GET", "/wait", "alice").await];
    let refused = server.send("GET", "/now", HERE, "alice").await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    let body = problem(refused).await;
    assert_eq!(
        (&body["code"], &body["details"]["at_once_max"]),
        (&json!("rate_limited"), &json!(2)),
        "{body}"
    );
    assert_eq!(server.get("/now", HERE, "bob").await, 200);
    let bobs = [server.held("GET", "/wait", "bob").await, server.held("GET", "/wait", "bob").await];
    assert_eq!(server.get("/now", HERE, "carol").await, 503, "now the replica is full");
    server.go.add_permits(4);
    for request in waiting.into_iter().chain(bobs) {
        assert_eq!(request.await.unwrap(), 200);
    }
    assert_eq!(server.get("/now", HERE, "alice").await, 200);
}

#[tokio::test]
async fn an_organization_with_many_keys_leaves_places_for_the_others() {
    let server = Arc::new(Server::new(
        &["alice@acme", "bob@acme", "carol"],
        &[("web.requests_at_once_per_organization_max", 2), ("web.requests_at_once_max", 3)],
    ));
    let waiting =
        [server.held("GET", "/wait", "alice@acme").await, server.held("GET", "/wait", "bob@acme").await];
    let refused = problem(server.send("GET", "/now", HERE, "bob@acme").await).await;
    assert_eq!(refused["details"]["limit"], "web.requests_at_once_per_organization_max", "{refused}");
    assert_eq!(server.get("/now", HERE, "carol").await, 200);
    server.go.add_permits(2);
    for request in waiting {
        assert_eq!(request.await.unwrap(), 200);
    }
    assert_eq!(server.get("/now", HERE, "bob@acme").await, 200);
}

/// Requests of eight: a busy organization may fill six, a quiet one seven, an operator all.
const EIGHT: [(&str, u32); 1] = [("web.requests_at_once_max", 8)];
const TENANTS: [&str; 5] = ["a@acme", "b@bolt", "quiet@one", "quiet@two", "operator"];

#[tokio::test]
async fn two_busy_organizations_lock_nobody_out() {
    let server = Arc::new(Server::new(&TENANTS, &EIGHT));
    let mut held = Vec::new();
    for who in ["a@acme", "b@bolt"].repeat(3) {
        held.push(server.held("GET", "/wait", who).await);
    }
    assert_eq!(server.get("/now", HERE, "b@bolt").await, 503, "it has three");
    assert_eq!(server.get("/now", HERE, "quiet@one").await, 200);
    assert_eq!(server.get("/now", HERE, "").await, 200, "who is about to sign in");
    held.push(server.held("GET", "/wait", "quiet@one").await);
    assert_eq!(server.get("/now", HERE, "quiet@two").await, 503, "now the tenants' places are taken");
    assert_eq!(server.get("/now", HERE, "operator").await, 200);
    server.go.add_permits(held.len());
    for request in held {
        assert_eq!(request.await.unwrap(), 200);
    }
    assert_eq!(server.get("/now", HERE, "b@bolt").await, 200);
}

#[tokio::test]
async fn who_waits_for_an_event_steps_aside() {
    let limits = [
        ("web.requests_at_once_max", 2),
        ("web.waiting_at_once_per_caller_max", 2),
        ("web.waiting_at_once_per_organization_max", 3),
    ];
    let server = Arc::new(Server::new(&["a@acme", "b@acme", "b@bolt"], &limits));
    let mut waiting = Vec::new();
    for who in ["a@acme", "a@acme", "b@acme", "b@bolt", "b@bolt"] {
        waiting.push(server.held("GET", "/aside", who).await);
    }
    assert_eq!(server.get("/now", HERE, "a@acme").await, 200, "none of them is under way");
    for (who, limit) in [
        ("b@bolt", "web.waiting_at_once_per_caller_max"),
        ("b@acme", "web.waiting_at_once_per_organization_max"),
    ] {
        let refused = problem(server.send("GET", "/aside", HERE, who).await).await;
        assert_eq!((&refused["code"], &refused["details"]["limit"]), (&json!("rate_limited"), &json!(limit)));
    }
    server.go.add_permits(waiting.len());
    for request in waiting {
        assert_eq!(request.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn two_organizations_whose_bodies_do_not_come_lock_nobody_out() {
    let server = Server::new(&TENANTS, &EIGHT);
    let order = async |credential: &str| {
        let request = Request::post("/order").header(header::AUTHORIZATION, credential);
        let request =
            request.header(header::CONTENT_TYPE, "application/json").body(Body::from("{}")).unwrap();
        server.router.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    let mut held = Vec::new();
    for who in ["a@acme", "b@bolt"].repeat(3) {
        held.push(server.slow_body(HERE, who).await);
    }
    assert_eq!(order("b@bolt").await, 503);
    assert_eq!(order("quiet@one").await, 400, "its body was read");
    held.push(server.slow_body(HERE, "quiet@one").await);
    assert_eq!(order("quiet@two").await, 503);
    assert_eq!(order("operator").await, 400);
    held.iter().for_each(Held::abort);
}

#[tokio::test]
async fn a_body_that_does_not_come_takes_no_place_from_others() {
    let server = Arc::new(Server::new(
        &["alice"],
        &[
            ("web.requests_at_once_max", 1),
            ("web.requests_at_once_per_caller_max", 1),
            ("web.anonymous_body_seconds_max", 1),
        ],
    ));
    let nobodys = server.slow_body(HERE, "").await;
    let alices = server.slow_body(HERE, "alice").await;
    assert_eq!(server.get("/now", ELSEWHERE, "").await, 200, "the replica is free");
    assert_eq!(server.get("/now", HERE, "alice").await, 200, "what has not come is not under way");
    let request =
        Request::post("/order").header(header::AUTHORIZATION, "alice").body(Body::from("{}")).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 429, "the sender has one body arriving");
    let request = Request::post("/order").body(Body::from("{}")).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 503, "there are only so many bodies in memory");
    assert_eq!(nobodys.await.unwrap(), 504, "one whom nobody knows is not waited for long");
    assert!(!alices.is_finished());
    alices.abort();
}

#[tokio::test]
async fn anonymous_callers_are_counted_by_address() {
    let server = Arc::new(Server::new(&[], &[("web.requests_at_once_per_caller_max", 1)]));
    let waiting = server.held("GET", "/wait", "").await;
    assert_eq!(server.get("/now", HERE, "").await, 429);
    assert_eq!(server.get("/now", ELSEWHERE, "").await, 200);
    server.go.add_permits(1);
    assert_eq!(waiting.await.unwrap(), 200);
}

/// Otherwise hanging up would be the way to have more changes under way than allowed.
#[tokio::test]
async fn a_change_keeps_its_place_when_its_client_hangs_up() {
    let server = Arc::new(Server::new(&["alice"], &[("web.requests_at_once_per_caller_max", 1)]));
    let change = server.held("POST", "/change", "alice").await;
    change.abort();
    assert!(change.await.unwrap_err().is_cancelled());
    assert_eq!(server.get("/now", HERE, "alice").await, 429, "the change goes on");
    server.go.add_permits(1);
    eventually("the place is free", async || server.get("/now", HERE, "alice").await == 200).await;

    let reading = server.held("GET", "/wait", "alice").await;
    reading.abort();
    eventually("a read ends with its client", async || server.get("/now", HERE, "alice").await == 200).await;
}

#[tokio::test]
async fn a_caller_has_only_so_many_streams() {
    let server = Server::new(&["alice", "bob"], &[("web.streams_per_caller_max", 2)]);
    let first = server.send("GET", "/stream", HERE, "alice").await;
    let second = server.send("GET", "/stream", HERE, "alice").await;
    assert_eq!((first.status(), second.status()), (200.try_into().unwrap(), 200.try_into().unwrap()));
    let refused = server.send("GET", "/stream", HERE, "alice").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(problem(refused).await["code"], "rate_limited");
    assert_eq!(server.get("/now", HERE, "alice").await, 200, "a stream is not a request under way");
    let other = server.send("GET", "/stream", HERE, "bob").await;
    assert_eq!(other.status(), 200);
    drop(first);
    eventually("the place is free", async || server.get("/stream", HERE, "alice").await == 200).await;
}

#[tokio::test]
async fn a_stream_ends_soon_after_its_credential() {
    let server = Server::new(&["alice", "bob"], &[("web.stream_recheck_seconds", 1)]);
    let alices = server.send("GET", "/stream", HERE, "alice").await.into_body();
    let bobs = server.send("GET", "/stream", HERE, "bob").await.into_body();
    let nobodys = server.send("GET", "/stream", HERE, "").await.into_body();
    let before = server.look_ups();
    server.names.good.lock().unwrap().retain(|name| *name != "alice");
    let read = tokio::time::timeout(testkit::DEADLINE, alices.collect()).await.expect("the stream ends");
    assert_eq!(read.unwrap().to_bytes().as_ref(), b": connected\n\n", "and ends cleanly");
    eventually("the others are asked about, too", async || server.look_ups() >= before + 4).await;
    for mut open in [bobs, nobodys] {
        open.frame().await.expect("the opening").unwrap();
        let more = futures::FutureExt::now_or_never(open.frame());
        assert!(more.is_none(), "another's stream goes on");
    }
}

/// The message names the field and says what is wrong with it; where serde's reader stood is nobody's business.
#[tokio::test]
async fn a_wrong_body_is_described_in_words() {
    let server = Server::new(&[], &[]);
    let cases = [
        ("", "body: it is empty, and this operation needs one"),
        ("{\"name\": 5}", "body.name: expected a string, found the number 5"),
        ("{}", "body.name: this field is missing"),
        ("{\n \"name\": \"x\"\n}", "body.items: this field is missing"),
        ("{\"items\": [{}]}", "body.items[0].count: this field is missing"),
        ("{\"items\": [5]}", "body.items[0]: expected an object, found the number 5"),
        ("{\"name\": \"x\", \"nome\": 1}", "body.nome: unknown field `nome`, expected `name` or `items`"),
        (
            "{\"items\": [{\"count\": 1}, {\"count\": -1}]}",
            "body.items[1].count: expected a whole number from 0 to 4294967295, found the number -1",
        ),
        ("{\"name\": \"x", "body.name: the JSON ends too early"),
        ("{\"name\": }", "body.name: this is not JSON: expected value"),
        ("{\"name\": \"x\",}", "body: this is not JSON: trailing comma"),
        ("{\"name\": \"x\", \"items\": []} and more", "body: something follows after the JSON value"),
        ("not at all", "body: it has to be a JSON object, which begins with '{'"),
        (" [\"x\", []]", "body: it has to be a JSON object, which begins with '{'"),
        ("null", "body: it has to be a JSON object, which begins with '{'"),
    ];
    let mut told = Vec::new();
    for (sent, _) in cases {
        let request = Request::post("/order").header(header::CONTENT_TYPE, "application/json");
        let response = server.router.clone().oneshot(request.body(Body::from(sent)).unwrap()).await.unwrap();
        assert_eq!(response.status(), 400, "{sent}");
        let problem = problem(response).await;
        let detail = problem["detail"].as_str().unwrap().to_owned();
        let place =
            problem["details"]["field"].as_str().map_or("body".to_owned(), |field| format!("body.{field}"));
        assert_eq!(detail.split(": ").next(), Some(place.as_str()), "details and detail name the same place");
        told.push(detail);
    }
    assert_eq!(told, cases.map(|(_, expected)| expected));
}

/// Whichever of the two counted, somebody on the way may have believed the other.
#[tokio::test]
async fn a_header_that_says_two_things_is_refused() {
    let server = Server::new(&["alice", "bob"], &[]);
    let cases = [
        ("authorization", ["alice", "bob"]),
        ("idempotency-key", ["one", "two"]),
        ("if-match", ["\"1\"", "\"2\""]),
        ("content-type", ["application/json", "text/plain"]),
        ("last-event-id", ["1-1", "1-2"]),
    ];
    for (name, [first, second]) in cases {
        let order = || Request::post("/order").header(name, first);
        let once = server.router.clone().oneshot(order().body(Body::empty()).unwrap()).await.unwrap();
        assert!(!problem(once).await["detail"].as_str().unwrap().contains("more than once"), "{name}");
        let request = order().header(name, second).body(Body::empty()).unwrap();
        let refused = server.router.clone().oneshot(request).await.unwrap();
        assert_eq!(refused.status(), 400, "{name}");
        let body = problem(refused).await;
        assert_eq!(
            (&body["code"], &body["details"]["field"]),
            (&json!("invalid_request"), &json!(name)),
            "{body}"
        );
    }
    assert_eq!(server.look_ups(), 1, "only the single credential was looked up");
}

#[test]
fn who_should_come_back_is_always_told_when() {
    let codes = crate::catalogue().into_iter().chain(db::catalogue().iter().copied());
    for code in codes {
        let response = crate::problem::to_response(&code.error("no particulars"), None);
        let told = response.headers().contains_key(header::RETRY_AFTER);
        assert_eq!(told, [429, 503].contains(&response.status().as_u16()), "{}", code.code);
    }
}

#[tokio::test]
async fn a_lost_person_gets_a_page_and_a_lost_program_a_problem() {
    let server = Server::new(&[], &[]);
    for (accepted, page) in [
        ("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", true),
        ("*/*", false),
        ("application/json", false),
    ] {
        let request = Request::get("/nowhere").header(header::ACCEPT, accepted).body(Body::empty()).unwrap();
        let response = server.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 404);
        let found = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        assert_eq!(found.starts_with("text/html"), page, "{accepted}: {found}");
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert_eq!(policy.contains("style-src 'self'"), page, "{policy}");
    }
}

/// Anyone may ask for them, and leave the replies unread.
#[tokio::test]
async fn replies_share_the_text_of_a_page() {
    static PAGES: [crate::ErrorPage; 1] =
        [crate::ErrorPage { code: "rate_limited", markdown: "# rate_limited\n\nToo much." }];
    let router = crate::pages(&json!({"openapi": "3.1.0"}), &PAGES, &[&crate::limits::RATE_LIMITED]);
    let paths = ["/api", "/api/v1/openapi.json", "/errors", "/errors/rate_limited", "/assets/api.js"];
    for path in paths {
        let reply = async || {
            let response =
                router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
            response.into_body().frame().await.unwrap().unwrap().into_data().unwrap()
        };
        let (first, second) = (reply().await, reply().await);
        assert_eq!(first.as_ptr(), second.as_ptr(), "{path}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_plain_json_is_refused() {
    let server = Server::new(&[], &[]);
    let json_type = "application/json";
    for (content_type, coding, expected) in [
        (json_type, "identity", 400),
        ("application/json; charset=UTF-8", "identity", 400),
        ("application/json;charset=\"utf-8\"", "identity", 400),
        (json_type, "gzip", 415),
        ("application/json; charset=latin1", "identity", 415),
        ("application/json; version=1; Charset=utf-16", "identity", 415),
    ] {
        let request = Request::post("/order")
            .header(header::CONTENT_TYPE, content_type)
            .header(header::CONTENT_ENCODING, coding)
            .body(Body::from("{}"))
            .unwrap();
        let response = server.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), expected, "{content_type} {coding}");
    }
}

/// Whoever says how much will come is refused before any of it does.
#[tokio::test]
async fn a_body_that_will_be_too_large_is_not_asked_for() {
    let server = Server::new(&[], &[("web.body_bytes_max", 1024)]);
    let body = http_body_util::Full::from(vec![b' '; 1025]).inspect_frame(|_| panic!("it was asked for"));
    let request = Request::post("/order").body(Body::new(body)).unwrap();
    assert_eq!(server.router.clone().oneshot(request).await.unwrap().status(), 413);
}

//! `api`: answers requests.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use iam::Credentials;
use web::{Gate, Limits};

use crate::listen::Listener;
use crate::process::Process;
use crate::{Failure, VERSION, contracts, error_pages};

/// Where this role answers: tenants and operators on one address, nodes (mutual TLS only) on another.
pub struct Listeners {
    pub public: Listener,
    pub node: Option<Listener>,
}

/// Starts the listeners. `internal` is added to the public one where health and metrics share its address (in `up`).
pub fn start(process: &mut Process, listeners: Listeners, internal: Option<Router>) -> Result<(), Failure> {
    let app = process.app()?;
    let revocations = process.follow_revocations();
    let gate = Gate::new(
        Arc::new(Credentials::new(&app.db, revocations, app.settings.clone(), process.tls)),
        Limits::new(app.settings.clone()),
        app.db.ids().clone(),
    );
    let mut router = web::router(&app.endpoints(), &gate)
        .merge(web::pages(&contracts::openapi(&app)?, error_pages::PAGES, &app.errors()))
        .merge(pages());
    if let Some(internal) = internal {
        router = router.merge(internal);
    }
    let stop = process.stop.clone();
    process.spawn("public listener", listeners.public.serve(router, stop));
    if let Some(listener) = listeners.node {
        // No operation for nodes exists yet; the listener already keeps out whoever has no certificate.
        let (router, stop) = (web::router(&[], &gate), process.stop.clone());
        process.spawn("node listener", listener.serve(router, stop));
    }
    Ok(())
}

/// What a browser sees before the console exists: where it is, whether it works, how to sign in.
fn pages() -> Router {
    let landing = Bytes::from(include_str!("../../assets/landing.html").replace("{version}", VERSION));
    Router::new()
        .route("/", get(async move || web::page(landing.clone())))
        .route("/sign-in", get(async || web::page(include_str!("../../assets/sign-in.html"))))
        .route(
            "/assets/landing.js",
            get(async || web::asset("text/javascript", include_str!("../../assets/landing.js"))),
        )
        .route(
            "/assets/sign-in.js",
            get(async || web::asset("text/javascript", include_str!("../../assets/sign-in.js"))),
        )
}

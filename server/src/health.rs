//! `/internal`: is it alive, is it ready, what does it count.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use db::Pool;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;

use crate::VERSION;

/// What readiness depends on.
#[derive(Clone)]
pub struct Health {
    pool: Pool,
    draining: Arc<AtomicBool>,
    roles: Arc<Vec<&'static str>>,
}

impl Health {
    pub fn new(pool: Pool, roles: Vec<&'static str>) -> Self {
        Self { pool, draining: Arc::default(), roles: Arc::new(roles) }
    }

    /// From now on not ready: load balancers should send new work elsewhere.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    async fn problem(&self) -> Option<&'static str> {
        if self.draining.load(Ordering::SeqCst) {
            return Some("draining");
        }
        match self.pool.ping().await {
            Ok(()) => None,
            Err(_) => Some("the database does not answer"),
        }
    }
}

pub fn router(health: Health, metrics: &'static PrometheusHandle) -> Router {
    let gauges = health.clone();
    Router::new()
        .route("/internal/healthz", get(async || "ok\n"))
        .route("/internal/readyz", get(async move || ready(&health).await))
        .route(
            "/internal/metrics",
            get(async move || {
                let (connections, waiting) = gauges.pool.status();
                metrics::gauge!("gpuaas_db_connections").set(connections as f64);
                metrics::gauge!("gpuaas_db_waiting").set(waiting as f64);
                ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.render())
            }),
        )
}

async fn ready(health: &Health) -> axum::response::Response {
    let problem = health.problem().await;
    let status = if problem.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body =
        json!({"ready": problem.is_none(), "problem": problem, "version": VERSION, "roles": *health.roles});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

//! `/internal`: is it alive, is it ready, what does it count.
//!
//! Not ready means: send work elsewhere. So it is said only when work would fail here, which is while draining and when
//! the database does not answer. What is late (events without a position, entries without a seal) fails nobody's request,
//! and taking every replica out of service would not help it: it is a warning, in the body and as a metric.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use db::{DbError, Internal, Pool, Setting};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use types::Timestamp;

use crate::VERSION;
use crate::assemble::Base;

pub static LATE_SECONDS: Setting<u64> = Setting::new(
    "system.late_seconds",
    60,
    "How long an event may wait for its position before readiness warns, in seconds. For an audit entry's seal: \
     audit.seal_late_seconds.",
)
.at_least(1);

// fixed: how long a database may take to answer an empty question
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// What readiness depends on.
#[derive(Clone)]
pub struct Health {
    base: Base,
    /// Not the pool that requests use: a busy one is no database that is away.
    own: Pool,
    /// May this process's login see audit entries?
    sees_audit: bool,
    draining: Arc<AtomicBool>,
    roles: Arc<Vec<&'static str>>,
}

impl Health {
    pub fn new(base: Base, own: Pool, sees_audit: bool, roles: Vec<&'static str>) -> Self {
        Self { base, own, sees_audit, draining: Arc::default(), roles: Arc::new(roles) }
    }

    /// From now on not ready: load balancers should send new work elsewhere.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    async fn problem(&self) -> Option<&'static str> {
        if self.draining.load(Ordering::SeqCst) {
            return Some("draining");
        }
        match tokio::time::timeout(PING_TIMEOUT, self.own.ping()).await {
            Ok(Ok(())) => None,
            _ => Some("the database does not answer"),
        }
    }

    /// How long what is waiting longest has been waiting, for a position and for a seal. Asked of the database, so that
    /// it is told also where nobody does that work.
    async fn waiting(&self) -> Result<Vec<(Late, Duration)>, DbError> {
        let internal = Internal::new(self.own.clone(), "health", false);
        let mut all = vec![(Late::Position, self.age(events::oldest_waiting(&internal).await?))];
        if self.sees_audit {
            all.push((Late::Seal, self.age(audit::oldest_unsealed(&internal).await?)));
        }
        Ok(all)
    }

    fn age(&self, since: Option<Timestamp>) -> Duration {
        let now = self.base.clock.now();
        since.map_or(Duration::ZERO, |since| now.duration_since(since).try_into().unwrap_or_default())
    }

    async fn warnings(&self) -> Vec<String> {
        let mut warnings = self.base.troubles.now();
        warnings.extend(self.late().await);
        warnings
    }

    async fn late(&self) -> Vec<String> {
        match self.waiting().await {
            Ok(all) => {
                let late = all
                    .into_iter()
                    .filter(|(what, waiting)| *waiting > what.limit().seconds(&self.base.settings));
                late.map(|(what, waiting)| what.warning(waiting.as_secs())).collect()
            }
            Err(error) => vec![format!("what is late could not be read: {error}")],
        }
    }

    /// Sets the gauges that are not counted all the time.
    async fn measure(&self) {
        let (connections, waiting) = self.base.pool.status();
        metrics::gauge!("gpuaas_db_connections").set(connections as f64);
        metrics::gauge!("gpuaas_db_waiting").set(waiting as f64);
        if let Ok(all) = self.waiting().await {
            for (what, waiting) in all {
                metrics::gauge!(what.metric()).set(waiting.as_secs_f64());
            }
        }
    }
}

/// What can be late although every request is answered.
#[derive(Clone, Copy)]
enum Late {
    Position,
    Seal,
}

impl Late {
    const fn metric(self) -> &'static str {
        match self {
            Self::Position => "gpuaas_outbox_oldest_seconds",
            Self::Seal => "gpuaas_audit_entry_lag_seconds",
        }
    }

    const fn limit(self) -> &'static Setting<u64> {
        match self {
            Self::Position => &LATE_SECONDS,
            Self::Seal => &audit::SEAL_LATE_SECONDS,
        }
    }

    fn warning(self, seconds: u64) -> String {
        match self {
            Self::Position => format!(
                "an event has been waiting for its position for {seconds} s: is the role outbox-relay running, or does a \
                 transaction hold it back?"
            ),
            Self::Seal => format!(
                "an audit entry has been waiting for its seal for {seconds} s: is the role audit-sealer running, or does a \
                 transaction hold it back?"
            ),
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
                gauges.measure().await;
                ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.render())
            }),
        )
}

async fn ready(health: &Health) -> axum::response::Response {
    let problem = health.problem().await;
    let warnings = if problem.is_none() { health.warnings().await } else { Vec::new() };
    let status = if problem.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "ready": problem.is_none(),
        "problem": problem,
        "warnings": warnings,
        "version": VERSION,
        "roles": *health.roles,
    });
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

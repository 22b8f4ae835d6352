//! Logs for people or machines, and the metrics registry.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use crate::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema, clap::ValueEnum, Default)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One line per event, for people.
    #[default]
    Human,
    /// One JSON object per event, for collectors.
    Json,
}

/// Starts logging to standard error. `GPUAAS_LOG` overrides the level, in `tracing`'s filter syntax.
pub fn start_logs(format: LogFormat, level: &str) -> Result<(), Failure> {
    let filter = std::env::var("GPUAAS_LOG").unwrap_or_else(|_| level.to_owned());
    let filter = EnvFilter::try_new(&filter)
        .map_err(|error| Failure::new(format!("the log filter {filter:?} is not valid: {error}")))?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let started = match format {
        LogFormat::Human => builder.compact().try_init(),
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(true).try_init(),
    };
    started.map_err(|error| Failure::new(format!("logging could not start: {error}")))
}

/// The process's metrics. Histograms are summaries over buckets fit for a control plane.
pub fn metrics() -> Result<&'static PrometheusHandle, Failure> {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    if let Some(handle) = HANDLE.get() {
        return Ok(handle);
    }
    let handle = PrometheusBuilder::new()
        .set_buckets(&[
            0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
        ])
        .and_then(|builder| builder.install_recorder())
        .map_err(|error| Failure::new(format!("metrics could not start: {error}")))?;
    Ok(HANDLE.get_or_init(|| handle))
}

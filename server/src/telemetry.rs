//! Logs for people or machines, the metrics registry, and traces where a collector wants them.

mod traces;

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde::Deserialize;
use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::Failure;

pub use traces::{TelemetryConfig, Traces};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema, clap::ValueEnum, Default)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One line per event, for people.
    #[default]
    Human,
    /// One JSON object per event, for collectors.
    Json,
}

/// Starts logging to standard error, and tracing if an endpoint is configured. `GPUAAS_LOG` overrides the level, in
/// `tracing`'s filter syntax. Needs the runtime. The traces want to be flushed at the end.
pub fn start(format: LogFormat, level: &str, config: &TelemetryConfig) -> Result<Traces, Failure> {
    let level = std::env::var("GPUAAS_LOG").unwrap_or_else(|_| level.to_owned());
    let filter = EnvFilter::try_new(&level)
        .map_err(|error| Failure::new(format!("the log filter {level:?} is not valid: {error}")))?;
    let failed = |error| Failure::new(format!("logging could not start: {error}"));
    let Some(traces) = Traces::start(config)? else {
        // One filter for everything: what it shuts out costs nothing at all.
        tracing_subscriber::registry().with(filter).with(logs(format)).try_init().map_err(failed)?;
        return Ok(Traces::off());
    };
    let both = vec![logs(format).with_filter(filter).boxed(), traces.layer::<Registry>()];
    tracing_subscriber::registry().with(both).try_init().map_err(failed)?;
    Ok(traces)
}

fn logs<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let layer =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(colours);
    match format {
        LogFormat::Human => layer.compact().boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(true).boxed(),
    }
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
    tokio::spawn(keep_small(handle.clone()));
    Ok(HANDLE.get_or_init(|| handle))
}

/// Every sample of a histogram is kept until somebody asks for the metrics. If nobody does, somebody must all the same.
async fn keep_small(handle: PrometheusHandle) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await; // fixed: at full load some 50,000 samples of eight bytes
        handle.run_upkeep();
    }
}

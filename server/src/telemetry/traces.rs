//! `[telemetry]`: traces to an OpenTelemetry collector, as OTLP over HTTP.
//!
//! The SDK gathers spans on a thread of its own and sends them from there; that thread knows no runtime, so [`Sender`]
//! carries the request over to ours. gRPC was rejected: it brings a second HTTP stack for the same bytes.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::{Failure, VERSION};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Where traces go, e.g. `http://127.0.0.1:4318/v1/traces`. Without it there are none, and they cost nothing.
    pub otlp_endpoint: Option<String>,
    /// Which part of the requests is traced, 0 to 1. A caller that already traces a request decides for it.
    #[serde(default = "everything")]
    pub sample_ratio: f64,
}

fn everything() -> f64 {
    1.0
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { otlp_endpoint: None, sample_ratio: everything() }
    }
}

impl TelemetryConfig {
    pub fn check(&self) -> Result<(), Failure> {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Err(Failure::new("telemetry.sample_ratio is a part of the whole: 0 to 1"));
        }
        match &self.otlp_endpoint {
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err(Failure::new(
                "telemetry.otlp_endpoint is an HTTP address such as http://127.0.0.1:4318/v1/traces",
            )),
            _ => Ok(()),
        }
    }
}

/// The traces of this process, or none.
pub struct Traces(Option<SdkTracerProvider>);

// fixed: what a collector may take to accept a batch, and what the end of the process waits for the last one
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

impl Traces {
    pub fn off() -> Self {
        Self(None)
    }

    pub(super) fn start(config: &TelemetryConfig) -> Result<Option<Self>, Failure> {
        config.check()?;
        let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
        let failed = |error: &dyn std::fmt::Display| Failure::new(format!("traces could not start: {error}"));
        let client =
            reqwest::Client::builder().timeout(EXPORT_TIMEOUT).build().map_err(|error| failed(&error))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Sender { client, runtime: tokio::runtime::Handle::current() })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(EXPORT_TIMEOUT)
            .build()
            .map_err(|error| failed(&error))?;
        let resource = Resource::builder()
            .with_service_name("gpuaasd")
            .with_attribute(KeyValue::new("service.version", VERSION))
            .with_attribute(KeyValue::new("process.pid", i64::from(std::process::id())))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sample_ratio))))
            .with_resource(resource)
            .build();
        Ok(Some(Self(Some(provider))))
    }

    /// What `tracing` hands over: requests, flows and what is made for traces only. The chatter of libraries stays out.
    pub(super) fn layer<S>(&self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let wanted =
            Targets::new().with_default(LevelFilter::INFO).with_target(trace::TARGET, LevelFilter::DEBUG);
        match &self.0 {
            None => tracing_subscriber::layer::Identity::new().boxed(),
            Some(provider) => tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("gpuaasd"))
                .with_filter(wanted)
                .boxed(),
        }
    }

    /// Sends what is still gathered. The process may end afterwards.
    pub async fn flush(self) {
        let Some(provider) = self.0 else { return };
        let sent = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(EXPORT_TIMEOUT)).await;
        if let Ok(Err(error)) = sent {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

/// Sends on the runtime what the SDK's thread wants sent.
#[derive(Debug)]
struct Sender {
    client: reqwest::Client,
    runtime: tokio::runtime::Handle,
}

impl HttpClient for Sender {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> BoxFuture<'b, Result<Response<Bytes>, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        let task = self.runtime.spawn(async move {
            let response = client.execute(request.try_into()?).await?;
            let mut answer = Response::builder().status(response.status());
            if let Some(headers) = answer.headers_mut() {
                *headers = response.headers().clone();
            }
            Ok::<_, HttpError>(answer.body(response.bytes().await?)?)
        });
        Box::pin(async move { task.await? })
    }
}

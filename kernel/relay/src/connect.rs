//! The way to the NATS server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, context::ContextBuilder};
use async_nats::{Client, ConnectOptions, Event};
use types::Secret;

/// Where NATS is and who we are there.
#[derive(Debug, Clone)]
pub struct NatsTarget {
    /// `nats://host:4222` or `tls://host:4222`; several, separated by commas, for a cluster.
    pub url: String,
    pub credentials: Option<Credentials>,
    /// Trust for the server's certificate; `None` leaves it to the machine's trust store.
    pub tls: Option<rustls::ClientConfig>,
}

#[derive(Debug, Clone)]
pub enum Credentials {
    /// A `.creds` file: a JWT and the key that signs for it.
    File(PathBuf),
    Password {
        user: String,
        password: Secret,
    },
}

/// Why the relay cannot be made. A server that is away is none of these: that is waited for.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("the NATS credentials file {path} cannot be used: {error}")]
    Credentials { path: PathBuf, error: std::io::Error },
    #[error("the NATS client could not start: {0}")]
    Connect(#[from] async_nats::ConnectError),
}

// fixed: shorter than half the shortest sensible lease, longer than any healthy server needs to sync a batch
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);
// fixed: what the client may hold unacknowledged; more than a consumer's batch, so it never binds
const IN_FLIGHT: usize = 4_096;

impl NatsTarget {
    /// Starts a client that connects in the background, and again whenever the connection breaks.
    pub(crate) async fn client(
        self,
        name: &str,
        hear: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Client, RelayError> {
        let hear = Arc::new(hear);
        let mut options =
            ConnectOptions::new().name(name).retry_on_initial_connect().event_callback(move |event| {
                let hear = Arc::clone(&hear);
                async move { hear(&event) }
            });
        if self.url.split(',').any(|url| url.trim().starts_with("tls://")) || self.tls.is_some() {
            options = options.require_tls(true);
        }
        if let Some(tls) = self.tls {
            options = options.tls_client_config(tls);
        }
        options = match self.credentials {
            None => options,
            Some(Credentials::Password { user, password }) => {
                options.user_and_password(user, password.expose().clone())
            }
            Some(Credentials::File(path)) => options
                .credentials_file(&path)
                .await
                .map_err(|error| RelayError::Credentials { path, error })?,
        };
        let servers: Vec<&str> = self.url.split(',').map(str::trim).collect();
        Ok(options.connect(servers).await?)
    }

    /// The same for JetStream.
    pub(crate) async fn connect(self) -> Result<jetstream::Context, RelayError> {
        let client = self.client("gpuaasd outbox-relay", note).await?;
        Ok(ContextBuilder::new()
            .timeout(ANSWER_TIMEOUT)
            .max_ack_inflight(IN_FLIGHT)
            .backpressure_on_inflight(true)
            .build(client))
    }
}

fn note(event: &Event) {
    match event {
        Event::Connected => {
            tracing::info!("connected to NATS");
            metrics::gauge!("gpuaas_nats_connected").set(1.0);
        }
        Event::Disconnected | Event::Closed => {
            tracing::warn!("not connected to NATS; events wait in the log");
            metrics::gauge!("gpuaas_nats_connected").set(0.0);
        }
        other => tracing::warn!(event = %other, "NATS client"),
    }
}

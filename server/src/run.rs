//! `gpuaasd run`: chosen roles on an external PostgreSQL.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::config;
use crate::health;
use crate::listen::Listener;
use crate::process::{Process, ProcessOptions};
use crate::roles::{self, Role};
use crate::{Failure, assemble, telemetry};

#[derive(Args)]
pub struct RunArguments {
    /// Roles to run, separated by commas
    #[arg(long, value_delimiter = ',', required = true, value_name = "ROLE")]
    role: Vec<Role>,
    /// Configuration file; `gpuaasd config reference` explains every key
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub async fn run(arguments: RunArguments) -> Result<(), Failure> {
    let config = config::load(&arguments.config)?;
    let level = config.log.level.as_deref().unwrap_or("info");
    let traces = telemetry::start(config.log.format, level, &config.telemetry)?;
    let metrics = telemetry::metrics()?;
    let mut wanted: Vec<Role> = Vec::new();
    for role in arguments.role {
        if !wanted.contains(&role) {
            wanted.push(role);
        }
    }
    config.check_roles(&wanted)?;
    let public = match &config.public {
        Some(public) if wanted.contains(&Role::Api) => {
            Some(Listener::bind(public.listen, config.public_tls()?).await?.behind(public.proxies()?))
        }
        _ => None,
    };
    let node = match &config.node {
        Some(node) if wanted.contains(&Role::Api) => {
            Some(Listener::bind(node.listen, Some(node.tls()?)).await?)
        }
        _ => None,
    };
    let internal = Listener::bind(config.internal.listen, None).await?;
    let mut addresses = vec![format!("internal {}", internal.address()?)];
    for (name, listener) in [("public", &public), ("node", &node)] {
        if let Some(listener) = listener {
            addresses.push(format!("{name} {}", listener.address()?));
        }
    }
    let (database, nats) = (config.database()?, config.nats()?);
    let logins = roles::logins(&wanted);
    database.check(&logins).await?;
    let tls = config.public.as_ref().is_some_and(|public| public.tls_key.is_some());
    let options = ProcessOptions {
        database,
        logins,
        connections: config.database.connections,
        keys: Arc::new(config.secret_keys()?),
        tls,
        backstop: false,
        settings: assemble::settings(HashMap::new())?,
    };
    let mut process = Process::start(options).await?;
    if config.secrets.is_some()
        && let Ok(app) = process.app()
    {
        app.secrets.check_keys().await?;
    }
    let health = process.health(wanted.iter().map(|role| role.name()).collect())?;
    process.follow_settings();
    process.follow_log();
    process.follow_replicas();
    if let Some(target) = &nats {
        process.follow_replicas_by_nats(target.clone()).await?;
    }
    if let Some(listener) = public {
        roles::api::start(&mut process, roles::api::Listeners { public: listener, node }, None)?;
    }
    if wanted.contains(&Role::AuditSealer) {
        roles::audit_sealer::start(&mut process, &config.audit).await?;
    }
    if wanted.contains(&Role::OutboxRelay) {
        roles::outbox_relay::start(&mut process, nats).await?;
    }
    if wanted.contains(&Role::PlatformWorker) {
        roles::platform_worker::start(&mut process)?;
    }
    let stop = process.stop.clone();
    process.spawn("internal listener", internal.serve(health::router(health.clone(), metrics), stop));
    let names: Vec<&str> = wanted.iter().map(|role| role.name()).collect();
    tracing::info!(roles = names.join(","), addresses = addresses.join(", "), "running");
    let ended = process.run_until_stopped(health, Duration::from_secs(config.drain_seconds)).await;
    traces.flush().await;
    ended
}

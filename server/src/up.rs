//! `gpuaasd up`: everything in one process on an embedded default.
//!
//! The order matters to the person watching: what can fail at once (the lock, the port) is tried first, and nothing is
//! printed as ready that is not.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blob::BlobConfig;
use clap::Args;
use iam::{Iam, SeededKey};
use postgres_server::{DataDirLock, Server};
use serde::Serialize;
use types::Secret;

use crate::config::AuditConfig;
use crate::embedded::{data_directory, open_database};
use crate::files::write_private;
use crate::health::{self, Health};
use crate::listen::Listener;
use crate::process::{Process, ProcessOptions};
use crate::roles::{self, Role};
use crate::telemetry::{LogFormat, TelemetryConfig};
use crate::{Failure, assemble, secret_keys, telemetry, terminal};

#[derive(Args)]
pub struct UpArguments {
    /// Where the API and its pages answer; loopback only, because it is plaintext
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where nodes connect, with mutual TLS
    #[arg(long, default_value = "127.0.0.1:8443", value_name = "ADDRESS")]
    node_listen: SocketAddr,
    /// Where everything is kept [default: /var/lib/gpuaas for root, else ~/.local/share/gpuaas]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Write addresses and key files here as JSON once everything is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// A PostgreSQL installation to use when none is installed (a prefix or its bin directory)
    #[arg(long, env = "GPUAAS_POSTGRES_DIR", value_name = "DIR")]
    postgres_dir: Option<PathBuf>,
    /// Use this PostgreSQL instead of a private one; the user must be allowed to create roles and databases
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
    /// Send the audit log's checkpoints to this witness, by POST
    #[arg(long, value_name = "URL")]
    audit_witness: Option<String>,
    /// How log lines look, on standard error
    #[arg(long, value_enum, default_value = "human")]
    log_format: LogFormat,
    /// Fix a setting for this process, e.g. web.page_limit_max=100; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    setting: Vec<(String, serde_json::Value)>,
    /// Send traces to this OpenTelemetry collector, e.g. http://127.0.0.1:4318/v1/traces
    #[arg(long, env = "GPUAAS_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Check every transaction against what it really wrote (for tests; slower)
    #[arg(long, hide = true)]
    backstop: bool,
}

/// `key=value`, the value as JSON; a bare word is a string.
fn parse_setting(text: &str) -> Result<(String, serde_json::Value), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}

/// What somebody at a terminal wants to know.
const LOG_LEVEL: &str = "warn,gpuaasd=info,postgres_server=info";
/// Connections for requests and flows; with the workers' pools it stays below twenty.
const CONNECTIONS: usize = 10;

/// What others read to find their way in.
#[derive(Serialize)]
struct Ready {
    url: String,
    node_url: String,
    sign_in_link: String,
    operator_key_file: PathBuf,
    tenant_key_file: PathBuf,
    org: String,
    project: String,
    version: &'static str,
    pid: u32,
}

/// The audit log of an embedded installation. Its copy lies on the same disk, which saves it from a slip in the
/// database and not from the loss of the disk; an operator who wants more has `run`. So it is no reason to drop the
/// original either, which is all that a backup contains.
fn audit_config(data_dir: &Path, witness_url: Option<String>) -> AuditConfig {
    AuditConfig {
        verifier_key_file: Some(data_dir.join("audit.vkey")),
        log_name: crate::config::default_log_name(),
        replica: Some(replica(data_dir)),
        prune: false,
        witness_url,
        witness_git: None,
    }
}

/// Where the audit log's copy lies.
pub fn replica(data_dir: &Path) -> BlobConfig {
    BlobConfig::directory(data_dir.join("audit-replica"))
}

/// In the data directory: where this installation answers, for commands that tell people.
const URL_FILE: &str = "url";

/// Where the `up` that runs on this data directory answers.
pub fn url(data_dir: &Path) -> Result<String, Failure> {
    let file = data_dir.join(URL_FILE);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        Failure::new(format!(
            "where the server answers is not known: {}: {error}. Start `gpuaasd up`, which writes it, or name it with --url",
            file.display()
        ))
    })?;
    Ok(text.trim().to_owned())
}

pub async fn up(arguments: UpArguments) -> Result<(), Failure> {
    let tracing = TelemetryConfig { otlp_endpoint: arguments.otlp_endpoint.clone(), ..Default::default() };
    let traces = telemetry::start(arguments.log_format, LOG_LEVEL, &tracing)?;
    let metrics = telemetry::metrics()?;
    if !arguments.listen.ip().is_loopback() {
        return Err(Failure::new(format!(
            "`up` speaks plaintext and therefore listens on loopback only, not on {}. \
             For other machines use `gpuaasd run` with TLS, or a reverse proxy on this machine",
            arguments.listen
        )));
    }
    let settings = assemble::settings(arguments.setting.into_iter().collect())?;
    let data_dir = data_directory(arguments.data_dir)?;
    let lock = DataDirLock::acquire(&data_dir)?;
    crate::backup::refuse_unfinished(&data_dir)?;
    let listener = Listener::bind_named(arguments.listen, None, "--listen").await?;
    let address = listener.address()?;
    let node_tls =
        crate::node_tls::at(&data_dir.join(crate::node_tls::DIRECTORY), arguments.node_listen.ip())?;
    let node_listener = Listener::bind_named(arguments.node_listen, Some(node_tls), "--node-listen").await?;
    let node_address = node_listener.address()?;
    let (database, admin, server) =
        open_database(&lock, &data_dir, arguments.database_url, arguments.postgres_dir).await?;
    database.init(&admin).await?;
    let applied = database.migrate().await?;
    if applied > 0 {
        tracing::info!(applied, "schema migrated");
    }
    let logins = roles::logins(&Role::ALL);
    database.check(&logins).await?;
    let keys = secret_keys::of_data_directory(&data_dir, &database).await?;
    let options = ProcessOptions {
        database,
        logins,
        connections: CONNECTIONS,
        keys: Arc::new(keys),
        tls: false,
        backstop: arguments.backstop,
        settings,
    };
    let mut process = Process::start(options).await?;
    let app = process.app()?;
    secret_keys::renew(&app).await?;
    // Before the first rows: they belong into their own day's and month's partitions.
    roles::platform_worker::keep_partitions(&app).await;
    let seeded = app.iam.seed().await?;
    let operator_key_file = key_file(&app.iam, &data_dir, "operator.key", SeededKey::Operator).await?;
    let tenant_key_file =
        key_file(&app.iam, &data_dir, "tenant.key", SeededKey::Owner(seeded.organization)).await?;
    let sign_in_link = app.iam.sign_in_link(seeded.operator, &format!("http://{address}")).await?;
    let health = process.health(Role::ALL.iter().map(|role| role.name()).collect())?;
    process.follow_settings();
    process.follow_log();
    let listeners = roles::api::Listeners { public: listener, node: Some(node_listener) };
    roles::api::start(&mut process, listeners, Some(health::router(health.clone(), metrics)))?;
    roles::audit_sealer::start(&mut process, &audit_config(&data_dir, arguments.audit_witness)).await?;
    roles::outbox_relay::start(&mut process, None).await?;
    roles::platform_worker::start(&mut process)?;
    let ready = Ready {
        url: format!("http://{address}"),
        node_url: format!("https://{node_address}"),
        sign_in_link,
        operator_key_file,
        tenant_key_file,
        org: seeded.organization.to_string(),
        project: seeded.project.to_string(),
        version: crate::VERSION,
        pid: std::process::id(),
    };
    std::fs::write(data_dir.join(URL_FILE), format!("{}\n", ready.url))
        .map_err(|error| Failure::new(format!("{}: {error}", data_dir.join(URL_FILE).display())))?;
    if let Some(path) = &arguments.ready_file {
        let text = serde_json::to_string_pretty(&ready).map_err(|error| Failure::new(error.to_string()))?;
        write_private(path, &text)?;
    }
    greet(&ready);
    let ended = supervise(process, health, server, arguments.ready_file.as_deref()).await;
    traces.flush().await;
    ended
}

/// Deaths of PostgreSQL in a row after which it is no accident, and what counts as in a row.
const RESTARTS_MAX: u32 = 5; // fixed: more only hides that someone should look
const SETTLED: Duration = Duration::from_secs(60); // fixed: a server that lived so long had started well
const RESTART_PAUSE: Duration = Duration::from_millis(200); // fixed: the first pause; doubles with each restart in a row

/// Runs until stopped. A private PostgreSQL that dies is started again, and whoever needs it waits or retries meanwhile;
/// one that we leave is stopped.
async fn supervise(
    process: Process,
    health: Health,
    server: Option<Server>,
    ready_file: Option<&Path>,
) -> Result<(), Failure> {
    let stop = process.stop.clone();
    // Nobody balances load in front of `up`: it ends at once.
    let running = process.run_until_stopped(health, Duration::ZERO);
    tokio::pin!(running);
    let Some(mut server) = server else {
        let ended = running.await;
        remove(ready_file);
        return ended;
    };
    let ended = tokio::select! {
        ended = &mut running => ended,
        failure = keep_running(&mut server) => {
            stop.cancel();
            let _ = running.await;
            remove(ready_file);
            return Err(failure);
        }
    };
    remove(ready_file);
    server.stop().await?;
    ended
}

/// Restarts the server whenever it dies, until that is of no use.
async fn keep_running(server: &mut Server) -> Failure {
    let mut restarts = 0;
    loop {
        let failure = match tokio::time::timeout(SETTLED, server.failure()).await {
            Ok(failure) => failure,
            Err(_) => {
                restarts = 0;
                server.failure().await
            }
        };
        restarts += 1;
        if restarts > RESTARTS_MAX {
            return failure.into();
        }
        tracing::error!(%failure, restarts, "PostgreSQL ended unexpectedly and is started again");
        tokio::time::sleep(RESTART_PAUSE * 2u32.pow(restarts - 1)).await;
        if let Err(failure) = server.restart().await {
            return failure.into();
        }
    }
}

/// A ready file must not outlive what it describes.
fn remove(ready_file: Option<&Path>) {
    if let Some(path) = ready_file {
        let _ = std::fs::remove_file(path);
    }
}

/// The key in the file, or a new one if there is none or it no longer opens this database.
async fn key_file(iam: &Iam, data_dir: &Path, name: &str, whose: SeededKey) -> Result<PathBuf, Failure> {
    let path = data_dir.join(name);
    if let Ok(text) = std::fs::read_to_string(&path)
        && iam.key_is_valid(&Secret::new(text.trim().to_owned())).await?
    {
        return Ok(path);
    }
    let key = iam.seed_key(whose, name).await?;
    write_private(&path, key.expose())?;
    Ok(path)
}

fn greet(ready: &Ready) {
    let Ready { url, sign_in_link, operator_key_file, tenant_key_file, org, .. } = ready;
    let (operator, tenant) = (operator_key_file.display(), tenant_key_file.display());
    terminal::say(&format!(
        "
  GPUaaS {version} is up at {url}

  Sign in once:   {sign_in_link}
  API browser:    {url}/api

  Worth trying:
    curl -H \"Authorization: Bearer $(cat {operator})\" -H 'Content-Type: application/json' \\
         -d '{{\"name\": \"First Try\"}}' {url}/api/v1/orgs
    curl -H \"Authorization: Bearer $(cat {tenant})\" {url}/api/v1/orgs/{org}/projects
    curl -N -H \"Authorization: Bearer $(cat {operator})\" '{url}/api/v1/events?cursor=0'

  Stop with Ctrl-C.
",
        version = crate::VERSION
    ));
}

//! `gpuaasd up`: everything in one process on an embedded default.
//!
//! The order matters to the person watching: what can fail at once (the lock, the port) is tried first, and nothing is
//! printed as ready that is not.

use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use db::Target;
use iam::{Iam, Seeded, SeededKey};
use postgres_server::{Binaries, DataDirLock, Options, SUPERUSER, Server};
use serde::Serialize;
use types::{Secret, SystemEntropy};

use crate::config::AuditConfig;
use crate::database::Database;
use crate::health::{self, Health};
use crate::listen::Listener;
use crate::process::{Process, ProcessOptions};
use crate::roles::{self, Role};
use crate::telemetry::LogFormat;
use crate::{Failure, telemetry, terminal};

#[derive(Args)]
pub struct UpArguments {
    /// Where the API and the console answer; loopback only, because it is plaintext
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where everything is kept [default: /var/lib/gpuaas for root, else ~/.local/share/gpuaas]
    #[arg(long)]
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
    #[arg(long, value_enum, default_value = "human")]
    log_format: LogFormat,
    /// Check every transaction against what it really wrote (for tests; slower)
    #[arg(long, hide = true)]
    backstop: bool,
}

/// Connections for requests and flows; with the workers' pools it stays below twenty.
const CONNECTIONS: usize = 10;

/// What others read to find their way in.
#[derive(Serialize)]
struct Ready {
    url: String,
    sign_in_link: String,
    operator_key_file: PathBuf,
    tenant_key_file: PathBuf,
    org: String,
    project: String,
    version: &'static str,
    pid: u32,
}

pub async fn up(arguments: UpArguments) -> Result<(), Failure> {
    telemetry::start_logs(arguments.log_format, "warn,gpuaasd=info,postgres_server=info")?;
    let metrics = telemetry::metrics()?;
    if !arguments.listen.ip().is_loopback() {
        return Err(Failure::new(format!(
            "`up` speaks plaintext and therefore listens on loopback only, not on {}. \
             For other machines use `gpuaasd run` with TLS, or a reverse proxy on this machine",
            arguments.listen
        )));
    }
    let data_dir = data_directory(arguments.data_dir)?;
    let lock = DataDirLock::acquire(&data_dir)?;
    let listener = Listener::bind(arguments.listen, None).await?;
    let address = listener.address()?;
    let (database, admin, server) =
        open_database(&lock, &data_dir, arguments.database_url, arguments.postgres_dir).await?;
    database.init(&admin).await?;
    let applied = database.migrate().await?;
    if applied > 0 {
        tracing::info!(applied, "schema migrated");
    }
    database.check().await?;
    let options =
        ProcessOptions { database, connections: CONNECTIONS, tls: false, backstop: arguments.backstop };
    let mut process = Process::start(options).await?;
    let seeded = process.app.iam.seed().await?;
    let operator_key_file =
        key_file(&process.app.iam, &data_dir, "operator.key", SeededKey::Operator).await?;
    let tenant_key_file =
        key_file(&process.app.iam, &data_dir, "tenant.key", SeededKey::Owner(seeded.organization)).await?;
    let sign_in_link = sign_in_link(&process.app.iam, &seeded, address).await?;
    let health =
        Health::new(process.app.db.pool().clone(), Role::ALL.iter().map(|role| role.name()).collect());
    process.follow_settings();
    roles::api::start(&mut process, listener, Some(health::router(health, metrics)))?;
    roles::audit_sealer::start(&mut process, &audit_config(&data_dir, arguments.audit_witness))?;
    roles::outbox_relay::start(&mut process);
    roles::platform_worker::start(&mut process);
    let ready = Ready {
        url: format!("http://{address}"),
        sign_in_link,
        operator_key_file,
        tenant_key_file,
        org: seeded.organization.to_string(),
        project: seeded.project.to_string(),
        version: crate::VERSION,
        pid: std::process::id(),
    };
    if let Some(path) = &arguments.ready_file {
        let text = serde_json::to_string_pretty(&ready).map_err(|error| Failure::new(error.to_string()))?;
        write_private(path, &text)?;
    }
    greet(&ready);
    supervise(process, server, arguments.ready_file.as_deref()).await
}

/// Runs until stopped; a private PostgreSQL that dies takes us with it, one that we leave is stopped.
async fn supervise(
    process: Process,
    server: Option<Server>,
    ready_file: Option<&Path>,
) -> Result<(), Failure> {
    let stop = process.stop.clone();
    let running = process.run_until_stopped();
    tokio::pin!(running);
    let Some(server) = server else {
        running.await;
        return Ok(());
    };
    let failure = tokio::select! {
        () = &mut running => None,
        failure = server.failure() => {
            tracing::error!(%failure, "PostgreSQL ended unexpectedly");
            stop.cancel();
            running.await;
            Some(failure)
        }
    };
    if let Some(path) = ready_file {
        let _ = std::fs::remove_file(path);
    }
    match failure {
        Some(failure) => Err(failure.into()),
        None => Ok(server.stop().await?),
    }
}

/// The audit log of an embedded installation. Its copy lies on the same disk, which saves it from a slip in the
/// database and not from the loss of the disk; an operator who wants more has `run`.
fn audit_config(data_dir: &Path, witness_url: Option<String>) -> AuditConfig {
    AuditConfig {
        key_file: data_dir.join("audit.key"),
        log_name: crate::config::default_log_name(),
        replica_dir: Some(data_dir.join("audit-replica")),
        witness_url,
        witness_git: None,
    }
}

pub fn data_directory(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let directory = match named {
        Some(directory) => directory,
        None if rustix::process::geteuid().is_root() => PathBuf::from("/var/lib/gpuaas"),
        None => {
            let home = std::env::var_os("HOME")
                .ok_or_else(|| Failure::new("HOME is not set: name the data directory with --data-dir"))?;
            PathBuf::from(home).join(".local/share/gpuaas")
        }
    };
    std::fs::create_dir_all(&directory).map_err(|error| {
        Failure::new(format!("the data directory {} cannot be made: {error}", directory.display()))
    })?;
    directory.canonicalize().map_err(|error| Failure::new(format!("{}: {error}", directory.display())))
}

type Opened = (Database, Target, Option<Server>);

async fn open_database(
    lock: &DataDirLock,
    data_dir: &Path,
    url: Option<String>,
    postgres_dir: Option<PathBuf>,
) -> Result<Opened, Failure> {
    if let Some(url) = url {
        let (database, admin) = named_database(data_dir, &url)?;
        return Ok((database, admin, None));
    }
    let mut candidates = Binaries::installed().await;
    if let Some(directory) = postgres_dir {
        candidates.push(Binaries::at(&directory).await?);
    }
    let binaries = Binaries::for_cluster(data_dir, &candidates)?;
    let server =
        Server::start(lock, Options { binaries, settings: server_settings(), durable: true }).await?;
    let mut config = tokio_postgres::Config::new();
    config.host_path(server.socket_dir()).port(server.port()).dbname("gpuaas");
    let password = Secret::new(server.password().expose().clone());
    let mut admin = config.clone();
    admin.user(SUPERUSER).password(password.expose()).dbname("postgres");
    Ok((Database::new(Target::plain(config), "gpuaas", password), Target::plain(admin), Some(server)))
}

/// The database on a PostgreSQL that was named, and the way in for who makes it.
pub fn named_database(data_dir: &Path, url: &str) -> Result<(Database, Target), Failure> {
    let admin: tokio_postgres::Config = url
        .parse()
        .map_err(|error| Failure::new(format!("DATABASE_URL is not a PostgreSQL URL: {error}")))?;
    let mut config = admin.clone();
    config.dbname("gpuaas");
    let password = kept_password(&data_dir.join("database.password"))?;
    Ok((Database::new(Target::plain(config), "gpuaas", password), Target::plain(admin)))
}

/// A small, private server: enough connections for us, little memory.
fn server_settings() -> Vec<(String, String)> {
    [("max_connections", "40"), ("shared_buffers", "64MB"), ("jit", "off"), ("log_min_messages", "warning")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

fn kept_password(path: &Path) -> Result<Secret, Failure> {
    if let Ok(text) = std::fs::read_to_string(path) {
        return Ok(Secret::new(text.trim().to_owned()));
    }
    let mut bytes = [0u8; 24];
    types::Entropy::fill(&SystemEntropy, &mut bytes);
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    write_private(path, &text)?;
    Ok(Secret::new(text))
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

async fn sign_in_link(iam: &Iam, seeded: &Seeded, address: SocketAddr) -> Result<String, Failure> {
    let code = iam.sign_in_link_create(&iam.bootstrap_context(), seeded.operator).await?;
    // After the '#': browsers keep it to themselves, so the code reaches no log and no proxy.
    Ok(format!("http://{address}/sign-in#{}", code.expose()))
}

/// Writes a file only its owner can read, whole or not at all.
fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::new(format!("{} cannot be written: {error}", path.display()));
    let part = path.with_extension("part");
    let _ = std::fs::remove_file(&part);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
    std::fs::rename(&part, path).map_err(failed)
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
         -d '{{\"name\": \"Acme Research\"}}' {url}/api/v1/orgs
    curl -H \"Authorization: Bearer $(cat {tenant})\" {url}/api/v1/orgs/{org}/projects
    curl -N -H \"Authorization: Bearer $(cat {operator})\" '{url}/api/v1/events?cursor=0'

  Stop with Ctrl-C.
",
        version = crate::VERSION
    ));
}

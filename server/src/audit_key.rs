//! The audit log's signing key: 32 bytes in a file only we can read, its public half beside it for everybody.
//!
//! Made once, on the first start. Losing it is serious: a new key cannot continue the log, because every checkpoint
//! kept elsewhere names the old one. The sealer refuses a key the log is not known by and says so.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use audit::SealKey;
use merkle::SignerKey;
use types::{Entropy as _, SystemEntropy};

use crate::Failure;

const SEED_BYTES: usize = 32; // fixed: what Ed25519 takes
const PRIVATE: u32 = 0o600;
const READABLE: u32 = 0o644;

/// The key in the file; makes the file, and its `.vkey` beside it, if they are not there.
pub fn open(path: &Path, log_name: &str) -> Result<SealKey, Failure> {
    let seed = match read(path)? {
        Some(seed) => seed,
        None => make(path)?,
    };
    let key = SignerKey::from_seed(log_name, &seed)
        .map_err(|error| Failure::new(format!("the audit log's key cannot be used: {error}")))?;
    publish(&path.with_extension("vkey"), &format!("{}\n", key.verifier()))?;
    let key = Arc::new(key);
    Ok(Arc::new(move || Arc::clone(&key)))
}

fn read(path: &Path) -> Result<Option<[u8; SEED_BYTES]>, Failure> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, &error)),
    };
    let mode = std::fs::metadata(path).map_err(|error| failed(path, &error))?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Failure::new(format!(
            "the audit log's key {} can be read by others (mode {mode:o}). Run: chmod 600 {0}",
            path.display()
        )));
    }
    let seed = bytes.try_into().map_err(|_| {
        Failure::new(format!(
            "{} is not the audit log's key: it has to be {SEED_BYTES} bytes. Restore it from a backup; a new key cannot \
             continue the log",
            path.display()
        ))
    })?;
    Ok(Some(seed))
}

/// Writes a new seed beside its place and links it there: of two processes that start at once, one wins and both use
/// its key.
fn make(path: &Path) -> Result<[u8; SEED_BYTES], Failure> {
    let mut seed = [0; SEED_BYTES];
    SystemEntropy.fill(&mut seed);
    let part = path.with_extension(format!("part-{}", std::process::id()));
    let _ = std::fs::remove_file(&part);
    let written =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&part).and_then(
            |mut file| {
                file.write_all(&seed)?;
                file.sync_all()
            },
        );
    let linked = written.and_then(|()| std::fs::hard_link(&part, path));
    let _ = std::fs::remove_file(&part);
    match linked {
        Ok(()) => Ok(seed),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            read(path)?.ok_or_else(|| Failure::new(format!("{} vanished while it was read", path.display())))
        }
        Err(error) => Err(failed(path, &error)),
    }
}

/// The public half is written anew whenever it differs: it follows from the key and is not a secret.
fn publish(path: &Path, text: &str) -> Result<(), Failure> {
    if std::fs::read_to_string(path).is_ok_and(|kept| kept == text) {
        return Ok(());
    }
    let part = path.with_extension(format!("vkey-part-{}", std::process::id()));
    std::fs::write(&part, text)
        .and_then(|()| std::fs::set_permissions(&part, std::fs::Permissions::from_mode(READABLE)))
        .and_then(|()| std::fs::rename(&part, path))
        .map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("the audit log's key {}: {error}", path.display()))
}

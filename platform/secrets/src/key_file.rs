//! The key encryption key as a file: 32 random bytes that only their owner can read.
//!
//! Good enough for one machine, where whoever reads the file as root could read our memory too. To rotate it, rename
//! `secrets.key` to `secrets.key.old` and start again: a new one is made, data keys are wrapped anew, and the old file
//! can go once the start says so. A file is never overwritten: losing this key is losing every secret.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;
use types::{Entropy, Secret};
use zeroize::Zeroize as _;

use crate::cipher::{self, KEY_BYTES};
use crate::key_encryption::{DataKey, KeyEncryption, KeyError, KeyFuture, Keyring};

/// What to do when the file is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingKey<'a> {
    /// Make it: for `up`, where the data directory is ours. But not in place of one that was lost: the keys with these
    /// ids hold data keys, and have to be at hand.
    Make { in_use: &'a [String] },
    /// Refuse: replicas must share one key, so making one by accident would split them.
    Refuse,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("the key file {} {doing}: {error}", path.display())]
    Io { path: PathBuf, doing: &'static str, error: std::io::Error },
    #[error(
        "the key file {} is missing. Copy it from another replica or from where you keep its backup; \
         for a new installation make one: (umask 077; head -c 32 /dev/urandom > FILE)",
        path.display()
    )]
    Missing { path: PathBuf },
    #[error(
        "the key file {} is gone, and the database holds secrets that only the key {key_id} opens. No new one was made. \
         Put the file back from where you keep its backup",
        path.display()
    )]
    Lost { path: PathBuf, key_id: String },
    #[error(
        "the key file {} is open to others (mode {mode:o}): every secret hangs on it. \
         Close it with: chmod 600 {}; and rotate it if others may have read it",
        path.display(), path.display()
    )]
    OpenToOthers { path: PathBuf, mode: u32 },
    #[error("the key file {} belongs to user {owner}, not to the user gpuaasd runs as ({ours}): chown it", path.display())]
    ForeignOwner { path: PathBuf, owner: u32, ours: u32 },
    #[error("the key file {} has to hold exactly {KEY_BYTES} bytes. Put the right file in place", path.display())]
    WrongLength { path: PathBuf },
}

/// A key read from a file.
pub struct FileKey {
    id: String,
    key: Secret<[u8; KEY_BYTES]>,
    entropy: Arc<dyn Entropy>,
}

impl FileKey {
    pub fn open(path: &Path, entropy: Arc<dyn Entropy>) -> Result<Self, KeyFileError> {
        let failed = |error| KeyFileError::Io { path: path.to_owned(), doing: "cannot be read", error };
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(KeyFileError::Missing { path: path.to_owned() });
            }
            opened => opened.map_err(failed)?,
        };
        // Asked of the open file, not of the path: what was checked is what is read.
        check_closed(path, &file.metadata().map_err(failed)?)?;
        let mut bytes = Vec::with_capacity(KEY_BYTES + 1);
        let read = file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes);
        let key = <[u8; KEY_BYTES]>::try_from(bytes.as_slice());
        bytes.zeroize();
        read.map_err(failed)?;
        let key = key.map_err(|_| KeyFileError::WrongLength { path: path.to_owned() })?;
        Ok(Self::from_bytes(Secret::new(key), entropy))
    }

    /// Makes the file, whole and on disk when this returns; fails if one is there.
    pub fn make(path: &Path, entropy: &dyn Entropy) -> Result<(), KeyFileError> {
        let failed = |error| KeyFileError::Io { path: path.to_owned(), doing: "cannot be made", error };
        let unfinished = path.with_added_extension("unfinished");
        match std::fs::remove_file(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut bytes = [0u8; KEY_BYTES];
        entropy.fill(&mut bytes);
        let key = Secret::new(bytes);
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(failed)?;
        file.write_all(key.expose()).and_then(|()| file.sync_all()).map_err(failed)?;
        // A link, unlike a rename, cannot replace a key that appeared meanwhile.
        std::fs::hard_link(&unfinished, path).map_err(failed)?;
        std::fs::remove_file(&unfinished).map_err(failed)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new("."))).and_then(|opened| opened.sync_all()).map_err(failed)
    }

    pub(crate) fn from_bytes(key: Secret<[u8; KEY_BYTES]>, entropy: Arc<dyn Entropy>) -> Self {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(b"gpuaas key encryption key id\0");
        hash.update(key.expose());
        // Eight bytes of a hash of a random key: enough to tell keys apart, nothing to find one by.
        let id = hash.finish().as_ref()[..8]
            .iter()
            .fold("file:".to_owned(), |id, byte| id + &format!("{byte:02x}"));
        Self { id, key, entropy }
    }

    fn place(&self) -> Vec<u8> {
        [b"gpuaas data key 1\0", self.id.as_bytes()].concat()
    }
}

impl KeyEncryption for FileKey {
    fn key_id(&self) -> &str {
        &self.id
    }

    fn wrap<'a>(&'a self, data_key: &'a DataKey) -> KeyFuture<'a, Vec<u8>> {
        let wrapped = cipher::seal(&self.key, &*self.entropy, &self.place(), data_key.expose())
            .map_err(|error| KeyError::Unavailable(error.to_string()));
        Box::pin(std::future::ready(wrapped))
    }

    fn unwrap<'a>(&'a self, wrapped: &'a [u8]) -> KeyFuture<'a, DataKey> {
        let refused = || KeyError::Refused { key_id: self.id.clone() };
        let opened = cipher::open(&self.key, &self.place(), wrapped).map_err(|_| refused());
        let data_key = opened.and_then(|plain| {
            <[u8; KEY_BYTES]>::try_from(plain.expose().as_slice()).map(DataKey::new).map_err(|_| refused())
        });
        Box::pin(std::future::ready(data_key))
    }
}

impl Keyring {
    /// The key at `path`, and the one before it at `path` + `.old` if that is there.
    pub fn from_file(
        path: &Path,
        missing: MissingKey<'_>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, KeyFileError> {
        let older = match FileKey::open(&path.with_added_extension("old"), Arc::clone(&entropy)) {
            Ok(key) => Some(key),
            Err(KeyFileError::Missing { .. }) => None,
            Err(error) => return Err(error),
        };
        if let MissingKey::Make { in_use } = missing
            && !path.exists()
        {
            let is_here = |id: &String| older.as_ref().is_some_and(|key| key.id == *id);
            if let Some(lost) = in_use.iter().find(|id| !is_here(id)) {
                return Err(KeyFileError::Lost { path: path.to_owned(), key_id: lost.clone() });
            }
            FileKey::make(path, &*entropy)?;
            tracing::info!(path = %path.display(), "made the key that protects secrets; back it up apart from the database");
        }
        let current: Arc<dyn KeyEncryption> = Arc::new(FileKey::open(path, entropy)?);
        let older = older.into_iter().map(|key| Arc::new(key) as Arc<dyn KeyEncryption>);
        Ok(Self::new(current, older.collect()))
    }
}

fn check_closed(path: &Path, file: &std::fs::Metadata) -> Result<(), KeyFileError> {
    let path = path.to_owned();
    let (mode, owner, ours) = (file.mode() & 0o7777, file.uid(), rustix::process::geteuid().as_raw());
    if mode & 0o077 != 0 {
        return Err(KeyFileError::OpenToOthers { path, mode });
    }
    if owner != ours {
        return Err(KeyFileError::ForeignOwner { path, owner, ours });
    }
    Ok(())
}

//! The keys that protect data keys, and how one is told from another.
//!
//! A key encryption key never leaves its home, so it may be remote: every call can wait and can fail, and none is made
//! while a transaction is open. What the database keeps beside a wrapped data key is the key's id; a [`Keyring`] holds
//! the key that wraps now and the older ones that still unwrap.

use std::sync::Arc;

use futures::future::BoxFuture;
use types::{Entropy, Error, Secret};

use crate::cipher::KEY_BYTES;
use crate::model::KEY_ENCRYPTION_UNAVAILABLE;

/// A key that seals one version of one secret.
pub type DataKey = Secret<[u8; KEY_BYTES]>;

pub type KeyFuture<'a, T> = BoxFuture<'a, Result<T, KeyError>>;

/// A key encryption key: a file, a transit engine, a KMS.
pub trait KeyEncryption: Send + Sync + 'static {
    /// Names this very key, not its place: another key in the same file or slot has another id.
    fn key_id(&self) -> &str;

    fn wrap<'a>(&'a self, data_key: &'a DataKey) -> KeyFuture<'a, Vec<u8>>;

    fn unwrap<'a>(&'a self, wrapped: &'a [u8]) -> KeyFuture<'a, DataKey>;
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(
        "the key encryption key {key_id} is not here; this server has {here}. Secrets wrapped with it cannot be read: \
         put its file back in place, or beside the new one with the ending .old"
    )]
    Missing { key_id: String, here: String },
    #[error("the key encryption key {key_id} does not unwrap this data key: the stored bytes were altered")]
    Refused { key_id: String },
    #[error("no key encryption key is configured: set secrets.key_file")]
    NotConfigured,
    #[error("the key service does not answer: {0}")]
    Unavailable(String),
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        let code = match error {
            KeyError::Refused { .. } => &crate::model::SECRET_UNREADABLE,
            _ => &KEY_ENCRYPTION_UNAVAILABLE,
        };
        // Key ids and file names are the operator's business: they go to the log, not to the caller.
        code.error("the data key cannot be used").caused_by(error)
    }
}

/// The key in use and its predecessors.
pub struct Keyring {
    current: Option<Arc<dyn KeyEncryption>>,
    older: Vec<Arc<dyn KeyEncryption>>,
}

impl Keyring {
    pub fn new(current: Arc<dyn KeyEncryption>, older: Vec<Arc<dyn KeyEncryption>>) -> Self {
        Self { current: Some(current), older }
    }

    /// For a process that has no business with secrets: every use says that no key is configured.
    pub const fn empty() -> Self {
        Self { current: None, older: Vec::new() }
    }

    /// Is a predecessor still at hand, so that data keys may be waiting to be wrapped anew?
    pub fn has_older(&self) -> bool {
        !self.older.is_empty()
    }

    pub fn current_id(&self) -> Result<&str, KeyError> {
        Ok(self.current()?.key_id())
    }

    /// Fails if a key with this id is not here.
    pub fn require(&self, key_id: &str) -> Result<(), KeyError> {
        self.find(key_id).map(drop)
    }

    /// A new data key, and the same wrapped with the current key.
    pub(crate) async fn make_data_key(&self, entropy: &dyn Entropy) -> Result<(DataKey, Wrapped), KeyError> {
        let mut bytes = [0u8; KEY_BYTES];
        entropy.fill(&mut bytes);
        let data_key = DataKey::new(bytes);
        let wrapped = self.wrap(&data_key).await?;
        Ok((data_key, wrapped))
    }

    pub(crate) async fn wrap(&self, data_key: &DataKey) -> Result<Wrapped, KeyError> {
        let key = self.current()?;
        Ok(Wrapped { key_id: key.key_id().to_owned(), bytes: key.wrap(data_key).await? })
    }

    pub(crate) async fn unwrap(&self, wrapped: &Wrapped) -> Result<DataKey, KeyError> {
        self.find(&wrapped.key_id)?.unwrap(&wrapped.bytes).await
    }

    fn current(&self) -> Result<&Arc<dyn KeyEncryption>, KeyError> {
        self.current.as_ref().ok_or(KeyError::NotConfigured)
    }

    fn find(&self, key_id: &str) -> Result<&Arc<dyn KeyEncryption>, KeyError> {
        let current = self.current()?;
        let mut all = std::iter::once(current).chain(&self.older);
        all.find(|key| key.key_id() == key_id).ok_or_else(|| KeyError::Missing {
            key_id: key_id.to_owned(),
            here: std::iter::once(current)
                .chain(&self.older)
                .map(|key| key.key_id())
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}

/// A data key as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrapped {
    pub key_id: String,
    pub bytes: Vec<u8>,
}

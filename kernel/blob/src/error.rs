//! What can go wrong with objects, in words for the operator who has to repair it.

use std::path::PathBuf;

use crate::path::BlobPath;

#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error(
        "{path} has {bytes} bytes, more than the {bytes_max} allowed. Split it, or raise object_bytes_max"
    )]
    TooLarge { path: BlobPath, bytes: u64, bytes_max: u64 },
    #[error(
        "the object directory {} cannot be used: {error}. Make it writable for the account gpuaasd runs as",
        directory.display()
    )]
    Directory { directory: PathBuf, error: std::io::Error },
    #[error("the object storage configuration is wrong: {0}")]
    Config(String),
    #[error(
        "the object store replaced {path}, which it was told to keep: it ignores conditional writes (If-None-Match), so \
         nothing kept there is safe from being overwritten. Use a store that honours them"
    )]
    Overwrites { path: BlobPath },
    #[error(
        "the object store refused {path}: {error}. Check the credentials and that they may read and write the bucket"
    )]
    Denied { path: String, error: object_store::Error },
    #[error("the object store does not answer for {path}: {error}. Nothing is lost; it is safe to try again")]
    Unavailable { path: String, error: object_store::Error },
}

impl BlobError {
    /// Can the same call succeed later without anyone changing the configuration?
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    pub(crate) fn of(path: &dyn std::fmt::Display, error: object_store::Error) -> Self {
        let path = path.to_string();
        match error {
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                Self::Denied { path, error }
            }
            _ => Self::Unavailable { path, error },
        }
    }
}

//! Reading and writing objects.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, RetryConfig};
use types::Secret;

use crate::config::{BlobConfig, BlobLimits, DirectoryConfig, S3Config};
use crate::error::BlobError;
use crate::path::BlobPath;

type Result<T, E = BlobError> = std::result::Result<T, E>;

/// An object store. Cheap to clone.
#[derive(Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    limits: BlobLimits,
    /// The directory, if that is what the store is.
    directory: Option<Arc<PathBuf>>,
}

/// What became of a [`Blobs::put_new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an object that was already there with other bytes was not written"]
pub enum PutNew {
    Written,
    /// The path is taken, by the same bytes or by others. Nothing was changed.
    AlreadyThere {
        same: bool,
    },
}

/// An object without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobInfo {
    pub path: BlobPath,
    pub bytes: u64,
}

impl Blobs {
    /// Opens the store. A directory is made if it is missing; a bucket must be there, and is not asked yet.
    pub fn open(config: &BlobConfig) -> Result<Self> {
        match config {
            BlobConfig::Directory(config) => open_directory(config),
            BlobConfig::S3(config) => open_s3(config),
        }
    }

    /// Writes an object unless the path is taken.
    pub async fn put_new(&self, path: &BlobPath, bytes: Bytes) -> Result<PutNew> {
        self.check_size(path, bytes.len() as u64)?;
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&path.to_store(), bytes.clone().into(), options).await {
            Ok(_) => Ok(PutNew::Written),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                // Gone again in between means that it was another object: ours was not written.
                let same = self.get(path).await?.is_some_and(|there| there == bytes);
                Ok(PutNew::AlreadyThere { same })
            }
            Err(error) => Err(BlobError::of(path, error)),
        }
    }

    /// Finds out whether the store keeps the promise of [`Self::put_new`]. Some S3 servers ignore the condition and answer
    /// that all is well. Leaves one small object at `path`, so that no right to delete is needed.
    pub async fn check_write_once(&self, path: &BlobPath) -> Result<()> {
        let kept = Bytes::from_static(b"This object must never change.\n");
        let _ = self.put_new(path, kept).await?;
        match self.put_new(path, Bytes::from_static(b"It changed: this store overwrites.\n")).await? {
            PutNew::AlreadyThere { same: false } => Ok(()),
            PutNew::AlreadyThere { same: true } | PutNew::Written => {
                Err(BlobError::Overwrites { path: path.clone() })
            }
        }
    }

    /// Writes an object, replacing what was there.
    pub async fn put(&self, path: &BlobPath, bytes: Bytes) -> Result<()> {
        self.check_size(path, bytes.len() as u64)?;
        match self.store.put(&path.to_store(), bytes.into()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(BlobError::of(path, error)),
        }
    }

    /// The object's bytes; `None` if there is no such object.
    pub async fn get(&self, path: &BlobPath) -> Result<Option<Bytes>> {
        let found = match self.store.get(&path.to_store()).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| BlobError::of(path, error))?,
        };
        // The size comes with the head of the reply: a too large object is refused before its bytes are read.
        self.check_size(path, found.meta.size)?;
        found.bytes().await.map(Some).map_err(|error| BlobError::of(path, error))
    }

    pub async fn exists(&self, path: &BlobPath) -> Result<bool> {
        match self.store.head(&path.to_store()).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(BlobError::of(path, error)),
        }
    }

    /// Objects below `prefix` (whole segments: `a` lists `a/b`, not `ab`), ordered by path, beginning after `after`.
    /// Holds at most `limit` + 1 of them, however many there are.
    pub async fn list(
        &self,
        prefix: Option<&BlobPath>,
        after: Option<&BlobPath>,
        limit: usize,
    ) -> Result<Vec<BlobInfo>> {
        let (below, offset) = (prefix.map(BlobPath::to_store), after.map(BlobPath::to_store));
        let mut objects = match &offset {
            Some(offset) => self.store.list_with_offset(below.as_ref(), offset),
            None => self.store.list(below.as_ref()),
        };
        let place = prefix.map_or("the listing", BlobPath::as_str);
        let mut first: BTreeMap<BlobPath, u64> = BTreeMap::new();
        while let Some(object) = objects.try_next().await.map_err(|error| BlobError::of(&place, error))? {
            // What we could not have written (a file somebody put there by hand) is not ours to show.
            let Ok(path) = BlobPath::parse(object.location.as_ref()) else { continue };
            first.insert(path, object.size);
            if first.len() > limit {
                first.pop_last();
                // S3 lists in order, so the rest is larger; a directory comes in any order and must be read to the end.
                if self.directory.is_none() {
                    break;
                }
            }
        }
        Ok(first.into_iter().map(|(path, bytes)| BlobInfo { path, bytes }).collect())
    }

    /// Removes an object; one that is not there is no error, so a repeated call is none either.
    pub async fn delete(&self, path: &BlobPath) -> Result<()> {
        match self.store.delete(&path.to_store()).await {
            Ok(()) => self.sync_directory_of(path).await,
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(BlobError::of(path, error)),
        }
    }

    /// `object_store` syncs what it writes but not what it deletes: a deleted object must not be back after a power cut.
    async fn sync_directory_of(&self, path: &BlobPath) -> Result<()> {
        let Some(root) = &self.directory else { return Ok(()) };
        let file = root.join(path.as_str());
        let directory = file.parent().unwrap_or(root).to_owned();
        let synced = match tokio::fs::File::open(&directory).await {
            Ok(opened) => opened.sync_all().await,
            Err(error) => Err(error),
        };
        synced.map_err(|error| BlobError::Directory { directory, error })
    }

    fn check_size(&self, path: &BlobPath, bytes: u64) -> Result<()> {
        let bytes_max = self.limits.object_bytes_max;
        if bytes > bytes_max {
            return Err(BlobError::TooLarge { path: path.clone(), bytes, bytes_max });
        }
        Ok(())
    }
}

fn open_directory(config: &DirectoryConfig) -> Result<Blobs> {
    let failed = |error| BlobError::Directory { directory: config.path.clone(), error };
    // The outermost directory is closed to others: nobody gets past it, so what lies below may have any mode.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&config.path).map_err(failed)?;
    let root = config.path.canonicalize().map_err(failed)?;
    let store = LocalFileSystem::new_with_prefix(&root)
        .map_err(|error| BlobError::Config(error.to_string()))?
        .with_fsync(true);
    Ok(Blobs { store: Arc::new(store), limits: config.limits, directory: Some(Arc::new(root)) })
}

fn open_s3(config: &S3Config) -> Result<Blobs> {
    let limits = config.limits;
    let timeout = Duration::from_millis(limits.request_timeout_ms);
    let retry = RetryConfig {
        max_retries: limits.retries_max,
        retry_timeout: timeout.saturating_mul(u32::try_from(limits.retries_max + 1).unwrap_or(u32::MAX)),
        ..RetryConfig::default()
    };
    let plaintext = config.endpoint.as_deref().is_some_and(|url| url.starts_with("http://"));
    if plaintext && !config.endpoint.as_deref().is_some_and(is_loopback) {
        return Err(BlobError::Config(
            "objects would travel in plaintext: give an https:// endpoint".to_owned(),
        ));
    }
    let mut builder = match credentials(config)? {
        Some((id, key)) => AmazonS3Builder::new().with_access_key_id(id).with_secret_access_key(key.expose()),
        None => AmazonS3Builder::from_env(),
    };
    builder = builder
        .with_bucket_name(&config.bucket)
        .with_region(&config.region)
        .with_retry(retry)
        .with_client_options(ClientOptions::new().with_timeout(timeout).with_allow_http(plaintext));
    if let Some(endpoint) = &config.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let store = builder.build().map_err(|error| BlobError::Config(error.to_string()))?;
    let store: Arc<dyn ObjectStore> = match &config.prefix {
        None => Arc::new(store),
        Some(prefix) => {
            let prefix = BlobPath::parse(prefix)
                .map_err(|error| BlobError::Config(format!("the prefix {prefix:?}: {error}")))?;
            Arc::new(PrefixStore::new(store, prefix.to_store()))
        }
    };
    Ok(Blobs { store, limits, directory: None })
}

fn credentials(config: &S3Config) -> Result<Option<(&str, Secret)>> {
    match (&config.access_key_id, &config.secret_access_key_file) {
        (None, None) => Ok(None),
        (Some(id), Some(file)) => {
            let key = std::fs::read_to_string(file)
                .map_err(|error| BlobError::Config(format!("{} cannot be read: {error}", file.display())))?;
            Ok(Some((id, Secret::new(key.trim().to_owned()))))
        }
        _ => Err(BlobError::Config(
            "access_key_id and secret_access_key_file belong together: set both or neither".to_owned(),
        )),
    }
}

/// Does a plaintext address stay on this machine?
fn is_loopback(url: &str) -> bool {
    let authority = url.trim_start_matches("http://").split('/').next().unwrap_or("");
    let Ok(address) = authority.parse::<std::net::SocketAddr>() else {
        return authority.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    };
    address.ip().is_loopback()
}

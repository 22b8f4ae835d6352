//! Where objects are kept, as the configuration says it: one line.
//!
//! ```text
//! /srv/audit                               a directory of this machine, or of a file system all replicas share
//! file:///srv/audit                        the same
//! s3://bucket/prefix?endpoint=https://s3.example&access_key_id=ID&secret_access_key_file=/etc/gpuaas/s3.key
//! ```
//!
//! Values are taken as they stand, without percent-encoding. A secret never belongs into the line: it names a file.

use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

/// `/directory`, `file:///directory`, or `s3://bucket/prefix?endpoint=https://…&region=…&access_key_id=…`
/// `&secret_access_key_file=…`. The endpoint may be plaintext only to loopback, and is Amazon's own if absent; without
/// a key the machine's own identity is used. Bounds of one call: `object_bytes_max`, `request_timeout_ms`, `retries_max`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub enum BlobConfig {
    Directory(DirectoryConfig),
    /// A bucket of S3 or anything that speaks its protocol and honours conditional writes.
    S3(S3Config),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryConfig {
    /// Made, closed to others, if it is not there.
    pub path: PathBuf,
    pub limits: BlobLimits,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Config {
    pub endpoint: Option<String>,
    pub bucket: String,
    pub region: String,
    /// Everything is kept below this path of the bucket.
    pub prefix: Option<String>,
    pub access_key_id: Option<String>,
    pub secret_access_key_file: Option<PathBuf>,
    pub limits: BlobLimits,
}

/// Bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobLimits {
    /// Largest object, in bytes.
    pub object_bytes_max: u64,
    /// Longest time one request to a remote store may take, in milliseconds.
    pub request_timeout_ms: u64,
    /// How often a failed request to a remote store is repeated.
    pub retries_max: usize,
}

impl Default for BlobLimits {
    fn default() -> Self {
        Self { object_bytes_max: 64 << 20, request_timeout_ms: 30_000, retries_max: 4 }
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BlobConfigError {
    #[error("objects are kept in a directory (/path or file:///path) or a bucket (s3://bucket/prefix)")]
    Form,
    #[error(
        "{0:?} cannot be set here. Known are endpoint, region, access_key_id, secret_access_key_file and the limits"
    )]
    UnknownKey(String),
    #[error("the value of {0:?} cannot be read")]
    Value(String),
    #[error(
        "{0:?} is a secret and does not belong into a configuration line: name its file in secret_access_key_file"
    )]
    Secret(String),
}

impl BlobConfig {
    /// A directory with the usual limits.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self::Directory(DirectoryConfig { path: path.into(), limits: BlobLimits::default() })
    }
}

impl FromStr for BlobConfig {
    type Err = BlobConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let mut s3 = S3Config {
            endpoint: None,
            bucket: String::new(),
            region: "us-east-1".to_owned(),
            prefix: None,
            access_key_id: None,
            secret_access_key_file: None,
            limits: BlobLimits::default(),
        };
        let Some(bucket) = place.strip_prefix("s3://") else {
            let path = PathBuf::from(place.strip_prefix("file://").unwrap_or(place));
            if !path.is_absolute() {
                return Err(BlobConfigError::Form);
            }
            let mut limits = BlobLimits::default();
            for (key, value) in pairs(query)? {
                limits.set(key, value)?;
            }
            return Ok(Self::Directory(DirectoryConfig { path, limits }));
        };
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        if bucket.is_empty() || bucket.contains(['@', ':']) {
            return Err(BlobConfigError::Form);
        }
        s3.bucket = bucket.to_owned();
        s3.prefix = Some(prefix.trim_end_matches('/').to_owned()).filter(|prefix| !prefix.is_empty());
        for (key, value) in pairs(query)? {
            match key {
                "endpoint" => s3.endpoint = Some(value.to_owned()),
                "region" => s3.region = value.to_owned(),
                "access_key_id" => s3.access_key_id = Some(value.to_owned()),
                "secret_access_key_file" => s3.secret_access_key_file = Some(value.into()),
                _ => s3.limits.set(key, value)?,
            }
        }
        Ok(Self::S3(s3))
    }
}

impl TryFrom<String> for BlobConfig {
    type Error = BlobConfigError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl BlobLimits {
    fn set(&mut self, key: &str, value: &str) -> Result<(), BlobConfigError> {
        let unreadable = |_| BlobConfigError::Value(key.to_owned());
        match key {
            "object_bytes_max" => self.object_bytes_max = value.parse().map_err(unreadable)?,
            "request_timeout_ms" => self.request_timeout_ms = value.parse().map_err(unreadable)?,
            "retries_max" => self.retries_max = value.parse().map_err(unreadable)?,
            _ if key.contains("secret") || key.contains("password") || key.contains("token") => {
                return Err(BlobConfigError::Secret(key.to_owned()));
            }
            _ => return Err(BlobConfigError::UnknownKey(key.to_owned())),
        }
        Ok(())
    }
}

fn pairs(query: &str) -> Result<Vec<(&str, &str)>, BlobConfigError> {
    let words = query.split('&').filter(|word| !word.is_empty());
    words.map(|word| word.split_once('=').ok_or_else(|| BlobConfigError::Value(word.to_owned()))).collect()
}

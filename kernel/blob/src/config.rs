//! Where objects are kept, as the configuration file says it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// Where objects are kept.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BlobConfig {
    /// A directory of this machine, or of a file system all replicas share.
    Directory(DirectoryConfig),
    /// A bucket of S3 or anything that speaks its protocol (Garage, Ceph, MinIO).
    S3(S3Config),
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryConfig {
    /// Made, closed to others, if it is not there.
    pub path: PathBuf,
    #[serde(default)]
    pub limits: BlobLimits,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct S3Config {
    /// `https://…`; plaintext is accepted only to loopback. Absent: Amazon's own for the region.
    pub endpoint: Option<String>,
    pub bucket: String,
    #[serde(default = "default_region")]
    pub region: String,
    /// Everything is kept below this path of the bucket.
    pub prefix: Option<String>,
    /// Absent, together with the file: the machine's own identity (instance profile, web identity, environment).
    pub access_key_id: Option<String>,
    /// File with the secret access key.
    pub secret_access_key_file: Option<PathBuf>,
    #[serde(default)]
    pub limits: BlobLimits,
}

fn default_region() -> String {
    "us-east-1".to_owned()
}

/// Bounds of one call.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
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

//! What secrets are, and the rules about them that need no database.

use std::fmt;

use authz::Subject;
use iam::{OrganizationId, ProjectId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use types::{Error, ErrorCode, ErrorKind, Id, Kind, Name, Result, Timestamp};

pub enum SecretKind {}
impl Kind for SecretKind {
    const PREFIX: &'static str = "sec";
    const NAME: &'static str = "secret";
}
pub type SecretId = Id<SecretKind>;

pub enum DeliveryKind {}
impl Kind for DeliveryKind {
    const PREFIX: &'static str = "dlv";
    const NAME: &'static str = "secret_delivery";
}
pub type DeliveryId = Id<DeliveryKind>;

pub static SECRET_VALUE_SIZE: ErrorCode = ErrorCode::new(
    "secret_value_size",
    ErrorKind::Invalid,
    "The secret's value is empty or larger than allowed",
    "Store a value within the limit in 'details'; keep larger things as objects, and only their key as a secret.",
);
pub static SECRET_RETIRED: ErrorCode = ErrorCode::new(
    "secret_retired",
    ErrorKind::Conflict,
    "The secret is retired: its value was destroyed",
    "Store a new secret; the name is free again.",
);
pub static SECRET_PURPOSE_MISMATCH: ErrorCode = ErrorCode::new(
    "secret_purpose_mismatch",
    ErrorKind::Forbidden,
    "The secret was stored for another purpose",
    "Ask for it with the purpose it was stored for, or store the value again under the purpose you need.",
);
pub static SECRET_VERSION_ENDED: ErrorCode = ErrorCode::new(
    "secret_version_ended",
    ErrorKind::Gone,
    "This version of the secret can no longer be delivered",
    "Take the current version: it replaced this one, and the overlap is over.",
);
pub static SECRET_UNREADABLE: ErrorCode = ErrorCode::new(
    "secret_unreadable",
    ErrorKind::Internal,
    "The stored secret does not open: it was altered or moved",
    "Treat it as tampering with the database: keep the evidence, find out who wrote the row, and rotate the secret.",
);
pub static KEY_ENCRYPTION_UNAVAILABLE: ErrorCode = ErrorCode::new(
    "key_encryption_unavailable",
    ErrorKind::Unavailable,
    "The key that protects secrets is not at hand",
    "Nothing was changed. The operator has to give gpuaasd the key file named in its log, or repair the key service.",
);

pub fn errors() -> Vec<&'static ErrorCode> {
    vec![
        &SECRET_VALUE_SIZE,
        &SECRET_RETIRED,
        &SECRET_PURPOSE_MISMATCH,
        &SECRET_VERSION_ENDED,
        &SECRET_UNREADABLE,
        &KEY_ENCRYPTION_UNAVAILABLE,
    ]
}

/// Whose secret it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Ours: signing keys, credentials of the installation.
    Platform,
    /// A tenant's.
    Project(ProjectId),
}

impl Holder {
    /// As the column `project_id` has it.
    pub(crate) fn project(&self) -> Option<uuid::Uuid> {
        match self {
            Self::Platform => None,
            Self::Project(id) => Some(*id.as_uuid()),
        }
    }
}

/// What the sealed bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Material {
    /// Text somebody gave us or had us generate.
    Value,
    /// The seed of an Ed25519 key.
    SigningKey,
}

impl Material {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::SigningKey => "signing_key",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretState {
    Active,
    /// Ended for good; the value was destroyed.
    Retired,
}

impl SecretState {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Retired => "retired",
        }
    }
}

/// What a secret is for: `registry_pull`, `webhook.signing`. Bound into the ciphertext, and demanded at delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Purpose(String);

// fixed: part of the wire format
const PURPOSE_CHARS_MAX: usize = 63;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "a purpose has 1 to {PURPOSE_CHARS_MAX} characters from a-z, 0-9, '_', '-' and '.', and begins with a letter"
)]
pub struct PurposeError;

impl Purpose {
    pub fn parse(text: &str) -> Result<Self, PurposeError> {
        let fine = text.len() <= PURPOSE_CHARS_MAX
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(&b));
        if fine { Ok(Self(text.to_owned())) } else { Err(PurposeError) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Purpose {
    type Error = PurposeError;

    fn try_from(text: String) -> Result<Self, PurposeError> {
        Self::parse(&text)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Purpose {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Purpose".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "What a secret is for. It is delivered for this and nothing else.",
            "pattern": "^[a-z][a-z0-9_.-]{0,62}$",
            "examples": ["registry_pull"],
        })
    }
}

/// Everything about a secret but its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretInfo {
    pub id: SecretId,
    /// Absent for the platform's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org_id: Option<OrganizationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    pub name: Name,
    pub material: Material,
    pub purpose: Purpose,
    /// Who stored it and answers for it.
    pub owner: Subject,
    /// The current version; each rotation adds one.
    pub version: i32,
    pub state: SecretState,
    /// Since when it is in this state.
    pub state_since: Timestamp,
    /// Counts changes by users; also the ETag.
    pub generation: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl SecretInfo {
    pub(crate) fn require_active(&self) -> Result<()> {
        match self.state {
            SecretState::Active => Ok(()),
            SecretState::Retired => Err(SECRET_RETIRED.error("the secret is retired")),
        }
    }

    pub(crate) fn require_purpose(&self, purpose: &Purpose) -> Result<()> {
        if self.purpose == *purpose {
            return Ok(());
        }
        Err(SECRET_PURPOSE_MISMATCH
            .error(format!("it was stored for {}, not for {purpose}", self.purpose))
            .with_details(serde_json::json!({"secret_id": self.id})))
    }
}

/// One value handed to someone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    pub id: DeliveryId,
    pub secret_id: SecretId,
    pub version: i32,
    pub purpose: Purpose,
    /// Who was given the value.
    pub recipient: Subject,
    /// Ties the delivery to the request or flow that asked for it.
    pub correlation_id: authz::CorrelationId,
    pub delivered_at: Timestamp,
}

/// May this version still leave? The current one always, an older one while the overlap lasts.
pub(crate) fn require_readable(
    readable_until: Option<Timestamp>,
    version: i32,
    now: Timestamp,
) -> Result<()> {
    match readable_until {
        Some(until) if until <= now => {
            Err(SECRET_VERSION_ENDED.error(format!("version {version} ended at {until}")))
        }
        _ => Ok(()),
    }
}

/// What makes two names the same.
pub(crate) fn name_key(name: &Name) -> String {
    name.as_str().to_lowercase()
}

pub(crate) fn not_found(kind: &str) -> Error {
    authz::NOT_FOUND.error(authz::not_found_message(kind))
}

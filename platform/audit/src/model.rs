//! What an audit entry looks like to a reader, and what can go wrong with the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::{ErrorCode, ErrorKind, Id, Kind, Timestamp};

pub use iam::{OrganizationId, ProjectId};

pub enum EntryKind {}
impl Kind for EntryKind {
    const PREFIX: &'static str = "aud";
    const NAME: &'static str = "audit_entry";
}
pub type EntryId = Id<EntryKind>;

/// One reading of a log by someone whose log it is not; exists only in its audit entry.
pub enum ReadingKind {}
impl Kind for ReadingKind {
    const PREFIX: &'static str = "rdg";
    const NAME: &'static str = "audit_reading";
}
pub type ReadingId = Id<ReadingKind>;

pub static NOTHING_SEALED: ErrorCode = ErrorCode::new(
    "nothing_sealed",
    ErrorKind::NotFound,
    "The audit log has no checkpoint yet",
    "Wait a second and ask again; if it stays so, operators look at the role audit-sealer.",
);
pub static CHECKPOINT_AHEAD: ErrorCode = ErrorCode::new(
    "checkpoint_ahead",
    ErrorKind::Conflict,
    "The log is shorter than the checkpoint you hold",
    "Keep your checkpoint. If it is genuine, entries were taken away: verify an export against it and tell the operator.",
);
pub static LOG_DAMAGED: ErrorCode = ErrorCode::new(
    "audit_log_damaged",
    ErrorKind::Internal,
    "The audit log's hashes do not fit together",
    "Operators: make an export and run `gpuaasd audit verify` on it; it names what is wrong.",
);

pub fn errors() -> Vec<&'static ErrorCode> {
    vec![&NOTHING_SEALED, &CHECKPOINT_AHEAD, &LOG_DAMAGED]
}

/// Someone or something, by kind and id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Party {
    pub kind: String,
    pub id: String,
}

/// Who acted, and for whom if not for themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryActor {
    pub kind: String,
    pub id: String,
    /// Which of its keys or sessions it acted with.
    pub credential: Option<String>,
    pub on_behalf_of: Option<Party>,
}

/// A state that was too large for the log, by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OmittedState {
    /// SHA-256 of the state's JSON text, in hexadecimal.
    pub sha256: String,
    pub bytes: u64,
}

/// One change, as it was written down with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    pub id: EntryId,
    /// Entries with the same transaction were committed together.
    pub transaction: String,
    pub at: Timestamp,
    pub org_id: Option<OrganizationId>,
    pub project_id: Option<ProjectId>,
    pub actor: EntryActor,
    /// `domain.resource.verb`.
    pub action: String,
    pub resource: Party,
    /// The resource's generation after the change.
    pub generation: i64,
    /// The resource before the change; absent for a new one.
    pub before: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_omitted: Option<OmittedState>,
    /// The resource after the change.
    pub after: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_omitted: Option<OmittedState>,
    pub correlation_id: String,
    pub causation_id: Option<String>,
    /// Which version of the policies allowed it.
    pub policy_version: i64,
}

/// An entry's place in the sealed log, and the proof of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sealed {
    /// Its number in the log.
    pub index: u64,
    /// The exact bytes that were hashed; the entry's other fields say the same.
    pub line: String,
    /// Hashes (base64) from the entry up to the page's checkpoint, as in RFC 6962. Absent if they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Vec<String>>,
}

/// An entry in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedEntry {
    #[serde(flatten)]
    pub entry: Entry,
    pub sealed: Sealed,
}

/// What the log's key vouches for at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignedCheckpoint {
    /// How many entries it covers.
    pub size: u64,
    /// Root of the Merkle tree over them, base64.
    pub root: String,
    /// The signed note (c2sp.org/tlog-checkpoint). Keep this text: it is the proof.
    pub note: String,
    pub at: Timestamp,
}

/// A page of an organization's audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditPage")]
pub struct EntryPage {
    pub items: Vec<ListedEntry>,
    /// What the proofs of this listing lead to, and where it ends: pass its `size` as `since` to get what was sealed later.
    /// Null while nothing is sealed.
    pub checkpoint: Option<SignedCheckpoint>,
    /// Pass as `cursor` to get the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The newest checkpoint, and that it only adds to an older one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointReply {
    #[serde(flatten)]
    pub checkpoint: SignedCheckpoint,
    /// Hashes (base64) that lead from the log of `since` entries to this one, as in RFC 6962; only if `since` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Vec<String>>,
}

/// A public key of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogKey {
    /// `name+id+base64`, as c2sp.org/signed-note has it. Keep it elsewhere: fetched anew each time it proves little.
    pub verifier_key: String,
    /// It signs checkpoints of this size and larger, until the next key takes over.
    pub from_size: u64,
    /// For all but the first key: the checkpoint at which it took over, a signed note that names both keys and is signed
    /// with both. It is what lets you trust the new key if you kept the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<String>,
}

/// All public keys of the log, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogKeys {
    pub keys: Vec<LogKey>,
}

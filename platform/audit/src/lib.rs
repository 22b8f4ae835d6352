//! The audit log: sealed, signed, copied, read, exported.
//!
//! Every change writes its entry into `spine.audit_entry`, in its own transaction; that is the kernel's work. This
//! domain owns the schema `audit`: a Merkle tree (RFC 6962) over those entries in one order, checkpoints signed with
//! Ed25519, and the marks of copies elsewhere. It adds nothing to what was recorded; it makes changing the record
//! noticeable, offline, to anyone who kept a checkpoint.
//!
//! Invariants
//! - Every committed entry gets exactly one number; numbers have no gaps and never change. An entry is numbered only
//!   when every transaction that began before its own has ended, so none can be overtaken (`sealer`).
//! - A leaf is the hash of the entry's exact exported bytes, its number included (`canonical`).
//! - Leaves, nodes, checkpoints and keys are append-only, by grants and by triggers; the tree only grows.
//! - What is delivered elsewhere is never overwritten there: the same bytes are fine, others are an alarm.
//! - An entry leaves the database only with its whole month, sealed, and just found elsewhere as it was sealed (`pruner`).
//!
//! Must never: write an entry of its own accord other than through the spine, show a tenant another tenant's entry or
//! its existence, or sign with a key that the log is not known by and was not handed over to.

mod canonical;
mod copy;
mod delivery;
mod entries;
mod export;
mod http;
mod model;
mod policy;
mod proofs;
mod pruner;
mod replica;
mod sealer;
mod settings;
mod store;
mod tenant;
#[cfg(test)]
mod tests;
mod witness;

use std::sync::Arc;

use authz::Decider;
use db::migrate::MigrationSet;
use db::{Db, Migration, Settings};
use domain::Domain;

pub use delivery::{Delivered, Delivery, DeliveryError, Destination, Parcel};
pub use entries::EntryFilter;
pub use export::{ExportFailure, Exported, export, needs_copy, newest_key, record_export};
pub use model::{
    CheckpointReply, Entry, EntryActor, EntryId, EntryPage, ListedEntry, LogKey, LogKeys, OmittedState,
    Party, Sealed, SignedCheckpoint,
};
pub use policy::POLICY;
pub use pruner::{Pruned, Pruner};
pub use replica::Replica;
pub use sealer::{KeySource, SealError, SealKeys, Sealer, Step, oldest_unsealed};
pub use settings::SEAL_LATE_SECONDS;
pub use store::NEW_CLUSTER;
pub use tenant::{PageProof, TenantError, trusted_keys, verify_growth, verify_page};
pub use witness::{Channel, Witness};

/// The audit domain as requests see it. Cheap to clone.
#[derive(Clone)]
pub struct Audit {
    db: Db,
    settings: Settings,
    decider: Arc<dyn Decider>,
}

impl Audit {
    pub fn new(db: Db, settings: Settings, decider: Arc<dyn Decider>) -> Self {
        Self { db, settings, decider }
    }

    /// What the server registers.
    pub fn domain(&self) -> Domain {
        Domain {
            name: "audit",
            migrations: MIGRATION_SET,
            endpoints: http::endpoints(self),
            tags: http::TAGS,
            events: Vec::new(),
            errors: model::errors(),
            settings: settings::settings(),
            projections: Vec::new(),
        }
    }
}

pub const MIGRATION_SET: MigrationSet = MigrationSet {
    domain: "audit",
    migrations: &[Migration { version: 1, name: "audit", sql: include_str!("../migrations/0001_audit.sql") }],
};

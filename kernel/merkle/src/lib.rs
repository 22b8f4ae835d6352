//! The tamper-evident log beneath the audit trail: Merkle tree, signed checkpoints, exports, and the offline verifier.
//!
//! Everything here is a pure function of its inputs, except that exports and verification touch files. There is no
//! database, no clock and no network, so that an auditor can verify an export on a machine that has never seen ours,
//! and so that the sealer's arithmetic can be tested without a server.
//!
//! The formats are public ones (RFC 6962 hashing, the tlog-tiles storage layout, C2SP signed notes and checkpoints),
//! because a proof that only its author's tool can check proves little.

pub mod chain;
pub mod checkpoint;
pub mod export;
pub mod note;
pub mod proof;
pub mod tree;
pub mod verify;

pub use chain::{ChainFault, Handover, HandoverError, KeyChain};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use export::{ExportError, ExportWriter};
pub use note::{NoteError, NoteSignature, SignedNote, SignerKey, VerifierKey};
pub use proof::{HashRange, ProofError, ProofPlan, StoredHashes, verify_consistency, verify_inclusion};
pub use tree::{Frontier, Hash, StoredHash, leaf_hash};
pub use verify::{Anchor, Damage, EntryId, Finding, Outside, Report, VerifyError, verify_export};

#[cfg(test)]
mod tests;

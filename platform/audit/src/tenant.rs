//! What a tenant can check with nothing but the API's replies and a key it keeps.
//!
//! A page proves that each of its sealed entries is in the log the checkpoint was signed for, with exactly these bytes
//! and at this number. It does not prove that the page is complete: that takes the whole log, which only an auditor of
//! the platform may see. What a tenant can do is keep checkpoints and ask for consistency: then no entry it was once
//! shown can be changed or taken away without the proof failing.

use merkle::{
    ChainFault, Checkpoint, CheckpointError, Handover, HandoverError, Hash, KeyChain, ProofError, SignedNote,
    VerifierKey, leaf_hash,
};

use crate::model::{Entry, EntryId, EntryPage, ListedEntry, LogKeys};

#[derive(Debug, thiserror::Error)]
pub enum TenantError {
    #[error("the checkpoint is not the log's: {0}")]
    Checkpoint(#[from] CheckpointError),
    #[error("the page has proofs and no checkpoint they could lead to")]
    NoCheckpoint,
    #[error("entry {0} shows other fields than the bytes that were sealed")]
    Fields(EntryId),
    #[error("entry {0} has a proof that is not made of hashes")]
    Garbled(EntryId),
    #[error("entry {id} is not in the log: {error}")]
    NotIncluded { id: EntryId, error: ProofError },
    #[error("the log was changed, not only added to: {0}")]
    Rewritten(ProofError),
    #[error("the key {key} is no key of the log you know: {reason}")]
    Key { key: String, reason: String },
}

/// What a page turned out to prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageProof {
    pub proven: usize,
    /// Listed without proofs: ask for them.
    pub unproven: usize,
}

/// The keys that the one you kept leads to, through the hand-overs the server shows (`GET /api/v1/audit/key`).
pub fn trusted_keys(kept: VerifierKey, shown: &LogKeys) -> Result<KeyChain, TenantError> {
    let mut chain = KeyChain::new(vec![kept]);
    let mut handovers = Vec::new();
    for key in &shown.keys {
        let refused = |reason: HandoverError| TenantError::Key {
            key: key.verifier_key.clone(),
            reason: reason.to_string(),
        };
        if let Some(text) = &key.handover {
            let note = SignedNote::parse(text.as_bytes())
                .map_err(|error| refused(CheckpointError::from(error).into()))?;
            handovers.extend(Handover::open(&note).map_err(refused)?);
        }
    }
    match chain.follow(&handovers).into_iter().next() {
        None => Ok(chain),
        Some(ChainFault::Fork { key, .. }) => Err(TenantError::Key {
            key: key.to_string(),
            reason: "it takes part in two hand-overs".to_owned(),
        }),
        Some(ChainFault::Unrelated { size }) => Err(TenantError::Key {
            key: format!("from {size} entries on"),
            reason: "nothing you know leads to it".to_owned(),
        }),
    }
}

/// Checks a page against the log's keys.
pub fn verify_page(page: &EntryPage, keys: &KeyChain) -> Result<PageProof, TenantError> {
    let checkpoint = page.checkpoint.as_ref().map(|shown| open(&shown.note, keys)).transpose()?;
    let mut result = PageProof { proven: 0, unproven: 0 };
    for item in &page.items {
        if verify_entry(item, checkpoint.as_ref())? {
            result.proven += 1;
        } else {
            result.unproven += 1;
        }
    }
    Ok(result)
}

/// Checks that the log of a newer checkpoint begins with the log of an older one.
pub fn verify_growth(
    older: &str,
    newer: &str,
    consistency: &[String],
    keys: &KeyChain,
) -> Result<(), TenantError> {
    let (older, newer) = (open(older, keys)?, open(newer, keys)?);
    let proof = hashes(consistency).ok_or(TenantError::Rewritten(ProofError::Rejected))?;
    merkle::verify_consistency(older.size, &older.root, newer.size, &newer.root, &proof)
        .map_err(TenantError::Rewritten)
}

fn open(note: &str, keys: &KeyChain) -> Result<Checkpoint, TenantError> {
    let note = SignedNote::parse(note.as_bytes()).map_err(CheckpointError::from)?;
    Ok(keys.open(&note)?)
}

fn verify_entry(item: &ListedEntry, checkpoint: Option<&Checkpoint>) -> Result<bool, TenantError> {
    let id = item.entry.id;
    let sealed = &item.sealed;
    let prefix = format!("{{\"index\":{},", sealed.index);
    let said: Option<Entry> = serde_json::from_str(&sealed.line).ok();
    if !sealed.line.starts_with(&prefix) || said.as_ref() != Some(&item.entry) {
        return Err(TenantError::Fields(id));
    }
    let Some(proof) = &sealed.proof else { return Ok(false) };
    let checkpoint = checkpoint.ok_or(TenantError::NoCheckpoint)?;
    let proof = hashes(proof).ok_or(TenantError::Garbled(id))?;
    let leaf = leaf_hash(sealed.line.as_bytes());
    merkle::verify_inclusion(&leaf, sealed.index, checkpoint.size, &proof, &checkpoint.root)
        .map_err(|error| TenantError::NotIncluded { id, error })?;
    Ok(true)
}

fn hashes(texts: &[String]) -> Option<Vec<Hash>> {
    texts.iter().map(|text| text.parse().ok()).collect()
}

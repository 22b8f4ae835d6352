//! Proofs for many entries at once: the hashes they need, fetched in one query.

use db::Row;
use merkle::{Hash, HashRange, ProofError, ProofPlan, StoredHashes};
use types::Error;

use crate::model::LOG_DAMAGED;
use crate::store;

/// The parameters of [`store::HASH_RANGES`]: what several plans need, each range once.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    leaf_low: Vec<i64>,
    leaf_high: Vec<i64>,
    node_level: Vec<i16>,
    node_low: Vec<i64>,
    node_high: Vec<i64>,
}

impl Needs {
    pub(crate) fn of(plans: &[ProofPlan]) -> Self {
        let mut needs = Self::default();
        for HashRange { level, from, to } in merged(plans.iter().flat_map(ProofPlan::needs).collect()) {
            let (low, high) = (store::signed(from), store::signed(to));
            if level == 0 {
                needs.leaf_low.push(low);
                needs.leaf_high.push(high);
            } else {
                needs.node_level.push(i16::from(level));
                needs.node_low.push(low);
                needs.node_high.push(high);
            }
        }
        needs
    }

    pub(crate) fn params(&self) -> [&(dyn db::ToSql + Sync); 5] {
        [&self.leaf_low, &self.leaf_high, &self.node_level, &self.node_low, &self.node_high]
    }
}

/// What came back for [`store::HASH_RANGES`].
pub(crate) fn stored_hashes(rows: &[Row]) -> StoredHashes {
    rows.iter().filter_map(store::stored_hash).collect()
}

fn merged(mut ranges: Vec<HashRange>) -> Vec<HashRange> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let joins = next.level == kept.level && next.from <= kept.to;
        if joins {
            kept.to = kept.to.max(next.to);
        }
        joins
    });
    ranges
}

/// A proof as it goes over the wire.
pub(crate) fn texts(hashes: &[Hash]) -> Vec<String> {
    hashes.iter().map(Hash::to_string).collect()
}

/// A hash that should be stored is not, or a number is impossible: the tables were tampered with or half restored.
pub(crate) fn damaged(error: ProofError) -> Error {
    LOG_DAMAGED.error("a proof could not be made").caused_by(error)
}

//! Proofs that an entry is in a log, and that a log only ever grew (RFC 6962 section 2.1, RFC 9162 for checking).
//!
//! A proof is made in two pure steps, because the hashes live in a database: a [`ProofPlan`] first lists the stored
//! hashes it needs, so the caller fetches them in one query, and then computes the proof from what came back. A trait
//! that reads hashes on demand was rejected: it would cost a round trip for each of some twenty siblings and drag
//! async and I/O errors into the arithmetic.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::tree::{Hash, LEVEL_BITS, SIZE_MAX, StoredHash, fold_peaks, node_hash};

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProofError {
    #[error("entry {index} is not in a log of {size} entries")]
    BeyondLog { index: u64, size: u64 },
    #[error("a log of {old} entries cannot have grown into one of {new}")]
    Shrunk { old: u64, new: u64 },
    #[error("a log of {0} entries is larger than any we accept")]
    TooLarge(u64),
    #[error("stored hash {index} of level {level} is needed and missing")]
    Missing { level: u8, index: u64 },
    #[error("the proof does not lead to the root it should prove")]
    Rejected,
}

/// Stored hashes `from..to` of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashRange {
    pub level: u8,
    pub from: u64,
    pub to: u64,
}

/// What was fetched, in any order; more than needed does no harm.
#[derive(Debug, Clone, Default)]
pub struct StoredHashes(BTreeMap<(u8, u64), Hash>);

impl FromIterator<StoredHash> for StoredHashes {
    fn from_iter<I: IntoIterator<Item = StoredHash>>(hashes: I) -> Self {
        Self(hashes.into_iter().map(|stored| ((stored.level, stored.index), stored.hash)).collect())
    }
}

/// The subtrees whose roots make up a proof, in the proof's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofPlan {
    subtrees: Vec<Range<u64>>,
}

impl ProofPlan {
    /// That entry `index` is in the log of the first `size` entries.
    pub fn inclusion(index: u64, size: u64) -> Result<Self, ProofError> {
        check_size(size)?;
        if index >= size {
            return Err(ProofError::BeyondLog { index, size });
        }
        let mut subtrees = Vec::new();
        let (mut from, mut to) = (0, size);
        while to - from > 1 {
            let middle = split(from, to);
            if index < middle {
                subtrees.push(middle..to);
                to = middle;
            } else {
                subtrees.push(from..middle);
                from = middle;
            }
        }
        subtrees.reverse();
        Ok(Self { subtrees })
    }

    /// That the log of `old` entries is a prefix of the log of `new` entries.
    pub fn consistency(old: u64, new: u64) -> Result<Self, ProofError> {
        check_size(new)?;
        if old > new {
            return Err(ProofError::Shrunk { old, new });
        }
        let mut subtrees = Vec::new();
        let (mut from, mut to) = (0, new);
        // The empty log is a prefix of every log: nothing to prove.
        while old > 0 && old != to {
            let middle = split(from, to);
            if old <= middle {
                subtrees.push(middle..to);
                to = middle;
            } else {
                subtrees.push(from..middle);
                from = middle;
            }
        }
        // The verifier knows the old root; it needs this subtree only when the old root is not the subtree itself.
        if from > 0 {
            subtrees.push(from..to);
        }
        subtrees.reverse();
        Ok(Self { subtrees })
    }

    /// The peaks of the log of the first `size` entries, for [`crate::Frontier::from_peaks`].
    pub fn peaks(size: u64) -> Result<Self, ProofError> {
        check_size(size)?;
        Ok(Self { subtrees: complete_nodes(0..size).map(|node| node.leaves()).collect() })
    }

    /// The stored hashes to fetch: sorted, disjoint, at most 255 for each level and side of the tree.
    pub fn needs(&self) -> Vec<HashRange> {
        let mut ranges: Vec<HashRange> =
            self.subtrees.iter().cloned().flat_map(complete_nodes).map(|node| node.stored()).collect();
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

    /// The proof, from the hashes [`Self::needs`] listed.
    pub fn prove(&self, stored: &StoredHashes) -> Result<Vec<Hash>, ProofError> {
        self.subtrees.iter().map(|subtree| subtree_root(subtree.clone(), stored)).collect()
    }
}

/// A complete subtree: `2^height` leaves from `index * 2^height`.
#[derive(Debug, Clone, Copy)]
struct Node {
    height: u32,
    index: u64,
}

impl Node {
    fn leaves(self) -> Range<u64> {
        self.index << self.height..(self.index + 1) << self.height
    }

    /// The stored hashes it is computed from: those of the nearest stored level at or below it.
    fn stored(self) -> HashRange {
        let above = self.height % LEVEL_BITS;
        // Heights are below 62, so the level is a small number.
        let level = (self.height / LEVEL_BITS) as u8;
        HashRange { level, from: self.index << above, to: (self.index + 1) << above }
    }
}

/// The complete subtrees of a subtree that may be cut off on the right, the largest first.
fn complete_nodes(subtree: Range<u64>) -> impl Iterator<Item = Node> {
    let Range { mut start, end } = subtree;
    std::iter::from_fn(move || {
        let height = (end - start).checked_ilog2()?;
        let node = Node { height, index: start >> height };
        start += 1 << height;
        Some(node)
    })
}

fn subtree_root(subtree: Range<u64>, stored: &StoredHashes) -> Result<Hash, ProofError> {
    let peaks = complete_nodes(subtree).map(|node| node_root(node, stored)).collect::<Result<Vec<_>, _>>()?;
    Ok(fold_peaks(&peaks).unwrap_or_else(Hash::of_empty_log))
}

fn node_root(node: Node, stored: &StoredHashes) -> Result<Hash, ProofError> {
    let HashRange { level, from, to } = node.stored();
    let mut row = (from..to)
        .map(|index| stored.0.get(&(level, index)).copied().ok_or(ProofError::Missing { level, index }))
        .collect::<Result<Vec<_>, _>>()?;
    while row.len() > 1 {
        row = row.as_chunks::<2>().0.iter().map(|[left, right]| node_hash(left, right)).collect();
    }
    row.first().copied().ok_or(ProofError::Missing { level, index: from })
}

/// Where RFC 6962 divides a tree: after the largest power of two smaller than it.
fn split(from: u64, to: u64) -> u64 {
    from + (1 << (to - from - 1).ilog2())
}

fn check_size(size: u64) -> Result<(), ProofError> {
    if size > SIZE_MAX { Err(ProofError::TooLarge(size)) } else { Ok(()) }
}

/// Checks that the leaf is entry `index` of the log of `size` entries with this root.
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), ProofError> {
    check_size(size)?;
    if index >= size {
        return Err(ProofError::BeyondLog { index, size });
    }
    let mut climb = Climb { node: index, last: size - 1 };
    let mut hash = *leaf;
    for sibling in proof {
        hash = match climb.step()? {
            Side::Left => node_hash(sibling, &hash),
            Side::Right => node_hash(&hash, sibling),
        };
    }
    if climb.last == 0 && hash == *root { Ok(()) } else { Err(ProofError::Rejected) }
}

/// Checks that the log of `old` entries is a prefix of the log of `new` entries: nothing was changed, only appended.
pub fn verify_consistency(
    old: u64,
    old_root: &Hash,
    new: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), ProofError> {
    check_size(new)?;
    if old > new {
        return Err(ProofError::Shrunk { old, new });
    }
    if old == 0 || old == new {
        let same = if old == 0 { Hash::of_empty_log() } else { *new_root };
        return if proof.is_empty() && *old_root == same { Ok(()) } else { Err(ProofError::Rejected) };
    }
    let mut climb = Climb { node: old - 1, last: new - 1 };
    // Start at the largest complete subtree that ends where the old log ended.
    let complete = climb.node.trailing_ones();
    climb.node >>= complete;
    climb.last >>= complete;
    let (start, siblings) =
        if climb.node == 0 { (old_root, proof) } else { proof.split_first().ok_or(ProofError::Rejected)? };
    let (mut old_hash, mut new_hash) = (*start, *start);
    for sibling in siblings {
        match climb.step()? {
            Side::Left => {
                old_hash = node_hash(sibling, &old_hash);
                new_hash = node_hash(sibling, &new_hash);
            }
            Side::Right => new_hash = node_hash(&new_hash, sibling),
        }
    }
    let proven = climb.last == 0 && old_hash == *old_root && new_hash == *new_root;
    if proven { Ok(()) } else { Err(ProofError::Rejected) }
}

/// The way from a node to the root: its number in the current row, and the number of that row's last node.
struct Climb {
    node: u64,
    last: u64,
}

/// On which side of our node the sibling stands.
enum Side {
    Left,
    Right,
}

impl Climb {
    fn step(&mut self) -> Result<Side, ProofError> {
        if self.last == 0 {
            return Err(ProofError::Rejected);
        }
        let side = if self.node & 1 == 1 || self.node == self.last {
            // The last node of a row without a right neighbour rises unchanged until it is a right child. It is
            // never node 0 here: it is odd, or equal to a `last` that is not 0.
            let rises = self.node.trailing_zeros();
            self.node >>= rises;
            self.last >>= rises;
            Side::Left
        } else {
            Side::Right
        };
        self.node >>= 1;
        self.last >>= 1;
        Ok(side)
    }
}

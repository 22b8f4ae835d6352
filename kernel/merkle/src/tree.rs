//! The Merkle tree of RFC 6962, kept as its right edge only.
//!
//! Appending needs just the roots of the complete subtrees so far (the peaks): at most 62 hashes for any log, so the
//! sealer's whole state fits in one row and is replaced in one statement.
//!
//! What proofs need later is stored as tlog-tiles does it: leaf hashes (level 0), and above them one hash for every
//! 256 hashes of the level below. Storing all seven levels between would make proofs a little cheaper to compute and
//! the table twice as large; 128 recomputed hashes cost microseconds, the rows would cost disk for ever.
//!
//! Leaves and inner nodes are hashed with different first bytes. Without that, an inner node's two hashes could be
//! presented as an entry that was never logged.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub const HASH_BYTES: usize = 32;

/// The largest log we accept. Far beyond any real one, and small enough that no sum of two sizes overflows.
pub const SIZE_MAX: u64 = 1 << 62;

/// One stored hash covers `2^LEVEL_BITS` hashes of the level below.
pub(crate) const LEVEL_BITS: u32 = 8;

const LEAF_PREFIX: u8 = 0x00;
const NODE_PREFIX: u8 = 0x01;

/// A SHA-256 value: of a leaf, a subtree or a whole log. As text it is standard base64, as in checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; HASH_BYTES]);

impl Hash {
    pub const fn from_bytes(bytes: [u8; HASH_BYTES]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }

    /// The root of a log without entries: the hash of nothing.
    pub fn of_empty_log() -> Self {
        sha256(b"")
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("expected 32 bytes in standard base64")]
pub struct ParseHashError;

impl FromStr for Hash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = STANDARD.decode(text).map_err(|_| ParseHashError)?;
        bytes.try_into().map(Self).map_err(|_| ParseHashError)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The leaf hash of one entry's exact bytes.
pub fn leaf_hash(entry: &[u8]) -> Hash {
    LeafHasher::default().hash(entry)
}

/// Hashes many leaves. It copies each entry behind the prefix byte, because one call over contiguous bytes is much
/// cheaper than an incremental digest, which allocates a context for every entry.
#[derive(Default)]
pub(crate) struct LeafHasher {
    message: Vec<u8>,
}

impl LeafHasher {
    pub(crate) fn hash(&mut self, entry: &[u8]) -> Hash {
        self.message.clear();
        self.message.push(LEAF_PREFIX);
        self.message.extend_from_slice(entry);
        sha256(&self.message)
    }
}

pub(crate) fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut message = [NODE_PREFIX; 1 + 2 * HASH_BYTES];
    message[1..=HASH_BYTES].copy_from_slice(&left.0);
    message[1 + HASH_BYTES..].copy_from_slice(&right.0);
    sha256(&message)
}

fn sha256(message: &[u8]) -> Hash {
    let mut bytes = [0; HASH_BYTES];
    bytes.copy_from_slice(digest(&SHA256, message).as_ref());
    Hash(bytes)
}

/// A hash to keep for later proofs: number `index` of `level`, covering `256^level` leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredHash {
    pub level: u8,
    pub index: u64,
    pub hash: Hash,
}

/// The right edge of a log: all that is needed to append and to know the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    /// Roots of the complete subtrees, the largest first: one for each bit set in `size`.
    peaks: Vec<Hash>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FrontierError {
    #[error("a frontier of {size} leaves has {expected} peaks, not {found}")]
    PeakCount { size: u64, expected: u32, found: usize },
    #[error("a log of {0} leaves is larger than any we accept")]
    TooLarge(u64),
    #[error("the stored frontier is {0} bytes long, which no frontier is")]
    Length(usize),
}

impl Frontier {
    /// Restores a frontier from its peaks, for instance those a [`crate::ProofPlan::peaks`] recomputed.
    pub fn from_peaks(size: u64, peaks: Vec<Hash>) -> Result<Self, FrontierError> {
        if size > SIZE_MAX {
            return Err(FrontierError::TooLarge(size));
        }
        if usize::try_from(size.count_ones()) != Ok(peaks.len()) {
            return Err(FrontierError::PeakCount { size, expected: size.count_ones(), found: peaks.len() });
        }
        Ok(Self { size, peaks })
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends one leaf and returns the hashes it completed, of level 1 and above. The caller stores these and the
    /// leaf itself (level 0, at the index that was `size()` before).
    pub fn append(&mut self, leaf: Hash) -> Vec<StoredHash> {
        let mut completed = Vec::new();
        let mut hash = leaf;
        let mut height = 0;
        // A set bit of the old size is a complete subtree that the new leaf makes part of a larger one.
        while (self.size >> height) & 1 == 1
            && let Some(left) = self.peaks.pop()
        {
            hash = node_hash(&left, &hash);
            height += 1;
            if height % LEVEL_BITS == 0 {
                // At most 62 / 8 levels: the conversion cannot lose anything.
                let level = (height / LEVEL_BITS) as u8;
                completed.push(StoredHash { level, index: self.size >> height, hash });
            }
        }
        self.peaks.push(hash);
        self.size += 1;
        completed
    }

    pub fn root(&self) -> Hash {
        fold_peaks(&self.peaks).unwrap_or_else(Hash::of_empty_log)
    }

    /// The form the sealer stores: the size, big-endian, then the peaks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.size.to_be_bytes().to_vec();
        for peak in &self.peaks {
            bytes.extend_from_slice(&peak.0);
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FrontierError> {
        let Some((size, peaks)) = bytes.split_first_chunk::<8>() else {
            return Err(FrontierError::Length(bytes.len()));
        };
        let (peaks, []) = peaks.as_chunks::<HASH_BYTES>() else {
            return Err(FrontierError::Length(bytes.len()));
        };
        Self::from_peaks(u64::from_be_bytes(*size), peaks.iter().copied().map(Hash).collect())
    }
}

/// The root over subtrees of falling size: the smallest two are joined first.
pub(crate) fn fold_peaks(peaks: &[Hash]) -> Option<Hash> {
    let (last, larger) = peaks.split_last()?;
    Some(larger.iter().rev().fold(*last, |right, left| node_hash(left, &right)))
}

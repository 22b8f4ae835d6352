//! Changing the log's key without breaking what was kept elsewhere.
//!
//! A hand-over is a checkpoint with one further line that names both keys, signed with both:
//!
//! ```text
//! log.example
//! 4711
//! <root>
//! handover log.example+<id>+<old key> log.example+<id>+<new key>
//!
//! — log.example <signature with the old key>
//! — log.example <signature with the new key>
//! ```
//!
//! The line is the point: anybody can add a signature of their own to a note, so two signatures under a plain checkpoint
//! say nothing. With it the old key says who comes next, the new key who came before, and both say at which size. From
//! there on the old key's word no longer counts: whoever steals it afterwards cannot continue the log, only start a
//! second succession, and two successors of one key are reported, never chosen between.

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::note::{SignedNote, SignerKey, VerifierKey};

const LINE: &str = "handover ";

/// A hand-over, signed by both keys it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    pub checkpoint: Checkpoint,
    pub old: VerifierKey,
    pub new: VerifierKey,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HandoverError {
    #[error("it is not a checkpoint: {0}")]
    Checkpoint(#[from] CheckpointError),
    #[error("it does not name two different keys of this log")]
    Malformed,
    #[error("it is not signed with the old key {0}")]
    NotByOld(VerifierKey),
    #[error("it is not signed with the new key {0}")]
    NotByNew(VerifierKey),
}

impl Handover {
    /// Signs a checkpoint as the one at which `new` takes over from `old`.
    pub fn sign(
        mut checkpoint: Checkpoint,
        old: &SignerKey,
        new: &SignerKey,
    ) -> Result<SignedNote, CheckpointError> {
        checkpoint.extensions.push(format!("{LINE}{} {}", old.verifier(), new.verifier()));
        let mut note = checkpoint.sign(old)?;
        for signature in checkpoint.sign(new)?.signatures() {
            note.add(signature.clone())?;
        }
        Ok(note)
    }

    /// Reads a note as a hand-over; `None` if it does not claim to be one.
    pub fn open(note: &SignedNote) -> Result<Option<Self>, HandoverError> {
        let checkpoint = Checkpoint::parse(note.text())?;
        let mut lines = checkpoint.extensions.iter().filter_map(|line| line.strip_prefix(LINE));
        let Some(line) = lines.next() else { return Ok(None) };
        let key = |text: &str| text.parse::<VerifierKey>().map_err(|_| HandoverError::Malformed);
        let (old, new) = line.split_once(' ').ok_or(HandoverError::Malformed)?;
        let (old, new) = (key(old)?, key(new)?);
        let ours = old.name() == checkpoint.origin && new.name() == checkpoint.origin;
        if !ours || old == new || lines.next().is_some() {
            return Err(HandoverError::Malformed);
        }
        if !is_signed_by(note, &old) {
            return Err(HandoverError::NotByOld(old));
        }
        if !is_signed_by(note, &new) {
            return Err(HandoverError::NotByNew(new));
        }
        Ok(Some(Self { checkpoint, old, new }))
    }
}

fn is_signed_by(note: &SignedNote, key: &VerifierKey) -> bool {
    note.verify(std::slice::from_ref(key)).is_ok()
}

/// The keys whose word counts, each for the sizes at which it was the log's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyChain {
    links: Vec<Link>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Link {
    key: VerifierKey,
    from: Option<u64>,
    to: Option<u64>,
}

impl Link {
    fn covers(&self, size: u64) -> bool {
        self.from.is_none_or(|from| from <= size) && self.to.is_none_or(|to| size <= to)
    }
}

/// Why a hand-over was not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainFault {
    /// One key handed over twice, or two keys to the same one. Neither hand-over counts.
    Fork { key: VerifierKey, sizes: [u64; 2] },
    /// No key that counts is part of it.
    Unrelated { size: u64 },
}

impl KeyChain {
    /// Keys that count for every size until a hand-over says otherwise.
    pub fn new(keys: Vec<VerifierKey>) -> Self {
        Self { links: keys.into_iter().map(|key| Link { key, from: None, to: None }).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub fn clear(&mut self) {
        self.links.clear();
    }

    /// Follows hand-overs from the keys that count, forwards and backwards, in whatever order they come.
    pub fn follow(&mut self, handovers: &[Handover]) -> Vec<ChainFault> {
        let mut left: Vec<&Handover> = Vec::new();
        for handover in handovers {
            if !left.contains(&handover) {
                left.push(handover);
            }
        }
        let forked = forks(&left);
        left.retain(|handover| !forked.iter().any(|(one, other)| [*one, *other].contains(handover)));
        while let Some(position) = left.iter().position(|handover| self.connects(handover)) {
            self.connect(left.remove(position));
        }
        let mut faults = Vec::new();
        for (one, other) in forked {
            self.cut(one);
            self.cut(other);
            let key = if one.old == other.old { &one.old } else { &one.new };
            let sizes = [one.checkpoint.size, other.checkpoint.size];
            faults.push(ChainFault::Fork { key: key.clone(), sizes });
        }
        faults.extend(left.iter().map(|handover| ChainFault::Unrelated { size: handover.checkpoint.size }));
        faults
    }

    /// A key that was handed over twice counts up to the earlier time and no further.
    fn cut(&mut self, handover: &Handover) {
        let size = handover.checkpoint.size;
        for link in self.links.iter_mut().filter(|link| link.key == handover.old) {
            link.to = Some(link.to.map_or(size, |to| to.min(size)));
        }
    }

    fn connects(&self, handover: &Handover) -> bool {
        let size = handover.checkpoint.size;
        let fits = |key: &VerifierKey| self.links.iter().any(|link| link.key == *key && link.covers(size));
        let known = |key: &VerifierKey| self.links.iter().any(|link| link.key == *key);
        let (old, new) = (&handover.old, &handover.new);
        // A key that is known and was not the log's at that size cannot have handed anything over.
        (fits(old) || fits(new)) && (fits(old) || !known(old)) && (fits(new) || !known(new))
    }

    fn connect(&mut self, handover: &Handover) {
        let size = Some(handover.checkpoint.size);
        for key in [&handover.old, &handover.new] {
            if !self.links.iter().any(|link| link.key == *key) {
                self.links.push(Link { key: key.clone(), from: None, to: None });
            }
        }
        for link in &mut self.links {
            if link.key == handover.old {
                link.to = size;
            } else if link.key == handover.new {
                link.from = size;
            }
        }
    }

    /// Whether this hand-over is part of the chain.
    pub fn followed(&self, handover: &Handover) -> bool {
        let size = Some(handover.checkpoint.size);
        let ends = self.links.iter().any(|link| link.key == handover.old && link.to == size);
        ends && self.links.iter().any(|link| link.key == handover.new && link.from == size)
    }

    /// Reads a checkpoint and checks that the key that was the log's at its size signed it.
    pub fn open(&self, note: &SignedNote) -> Result<Checkpoint, CheckpointError> {
        let size = Checkpoint::parse(note.text())?.size;
        let counting: Vec<VerifierKey> =
            self.links.iter().filter(|link| link.covers(size)).map(|link| link.key.clone()).collect();
        Checkpoint::open(note, &counting)
    }

    /// The size at which the key that signed this checkpoint had handed over, if that is what is wrong with it.
    pub fn replaced_at(&self, note: &SignedNote) -> Option<u64> {
        let size = Checkpoint::parse(note.text()).ok()?.size;
        let signer = self.links.iter().find(|link| is_signed_by(note, &link.key))?;
        signer.to.filter(|to| *to < size)
    }
}

/// Pairs of hand-overs that cannot both be right.
fn forks<'h>(handovers: &[&'h Handover]) -> Vec<(&'h Handover, &'h Handover)> {
    let mut forked = Vec::new();
    for (position, one) in handovers.iter().enumerate() {
        let others = handovers[position + 1..].iter();
        forked.extend(
            others.filter(|other| one.old == other.old || one.new == other.new).map(|other| (*one, *other)),
        );
    }
    forked
}

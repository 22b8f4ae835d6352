//! The result of a verification, for a program and for a person.
//!
//! The text says three things in this order: whether something is wrong and where, how far the answer can be trusted,
//! and what was compared. A result without an outside anchor says so before anything else, because "no problem found"
//! would otherwise be read as proof.

use std::fmt;
use std::path::PathBuf;

use super::finding::Finding;
use crate::tree::Hash;

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Lines of `entries.jsonl` that were hashed.
    pub entries: u64,
    /// The root over these lines.
    pub root: Hash,
    /// How many entries from the front are proven to be as sealed.
    pub intact: u64,
    /// Do these agree with the checkpoint kept elsewhere? Not if the export does not reach it: then nothing is known.
    pub agrees: bool,
    pub anchor: Anchor,
    /// Files named as outside ones that lie within the export and were therefore not used as such.
    pub ignored: Vec<PathBuf>,
    /// The first bad entry, if any could be named; else what is wrong with the export.
    pub problem: Option<Finding>,
    /// What else is wrong.
    pub also: Vec<Finding>,
}

/// What the verifier had from outside the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    None,
    Key,
    Checkpoint { size: u64 },
    KeyAndCheckpoint { size: u64 },
}

impl Anchor {
    pub(super) fn of(key: bool, checkpoint_size: Option<u64>) -> Self {
        match (key, checkpoint_size) {
            (false, None) => Self::None,
            (true, None) => Self::Key,
            (false, Some(size)) => Self::Checkpoint { size },
            (true, Some(size)) => Self::KeyAndCheckpoint { size },
        }
    }
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.problem.is_none()
    }

    fn two_histories(&self) -> bool {
        self.problem.iter().chain(&self.also).any(|finding| matches!(finding, Finding::TwoHistories { .. }))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.anchor == Anchor::None {
            writeln!(f, "UNANCHORED: the export was only compared with itself.")?;
        }
        for path in &self.ignored {
            writeln!(f, "Not used as an anchor, because it lies within the export: {:?}", path)?;
        }
        match &self.problem {
            None if self.anchor == Anchor::None => {
                writeln!(f, "No contradiction found within the export, which has {} entries.", self.entries)?;
            }
            None => writeln!(f, "No problem found: all {} entries are as sealed.", self.entries)?,
            Some(problem) => writeln!(f, "PROBLEM: {problem}.")?,
        }
        for finding in &self.also {
            writeln!(f, "Also: {finding}.")?;
        }
        self.fmt_intact(f)?;
        writeln!(f, "Checked: {} lines of entries.jsonl, root {}.", self.entries, self.root)?;
        self.fmt_meaning(f)
    }
}

impl Report {
    fn fmt_intact(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(problem) = &self.problem else { return Ok(()) };
        match self.intact {
            0 => writeln!(f, "Intact: no entry is proven to be as sealed.")?,
            1 => writeln!(f, "Intact: entry 0 is as sealed.")?,
            intact => writeln!(f, "Intact: entries 0 to {} are as sealed.", intact - 1)?,
        }
        match problem.index() {
            Some(index) if index > self.intact => writeln!(
                f,
                "Not certain: the place was found by the entries' numbers, because no genuine leaf hashes were left. \
                 Something between {} and {} may be wrong too.",
                self.intact,
                index - 1
            ),
            _ => Ok(()),
        }
    }

    fn fmt_meaning(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (proves, leaves_open) = match self.anchor {
            Anchor::None => (
                if self.problem.is_none() { "the files fit together." } else { "nothing: the files contradict each other." }
                    .to_owned(),
                "anything else. Whoever made or changed this export could also have made its key and checkpoint. Give \
                 a key or, better, a checkpoint that was kept elsewhere."
                    .to_owned(),
            ),
            Anchor::Key => (
                "what is called intact was signed by the holder of the key given.".to_owned(),
                "that nothing is missing at the end: an older export with its older checkpoint looks the same. Give a \
                 checkpoint that was kept elsewhere."
                    .to_owned(),
            ),
            Anchor::Checkpoint { .. } | Anchor::KeyAndCheckpoint { .. } if self.two_histories() => (
                "the log's own key signed two histories.".to_owned(),
                "which of them is true. After a restore from a backup there are two: the one that went on, and the one \
                 that was lost."
                    .to_owned(),
            ),
            Anchor::Checkpoint { size } | Anchor::KeyAndCheckpoint { size } if !self.agrees => (
                "what is called intact was signed by the log that the checkpoint kept elsewhere is of.".to_owned(),
                format!(
                    "that anything agrees with that checkpoint: it covers {size} entries, and what is here does not \
                     give its root."
                ),
            ),
            Anchor::Checkpoint { size } | Anchor::KeyAndCheckpoint { size } => (
                format!(
                    "what is called intact agrees with the checkpoint kept elsewhere over {size} entries and was \
                     signed by the same log."
                ),
                format!("that nothing is missing behind the first {size} entries."),
            ),
        };
        writeln!(f, "Proves: {proves}")?;
        write!(f, "Does not prove: {leaves_open}")
    }
}

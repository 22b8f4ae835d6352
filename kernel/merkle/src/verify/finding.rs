//! What can be wrong with an export, and the sentence that says so.
//!
//! Findings about entries are the point; damage to the files around them matters because it limits what can be known
//! about the entries, and because an untouched export has none.

use std::fmt;

use super::line::EntryId;

/// One thing that is wrong. Entries are counted from 0, as in the entries themselves; the texts count lines from 1, as
/// editors do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The line is not what was sealed, and the sealed entry is nowhere else.
    Altered { index: u64, id: Option<EntryId> },
    /// The content is as sealed; the line now ends in a carriage return.
    LineEnding { index: u64 },
    /// The entry is gone; entry `instead` stands in its place.
    Removed { index: u64, instead: u64 },
    /// The entry stands on line `line` (counted from 0), and entry `instead` in its place.
    Reordered { index: u64, line: u64, instead: u64 },
    /// A line that was not sealed there; sealed entries follow it.
    Inserted { index: u64, id: Option<EntryId>, copy_of: Option<u64> },
    /// The entries from `index` to `last` are missing at the end.
    NewestRemoved { index: u64, last: u64 },
    /// The export is whole up to its own checkpoint, and the one kept elsewhere covers entries `index` to `last` as well.
    EndsBefore { index: u64, last: u64 },
    /// A line behind everything the checkpoint covers.
    Appended { index: u64, id: Option<EntryId> },
    /// A line longer than any entry can be; nothing behind it was read.
    Oversized { index: u64 },
    /// The line is as sealed, and yet does not carry its own number.
    Misnumbered { index: u64, found: Option<u64> },
    /// Something in `from..to` is wrong, and nothing left in the export tells what.
    Within { from: u64, to: u64 },
    /// The log's key signed a checkpoint of `size` entries and another, incompatible history.
    TwoHistories { size: u64 },
    /// Not an entry, but one of the files around them.
    Export(Damage),
}

/// What is wrong with the export's keys, checkpoints and leaf hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    CheckpointMissing,
    CheckpointGarbage {
        reason: String,
    },
    CheckpointSignature {
        reason: String,
    },
    /// The checkpoint is genuine and covers fewer entries than are proven to exist.
    CheckpointReplaced {
        size: u64,
        entries: u64,
    },
    /// The checkpoint is of a log with another name than the key's or the outside checkpoint's.
    OtherLog,
    KeyMissing,
    KeyGarbage {
        reason: String,
    },
    /// The shipped key did not sign the checkpoint that was kept elsewhere.
    KeyReplaced,
    /// A line (counted from 1) of the file of hand-overs is not one that both its keys signed.
    Handover {
        line: u64,
        reason: String,
    },
    /// A key handed over twice, at these sizes: someone else has it.
    TwoSuccessors {
        key: String,
        sizes: [u64; 2],
    },
    /// A hand-over between keys that nothing leads to.
    StrangeHandover {
        size: u64,
    },
    /// The checkpoint is signed with a key that had handed over at this size, before the checkpoint was made.
    ReplacedKey {
        size: u64,
    },
    /// The file of leaf hashes differs from proven entries, from this index on.
    Leaves {
        index: u64,
    },
    /// A line (counted from 1) of the file of earlier checkpoints is not a checkpoint of this log.
    EarlierCheckpoint {
        line: u64,
    },
}

impl Finding {
    /// The entry it names, if it names one.
    pub fn index(&self) -> Option<u64> {
        match self {
            Self::Altered { index, .. }
            | Self::LineEnding { index }
            | Self::Removed { index, .. }
            | Self::Reordered { index, .. }
            | Self::Inserted { index, .. }
            | Self::NewestRemoved { index, .. }
            | Self::EndsBefore { index, .. }
            | Self::Appended { index, .. }
            | Self::Oversized { index }
            | Self::Misnumbered { index, .. } => Some(*index),
            Self::Within { .. } | Self::TwoHistories { .. } | Self::Export(_) => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.index().map_or(0, |index| index + 1);
        match self {
            Self::Altered { index, id } => {
                write!(f, "entry {index} was altered: line {line} is not what was sealed{}", Called(id))
            }
            Self::LineEnding { index } => write!(
                f,
                "entry {index} was altered, but only in its line ending: line {line} ends in a carriage return, as a \
                 text editor or a transfer in text mode leaves it. Ask for the export again"
            ),
            Self::Removed { index, instead } => {
                write!(f, "entry {index} was removed: entry {instead} stands in its place, on line {line}")
            }
            Self::Reordered { index, line: now, instead } => write!(
                f,
                "entry {index} was reordered: it stands on line {}, and entry {instead} in its place on line {line}",
                now + 1
            ),
            Self::Inserted { index, id, copy_of: None } => {
                write!(f, "an entry was inserted at {index}: line {line} was not sealed{}", Called(id))
            }
            Self::Inserted { index, copy_of: Some(original), .. } => {
                write!(f, "an entry was inserted at {index}: line {line} repeats entry {original}")
            }
            Self::NewestRemoved { index, last } if index == last => {
                write!(f, "entry {index}, the newest, was removed")
            }
            Self::NewestRemoved { index, last } => write!(
                f,
                "the newest entries were removed: {index} to {last} are missing, entry {index} is the first"
            ),
            Self::EndsBefore { index, last } => write!(
                f,
                "the export ends before the checkpoint kept elsewhere: entries {index} to {last} are not in it. It is older than \
                 that checkpoint, or its newest entries were taken away together with their checkpoints, or the log was \
                 restored from a backup and goes on without them; the files cannot tell which. Ask for an export made \
                 now: if that one ends before the checkpoint too, they are gone"
            ),
            Self::Appended { index, id } => write!(
                f,
                "an entry was inserted at {index}: line {line} lies behind everything the checkpoint covers{}",
                Called(id)
            ),
            Self::Oversized { index } => write!(
                f,
                "entry {index} is not one: line {line} is longer than any entry, and nothing behind it was read"
            ),
            Self::Misnumbered { index, found } => {
                let number =
                    found.map_or("without a number".to_owned(), |found| format!("as number {found}"));
                write!(f, "entry {index} was sealed {number}: the log itself was at fault")
            }
            Self::Within { from, to } => write!(
                f,
                "an entry between {from} and {} was altered, removed, inserted or reordered; the export holds nothing \
                 genuine to tell which",
                to.saturating_sub(1)
            ),
            Self::TwoHistories { size } => write!(
                f,
                "the log's own key signed two histories that differ within the first {size} entries: the log was \
                 rewritten by someone who holds its key"
            ),
            Self::Export(damage) => damage.fmt(f),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CheckpointMissing => {
                f.write_str("the file checkpoint is missing: nothing in the export vouches for the entries")
            }
            Self::CheckpointGarbage { reason } => {
                write!(f, "the file checkpoint is not a signed checkpoint: {reason}")
            }
            Self::CheckpointSignature { reason } => {
                write!(
                    f,
                    "the file checkpoint is not signed by the log's key, nor by one that hand-overs lead to: {}",
                    reason.escape_debug()
                )
            }
            Self::CheckpointReplaced { size, entries } => write!(
                f,
                "the file checkpoint was replaced by an older one: it covers {size} entries, {entries} are proven"
            ),
            Self::OtherLog => {
                f.write_str("the file checkpoint is of another log than the key or checkpoint it was compared with")
            }
            Self::KeyMissing => f.write_str(
                "there is no key to check the checkpoint's signature with: give the log's key, kept elsewhere",
            ),
            Self::KeyGarbage { reason } => write!(f, "the file key is not a verifier key: {reason}"),
            Self::KeyReplaced => f.write_str(
                "the file key is not the key that signed the checkpoint kept elsewhere: it was replaced",
            ),
            Self::Handover { line, reason } => {
                write!(f, "line {line} of the file handovers changes the log's key without right: {reason}")
            }
            Self::TwoSuccessors { key, sizes: [one, other] } => write!(
                f,
                "the key {key} takes part in two hand-overs, at {one} and at {other} entries: one of them is forged, by \
                 someone who has the key, and neither counts"
            ),
            Self::StrangeHandover { size } => write!(
                f,
                "the hand-over at {size} entries is between keys that nothing trusted leads to: hand-overs before it were \
                 taken away, or it was made up"
            ),
            Self::ReplacedKey { size } => write!(
                f,
                "the file checkpoint is signed with a key that was replaced at {size} entries: its word no longer counts \
                 behind them, whoever has it now"
            ),
            Self::Leaves { index } => write!(
                f,
                "the file leaves was changed, from leaf {index} on; this says nothing against the entries"
            ),
            Self::EarlierCheckpoint { line } => {
                write!(f, "line {line} of the file checkpoints is not a checkpoint of this log")
            }
        }
    }
}

/// What a suspicious line calls itself.
struct Called<'a>(&'a Option<EntryId>);

impl fmt::Display for Called<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(id) => write!(f, " (it calls itself {id})"),
            None => f.write_str(" (it has no readable id)"),
        }
    }
}

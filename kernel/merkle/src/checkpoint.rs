//! Checkpoints (c2sp.org/tlog-checkpoint): what a log's key vouches for at one moment, namely its size and its root.
//!
//! A checkpoint is the thing to keep elsewhere. It is three lines long, and whoever has it can later tell whether the
//! first `size` entries are still the ones it was made of.

use crate::note::{NoteError, SignedNote, SignerKey, VerifierKey};
use crate::tree::{Hash, SIZE_MAX};

pub const EXTENSION_LINES_MAX: usize = 16;
pub const CHECKPOINT_TEXT_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log this is. By our rule also the name of the key that signs it, so one log's checkpoint can never stand
    /// in for another's.
    pub origin: String,
    pub size: u64,
    pub root: Hash,
    /// Further lines, signed but without meaning here.
    pub extensions: Vec<String>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CheckpointError {
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error("a checkpoint is an origin line, a size in decimal, and a root of 32 bytes in base64")]
    Malformed,
    #[error("a log of {0} entries is larger than any we accept")]
    TooLarge(u64),
    #[error("the checkpoint is of the log {origin:?}, the key is of the log {key:?}")]
    OtherLog { origin: String, key: String },
}

impl Checkpoint {
    pub fn new(origin: &str, size: u64, root: Hash) -> Self {
        Self { origin: origin.to_owned(), size, root, extensions: Vec::new() }
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}\n{}\n", self.origin, self.size, self.root);
        for line in &self.extensions {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        if text.len() > CHECKPOINT_TEXT_BYTES_MAX {
            return Err(CheckpointError::Malformed);
        }
        let body = text.strip_suffix('\n').ok_or(CheckpointError::Malformed)?;
        let mut lines = body.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(CheckpointError::Malformed);
        };
        let extensions: Vec<String> = lines.map(str::to_owned).collect();
        let empty_line = origin.is_empty() || extensions.iter().any(String::is_empty);
        if empty_line || extensions.len() > EXTENSION_LINES_MAX {
            return Err(CheckpointError::Malformed);
        }
        let number: u64 = size.parse().map_err(|_| CheckpointError::Malformed)?;
        // One spelling only: no plus sign, no leading zero.
        if number.to_string() != size {
            return Err(CheckpointError::Malformed);
        }
        if number > SIZE_MAX {
            return Err(CheckpointError::TooLarge(number));
        }
        let root = root.parse().map_err(|_| CheckpointError::Malformed)?;
        Ok(Self { origin: origin.to_owned(), size: number, root, extensions })
    }

    /// Signs with the log's own key. What we sign we can read back: a stray newline in the origin is refused here.
    pub fn sign(&self, key: &SignerKey) -> Result<SignedNote, CheckpointError> {
        let text = self.to_text();
        if Self::parse(&text)? != *self {
            return Err(CheckpointError::Malformed);
        }
        check_origin(&self.origin, key.verifier())?;
        Ok(SignedNote::sign(&text, key)?)
    }

    /// Reads a checkpoint and checks that one of the log's keys signed it.
    pub fn open(note: &SignedNote, keys: &[VerifierKey]) -> Result<Self, CheckpointError> {
        let signers = note.verify(keys)?;
        let checkpoint = Self::parse(note.text())?;
        for signer in signers {
            check_origin(&checkpoint.origin, signer)?;
        }
        Ok(checkpoint)
    }
}

fn check_origin(origin: &str, key: &VerifierKey) -> Result<(), CheckpointError> {
    if origin == key.name() {
        return Ok(());
    }
    Err(CheckpointError::OtherLog { origin: origin.to_owned(), key: key.name().to_owned() })
}

//! Whose word counts: the keys and the checkpoints, from outside and from the export.
//!
//! In order of weight: a checkpoint kept elsewhere counts because it was kept; everything else counts only by its
//! signature under the keys. Those are the keys kept elsewhere, or else the ones shipped in the export; and these only
//! if they also signed the checkpoint that was kept, for otherwise the export came with somebody else's key. From these
//! keys the hand-overs lead to the others the log had; a hand-over counts only if both its keys signed it.
//!
//! The signatures of earlier checkpoints are checked only when one is needed as evidence. An export may carry a hundred
//! thousand of them, and an earlier checkpoint that agrees with entries already proven proves nothing more.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use super::finding::{Damage, Finding};
use super::report::Anchor;
use super::{Files, Outside, VerifyError, reading};
use crate::chain::{ChainFault, Handover, KeyChain};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::export::{CHECKPOINTS_MAX, HANDOVERS_MAX};
use crate::note::{NOTE_BYTES_MAX, NoteError, SignedNote, VerifierKey};
use crate::tree::Hash;

const KEYS_MAX: usize = 16;
const CHECKPOINTS_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

pub(super) struct Trust {
    pub(super) anchor: Anchor,
    /// Every checkpoint that may count, the smallest first.
    pub(super) known: Vec<Known>,
    /// The size the export's own checkpoint vouches for, if that checkpoint counts.
    pub(super) export_size: Option<u64>,
    /// What is wrong with the keys and checkpoints themselves.
    pub(super) findings: Vec<Finding>,
    keys: KeyChain,
}

pub(super) struct Known {
    pub(super) size: u64,
    pub(super) root: Hash,
    pub(super) source: Source,
}

pub(super) enum Source {
    Outside,
    Export,
    /// A checkpoint at which the log changed its key, as both keys signed it.
    Handover,
    /// From the file of earlier checkpoints, on this line; the signature is not yet checked.
    Earlier {
        line: u64,
        note: SignedNote,
    },
}

impl Trust {
    pub(super) fn load(files: &Files, outside: &Outside) -> Result<Self, VerifyError> {
        let mut trust = Self {
            anchor: Anchor::None,
            known: Vec::new(),
            export_size: None,
            findings: Vec::new(),
            keys: KeyChain::default(),
        };
        match &outside.key {
            Some(path) => trust.keys = KeyChain::new(outside_keys(path)?),
            None => trust.load_shipped_keys(&files.key)?,
        }
        let kept = outside.checkpoint.as_deref().map(read_kept).transpose()?;
        trust.load_handovers(&files.handovers, kept.as_ref().map(|(note, _)| note))?;
        let mut origin = None;
        if let (Some(path), Some((note, checkpoint))) = (&outside.checkpoint, kept) {
            trust.check_kept(path, &note, outside.key.is_some())?;
            origin = Some(checkpoint.origin);
            let Checkpoint { size, root, .. } = checkpoint;
            trust.known.push(Known { size, root, source: Source::Outside });
            trust.anchor = Anchor::of(outside.key.is_some(), Some(size));
        } else {
            trust.anchor = Anchor::of(outside.key.is_some(), None);
        }
        let export_origin = trust.load_export_checkpoint(&files.checkpoint, origin.as_deref())?;
        // Without a key nothing in the export counts, so its earlier checkpoints need no reading.
        if !trust.keys.is_empty()
            && let Some(origin) = origin.or(export_origin)
        {
            trust.load_earlier_checkpoints(&files.checkpoints, &origin)?;
        }
        trust.known.sort_by_key(|known| known.size);
        Ok(trust)
    }

    /// Whether the checkpoint really is the log's.
    pub(super) fn is_genuine(&self, known: &Known) -> bool {
        match &known.source {
            Source::Outside | Source::Export | Source::Handover => true,
            Source::Earlier { note, .. } => self.keys.open(note).is_ok(),
        }
    }

    fn load_shipped_keys(&mut self, path: &Path) -> Result<(), VerifyError> {
        match read_if_there(path, NOTE_BYTES_MAX).map_err(reading(path))? {
            None => self.findings.push(Finding::Export(Damage::KeyMissing)),
            Some(bytes) => match parse_keys(&bytes) {
                Ok(keys) => self.keys = KeyChain::new(keys),
                Err(error) => {
                    self.findings.push(Finding::Export(Damage::KeyGarbage { reason: error.to_string() }))
                }
            },
        }
        Ok(())
    }

    /// Follows the hand-overs of the export, and the checkpoint kept elsewhere if that is one: then an export that leads
    /// to another successor contradicts it.
    fn load_handovers(&mut self, path: &Path, kept: Option<&SignedNote>) -> Result<(), VerifyError> {
        let mut handovers: Vec<Handover> =
            kept.and_then(|note| Handover::open(note).ok()?).into_iter().collect();
        for (line, note) in read_notes(path)? {
            let opened = note.filter(|_| line <= HANDOVERS_MAX as u64).map(|note| Handover::open(&note));
            let reason = match opened {
                Some(Ok(Some(handover))) => {
                    handovers.push(handover);
                    continue;
                }
                Some(Err(error)) => error.to_string(),
                Some(Ok(None)) | None => "it is not a hand-over from one key to the next".to_owned(),
            };
            self.findings.push(Finding::Export(Damage::Handover { line, reason }));
            break;
        }
        for fault in self.keys.follow(&handovers) {
            self.findings.push(Finding::Export(match fault {
                ChainFault::Fork { key, sizes } => Damage::TwoSuccessors { key: key.to_string(), sizes },
                ChainFault::Unrelated { size } => Damage::StrangeHandover { size },
            }));
        }
        for Handover { checkpoint, .. } in handovers.iter().filter(|handover| self.keys.followed(handover)) {
            let (size, root) = (checkpoint.size, checkpoint.root);
            self.known.push(Known { size, root, source: Source::Handover });
        }
        Ok(())
    }

    /// The checkpoint kept elsewhere counts because it was kept, but it must be of the log the keys are of.
    fn check_kept(&mut self, path: &Path, note: &SignedNote, keys_are_ours: bool) -> Result<(), VerifyError> {
        let Err(error) = self.keys.open(note) else { return Ok(()) };
        if !keys_are_ours {
            if !self.keys.is_empty() {
                self.findings.push(Finding::Export(Damage::KeyReplaced));
                self.keys.clear();
                self.known.clear();
            }
            return Ok(());
        }
        Err(match error {
            CheckpointError::Note(NoteError::UnknownSigner) => VerifyError::Chain { path: path.to_owned() },
            source => VerifyError::Checkpoint { path: path.to_owned(), source },
        })
    }

    /// Reads the export's own checkpoint and returns its origin if it counts.
    fn load_export_checkpoint(
        &mut self,
        path: &Path,
        origin: Option<&str>,
    ) -> Result<Option<String>, VerifyError> {
        let Some(bytes) = read_if_there(path, NOTE_BYTES_MAX).map_err(reading(path))? else {
            self.findings.push(Finding::Export(Damage::CheckpointMissing));
            return Ok(None);
        };
        let mut replaced_at = None;
        let opened = SignedNote::parse(&bytes).map_err(CheckpointError::from).and_then(|note| {
            // Read first: garbage is garbage whoever signed it.
            Checkpoint::parse(note.text())?;
            if self.keys.is_empty() {
                return Ok(None);
            }
            replaced_at = self.keys.replaced_at(&note);
            self.keys.open(&note).map(Some)
        });
        match opened {
            Ok(Some(checkpoint)) if origin.is_none_or(|origin| origin == checkpoint.origin) => {
                self.export_size = Some(checkpoint.size);
                let Checkpoint { size, root, origin, .. } = checkpoint;
                self.known.push(Known { size, root, source: Source::Export });
                return Ok(Some(origin));
            }
            Ok(Some(_)) | Err(CheckpointError::OtherLog { .. }) => {
                self.findings.push(Finding::Export(Damage::OtherLog))
            }
            // Why no key counts is already among the findings.
            Ok(None) => {}
            Err(CheckpointError::Note(NoteError::UnknownSigner)) if replaced_at.is_some() => {
                let size = replaced_at.unwrap_or_default();
                self.findings.push(Finding::Export(Damage::ReplacedKey { size }))
            }
            Err(CheckpointError::Note(error @ (NoteError::UnknownSigner | NoteError::WrongSignature(_)))) => {
                self.findings.push(Finding::Export(Damage::CheckpointSignature { reason: error.to_string() }))
            }
            Err(error) => {
                self.findings.push(Finding::Export(Damage::CheckpointGarbage { reason: error.to_string() }))
            }
        }
        Ok(None)
    }

    fn load_earlier_checkpoints(&mut self, path: &Path, origin: &str) -> Result<(), VerifyError> {
        for (line, note) in read_notes(path)? {
            let parsed = note.and_then(|note| Some((Checkpoint::parse(note.text()).ok()?, note)));
            let earlier = parsed.filter(|(checkpoint, _)| checkpoint.origin == origin);
            let Some((checkpoint, note)) = earlier.filter(|_| line <= CHECKPOINTS_MAX as u64) else {
                self.findings.push(Finding::Export(Damage::EarlierCheckpoint { line }));
                break;
            };
            let source = Source::Earlier { line, note };
            self.known.push(Known { size: checkpoint.size, root: checkpoint.root, source });
        }
        Ok(())
    }
}

/// The notes of a file that has one a line, counted from 1, up to the first line that is none.
fn read_notes(path: &Path) -> Result<Vec<(u64, Option<SignedNote>)>, VerifyError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(reading(path)(error)),
    };
    let mut reader = BufReader::new(file.take(CHECKPOINTS_FILE_BYTES_MAX));
    let (mut notes, mut text) = (Vec::new(), Vec::new());
    // One more than may be there: the caller says what is wrong with it.
    for line in 1..=CHECKPOINTS_MAX as u64 + 1 {
        text.clear();
        if reader.read_until(b'\n', &mut text).map_err(reading(path))? == 0 {
            break;
        }
        let note = parse_note(&text);
        let readable = note.is_some();
        notes.push((line, note));
        if !readable {
            break;
        }
    }
    Ok(notes)
}

fn parse_note(line: &[u8]) -> Option<SignedNote> {
    let text: String = serde_json::from_slice(line).ok()?;
    SignedNote::parse(text.as_bytes()).ok()
}

/// The checkpoint kept elsewhere.
fn read_kept(path: &Path) -> Result<(SignedNote, Checkpoint), VerifyError> {
    let unusable = |source| VerifyError::Checkpoint { path: path.to_owned(), source };
    let bytes = read_bounded(path, NOTE_BYTES_MAX).map_err(reading(path))?;
    let note = SignedNote::parse(&bytes).map_err(|error| unusable(error.into()))?;
    let checkpoint = Checkpoint::parse(note.text()).map_err(unusable)?;
    Ok((note, checkpoint))
}

fn outside_keys(path: &Path) -> Result<Vec<VerifierKey>, VerifyError> {
    let bytes = read_bounded(path, NOTE_BYTES_MAX).map_err(reading(path))?;
    parse_keys(&bytes).map_err(|source| VerifyError::Key { path: path.to_owned(), source })
}

/// One verifier key a line, so that a log that changed its key can still be verified as a whole.
fn parse_keys(bytes: &[u8]) -> Result<Vec<VerifierKey>, NoteError> {
    let text = std::str::from_utf8(bytes).map_err(|_| NoteError::VerifierKey)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys = lines.map(str::parse).take(KEYS_MAX).collect::<Result<Vec<VerifierKey>, _>>()?;
    if keys.is_empty() { Err(NoteError::VerifierKey) } else { Ok(keys) }
}

fn read_if_there(path: &Path, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    match read_bounded(path, bytes_max) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Reads a small file. Of a larger one, one byte too many: the parser then refuses it as too long.
fn read_bounded(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

//! The export directory: what an auditor is handed.
//!
//! | file | content |
//! |---|---|
//! | `entries.jsonl` | one entry a line; the leaf hash is over the line's exact bytes without the newline |
//! | `checkpoint` | the signed checkpoint that covers exactly these entries |
//! | `leaves` | the 32-byte leaf hashes as they were sealed, one after the other: they let a verifier name the entry |
//! | `checkpoints` | earlier signed checkpoints, each a JSON string on a line of its own: they narrow a search |
//! | `handovers` | where the log changed its key, in the same form; all of them (see [`crate::chain`]) |
//! | `key` | the log's newest verifier key, for convenience; it proves nothing to someone who has no other copy |
//!
//! The writer does not judge. An entry that no longer matches its sealed hash is exported as it is, because the
//! verifier must get to see it; only what would break the format (a newline, an oversized line) is refused. The
//! directory appears under its name when it is complete and on disk, and not before.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::note::{SignedNote, VerifierKey};
use crate::tree::Hash;

pub const ENTRIES_FILE: &str = "entries.jsonl";
pub const CHECKPOINT_FILE: &str = "checkpoint";
pub const LEAVES_FILE: &str = "leaves";
pub const CHECKPOINTS_FILE: &str = "checkpoints";
pub const HANDOVERS_FILE: &str = "handovers";
pub const KEY_FILE: &str = "key";

/// The longest entry. The verifier holds whole lines in memory, and a line without an end must not exhaust it.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The most hand-overs one export carries: a new key every day for three years.
pub const HANDOVERS_MAX: usize = 1_000;

/// The most earlier checkpoints one export carries. A log with more seals leaves some out, evenly.
pub const CHECKPOINTS_MAX: usize = 100_000;

const STAGING_ATTEMPTS_MAX: u32 = 100;
const DIRECTORY_MODE: u32 = 0o700;
const WRITE_BUFFER_BYTES: usize = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{0} already exists and is not empty: choose a new directory")]
    Occupied(PathBuf),
    #[error("{0} cannot be a directory's name")]
    Target(PathBuf),
    #[error("beside {0} lie {STAGING_ATTEMPTS_MAX} unfinished exports, named .*.partial-*: remove them")]
    Leftovers(PathBuf),
    #[error("entry {0} contains a line break, so it cannot be one line of an export")]
    LineBreak(u64),
    #[error("entry {index} has {bytes} bytes, more than the {LINE_BYTES_MAX} an export can hold")]
    TooLong { index: u64, bytes: usize },
    #[error("an export carries at most {CHECKPOINTS_MAX} earlier checkpoints: leave some out, evenly")]
    TooManyCheckpoints,
    #[error("an export carries at most {HANDOVERS_MAX} hand-overs from key to key")]
    TooManyHandovers,
    #[error("writing {path}")]
    Write { path: PathBuf, source: io::Error },
}

/// Writes an export next to its final place and moves it there at the end. Dropped before that, it leaves nothing.
pub struct ExportWriter {
    target: PathBuf,
    staging: Staging,
    entries: Output,
    leaves: Output,
    checkpoints: Output,
    handovers: Output,
    entry_count: u64,
    checkpoint_count: usize,
    handover_count: usize,
}

impl ExportWriter {
    pub fn create(target: &Path) -> Result<Self, ExportError> {
        if fs::read_dir(target).is_ok_and(|mut held| held.next().is_some()) || target.is_file() {
            return Err(ExportError::Occupied(target.to_owned()));
        }
        let staging = Staging::create(target)?;
        Ok(Self {
            target: target.to_owned(),
            entries: Output::create(&staging, ENTRIES_FILE)?,
            leaves: Output::create(&staging, LEAVES_FILE)?,
            checkpoints: Output::create(&staging, CHECKPOINTS_FILE)?,
            handovers: Output::create(&staging, HANDOVERS_FILE)?,
            staging,
            entry_count: 0,
            checkpoint_count: 0,
            handover_count: 0,
        })
    }

    /// Adds the next entry: its line without newline, and the leaf hash it was sealed with.
    pub fn entry(&mut self, line: &[u8], sealed: &Hash) -> Result<(), ExportError> {
        self.unsealed_entry(line)?;
        self.missing_entry(sealed)
    }

    /// Adds a line that stands among the entries without having been sealed, so that the verifier gets to see it.
    pub fn unsealed_entry(&mut self, line: &[u8]) -> Result<(), ExportError> {
        let index = self.entry_count;
        if line.len() > LINE_BYTES_MAX {
            return Err(ExportError::TooLong { index, bytes: line.len() });
        }
        if memchr::memchr(b'\n', line).is_some() {
            return Err(ExportError::LineBreak(index));
        }
        self.entries.write(line)?;
        self.entries.write(b"\n")?;
        self.entry_count += 1;
        Ok(())
    }

    /// Adds the leaf hash of an entry that is gone, so that the verifier can tell which one.
    pub fn missing_entry(&mut self, sealed: &Hash) -> Result<(), ExportError> {
        self.leaves.write(sealed.as_bytes())
    }

    /// Adds an earlier checkpoint, in any order.
    pub fn earlier_checkpoint(&mut self, note: &SignedNote) -> Result<(), ExportError> {
        if self.checkpoint_count >= CHECKPOINTS_MAX {
            return Err(ExportError::TooManyCheckpoints);
        }
        self.checkpoints.write(note_line(note).as_bytes())?;
        self.checkpoint_count += 1;
        Ok(())
    }

    /// Adds a hand-over from one key to the next, in any order.
    pub fn handover(&mut self, note: &SignedNote) -> Result<(), ExportError> {
        if self.handover_count >= HANDOVERS_MAX {
            return Err(ExportError::TooManyHandovers);
        }
        self.handovers.write(note_line(note).as_bytes())?;
        self.handover_count += 1;
        Ok(())
    }

    /// Completes the export with the checkpoint over exactly the entries written, and shows it under its name.
    pub fn finish(self, checkpoint: &SignedNote, key: &VerifierKey) -> Result<(), ExportError> {
        let Self { target, staging, entries, leaves, checkpoints, handovers, .. } = self;
        let mut checkpoint_file = Output::create(&staging, CHECKPOINT_FILE)?;
        checkpoint_file.write(checkpoint.to_string().as_bytes())?;
        let mut key_file = Output::create(&staging, KEY_FILE)?;
        key_file.write(format!("{key}\n").as_bytes())?;
        for output in [entries, leaves, checkpoints, handovers, checkpoint_file, key_file] {
            output.finish()?;
        }
        sync_directory(&staging.path)?;
        staging.publish(&target)
    }
}

/// A note as one line of `checkpoints` or `handovers`, with its newline.
pub fn note_line(note: &SignedNote) -> String {
    format!("{}\n", serde_json::Value::String(note.to_string()))
}

/// The directory an export grows in; removed unless it was published.
struct Staging {
    path: PathBuf,
    published: bool,
}

impl Staging {
    /// Beside the target, so that the final rename stays within one file system. What a killed export left behind
    /// may hold the first name, and in a container every run has the same process id: hence the further attempts.
    fn create(target: &Path) -> Result<Self, ExportError> {
        let name =
            target.file_name().ok_or_else(|| ExportError::Target(target.to_owned()))?.to_string_lossy();
        for attempt in 1..=STAGING_ATTEMPTS_MAX {
            let path = target.with_file_name(format!(".{name}.partial-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
                Ok(()) => return Ok(Self { path, published: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(writing(&path, source)),
            }
        }
        Err(ExportError::Leftovers(target.to_owned()))
    }

    fn publish(mut self, target: &Path) -> Result<(), ExportError> {
        // A directory may replace an empty one and nothing else, so a race with another export loses cleanly.
        fs::rename(&self.path, target).map_err(|source| writing(target, source))?;
        self.published = true;
        match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
            _ => sync_directory(Path::new(".")),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.published {
            // Nobody is left to tell; a leftover is visible by its name and harmless.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

struct Output {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    fn create(staging: &Staging, name: &str) -> Result<Self, ExportError> {
        let path = staging.path.join(name);
        let file = File::create_new(&path).map_err(|source| writing(&path, source))?;
        Ok(Self { file: BufWriter::with_capacity(WRITE_BUFFER_BYTES, file), path })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.file.write_all(bytes).map_err(|source| writing(&self.path, source))
    }

    fn finish(mut self) -> Result<(), ExportError> {
        let Self { path, file } = &mut self;
        file.flush().and_then(|()| file.get_ref().sync_all()).map_err(|source| writing(path, source))
    }
}

fn sync_directory(path: &Path) -> Result<(), ExportError> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(|source| writing(path, source))
}

fn writing(path: &Path, source: io::Error) -> ExportError {
    ExportError::Write { path: path.to_owned(), source }
}

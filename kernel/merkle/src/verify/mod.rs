//! The offline verifier: is this export what was sealed, and if not, which entry is the first that is wrong?
//!
//! What can be known depends on what the verifier brings along. A checkpoint or key that lies in the export itself may
//! have been made by whoever changed the export, so without one *kept elsewhere* the result is called unanchored. A key
//! kept elsewhere shows that the entries are those the log's owner signed, but an older export with its older, genuine
//! checkpoint passes too. Only a checkpoint kept elsewhere shows that the newest entries were not taken away, up to its
//! own size. A signed checkpoint also pins the key: no other key verifies the same signature. Where the log changed its
//! key, what was kept from before still counts: the hand-overs in the export lead on from it (`crate::chain`).
//!
//! The work is divided so that each part can be trusted for one thing: `trust` decides whose word counts, `scan` hashes,
//! `judge` compares, `diagnose` explains one wrong entry, `finding` and `report` say it to a person.

mod chunk;
mod diagnose;
mod finding;
mod judge;
mod line;
mod report;
mod scan;
mod trust;

use std::io;
use std::path::{Path, PathBuf};

pub use finding::{Damage, Finding};
pub use line::EntryId;
pub use report::{Anchor, Report};

use crate::checkpoint::CheckpointError;
use crate::export::{CHECKPOINT_FILE, CHECKPOINTS_FILE, ENTRIES_FILE, HANDOVERS_FILE, KEY_FILE, LEAVES_FILE};
use crate::note::NoteError;
use trust::Trust;

/// What the verifier kept elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    /// A file with the log's verifier keys, one a line.
    pub key: Option<PathBuf>,
    /// A file with one of the log's signed checkpoints.
    pub checkpoint: Option<PathBuf>,
}

/// Why verification could not be done. What is wrong with the export is not an error: it is the [`Report`].
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("the key in {path} cannot be used: {source}")]
    Key { path: PathBuf, source: NoteError },
    #[error("the checkpoint in {path} cannot be used to check anything: {source}")]
    Checkpoint { path: PathBuf, source: CheckpointError },
    #[error(
        "the checkpoint in {path} is not signed with the key given, nor with one that the hand-overs in the export lead to \
         from there. It is of another log, or hand-overs were taken out of the export: ask for it again, or give the \
         newer key"
    )]
    Chain { path: PathBuf },
}

/// Verifies an export directory.
pub fn verify_export(directory: &Path, outside: &Outside) -> Result<Report, VerifyError> {
    let files = Files::of(directory);
    let (outside, ignored) = really_outside(directory, outside);
    let trust = Trust::load(&files, &outside)?;
    let sizes: Vec<u64> = trust.known.iter().map(|known| known.size).collect();
    let leaves = files.leaves.exists().then_some(files.leaves.as_path());
    let scan = scan::scan(&files.entries, leaves, &sizes).map_err(reading(&files.entries))?;
    let verdict = judge::judge(&trust, &scan, &files).map_err(reading(&files.entries))?;
    let mut findings = verdict.findings.into_iter();
    Ok(Report {
        entries: scan.lines,
        root: scan.root,
        intact: verdict.intact,
        agrees: verdict.agrees,
        anchor: trust.anchor,
        ignored,
        problem: findings.next(),
        also: findings.collect(),
    })
}

/// The files of an export, by path.
struct Files {
    entries: PathBuf,
    checkpoint: PathBuf,
    leaves: PathBuf,
    checkpoints: PathBuf,
    handovers: PathBuf,
    key: PathBuf,
}

impl Files {
    fn of(directory: &Path) -> Self {
        Self {
            entries: directory.join(ENTRIES_FILE),
            checkpoint: directory.join(CHECKPOINT_FILE),
            leaves: directory.join(LEAVES_FILE),
            checkpoints: directory.join(CHECKPOINTS_FILE),
            handovers: directory.join(HANDOVERS_FILE),
            key: directory.join(KEY_FILE),
        }
    }
}

/// Drops what was called outside and lies within the export: `--key EXPORT/key` anchors nothing.
fn really_outside(directory: &Path, given: &Outside) -> (Outside, Vec<PathBuf>) {
    let within = |path: &PathBuf| match (directory.canonicalize(), path.canonicalize()) {
        (Ok(directory), Ok(path)) => path.starts_with(directory),
        _ => false,
    };
    let keep = |path: &Option<PathBuf>| path.clone().filter(|path| !within(path));
    let outside = Outside { key: keep(&given.key), checkpoint: keep(&given.checkpoint) };
    let ignored = [&given.key, &given.checkpoint].into_iter().flatten().filter(|path| within(path)).cloned();
    (outside, ignored.collect())
}

fn reading(path: &Path) -> impl FnOnce(io::Error) -> VerifyError {
    let path = path.to_owned();
    |source| VerifyError::Read { path, source }
}

//! The second place: sealed entries, their leaf hashes and the checkpoints, as objects that are written once.
//!
//! ```text
//! entries/<from>-<to>.jsonl     the lines of entries from..to
//! leaves/<from>-<to>            their leaf hashes, 32 bytes each
//! checkpoints/<to>              the signed checkpoint over the first `to` entries
//! keys/<id>                     the log's verifier keys
//! handovers/<size>              where one key took over from another, as a line of an export's `handovers`
//! write-once                    shows that the place refuses to replace an object
//! ```
//!
//! Numbers are padded, so that names sort as numbers do: the objects joined in order are the files of an export, and
//! the same verifier checks them. That is why the layout is not tlog-tiles itself: its bundles limit an entry to 64 KiB,
//! and its partial tiles store a slow log's entries up to 256 times.
//!
//! An object that is there already with the same bytes is fine (a crash came between writing and marking). One with
//! other bytes means that the past differs between here and there: an alarm, and nothing is overwritten. So is an entry
//! that no longer gives the hash it was sealed with: altered bytes never reach the copy.

use std::time::Duration;

use blob::{BlobError, BlobPath, Blobs, PutNew};
use bytes::Bytes;
use db::{Internal, Settings};
use futures::future::BoxFuture;
use merkle::export::note_line;
use merkle::{Handover, Hash, leaf_hash};

use crate::delivery::{Delivered, DeliveryError, Destination, Parcel};
use crate::settings::{REPLICATE_BATCH_MAX, REPLICATE_INTERVAL_MS};
use crate::{ExportFailure, copy, export, store};

pub struct Replica {
    internal: Internal,
    blobs: Blobs,
}

/// Where the checkpoints are.
const CHECKPOINTS: &str = "checkpoints";
/// Where it is tried out whether the place keeps what it has.
const PROBE: &str = "write-once";
/// Entries read at once.
// fixed: bounds memory; a larger page is no faster
const PAGE: u64 = 1_000;
/// An object ends before the entry that would make it larger than this, unless it has one entry only.
// fixed: whoever resumes a parcel must cut it at the same places; well below what a store takes at once
const OBJECT_BYTES: usize = 16 * 1024 * 1024;

impl Replica {
    /// `internal` works under the sealer's login.
    pub fn new(internal: Internal, blobs: Blobs) -> Self {
        Self { internal, blobs }
    }

    async fn copy(&self, parcel: &Parcel) -> Result<(), DeliveryError> {
        let mut part = Part::from(parcel.from);
        let mut from = parcel.from;
        while from < parcel.to {
            let to = parcel.to.min(from + PAGE);
            for (line, sealed) in self.sealed(from, to).await? {
                if !part.lines.is_empty() && part.lines.len() + line.len() >= OBJECT_BYTES {
                    let next = Part::from(part.to);
                    self.put_part(std::mem::replace(&mut part, next)).await?;
                }
                part.push(&line, &sealed);
            }
            from = to;
        }
        self.put_part(part).await?;
        self.put_keys(parcel.to).await?;
        // Last: a checkpoint that is there means that everything it covers is.
        self.put(&checkpoint_name(parcel.to), parcel.note.clone().into()).await
    }

    /// The lines of entries `from..to`, each with the hash it was sealed with, and none that does not give it.
    async fn sealed(&self, from: u64, to: u64) -> Result<Vec<(String, Hash)>, DeliveryError> {
        let range: db::Params<'_> = &[&store::signed(from), &store::signed(to)];
        let rows = self.internal.query(store::SEALED_RANGE, range).await?;
        if rows.len() as u64 != to - from {
            return Err(DeliveryError::Alarm(format!(
                "of the entries {from} to {} only {} have a hash",
                to - 1,
                rows.len()
            )));
        }
        let checked = (from..).zip(&rows).map(|(index, row)| {
            let (Some(entry), Some(sealed)) = (store::entry_row_if_there(row), store::row_hash(row)) else {
                return Err(DeliveryError::Alarm(format!("entry {index} is gone from the database")));
            };
            let line = entry.line(index);
            if leaf_hash(line.as_bytes()) != sealed {
                return Err(DeliveryError::Alarm(format!("entry {index} is no longer what was sealed")));
            }
            Ok((line, sealed))
        });
        checked.collect()
    }

    async fn put_part(&self, part: Part) -> Result<(), DeliveryError> {
        self.put(&copy::name(part.from, part.to), part.lines.into()).await?;
        self.put(&format!("leaves/{:020}-{:020}", part.from, part.to), part.leaves.into()).await
    }

    /// The log's keys and how each came to be, so that the copy is of use without the database.
    async fn put_keys(&self, size: u64) -> Result<(), DeliveryError> {
        let keys = export::keys(&self.internal, size).await;
        // A database that does not answer is no sign that anyone changed the past; a key that cannot be read is.
        let keys = keys.map_err(|error| match error {
            ExportFailure::Db(error) => DeliveryError::Db(error),
            error => DeliveryError::Alarm(format!("the log's keys: {error}")),
        })?;
        for export::Key { key, handover } in keys {
            self.put(&format!("keys/{:08x}", key.id()), format!("{key}\n").into()).await?;
            if let Some(note) = handover {
                let opened = Handover::open(&note).ok().flatten();
                let size = opened.map(|handover| handover.checkpoint.size);
                let size =
                    size.ok_or_else(|| DeliveryError::Alarm(format!("no hand-over made {key} the log's")))?;
                self.put(&format!("handovers/{size:020}"), note_line(&note).into()).await?;
            }
        }
        Ok(())
    }

    /// Whatever left did so after the mark said how far, and the mark is not taken back: an object behind it was written by
    /// another history of the log, which a backup did not have. So was a checkpoint that differs from ours.
    async fn compare(&self, delivered: &Delivered) -> Result<(), DeliveryError> {
        for directory in [copy::ENTRIES, CHECKPOINTS] {
            let mark = path(&format!("{directory}/{:020}", delivered.target))?;
            let behind =
                self.blobs.list(Some(&path(directory)?), Some(&mark), 1).await.map_err(unavailable)?;
            if let Some(object) = behind.first() {
                return Err(another_history(object.path.as_str()));
            }
        }
        let Some(newest) = &delivered.newest else { return Ok(()) };
        let name = checkpoint_name(newest.size);
        match self.blobs.get(&path(&name)?).await.map_err(unavailable)? {
            Some(note) if note == newest.note.as_bytes() => Ok(()),
            Some(_) => Err(another_history(&name)),
            None => Err(DeliveryError::Alarm(format!(
                "{name} was brought to the second place and is not there: it is another place, or objects were taken away. \
                 Nothing is written there. Copy the former place's objects to it, or set audit.replica to a new, empty place"
            ))),
        }
    }

    /// Writes an object once.
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), DeliveryError> {
        match self.blobs.put_new(&path(name)?, bytes).await.map_err(unavailable)? {
            PutNew::Written | PutNew::AlreadyThere { same: true } => Ok(()),
            PutNew::AlreadyThere { same: false } => Err(DeliveryError::Alarm(format!(
                "{name} is already in the second place, with other content"
            ))),
        }
    }
}

/// The entries of one object.
struct Part {
    from: u64,
    to: u64,
    lines: Vec<u8>,
    leaves: Vec<u8>,
}

impl Part {
    fn from(from: u64) -> Self {
        Self { from, to: from, lines: Vec::new(), leaves: Vec::new() }
    }

    fn push(&mut self, line: &str, sealed: &Hash) {
        self.lines.extend_from_slice(line.as_bytes());
        self.lines.push(b'\n');
        self.leaves.extend_from_slice(sealed.as_bytes());
        self.to += 1;
    }
}

fn checkpoint_name(size: u64) -> String {
    format!("{CHECKPOINTS}/{size:020}")
}

fn another_history(object: &str) -> DeliveryError {
    DeliveryError::Alarm(format!(
        "the second place holds {object}, which this log never brought there: the log was restored from a backup, or the place \
         is another log's. Nothing is written there. Keep it as it is, and set audit.replica to a new, empty place"
    ))
}

fn path(name: &str) -> Result<BlobPath, DeliveryError> {
    BlobPath::parse(name).map_err(|error| DeliveryError::Unavailable(format!("{name}: {error}")))
}

pub(crate) fn unavailable(error: BlobError) -> DeliveryError {
    DeliveryError::Unavailable(error.to_string())
}

impl Destination for Replica {
    fn name(&self) -> &'static str {
        "replica"
    }

    fn entries_max(&self, settings: &Settings) -> u64 {
        u64::from(settings.get(&REPLICATE_BATCH_MAX))
    }

    fn interval(&self, settings: &Settings) -> Duration {
        REPLICATE_INTERVAL_MS.millis(settings)
    }

    fn is_empty(&self) -> BoxFuture<'_, Result<bool, DeliveryError>> {
        Box::pin(async {
            self.blobs.check_write_once(&path(PROBE)?).await.map_err(unavailable)?;
            let entries = self.blobs.list(Some(&path(copy::ENTRIES)?), None, 1).await.map_err(unavailable)?;
            Ok(entries.is_empty())
        })
    }

    fn check<'a>(&'a self, delivered: &'a Delivered) -> BoxFuture<'a, Result<(), DeliveryError>> {
        Box::pin(self.compare(delivered))
    }

    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), DeliveryError>> {
        Box::pin(self.copy(parcel))
    }
}

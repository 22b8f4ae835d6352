//! Taking the log out for an auditor, while the server goes on.
//!
//! Everything below the newest checkpoint is final, so no snapshot has to be held: the sealed prefix is read page by
//! page and written as it comes. Rows are exported as they are now. One that was changed no longer gives its sealed
//! hash, one that is gone leaves its hash behind, and one that was put among the sealed ones is written without a hash:
//! in each case the verifier sees it and names it. The exporter itself judges nothing.
//!
//! Entries that were pruned come from the second place, and only those: one that is missing for another reason is left
//! out, so that the verifier names it.
//!
//! An export is itself recorded, before it is made, as `audit.log.export` by the system actor `audit.export`.

use std::ops::Range;
use std::path::Path;

use authz::{Actor, Context, Decider, Resource, authorize};
use blob::{BlobError, Blobs};
use bytes::Bytes;
use db::{Change, Db, DbError, Internal};
use merkle::export::CHECKPOINTS_MAX;
use merkle::tree::SIZE_MAX;
use merkle::{ExportError, ExportWriter, NoteError, SignedNote, VerifierKey};
use types::{Id, Kind, Timestamp};

use crate::copy::Copy;
use crate::policy::{LogExport, SYSTEM_EXPORT};
use crate::store;

#[derive(Debug, thiserror::Error)]
pub enum ExportFailure {
    #[error("the database could not be read: {0}")]
    Db(#[from] DbError),
    #[error("the export could not be recorded: {0}")]
    Record(types::Error),
    #[error("nothing has been sealed yet. Wait a second; if it stays so, look at the role audit-sealer")]
    NothingSealed,
    #[error("a stored checkpoint or key cannot be read: {0}")]
    Note(#[from] NoteError),
    #[error("{0}")]
    Write(#[from] ExportError),
    #[error("{0}")]
    Copy(#[from] BlobError),
    #[error(
        "old entries are in the second place only: export with the configuration that names it (audit.replica)"
    )]
    Pruned,
    #[error(
        "entry {0} was pruned from the database and is not in the second place: look for it in older backups"
    )]
    Lost(u64),
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    pub entries: u64,
    pub earlier_checkpoints: usize,
    /// Entries that were there when it was finished, and not sealed when it began.
    pub left_out: u64,
}

/// Entries read at once.
// fixed: bounds memory; a larger page is no faster
const PAGE: u64 = 2_000;

enum ExportKind {}
impl Kind for ExportKind {
    const PREFIX: &'static str = "exp";
    const NAME: &'static str = "audit_export";
}

/// Writes down that someone takes the whole log out.
pub async fn record_export(db: &Db, decider: &dyn Decider) -> Result<(), ExportFailure> {
    let context = Context::new(Actor::system(SYSTEM_EXPORT), db.make_id());
    let permit = authorize::<LogExport>(decider, &context, Resource::platform(ExportKind::NAME))
        .map_err(ExportFailure::Record)?;
    db.change(&context, permit, async |tx| {
        let id: Id<ExportKind> = tx.make_id();
        Ok(tx.record(Change::new(<LogExport as authz::Action>::NAME, id, 1)))
    })
    .await
    .map_err(ExportFailure::Record)
}

/// Are there entries that only the second place still has?
pub async fn needs_copy(internal: &Internal) -> Result<bool, ExportFailure> {
    Ok(!internal.query(store::PRUNED_LIST, &[]).await?.is_empty())
}

/// Writes the sealed prefix to `directory`. `internal` works under a login that may read entries and hashes; `blobs` is
/// the second place.
pub async fn export(
    internal: &Internal,
    blobs: Option<&Blobs>,
    directory: &Path,
) -> Result<Exported, ExportFailure> {
    let Some(row) = internal.query_opt(store::CHECKPOINT_NEWEST, &[]).await? else {
        return Err(ExportFailure::NothingSealed);
    };
    let checkpoint = store::checkpoint(&row);
    let note = SignedNote::parse(checkpoint.note.as_bytes())?;
    let keys = keys(internal, checkpoint.size).await?;
    let newest = keys.last().ok_or(ExportFailure::NothingSealed)?;
    let pruned = internal.query(store::PRUNED_LIST, &[]).await?;
    if blobs.is_none() && !pruned.is_empty() {
        return Err(ExportFailure::Pruned);
    }
    let mut archive = Archive {
        pruned: pruned.iter().map(|row| row.get(0)..row.get(1)).collect(),
        copy: blobs.map(Copy::new),
    };
    let mut writer = ExportWriter::create(directory)?;
    // A page never reaches from one era into the next: places compare only within one.
    let eras = internal.query(store::ERA_LIST, &[]).await?;
    let starts = eras.iter().map(|row| store::unsigned(row.get(0)));
    let ends: Vec<u64> = starts.filter(|start| *start < checkpoint.size).chain([checkpoint.size]).collect();
    let mut from = 0;
    for end in ends {
        while from < end {
            let to = end.min(from + PAGE);
            write_page(internal, &mut archive, &mut writer, from, to).await?;
            from = to;
        }
    }
    // fixed: the export format's own limit
    let most = i64::try_from(CHECKPOINTS_MAX).unwrap_or(i64::MAX);
    let earlier = internal.query(store::CHECKPOINT_SAMPLE, &[&store::signed(checkpoint.size), &most]).await?;
    for row in &earlier {
        writer.earlier_checkpoint(&SignedNote::parse(row.get::<_, &str>(0).as_bytes())?)?;
    }
    for key in &keys {
        if let Some(handover) = &key.handover {
            writer.handover(handover)?;
        }
    }
    writer.finish(&note, &newest.key)?;
    let newer = internal.query_opt(store::NEWER_COUNT, &[&store::signed(checkpoint.size)]).await?;
    let left_out = newer.map_or(0, |row| store::unsigned(row.get(0)));
    Ok(Exported { entries: checkpoint.size, earlier_checkpoints: earlier.len(), left_out })
}

/// What is in the second place only.
struct Archive<'b> {
    pruned: Vec<Range<Timestamp>>,
    copy: Option<Copy<'b>>,
}

impl Archive<'_> {
    /// The line of an entry that was pruned; `None` if it is missing for another reason.
    async fn line(&mut self, index: u64, at: Option<Timestamp>) -> Result<Option<Bytes>, ExportFailure> {
        if !at.is_some_and(|at| self.pruned.iter().any(|span| span.contains(&at))) {
            return Ok(None);
        }
        let Some(copy) = &mut self.copy else { return Err(ExportFailure::Pruned) };
        copy.line(index).await?.map(Some).ok_or(ExportFailure::Lost(index))
    }
}

async fn write_page(
    internal: &Internal,
    archive: &mut Archive<'_>,
    writer: &mut ExportWriter,
    from: u64,
    to: u64,
) -> Result<(), ExportFailure> {
    let mut next = from;
    for row in internal.query(store::EXPORT_RANGE, &[&store::signed(from), &store::signed(to)]).await? {
        let index = store::row_index(&row).unwrap_or(next);
        match (store::entry_row_if_there(&row), store::row_hash(&row)) {
            (Some(entry), Some(sealed)) => writer.entry(entry.line(index).as_bytes(), &sealed)?,
            (Some(entry), None) => writer.unsealed_entry(entry.line(index).as_bytes())?,
            (None, Some(sealed)) => match archive.line(index, store::row_sealed_at(&row)).await? {
                Some(line) => writer.entry(&line, &sealed)?,
                None => writer.missing_entry(&sealed)?,
            },
            (None, None) => {}
        }
        next = if store::row_index(&row).is_some() { index + 1 } else { index };
    }
    Ok(())
}

/// The key the log is known by, if it has one yet.
pub async fn newest_key(internal: &Internal) -> Result<Option<VerifierKey>, ExportFailure> {
    Ok(keys(internal, SIZE_MAX).await?.pop().map(|newest| newest.key))
}

/// A key of the log, and how it came to be the log's.
pub(crate) struct Key {
    pub key: VerifierKey,
    pub handover: Option<SignedNote>,
}

/// The keys that signed the first `size` entries, oldest first.
pub(crate) async fn keys(internal: &Internal, size: u64) -> Result<Vec<Key>, ExportFailure> {
    let mut keys = Vec::new();
    for row in internal.query(store::KEY_LIST, &[]).await? {
        if store::unsigned(row.get(1)) <= size {
            let handover: Option<&str> = row.get(2);
            keys.push(Key {
                key: row.get::<_, &str>(0).parse()?,
                handover: handover.map(|note| SignedNote::parse(note.as_bytes())).transpose()?,
            });
        }
    }
    Ok(keys)
}

//! The second place: sealed entries, their leaf hashes and the checkpoints, as objects that are written once.
//!
//! ```text
//! entries/<from>-<to>.jsonl     the lines of entries from..to
//! leaves/<from>-<to>            their leaf hashes, 32 bytes each
//! checkpoints/<to>              the signed checkpoint over the first `to` entries
//! keys/<id>                     the verifier key that signed it
//! ```
//!
//! Numbers are padded, so that names sort as numbers do: the objects joined in order are the files of an export, and
//! the same verifier checks them. That is why the layout is not tlog-tiles itself: its bundles limit an entry to 64 KiB,
//! and its partial tiles store a slow log's entries up to 256 times.
//!
//! An object that is there already with the same bytes is fine (a crash came between writing and marking). One with
//! other bytes means that the past differs between here and there: an alarm, and nothing is overwritten. So is an entry
//! that no longer gives the hash it was sealed with: altered bytes never reach the copy.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use db::{Internal, Settings};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use merkle::{SignedNote, leaf_hash};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};

use crate::delivery::{DeliveryError, Destination, Parcel};
use crate::settings::{REPLICATE_BATCH_MAX, REPLICATE_INTERVAL_MS};
use crate::store;

pub struct Replica {
    internal: Internal,
    objects: Arc<dyn ObjectStore>,
}

impl Replica {
    /// `internal` works under the sealer's login.
    pub fn new(internal: Internal, objects: Arc<dyn ObjectStore>) -> Self {
        Self { internal, objects }
    }

    async fn copy(&self, parcel: &Parcel) -> Result<(), DeliveryError> {
        let (mut lines, mut leaves) = (Vec::new(), Vec::new());
        let range: db::Params<'_> = &[&store::signed(parcel.from), &store::signed(parcel.to)];
        let rows = self.internal.query(store::SEALED_RANGE, range).await?;
        if rows.len() as u64 != parcel.to - parcel.from {
            return Err(DeliveryError::Alarm(format!(
                "of the entries {} to {} only {} have a hash",
                parcel.from,
                parcel.to - 1,
                rows.len()
            )));
        }
        for (index, row) in (parcel.from..).zip(&rows) {
            let (Some(entry), Some(sealed)) = (store::entry_row_if_there(row), store::row_hash(row)) else {
                return Err(DeliveryError::Alarm(format!("entry {index} is gone from the database")));
            };
            let line = entry.line(index);
            if leaf_hash(line.as_bytes()) != sealed {
                return Err(DeliveryError::Alarm(format!("entry {index} is no longer what was sealed")));
            }
            lines.extend_from_slice(line.as_bytes());
            lines.push(b'\n');
            leaves.extend_from_slice(sealed.as_bytes());
        }
        let range = format!("{:020}-{:020}", parcel.from, parcel.to);
        self.put(format!("entries/{range}.jsonl"), lines.into()).await?;
        self.put(format!("leaves/{range}"), leaves.into()).await?;
        self.put_keys(&parcel.note).await?;
        // Last: a checkpoint that is there means that everything it covers is.
        self.put(format!("checkpoints/{:020}", parcel.to), parcel.note.clone().into()).await
    }

    /// The keys that signed the note, so that the copy is of use without the database.
    async fn put_keys(&self, note: &str) -> Result<(), DeliveryError> {
        let garbled =
            |what: &dyn std::fmt::Display| DeliveryError::Alarm(format!("stored key or note: {what}"));
        let note = SignedNote::parse(note.as_bytes()).map_err(|error| garbled(&error))?;
        for row in self.internal.query(store::KEY_LIST, &[]).await? {
            let text: String = row.get(0);
            let key: merkle::VerifierKey = text.parse().map_err(|error| garbled(&error))?;
            if note.verify(std::slice::from_ref(&key)).is_ok() {
                self.put(format!("keys/{:08x}", key.id()), format!("{key}\n").into()).await?;
            }
        }
        Ok(())
    }

    /// Writes an object once.
    async fn put(&self, name: String, bytes: Bytes) -> Result<(), DeliveryError> {
        let unavailable = |error: object_store::Error| DeliveryError::Unavailable(error.to_string());
        let path = Path::from(name.as_str());
        let once = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.objects.put_opts(&path, bytes.clone().into(), once).await {
            Ok(_) => return Ok(()),
            Err(object_store::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(unavailable(error)),
        }
        let there = self.objects.get(&path).await.map_err(unavailable)?.bytes().await.map_err(unavailable)?;
        if there == bytes {
            return Ok(());
        }
        Err(DeliveryError::Alarm(format!("{name} is already in the second place, with other content")))
    }
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
            match self.objects.list(None).next().await {
                None => Ok(true),
                Some(Ok(_)) => Ok(false),
                Some(Err(error)) => Err(DeliveryError::Unavailable(error.to_string())),
            }
        })
    }

    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), DeliveryError>> {
        Box::pin(self.copy(parcel))
    }
}

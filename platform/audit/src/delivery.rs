//! Bringing what is sealed to another place, checkpoint by checkpoint, with a mark of how far it came.
//!
//! The mark has two numbers. `target` is written before anything leaves, `size` after it has arrived. Whoever resumes
//! after a crash finds the same range to deliver and makes the same bytes; the other place takes the same bytes again
//! without harm. Two deliverers at once do the same work twice and move the mark once.

use std::sync::Arc;
use std::time::Duration;

use db::{DbError, Internal, Settings};
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use types::Clock;

use crate::model::SignedCheckpoint;
use crate::settings::DELIVERY_RETRY_MS;
use crate::store;

/// What is to be delivered: the entries from `from` up to the checkpoint of size `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    pub from: u64,
    pub to: u64,
    /// The signed checkpoint.
    pub note: String,
}

/// What is known to have left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The newest checkpoint that has arrived, if one has.
    pub newest: Option<SignedCheckpoint>,
    /// Nothing behind so many entries has ever left.
    pub target: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("the other place does not answer as it should: {0}")]
    Unavailable(String),
    /// Someone changed the past, here or there. Nothing is overwritten.
    #[error("ALARM: {0}")]
    Alarm(String),
}

/// Where parcels go.
pub trait Destination: Send + Sync + 'static {
    /// Names the mark; never changes.
    fn name(&self) -> &'static str;
    /// Most entries in a parcel, unless a single seal is larger.
    fn entries_max(&self, settings: &Settings) -> u64;
    fn interval(&self, settings: &Settings) -> Duration;
    /// Does it have nothing of ours at all? Then whatever the mark says, everything is delivered again.
    fn is_empty(&self) -> BoxFuture<'_, Result<bool, DeliveryError>>;
    /// Is everything it has of the log that `delivered` is of? Else nothing may be written there: two histories side by
    /// side help nobody.
    fn check<'a>(&'a self, delivered: &'a Delivered) -> BoxFuture<'a, Result<(), DeliveryError>>;
    /// Returns when the parcel is safe there. May get the same one again.
    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), DeliveryError>>;
}

pub struct Delivery {
    internal: Internal,
    clock: Arc<dyn Clock>,
    settings: Settings,
    destination: Arc<dyn Destination>,
    /// Why nothing arrives at present.
    trouble: watch::Sender<Option<String>>,
}

const TABLES: &[&str] = &["audit.delivery"];

impl Delivery {
    /// `internal` works under the sealer's login.
    pub fn new(
        internal: Internal,
        clock: Arc<dyn Clock>,
        settings: Settings,
        destination: Arc<dyn Destination>,
    ) -> Self {
        Self { internal, clock, settings, destination, trouble: watch::Sender::default() }
    }

    /// Why nothing arrives at present, for whoever watches over the process.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    /// Works until told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        while let Err(error) = self.look_around().await {
            self.report(&error);
            tokio::select! {
                () = tokio::time::sleep(DELIVERY_RETRY_MS.millis(&self.settings)) => {}
                () = stop.cancelled() => return,
            }
        }
        while !stop.is_cancelled() {
            let mut pause = self.destination.interval(&self.settings);
            match self.step().await {
                Ok(Some(_)) if pause < DELIVERY_RETRY_MS.millis(&self.settings) => {
                    self.trouble.send_replace(None);
                    continue;
                }
                Ok(_) => {
                    self.trouble.send_replace(None);
                }
                Err(error) => {
                    pause = DELIVERY_RETRY_MS.millis(&self.settings);
                    self.report(&error);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// A new, empty place (after a restore, or a change of configuration) gets everything from the beginning. One that is
    /// not empty must hold our own log.
    pub async fn look_around(&self) -> Result<(), DeliveryError> {
        if self.destination.is_empty().await? {
            if !self.internal.query(store::PRUNED_LIST, &[]).await?.is_empty() {
                return Err(DeliveryError::Alarm(
                    "the second place is empty, and old entries are there only: bring its objects back, or copy them \
                     from the former place"
                        .to_owned(),
                ));
            }
            let params: db::Params<'_> = &[&self.destination.name(), &self.clock.now()];
            self.internal.bookkeeping_one(TABLES, store::DELIVERY_RESTART, params).await?;
            return Ok(());
        }
        let mut delivered = self.delivered().await?;
        loop {
            let checked = self.destination.check(&delivered).await;
            let now = if checked.is_err() { self.delivered().await? } else { return Ok(()) };
            // Another deliverer that went on meanwhile is no other history.
            if now == delivered {
                return checked;
            }
            delivered = now;
        }
    }

    async fn delivered(&self) -> Result<Delivered, DeliveryError> {
        let row = self.internal.query_opt(store::DELIVERY_MARK, &[&self.destination.name()]).await?;
        let Some(row) = row else { return Ok(Delivered { newest: None, target: 0 }) };
        let newest = self.internal.query_opt(store::CHECKPOINT_GET, &[&row.get::<_, i64>(0)]).await?;
        Ok(Delivered { newest: newest.as_ref().map(store::checkpoint), target: store::unsigned(row.get(1)) })
    }

    /// Delivers one parcel, if there is one. Returns the size that has arrived.
    pub async fn step(&self) -> Result<Option<u64>, DeliveryError> {
        let Some(parcel) = self.next().await? else { return Ok(None) };
        self.destination.deliver(&parcel).await?;
        let params: db::Params<'_> = &[
            &self.destination.name(),
            &store::signed(parcel.from),
            &store::signed(parcel.to),
            &self.clock.now(),
        ];
        // No row: another deliverer has finished the same parcel.
        self.internal.bookkeeping_one(TABLES, store::DELIVERY_FINISH, params).await?;
        metrics::gauge!("gpuaas_audit_delivered_size", "destination" => self.destination.name())
            .set(parcel.to as f64);
        Ok(Some(parcel.to))
    }

    /// The parcel under way, or a new one.
    async fn next(&self) -> Result<Option<Parcel>, DeliveryError> {
        let name = self.destination.name();
        let reach = store::signed(self.destination.entries_max(&self.settings));
        let Some(row) = self.internal.query_opt(store::DELIVERY_LOOK, &[&name, &reach]).await? else {
            let params: db::Params<'_> = &[&name, &self.clock.now()];
            self.internal.bookkeeping_one(TABLES, store::DELIVERY_ADD, params).await?;
            return Box::pin(self.next()).await;
        };
        let (size, target, reachable): (i64, i64, Option<i64>) = (row.get(0), row.get(1), row.get(2));
        let target = match reachable {
            _ if target > size => target,
            None => return Ok(None),
            Some(reachable) => {
                let params: db::Params<'_> = &[&name, &size, &reachable, &self.clock.now()];
                let begun = self.internal.bookkeeping_one(TABLES, store::DELIVERY_BEGIN, params).await?;
                if begun.is_empty() {
                    // Another deliverer has just begun one; it is done or taken up at the next look.
                    return Ok(None);
                }
                reachable
            }
        };
        let Some(row) = self.internal.query_opt(store::CHECKPOINT_GET, &[&target]).await? else {
            return Err(DeliveryError::Alarm(format!("the checkpoint of size {target} is gone")));
        };
        let note = store::checkpoint(&row).note;
        Ok(Some(Parcel { from: store::unsigned(size), to: store::unsigned(target), note }))
    }

    fn report(&self, error: &DeliveryError) {
        let destination = self.destination.name();
        match error {
            DeliveryError::Alarm(_) => {
                metrics::counter!("gpuaas_audit_alarms_total", "alarm" => destination).increment(1);
                tracing::error!(destination, %error, "the audit log and its copy disagree");
            }
            DeliveryError::Db(_) | DeliveryError::Unavailable(_) => {
                tracing::warn!(destination, %error, "the audit log could not be delivered, will try again");
            }
        }
        self.trouble.send_replace(Some(format!("the audit log does not reach its {destination}: {error}")));
    }
}

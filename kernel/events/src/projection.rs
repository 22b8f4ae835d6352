//! Read models: tables derived from events, with the position they are as of.
//!
//! A projection's rows and its position move in one transaction, so an event is applied exactly once. It can always be
//! rebuilt from the domain's own tables, and the result is the same to the byte: `apply` must therefore derive rows
//! from the present state of what the event is about, not add up deltas.
//!
//! That is also why a projection can begin, or go on, where the log no longer has what it would have to read: one that
//! is new in an old installation, or that finds positions missing, is rebuilt and goes on at the log's end.

use db::settings::Settings;
use db::{Bookkeeping, DbError, Internal, Reader};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use types::Timestamp;

use crate::feed::{Feed, read_after, read_head};
use crate::lease::{self, Lease};
use crate::log_event::LogEvent;
use crate::settings::SWEEP_MS;
use crate::span::continued_spans;
use crate::store;

/// A read model.
pub trait Projection: Send + Sync {
    fn name(&self) -> &'static str;

    /// What it writes; `spine.consumer`, which holds its position, included.
    fn tables(&self) -> &'static [&'static str];

    fn apply<'a>(
        &'a self,
        tx: &'a mut Bookkeeping,
        event: &'a LogEvent,
    ) -> BoxFuture<'a, Result<(), DbError>>;

    /// Empties the tables and fills them from the domain's present state.
    fn rebuild<'a>(&'a self, tx: &'a mut Bookkeeping) -> BoxFuture<'a, Result<(), DbError>>;
}

/// What a projection is as of: the last event it has applied, and when that got its position.
pub async fn as_of(reader: &Reader, name: &str) -> Result<(i64, Timestamp), DbError> {
    let row = reader.query_opt(store::CONSUMER_AS_OF, &[&name]).await?;
    Ok(row.map_or((0, Timestamp::UNIX_EPOCH), |row| (row.get(0), row.get(1))))
}

const BATCH: i64 = 200;

/// Keeps a projection up to date until told to stop.
pub async fn run(
    projection: &dyn Projection,
    internal: &Internal,
    feed: &Feed,
    settings: &Settings,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let mut head = feed.watch();
        let end = head.borrow_and_update().position;
        match step(projection, internal, settings, end).await {
            Ok(applied) if applied >= BATCH as usize => continue,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(projection = projection.name(), %error, "projection stays behind, will try again")
            }
        }
        tokio::select! {
            _ = tokio::time::timeout(SWEEP_MS.millis(settings), head.changed()) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Applies one batch, if nobody else is at it. `end` is a position that the log has reached.
async fn step(
    projection: &dyn Projection,
    internal: &Internal,
    settings: &Settings,
    end: i64,
) -> Result<usize, DbError> {
    let name = projection.name();
    internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_ADD, &[&name, &0i64]).await?;
    let seconds = lease::seconds(settings).as_secs_f64();
    let rows =
        internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_TAKE, &[&name, &seconds]).await?;
    let Some(row) = rows.first() else { return Ok(0) };
    let lease = Lease { internal, settings, name, token: row.get(0) };
    let work = async {
        let position: i64 = row.get(1);
        let events = read_after(internal, position, Timestamp::UNIX_EPOCH, BATCH).await?;
        match events.first().map_or(end + 1, |event| event.position) {
            next if next > position + 1 => {
                tracing::warn!(
                    projection = name,
                    after = position,
                    "events are gone from the log: rebuilding"
                );
                metrics::counter!("gpuaas_projection_rebuilds_total", "projection" => name).increment(1);
                rebuild(projection, internal).await.map(|()| 0)
            }
            _ => apply(projection, internal, &events, lease.token, seconds).await,
        }
    };
    let result = lease.hold(0, Box::pin(work)).await;
    lease.free().await;
    result?
}

async fn apply(
    projection: &dyn Projection,
    internal: &Internal,
    events: &[LogEvent],
    token: i64,
    lease_seconds: f64,
) -> Result<usize, DbError> {
    let Some(last) = events.last() else { return Ok(0) };
    let name = projection.name();
    let spans = continued_spans(name, events);
    let span = spans.first().cloned().unwrap_or_else(tracing::Span::none);
    internal
        .bookkeeping(projection.tables(), async |tx| -> Result<usize, DbError> {
            tx.query(store::PROJECTION_LOCK, &[&name]).await?;
            for event in events {
                projection.apply(tx, event).await?;
            }
            let params: db::Params<'_> = &[&name, &token, &last.position, &last.sequenced_at, &lease_seconds];
            if tx.query(store::CONSUMER_ADVANCE, params).await?.is_empty() {
                return Err(lease::lost());
            }
            Ok(events.len())
        })
        .instrument(span)
        .await
}

/// Makes the read model anew from the domain's tables. Events since then are applied on top, which changes nothing
/// that was already seen.
pub async fn rebuild(projection: &dyn Projection, internal: &Internal) -> Result<(), DbError> {
    // Read before the rebuilding snapshot: what lies between is seen twice, never missed.
    let head = read_head(internal).await?;
    let name = projection.name();
    internal
        .bookkeeping(projection.tables(), async |tx| {
            tx.query(store::PROJECTION_LOCK, &[&name]).await?;
            projection.rebuild(tx).await?;
            tx.query(store::CONSUMER_ADD, &[&name, &head.position]).await?;
            tx.query(store::CONSUMER_RESET, &[&name, &head.position, &head.at]).await.map(drop)
        })
        .await
}

//! Read models: tables derived from events, with the position they are as of.
//!
//! A projection's rows and its position move in one transaction, so an event is applied exactly once. It can always be
//! rebuilt from the domain's own tables, and the result is the same to the byte: `apply` must therefore derive rows
//! from the present state of what the event is about, not add up deltas.

use db::settings::Settings;
use db::{Bookkeeping, DbError, Internal, Reader};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use types::Timestamp;

use crate::feed::{Feed, read_after, read_head};
use crate::log_event::LogEvent;
use crate::settings::{CONSUMER_LEASE_SECONDS, SWEEP_MS};
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
        match step(projection, internal, settings).await {
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

async fn step(
    projection: &dyn Projection,
    internal: &Internal,
    settings: &Settings,
) -> Result<usize, DbError> {
    let name = projection.name();
    internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_ADD, &[&name, &0i64]).await?;
    let lease = CONSUMER_LEASE_SECONDS.seconds(settings).as_secs_f64();
    let rows = internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_TAKE, &[&name, &lease]).await?;
    let Some(row) = rows.first() else { return Ok(0) };
    let (token, position): (i64, i64) = (row.get(0), row.get(1));
    let events = read_after(internal, position, Timestamp::UNIX_EPOCH, BATCH).await?;
    let result = match events.last() {
        None => Ok(0),
        Some(last) => {
            let spans = continued_spans(name, &events);
            let span = spans.first().cloned().unwrap_or_else(tracing::Span::none);
            internal
                .bookkeeping(projection.tables(), async |tx| -> Result<usize, DbError> {
                    for event in &events {
                        projection.apply(tx, event).await?;
                    }
                    let moved = tx
                        .query(
                            store::CONSUMER_ADVANCE,
                            &[&name, &token, &last.position, &last.sequenced_at, &lease],
                        )
                        .await?;
                    if moved.is_empty() {
                        return Err(DbError::Unexpected(
                            "the lease was taken over by another worker".to_owned(),
                        ));
                    }
                    Ok(events.len())
                })
                .instrument(span)
                .await
        }
    };
    internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_FREE, &[&name, &token]).await?;
    result
}

/// Makes the read model anew from the domain's tables. Events since then are applied on top, which changes nothing
/// that was already seen.
pub async fn rebuild(projection: &dyn Projection, internal: &Internal) -> Result<(), DbError> {
    // Read before the rebuilding snapshot: what lies between is seen twice, never missed.
    let head = read_head(internal).await?;
    let name = projection.name();
    internal
        .bookkeeping(projection.tables(), async |tx| {
            projection.rebuild(tx).await?;
            tx.query(store::CONSUMER_ADD, &[&name, &head.position]).await?;
            tx.query(store::CONSUMER_RESET, &[&name, &head.position, &head.at]).await.map(drop)
        })
        .await
}

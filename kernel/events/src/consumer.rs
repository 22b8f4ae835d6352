//! Durable consumers: each event at least once, in order, from where the last one stopped.
//!
//! The position is kept in PostgreSQL beside a lease token. The lease is renewed while events are handled, so slow work
//! keeps its place. A worker that lost it all the same (it slept, the database was away) finds its token outdated when it
//! tries to advance, and starts over: the event is seen twice, never lost. An event that keeps failing is parked where
//! operators see it, so that it blocks nobody behind it.

use std::time::Duration;

use db::settings::Settings;
use db::{DbError, Internal};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use types::{Clock, Timestamp};

use crate::feed::{Feed, Head, read_after};
use crate::lease::{self, Lease};
use crate::log_event::LogEvent;
use crate::settings::{CONSUMER_ATTEMPTS_MAX, CONSUMER_BACKOFF_MS, CONSUMER_COMPARE_SECONDS, SWEEP_MS};
use crate::span::continued_spans;
use crate::store;

/// Why a batch stopped: events before `position` were handled, the one at it was not.
#[derive(Debug)]
pub struct HandleError {
    pub position: i64,
    pub error: String,
    /// The other side is away: keep trying, this event is not to blame.
    pub unavailable: bool,
}

/// Someone who handles events outside the database's transaction.
pub trait Consumer: Send + Sync {
    /// Names its position; never changes.
    fn name(&self) -> &'static str;

    /// Handles events in order. May see one again after a crash: must drop duplicates by id or position.
    fn handle<'a>(&'a self, events: &'a [LogEvent]) -> BoxFuture<'a, Result<(), HandleError>>;

    /// Where to go on, given the position kept: a consumer whose target can lose data compares the two and says where
    /// to go back to. Called after taking the lease, after the other side was away, and now and then. An error means
    /// that the other side cannot be asked: nothing is handled until it can.
    fn resume<'a>(&'a self, position: i64) -> BoxFuture<'a, Result<i64, String>> {
        Box::pin(async move { Ok(position) })
    }
}

const BATCH: i64 = 500;
// fixed: upper end of the backoff; longer only hides that someone should look
const BACKOFF_MAX: Duration = Duration::from_secs(30);

struct Place<'a> {
    lease: Lease<'a>,
    position: i64,
    at: Timestamp,
    /// How often the next event has failed; kept with the place, so that a restart does not forget it.
    attempts: i32,
    /// How often in a row the other side was away. Says nothing about the event, only how long to pause.
    away: i32,
    /// When the consumer last compared its place with its target; `None` if it has to.
    compared_at: Option<Timestamp>,
}

/// Runs a consumer until told to stop. Any number of replicas may run it; one works at a time.
pub async fn run(
    consumer: &dyn Consumer,
    internal: &Internal,
    feed: &Feed,
    clock: &dyn Clock,
    settings: &Settings,
    stop: CancellationToken,
) {
    let worker = Worker { consumer, internal, feed, clock, settings };
    while !stop.is_cancelled() {
        match worker.take().await {
            Ok(Some(mut place)) => {
                if let Err(error) = worker.work(&mut place, &stop).await {
                    tracing::warn!(consumer = consumer.name(), %error, "consumer lost its place, will take it again");
                }
                place.lease.free().await;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(consumer = consumer.name(), %error, "consumer cannot take its place yet")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(SWEEP_MS.millis(settings)) => {}
            () = stop.cancelled() => {}
        }
    }
}

struct Worker<'a> {
    consumer: &'a dyn Consumer,
    internal: &'a Internal,
    feed: &'a Feed,
    clock: &'a dyn Clock,
    settings: &'a Settings,
}

impl<'a> Worker<'a> {
    async fn take(&self) -> Result<Option<Place<'a>>, DbError> {
        let name = self.consumer.name();
        self.internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_ADD_AT_OLDEST, &[&name]).await?;
        let rows = self
            .internal
            .bookkeeping_one(&["spine.consumer"], store::CONSUMER_TAKE, &[&name, &self.lease_seconds()])
            .await?;
        Ok(rows.first().map(|row| Place {
            lease: Lease { internal: self.internal, settings: self.settings, name, token: row.get(0) },
            position: row.get(1),
            at: Timestamp::UNIX_EPOCH,
            attempts: row.get(3),
            away: 0,
            compared_at: None,
        }))
    }

    async fn work(&self, place: &mut Place<'a>, stop: &CancellationToken) -> Result<(), DbError> {
        let mut head = self.feed.watch();
        while !stop.is_cancelled() {
            if self.must_compare(place) && !self.compare(place, stop).await? {
                continue;
            }
            let end = *head.borrow_and_update();
            let events: Vec<LogEvent> = match self.feed.after(place.position) {
                Some(events) => {
                    events.iter().take(BATCH as usize).map(|event| LogEvent::clone(event)).collect()
                }
                None => read_after(self.internal, place.position, place.at, BATCH).await?,
            };
            self.notice_gap(place, events.first(), end).await?;
            if !events.is_empty() {
                self.handle(place, &events, stop).await?;
                continue;
            }
            place.lease.renew(place.attempts).await?;
            let idle = Duration::from_secs_f64(self.lease_seconds() / 3.0);
            tokio::select! {
                waited = tokio::time::timeout(idle, head.changed()) => {
                    if let Ok(Err(_)) = waited { return Ok(()); }
                }
                () = stop.cancelled() => {}
            }
        }
        Ok(())
    }

    /// Positions have no gaps, so a missing one was pruned. Nobody can bring it back; what we can do is say so.
    async fn notice_gap(
        &self,
        place: &mut Place<'a>,
        next: Option<&LogEvent>,
        end: Head,
    ) -> Result<(), DbError> {
        let before = next.map_or(end.position, |event| event.position - 1);
        if before <= place.position {
            return Ok(());
        }
        let (consumer, missed) = (self.consumer.name(), place.position.abs_diff(before));
        tracing::error!(consumer, after = place.position, missed, "events were pruned before they were read");
        metrics::counter!("gpuaas_consumer_missed_events_total", "consumer" => consumer).increment(missed);
        self.advance(place, before, next.map_or(end.at, |event| event.sequenced_at)).await
    }

    fn must_compare(&self, place: &Place<'a>) -> bool {
        let period = CONSUMER_COMPARE_SECONDS.seconds(self.settings);
        place.compared_at.and_then(|at| at.checked_add(period).ok()).is_none_or(|due| due <= self.clock.now())
    }

    /// Lets the consumer compare its place with its target. False if it cannot be done yet; the pause is then over.
    async fn compare(&self, place: &mut Place<'a>, stop: &CancellationToken) -> Result<bool, DbError> {
        let name = self.consumer.name();
        let resumed = place.lease.hold(place.attempts, self.consumer.resume(place.position)).await?;
        match resumed {
            Ok(position) => {
                if position < place.position {
                    tracing::warn!(
                        consumer = name,
                        from = place.position,
                        to = position,
                        "consumer goes back"
                    );
                    metrics::counter!("gpuaas_consumer_gone_back_total", "consumer" => name).increment(1);
                }
                if position != place.position {
                    (place.position, place.at) = (position, Timestamp::UNIX_EPOCH);
                }
                place.compared_at = Some(self.clock.now());
                Ok(true)
            }
            Err(error) => {
                place.away = place.away.saturating_add(1);
                tracing::warn!(
                    consumer = name,
                    attempt = place.away,
                    error,
                    "consumer's target is away, will try again"
                );
                place.lease.renew(place.attempts).await?;
                self.pause(place.away, stop).await;
                Ok(false)
            }
        }
    }

    async fn handle(
        &self,
        place: &mut Place<'a>,
        events: &[LogEvent],
        stop: &CancellationToken,
    ) -> Result<(), DbError> {
        let name = self.consumer.name();
        let spans = continued_spans(name, events);
        let span = spans.first().cloned().unwrap_or_else(tracing::Span::none);
        let handling = self.consumer.handle(events).instrument(span);
        let outcome = place.lease.hold(place.attempts, handling).await?;
        drop(spans);
        let Err(failure) = outcome else {
            return self.advance_to(place, events.last()).await;
        };
        // Keep what was handled before the failure.
        let done = events.iter().take_while(|event| event.position < failure.position).last();
        self.advance_to(place, done).await?;
        if failure.unavailable {
            place.away = place.away.saturating_add(1);
            place.compared_at = None;
        } else {
            place.attempts = place.attempts.saturating_add(1);
        }
        let limit = i32::try_from(self.settings.get(&CONSUMER_ATTEMPTS_MAX)).unwrap_or(i32::MAX);
        let culprit = events.iter().find(|event| event.position == failure.position);
        if let (false, Some(event)) = (failure.unavailable || place.attempts < limit, culprit) {
            self.park(event, &failure.error, place.attempts).await?;
            return self.advance_to(place, Some(event)).await;
        }
        let attempt = if failure.unavailable { place.away } else { place.attempts };
        tracing::warn!(
            consumer = name,
            position = failure.position,
            attempt,
            error = failure.error,
            "event not handled, will try again"
        );
        place.lease.renew(place.attempts).await?;
        self.pause(attempt, stop).await;
        Ok(())
    }

    /// Doubles from attempt to attempt, and never outlasts the lease.
    async fn pause(&self, attempt: i32, stop: &CancellationToken) {
        let pause = CONSUMER_BACKOFF_MS.millis(self.settings)
            * 2u32.saturating_pow(attempt.clamp(1, 8).unsigned_abs() - 1);
        let longest = BACKOFF_MAX.min(Duration::from_secs_f64(self.lease_seconds() / 2.0));
        tokio::select! {
            () = tokio::time::sleep(pause.min(longest)) => {}
            () = stop.cancelled() => {}
        }
    }

    async fn advance_to(&self, place: &mut Place<'a>, event: Option<&LogEvent>) -> Result<(), DbError> {
        match event {
            Some(event) => self.advance(place, event.position, event.sequenced_at).await,
            None => Ok(()),
        }
    }

    async fn advance(&self, place: &mut Place<'a>, position: i64, at: Timestamp) -> Result<(), DbError> {
        let name = self.consumer.name();
        let params: db::Params<'_> = &[&name, &place.lease.token, &position, &at, &self.lease_seconds()];
        let rows =
            self.internal.bookkeeping_one(&["spine.consumer"], store::CONSUMER_ADVANCE, params).await?;
        if rows.is_empty() {
            return Err(lease::lost());
        }
        (place.position, place.at, place.attempts, place.away) = (position, at, 0, 0);
        metrics::gauge!("gpuaas_consumer_position", "consumer" => name).set(position as f64);
        Ok(())
    }

    async fn park(&self, event: &LogEvent, error: &str, attempts: i32) -> Result<(), DbError> {
        let name = self.consumer.name();
        tracing::error!(consumer = name, position = event.position, event = %event.id, error, "event parked");
        metrics::counter!("gpuaas_events_parked_total", "consumer" => name).increment(1);
        let params: db::Params<'_> = &[
            &name,
            &event.position,
            event.id.as_uuid(),
            &event.event_type,
            &error,
            &attempts,
            &self.clock.now(),
        ];
        self.internal.bookkeeping_one(&["spine.parked_event"], store::PARK, params).await.map(drop)
    }

    fn lease_seconds(&self) -> f64 {
        lease::seconds(self.settings).as_secs_f64()
    }
}

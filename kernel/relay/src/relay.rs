//! The consumer of the log that publishes it.

use std::sync::{Arc, Mutex, PoisonError};

use async_nats::jetstream::Context;
use db::{DbError, Internal, Settings};
use events::{Consumer, HandleError, Log, LogEvent};
use futures::future::BoxFuture;
use types::{Clock, Timestamp};

use crate::compare::{Finding, LogFacts, go_on_after};
use crate::connect::{NatsTarget, RelayError};
use crate::publish::publish;
use crate::settings::STREAM_AGE_SECONDS;
use crate::stream::{self, End, Last};

/// Publishes events to JetStream, in order, at least once. Run it with [`events::run_consumer`].
pub struct Relay {
    jetstream: Context,
    log: Log,
    settings: Settings,
    clock: Arc<dyn Clock>,
    /// The stream's last sequence as of the last comparison or acknowledgement; `None` until it is known. Nothing is
    /// published without it.
    sequence: Mutex<Option<u64>>,
}

impl Relay {
    /// Does not wait for the server: it may be away for as long as it likes.
    pub async fn new(
        target: NatsTarget,
        internal: Internal,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RelayError> {
        let jetstream = target.connect().await?;
        Ok(Self { jetstream, log: Log::new(internal), settings, clock, sequence: Mutex::new(None) })
    }

    async fn compare(&self, noted: i64) -> Result<i64, String> {
        self.set_sequence(None);
        let end = stream::end(&self.jetstream, &self.settings).await?;
        let facts =
            self.facts(noted, &end).await.map_err(|error| format!("the log cannot be read: {error}"))?;
        let (target, finding) = go_on_after(noted, &end.last, &facts);
        match finding {
            Finding::InStep => {}
            Finding::Ahead => tracing::info!(noted, target, "the NATS stream has more than was noted"),
            Finding::Behind => {
                metrics::counter!("gpuaas_relay_republished_total").increment(noted.abs_diff(target));
                tracing::warn!(noted, target, "the NATS stream lost events; they are published again");
            }
            Finding::OtherHistory => {
                tracing::error!(noted, last = ?end.last, "the NATS stream ends with a message that is not of this log");
            }
        }
        self.set_sequence(Some(end.sequence));
        Ok(target)
    }

    async fn facts(&self, noted: i64, end: &End) -> Result<LogFacts, DbError> {
        let mut facts = LogFacts { end: self.log.end().await?, event_there: None, floor: noted };
        if let Last::Ours(mark) = end.last {
            facts.event_there = self.log.event_at(mark.position).await?.map(|event| event.id);
            // The usual case. The floor is costly to find and only asked for when going back.
            if mark.position >= noted && facts.event_there == Some(mark.id) {
                return Ok(facts);
            }
        }
        let oldest = self.clock.now().checked_sub(STREAM_AGE_SECONDS.seconds(&self.settings));
        facts.floor = self.log.position_before(oldest.unwrap_or(Timestamp::UNIX_EPOCH)).await?;
        Ok(facts)
    }

    async fn publish(&self, events: &[LogEvent]) -> Result<(), HandleError> {
        let Some(first) = events.first() else { return Ok(()) };
        let Some(sequence) = self.sequence() else {
            let error = "the stream has not been compared with the log yet".to_owned();
            return Err(HandleError { position: first.position, error, unavailable: true });
        };
        // Forgotten while the batch is under way: if this task is dropped, the next comparison finds out what arrived.
        self.set_sequence(None);
        let outcome = publish(&self.jetstream, events, sequence).await;
        self.set_sequence(outcome.sequence);
        let done = outcome.failure.as_ref().map_or(events.len(), |failure| {
            events.iter().take_while(|event| event.position < failure.position).count()
        });
        metrics::counter!("gpuaas_relay_published_total").increment(done as u64);
        match outcome.failure {
            None => Ok(()),
            Some(failure) => Err(HandleError {
                position: failure.position,
                error: failure.error,
                unavailable: !failure.refused_for_good,
            }),
        }
    }

    fn sequence(&self) -> Option<u64> {
        *self.sequence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_sequence(&self, sequence: Option<u64>) {
        *self.sequence.lock().unwrap_or_else(PoisonError::into_inner) = sequence;
    }
}

impl Consumer for Relay {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn handle<'a>(&'a self, events: &'a [LogEvent]) -> BoxFuture<'a, Result<(), HandleError>> {
        Box::pin(self.publish(events))
    }

    fn resume<'a>(&'a self, position: i64) -> BoxFuture<'a, Result<i64, String>> {
        Box::pin(self.compare(position))
    }
}

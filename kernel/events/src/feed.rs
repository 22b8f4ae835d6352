//! The log's newest events in memory, read once per process, for everyone who waits.
//!
//! Subscribers pull: each keeps its own position and takes what the ring has after it. Nothing queues per client, so
//! a slow client costs nothing; one that falls out of the ring is disconnected and comes back with its cursor.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use db::settings::Settings;
use db::{DbError, Internal, Nudges, Topic};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use types::{ErrorCode, ErrorKind, Timestamp};
use uuid::Uuid;

use crate::log_event::LogEvent;
use crate::settings::SWEEP_MS;
use crate::store;

pub static CURSOR_EXPIRED: ErrorCode = ErrorCode::new(
    "cursor_expired",
    ErrorKind::Gone,
    "The events after this cursor are no longer kept",
    "Read the present state of what you follow, then start again without a cursor.",
);
pub static INVALID_CURSOR: ErrorCode = ErrorCode::new(
    "invalid_cursor",
    ErrorKind::Invalid,
    "This is not a cursor of this listing",
    "Use the cursor exactly as it was given, with the same filters, or leave it out to start at the beginning.",
);

/// A place in the log, as clients hold it: `<epoch>-<position>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventCursor {
    pub epoch: i32,
    pub position: i64,
}

impl FromStr for EventCursor {
    type Err = types::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('-').and_then(|(epoch, position)| {
            Some(Self { epoch: epoch.parse().ok()?, position: position.parse().ok().filter(|p| *p >= 0)? })
        });
        parsed.ok_or_else(|| INVALID_CURSOR.error("an event cursor looks like 1-42"))
    }
}

impl std::fmt::Display for EventCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.epoch, self.position)
    }
}

/// What a subscriber wants to see.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only this organization's events; `None` sees all.
    pub organization: Option<Uuid>,
    pub event_type: Option<String>,
    pub subject: Option<String>,
}

impl Filter {
    pub fn matches(&self, event: &LogEvent) -> bool {
        self.organization.is_none_or(|wanted| event.organization == Some(wanted))
            && self.event_type.as_ref().is_none_or(|wanted| type_matches(wanted, &event.event_type))
            && self.subject.as_ref().is_none_or(|wanted| *wanted == event.subject)
    }
}

/// `gpuaas.iam.*` matches everything below it; without the star, the whole type.
fn type_matches(wanted: &str, event_type: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(prefix) => event_type.starts_with(prefix),
        None => wanted == event_type,
    }
}

#[derive(Clone)]
pub struct Feed {
    inner: Arc<Inner>,
}

struct Inner {
    internal: Internal,
    nudges: Nudges,
    settings: Settings,
    ring: Mutex<VecDeque<Arc<LogEvent>>>,
    /// The last position read, and its epoch and time.
    head: watch::Sender<Head>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub position: i64,
    pub epoch: i32,
    pub at: Timestamp,
}

/// Events kept in memory. A bound on memory; falling out of it only costs a reconnect.
const RING: usize = 4_096;
const READ_BATCH: i64 = 1_000;

impl Feed {
    /// A feed that has not read anything yet; [`Feed::start`] puts it at the log's end.
    pub fn new(internal: Internal, nudges: Nudges, settings: Settings) -> Self {
        let nowhere = Head { position: 0, epoch: 0, at: Timestamp::UNIX_EPOCH };
        let inner =
            Inner { internal, nudges, settings, ring: Mutex::default(), head: watch::channel(nowhere).0 };
        Self { inner: Arc::new(inner) }
    }

    /// Begins at the log's present end.
    pub async fn start(&self) -> Result<(), DbError> {
        let head = read_head(&self.inner.internal).await?;
        self.inner.head.send_replace(head);
        Ok(())
    }

    /// Keeps the ring fresh until told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        let mut log = self.inner.nudges.listen(Topic::Log);
        while !stop.is_cancelled() {
            match self.pull().await {
                Ok(read) if read >= READ_BATCH as usize => continue,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "event feed could not read the log, will try again"),
            }
            tokio::select! {
                () = log.wait(SWEEP_MS.millis(&self.inner.settings)) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    async fn pull(&self) -> Result<usize, DbError> {
        let head = *self.inner.head.borrow();
        let events = read_after(&self.inner.internal, head.position, head.at, READ_BATCH).await?;
        let Some(last) = events.last() else { return Ok(0) };
        let next = Head { position: last.position, epoch: last.epoch, at: last.sequenced_at };
        let count = events.len();
        {
            let mut ring = self.inner.ring.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            ring.extend(events.into_iter().map(Arc::new));
            let excess = ring.len().saturating_sub(RING);
            ring.drain(..excess);
        }
        metrics::gauge!("gpuaas_log_position").set(next.position as f64);
        self.inner.head.send_replace(next);
        Ok(count)
    }

    /// The log's end as this process knows it.
    pub fn cursor(&self) -> EventCursor {
        let head = *self.inner.head.borrow();
        EventCursor { epoch: head.epoch, position: head.position }
    }

    /// The cursor before the oldest event kept.
    pub async fn oldest(&self) -> Result<EventCursor, DbError> {
        let head = self.cursor();
        let oldest: Option<i64> =
            self.inner.internal.query_opt(store::OLDEST, &[]).await?.map(|row| row.get(0));
        Ok(EventCursor { epoch: head.epoch, position: oldest.map_or(head.position, |position| position - 1) })
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Head> {
        self.inner.head.subscribe()
    }

    /// The events after `position` that the ring has, or `None` if it no longer reaches back that far.
    pub(crate) fn after(&self, position: i64) -> Option<Vec<Arc<LogEvent>>> {
        let head = self.inner.head.borrow().position;
        if position >= head {
            return Some(Vec::new());
        }
        let ring = self.inner.ring.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = ring.front()?.position;
        let skip = usize::try_from(position + 1 - first).ok()?;
        Some(ring.iter().skip(skip).cloned().collect())
    }

    /// Is everything after this cursor still there?
    pub async fn check(&self, cursor: EventCursor) -> types::Result<()> {
        let head = self.cursor();
        if cursor.epoch != head.epoch {
            return Err(
                CURSOR_EXPIRED.error("the log was restored from a backup since this cursor was given")
            );
        }
        if cursor.position > head.position + READ_BATCH {
            return Err(INVALID_CURSOR.error("the cursor is ahead of the log"));
        }
        if self.after(cursor.position).is_some() {
            return Ok(());
        }
        let oldest: i64 = self
            .inner
            .internal
            .query_opt(store::OLDEST, &[])
            .await?
            .map_or(head.position + 1, |row| row.get(0));
        if cursor.position + 1 < oldest {
            return Err(
                CURSOR_EXPIRED.error(format!("the oldest event still kept is at {}-{oldest}", head.epoch))
            );
        }
        Ok(())
    }

    /// Events after `cursor` that match, old ones from the database and new ones as they come, forever. Ends when
    /// the subscriber falls too far behind, when what it has not read yet is pruned, or when the feed stops.
    pub fn follow(
        &self,
        cursor: EventCursor,
        filter: Filter,
    ) -> impl futures::Stream<Item = Arc<LogEvent>> + Send + use<> {
        let start = Follow {
            feed: self.clone(),
            cursor,
            since: Timestamp::UNIX_EPOCH,
            filter,
            ready: VecDeque::new(),
            live: false,
        };
        futures::stream::unfold(start, async |mut follow| {
            loop {
                if let Some(event) = follow.ready.pop_front() {
                    return Some((event, follow));
                }
                follow.refill().await?;
            }
        })
    }
}

struct Follow {
    feed: Feed,
    cursor: EventCursor,
    /// Events after the cursor are not older than this.
    since: Timestamp,
    filter: Filter,
    ready: VecDeque<Arc<LogEvent>>,
    /// Has it caught up with the ring once? From then on it must keep up.
    live: bool,
}

impl Follow {
    async fn refill(&mut self) -> Option<()> {
        let mut head = self.feed.watch();
        let position = self.cursor.position;
        let Some(events) = self.feed.after(position) else {
            if self.live {
                tracing::info!(position, "a slow event subscriber is disconnected");
                return None;
            }
            return self.read_back().await;
        };
        self.live = true;
        if events.is_empty() {
            head.wait_for(|head| head.position > position).await.ok()?;
            return Some(());
        }
        self.take(events);
        Some(())
    }

    /// One page of the past. What other organizations did is not read: a tenant's way back is as long as its own
    /// history, not as the platform's.
    async fn read_back(&mut self) -> Option<()> {
        // Known before the page is read, so the page has everything of ours up to there.
        let head = *self.feed.inner.head.borrow();
        let internal = &self.feed.inner.internal;
        let (position, since) = (self.cursor.position, self.since);
        let page = match self.filter.organization {
            None => read_after(internal, position, since, READ_BATCH).await,
            Some(organization) => {
                let params: db::Params<'_> = &[&position, &since, &READ_BATCH, &organization];
                let rows = internal.query(store::EVENTS_OF_ORGANIZATION_AFTER, params).await;
                rows.map(|rows| rows.iter().map(LogEvent::from_row).collect())
            }
        };
        let page: Vec<_> = page.ok()?.into_iter().map(Arc::new).collect();
        // After the page: what was pruned under the reader's feet is missing in it, and must not be skipped in silence.
        self.feed.check(self.cursor).await.ok()?;
        let is_last = page.len() < READ_BATCH as usize;
        self.take(page);
        if is_last && self.cursor.position < head.position {
            (self.cursor.position, self.since) = (head.position, head.at);
        }
        Some(())
    }

    fn take(&mut self, events: Vec<Arc<LogEvent>>) {
        if let Some(last) = events.last() {
            (self.cursor.position, self.since) = (last.position, last.sequenced_at);
        }
        self.ready.extend(events.into_iter().filter(|event| self.filter.matches(event)));
    }
}

pub(crate) async fn read_head(internal: &Internal) -> Result<Head, DbError> {
    let row = internal
        .query_opt(store::HEAD, &[])
        .await?
        .ok_or_else(|| DbError::Unexpected("spine.sequencer has no row".to_owned()))?;
    Ok(Head { position: row.get(0), epoch: row.get(1), at: row.get(2) })
}

pub(crate) async fn read_after(
    internal: &Internal,
    position: i64,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<LogEvent>, DbError> {
    let rows = internal.query(store::EVENTS_AFTER, &[&position, &since, &limit]).await?;
    Ok(rows.iter().map(LogEvent::from_row).collect())
}

//! Read models: applied once, rebuilt to the same bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

use db::{Bookkeeping, DbError};
use events::{Feed, LogEvent, Projection, rebuild, run_projection};
use futures::future::BoxFuture;
use testkit::{TestDb, eventually, toy};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{sequence, sequencer, two_seconds_pass};

/// How many things each organization has.
struct Tally;

const COUNT_ONE: &str = "INSERT INTO toy.tally SELECT $1, count(*) FROM toy.thing WHERE org_id = $1
    ON CONFLICT (org_id) DO UPDATE SET things = excluded.things";
const COUNT_ALL: &str = "INSERT INTO toy.tally SELECT org_id, count(*) FROM toy.thing GROUP BY org_id";

impl Projection for Tally {
    fn name(&self) -> &'static str {
        "toy.tally"
    }

    fn tables(&self) -> &'static [&'static str] {
        &["toy.tally", "spine.consumer"]
    }

    fn apply<'a>(
        &'a self,
        tx: &'a mut Bookkeeping,
        event: &'a LogEvent,
    ) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move { tx.query(COUNT_ONE, &[&event.organization]).await.map(drop) })
    }

    fn rebuild<'a>(&'a self, tx: &'a mut Bookkeeping) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            tx.query("DELETE FROM toy.tally", &[]).await?;
            tx.query(COUNT_ALL, &[]).await.map(drop)
        })
    }
}

async fn things(test: &TestDb, round: usize) {
    for number in 0..12 {
        let (org, name) = (toy::org(number % 3 + 1), format!("{round} {number}"));
        toy::create(&test.db, &test.context("someone"), org, &name).await.unwrap();
    }
    sequence(test, &sequencer(test)).await;
}

async fn bytes(test: &TestDb) -> String {
    let sql = "SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY org_id), '') FROM toy.tally t";
    test.superuser().await.query_one(sql, &[]).await.unwrap().get(0)
}

async fn caught_up(test: &TestDb) {
    let behind = "SELECT last_position - (SELECT position FROM spine.consumer WHERE name = 'toy.tally') FROM spine.sequencer";
    eventually("the projection has caught up", async || test.count(behind).await == 0).await;
}

#[tokio::test]
async fn a_rebuild_gives_the_same_bytes_as_event_by_event() {
    let test = TestDb::kernel().await;
    test.set("events.sweep_ms", 10).await;
    things(&test, 1).await;
    let feed = Feed::new(test.db.internal("events.feed"), test.nudges.clone(), test.settings.clone());
    feed.start().await.unwrap();
    let (internal, stop) = (test.db.internal("toy.tally"), CancellationToken::new());
    let work = async {
        eventually("it has begun", async || !bytes(&test).await.is_empty()).await;
        caught_up(&test).await;
        let first = bytes(&test).await;
        assert_eq!(first.lines().count(), 3);
        rebuild(&Tally, &internal).await.unwrap();
        assert_eq!(bytes(&test).await, first, "rebuilt while it was up to date");
        // In the middle of events, and under the running projection's feet.
        things(&test, 2).await;
        rebuild(&Tally, &internal).await.unwrap();
        things(&test, 3).await;
        caught_up(&test).await;
        let incremental = bytes(&test).await;
        stop.cancel();
        incremental
    };
    let projecting = run_projection(&Tally, &internal, &feed, &test.settings, stop.clone());
    let (incremental, (), ()) = futures::join!(work, projecting, feed.run(stop.clone()));
    rebuild(&Tally, &internal).await.unwrap();
    assert_eq!(bytes(&test).await, incremental);
    assert!(incremental.ends_with(",12)"), "{incremental}");
}

/// New in an old installation, or back after a hand was in the log: what it cannot read it takes from the domain.
#[tokio::test]
async fn a_projection_that_misses_events_is_rebuilt() {
    let test = TestDb::kernel().await;
    test.set("events.sweep_ms", 10).await;
    things(&test, 1).await;
    let internal = test.db.internal("toy.tally");
    let run = async |what: &str, expected: &str| {
        let feed = Feed::new(test.db.internal("events.feed"), test.nudges.clone(), test.settings.clone());
        feed.start().await.unwrap();
        let stop = CancellationToken::new();
        let work = async {
            eventually(what, async || bytes(&test).await.matches(expected).count() == 3).await;
            caught_up(&test).await;
            stop.cancel();
        };
        let projecting = run_projection(&Tally, &internal, &feed, &test.settings, stop.clone());
        futures::join!(work, projecting, feed.run(stop.clone()));
    };
    test.run("DELETE FROM spine.log WHERE position <= 11").await;
    run("a new one has counted what the log no longer has", ",4)").await;
    things(&test, 2).await;
    test.run("DELETE FROM spine.log").await;
    run("it has noticed that everything it had to read is gone", ",8)").await;
    things(&test, 3).await;
    run("and goes on event by event", ",12)").await;
}

/// The same, but it waits to be let go.
struct SlowTally {
    begun: AtomicUsize,
    go: Semaphore,
}

impl Projection for SlowTally {
    fn name(&self) -> &'static str {
        Tally.name()
    }

    fn tables(&self) -> &'static [&'static str] {
        Tally.tables()
    }

    fn apply<'a>(
        &'a self,
        tx: &'a mut Bookkeeping,
        event: &'a LogEvent,
    ) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            let _go = self.go.acquire().await.unwrap();
            Tally.apply(tx, event).await
        })
    }

    fn rebuild<'a>(&'a self, tx: &'a mut Bookkeeping) -> BoxFuture<'a, Result<(), DbError>> {
        Tally.rebuild(tx)
    }
}

/// Without renewing, two replicas would take the lease from each other for ever, and neither would ever be done.
#[tokio::test]
async fn a_slow_projection_keeps_its_lease() {
    let test = TestDb::kernel().await;
    test.set("events.sweep_ms", 10).await;
    test.set("events.consumer_lease_seconds", 1).await;
    things(&test, 1).await;
    let feed = Feed::new(test.db.internal("events.feed"), test.nudges.clone(), test.settings.clone());
    feed.start().await.unwrap();
    let (internal, stop) = (test.db.internal("toy.tally"), CancellationToken::new());
    let slow = SlowTally { begun: AtomicUsize::new(0), go: Semaphore::new(0) };
    let work = async {
        eventually("one has begun", async || slow.begun.load(Ordering::SeqCst) == 1).await;
        two_seconds_pass(&test).await;
        assert_eq!(slow.begun.load(Ordering::SeqCst), 1, "nobody else has");
        slow.go.add_permits(1);
        eventually("it is counted", async || bytes(&test).await.matches(",4)").count() == 3).await;
        stop.cancel();
    };
    let replica = || run_projection(&slow, &internal, &feed, &test.settings, stop.clone());
    futures::join!(work, replica(), replica());
    assert_eq!(slow.begun.load(Ordering::SeqCst), 12, "each event once");
}

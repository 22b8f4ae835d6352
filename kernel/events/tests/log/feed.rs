//! Following the log: each event once, in order, from the database into memory and on.

use std::pin::pin;
use std::time::Duration;

use db::{Internal, PartitionedTable};
use events::{EventCursor, Feed, Filter};
use futures::{Stream, StreamExt as _};
use testkit::{DEADLINE, Proxy, TestDb, eventually, toy};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{happen, happen_many, sequencer};

/// A feed that is kept fresh until the guard goes.
async fn running(test: &TestDb) -> (Feed, DropGuard) {
    let feed = Feed::new(test.db.internal("events.feed"), test.nudges.clone(), test.settings.clone());
    feed.start().await.unwrap();
    let stop = CancellationToken::new();
    let (running, stopped) = (feed.clone(), stop.clone());
    tokio::spawn(async move { running.run(stopped).await });
    (feed, stop.drop_guard())
}

async fn sequence(test: &TestDb) {
    crate::sequence(test, &sequencer(test)).await;
}

async fn take(
    stream: &mut (impl Stream<Item = std::sync::Arc<events::LogEvent>> + Unpin),
    count: usize,
) -> Vec<i64> {
    let taken = stream.take(count).map(|event| event.position).collect::<Vec<_>>();
    tokio::time::timeout(DEADLINE, taken).await.expect("the events come")
}

fn range(from: i64, to: i64) -> Vec<i64> {
    (from..=to).collect()
}

fn cursor(position: i64) -> EventCursor {
    EventCursor { epoch: 1, position }
}

#[tokio::test]
async fn a_follower_sees_everything_once_from_the_past_into_the_present() {
    let test = TestDb::kernel().await;
    happen_many(&test, "past", 1_500).await.unwrap();
    sequence(&test).await;
    let (feed, _running) = running(&test).await;
    let mut follower = pin!(feed.follow(cursor(0), Filter::default()));
    assert_eq!(take(&mut follower, 700).await, range(1, 700), "from the database, in pages");
    happen_many(&test, "present", 500).await.unwrap();
    sequence(&test).await;
    eventually("the ring has them", async || feed.cursor().position == 2_000).await;
    assert_eq!(take(&mut follower, 1_300).await, range(701, 2_000), "over the boundary into the ring");
    let late = async {
        happen(&test, "future").await;
        sequence(&test).await;
    };
    let (next, ()) = futures::join!(take(&mut follower, 1), late);
    assert_eq!(next, [2_001], "and then as they come");
}

#[tokio::test]
async fn a_filter_passes_only_what_it_names() {
    let test = TestDb::kernel().await;
    for (org, name) in [(1, "a"), (2, "b"), (1, "c")] {
        toy::create(&test.db, &test.context("someone"), toy::org(org), name).await.unwrap();
    }
    sequence(&test).await;
    let (feed, _running) = running(&test).await;
    let of_one = Filter { organization: Some(toy::org(1)), ..Filter::default() };
    assert_eq!(take(&mut pin!(feed.follow(cursor(0), of_one)), 2).await, [1, 3]);
    let typed = |wanted: &str| Filter { event_type: Some(wanted.to_owned()), ..Filter::default() };
    assert_eq!(take(&mut pin!(feed.follow(cursor(1), typed("gpuaas.toy.*"))), 2).await, [2, 3]);
    let event = pin!(feed.follow(cursor(0), Filter::default())).next().await.unwrap();
    assert!(!typed("gpuaas.toy").matches(&event), "without a star, the whole type");
}

/// Its way back is as long as its own history: of the platform's many pages it reads one.
#[tokio::test]
async fn a_tenant_far_behind_reads_only_its_own_events() {
    let proxy = Proxy::start().await;
    let test = TestDb::plan_kernel().through(&proxy).start().await;
    let ours = async |name| toy::create(&test.db, &test.context("someone"), toy::org(2), name).await.unwrap();
    happen_many(&test, "theirs", 6_000).await.unwrap();
    ours("first").await;
    happen_many(&test, "theirs again", 6_000).await.unwrap();
    ours("second").await;
    happen_many(&test, "and again", 3_000).await.unwrap();
    sequence(&test).await;
    // As in production: the backstop's transaction around each read costs round trips of its own.
    let internal = Internal::new(test.db.pool().clone(), "events.feed", false);
    let feed = Feed::new(internal, test.nudges.clone(), test.settings.clone());
    feed.start().await.unwrap();
    let filter = Filter { organization: Some(toy::org(2)), ..Filter::default() };
    let mut follower = pin!(feed.follow(cursor(0), filter));
    let (positions, round_trips) = proxy.round_trips(take(&mut follower, 2)).await;
    assert_eq!(positions, [6_001, 12_002]);
    assert!(round_trips <= 4, "one page and a look at what is kept, not {round_trips} round trips");

    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let running = feed.clone();
    tokio::spawn(async move { running.run(stop).await });
    let late = async {
        ours("third").await;
        sequence(&test).await;
    };
    let (next, ()) = futures::join!(take(&mut follower, 1), late);
    assert_eq!(next, [15_003], "and then as they come");
}

/// A reader of the past must not jump over what retention takes from under its feet.
#[tokio::test]
async fn a_follower_whose_events_are_pruned_is_let_go() {
    let test = TestDb::plan_kernel().at("2026-03-05T12:00:00Z").start().await;
    let internal = test.internal(db::Login::App, "toy.partitions");
    PartitionedTable::LOG.make_ahead(&internal, test.db.now()).await.unwrap();
    happen_many(&test, "old", 1_500).await.unwrap();
    sequence(&test).await;
    test.advance(Duration::from_secs(2 * 24 * 3600));
    happen_many(&test, "new", 10).await.unwrap();
    sequence(&test).await;
    let (feed, _running) = running(&test).await;
    let of_one = Filter { organization: Some(toy::org(1)), ..Filter::default() };
    let mut everything = pin!(feed.follow(cursor(0), Filter::default()));
    let mut own = pin!(feed.follow(cursor(0), of_one));
    assert_eq!(take(&mut everything, 1_000).await, range(1, 1_000), "the first page");
    assert_eq!(take(&mut own, 1_000).await, range(1, 1_000));
    let pruned = PartitionedTable::LOG.prune(&internal, test.db.now(), Duration::from_secs(24 * 3600)).await;
    assert_eq!(pruned.unwrap(), 1);
    let (one, other) = futures::join!(everything.next(), own.next());
    assert!(one.is_none() && other.is_none(), "they come back with their cursors, and are told");
    let refused = feed.check(cursor(1_000)).await.unwrap_err();
    assert_eq!(refused.code().code, "cursor_expired");
}

/// More events than the ring holds while a follower does not look: it is let go, and comes back with its cursor.
#[tokio::test]
async fn a_slow_follower_is_let_go_and_loses_nothing() {
    let test = TestDb::kernel().await;
    let (feed, _running) = running(&test).await;
    let mut follower = pin!(feed.follow(cursor(0), Filter::default()));
    let first = async {
        happen(&test, "first").await;
        sequence(&test).await;
    };
    let (seen, ()) = futures::join!(take(&mut follower, 1), first);
    assert_eq!(seen, [1], "it is live");
    happen_many(&test, "burst", 5_000).await.unwrap();
    sequence(&test).await;
    eventually("the burst has passed the ring", async || feed.cursor().position == 5_001).await;
    let end = tokio::time::timeout(DEADLINE, follower.next()).await.expect("an answer");
    assert!(end.is_none(), "it is disconnected");

    let mut again = pin!(feed.follow(cursor(1), Filter::default()));
    assert_eq!(take(&mut again, 5_000).await, range(2, 5_001));
}

#[tokio::test]
async fn cursors_that_lead_nowhere_are_refused() {
    let test = TestDb::plan_kernel().at("2026-03-05T12:00:00Z").start().await;
    let internal = test.internal(db::Login::App, "toy.partitions");
    PartitionedTable::LOG.make_ahead(&internal, test.db.now()).await.unwrap();
    happen_many(&test, "old", 3).await.unwrap();
    sequence(&test).await;
    test.advance(Duration::from_secs(2 * 24 * 3600));
    happen_many(&test, "new", 2).await.unwrap();
    sequence(&test).await;
    let pruned = PartitionedTable::LOG.prune(&internal, test.db.now(), Duration::from_secs(24 * 3600)).await;
    assert_eq!(pruned.unwrap(), 1);

    let (feed, _running) = running(&test).await;
    let refusal = async |cursor| feed.check(cursor).await.err().map(|error| error.code().code);
    assert_eq!(refusal(cursor(2)).await, Some("cursor_expired"), "event 3 is gone");
    assert_eq!(refusal(cursor(3)).await, None, "event 4 is there");
    assert_eq!(refusal(cursor(5)).await, None, "the end");
    assert_eq!(refusal(EventCursor { epoch: 2, position: 3 }).await, Some("cursor_expired"), "another epoch");
    assert_eq!(refusal(cursor(1_000_000)).await, Some("invalid_cursor"));
    assert_eq!(feed.oldest().await.unwrap(), cursor(3));
    assert_eq!(take(&mut pin!(feed.follow(cursor(3), Filter::default())), 2).await, [4, 5]);
}

#[tokio::test]
async fn waiting_for_a_state_looks_again_when_something_happens() {
    let test = TestDb::kernel().await;
    let (feed, _running) = running(&test).await;
    let thing = toy::create(&test.db, &test.context("someone"), toy::org(1), "a").await.unwrap();
    let subject = thing.id.to_string();
    // The event about the thing has no position yet, so the first look is too early.
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let look = async || Ok(looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    let waiting = events::wait_until(&feed, &subject, DEADLINE, look, |looked| *looked >= 1);
    let (value, ()) = futures::join!(waiting, async {
        happen(&test, "somebody else").await;
        sequence(&test).await;
    });
    assert_eq!(value.unwrap(), 1);
}

//! Durable consumers: in order, at least once, and nobody blocked by one bad event.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use events::{Consumer, Feed, HandleError, LogEvent, run_consumer};
use futures::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusBuilder;
use testkit::{TestDb, eventually};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{happen_many, sequence, sequencer, two_seconds_pass};

/// What to do with an event; attempts at it so far are counted from 1.
type Judge = Box<dyn Fn(&LogEvent, usize) -> Verdict + Send + Sync>;

enum Verdict {
    Fine,
    Poison,
    Unavailable,
}

/// Notes every attempt, one permit each.
struct Recorder {
    attempts: Mutex<Vec<i64>>,
    handled: Mutex<Vec<i64>>,
    /// How often a batch was begun, and how often one has ended, one way or the other.
    begun: AtomicUsize,
    ended: AtomicUsize,
    permits: Semaphore,
    judge: Judge,
}

impl Recorder {
    fn new(judge: impl Fn(&LogEvent, usize) -> Verdict + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            attempts: Mutex::default(),
            handled: Mutex::default(),
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            permits: Semaphore::new(1_000),
            judge: Box::new(judge),
        })
    }

    fn handled(&self) -> Vec<i64> {
        self.handled.lock().unwrap().clone()
    }

    fn attempt(&self, event: &LogEvent) -> Result<(), HandleError> {
        let mut attempts = self.attempts.lock().unwrap();
        attempts.push(event.position);
        let count = attempts.iter().filter(|position| **position == event.position).count();
        let failed =
            |unavailable| HandleError { position: event.position, error: "no".to_owned(), unavailable };
        match (self.judge)(event, count) {
            Verdict::Fine => {
                self.handled.lock().unwrap().push(event.position);
                Ok(())
            }
            Verdict::Poison => Err(failed(false)),
            Verdict::Unavailable => Err(failed(true)),
        }
    }
}

impl Consumer for Recorder {
    fn name(&self) -> &'static str {
        "toy.recorder"
    }

    fn handle<'a>(&'a self, events: &'a [LogEvent]) -> BoxFuture<'a, Result<(), HandleError>> {
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            let _ended = Ended(&self.ended);
            for event in events {
                self.permits.acquire().await.unwrap().forget();
                self.attempt(event)?;
            }
            Ok(())
        })
    }
}

/// Counts when it goes, also with a future that is dropped.
struct Ended<'a>(&'a AtomicUsize);
impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

const TOKEN: &str = "SELECT coalesce(max(lease_token), 0) FROM spine.consumer";

struct Worker {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Worker {
    fn start(test: &Arc<TestDb>, recorder: &Arc<Recorder>) -> Self {
        let (test, recorder, stop) = (Arc::clone(test), Arc::clone(recorder), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let feed = Feed::new(test.db.internal("events.feed"), test.nudges.clone(), test.settings.clone());
            feed.start().await.unwrap();
            let internal = test.db.internal("toy.recorder");
            let consuming =
                run_consumer(&*recorder, &internal, &feed, &*test.clock, &test.settings, stopped.clone());
            futures::join!(consuming, feed.run(stopped.clone()));
        });
        Self { stop, task }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// As a process that is killed: nothing is given back.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

async fn with_events(count: usize) -> Arc<TestDb> {
    let test = TestDb::kernel().await;
    for (key, value) in
        [("events.sweep_ms", 10), ("events.consumer_attempts_max", 3), ("events.consumer_backoff_ms", 1)]
    {
        test.set(key, value).await;
    }
    more_events(&test, count).await;
    Arc::new(test)
}

async fn more_events(test: &TestDb, count: usize) {
    happen_many(test, "event", count).await.unwrap();
    sequence(test, &sequencer(test)).await;
}

async fn position(test: &TestDb) -> i64 {
    test.count("SELECT coalesce(max(position), 0) FROM spine.consumer WHERE name = 'toy.recorder'").await
}

async fn parked(test: &TestDb) -> Vec<(i64, i32)> {
    let sql = "SELECT position, attempts FROM spine.parked_event WHERE consumer = 'toy.recorder' ORDER BY 1";
    let rows = test.superuser().await.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn range(from: i64, to: i64) -> Vec<i64> {
    (from..=to).collect()
}

#[tokio::test]
async fn events_come_in_order_and_a_restart_resumes() {
    let test = with_events(10).await;
    let recorder = Recorder::new(|_, _| Verdict::Fine);
    let worker = Worker::start(&test, &recorder);
    eventually("ten are handled", async || position(&test).await == 10).await;
    worker.stop().await;
    more_events(&test, 5).await;
    let worker = Worker::start(&test, &recorder);
    eventually("fifteen are handled", async || position(&test).await == 15).await;
    worker.stop().await;
    assert_eq!(recorder.handled(), range(1, 15), "each once: nothing was interrupted");
}

/// Killed between handling and noting that down: the events come again, from the last noted position.
#[tokio::test]
async fn a_killed_consumer_sees_again_what_it_had_not_noted() {
    let test = with_events(10).await;
    let recorder = Recorder::new(|_, _| Verdict::Fine);
    recorder.permits.forget_permits(1_000);
    recorder.permits.add_permits(4);
    let worker = Worker::start(&test, &recorder);
    eventually("four are handled", async || recorder.handled().len() == 4).await;
    worker.kill().await;
    assert_eq!(position(&test).await, 0);

    recorder.permits.add_permits(1_000);
    // The dead one's lease has to run out; the test lets it.
    test.run("UPDATE spine.consumer SET lease_until = '-infinity'").await;
    let worker = Worker::start(&test, &recorder);
    eventually("ten are handled", async || position(&test).await == 10).await;
    worker.stop().await;
    assert_eq!(recorder.handled(), [range(1, 4), range(1, 10)].concat());
}

#[tokio::test]
async fn two_replicas_do_not_both_work() {
    let test = with_events(50).await;
    let recorder = Recorder::new(|_, _| Verdict::Fine);
    let workers = [Worker::start(&test, &recorder), Worker::start(&test, &recorder)];
    eventually("fifty are handled", async || position(&test).await == 50).await;
    more_events(&test, 50).await;
    eventually("hundred are handled", async || position(&test).await == 100).await;
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!(recorder.handled(), range(1, 100));
}

/// One event takes longer than a lease lasts: the worker keeps it, and nobody else begins the same work.
#[tokio::test]
async fn a_slow_handler_keeps_its_lease() {
    let test = with_events(3).await;
    test.set("events.consumer_lease_seconds", 1).await;
    let recorder = Recorder::new(|_, _| Verdict::Fine);
    recorder.permits.forget_permits(1_000);
    let workers = [Worker::start(&test, &recorder), Worker::start(&test, &recorder)];
    eventually("one has taken the lease", async || test.count(TOKEN).await == 1).await;
    two_seconds_pass(&test).await;
    recorder.permits.add_permits(1_000);
    eventually("all are handled", async || position(&test).await == 3).await;
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!(recorder.handled(), range(1, 3), "each once");
    assert_eq!(recorder.begun.load(Ordering::SeqCst), 1, "nobody else began");
}

/// Who has lost its lease stops where it is: the work is somebody else's now.
#[tokio::test]
async fn a_slow_handler_that_lost_its_lease_is_dropped() {
    let test = with_events(3).await;
    test.set("events.consumer_lease_seconds", 1).await;
    let slow = Recorder::new(|_, _| Verdict::Fine);
    slow.permits.forget_permits(1_000);
    let worker = Worker::start(&test, &slow);
    eventually("it has begun", async || slow.begun.load(Ordering::SeqCst) == 1).await;
    let seize = "UPDATE spine.consumer SET lease_token = lease_token + 1, lease_until = 'infinity'";
    test.run(seize).await;
    eventually("it has stopped", async || slow.ended.load(Ordering::SeqCst) == 1).await;
    assert!(slow.handled().is_empty(), "in the middle");
    worker.stop().await;
}

/// Retention never does this; a hand in the database can. Nobody can bring the events back, but it must not be silent.
#[tokio::test]
async fn a_gap_in_the_log_is_counted_and_stepped_over() {
    let metrics = PrometheusBuilder::new().build_recorder();
    let _metrics = metrics::set_default_local_recorder(&metrics);
    let test = with_events(10).await;
    test.run("INSERT INTO spine.consumer (name, position) VALUES ('toy.recorder', 2)").await;
    test.run("DELETE FROM spine.log WHERE position <= 5").await;
    let recorder = Recorder::new(|_, _| Verdict::Fine);
    let worker = Worker::start(&test, &recorder);
    eventually("the rest is handled", async || position(&test).await == 10).await;
    let missed = async |count: u32| {
        let line = format!("gpuaas_consumer_missed_events_total{{consumer=\"toy.recorder\"}} {count}\n");
        eventually("what was missed is counted", async || metrics.handle().render().contains(&line)).await;
    };
    missed(3).await;
    worker.stop().await;
    assert_eq!(recorder.handled(), range(6, 10));

    more_events(&test, 4).await;
    test.run("DELETE FROM spine.log").await;
    let worker = Worker::start(&test, &recorder);
    eventually("it is at the end of a log that is empty", async || position(&test).await == 14).await;
    missed(7).await;
    worker.stop().await;
    assert_eq!(recorder.handled(), range(6, 10));
}

/// What was there before the consumer is not a gap.
#[tokio::test]
async fn a_new_consumer_begins_with_the_oldest_event_kept() {
    let metrics = PrometheusBuilder::new().build_recorder();
    let _metrics = metrics::set_default_local_recorder(&metrics);
    let test = with_events(10).await;
    test.run("DELETE FROM spine.log WHERE position <= 5").await;
    let recorder = Recorder::new(|_, _| Verdict::Fine);
    let worker = Worker::start(&test, &recorder);
    eventually("the rest is handled", async || position(&test).await == 10).await;
    worker.stop().await;
    assert_eq!(recorder.handled(), range(6, 10));
    assert!(!metrics.handle().render().contains("gpuaas_consumer_missed_events_total"));
}

/// A worker sleeps through its lease, another takes over and gets further. When the first wakes up, its word counts
/// for nothing.
#[tokio::test]
async fn a_worker_that_lost_its_lease_cannot_move_the_position() {
    let test = with_events(10).await;
    // So long that it does not hear of its loss while it is at work.
    test.set("events.consumer_lease_seconds", 3_600).await;
    let sleeper = Recorder::new(|_, _| Verdict::Fine);
    sleeper.permits.forget_permits(1_000);
    sleeper.permits.add_permits(2);
    let asleep = Worker::start(&test, &sleeper);
    eventually("the first is in the middle", async || sleeper.handled().len() == 2).await;

    test.run("UPDATE spine.consumer SET lease_until = '-infinity'").await;
    let successor = Recorder::new(|_, _| Verdict::Fine);
    let working = Worker::start(&test, &successor);
    eventually("the second has done all", async || position(&test).await == 10).await;
    let held = test.count(TOKEN).await;
    sleeper.permits.add_permits(8);
    eventually("the first has woken up", async || sleeper.handled().len() == 10).await;
    more_events(&test, 5).await;
    eventually("the second goes on", async || position(&test).await == 15).await;
    assert_eq!(test.count(TOKEN).await, held, "the second kept its lease");
    assert_eq!(sleeper.handled(), range(1, 10), "the first got no further");
    assert_eq!(successor.handled(), range(1, 15));
    asleep.stop().await;
    working.stop().await;
}

#[tokio::test]
async fn a_poison_event_is_parked_and_the_rest_go_on() {
    let test = with_events(6).await;
    let poison = |event: &LogEvent, _| if event.position == 3 { Verdict::Poison } else { Verdict::Fine };
    let recorder = Recorder::new(poison);
    let worker = Worker::start(&test, &recorder);
    eventually("all are behind us", async || position(&test).await == 6).await;
    worker.stop().await;
    assert_eq!(parked(&test).await, [(3, 3)], "after as many attempts as the setting allows");
    assert_eq!(recorder.handled(), [1, 2, 4, 5, 6]);
}

/// The other side is away: the event is not to blame, however long it takes.
#[tokio::test]
async fn an_unavailable_target_never_parks() {
    let test = with_events(3).await;
    let away = |event: &LogEvent, attempt| {
        if event.position == 2 && attempt <= 7 { Verdict::Unavailable } else { Verdict::Fine }
    };
    let recorder = Recorder::new(away);
    let worker = Worker::start(&test, &recorder);
    eventually("all are handled", async || position(&test).await == 3).await;
    worker.stop().await;
    assert_eq!(parked(&test).await, []);
    assert_eq!(recorder.handled(), [1, 2, 3]);
}

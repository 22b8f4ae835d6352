//! Durable consumers: in order, at least once, and nobody blocked by one bad event.

use std::sync::{Arc, Mutex};

use events::{Consumer, Feed, HandleError, LogEvent, run_consumer};
use futures::future::BoxFuture;
use testkit::{TestDb, eventually};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{happen_many, sequence, sequencer};

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
    permits: Semaphore,
    judge: Judge,
}

impl Recorder {
    fn new(judge: impl Fn(&LogEvent, usize) -> Verdict + Send + Sync + 'static) -> Arc<Self> {
        let (attempts, handled) = (Mutex::default(), Mutex::default());
        Arc::new(Self { attempts, handled, permits: Semaphore::new(1_000), judge: Box::new(judge) })
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
            for event in events {
                self.permits.acquire().await.unwrap().forget();
                self.attempt(event)?;
            }
            Ok(())
        })
    }
}

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

/// A worker sleeps through its lease, another takes over and gets further. When the first wakes up, its word counts
/// for nothing.
#[tokio::test]
async fn a_worker_that_lost_its_lease_cannot_move_the_position() {
    let test = with_events(10).await;
    let sleeper = Recorder::new(|_, _| Verdict::Fine);
    sleeper.permits.forget_permits(1_000);
    sleeper.permits.add_permits(2);
    let asleep = Worker::start(&test, &sleeper);
    eventually("the first is in the middle", async || sleeper.handled().len() == 2).await;

    test.run("UPDATE spine.consumer SET lease_until = '-infinity'").await;
    let successor = Recorder::new(|_, _| Verdict::Fine);
    let working = Worker::start(&test, &successor);
    eventually("the second has done all", async || position(&test).await == 10).await;
    let token = "SELECT lease_token FROM spine.consumer";
    let held = test.count(token).await;
    sleeper.permits.add_permits(8);
    eventually("the first has woken up", async || sleeper.handled().len() == 10).await;
    more_events(&test, 5).await;
    eventually("the second goes on", async || position(&test).await == 15).await;
    assert_eq!(test.count(token).await, held, "the second kept its lease");
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

//! Positions: gapless, final, and late committers never skipped.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::toy::{self, ThingCreate};
use testkit::{PrivatePostgres, TestDb, cut_at_every_await, eventually};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{happen, happen_many, logged, sequence, sequencer};

/// A change that has its transaction id and is not committed until told; `false` rolls it back.
async fn open_change(test: &Arc<TestDb>, name: &'static str) -> (oneshot::Sender<bool>, JoinHandle<()>) {
    let (finish, finished) = oneshot::channel::<bool>();
    let (inside, is_inside) = oneshot::channel();
    let test = Arc::clone(test);
    let change = tokio::spawn(async move {
        let context = test.context("someone");
        let permit = test.permit::<ThingCreate>(&context, toy::resource(toy::org(1)));
        let outcome = test.db.change(&context, permit, async |tx| {
            let thing = toy::insert(tx, toy::org(1), name).await?;
            inside.send(()).unwrap();
            if !finished.await.unwrap() {
                return Ok(tx.unchanged(()));
            }
            Ok(tx.record(toy::created(&thing)))
        });
        outcome.await.unwrap();
    });
    is_inside.await.unwrap();
    (finish, change)
}

#[tokio::test]
async fn positions_are_gapless_although_transactions_fail() {
    let test = TestDb::kernel().await;
    let sequencer = sequencer(&test);
    for name in ["a", "b"] {
        happen(&test, name).await;
        // Takes a transaction id with it into oblivion.
        toy::create(&test.db, &test.context("someone"), toy::org(1), name).await.unwrap_err();
    }
    sequence(&test, &sequencer).await;
    assert_eq!(logged(&test).await, ["a", "b"]);
    assert_eq!(sequencer.step().await.unwrap(), 0, "nothing is moved twice");
    happen(&test, "c").await;
    sequence(&test, &sequencer).await;
    assert_eq!(logged(&test).await, ["a", "b", "c"]);
}

/// A began before B and commits after it. Whoever read B's position and not A's would never see A.
#[tokio::test]
async fn a_late_committer_is_waited_for() {
    let test = Arc::new(TestDb::kernel().await);
    let sequencer = sequencer(&test);
    happen(&test, "before").await;
    sequence(&test, &sequencer).await;
    let (finish, late) = open_change(&test, "late").await;
    happen(&test, "early").await;
    assert_eq!(sequencer.step().await.unwrap(), 0, "only what is older than every open transaction");
    assert_eq!(logged(&test).await, ["before"]);
    finish.send(true).unwrap();
    late.await.unwrap();
    sequence(&test, &sequencer).await;
    assert_eq!(logged(&test).await, ["before", "late", "early"]);
}

#[tokio::test]
async fn one_that_never_commits_only_delays() {
    let test = Arc::new(TestDb::kernel().await);
    let sequencer = sequencer(&test);
    let (finish, gone) = open_change(&test, "gone").await;
    happen(&test, "stays").await;
    assert_eq!(sequencer.step().await.unwrap(), 0);
    finish.send(false).unwrap();
    gone.await.unwrap();
    sequence(&test, &sequencer).await;
    assert_eq!(logged(&test).await, ["stays"]);
}

/// One transaction with more events than a batch holds is cut in the middle and goes on where it was cut.
#[tokio::test]
async fn a_large_transaction_takes_several_batches() {
    let test = TestDb::kernel().await;
    happen_many(&test, "event", 4_500).await.unwrap();
    let sequencer = sequencer(&test);
    let mut moved = Vec::new();
    eventually("all have positions", async || {
        moved.extend(Some(sequencer.step().await.unwrap()).filter(|count| *count > 0));
        moved.iter().sum::<i64>() == 4_500
    })
    .await;
    assert_eq!(moved, [2_000, 2_000, 500]);
    assert_eq!(logged(&test).await.into_iter().collect::<BTreeSet<_>>().len(), 4_500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sequencers_under_load_do_each_event_once() {
    const WRITERS: usize = 4;
    const EACH: usize = 60;
    let test = Arc::new(TestDb::kernel().await);
    let stop = CancellationToken::new();
    let sequencers: Vec<_> = (0..2)
        .map(|_| {
            let (sequencer, stop) = (sequencer(&test), stop.clone());
            tokio::spawn(async move { sequencer.run(stop).await })
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let test = Arc::clone(&test);
            tokio::spawn(async move {
                for number in 0..EACH {
                    happen(&test, &format!("{writer} {number:03}")).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    eventually("all events have positions", async || logged(&test).await.len() >= WRITERS * EACH).await;
    stop.cancel();
    for sequencer in sequencers {
        sequencer.await.unwrap();
    }
    let names = logged(&test).await;
    assert_eq!(names.len(), WRITERS * EACH);
    for writer in 0..WRITERS {
        let own: Vec<&String> = names.iter().filter(|name| name.starts_with(&format!("{writer} "))).collect();
        assert!(own.is_sorted() && own.len() == EACH, "the order of writer {writer} is kept");
    }
}

#[tokio::test]
async fn a_sequencer_that_dies_anywhere_loses_and_doubles_nothing() {
    let test = TestDb::kernel().await;
    let sequencer = sequencer(&test);
    happen(&test, "warm").await;
    sequencer.step().await.unwrap();
    let written = AtomicUsize::new(1);
    let cuts = cut_at_every_await(
        async || {
            happen_many(&test, "event", 3).await.unwrap();
            written.fetch_add(3, Ordering::SeqCst);
            sequencer.step().await
        },
        async |_| {
            logged(&test).await;
        },
    )
    .await;
    assert!(cuts >= 4, "there are awaits at the changes and at the sequencer's statements, not {cuts}");
    // What was cut may still hold the lock for a moment, until the server sees that its session is gone.
    let all = usize::try_from(test.count("SELECT count(*) FROM spine.outbox").await).unwrap();
    eventually("the next one finishes the work", async || {
        sequencer.step().await.unwrap();
        logged(&test).await.len() == all
    })
    .await;
    assert!(all >= written.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_restarted_and_crashed_under_load_loses_nothing() {
    let mut server = PrivatePostgres::start().await;
    let test = TestDb::plan_kernel().on(&server).start().await;
    // A crash of the server, not of the machine: what was written to the kernel stays.
    test.run(&format!("ALTER DATABASE {} SET synchronous_commit = on", test.name())).await;
    test.set("events.sweep_ms", 10).await;
    let test = Arc::new(test.reopened());
    let stop = CancellationToken::new();
    let (sequencer, stopping) = (sequencer(&test), stop.clone());
    let running = tokio::spawn(async move { sequencer.run(stopping).await });
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let writer = tokio::spawn(write_until(Arc::clone(&test), stop.clone(), Arc::clone(&acknowledged)));
    let more = async |count: usize| {
        let target = acknowledged.load(Ordering::SeqCst) + count;
        eventually("writes go on", async || acknowledged.load(Ordering::SeqCst) >= target).await;
    };
    more(20).await;
    server.restart().await;
    more(20).await;
    server.crash().await;
    more(20).await;
    stop.cancel();
    writer.await.unwrap();
    running.await.unwrap();

    let sequencer = crate::sequencer(&test);
    sequence(&test, &sequencer).await;
    let names: BTreeSet<String> = logged(&test).await.into_iter().collect();
    let count = acknowledged.load(Ordering::SeqCst);
    let expected: BTreeSet<String> = (0..count).map(|number| format!("event {number:05}")).collect();
    assert_eq!(names, expected, "acknowledged and logged are the same");
}

/// Writes one event after the other, each with a key, and repeats until it is acknowledged.
async fn write_until(test: Arc<TestDb>, stop: CancellationToken, acknowledged: Arc<AtomicUsize>) {
    while !stop.is_cancelled() {
        let name = format!("event {:05}", acknowledged.load(Ordering::SeqCst));
        while toy::create(&test.db, &test.keyed("someone", &name, "body"), toy::org(1), &name).await.is_err()
        {
            tokio::task::yield_now().await;
        }
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
}

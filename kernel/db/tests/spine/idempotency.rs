//! The same request twice: one effect, one answer, whatever happened in between.

use std::sync::Arc;
use std::time::Duration;

use db::PartitionedTable;
use testkit::toy::{self, Thing, ThingCreate};
use testkit::{Proxy, TestDb, authz, types};

async fn things(test: &TestDb) -> i64 {
    test.count("SELECT count(*) FROM toy.thing").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_twins_have_one_effect_and_one_answer() {
    let test = Arc::new(TestDb::kernel().await);
    let twins: Vec<_> = (0..50)
        .map(|_| {
            let test = Arc::clone(&test);
            tokio::spawn(async move {
                let context = test.keyed("someone", "key", "body");
                let thing = toy::create(&test.db, &context, toy::org(1), "a").await.unwrap();
                (thing, context.trail.was_replayed())
            })
        })
        .collect();
    let mut answers: Vec<(Thing, bool)> = Vec::new();
    for twin in twins {
        answers.push(twin.await.unwrap());
    }
    assert!(answers.iter().all(|(thing, _)| *thing == answers[0].0));
    assert_eq!(answers.iter().filter(|(_, replayed)| !replayed).count(), 1);
    assert_eq!(things(&test).await, 1);
}

#[tokio::test]
async fn another_body_under_the_same_key_is_refused() {
    let test = TestDb::kernel().await;
    toy::create(&test.db, &test.keyed("someone", "key", "body"), toy::org(1), "a").await.unwrap();
    let reused = toy::create(&test.db, &test.keyed("someone", "key", "other body"), toy::org(1), "b").await;
    assert_eq!(reused.unwrap_err().code().code, "idempotency_key_reused");
    assert_eq!(things(&test).await, 1);
}

#[tokio::test]
async fn keys_of_different_callers_never_meet() {
    let test = TestDb::kernel().await;
    for (user, name) in [("one", "a"), ("other", "b")] {
        let context = test.keyed(user, "key", "body");
        let thing = toy::create(&test.db, &context, toy::org(1), name).await.unwrap();
        assert_eq!((thing.name.as_str(), context.trail.was_replayed()), (name, false));
    }
    assert_eq!(things(&test).await, 2);
}

/// The server committed and died before it answered: the caller cannot know, asks again, and gets the first answer.
#[tokio::test]
async fn a_lost_answer_is_found_again() {
    let proxy = Proxy::start().await;
    let test = TestDb::plan_kernel().connections(1).through(&proxy).start().await;
    toy::create(&test.db, &test.context("someone"), toy::org(1), "warm").await.unwrap();

    proxy.lose_next_commit_reply();
    let lost = toy::create(&test.db, &test.keyed("someone", "key", "body"), toy::org(1), "a").await;
    assert_eq!(lost.unwrap_err().code().code, "commit_unknown");
    assert_eq!(things(&test).await, 2, "it was committed all the same");

    let again = test.keyed("someone", "key", "body");
    let thing = toy::create(&test.db, &again, toy::org(1), "a").await.unwrap();
    assert!(again.trail.was_replayed());
    let id = *thing.id.as_uuid();
    let known = "SELECT count(*) FROM toy.thing WHERE id = $1";
    assert_eq!(test.superuser().await.query_one(known, &[&id]).await.unwrap().get::<_, i64>(0), 1);
    assert_eq!(things(&test).await, 2);
}

#[tokio::test]
async fn a_twin_waits_and_is_then_told_that_the_first_is_not_done() {
    let test = Arc::new(TestDb::kernel().await);
    // As the login has it, only shorter: two seconds of waiting teach nothing more.
    test.run(&format!("ALTER ROLE test_app IN DATABASE {} SET lock_timeout = '100ms'", test.name())).await;
    let (hold, held) = tokio::sync::oneshot::channel::<()>();
    let (inside, is_inside) = tokio::sync::oneshot::channel();
    let first = {
        let test = Arc::clone(&test);
        tokio::spawn(async move {
            let context = test.keyed("someone", "key", "body");
            let permit = test.permit::<ThingCreate>(&context, toy::resource(toy::org(1)));
            test.db
                .change(&context, permit, async |tx| {
                    let thing = toy::insert(tx, toy::org(1), "a").await?;
                    inside.send(()).unwrap();
                    held.await.unwrap();
                    Ok(tx.record(toy::created(&thing)).with(thing))
                })
                .await
        })
    };
    is_inside.await.unwrap();
    let twin = toy::create(&test.db, &test.keyed("someone", "key", "body"), toy::org(1), "a").await;
    let error = twin.unwrap_err();
    assert_eq!(error.code().code, "idempotency_in_progress");
    assert!(error.retry_after_ms().is_some());

    hold.send(()).unwrap();
    let original = first.await.unwrap().unwrap();
    let late = toy::create(&test.db, &test.keyed("someone", "key", "body"), toy::org(1), "a").await;
    assert_eq!(late.unwrap(), original);
}

#[tokio::test]
async fn a_failure_is_not_kept() {
    let test = TestDb::kernel().await;
    toy::create(&test.db, &test.context("someone"), toy::org(1), "taken").await.unwrap();
    toy::create(&test.db, &test.keyed("someone", "key", "body"), toy::org(1), "taken").await.unwrap_err();
    let again = test.keyed("someone", "key", "body");
    toy::create(&test.db, &again, toy::org(1), "free").await.unwrap();
    assert!(!again.trail.was_replayed());
    assert_eq!(things(&test).await, 2);
}

/// The look-up travels with the first statement; a change without statements must make it all the same.
#[tokio::test]
async fn a_change_that_only_records_is_replayed_too() {
    let test = TestDb::kernel().await;
    let record = async || -> types::Result<(u32, bool)> {
        let context: authz::Context = test.keyed("someone", "key", "body");
        let permit = test.permit::<ThingCreate>(&context, toy::resource(toy::org(1)));
        let thing = Thing { id: test.db.make_id(), org: toy::org(1), name: "a".to_owned() };
        let work = test.db.change(&context, permit, async |tx| Ok(tx.record(toy::created(&thing)).with(41)));
        Ok((work.await?, context.trail.was_replayed()))
    };
    assert_eq!(record().await.unwrap(), (41, false));
    assert_eq!(record().await.unwrap(), (41, true));
    assert_eq!(test.count("SELECT count(*) FROM spine.audit_entry").await, 1);
}

/// The table is partitioned by day and a unique index cannot span partitions: midnight must not make a twin a stranger.
#[tokio::test]
async fn a_retry_after_midnight_is_a_retry() {
    let test = TestDb::plan_kernel().at("2026-01-31T23:59:59Z").start().await;
    let internal = test.db.internal("toy.partitions");
    PartitionedTable::IDEMPOTENCY.make_ahead(&internal, test.db.now()).await.unwrap();
    let ask = async || {
        let context = test.keyed("someone", "key", "body");
        let thing = toy::create(&test.db, &context, toy::org(1), "a").await;
        (thing.map(|thing| thing.id), context.trail.was_replayed())
    };
    let (first, _) = ask().await;
    let first = first.unwrap();
    assert_eq!(test.count("SELECT count(*) FROM spine.idempotency_20260131").await, 1);

    test.advance(Duration::from_secs(2));
    let (second, replayed) = ask().await;
    assert_eq!((second.unwrap(), replayed), (first, true));

    // A day after the first: the promise is over, and the request is a new one (whose name is taken).
    test.advance(Duration::from_secs(24 * 3600));
    let (late, replayed) = ask().await;
    assert!(late.is_err() && !replayed);
}

/// A key is used again when its day is over; a server whose clock is a little behind still sees the first answer as well.
#[tokio::test]
async fn of_two_answers_under_one_key_the_newer_counts() {
    let test = TestDb::plan_kernel().at("2026-01-31T12:00:00Z").start().await;
    let ask = async |name: &str| {
        let context = test.keyed("someone", "key", "body");
        let thing = toy::create(&test.db, &context, toy::org(1), name).await.unwrap();
        (thing.id, context.trail.was_replayed())
    };
    ask("first").await;
    test.advance(Duration::from_secs(24 * 3600));
    let (second, replayed) = ask("second").await;
    assert!(!replayed);
    let behind = "UPDATE spine.idempotency SET at = at + interval '1 second'";
    test.run(behind).await;
    assert_eq!(ask("third").await, (second, true));
    assert_eq!(things(&test).await, 2);
}

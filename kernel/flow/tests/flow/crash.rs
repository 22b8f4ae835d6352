//! Twice, interrupted, overtaken: the work is done once all the same.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use testkit::{cut_after, eventually};

use crate::trip::{Leg, Travel, World, runner};

#[tokio::test]
async fn a_flow_goes_through_its_states_and_ends() {
    let travel = Travel::new().await;
    travel.start("a", Leg::Packing).await;
    assert_eq!(travel.runner.run_once().await.unwrap(), 1);
    assert_eq!(travel.seen(), ["packing", "packing", "travelling", "home"]);
    assert!(travel.is_done("a").await);
    assert_eq!(travel.arrivals().await, 1);
    // The change it made says who made it, and why.
    let sql = "SELECT count(*) FROM spine.audit_entry WHERE actor_kind = 'system' AND actor_id = 'toy.trip'
               AND causation_id = 'flow:' || (SELECT id FROM spine.flow)";
    assert_eq!(travel.test.count(sql).await, 1);
}

#[tokio::test]
async fn every_effect_may_run_twice() {
    let travel = Travel::new().await;
    travel.world.twice.store(true, Ordering::SeqCst);
    travel.start("a", Leg::Packing).await;
    travel.runner.run_once().await.unwrap();
    assert_eq!(travel.world.packed.load(Ordering::SeqCst), 2, "the effect did run twice");
    assert!(travel.is_done("a").await);
    assert_eq!(travel.arrivals().await, 1, "the second arrival found that the flow had moved");
}

/// A worker dies at each of its awaits in turn; the next one finishes. Whatever was cut, the domain changed once.
#[tokio::test]
async fn a_crash_anywhere_is_taken_up_by_the_next_worker() {
    let travel = Travel::new().await;
    let mut trips = 0;
    travel.start("warm", Leg::Packing).await;
    travel.runner.run_once().await.unwrap();
    // Each trip is cut one await later than the one before, and finished by the next worker.
    for cut in 1.. {
        let key = format!("trip {cut}");
        travel.world.packed.store(0, Ordering::SeqCst);
        travel.start(&key, Leg::Packing).await;
        trips += 1;
        let finished = cut_after(cut, travel.runner.run_once()).await.is_some();
        eventually("the next worker finishes it", async || {
            travel.expire_leases().await;
            travel.runner.run_once().await.unwrap();
            travel.is_done(&key).await
        })
        .await;
        assert_eq!(travel.arrivals().await, trips + 1, "cut at await {cut}");
        if finished {
            assert!(cut > 6, "there are more awaits than {cut} in a trip");
            return;
        }
    }
}

/// A worker sleeps in the middle of its effect, loses its lease, and another does the work. What the first one then
/// commits must not count: its fence is behind.
#[tokio::test]
async fn a_worker_that_lost_its_lease_changes_nothing() {
    let travel = Travel::new().await;
    travel.world.may_arrive.forget_permits(1_000);
    travel.start("a", Leg::Packing).await;
    let sleeper = {
        let runner = runner(&travel.test, &travel.world);
        tokio::spawn(async move { runner.run_once().await })
    };
    eventually("the first is about to arrive", async || travel.seen().last() == Some(&"travelling")).await;
    travel.expire_leases().await;
    let successor = {
        let runner = runner(&travel.test, &travel.world);
        tokio::spawn(async move { runner.run_once().await })
    };
    let travelling = |seen: Vec<&str>| seen.iter().filter(|leg| **leg == "travelling").count();
    eventually("the second is about to arrive", async || travelling(travel.seen()) == 2).await;
    travel.world.may_arrive.add_permits(2);
    assert_eq!((sleeper.await.unwrap().unwrap(), successor.await.unwrap().unwrap()), (1, 1));
    assert_eq!(travel.arrivals().await, 1);
    assert!(travel.is_done("a").await);
}

/// The same with a change that does not move the flow, so that no transition refuses it.
#[tokio::test]
async fn a_worker_that_lost_its_lease_changes_nothing_on_the_way_either() {
    let travel = Travel::new().await;
    travel.world.writes_home.store(true, Ordering::SeqCst);
    travel.world.may_arrive.forget_permits(1_000);
    travel.start("a", Leg::Travelling).await;
    let worker = || {
        let runner = runner(&travel.test, &travel.world);
        tokio::spawn(async move { runner.run_once().await })
    };
    let sleeper = worker();
    eventually("the first is about to write", async || travel.seen().len() == 1).await;
    travel.expire_leases().await;
    let successor = worker();
    eventually("the second is about to write", async || travel.seen().len() == 2).await;
    travel.world.may_arrive.add_permits(1);
    assert_eq!(sleeper.await.unwrap().unwrap(), 1);
    assert_eq!(travel.arrivals().await, 0, "it wrote home under the other's lease");
    travel.world.may_arrive.add_permits(1);
    assert_eq!(successor.await.unwrap().unwrap(), 1);
    assert_eq!(travel.arrivals().await, 2, "a letter and an arrival");
    assert!(travel.is_done("a").await);
}

/// PostgreSQL crashes and takes back a lease that was not on disk yet; another worker leases the flow from the same row.
/// The first must neither renew the other's lease and act (`Packing`), nor give it back (`Travelling`).
#[tokio::test]
async fn a_lease_that_a_crash_took_back_is_not_the_next_workers() {
    for leg in [Leg::Packing, Leg::Travelling] {
        let travel = Travel::new().await;
        travel.start("a", leg).await;
        travel
            .test
            .run("CREATE TABLE public.on_disk AS SELECT lease_token, lease_until FROM spine.flow")
            .await;
        let (first, first_world) = observing(&travel).await;
        let crash = "UPDATE spine.flow f SET lease_token = d.lease_token, lease_until = d.lease_until FROM public.on_disk d";
        travel.test.run(crash).await;
        let (second, second_world) = observing(&travel).await;

        first_world.may_rest.add_permits(1);
        assert_eq!(first.await.unwrap().unwrap(), 1);
        assert_eq!(first_world.packed.load(Ordering::SeqCst), 0, "it acted under the other's lease");
        let held = "SELECT count(*) FROM spine.flow WHERE lease_until > clock_timestamp() AND attempts = 0";
        assert_eq!(travel.test.count(held).await, 1, "it gave the other's lease back");
        second_world.may_rest.add_permits(1);
        assert_eq!(second.await.unwrap().unwrap(), 1);
        let waits = "SELECT count(*) FROM spine.flow WHERE waiting_for = 'the gate'";
        assert_eq!(travel.test.count(waits).await, 1, "the second did the work");
    }
}

type Run = tokio::task::JoinHandle<Result<usize, db::DbError>>;

/// A worker with a world of its own, whose gate is closed; it has leased the flow and is held while it observes.
async fn observing(travel: &Travel) -> (Run, Arc<World>) {
    let world = Arc::new(World::open());
    world.gate_open.store(false, Ordering::SeqCst);
    world.may_rest.forget_permits(1_000);
    let runner = runner(&travel.test, &world);
    let run = tokio::spawn(async move { runner.run_once().await });
    eventually("it observes", async || !world.seen.lock().unwrap().is_empty()).await;
    (run, world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_share_the_flows() {
    let travel = Arc::new(Travel::new().await);
    for number in 0..40 {
        travel.start(&format!("trip {number}"), Leg::Packing).await;
    }
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let runner = runner(&travel.test, &travel.world);
            tokio::spawn(async move { runner.run_once().await.unwrap() })
        })
        .collect();
    let mut leased = 0;
    for worker in workers {
        leased += worker.await.unwrap();
    }
    assert_eq!(leased, 40, "no flow was leased by both");
    assert_eq!(travel.arrivals().await, 40);
}

/// An effect takes longer than a lease lasts. Its worker is alive and keeps the lease, so nobody does the work again.
#[tokio::test]
async fn a_long_effect_keeps_its_lease() {
    let travel = Travel::new().await;
    travel.test.set("flow.lease_seconds", 1).await;
    travel.world.may_arrive.forget_permits(1_000);
    travel.start("a", Leg::Travelling).await;
    let worker = {
        let runner = runner(&travel.test, &travel.world);
        tokio::spawn(async move { runner.run_once().await })
    };
    eventually("the worker has leased it", async || {
        travel.test.count("SELECT count(*) FROM spine.flow WHERE lease_until > clock_timestamp()").await == 1
    })
    .await;
    travel.test.run("CREATE TABLE public.first_lease AS SELECT lease_until FROM spine.flow").await;
    eventually("the first lease would be over", async || {
        travel
            .test
            .count("SELECT count(*) FROM public.first_lease WHERE lease_until < clock_timestamp()")
            .await
            == 1
    })
    .await;
    let second = tokio::time::timeout(Duration::from_secs(10), travel.runner.run_once());
    assert_eq!(second.await.expect("it took the flow and waits").unwrap(), 0, "the worker still has it");
    travel.world.may_arrive.add_permits(1);
    assert_eq!(worker.await.unwrap().unwrap(), 1);
    assert_eq!(travel.arrivals().await, 1);
    assert!(travel.is_done("a").await);
}

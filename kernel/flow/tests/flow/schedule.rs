//! When a flow runs: when it is due, when it is woken, later after a failure; and who hears that it is late.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{Counter, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use testkit::eventually;
use tokio_util::sync::CancellationToken;

use crate::trip::{Leg, Travel, runner};

#[tokio::test]
async fn one_live_flow_per_key() {
    let travel = Travel::new().await;
    travel.start("a", Leg::Packing).await;
    travel.start("a", Leg::Packing).await;
    travel.start("b", Leg::Packing).await;
    assert_eq!(travel.runner.run_once().await.unwrap(), 2);
    travel.start("a", Leg::Packing).await;
    assert_eq!(travel.runner.run_once().await.unwrap(), 1, "the first has ended: this is a new one");
    assert_eq!(travel.test.count("SELECT count(*) FROM spine.flow").await, 3);
}

#[tokio::test]
async fn a_waiting_flow_looks_again_when_it_is_due_or_woken() {
    let travel = Travel::new().await;
    travel.world.gate_open.store(false, Ordering::SeqCst);
    travel.start("a", Leg::Packing).await;
    travel.start("b", Leg::Packing).await;
    assert_eq!(travel.runner.run_once().await.unwrap(), 2);
    assert_eq!(travel.flow("a").await, ("travelling".to_owned(), false, 0, 3600.0));
    assert_eq!(travel.runner.run_once().await.unwrap(), 0, "neither is due");
    let reason = "SELECT count(*) FROM spine.flow WHERE waiting_for = 'the gate'";
    assert_eq!(travel.test.count(reason).await, 2);

    travel.world.gate_open.store(true, Ordering::SeqCst);
    travel.wake("a").await;
    assert_eq!(travel.runner.run_once().await.unwrap(), 1, "woken");
    assert_eq!((travel.is_done("a").await, travel.is_done("b").await), (true, false));
    travel.test.advance(Duration::from_secs(3600));
    assert_eq!(travel.runner.run_once().await.unwrap(), 1, "due");
    assert_eq!(travel.arrivals().await, 2);
}

/// The gate opens, and the flow is woken, after a worker has seen it closed and before it has noted that it waits.
/// The worker must not sleep over it: for an hour, here.
#[tokio::test]
async fn a_wake_up_between_looking_and_resting_is_not_lost() {
    let travel = Travel::new().await;
    travel.world.gate_open.store(false, Ordering::SeqCst);
    travel.start("a", Leg::Travelling).await;
    travel.world.may_rest.forget_permits(1_000);
    let looking = {
        let runner = runner(&travel.test, &travel.world);
        tokio::spawn(async move { runner.run_once().await })
    };
    eventually("the worker has looked", async || travel.seen() == ["travelling"]).await;
    travel.world.gate_open.store(true, Ordering::SeqCst);
    travel.wake("a").await;
    travel.world.may_rest.add_permits(1_000);
    looking.await.unwrap().unwrap();
    travel.runner.run_once().await.unwrap();
    assert!(travel.is_done("a").await, "it is due at once");
}

/// The same at the end: whoever begins a flow while the old one decides that it is done, wants another look.
#[tokio::test]
async fn a_flow_begun_again_while_it_ends_is_asked_again() {
    let travel = Travel::new().await;
    travel.start("a", Leg::Home).await;
    travel.world.may_rest.forget_permits(1_000);
    let ending = {
        let runner = runner(&travel.test, &travel.world);
        tokio::spawn(async move { runner.run_once().await })
    };
    eventually("the worker has looked", async || travel.seen() == ["home"]).await;
    travel.start("a", Leg::Home).await;
    travel.world.may_rest.add_permits(1_000);
    ending.await.unwrap().unwrap();
    assert!(!travel.is_done("a").await, "it did not end on what it had seen before");
    assert_eq!(travel.runner.run_once().await.unwrap(), 1);
    assert!(travel.is_done("a").await);
}

/// The sweep is an hour away: only the nudge after the commit can be what starts it.
#[tokio::test]
async fn a_running_worker_is_nudged_by_the_commit() {
    let travel = Travel::new().await;
    travel.test.set("flow.sweep_ms", 3_600_000).await;
    let stop = CancellationToken::new();
    let (worker, stopped) = (runner(&travel.test, &travel.world), stop.clone());
    let running = tokio::spawn(async move { worker.run(stopped).await });
    for key in ["a", "b"] {
        travel.start(key, Leg::Packing).await;
        eventually("it is done", async || travel.is_done(key).await).await;
    }
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn failures_are_retried_after_growing_pauses() {
    let travel = Travel::new().await;
    travel.world.failures.store(3, Ordering::SeqCst);
    travel.start("a", Leg::Packing).await;
    for (attempt, pause) in [(1, 0.25), (2, 0.5), (3, 1.0)] {
        assert_eq!(travel.runner.run_once().await.unwrap(), 1);
        assert_eq!(travel.flow("a").await, ("packing".to_owned(), false, attempt, pause));
        assert_eq!(travel.runner.run_once().await.unwrap(), 0, "not before the pause is over");
        travel.test.advance(Duration::from_secs_f64(pause));
    }
    let told = "SELECT count(*) FROM spine.flow WHERE last_error LIKE '%toy_delayed: not yet%'";
    assert_eq!(travel.test.count(told).await, 1);
    travel.runner.run_once().await.unwrap();
    let (_, done, attempts, _) = travel.flow("a").await;
    assert_eq!((done, attempts), (true, 0));
}

/// A machine that runs in circles gives its place up, and says why.
#[tokio::test]
async fn a_flow_that_never_rests_is_stopped() {
    let travel = Travel::new().await;
    travel.start("a", Leg::Lost).await;
    travel.runner.run_once().await.unwrap();
    assert_eq!(travel.seen().len(), 100);
    assert_eq!(travel.flow("a").await, ("lost".to_owned(), false, 1, 0.25));
    let told = "SELECT count(*) FROM spine.flow WHERE last_error LIKE '%100 steps%'";
    assert_eq!(travel.test.count(told).await, 1);
}

#[tokio::test]
async fn a_late_flow_is_counted_with_its_state_and_owner_and_a_finished_one_forgotten() {
    let travel = Travel::new().await;
    travel.world.gate_open.store(false, Ordering::SeqCst);
    travel.start("waits", Leg::Packing).await;
    travel.start("ends", Leg::Home).await;
    travel.runner.run_once().await.unwrap();
    let gauges = Gauges::default();
    let _installed = metrics::set_default_local_recorder(&gauges);
    let overdue = async || {
        travel.runner.look_after().await.unwrap();
        let gauges = gauges.0.lock().unwrap();
        (
            gauges["kind=toy.trip state=travelling owner=travellers"],
            gauges["kind=toy.trip state=packing owner=travellers"],
        )
    };
    assert_eq!(overdue().await, (0.0, 0.0));
    travel.test.advance(Duration::from_secs(61));
    assert_eq!(overdue().await, (1.0, 0.0));
    assert_eq!(travel.test.count("SELECT count(*) FROM spine.flow").await, 2);
    travel.test.advance(Duration::from_secs(8 * 24 * 3600));
    overdue().await;
    assert_eq!(travel.test.count("SELECT count(*) FROM spine.flow").await, 1, "the finished one is gone");
}

/// The last value of each gauge, by its labels.
#[derive(Default, Clone)]
struct Gauges(Arc<Mutex<HashMap<String, f64>>>);

struct Slot(Gauges, String);

impl GaugeFn for Slot {
    fn increment(&self, _: f64) {}
    fn decrement(&self, _: f64) {}
    fn set(&self, value: f64) {
        self.0.0.lock().unwrap().insert(self.1.clone(), value);
    }
}

impl Recorder for Gauges {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Gauge::from_arc(Arc::new(Slot(self.clone(), labels.join(" "))))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

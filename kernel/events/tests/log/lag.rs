//! How late everyone is, as an operator sees it.

use std::time::Duration;

use db::Login;
use events::{lags, measure};
use metrics_exporter_prometheus::PrometheusBuilder;
use testkit::TestDb;

use crate::{happen, happen_many, sequence, sequencer};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn the_gauges_tell_who_waits_for_what_and_how_long() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let test = TestDb::plan_kernel().at("2026-03-05T12:00:00Z").start().await;
    let internal = test.internal(Login::Relay, "events.lag");
    let gauges = async || {
        measure(&internal, &*test.clock, &test.settings).await.unwrap();
        let text = recorder.handle().render();
        move |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
        }
    };
    assert_eq!(gauges().await("gpuaas_outbox_oldest_seconds"), 0.0);
    happen(&test, "first").await;
    test.advance(Duration::from_secs(40));
    happen(&test, "second").await;
    test.advance(Duration::from_secs(2));
    assert_eq!(gauges().await("gpuaas_outbox_oldest_seconds"), 42.0);

    sequence(&test, &sequencer(&test)).await;
    test.advance(Duration::from_secs(8));
    happen_many(&test, "more", 3).await.unwrap();
    sequence(&test, &sequencer(&test)).await;
    test.run("INSERT INTO spine.consumer (name, position) VALUES ('ready', 5), ('slow', 1)").await;
    test.advance(Duration::from_secs(10));
    let now = gauges().await;
    assert_eq!(now("gpuaas_outbox_oldest_seconds"), 0.0);
    assert_eq!(now("gpuaas_consumer_lag_positions{consumer=\"slow\"}"), 4.0);
    assert_eq!(now("gpuaas_consumer_lag_seconds{consumer=\"slow\"}"), 18.0);
    assert_eq!(now("gpuaas_consumer_lag_positions{consumer=\"ready\"}"), 0.0);
    assert_eq!(now("gpuaas_consumer_lag_seconds{consumer=\"ready\"}"), 0.0);
    assert_eq!(now("gpuaas_log_held_back_seconds{consumer=\"slow\"}"), 0.0);

    test.advance(31 * DAY);
    let now = gauges().await;
    assert_eq!(now("gpuaas_log_held_back_seconds{consumer=\"slow\"}"), 18.0 + 24.0 * 3600.0);
    assert_eq!(now("gpuaas_log_held_back_seconds{consumer=\"ready\"}"), 0.0);
    // The worker that prunes reads the same with its own login.
    let seen = lags(&test.db.internal("toy.partitions")).await.unwrap();
    assert_eq!(seen, lags(&internal).await.unwrap());
    assert!(seen[1].holds_back(test.db.now(), &test.settings).is_some());
}

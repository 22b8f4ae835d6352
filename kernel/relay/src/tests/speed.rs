//! How fast a backlog is relayed. A measurement, not a test: `cargo test --release -p relay -- --ignored --nocapture`.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use super::nats::Nats;
use super::stage::{Stage, until};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn events_per_second() {
    const COUNT: i64 = 100_000;
    let stage = Stage::new().await;
    let mut nats = Nats::new("");
    nats.start().await;
    stage.write(COUNT).await;
    let begun = Instant::now();
    let relay = stage.start_relay(nats.target()).await;
    let database = stage.superuser("gpuaas").await;
    let relayed = "SELECT coalesce(max(position), 0) FROM spine.consumer WHERE name = 'nats'";
    until("all are relayed", async || {
        database.query_one(relayed, &[]).await.unwrap().get::<_, i64>(0) >= COUNT
    })
    .await;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{COUNT} events sequenced and relayed in {seconds:.2} s: {:.0}/s", COUNT as f64 / seconds);
    relay.stop().await;
}

//! The stream has every event once and in order, whatever breaks meanwhile.

use std::collections::HashMap;

use testkit::eventually;

use super::nats::{Nats, Seen};
use super::stage::Stage;

/// Every position from 1 to `count`, and each resource's generations growing.
fn check(seen: &[Seen], count: i64) {
    let positions: Vec<i64> = seen.iter().map(|it| it.mark.position).collect();
    assert_eq!(positions, (1..=count).collect::<Vec<i64>>(), "an event is missing or out of order");
    let mut generations: HashMap<&str, i64> = HashMap::new();
    for it in seen {
        let before = generations.insert(&it.resource, it.generation);
        assert!(before.is_none_or(|before| before < it.generation), "{it:?} comes after {before:?}");
    }
}

async fn started(options: &str) -> (Stage, Nats) {
    let stage = Stage::new().await;
    let mut nats = Nats::new(options);
    nats.start().await;
    (stage, nats)
}

#[tokio::test]
async fn restarts_of_everything_lose_nothing() {
    let (mut stage, mut nats) = started("").await;
    let relay = stage.start_relay(nats.target()).await;
    stage.write(1_500).await;
    eventually("some are relayed", async || stage.relayed().await > 0).await;
    nats.restart().await;
    stage.write(700).await;
    relay.kill().await;
    let relay = stage.start_relay(nats.target()).await;
    stage.write(1_300).await;
    eventually("some more are relayed", async || stage.relayed().await > 1_500).await;
    stage.restart_postgres().await;
    stage.write(500).await;
    nats.restart().await;
    relay.stop().await;
    let relay = stage.start_relay(nats.target()).await;
    stage.until_relayed(4_000).await;
    check(&nats.read_until(4_000).await, 4_000);
    relay.stop().await;
}

#[tokio::test]
async fn a_wiped_store_is_filled_again() {
    let (stage, mut nats) = started("").await;
    let relay = stage.start_relay(nats.target()).await;
    stage.write(1_000).await;
    stage.until_relayed(1_000).await;
    // Once while nothing happens, and once in the middle of a run.
    nats.wipe().await;
    eventually("the stream is filled again", async || nats.last_sequence().await == 1_000).await;
    check(&nats.read_until(1_000).await, 1_000);
    stage.write(2_000).await;
    eventually("some are relayed", async || stage.relayed().await > 1_000).await;
    nats.wipe().await;
    stage.write(500).await;
    eventually("the stream is filled again", async || nats.last_sequence().await >= 3_500).await;
    check(&nats.read_until(3_500).await, 3_500);
    relay.stop().await;
}

#[tokio::test]
async fn a_stream_that_lost_its_end_gets_it_back_before_anything_newer() {
    let (stage, mut nats) = started("").await;
    let relay = stage.start_relay(nats.target()).await;
    stage.write(300).await;
    stage.until_relayed(300).await;
    nats.kill().await;
    let (store, kept) = (nats.store(), nats.store().with_file_name("kept"));
    copy(&store, &kept);
    nats.start().await;
    stage.write(200).await;
    stage.until_relayed(500).await;
    relay.stop().await;
    // What a machine that lost its power may come back with: the older state, as if the rest had never been synced.
    nats.kill().await;
    std::fs::remove_dir_all(&store).unwrap();
    std::fs::rename(&kept, &store).unwrap();
    nats.start().await;
    assert_eq!(nats.last_sequence().await, 300);
    stage.write(100).await;
    let relay = stage.start_relay(nats.target()).await;
    eventually("all are there", async || nats.last_sequence().await == 600).await;
    check(&nats.read_until(600).await, 600);
    relay.stop().await;
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_is_waited_for() {
    let stage = Stage::new().await;
    let mut nats = Nats::new("");
    let relay = stage.start_relay(nats.target()).await;
    stage.write(200).await;
    let attempts = "SELECT count(*) FROM spine.log";
    let database = stage.superuser("gpuaas").await;
    eventually("the log has them", async || {
        database.query_one(attempts, &[]).await.unwrap().get::<_, i64>(0) == 200
    })
    .await;
    assert_eq!(stage.relayed().await, 0);
    nats.start().await;
    stage.until_relayed(200).await;
    check(&nats.read_until(200).await, 200);
    assert_eq!(stage.parked().await, []);
    relay.stop().await;
}

#[tokio::test]
async fn what_the_server_refuses_for_good_is_parked_and_blocks_nobody() {
    let (stage, nats) = started("max_payload: 8192").await;
    let relay = stage.start_relay(nats.target()).await;
    stage.write_one("gpuaas.test.thing.grown", 20_000).await;
    stage.write_one("gpuaas.test.*.wild", 1).await;
    stage.write_one("gpuaas.test.thing.small", 1).await;
    stage.until_relayed(3).await;
    let parked = stage.parked().await;
    let (positions, errors): (Vec<i64>, Vec<String>) = parked.into_iter().unzip();
    assert_eq!(positions, [1, 2]);
    assert!(errors[0].contains("payload"), "{errors:?}");
    assert!(errors[1].contains("subject"), "{errors:?}");
    let seen = nats.read_until(3).await;
    assert_eq!(seen.iter().map(|it| it.mark.position).collect::<Vec<_>>(), [3]);
    relay.stop().await;
}

#[tokio::test]
async fn of_two_relays_one_works_and_the_other_takes_over() {
    let (stage, nats) = started("").await;
    let first = stage.start_relay(nats.target()).await;
    eventually("the first has the place", async || stage.relayed().await == 0 && has_lease(&stage).await)
        .await;
    let second = stage.start_relay(nats.target()).await;
    stage.write(1_000).await;
    stage.until_relayed(1_000).await;
    assert_eq!(nats.last_sequence().await, 1_000, "an event was published twice");
    first.kill().await;
    stage.write(1_000).await;
    stage.until_relayed(2_000).await;
    assert_eq!(nats.last_sequence().await, 2_000, "an event was published twice");
    check(&nats.read_until(2_000).await, 2_000);
    second.stop().await;
}

async fn has_lease(stage: &Stage) -> bool {
    let sql = "SELECT FROM spine.consumer WHERE name = 'nats' AND lease_until > clock_timestamp()";
    stage.superuser("gpuaas").await.query_opt(sql, &[]).await.unwrap().is_some()
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

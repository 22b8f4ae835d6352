//! Two processes and a NATS server: what happens in one is known in the other at once, and again after the server was
//! away.

use std::time::Duration;

use db::{Nudges, Settings, Topic};
use testkit::eventually;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::nats::Nats;
use crate::NudgeCarrier;

/// A process: its nudges, and what carries them.
async fn process(nats: &Nats, replica: u128, stop: &CancellationToken) -> Nudges {
    let (nudges, settings) = (Nudges::default(), Settings::default());
    let carrier = NudgeCarrier::new(nats.target(), nudges.clone(), settings, Uuid::from_u128(replica));
    let (carrier, stop) = (carrier.await.unwrap(), stop.clone());
    tokio::spawn(async move { carrier.run(stop).await });
    nudges
}

async fn is_heard(heard: &mut db::Listener) -> bool {
    tokio::time::timeout(Duration::from_millis(100), heard.wait(Duration::from_secs(60))).await.is_ok()
}

#[tokio::test]
async fn a_nudge_reaches_the_other_process_also_after_the_server_was_away() {
    let mut nats = Nats::new("");
    nats.start().await;
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let (here, there) = (process(&nats, 1, &stop).await, process(&nats, 2, &stop).await);
    let mut heard = there.listen(Topic::Revocation);
    let mut own = here.listen(Topic::Revocation);
    for round in ["at first", "after a restart"] {
        eventually(&format!("the nudge is heard {round}"), async || {
            here.nudge(Topic::Revocation);
            is_heard(&mut heard).await
        })
        .await;
        // The first ones may have been heard because the connection was new: from here on only told ones are.
        while is_heard(&mut heard).await {}
        while is_heard(&mut own).await {}
        here.nudge(Topic::Revocation);
        assert!(is_heard(&mut own).await, "its own process hears it directly");
        eventually("the nudge is heard", async || is_heard(&mut heard).await).await;
        assert!(!is_heard(&mut own).await, "and not once more from outside");
        if round == "at first" {
            nats.restart().await;
        }
    }
}

#[tokio::test]
async fn what_was_told_while_the_server_was_away_is_looked_for_when_it_is_back() {
    let mut nats = Nats::new("");
    nats.start().await;
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let there = process(&nats, 2, &stop).await;
    let mut heard = there.listen(Topic::Revocation);
    eventually("it is connected", async || is_heard(&mut heard).await).await;
    nats.kill().await;
    nats.start().await;
    eventually("it looks once the connection is back", async || is_heard(&mut heard).await).await;
}

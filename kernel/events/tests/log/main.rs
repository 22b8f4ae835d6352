//! The log at its boundary: nothing lost, nothing twice, everything in one order, through crashes and restarts.

// A test has its thread to itself: a large future overflows nobody's stack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_futures)]

mod cluster;
mod consumer;
mod feed;
mod lag;
mod projection;
mod sequencer;

use db::Login;
use events::Sequencer;
use testkit::toy::{self, Thing, ThingCreate};
use testkit::{TestDb, eventually, types};

pub fn sequencer(test: &TestDb) -> Sequencer {
    let internal = test.internal(Login::Relay, "events.sequencer");
    Sequencer::new(internal, std::sync::Arc::clone(&test.clock), test.nudges.clone(), test.settings.clone())
}

/// Steps until every event has its position. Not one step: transaction ids are the server's, so a transaction open in
/// another test's database holds the horizon back here, too.
pub async fn sequence(test: &TestDb, sequencer: &Sequencer) {
    let waiting = "SELECT count(*) FROM spine.outbox, spine.sequencer WHERE (xid, id) > (done_xid, done_id)";
    eventually("every event has a position", async || {
        sequencer.step().await.unwrap();
        test.count(waiting).await == 0
    })
    .await;
}

/// One event of organization 1.
pub async fn happen(test: &TestDb, name: &str) {
    toy::create(&test.db, &test.context("someone"), toy::org(1), name).await.unwrap();
}

/// Many events in one transaction, named `<prefix> 0000` and so on.
pub async fn happen_many(test: &TestDb, prefix: &str, count: usize) -> types::Result<()> {
    let context = test.context("someone");
    let permit = test.permit::<ThingCreate>(&context, toy::resource(toy::org(1)));
    let things: Vec<Thing> = (0..count)
        .map(|number| Thing {
            id: test.db.make_id(),
            org: toy::org(1),
            name: format!("{prefix} {number:04}"),
        })
        .collect();
    test.db.change(&context, permit, async |tx| Ok(tx.record_many(things.iter().map(toy::created)))).await
}

/// The names in the log, in its order. Fails if positions have a gap or a twin.
pub async fn logged(test: &TestDb) -> Vec<String> {
    let sql = "SELECT position, data->>'name' FROM spine.log ORDER BY position, id";
    let rows = test.superuser().await.query(sql, &[]).await.unwrap();
    let positions: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    let expected: Vec<i64> = (1..).take(rows.len()).collect();
    assert_eq!(positions, expected, "positions are not gapless");
    rows.iter().map(|row| row.get(1)).collect()
}

/// On the clock that leases go by: twice the shortest lease.
pub async fn two_seconds_pass(test: &TestDb) {
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let end = test.count(now).await + 2_000;
    eventually("two seconds have passed", async || test.count(now).await > end).await;
}

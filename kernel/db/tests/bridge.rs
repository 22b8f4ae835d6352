//! Two processes on one PostgreSQL: what happens in one is known in the other at once, and again after the connection
//! between them was cut.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use db::{Bridge, Nudges, Settings, Target, Topic};
use testkit::{DEADLINE, PrivatePostgres, eventually};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

struct Stage {
    _postgres: PrivatePostgres,
    target: Target,
}

impl Stage {
    async fn new() -> Self {
        let postgres = PrivatePostgres::start().await;
        let target = Target::plain(postgres.connection().parse().unwrap());
        Self { _postgres: postgres, target }
    }

    /// A process: its nudges, and the bridge that carries them.
    fn process(&self, replica: u128, stop: &CancellationToken) -> Nudges {
        let nudges = Nudges::default();
        let mut target = self.target.clone();
        target.config.application_name("bridge");
        let bridge = Bridge::new(target, nudges.clone(), Settings::default(), Uuid::from_u128(replica));
        let stop = stop.clone();
        tokio::spawn(async move { bridge.run(stop).await });
        nudges
    }

    async fn until_listening(&self, count: i64) {
        let admin = self.target.connect().await.unwrap();
        // Before LISTEN a connection has said nothing.
        let sql = "SELECT count(*) FROM pg_stat_activity
                   WHERE application_name = 'bridge' AND state = 'idle' AND query <> ''";
        eventually("the processes listen", async || {
            admin.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == count
        })
        .await;
    }
}

/// How long until `heard` is nudged after `act`; nudges from before do not count.
async fn time_to_hear(heard: &mut db::Listener, act: impl FnOnce()) -> Duration {
    heard.wait(Duration::ZERO).await;
    let begun = Instant::now();
    act();
    heard.wait(DEADLINE).await;
    begun.elapsed()
}

#[tokio::test]
async fn a_nudge_reaches_the_other_process_and_not_itself() {
    let stage = Stage::new().await;
    let stop = CancellationToken::new();
    let (here, there) = (stage.process(1, &stop), stage.process(2, &stop));
    stage.until_listening(2).await;
    let mut heard = there.listen(Topic::Committed);
    let mut other_topic = there.listen(Topic::Setting);
    other_topic.wait(Duration::ZERO).await;
    let mut times = Vec::new();
    for _ in 0..20 {
        times.push(time_to_hear(&mut heard, || here.nudge(Topic::Committed)).await);
    }
    times.sort();
    // The median: a loaded machine may be late once, not always.
    assert!(times[10] < Duration::from_millis(50), "{times:?}");
    assert!(waits_in_vain(&mut other_topic).await, "a topic nobody nudged was heard");
    // Our own words come back from PostgreSQL, and are not taken for somebody else's.
    let mut own = here.listen(Topic::Flow);
    own.wait(Duration::ZERO).await;
    let mut heard = there.listen(Topic::Flow);
    time_to_hear(&mut heard, || here.nudge(Topic::Flow)).await;
    own.wait(Duration::ZERO).await;
    assert!(waits_in_vain(&mut own).await, "a process heard itself");
    stop.cancel();
}

#[tokio::test]
async fn many_nudges_are_told_together() {
    let stage = Stage::new().await;
    let stop = CancellationToken::new();
    let (here, there) = (stage.process(1, &stop), stage.process(2, &stop));
    stage.until_listening(2).await;
    let mut heard = there.listen(Topic::Log);
    let admin = stage.target.connect().await.unwrap();
    let calls = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'";
    let before: i64 = admin.query_one(calls, &[]).await.unwrap().get(0);
    for _ in 0..10_000 {
        here.nudge(Topic::Log);
        tokio::task::yield_now().await;
    }
    heard.wait(DEADLINE).await;
    let after: i64 = admin.query_one(calls, &[]).await.unwrap().get(0);
    assert!(after - before < 1_000, "{} transactions for 10,000 nudges", after - before);
    stop.cancel();
}

#[tokio::test]
async fn a_cut_connection_is_made_again_and_everybody_looks() {
    let stage = Stage::new().await;
    let stop = CancellationToken::new();
    let (here, there) = (stage.process(1, &stop), stage.process(2, &stop));
    stage.until_listening(2).await;
    let mut heard = there.listen(Topic::Committed);
    let admin = stage.target.connect().await.unwrap();
    let cut =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN gpuaas_nudge%'";
    heard.wait(Duration::ZERO).await;
    admin.query(cut, &[]).await.unwrap();
    // Nobody nudges: it is the new connection that makes everybody look once.
    here.nudge(Topic::Committed);
    heard.wait(DEADLINE).await;
    stage.until_listening(2).await;
    let took = time_to_hear(&mut heard, || here.nudge(Topic::Committed)).await;
    assert!(took < DEADLINE, "not heard on the new connection");
    stop.cancel();
}

/// Nothing comes for as long as ten messages would have taken.
async fn waits_in_vain(listener: &mut db::Listener) -> bool {
    let patience = Duration::from_millis(100);
    let begun = Instant::now();
    listener.wait(patience).await;
    begun.elapsed() >= patience
}

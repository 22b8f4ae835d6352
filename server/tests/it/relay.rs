//! `gpuaasd run` with `[nats]`: two replicas of the role, one copy of the log on a real NATS server.

use testkit::{NatsServer, eventually};

use crate::installation::Installation;

const WRITE: &str = "
INSERT INTO spine.outbox (id, at, type, subject, generation, data, correlation_id)
SELECT gen_random_uuid(), now(), 'gpuaas.test.thing.changed', 'thing_1', n, '{}', gen_random_uuid()
FROM generate_series(1, 100) AS n";

#[tokio::test]
async fn two_replicas_relay_the_log_once() {
    let (installation, nats) = (Installation::new("relay").await, NatsServer::start().await);
    let section = format!("[nats]\nurl = \"{}\"\n", nats.url());
    let admin = installation.superuser().await;
    let first = installation.run("outbox-relay", &installation.config("first", &section)).await;
    let second = installation.run("outbox-relay", &installation.config("second", &section)).await;
    let relayed = async |count: i64| {
        let sql = "SELECT coalesce(max(position), 0) FROM spine.consumer WHERE name = 'nats'";
        eventually("the events are relayed", async || {
            admin.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == count
        })
        .await;
    };
    admin.execute(WRITE, &[]).await.unwrap();
    relayed(100).await;
    // Whoever held the place dies; the other one has taken over when the next events are out.
    first.child.kill().await;
    admin.execute(WRITE, &[]).await.unwrap();
    relayed(200).await;
    assert!(second.child.terminate().await.success());
}

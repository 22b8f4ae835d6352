//! `gpuaasd run` with `[nats]`: two replicas of the role, one copy of the log on a real NATS server.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Gpuaasd, NatsServer, PrivatePostgres, Scratch, eventually, free_port};

const WRITE: &str = "
INSERT INTO spine.outbox (id, at, type, subject, generation, data, correlation_id)
SELECT gen_random_uuid(), now(), 'gpuaas.test.thing.changed', 'thing_1', n, '{}', gen_random_uuid()
FROM generate_series(1, 100) AS n";

/// A configuration for one replica; its internal listener is at the returned address.
fn config(directory: &Path, name: &str, postgres: &tokio_postgres::Config, nats: &str) -> (PathBuf, String) {
    let Some(tokio_postgres::config::Host::Unix(host)) = postgres.get_hosts().first() else {
        panic!("the test server listens on a socket")
    };
    let password = directory.join("password");
    std::fs::write(&password, "of the logins").unwrap();
    let internal = format!("127.0.0.1:{}", free_port());
    let text = format!(
        "mode = \"development\"\n[database]\nhost = {host:?}\npassword_file = {password:?}\n\
         [internal]\nlisten = \"{internal}\"\n[nats]\nurl = \"{nats}\"\n"
    );
    let file = directory.join(format!("{name}.toml"));
    std::fs::write(&file, text).unwrap();
    (file, format!("http://{internal}"))
}

#[tokio::test]
async fn two_replicas_relay_the_log_once() {
    let (directory, postgres, nats) =
        (Scratch::new("relay"), PrivatePostgres::start().await, NatsServer::start().await);
    let connection: tokio_postgres::Config = postgres.connection().parse().unwrap();
    let (first, first_url) = config(directory.path(), "first", &connection, &nats.url());
    let (second, second_url) = config(directory.path(), "second", &connection, &nats.url());
    let init = Command::new(testkit::binary())
        .args(["db", "init", "--admin-url", &postgres.connection(), "--config"])
        .arg(&first)
        .output()
        .unwrap();
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
    let mut admin = connection.clone();
    admin.dbname("gpuaas");
    let admin = testkit::db::Target::plain(admin).connect().await.unwrap();
    let first = Gpuaasd::run("outbox-relay", &first, &first_url).await;
    let second = Gpuaasd::run("outbox-relay", &second, &second_url).await;
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

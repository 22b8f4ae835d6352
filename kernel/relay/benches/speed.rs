//! How fast a backlog gets its positions and reaches NATS: `cargo bench -p relay`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use db::{Internal, Login, Nudges, Pool, PoolOptions, Settings, Target, login, migrate};
use events::{Feed, Sequencer};
use relay::{NatsTarget, Relay};
use testkit::{NatsServer, PrivatePostgres, SPINE};
use tokio_util::sync::CancellationToken;
use types::{Secret, SystemClock};

const COUNT: i64 = 100_000;
const WRITE: &str = "
INSERT INTO spine.outbox (id, at, type, subject, generation, data, correlation_id)
SELECT gen_random_uuid(), now(), 'gpuaas.test.thing.changed', 'thing_' || n % 10, n, json_build_object('n', n),
       gen_random_uuid()
FROM generate_series(1, $1::bigint) AS n";
const RELAYED: &str = "SELECT coalesce(max(position), 0) FROM spine.consumer WHERE name = 'nats'";

#[tokio::main]
async fn main() {
    let (postgres, nats) = (PrivatePostgres::start().await, NatsServer::start().await);
    let password = Secret::new("measured".to_owned());
    let target = |database: &str, login: Option<Login>| {
        let mut config: tokio_postgres::Config = postgres.connection().parse().unwrap();
        config.dbname(database);
        if let Some(login) = login {
            config.user(login.role_name("gpuaas")).password(password.expose());
        }
        Target::plain(config)
    };
    let admin = target("postgres", None).connect().await.unwrap();
    login::init(&admin, "gpuaas", "gpuaas", |_| password.clone()).await.unwrap();
    let owner = target("gpuaas", Some(Login::Owner)).connect().await.unwrap();
    migrate::run(&owner, "gpuaas", &[SPINE]).await.unwrap();
    let database = target("gpuaas", None).connect().await.unwrap();
    database.execute(WRITE, &[&COUNT]).await.unwrap();

    let options = PoolOptions { connections_max: 3, waiting_max: 64, wait_timeout: Duration::from_secs(5) };
    let internal = |login| {
        Internal::new(Pool::new(target("gpuaas", Some(login)), options).unwrap(), "relay_speed", false)
    };
    let (clock, nudges, settings) = (Arc::new(SystemClock), Nudges::default(), Settings::default());
    let relay_internal = internal(Login::Relay);
    let sequencer =
        Sequencer::new(relay_internal.clone(), Arc::clone(&clock) as _, nudges.clone(), settings.clone());
    let feed = Feed::new(internal(Login::App), nudges, settings.clone());
    feed.start().await.unwrap();
    let server = NatsTarget { url: nats.url(), credentials: None, tls: None };
    let relay =
        Relay::new(server, relay_internal.clone(), settings.clone(), Arc::clone(&clock) as _).await.unwrap();
    let stop = CancellationToken::new();
    let begun = Instant::now();
    let (token, reader) = (stop.clone(), feed.clone());
    tokio::spawn(async move { reader.run(token).await });
    let token = stop.clone();
    tokio::spawn(async move { sequencer.run(token).await });
    tokio::spawn(async move {
        events::run_consumer(&relay, &relay_internal, &feed, &*clock, &settings, stop).await;
    });
    while database.query_one(RELAYED, &[]).await.unwrap().get::<_, i64>(0) < COUNT {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rate = COUNT as f64 / seconds;
    println!("{COUNT} events sequenced and relayed in {seconds:.2} s: {rate:.0}/s");
}

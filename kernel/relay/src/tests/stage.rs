//! A database with the spine in it, events on demand, and relays that can be stopped or killed.

use std::sync::Arc;
use std::time::Duration;

use db::migrate;
use db::{Internal, Login, Nudges, Pool, PoolOptions, Settings, Target, login};
use events::{Feed, Sequencer};
use testkit::{PrivatePostgres, eventually};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use types::{Secret, SystemClock};

use crate::{NatsTarget, Relay};

pub struct Stage {
    postgres: PrivatePostgres,
    password: Secret,
}

impl Stage {
    pub async fn new() -> Self {
        let stage =
            Self { postgres: PrivatePostgres::start().await, password: Secret::new("test".to_owned()) };
        login::init(&stage.superuser("postgres").await, "gpuaas", "gpuaas", |_| stage.password.clone())
            .await
            .unwrap();
        let owner = stage.target(Login::Owner).connect().await.unwrap();
        migrate::run(&owner, "gpuaas", &[testkit::SPINE]).await.unwrap();
        // A place is free again a second after its holder died, and poison is parked at the second attempt.
        stage.set("events.consumer_lease_seconds", 1).await;
        stage.set("events.consumer_attempts_max", 2).await;
        stage.set("events.consumer_compare_seconds", 1).await;
        stage
    }

    pub async fn restart_postgres(&mut self) {
        self.postgres.restart().await;
    }

    fn config(&self) -> tokio_postgres::Config {
        self.postgres.connection().parse().unwrap()
    }

    pub async fn superuser(&self, database: &str) -> tokio_postgres::Client {
        let mut config = self.config();
        config.dbname(database);
        Target::plain(config).connect().await.unwrap()
    }

    fn target(&self, login: Login) -> Target {
        let mut config = self.config();
        config.dbname("gpuaas").user(login.role_name("gpuaas")).password(self.password.expose());
        Target::plain(config)
    }

    fn internal(&self, login: Login, worker: &'static str) -> Internal {
        let options =
            PoolOptions { connections_max: 3, waiting_max: 64, wait_timeout: Duration::from_secs(5) };
        Internal::new(Pool::new(self.target(login), options).unwrap(), worker, false)
    }

    async fn set(&self, key: &str, value: i64) {
        let sql = "INSERT INTO spine.setting (key, value, set_by, set_at)
                   VALUES ($1, to_json($2::bigint), '{}', now())";
        self.superuser("gpuaas").await.execute(sql, &[&key, &value]).await.unwrap();
    }

    /// Commits `count` events about ten resources, whose generations count up.
    pub async fn write(&self, count: i64) {
        let sql = "
            INSERT INTO spine.outbox (id, at, type, subject, generation, data, correlation_id)
            SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(next), 12, '0'))::uuid, now(), 'gpuaas.test.thing.changed',
                   'thing_' || next % 10, next / 10, json_build_object('n', next), gen_random_uuid()
            FROM (SELECT n + (SELECT count(*) FROM spine.outbox) AS next FROM generate_series(1, $1::bigint) AS n) AS it";
        self.superuser("gpuaas").await.execute(sql, &[&count]).await.unwrap();
    }

    pub async fn write_one(&self, event_type: &str, data_bytes: i32) {
        let sql = "
            INSERT INTO spine.outbox (id, at, type, subject, generation, data, correlation_id)
            SELECT gen_random_uuid(), now(), $1, 'thing_x', 1, to_json(repeat('x', $2)), gen_random_uuid()";
        self.superuser("gpuaas").await.execute(sql, &[&event_type, &data_bytes]).await.unwrap();
    }

    /// The position up to which a relay says that everything was published.
    pub async fn relayed(&self) -> i64 {
        let sql = "SELECT position FROM spine.consumer WHERE name = 'nats'";
        let row = self.superuser("gpuaas").await.query_opt(sql, &[]).await.unwrap();
        row.map_or(0, |row| row.get(0))
    }

    pub async fn parked(&self) -> Vec<(i64, String)> {
        let sql = "SELECT position, error FROM spine.parked_event WHERE consumer = 'nats' ORDER BY position";
        let rows = self.superuser("gpuaas").await.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    pub async fn until_relayed(&self, position: i64) {
        eventually("everything is relayed", async || self.relayed().await >= position).await;
    }

    /// A process with the role `outbox-relay`.
    pub async fn start_relay(&self, target: NatsTarget) -> Running {
        let clock = Arc::new(SystemClock);
        let nudges = Nudges::default();
        let settings = Settings::default();
        let internal = self.internal(Login::Relay, "relay");
        settings.renew(&internal).await.unwrap();
        let sequencer =
            Sequencer::new(internal.clone(), Arc::clone(&clock) as _, nudges.clone(), settings.clone());
        let feed = Feed::new(self.internal(Login::App, "feed"), nudges, settings.clone());
        feed.start().await.unwrap();
        let relay =
            Relay::new(target, internal.clone(), settings.clone(), Arc::clone(&clock) as _).await.unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let token = stop.clone();
        tasks.spawn(async move { sequencer.run(token).await });
        let (token, reader) = (stop.clone(), feed.clone());
        tasks.spawn(async move { reader.run(token).await });
        let token = stop.clone();
        tasks.spawn(async move {
            events::run_consumer(&relay, &internal, &feed, &*clock, &settings, token).await;
        });
        Running { tasks, stop }
    }
}

pub struct Running {
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Running {
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Ends it between any two of its instructions, its lease not given back.
    pub async fn kill(mut self) {
        self.tasks.shutdown().await;
    }
}

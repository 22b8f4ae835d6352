//! A database of one test.

use std::sync::Arc;
use std::time::Duration;

use authz::{Action, Actor, ActorKind, Context, Decider, Idempotency, Permit, Resource, authorize};
use aws_lc_rs::digest::{SHA256, digest};
use db::migrate::MigrationSet;
use db::{Db, Internal, Login, Nudges, Pool, PoolOptions, Settings, Target};
use tokio_postgres::Client;
use types::{Clock, Entropy, IdMaker, ManualClock, SeededEntropy, SystemClock, Timestamp};

use crate::postgres::{Cluster, PrivatePostgres, runtime, shared};
use crate::template::{PASSWORD, PREFIX, ensure};
use crate::toy::AllowAll;
use crate::{Proxy, SPINE, toy};

/// A `Db` over the `app` login with the backstop on, and the ways past it that a test needs. Dropping it drops the
/// database.
pub struct TestDb {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub nudges: Nudges,
    pub settings: Settings,
    /// Says yes to everyone who is signed in.
    pub decider: Arc<dyn Decider>,
    manual: Option<Arc<ManualClock>>,
    cluster: Cluster,
    name: String,
}

/// How to make a [`TestDb`].
pub struct Plan<'a> {
    sets: Vec<MigrationSet>,
    cluster: Option<Cluster>,
    start: Option<Timestamp>,
    connections: usize,
    proxy: Option<&'a Proxy>,
}

impl<'a> Plan<'a> {
    /// A clock that stands at `start` until [`TestDb::advance`] moves it.
    #[must_use]
    pub fn at(mut self, start: &str) -> Self {
        self.start = Some(start.parse().expect("a timestamp like 2026-01-31T23:59:59Z"));
        self
    }

    /// The size of the `app` pool; 10 unless told.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// On a server of the test's own.
    #[must_use]
    pub fn on(mut self, server: &PrivatePostgres) -> Self {
        self.cluster = Some(server.cluster());
        self
    }

    /// The `app` pool goes through this proxy. Everything else connects directly.
    #[must_use]
    pub fn through(mut self, proxy: &'a Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    pub async fn start(self) -> TestDb {
        let cluster = self.cluster.unwrap_or_else(|| shared().clone());
        let name = copy_of_template(&cluster, &self.sets).await;
        let manual = self.start.map(|start| Arc::new(ManualClock::at(start)));
        let clock: Arc<dyn Clock> = match &manual {
            Some(manual) => Arc::<ManualClock>::clone(manual),
            None => Arc::new(SystemClock),
        };
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(1));
        let ids = IdMaker::new(Arc::clone(&clock), Arc::clone(&entropy));
        let mut target = login_target(&cluster, &name, Login::App);
        if let Some(proxy) = self.proxy {
            target = proxy.redirect(&target);
        }
        let nudges = Nudges::default();
        let pool = pool(target, self.connections);
        let db = Db::with_backstop(pool, Arc::clone(&clock), ids, nudges.clone());
        let (settings, decider) = (Settings::default(), Arc::new(AllowAll));
        TestDb { db, clock, entropy, nudges, settings, decider, manual, cluster, name }
    }
}

impl TestDb {
    /// A database with these migrations, the machine's clock and a pool of ten.
    pub async fn with(sets: &[MigrationSet]) -> Self {
        Self::plan(sets).start().await
    }

    /// The spine and the toy schema: for the kernel's own tests.
    pub async fn kernel() -> Self {
        Self::plan_kernel().start().await
    }

    pub fn plan<'a>(sets: &[MigrationSet]) -> Plan<'a> {
        Plan { sets: sets.to_vec(), cluster: None, start: None, connections: 10, proxy: None }
    }

    pub fn plan_kernel<'a>() -> Plan<'a> {
        Self::plan(&[SPINE, toy::MIGRATION_SET])
    }

    /// The same database with fresh connections: settings of a login or a database hold from the next session on.
    #[must_use]
    pub fn reopened(mut self) -> Self {
        let ids = self.db.ids().clone();
        let pool = pool(self.target(Login::App), 10);
        self.db.pool().close();
        self.db = Db::with_backstop(pool, Arc::clone(&self.clock), ids, self.nudges.clone());
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where and as whom to connect.
    pub fn target(&self, login: Login) -> Target {
        login_target(&self.cluster, &self.name, login)
    }

    pub fn pool(&self, login: Login, connections: usize) -> Pool {
        pool(self.target(login), connections)
    }

    /// A worker of another login, with the backstop on.
    pub fn internal(&self, login: Login, worker: &'static str) -> Internal {
        Internal::new(self.pool(login, 4), worker, true)
    }

    /// A bare connection, outside any pool and any scope.
    pub async fn client(&self, login: Login) -> Client {
        self.target(login).connect().await.expect("connect to the test's database")
    }

    pub async fn superuser(&self) -> Client {
        self.cluster.client(&self.name).await
    }

    pub(crate) fn superuser_config(&self) -> tokio_postgres::Config {
        let mut config = self.cluster.admin.clone();
        config.dbname(&self.name);
        config
    }

    /// Runs a script as the superuser.
    pub async fn run(&self, script: &str) {
        self.superuser()
            .await
            .batch_execute(script)
            .await
            .unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }

    /// One number, as the superuser sees it.
    pub async fn count(&self, sql: &str) -> i64 {
        let row = self.superuser().await.query_one(sql, &[]).await;
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }

    /// Stores a setting of the platform and lets this process know.
    pub async fn set(&self, key: &str, value: impl Into<serde_json::Value>) {
        let value: serde_json::Value = value.into();
        let sql = "INSERT INTO spine.setting (key, value, set_by, set_at) VALUES ($1, $2, '{}', now())
                   ON CONFLICT (scope_id, key) DO UPDATE SET value = excluded.value";
        self.superuser().await.execute(sql, &[&key, &value]).await.expect("store the setting");
        self.settings.renew(&self.db.internal("settings")).await.expect("read the settings");
    }

    /// Moves a clock that was started with [`Plan::at`].
    pub fn advance(&self, by: Duration) {
        self.manual.as_ref().expect("a manual clock: start the TestDb with at(…)").advance(by);
    }

    /// A signed-in person's request.
    pub fn context(&self, user: &str) -> Context {
        self.context_of(Actor::new(ActorKind::User, user))
    }

    pub fn context_of(&self, actor: Actor) -> Context {
        Context::new(actor, self.db.make_id())
    }

    /// The same with an idempotency key.
    pub fn keyed(&self, user: &str, key: &str, body: &str) -> Context {
        let hash = |text: &str| digest(&SHA256, text.as_bytes()).as_ref().try_into().expect("32 bytes");
        let (key_hash, body_hash) = (hash(key), hash(body));
        let mut context = self.context(user);
        context.idempotency = Some(Idempotency { operation: "toy.test", key_hash, body_hash });
        context
    }

    /// Permission from the decider that never refuses.
    pub fn permit<A: Action>(&self, context: &Context, resource: Resource) -> Permit<A> {
        authorize(&*self.decider, context, resource).expect("everyone may do everything here")
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        let (cluster, name) = (self.cluster.clone(), std::mem::take(&mut self.name));
        runtime().spawn(async move {
            let mut config = cluster.admin;
            config.dbname("postgres");
            // The server may be gone, if it was the test's own: then so is the database.
            if let Ok(admin) = Target::plain(config).connect().await {
                let _ = admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
            }
        });
    }
}

async fn copy_of_template(cluster: &Cluster, sets: &[MigrationSet]) -> String {
    let admin = cluster.client("postgres").await;
    let template = ensure(cluster, &admin, sets).await;
    let mut bytes = [0u8; 8];
    types::SystemEntropy.fill(&mut bytes);
    let name = format!("test_{:016x}", u64::from_be_bytes(bytes));
    let owner = Login::Owner.role_name(PREFIX);
    // FILE_COPY: 30 ms where WAL_LOG takes 50 (PostgreSQL 15, in memory). The checkpoint it asks for is free, as
    // nothing waits for a disk here; on a production server it is what makes it the wrong choice.
    let create = format!("CREATE DATABASE {name} OWNER {owner} TEMPLATE {template} STRATEGY FILE_COPY");
    admin.batch_execute(&create).await.expect("copy the template");
    name
}

fn login_target(cluster: &Cluster, database: &str, login: Login) -> Target {
    let mut config = cluster.admin.clone();
    config.dbname(database).user(login.role_name(PREFIX)).password(PASSWORD);
    config.application_name(format!("test {}", login.suffix()));
    Target::plain(config)
}

fn pool(target: Target, connections_max: usize) -> Pool {
    let options = PoolOptions { connections_max, waiting_max: 10_000, wait_timeout: Duration::from_secs(20) };
    Pool::new(target, options).expect("a pool")
}

//! A database of one test, with two tenants in it, on one throwaway server for all tests of the process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use authz::{Actor, ActorKind, Context, Standing, Subject};
use db::migrate::MigrationSet;
use db::{Db, Login, Nudges, Pool, PoolOptions, Settings, Target, login, migrate};
use iam::{Iam, OrganizationId, ProjectId, RoleDecider};
use postgres_server::{Binaries, DataDirLock, Options, SUPERUSER, Server};
use tokio_postgres::{Client, Config};
use types::{Clock, Entropy, Id, IdMaker, ManualClock, Name, Secret, SeededEntropy, SystemEntropy};

use crate::*;

const TEMPLATE: &str = "template_secrets";
const PREFIX: &str = "test";
const PASSWORD: &str = "only of a throwaway server";
/// The worker that may take deliveries here.
pub const WORKER: &str = "test.worker";

/// A tenant with a project, and who acts for it.
#[derive(Clone)]
pub struct Tenant {
    pub organization: OrganizationId,
    pub project: ProjectId,
    pub context: Context,
}

impl Tenant {
    pub fn holder(&self) -> Holder {
        Holder::Project(self.project)
    }
}

pub struct World {
    pub db: Db,
    pub iam: Iam,
    pub settings: Settings,
    pub secrets: Secrets,
    pub clock: Arc<ManualClock>,
    pub acme: Tenant,
    pub rival: Tenant,
    decider: Arc<dyn Decider>,
    entropy: Arc<dyn Entropy>,
    database: String,
    /// Kept open: signing in costs a debug build more than most tests do.
    superuser: tokio::sync::OnceCell<Client>,
}

impl World {
    pub async fn new() -> Self {
        let database = copy_of_template().await;
        let clock = Arc::new(ManualClock::at("2026-11-15T08:00:00Z".parse().unwrap()));
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
        let ids = IdMaker::new(Arc::clone(&clock) as Arc<dyn Clock>, Arc::clone(&entropy));
        let options =
            PoolOptions { connections_max: 4, waiting_max: 64, wait_timeout: Duration::from_secs(20) };
        let pool = Pool::new(target(&database, Login::App), options).unwrap();
        let db = Db::with_backstop(pool, Arc::clone(&clock) as Arc<dyn Clock>, ids, Nudges::default());
        let settings = Settings::default();
        let feed = ::events::Feed::new(db.internal("feed"), db.nudges().clone(), settings.clone());
        let decider: Arc<dyn Decider> = Arc::new(rules(RoleDecider::default(), &[WORKER]));
        let iam =
            Iam::new(db.clone(), feed, settings.clone(), Arc::clone(&decider), Arc::clone(&entropy), false);
        let acme = tenant(&iam, &db, "acme").await;
        let rival = tenant(&iam, &db, "rival").await;
        let keys = Keyring::new(Arc::new(key(1)), Vec::new());
        let secrets = Secrets::new(
            db.clone(),
            settings.clone(),
            Arc::clone(&decider),
            Arc::clone(&entropy),
            iam.clone(),
            Arc::new(keys),
        );
        Self {
            db,
            iam,
            settings,
            secrets,
            clock,
            acme,
            rival,
            decider,
            entropy,
            database,
            superuser: Default::default(),
        }
    }

    /// The same domain with other keys at hand, as after a restart.
    pub fn with_keys(&self, keys: Keyring) -> Secrets {
        Secrets::new(
            self.db.clone(),
            self.settings.clone(),
            Arc::clone(&self.decider),
            Arc::clone(&self.entropy),
            self.iam.clone(),
            Arc::new(keys),
        )
    }

    /// A connection that no wall binds.
    pub async fn superuser(&self) -> &Client {
        let connect = async || {
            let mut config = server().clone();
            config.dbname(&self.database);
            Target::plain(config).connect().await.unwrap()
        };
        self.superuser.get_or_init(connect).await
    }

    pub async fn run(&self, script: &str) {
        self.superuser().await.batch_execute(script).await.unwrap();
    }

    pub async fn count(&self, sql: &str) -> i64 {
        self.superuser().await.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Our own worker at work.
    pub fn worker(&self) -> Context {
        Context::new(Actor::system(WORKER), self.db.make_id())
    }

    pub async fn set(&self, key: &str, value: u64) {
        let sql = "INSERT INTO spine.setting (scope_kind, key, value, updated_at) VALUES ('platform', $1, $2, now())";
        self.superuser().await.execute(sql, &[&key, &serde_json::json!(value)]).await.unwrap();
        self.settings.renew(&self.db.internal("settings")).await.unwrap();
    }

    /// Ids sort by the millisecond: what a test expects in order must not happen in the same one.
    fn tick(&self) {
        self.clock.advance(Duration::from_millis(1));
    }

    /// Stores a secret of acme's, for the purpose `test`.
    pub async fn store(&self, name: &str, value: &str) -> SecretInfo {
        self.store_for(&self.acme, name, "test", value).await.unwrap()
    }

    pub async fn store_for(
        &self,
        tenant: &Tenant,
        name: &str,
        purpose: &str,
        value: &str,
    ) -> Result<SecretInfo> {
        let new = NewSecret {
            holder: tenant.holder(),
            name: Name::parse(name).unwrap(),
            purpose: Purpose::parse(purpose).unwrap(),
            value: Secret::new(value.to_owned()),
        };
        self.tick();
        self.secrets.create(&tenant.context, new).await
    }

    /// Delivers a secret of acme's to a node.
    pub async fn deliver(&self, secret: SecretId, version: Option<i32>) -> Result<Delivered> {
        self.deliver_from(&self.secrets, secret, version).await
    }

    pub async fn deliver_from(
        &self,
        secrets: &Secrets,
        secret: SecretId,
        version: Option<i32>,
    ) -> Result<Delivered> {
        let request = DeliveryRequest {
            holder: self.acme.holder(),
            secret,
            purpose: &Purpose::parse("test").unwrap(),
            recipient: node(),
            version,
        };
        self.tick();
        secrets.deliver(&self.worker(), request).await
    }

    pub async fn rotate(&self, secret: SecretId, value: &str) -> Result<SecretInfo> {
        let value = Secret::new(value.to_owned());
        self.secrets.rotate(&self.acme.context, self.acme.holder(), secret, &value, None).await
    }
}

pub fn node() -> Subject {
    Subject { kind: ActorKind::Node, id: "node_7".to_owned() }
}

/// A key encryption key that is the same for the same number.
pub fn key(number: u8) -> FileKey {
    FileKey::from_bytes(Secret::new([number; 32]), Arc::new(SystemEntropy))
}

/// What a result of ours was refused with.
pub fn code<T>(result: Result<T>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.code().code,
    }
}

async fn tenant(iam: &Iam, db: &Db, name: &str) -> Tenant {
    let bootstrap = iam.bootstrap_context();
    let name = Name::parse(name).unwrap();
    let organization =
        iam.organization_create(&bootstrap, name.clone(), Default::default()).await.unwrap().id;
    let project = iam.project_create(&bootstrap, organization, name, Default::default()).await.unwrap().id;
    let mut context =
        Context::new(Actor::new(ActorKind::ServiceAccount, format!("key of {organization}")), db.make_id());
    context.standing = Arc::new(Standing {
        platform_roles: Vec::new(),
        organization_roles: vec![(*organization.as_uuid(), "organization.owner".to_owned())],
    });
    Tenant { organization, project, context }
}

/// A directory of this process; those of processes that are gone are swept first.
pub fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("secretstest-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir(&directory).unwrap();
    directory
}

fn sweep() {
    for entry in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix("secretstest-").and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Starts the server once, on a thread that lives as long as the process: it dies with us.
fn server() -> &'static Config {
    static SERVER: OnceLock<Config> = OnceLock::new();
    SERVER.get_or_init(|| {
        sweep();
        let (started, start) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = start_server().await;
                let mut config = Config::new();
                config.host_path(server.socket_dir()).port(server.port());
                config.user(SUPERUSER).password(server.password().expose());
                make_template(&config).await;
                started.send(config).unwrap();
                panic!("{}", server.failure().await);
            });
        });
        start.recv().expect("the server starts")
    })
}

async fn start_server() -> Server {
    let directory = scratch("postgres");
    std::fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
    let named = std::env::var_os("GPUAAS_POSTGRES_DIR");
    let binaries = Binaries::find(named.as_deref().map(Path::new)).await.expect("apt install postgresql");
    let lock = DataDirLock::acquire(&directory.join("data")).unwrap();
    Server::start(&lock, Options { binaries, settings: Vec::new(), durable: false }).await.unwrap()
}

async fn make_template(admin: &Config) {
    let mut config = admin.clone();
    let client = Target::plain(config.dbname("postgres").clone()).connect().await.unwrap();
    login::init(&client, PREFIX, TEMPLATE, &Secret::new(PASSWORD.to_owned())).await.unwrap();
    let mut owner = admin.clone();
    owner.dbname(TEMPLATE).user(Login::Owner.role_name(PREFIX)).password(PASSWORD);
    let owner = Target::plain(owner).connect().await.unwrap();
    let spine = MigrationSet { domain: "spine", migrations: db::MIGRATIONS };
    migrate::run(&owner, PREFIX, &[spine, iam::MIGRATION_SET, MIGRATION_SET]).await.unwrap();
}

async fn copy_of_template() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut config = server().clone();
    let client = Target::plain(config.dbname("postgres").clone()).connect().await.unwrap();
    // The template may not have a session, and ours to make it has ended: one copy at a time is PostgreSQL's rule.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;
    let owner = Login::Owner.role_name(PREFIX);
    let sql = format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE} OWNER {owner}");
    for _ in 0..50 {
        match client.batch_execute(&sql).await {
            Ok(()) => return name,
            // The template's last session may still be on its way out.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    client.batch_execute(&sql).await.unwrap();
    name
}

pub fn target(database: &str, login: Login) -> Target {
    let mut config = server().clone();
    config.dbname(database).user(login.role_name(PREFIX)).password(PASSWORD);
    Target::plain(config)
}

impl World {
    /// A connection of one of our logins.
    pub async fn client(&self, login: Login) -> Client {
        target(&self.database, login).connect().await.unwrap()
    }
}

/// An id nobody has.
pub fn nobody<K: types::Kind>() -> Id<K> {
    Id::from_uuid(uuid::Uuid::from_u128(0xdead))
}

//! A throwaway server, a database per test, and the log as an oracle would compute it.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use authz::{Action, Actor, ActorKind, Context, Decider, Resource, Standing, authorize};
use db::{Change, Db, Internal, Login, Nudges, Pool, PoolOptions, Settings, Target, login, migrate};
use iam::{OrganizationId, RoleDecider};
use merkle::{Frontier, Hash, SignerKey, leaf_hash};
use postgres_server::{Binaries, DataDirLock, Options, SUPERUSER, Server};
use tokio::sync::OnceCell;
use tokio_postgres::Client;
use types::{Clock, Entropy, IdMaker, Secret, SystemClock, SystemEntropy};
use uuid::Uuid;

use crate::sealer::{SealError, SealKey, Sealer, Step};
use crate::{Audit, EntryRead, store};

const PREFIX: &str = "template_of_tests";
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The one server of this test process. A thread of its own keeps it: a test's runtime ends with the test.
struct Running {
    socket_dir: PathBuf,
    password: String,
}

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let lock = DataDirLock::acquire(&scratch("server")).unwrap();
                let mut candidates = Binaries::installed().await;
                if let Some(packaged) = std::env::var_os("GPUAAS_POSTGRES_DIR") {
                    candidates.push(Binaries::at(Path::new(&packaged)).await.unwrap());
                }
                let binaries = Binaries::for_cluster(lock.data_dir(), &candidates)
                    .expect("install a server: apt install postgresql, or set GPUAAS_POSTGRES_DIR");
                let settings = vec![("max_connections".to_owned(), "200".to_owned())];
                let server =
                    Server::start(&lock, Options { binaries, settings, durable: false }).await.unwrap();
                let password = server.password().expose().to_string();
                tell.send(Running { socket_dir: server.socket_dir().to_owned(), password }).unwrap();
                server.failure().await
            });
        });
        told.recv().unwrap()
    })
}

/// A directory of this test process; those of processes that are gone are removed.
pub fn scratch(name: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    static CLEANED: OnceLock<()> = OnceLock::new();
    let home = std::env::temp_dir();
    CLEANED.get_or_init(|| {
        for entry in std::fs::read_dir(&home).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let gone = |pid: &str| !Path::new("/proc").join(pid).exists();
            if name.strip_prefix("gpuaas-audit-test-").is_some_and(gone) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    });
    let own = home.join(format!("gpuaas-audit-test-{}", std::process::id()));
    let path = own.join(name);
    std::fs::create_dir_all(&path).unwrap();
    for directory in [&own, &path] {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o711)).unwrap();
    }
    path
}

pub struct Change1;
impl Action for Change1 {
    const NAME: &'static str = "test.thing.change";
    const TITLE: &'static str = "Change a thing";
}

pub enum Thing {}
impl types::Kind for Thing {
    const PREFIX: &'static str = "thg";
    const NAME: &'static str = "thing";
}

/// One installation.
pub struct World {
    pub name: String,
    pub db: Db,
    pub audit: Audit,
    pub settings: Settings,
    pub nudges: Nudges,
    /// The superuser, in this database.
    pub admin: Client,
    pub key: Arc<SignerKey>,
    sealer_pool: Pool,
}

impl World {
    pub async fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static TEMPLATE: OnceCell<()> = OnceCell::const_new();
        let root = target("postgres", SUPERUSER).connect().await.unwrap();
        TEMPLATE.get_or_init(|| make_template(&root)).await;
        let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        root.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {PREFIX}")).await.unwrap();
        let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
            (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let ids = IdMaker::new(Arc::clone(&clock), entropy);
        let nudges = Nudges::default();
        let db = Db::with_backstop(pool(&name, Login::App), clock, ids, nudges.clone());
        let settings = Settings::default();
        let decider: Arc<dyn Decider> =
            Arc::new(RoleDecider::default().also::<EntryRead>(true).also::<Change1>(true));
        let audit = Audit::new(db.clone(), settings.clone(), decider);
        let key = Arc::new(SignerKey::from_seed("audit.test", &[7; 32]).unwrap());
        let admin = target(&name, SUPERUSER).connect().await.unwrap();
        let sealer_pool = pool(&name, Login::Sealer);
        Self { name, db, audit, settings, nudges, admin, key, sealer_pool }
    }

    pub fn seal_key(&self) -> SealKey {
        let key = Arc::clone(&self.key);
        Arc::new(move || Arc::clone(&key))
    }

    /// The sealer's access, checked against what it really writes.
    pub fn internal(&self) -> Internal {
        Internal::new(self.sealer_pool.clone(), "test sealer", true)
    }

    pub fn sealer(&self) -> Sealer {
        Sealer::new(
            self.internal(),
            Arc::new(SystemClock),
            self.nudges.clone(),
            self.settings.clone(),
            self.seal_key(),
        )
    }

    pub async fn client(&self, login: Login) -> Client {
        target(&self.name, &login.role_name(PREFIX)).connect().await.unwrap()
    }

    pub async fn superuser(&self) -> Client {
        target(&self.name, SUPERUSER).connect().await.unwrap()
    }

    pub fn operator(&self) -> Context {
        self.caller(Standing { platform_roles: vec!["platform.operator".to_owned()], ..Standing::default() })
    }

    pub fn owner(&self, org: OrganizationId) -> Context {
        let roles = vec![(*org.as_uuid(), "organization.owner".to_owned())];
        self.caller(Standing { organization_roles: roles, ..Standing::default() })
    }

    fn caller(&self, standing: Standing) -> Context {
        let mut context = Context::new(Actor::new(ActorKind::User, "opr_test"), self.db.make_id());
        context.standing = Arc::new(standing);
        context
    }

    pub fn organization(&self) -> OrganizationId {
        self.db.make_id()
    }

    /// Commits one change the way every domain does.
    pub async fn change(&self, org: OrganizationId) {
        let context = self.operator();
        let resource = Resource::in_organization("thing", *org.as_uuid(), None);
        let decider = RoleDecider::default().also::<Change1>(true);
        let permit = authorize::<Change1>(&decider, &context, resource).unwrap();
        let changed = self.db.change(&context, permit, async |tx| {
            let id: types::Id<Thing> = tx.make_id();
            let change = Change::new(Change1::NAME, id, 1)
                .in_organization(org.as_uuid())
                .after(&serde_json::json!({"name": "größer \"1\" ☃", "number": 1}));
            Ok(tx.record(change))
        });
        changed.await.unwrap();
    }

    pub async fn changes(&self, org: OrganizationId, count: usize) {
        for _ in 0..count {
            self.change(org).await;
        }
    }

    /// Seals until nothing is left. A sealer that was killed may hold its lock for a moment.
    pub async fn seal_all(&self) {
        let sealer = self.sealer();
        let begun = Instant::now();
        while self.unsealed().await > 0 {
            sealer.step().await.unwrap();
            assert!(begun.elapsed() < DEADLINE, "entries stay unsealed");
        }
    }

    pub async fn seal(&self) -> Result<Step, SealError> {
        self.sealer().step().await
    }

    pub async fn count(&self, sql: &str) -> i64 {
        self.admin.query_one(sql, &[]).await.unwrap().get(0)
    }

    pub async fn unsealed(&self) -> i64 {
        self.count(
            "SELECT count(*) FROM spine.audit_entry e WHERE NOT EXISTS (SELECT FROM audit.leaf l WHERE l.entry_id = e.id)",
        )
        .await
    }

    /// The log as it must be: all committed entries by transaction, hashed anew. Compares every stored hash with it.
    pub async fn check_tree(&self) -> u64 {
        let size = store::unsigned(self.count("SELECT size FROM audit.tree").await);
        let rows = self.admin.query(store::SEALED_RANGE, &[&0i64, &i64::MAX]).await.unwrap();
        assert_eq!(rows.len() as u64, size, "leaves and size differ");
        let mut tree = Frontier::default();
        let mut nodes = 0;
        let mut last = (0u64, Uuid::nil());
        for (index, row) in rows.iter().enumerate() {
            let entry = store::entry_row_if_there(row).expect("an entry is gone");
            let place = (entry.xid.parse().unwrap(), entry.id);
            assert!(place > last, "entry {index} is out of order");
            last = place;
            assert_eq!(store::row_index(row), Some(index as u64));
            let hash = leaf_hash(entry.line(index as u64).as_bytes());
            assert_eq!(store::row_hash(row), Some(hash), "leaf {index}");
            nodes += tree.append(hash).len();
        }
        assert_eq!(self.count("SELECT count(*) FROM audit.node").await, nodes as i64);
        let newest = self.admin.query_opt(store::CHECKPOINT_NEWEST, &[]).await.unwrap();
        if let Some(row) = newest {
            let root: Hash = store::checkpoint(&row).root.parse().unwrap();
            assert_eq!((store::unsigned(row.get(0)), root), (size, tree.root()));
        }
        let frontier: Vec<u8> =
            self.admin.query_one("SELECT frontier FROM audit.tree", &[]).await.unwrap().get(0);
        assert_eq!(Frontier::from_bytes(&frontier).unwrap(), tree);
        size
    }
}

/// The logins, and a database with everything migrated, to be copied.
async fn make_template(root: &Client) {
    let password = Secret::new(server().password.clone());
    login::init(root, PREFIX, PREFIX, &password).await.unwrap();
    let owner = target(PREFIX, &Login::Owner.role_name(PREFIX)).connect().await.unwrap();
    let sets = [
        migrate::MigrationSet { domain: "spine", migrations: db::MIGRATIONS },
        iam::MIGRATION_SET,
        crate::MIGRATION_SET,
    ];
    migrate::run(&owner, PREFIX, &sets).await.unwrap();
    drop(owner);
    // A session that is still ending would keep the template from being copied.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1";
    while root.query_one(sessions, &[&PREFIX]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub fn target(database: &str, user: &str) -> Target {
    let mut config = tokio_postgres::Config::new();
    config
        .host_path(&server().socket_dir)
        .port(5432)
        .dbname(database)
        .user(user)
        .password(&server().password);
    Target::plain(config)
}

pub fn pool(name: &str, login: Login) -> Pool {
    let options = PoolOptions { connections_max: 4, waiting_max: 1_000, wait_timeout: DEADLINE };
    Pool::new(target(name, &login.role_name(PREFIX)), options).unwrap()
}

/// Runs a future for so many polls and then drops it, as a crash at that point would. `None` if it was cut off.
pub async fn crash_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

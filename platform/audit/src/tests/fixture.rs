//! An installation of its own for each test, and the log as an oracle would compute it.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use authz::{
    Action, ActionInfo, Actor, ActorKind, Context, Decider, DomainPolicy, Grant, Place, Resource, Standing,
    authorize,
};
use db::{Change, Db, Internal, Login, Nudges, Pool, Settings};
use iam::OrganizationId;
use merkle::{Frontier, Hash, SignerKey, leaf_hash};
use policy::Policies;
pub use testkit::DEADLINE;
use testkit::{SPINE, Scratch, TestDb};
use tokio_postgres::Client;
use types::{Clock, SystemClock};
use uuid::Uuid;

use crate::sealer::{SealError, SealKeys, Sealer, Step};
use crate::{Audit, KeySource, store};

pub struct Change1;
impl Action for Change1 {
    const NAME: &'static str = "test.thing.change";
    const TITLE: &'static str = "Change a thing";
}

const THING_POLICY: DomainPolicy = DomainPolicy {
    schema: r#"entity ThingList;
        action "test.thing.change" appliesTo { principal: [User], resource: [ThingList], context: Asked };"#,
    policies: r#"@id("test.operators")
        permit (principal in Role::"platform.operator", action == Action::"test.thing.change", resource);"#,
    actions: || vec![ActionInfo::of::<Change1>()],
};

pub enum Thing {}
impl types::Kind for Thing {
    const PREFIX: &'static str = "thg";
    const NAME: &'static str = "thing";
}

/// One installation.
pub struct World {
    pub db: Db,
    pub decider: Arc<dyn Decider>,
    pub audit: Audit,
    pub settings: Settings,
    pub nudges: Nudges,
    /// The superuser, in this database.
    pub admin: Client,
    pub key: Arc<SignerKey>,
    pub test: TestDb,
    sealer_pool: Pool,
    scratch: Scratch,
}

impl World {
    pub async fn new() -> Self {
        let test = TestDb::with(&[SPINE, iam::MIGRATION_SET, crate::MIGRATION_SET]).await;
        let policies = Policies::compile(&[iam::POLICY, crate::POLICY, THING_POLICY], iam::ROLES).unwrap();
        let decider: Arc<dyn Decider> = Arc::new(policies);
        let audit = Audit::new(test.db.clone(), test.settings.clone(), Arc::clone(&decider));
        Self {
            db: test.db.clone(),
            decider,
            audit,
            settings: test.settings.clone(),
            nudges: test.nudges.clone(),
            admin: test.superuser().await,
            key: Arc::new(SignerKey::from_seed("audit.test", &[7; 32]).unwrap()),
            sealer_pool: test.pool(Login::Sealer, 4),
            scratch: Scratch::new("audit"),
            test,
        }
    }

    /// A directory of this test.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.scratch.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    pub fn seal_keys(&self) -> SealKeys {
        SealKeys { current: Arc::clone(&self.key), former: None }
    }

    /// The sealer's access, checked against what it really writes.
    pub fn internal(&self) -> Internal {
        Internal::new(self.sealer_pool.clone(), "test sealer", true)
    }

    pub fn sealer(&self) -> Sealer {
        self.sealer_with(self.seal_keys())
    }

    pub fn sealer_with(&self, keys: impl KeySource) -> Sealer {
        self.make_sealer(SystemClock, keys)
    }

    pub fn sealer_at(&self, clock: impl Clock) -> Sealer {
        self.make_sealer(clock, self.seal_keys())
    }

    fn make_sealer(&self, clock: impl Clock, keys: impl KeySource) -> Sealer {
        let (nudges, settings) = (self.nudges.clone(), self.settings.clone());
        Sealer::new(self.internal(), Arc::new(clock), nudges, settings, Arc::new(keys))
    }

    pub async fn client(&self, login: Login) -> Client {
        self.test.client(login).await
    }

    pub async fn superuser(&self) -> Client {
        self.test.superuser().await
    }

    pub fn operator(&self) -> Context {
        self.caller(Standing::of([Grant::fixed(Place::Platform, iam::PLATFORM_OPERATOR)]))
    }

    pub fn owner(&self, org: OrganizationId) -> Context {
        let place = Place::Organization(*org.as_uuid());
        self.caller(Standing::of([Grant::fixed(place, iam::ORGANIZATION_OWNER)]))
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
        let permit = authorize::<Change1>(&*self.decider, &context, resource).unwrap();
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
        self.seal_all_with(self.seal_keys()).await;
    }

    pub async fn seal_all_with(&self, keys: SealKeys) {
        let sealer = self.sealer_with(keys);
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
        let eras = self.admin.query("SELECT era FROM audit.leaf ORDER BY index", &[]).await.unwrap();
        let eras: Vec<i32> = eras.iter().map(|row| row.get(0)).collect();
        let mut tree = Frontier::default();
        let mut nodes = 0;
        let mut last = (0, 0u64, Uuid::nil());
        for (index, row) in rows.iter().enumerate() {
            let entry = store::entry_row_if_there(row).expect("an entry is gone");
            let place = (eras[index], entry.xid.parse().unwrap(), entry.id);
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

//! A database of one test, with two tenants in it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::policy::Policies;
use authz::{Actor, ActorKind, Context, Grant, Place, Standing, Subject};
use db::{Db, Line, Login, Settings};
use iam::{Credentials, Iam, OrganizationId, ProjectId, Revocations};
use testkit::{SPINE, TestDb};
use tokio_postgres::Client;
use types::{Entropy, Id, Name, Secret, SystemEntropy};

use crate::*;

/// The worker that may take deliveries here.
pub const WORKER: &str = "audit.sealer";

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
    pub test: TestDb,
    pub db: Db,
    pub iam: Iam,
    pub settings: Settings,
    pub secrets: Secrets,
    pub acme: Tenant,
    pub rival: Tenant,
    decider: Arc<dyn Decider>,
    entropy: Arc<dyn Entropy>,
    /// Kept open: signing in costs a debug build more than most tests do.
    superuser: tokio::sync::OnceCell<Client>,
}

impl World {
    /// Tells who is calling. Nobody follows revocations here, so everyone is looked up.
    pub fn credentials(&self) -> Credentials {
        let line = Line::new(self.test.target(Login::App), "iam.revocations", true);
        let revocations = Revocations::new(line, self.db.nudges().clone(), self.settings.clone());
        Credentials::new(&self.db, revocations, self.settings.clone(), false)
    }

    pub async fn new() -> Self {
        let sets = [SPINE, iam::MIGRATION_SET, MIGRATION_SET];
        let test = TestDb::plan(&sets).at("2026-11-15T08:00:00Z").connections(4).start().await;
        let (db, settings, entropy) = (test.db.clone(), test.settings.clone(), Arc::clone(&test.entropy));
        let feed = ::events::Feed::new(db.internal("feed"), db.nudges().clone(), settings.clone());
        let decider: Arc<dyn Decider> =
            Arc::new(Policies::compile(&[iam::POLICY, POLICY], iam::ROLES).unwrap());
        let iam =
            Iam::new(db.clone(), feed, settings.clone(), Arc::clone(&decider), Arc::clone(&entropy), false);
        let acme = tenant(&iam, &db, "acme").await;
        let rival = tenant(&iam, &db, "rival").await;
        let keys = Arc::new(Keyring::new(Arc::new(key(1)), Vec::new()));
        let secrets = Secrets::new(
            db.clone(),
            settings.clone(),
            Arc::clone(&decider),
            Arc::clone(&entropy),
            iam.clone(),
            keys,
        );
        let superuser = tokio::sync::OnceCell::new();
        Self { test, db, iam, settings, secrets, acme, rival, decider, entropy, superuser }
    }

    pub fn advance(&self, by: Duration) {
        self.test.advance(by);
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
        self.superuser.get_or_init(|| self.test.superuser()).await
    }

    /// A connection of one of our logins.
    pub async fn client(&self, login: Login) -> Client {
        self.test.client(login).await
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
        self.test.set(key, value).await;
    }

    /// Ids sort by the millisecond: what a test expects in order must not happen in the same one.
    fn tick(&self) {
        self.advance(Duration::from_millis(1));
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

/// What the platform's operator holds.
pub fn operator() -> Standing {
    Standing::of([Grant::fixed(Place::Platform, iam::PLATFORM_OPERATOR)])
}

async fn tenant(iam: &Iam, db: &Db, name: &str) -> Tenant {
    let bootstrap = iam.bootstrap_context();
    let name = Name::parse(name).unwrap();
    let organization =
        iam.organization_create(&bootstrap, name.clone(), Default::default()).await.unwrap().id;
    let project = iam.project_create(&bootstrap, organization, name, Default::default()).await.unwrap().id;
    let mut context =
        Context::new(Actor::new(ActorKind::ServiceAccount, format!("key of {organization}")), db.make_id());
    let place = Place::Organization(*organization.as_uuid());
    context.standing = Arc::new(Standing::of([Grant::fixed(place, iam::ORGANIZATION_OWNER)]));
    Tenant { organization, project, context }
}

/// An empty directory of one test, which removes it.
pub fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("secretstest-{}-{name}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    directory
}

/// An id nobody has.
pub fn nobody<K: types::Kind>() -> Id<K> {
    Id::from_uuid(uuid::Uuid::from_u128(0xdead))
}

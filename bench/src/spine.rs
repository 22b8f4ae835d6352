//! The kernel, the audit domain and iam's revocations in this process, on a database of its own in the cluster under test.
//!
//! Flows, the sequencer and the sealer are measured here and not through HTTP, because nothing a caller can ask for drives them
//! alone. The database is separate, so that gpuaasd's workers do not do the work we mean to measure.

use std::sync::Arc;
use std::time::Duration;

use authz::{Action, Actor, Context, Decider, Decision, Permit, Question, Resource, authorize};
use db::migrate::{self, MigrationSet};
use db::{Db, Internal, Login, Nudges, Pool, PoolOptions, Settings, Target, login};
use tokio_postgres::Config;
use types::{Clock, IdMaker, Kind, Secret, SystemClock, SystemEntropy};

use crate::Result;

/// Prefix of the logins and name of the database.
const NAME: &str = "bench";
/// As many as `gpuaasd up` gives its requests and flows.
const CONNECTIONS_APP: usize = 10;
const CONNECTIONS_RELAY: usize = 2;
const CONNECTIONS_SEALER: usize = 1;
// fixed: nobody queues here longer than this unless something is broken
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Spine {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
    /// Where `db` connects to, for those who need a connection of their own.
    pub target: Target,
    /// As the login that sequences.
    pub relay: Internal,
    /// As the login that seals.
    pub sealer: Internal,
}

/// What the changes made here are about.
pub enum ThingKind {}
impl Kind for ThingKind {
    const PREFIX: &'static str = "thg";
    const NAME: &'static str = "thing";
}

/// The one thing that is done here.
pub struct Work;
impl Action for Work {
    const NAME: &'static str = "bench.work";
    const TITLE: &'static str = "Be measured";
}

/// Deciding is measured through HTTP; here it should cost nothing.
struct Always;
impl Decider for Always {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn decide(&self, _: &Question<'_>) -> Decision {
        Decision::Allow { policy_version: 1 }
    }
}

impl Spine {
    /// Makes logins, database and schema.
    pub async fn open(admin: &Config) -> Result<Self> {
        let password = Secret::new(String::from_utf8(admin.get_password().unwrap_or_default().to_vec())?);
        login::init(&Target::plain(admin.clone()).connect().await?, NAME, NAME, |_| password.clone()).await?;
        let target = |login: Login| {
            let mut config = admin.clone();
            config.dbname(NAME).user(login.role_name(NAME));
            Target::plain(config)
        };
        let spine = MigrationSet { domain: "spine", migrations: db::MIGRATIONS };
        migrate::run(
            &target(Login::Owner).connect().await?,
            NAME,
            &[spine, iam::MIGRATION_SET, audit::MIGRATION_SET],
        )
        .await?;
        let pool = |login: Login, connections_max: usize| {
            let waiting_max = connections_max * 100;
            Pool::new(target(login), PoolOptions { connections_max, waiting_max, wait_timeout: WAIT_TIMEOUT })
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids = IdMaker::new(Arc::clone(&clock), Arc::new(SystemEntropy));
        let db = Db::new(pool(Login::App, CONNECTIONS_APP)?, Arc::clone(&clock), ids, Nudges::default());
        let relay = Internal::new(pool(Login::Relay, CONNECTIONS_RELAY)?, "bench", false);
        let sealer = Internal::new(pool(Login::Sealer, CONNECTIONS_SEALER)?, "bench", false);
        Ok(Self { db, clock, settings: Settings::default(), target: target(Login::App), relay, sealer })
    }

    pub fn context(&self) -> Context {
        Context::new(Actor::system("bench"), self.db.make_id())
    }

    pub fn permit(&self, context: &Context) -> Result<Permit<Work>> {
        authorize::<Work>(&Always, context, Resource::platform(ThingKind::NAME)).map_err(in_words)
    }
}

/// A platform error keeps its inside context to itself; here it is wanted.
pub fn in_words(error: types::Error) -> crate::Broken {
    format!("{error:?}").into()
}

//! The one place that knows all domains: builds them, and collects what they register.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use audit::Audit;
use authz::{Decider, DomainPolicy};
use db::migrate::MigrationSet;
use db::{Db, EventInfo, Internal, Nudges, Pool, SettingInfo, Settings};
use domain::Domain;
use events::Feed;
use governance::Governance;
use iam::Iam;
use policy::Policies;
use secrets::{Keyring, Secrets};
use serde_json::Value;
use tokio::sync::watch;
use types::{Clock, Entropy, ErrorCode, IdMaker, SystemClock, SystemEntropy};
use web::Endpoint;

use crate::system::{self, System};
use crate::{Failure, contracts};

/// What every role stands on, whichever login it connects with.
#[derive(Clone)]
pub struct Base {
    pub pool: Pool,
    pub clock: Arc<dyn Clock>,
    pub ids: IdMaker,
    pub nudges: Nudges,
    pub settings: Settings,
    pub feed: Feed,
    /// Check every transaction against the tables it wrote: for test servers.
    pub backstop: bool,
    pub troubles: Troubles,
}

/// What work in the background has to say to those who look at readiness: each says what is wrong, or nothing.
#[derive(Clone, Default)]
pub struct Troubles(Arc<Mutex<Vec<watch::Receiver<Option<String>>>>>);

impl Troubles {
    pub fn watch(&self, trouble: watch::Receiver<Option<String>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
    }

    pub fn now(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(|trouble| trouble.borrow().clone()).collect()
    }
}

impl Base {
    /// Touches no database.
    pub fn new(pool: Pool, settings: Settings, backstop: bool) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids = IdMaker::new(Arc::clone(&clock), Arc::new(SystemEntropy));
        let nudges = Nudges::default();
        let reader = Internal::new(pool.clone(), "events.feed", backstop);
        let feed = Feed::new(reader, nudges.clone(), settings.clone());
        Self { pool, clock, ids, nudges, settings, feed, backstop, troubles: Troubles::default() }
    }

    pub fn internal(&self, worker: &'static str) -> Internal {
        Internal::new(self.pool.clone(), worker, self.backstop)
    }
}

/// The domains, built over the pool of the `app` login.
pub struct App {
    pub db: Db,
    pub feed: Feed,
    pub settings: Settings,
    pub iam: Iam,
    pub secrets: Secrets,
    pub clock: Arc<dyn Clock>,
    pub domains: Vec<Domain>,
}

/// What the app is built from, beside the base.
pub struct Parts {
    /// The keys that protect secrets.
    pub keys: Arc<Keyring>,
    pub decider: Arc<Policies>,
    /// Are replies to the public sent over TLS?
    pub tls: bool,
    pub stop: tokio_util::sync::CancellationToken,
}

impl App {
    /// `base` is over the `app` login. Touches no database: also builds the contracts.
    pub fn new(base: Base, parts: Parts) -> Self {
        let Base { pool, clock, ids, nudges, settings, feed, backstop, .. } = base;
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
        let make = if backstop { Db::with_backstop } else { Db::new };
        let db = make(pool, Arc::clone(&clock), ids, nudges);
        let decider: Arc<dyn Decider> = parts.decider;
        let iam = Iam::new(
            db.clone(),
            feed.clone(),
            settings.clone(),
            Arc::clone(&decider),
            Arc::clone(&entropy),
            parts.tls,
        );
        let secrets = Secrets::new(
            db.clone(),
            settings.clone(),
            Arc::clone(&decider),
            entropy,
            iam.clone(),
            parts.keys,
        );
        let audit = Audit::new(db.clone(), settings.clone(), Arc::clone(&decider));
        let governance =
            Governance::new(db.clone(), settings.clone(), Arc::clone(&decider), iam.clone(), Vec::new());
        let system = System::new(db.clone(), feed.clone(), settings.clone(), decider, parts.stop);
        let domains = vec![
            iam.domain(),
            audit.domain(),
            secrets.domain(),
            signin::domain(),
            governance.domain(),
            system.domain(),
        ];
        Self { db, feed, settings, iam, secrets, clock, domains }
    }

    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.domains.iter().flat_map(|domain| domain.endpoints.iter().cloned()).collect()
    }

    pub fn tags(&self) -> Vec<(&'static str, &'static str)> {
        self.domains.iter().flat_map(|domain| domain.tags.iter().copied()).collect()
    }

    pub fn events(&self) -> Vec<EventInfo> {
        self.domains.iter().flat_map(|domain| domain.events.iter().copied()).collect()
    }

    /// Every error code a caller can meet.
    pub fn errors(&self) -> Vec<&'static ErrorCode> {
        let mut all: Vec<&'static ErrorCode> = web::catalogue();
        all.extend(db::catalogue());
        all.extend(events::catalogue());
        all.extend(self.domains.iter().flat_map(|domain| domain.errors.iter().copied()));
        all
    }

    pub fn settings_reference(&self) -> Vec<SettingInfo> {
        let mut all = (web::SETTINGS)();
        all.extend((db::SETTINGS)());
        all.extend((events::SETTINGS)());
        all.extend((flow::SETTINGS)());
        all.extend((relay::SETTINGS)());
        all.extend(self.domains.iter().flat_map(|domain| domain.settings.iter().cloned()));
        all
    }
}

/// The settings of a server: it knows all there are, whichever roles it runs.
pub fn settings(overrides: HashMap<String, Value>) -> Result<Settings, Failure> {
    let registered = contracts::described()?.settings_reference();
    Settings::registered(registered, overrides).map_err(|fault| {
        Failure::new(format!(
            "--setting: {fault}. contracts/settings.json lists the settings with their defaults"
        ))
    })
}

/// What can be done in each domain, and who may.
const POLICIES: &[DomainPolicy] =
    &[iam::POLICY, audit::POLICY, secrets::POLICY, governance::POLICY, system::POLICY];

/// Who may do what, over all domains. Compiled once: the policies are part of the program.
pub fn decider() -> Result<Arc<Policies>, Failure> {
    static COMPILED: OnceLock<Arc<Policies>> = OnceLock::new();
    if let Some(compiled) = COMPILED.get() {
        return Ok(Arc::clone(compiled));
    }
    let compiled = Policies::compile(POLICIES, iam::ROLES)
        .map_err(|fault| Failure::new(format!("the policies of this program are damaged: {fault}")))?;
    Ok(Arc::clone(COMPILED.get_or_init(|| Arc::new(compiled))))
}

/// Under which name the audit log is sealed.
pub const AUDIT_SEALER: &str = "audit.sealer";

/// All migrations, in the order they must run: the spine's, then each domain's as they are registered.
pub fn migration_sets() -> Result<Vec<MigrationSet>, Failure> {
    let spine = MigrationSet { domain: "spine", migrations: db::MIGRATIONS };
    let domains = contracts::described()?.domains;
    Ok(std::iter::once(spine).chain(domains.iter().map(|domain| domain.migrations)).collect())
}

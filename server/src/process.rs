//! One running process: its app, its pools, its tasks, and its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use db::{Bridge, Internal, Line, Login, Pool, Settings, Target};
use iam::Revocations;
use relay::{NatsTarget, NudgeCarrier};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::assemble::{App, Base, Parts};
use crate::database::Database;
use crate::health::Health;

/// What roles run on.
pub struct Process {
    pub base: Base,
    /// Only in a process that connects as `app`.
    app: Option<Arc<App>>,
    pools: HashMap<Login, Pool>,
    /// Where the base's pool connects to, and as whom.
    target: Target,
    database: Database,
    base_login: Login,
    /// Are replies to the public sent over TLS?
    pub tls: bool,
    pub stop: CancellationToken,
    signals: Signals,
    /// Did a task end although nobody asked it to?
    failed: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

/// Kind of the id that tells this process's nudges from others'.
enum Replica {}
impl types::Kind for Replica {
    const PREFIX: &'static str = "rep";
    const NAME: &'static str = "replica";
}

/// How a process is made.
pub struct ProcessOptions {
    pub database: Database,
    /// Whom it connects as.
    pub logins: Vec<Login>,
    /// Connections for requests and flows; the workers' own pools are small and come on top.
    pub connections: usize,
    /// The keys that protect secrets.
    pub keys: Arc<secrets::Keyring>,
    pub tls: bool,
    pub backstop: bool,
    pub settings: Settings,
}

/// Connections of the relay: the sequencer's, one for the relay's place in the log, one for whoever reads the log, one
/// for settings and health.
const RELAY_CONNECTIONS: usize = 4;
/// Connections of the sealer: its own, and one for the copy elsewhere.
const SEALER_CONNECTIONS: usize = 2;

impl Process {
    pub async fn start(options: ProcessOptions) -> Result<Self, Failure> {
        let stop = CancellationToken::new();
        let mut pools = HashMap::new();
        for login in options.logins {
            let connections = match login {
                Login::Relay => RELAY_CONNECTIONS,
                Login::Sealer => SEALER_CONNECTIONS,
                _ => options.connections,
            };
            pools.insert(login, options.database.pool(login, connections)?);
        }
        let has_app = pools.contains_key(&Login::App);
        let base_login = if has_app { Some(Login::App) } else { pools.keys().next().copied() };
        let base_login = base_login.ok_or_else(|| Failure::new("a process without a login does nothing"))?;
        let base = Base::new(pools[&base_login].clone(), options.settings, options.backstop);
        base.settings.renew(&base.internal("settings")).await?;
        base.feed.start().await?;
        let decider = crate::assemble::decider()?;
        let parts = Parts { keys: options.keys, decider, tls: options.tls, stop: stop.clone() };
        let app = has_app.then(|| Arc::new(App::new(base.clone(), parts)));
        Ok(Self {
            base,
            app,
            pools,
            target: options.database.target(base_login)?,
            database: options.database,
            base_login,
            tls: options.tls,
            stop,
            signals: Signals::listen()?,
            failed: Arc::default(),
            tasks: JoinSet::new(),
        })
    }

    /// The domains.
    pub fn app(&self) -> Result<Arc<App>, Failure> {
        self.app.clone().ok_or_else(|| no_such_login(Login::App))
    }

    /// What says whether it is ready, on a connection of its own.
    pub fn health(&self, roles: Vec<&'static str>) -> Result<Health, Failure> {
        let own = self.database.pool(self.base_login, 1)?;
        Ok(Health::new(self.base.clone(), own, self.app.is_some(), roles))
    }

    /// A worker's access under a login of this process.
    pub fn internal(&self, login: Login, worker: &'static str) -> Result<Internal, Failure> {
        let pool = self.pools.get(&login).ok_or_else(|| no_such_login(login))?;
        Ok(Internal::new(pool.clone(), worker, self.base.backstop))
    }

    /// Runs a task until the process stops. A task that ends early, or panics, takes the process down: a role that
    /// silently does nothing is worse than a restart.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let (stop, failed) = (self.stop.clone(), Arc::clone(&self.failed));
        self.tasks.spawn(async move {
            task.await;
            if !stop.is_cancelled() {
                failed.store(true, Ordering::SeqCst);
                tracing::error!(task = name, "a task ended although nobody asked it to");
                stop.cancel();
            }
        });
    }

    /// Reads the log for everyone in this process who waits for events.
    pub fn follow_log(&mut self) {
        let (feed, stop) = (self.base.feed.clone(), self.stop.clone());
        self.spawn("event feed", async move { feed.run(stop).await });
    }

    /// Hears other replicas' nudges, and tells them ours.
    pub fn follow_replicas(&mut self) {
        let replica: types::Id<Replica> = self.base.ids.make();
        let (nudges, settings) = (self.base.nudges.clone(), self.base.settings.clone());
        let bridge = Bridge::new(self.target.clone(), nudges, settings, *replica.as_uuid());
        let stop = self.stop.clone();
        self.spawn("nudge bridge", async move { bridge.run(stop).await });
    }

    /// The same by NATS, beside PostgreSQL. Returns at once: a server that is away is waited for.
    pub async fn follow_replicas_by_nats(&mut self, target: NatsTarget) -> Result<(), Failure> {
        let replica: types::Id<Replica> = self.base.ids.make();
        let (nudges, settings) = (self.base.nudges.clone(), self.base.settings.clone());
        let carrier = NudgeCarrier::new(target, nudges, settings, *replica.as_uuid()).await?;
        let stop = self.stop.clone();
        self.spawn("nudges by NATS", async move { carrier.run(stop).await });
        Ok(())
    }

    /// Learns what was revoked, on a connection of its own.
    pub fn follow_revocations(&mut self) -> Revocations {
        let line = Line::new(self.target.clone(), "iam.revocations", self.base.backstop);
        let revocations = Revocations::new(line, self.base.nudges.clone(), self.base.settings.clone());
        let (following, stop) = (revocations.clone(), self.stop.clone());
        self.spawn("revocations", async move { following.run(stop).await });
        revocations
    }

    /// Keeps settings fresh: after a nudge, and every few seconds.
    pub fn follow_settings(&mut self) {
        let (base, stop) = (self.base.clone(), self.stop.clone());
        self.spawn("settings", async move {
            let internal = base.internal("settings");
            let mut nudge = base.nudges.listen(db::Topic::Setting);
            while !stop.is_cancelled() {
                tokio::select! {
                    () = nudge.wait(SETTINGS_SWEEP) => {}
                    () = stop.cancelled() => {}
                }
                if let Err(error) = base.settings.renew(&internal).await {
                    tracing::warn!(%error, "settings could not be read, the last ones stay in force");
                }
            }
        });
    }

    /// Waits for a signal or a failing task, then lets every task finish. Between the signal and the end it says that it
    /// is not ready, and goes on answering for `drain`: load balancers need a moment to look elsewhere.
    /// Errs if a task failed, so that whoever supervises the process starts it again.
    pub async fn run_until_stopped(mut self, health: Health, drain: Duration) -> Result<(), Failure> {
        let (stop, mut signals) = (self.stop.clone(), self.signals);
        tokio::spawn(async move {
            signals.arrived().await;
            health.drain();
            tracing::info!("stopping");
            tokio::time::sleep(drain).await;
            stop.cancel();
        });
        while let Some(result) = self.tasks.join_next().await {
            if let Err(error) = result {
                tracing::error!(%error, "a task panicked");
                self.failed.store(true, Ordering::SeqCst);
                self.stop.cancel();
            }
        }
        self.pools.values().for_each(Pool::close);
        if self.failed.load(Ordering::SeqCst) {
            return Err(Failure::new("a part of the server failed; the log says which. Start it again"));
        }
        Ok(())
    }
}

/// The domains for one command, on a connection of its own.
pub async fn app_for_command(database: Database, keys: secrets::Keyring) -> Result<Arc<App>, Failure> {
    let options = ProcessOptions {
        database,
        logins: vec![Login::App],
        connections: 1,
        keys: Arc::new(keys),
        tls: false,
        backstop: false,
        settings: Settings::default(),
    };
    Process::start(options).await?.app()
}

/// A role that asks for a login it did not name in [`Role::logins`](crate::roles::Role::logins).
fn no_such_login(login: Login) -> Failure {
    Failure::new(format!("no role of this process connects as {}", login.suffix()))
}

// fixed: how late a changed setting may take effect when its nudge was lost
const SETTINGS_SWEEP: Duration = Duration::from_secs(5);

/// The signals that end us in order. Listened for from the moment this is made: before it, they would kill.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind).map_err(|error| Failure::new(format!("signals cannot be listened for: {error}")))
        };
        Ok(Self { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    async fn arrived(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

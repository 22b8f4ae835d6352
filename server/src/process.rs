//! One running process: its app, its pools, its tasks, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use db::{Bridge, Login, Nudges, Pool, Settings, Target};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::assemble::{App, Parts};
use crate::database::Database;
use crate::health::Health;

/// What roles run on.
pub struct Process {
    pub app: Arc<App>,
    /// Of the `relay` login: outbox and log.
    pub relay_pool: Pool,
    /// Of the `sealer` login: audit entries and the Merkle log.
    pub sealer_pool: Pool,
    /// Is every transaction checked against what it wrote?
    pub backstop: bool,
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
    /// Connections for requests and flows; the workers' own pools are small and come on top.
    pub connections: usize,
    /// The keys that protect secrets.
    pub keys: Arc<secrets::Keyring>,
    pub tls: bool,
    pub backstop: bool,
    pub settings: Settings,
}

/// Connections of the relay: the sequencer's, one for the relay's place in the log, one for whoever reads the log.
const RELAY_CONNECTIONS: usize = 3;
/// Connections of the sealer: its own, and one for the copy elsewhere.
const SEALER_CONNECTIONS: usize = 2;

impl Process {
    pub async fn start(options: ProcessOptions) -> Result<Self, Failure> {
        let stop = CancellationToken::new();
        let nudges = Nudges::default();
        let pool = options.database.pool(Login::App, options.connections)?;
        let relay_pool = options.database.pool(Login::Relay, RELAY_CONNECTIONS)?;
        let sealer_pool = options.database.pool(Login::Sealer, SEALER_CONNECTIONS)?;
        let app = Arc::new(App::new(Parts {
            pool,
            settings: options.settings,
            nudges,
            keys: options.keys,
            tls: options.tls,
            stop: stop.clone(),
            backstop: options.backstop,
        }));
        app.settings.renew(&app.db.internal("settings")).await?;
        app.feed.start().await?;
        let (backstop, tls) = (options.backstop, options.tls);
        Ok(Self {
            app,
            relay_pool,
            sealer_pool,
            backstop,
            tls,
            stop,
            signals: Signals::listen()?,
            failed: Arc::default(),
            tasks: JoinSet::new(),
        })
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
        let (feed, stop) = (self.app.feed.clone(), self.stop.clone());
        self.spawn("event feed", async move { feed.run(stop).await });
    }

    /// Hears other replicas' nudges, and tells them ours.
    pub fn follow_replicas(&mut self, target: Target) {
        let (nudges, settings) = (self.app.db.nudges().clone(), self.app.settings.clone());
        let replica = self.app.db.make_id::<Replica>();
        let bridge = Bridge::new(target, nudges, settings, *replica.as_uuid());
        let stop = self.stop.clone();
        self.spawn("nudge bridge", async move { bridge.run(stop).await });
    }

    /// Keeps settings fresh: after a nudge, and every few seconds.
    pub fn follow_settings(&mut self) {
        let (app, stop) = (Arc::clone(&self.app), self.stop.clone());
        self.spawn("settings", async move {
            let internal = app.db.internal("settings");
            let mut nudge = app.db.nudges().listen(db::Topic::Setting);
            while !stop.is_cancelled() {
                tokio::select! {
                    () = nudge.wait(SETTINGS_SWEEP) => {}
                    () = stop.cancelled() => {}
                }
                if let Err(error) = app.settings.renew(&internal).await {
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
        self.app.db.pool().close();
        self.relay_pool.close();
        self.sealer_pool.close();
        if self.failed.load(Ordering::SeqCst) {
            return Err(Failure::new("a part of the server failed; the log says which. Start it again"));
        }
        Ok(())
    }
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

//! A machine for the tests: pack, travel when the gate is open, and arrive, which makes a thing.
//!
//! Packing changes only the world, so it may happen twice; arriving changes domain state and moves the flow in the
//! same transaction, so it happens once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use authz::{Actor, Context};
use flow::{Fence, Machine, Runner, Start, State, Step, start, wake};
use serde::{Deserialize, Serialize};
use testkit::toy::{self, ThingCreate};
use testkit::types::{ErrorCode, ErrorKind, Result, Timestamp};
use testkit::{TestDb, authz};
use tokio::sync::Semaphore;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leg {
    Packing,
    Travelling,
    Home,
    Lost,
    Found,
}

impl State for Leg {
    const ALL: &'static [Self] = &[Self::Packing, Self::Travelling, Self::Home, Self::Lost, Self::Found];
    const EDGES: &'static [(Self, Self)] = &[
        (Self::Packing, Self::Travelling),
        (Self::Travelling, Self::Home),
        (Self::Lost, Self::Found),
        (Self::Found, Self::Lost),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Packing => "packing",
            Self::Travelling => "travelling",
            Self::Home => "home",
            Self::Lost => "lost",
            Self::Found => "found",
        }
    }

    fn sla(self) -> Duration {
        Duration::from_secs(60)
    }

    fn owner(self) -> &'static str {
        "travellers"
    }
}

/// What the machine sees and does, and where a test gets hold of it.
pub struct World {
    pub packed: AtomicUsize,
    pub gate_open: AtomicBool,
    pub failures: AtomicUsize,
    /// Write home, which changes domain state and moves nothing, before each arrival.
    pub writes_home: AtomicBool,
    /// Run each effect a second time at once.
    pub twice: AtomicBool,
    /// Taken by each observation and given back, so a test can hold one.
    pub may_rest: Semaphore,
    /// Taken by each arrival.
    pub may_arrive: Semaphore,
    pub seen: Mutex<Vec<&'static str>>,
}

impl World {
    /// Nothing is packed, and nothing is held.
    pub fn open() -> Self {
        Self {
            packed: AtomicUsize::new(0),
            gate_open: AtomicBool::new(true),
            failures: AtomicUsize::new(0),
            writes_home: AtomicBool::new(false),
            twice: AtomicBool::new(false),
            may_rest: Semaphore::new(1_000),
            may_arrive: Semaphore::new(1_000),
            seen: Mutex::default(),
        }
    }
}

pub struct Trip {
    pub test: Arc<TestDb>,
    pub world: Arc<World>,
}

#[derive(Debug, Clone, Copy)]
pub enum Effect {
    Pack,
    Arrive,
}

static DELAYED: ErrorCode = ErrorCode::new("toy_delayed", ErrorKind::Unavailable, "Delayed", "Wait.");

impl Machine for Trip {
    const KIND: &'static str = "toy.trip";
    type State = Leg;
    type Data = String;
    type Facts = (bool, bool);
    type Effect = Effect;

    async fn observe(&self, _: &Context, leg: Leg, _: &String) -> Result<(bool, bool)> {
        let facts =
            (self.world.packed.load(Ordering::SeqCst) > 0, self.world.gate_open.load(Ordering::SeqCst));
        self.world.seen.lock().unwrap().push(leg.name());
        let _held = self.world.may_rest.acquire().await.unwrap();
        Ok(facts)
    }

    fn step(&self, leg: Leg, _: &String, facts: &(bool, bool), now: Timestamp) -> Step<Leg, Effect> {
        match (leg, facts) {
            (Leg::Packing, (false, _)) => Step::Do(Effect::Pack),
            (Leg::Packing, (true, _)) => Step::Goto(Leg::Travelling),
            (Leg::Travelling, (_, true)) => Step::Do(Effect::Arrive),
            (Leg::Travelling, (_, false)) => {
                let until = now.checked_add(Duration::from_secs(3600)).unwrap();
                Step::Wait { reason: "the gate".to_owned(), until }
            }
            (Leg::Home, _) => Step::Done,
            (Leg::Lost, _) => Step::Goto(Leg::Found),
            (Leg::Found, _) => Step::Goto(Leg::Lost),
        }
    }

    async fn perform(
        &self,
        context: &Context,
        data: &String,
        effect: Effect,
        fence: &Fence<Leg>,
    ) -> Result<()> {
        if self.world.failures.load(Ordering::SeqCst) > 0 {
            self.world.failures.fetch_sub(1, Ordering::SeqCst);
            return Err(DELAYED.error("not yet"));
        }
        self.act(context, data, effect, fence).await?;
        if self.world.twice.load(Ordering::SeqCst) {
            // As after a crash between the effect and its note: nothing of it may count twice.
            let _ = self.act(context, data, effect, fence).await;
        }
        Ok(())
    }
}

impl Trip {
    async fn act(&self, context: &Context, data: &str, effect: Effect, fence: &Fence<Leg>) -> Result<()> {
        match effect {
            Effect::Pack => {
                self.world.packed.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
            Effect::Arrive => {
                self.world.may_arrive.acquire().await.unwrap().forget();
                if self.world.writes_home.load(Ordering::SeqCst) {
                    self.write_home(context, fence).await?;
                }
                self.arrive(context, data, fence).await
            }
        }
    }

    async fn write_home(&self, context: &Context, fence: &Fence<Leg>) -> Result<()> {
        let permit = self.test.permit::<ThingCreate>(context, toy::resource(toy::org(1)));
        let name = format!("letter {}", self.test.db.make_id::<toy::ThingKind>());
        let change = self.test.db.change(context, permit, async |tx| {
            fence.hold(tx).await?;
            let letter = toy::insert(tx, toy::org(1), &name).await?;
            Ok(tx.record(toy::created(&letter)))
        });
        change.await
    }

    async fn arrive(&self, context: &Context, data: &str, fence: &Fence<Leg>) -> Result<()> {
        let permit = self.test.permit::<ThingCreate>(context, toy::resource(toy::org(1)));
        let name = format!("{data} {}", self.test.db.make_id::<toy::ThingKind>());
        let change = self.test.db.change(context, permit, async |tx| {
            let thing = toy::insert(tx, toy::org(1), &name).await?;
            fence.advance(tx, Leg::Home).await?;
            Ok(tx.record(toy::created(&thing)))
        });
        change.await
    }
}

/// A database at a fixed time, a world, and a worker.
pub struct Travel {
    pub test: Arc<TestDb>,
    pub world: Arc<World>,
    pub runner: Runner<Trip>,
}

impl Travel {
    pub async fn new() -> Self {
        let test = Arc::new(TestDb::plan_kernel().at("2026-03-05T12:00:00Z").start().await);
        let world = Arc::new(World::open());
        let runner = runner(&test, &world);
        Self { test, world, runner }
    }

    pub async fn start(&self, key: &str, leg: Leg) {
        let context = self.test.context_of(Actor::system("toy"));
        self.change(async |tx| {
            let data = key.to_owned();
            let flow = Start::<Trip> { key, organization: Some(toy::org(1)), state: leg, data: &data };
            Ok(start(tx, &context, flow).await?)
        })
        .await;
    }

    pub async fn wake(&self, key: &str) {
        self.change(async |tx| Ok(wake::<Trip>(tx, key).await?)).await;
    }

    /// A change in whose course a flow is begun or woken.
    async fn change(&self, work: impl AsyncFnOnce(&mut db::Tx<'_>) -> Result<()>) {
        let context = self.test.context("someone");
        let permit = self.test.permit::<ThingCreate>(&context, toy::resource(toy::org(1)));
        let cause = toy::Thing { id: self.test.db.make_id(), org: toy::org(1), name: "cause".to_owned() };
        let change = self.test.db.change(&context, permit, async |tx| {
            work(tx).await?;
            Ok(tx.record(toy::created(&cause)))
        });
        change.await.unwrap();
    }

    /// The lease of a worker that died has run out.
    pub async fn expire_leases(&self) {
        self.test.run("UPDATE spine.flow SET lease_until = '-infinity'").await;
    }

    pub async fn arrivals(&self) -> i64 {
        self.test.count("SELECT count(*) FROM toy.thing").await
    }

    /// (state, done, attempts, seconds until it is due) of the newest flow with this key.
    pub async fn flow(&self, key: &str) -> (String, bool, i32, f64) {
        let sql = "SELECT state, done_at IS NOT NULL, attempts, extract(epoch FROM wake_at - $2)::float8
                   FROM spine.flow WHERE key = $1 ORDER BY created_at DESC, id DESC LIMIT 1";
        let row = self.test.superuser().await.query_one(sql, &[&key, &self.test.db.now()]).await.unwrap();
        (row.get(0), row.get(1), row.get(2), row.get(3))
    }

    pub async fn is_done(&self, key: &str) -> bool {
        self.flow(key).await.1
    }

    pub fn seen(&self) -> Vec<&'static str> {
        self.world.seen.lock().unwrap().clone()
    }
}

pub fn runner(test: &Arc<TestDb>, world: &Arc<World>) -> Runner<Trip> {
    let machine = Trip { test: Arc::clone(test), world: Arc::clone(world) };
    let internal = test.db.internal("toy.trip");
    Runner::new(machine, internal, Arc::clone(&test.clock), test.nudges.clone(), test.settings.clone())
}

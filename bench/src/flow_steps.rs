//! A flow of five durable steps: how long it takes against one durable commit, and what it costs.
//!
//! The toy machine only moves on: each step is one transition, written down before the next. So what is measured is the
//! engine itself: a change that starts the flow, a lease, five transitions, and the end. That is eight commits, one after
//! the other, hence the aim of eight times one commit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use authz::Context;
use db::Change;
use flow::{Fence, Machine, Runner, Start, Step};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_postgres::{Client, Config, NoTls, Statement};
use tokio_util::sync::CancellationToken;
use types::{Id, Timestamp};

use crate::Result;
use crate::cpu::Processes;
use crate::load::measured;
use crate::sample::{Latencies, Sample};
use crate::spine::{Spine, ThingKind, Work, in_words};

/// Flows that run at the same time when CPU time is counted.
const AT_ONCE: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    First,
    Second,
    Third,
    Fourth,
    Fifth,
    Arrived,
}

impl flow::State for Place {
    const ALL: &'static [Self] =
        &[Self::First, Self::Second, Self::Third, Self::Fourth, Self::Fifth, Self::Arrived];
    const EDGES: &'static [(Self, Self)] = &[
        (Self::First, Self::Second),
        (Self::Second, Self::Third),
        (Self::Third, Self::Fourth),
        (Self::Fourth, Self::Fifth),
        (Self::Fifth, Self::Arrived),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Third => "third",
            Self::Fourth => "fourth",
            Self::Fifth => "fifth",
            Self::Arrived => "arrived",
        }
    }

    fn sla(self) -> Duration {
        Duration::from_secs(60) // fixed: nobody looks after flows that live for milliseconds
    }

    fn owner(self) -> &'static str {
        "bench"
    }
}

/// Walks through the places and says when it has arrived.
struct Walk {
    arrived: Arc<Semaphore>,
}

#[derive(Serialize, Deserialize)]
struct Luggage {}

impl Machine for Walk {
    const KIND: &'static str = "bench.walk";
    type State = Place;
    type Data = Luggage;
    type Facts = ();
    type Effect = ();

    /// Asked about `Arrived` only after the fifth transition has been committed.
    async fn observe(&self, _: &Context, state: Place, _: &Luggage) -> types::Result<()> {
        if state == Place::Arrived {
            self.arrived.add_permits(1);
        }
        Ok(())
    }

    fn step(&self, state: Place, _: &Luggage, (): &(), _: Timestamp) -> Step<Place, ()> {
        let next = <Place as flow::State>::EDGES.iter().find(|(from, _)| *from == state);
        next.map_or(Step::Done, |(_, to)| Step::Goto(*to))
    }

    async fn perform(&self, _: &Context, _: &Luggage, (): (), _: &Fence<Place>) -> types::Result<()> {
        Ok(())
    }
}

/// The engine, running, and a connection that makes plain commits beside it.
pub struct Flows {
    spine: Arc<Spine>,
    arrived: Arc<Semaphore>,
    stop: CancellationToken,
    committer: Client,
    commit: Statement,
}

impl Flows {
    pub async fn start(spine: &Arc<Spine>, floor: &Config) -> Result<Self> {
        let arrived = Arc::new(Semaphore::new(0));
        let runner = Runner::new(
            Walk { arrived: Arc::clone(&arrived) },
            spine.db.internal("bench.walk"),
            Arc::clone(&spine.clock),
            spine.db.nudges().clone(),
            spine.settings.clone(),
        );
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { runner.run(stopped).await });
        let (committer, connection) = floor.connect(NoTls).await?;
        tokio::spawn(connection);
        committer.batch_execute("CREATE TABLE one_row AS SELECT 0 AS value").await?;
        let commit = committer.prepare("UPDATE one_row SET value = value + 1").await?;
        Ok(Self { spine: Arc::clone(spine), arrived, stop, committer, commit })
    }

    /// One durable commit: an update of one row, on one connection, one after the other.
    pub fn commits(&self, runtime: &Runtime, count: usize) -> Result<Latencies> {
        runtime.block_on(async {
            let mut times = Latencies::default();
            for _ in 0..count {
                let begun = Instant::now();
                self.committer.execute(&self.commit, &[]).await?;
                times.push(begun.elapsed());
            }
            Ok(times)
        })
    }

    /// One flow after the other, from before the change that starts it to its fifth transition's commit.
    pub fn one_by_one(&self, runtime: &Runtime, count: usize) -> Result<Latencies> {
        runtime.block_on(async {
            let mut times = Latencies::default();
            for _ in 0..count {
                let begun = Instant::now();
                self.begin().await?;
                self.arrivals(1).await?;
                times.push(begun.elapsed());
            }
            Ok(times)
        })
    }

    /// A hundred flows at once, again and again for `time`. This process is the server here.
    pub fn at_once(&self, runtime: &Runtime, postmaster: u32, time: Duration) -> Result<Sample> {
        let processes = Processes { server: Some(std::process::id()), postmaster: Some(postmaster) };
        measured(processes, || {
            runtime.block_on(async {
                let (begun, mut done) = (Instant::now(), 0);
                while begun.elapsed() < time {
                    futures::future::try_join_all((0..AT_ONCE).map(|_| self.begin())).await?;
                    self.arrivals(AT_ONCE).await?;
                    done += u64::from(AT_ONCE);
                }
                Ok((done, begun.elapsed()))
            })
        })
    }

    async fn begin(&self) -> Result<()> {
        let context = self.spine.context();
        let permit = self.spine.permit(&context)?;
        let started = self.spine.db.change(&context, permit, async |tx| {
            let thing: Id<ThingKind> = tx.make_id();
            let key = thing.to_string();
            let start =
                Start::<Walk> { key: &key, organization: None, state: Place::First, data: &Luggage {} };
            flow::start(tx, &context, start).await?;
            Ok(tx.record(Change::new(<Work as authz::Action>::NAME, thing, 1)))
        });
        started.await.map_err(in_words)
    }

    async fn arrivals(&self, count: u32) -> Result<()> {
        // fixed: flows take milliseconds; after this one is lost
        let patience = Duration::from_secs(30);
        let arrived = tokio::time::timeout(patience, self.arrived.acquire_many(count));
        arrived.await.map_err(|_| "a flow did not arrive")??.forget();
        Ok(())
    }
}

impl Drop for Flows {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

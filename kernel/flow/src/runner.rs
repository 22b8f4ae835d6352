//! Runs the flows of one kind.

use std::sync::Arc;

use authz::{Actor, Context, CorrelationId};
use db::settings::Settings;
use db::{DbError, Internal, Row, Topic};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use types::{Clock, Timestamp};
use uuid::Uuid;

use crate::fence::Fence;
use crate::machine::{Machine, State, Step};
use crate::settings::{
    AT_ONCE_MAX, BACKOFF_MS, BACKOFF_SECONDS_MAX, KEEP_DONE_SECONDS, LEASE_SECONDS, SWEEP_MS,
};
use crate::store;

/// Runs flows of one machine. Any number of replicas may run; each row is leased by one.
pub struct Runner<M: Machine> {
    inner: Arc<Inner<M>>,
}

struct Inner<M> {
    machine: M,
    internal: Internal,
    clock: Arc<dyn Clock>,
    nudges: db::Nudges,
    settings: Settings,
}

/// Steps one lease may take before the flow has to queue again: a loop in a machine must not starve the others.
const STEPS_MAX: u32 = 100; // fixed: a guard against bugs in machines, not a capacity

struct Leased<M: Machine> {
    fence: Fence<M::State>,
    data: M::Data,
    context: Context,
    attempts: i32,
}

enum Outcome {
    /// The lease was given back: the flow waits or is done. Or it was woken meanwhile, and is due again.
    Settled { due_again: bool },
    /// A step failed; it is tried again later.
    Failed(String),
}

impl<M: Machine> Runner<M> {
    pub fn new(
        machine: M,
        internal: Internal,
        clock: Arc<dyn Clock>,
        nudges: db::Nudges,
        settings: Settings,
    ) -> Self {
        Self { inner: Arc::new(Inner { machine, internal, clock, nudges, settings }) }
    }

    /// Works until told to stop, then finishes what it has leased.
    pub async fn run(&self, stop: CancellationToken) {
        let mut nudge = self.inner.nudges.listen(Topic::Committed);
        let mut tasks = tokio::task::JoinSet::new();
        while !stop.is_cancelled() {
            let free = (self.inner.settings.get(&AT_ONCE_MAX) as usize).saturating_sub(tasks.len());
            let mut more_due = false;
            match self.inner.lease(free).await {
                Ok(leased) => {
                    more_due = leased.len() == free;
                    for flow in leased {
                        let inner = Arc::clone(&self.inner);
                        tasks.spawn(async move { inner.drive(flow).await });
                    }
                }
                Err(error) => {
                    tracing::warn!(kind = M::KIND, %error, "flows cannot be leased, will try again")
                }
            }
            tokio::select! {
                () = nudge.wait(SWEEP_MS.millis(&self.inner.settings)) => {}
                () = until_more_is_due(&mut tasks, more_due) => {}
                () = stop.cancelled() => {}
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Leases what is due and drives it until nothing is due any more. For tests and one-off runs.
    pub async fn run_once(&self) -> Result<usize, DbError> {
        let leased = self.inner.lease(AT_ONCE).await?;
        let count = leased.len();
        for flow in leased {
            self.inner.drive(flow).await;
        }
        Ok(count)
    }

    /// Counts flows that overran their state's time limit, and forgets finished ones. Called now and then.
    pub async fn look_after(&self) -> Result<(), DbError> {
        let now = self.inner.clock.now();
        let overdue = self.inner.internal.query(store::OVERDUE, &[&M::KIND, &now]).await?;
        for state in M::State::ALL {
            let count: i64 =
                overdue.iter().find(|row| row.get::<_, &str>(0) == state.name()).map_or(0, |row| row.get(1));
            metrics::gauge!("gpuaas_flow_overdue", "kind" => M::KIND, "state" => state.name(), "owner" => state.owner())
                .set(count as f64);
        }
        let keep = KEEP_DONE_SECONDS.seconds(&self.inner.settings);
        let before = now.checked_sub(keep).unwrap_or(Timestamp::UNIX_EPOCH);
        self.inner.internal.bookkeeping_one(&["spine.flow"], store::FORGET_DONE, &[&before]).await.map(drop)
    }
}

const AT_ONCE: usize = 1_000;

/// Returns when a place is free and a flow may be due for it: `more_due` if the last lease got all it asked for. One that
/// got less has seen everything that was due, so an ended flow is no reason to look again, unless it says so itself.
async fn until_more_is_due(tasks: &mut tokio::task::JoinSet<bool>, mut more_due: bool) {
    while let Some(ended) = tasks.join_next().await {
        more_due |= ended.unwrap_or_else(|error| {
            tracing::error!(%error, "a flow's step panicked; its lease has to run out");
            false
        });
        if more_due {
            return;
        }
    }
    std::future::pending().await
}

impl<M: Machine> Inner<M> {
    async fn lease(&self, limit: usize) -> Result<Vec<Leased<M>>, DbError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let params: db::Params<'_> = &[&M::KIND, &self.clock.now(), &self.lease_seconds(), &limit];
        let rows = self.internal.bookkeeping_one(&["spine.flow"], store::LEASE, params).await?;
        Ok(rows.iter().filter_map(|row| self.leased(row)).collect())
    }

    /// A row this version cannot read stays leased and untouched: a newer version may know its state.
    fn leased(&self, row: &Row) -> Option<Leased<M>> {
        let (id, state_name, data): (Uuid, &str, &str) = (row.get(0), row.get(3), row.get(4));
        let state = M::State::ALL.iter().copied().find(|state| state.name() == state_name);
        let (Some(state), Ok(data)) = (state, serde_json::from_str(data)) else {
            tracing::error!(kind = M::KIND, flow = %id, state = state_name, "flow is in a form this version does not know");
            return None;
        };
        let mut context = Context::new(Actor::system(M::KIND), CorrelationId::from_uuid(row.get(8)));
        context.causation_id = Some(format!("flow:{id}"));
        context.traceparent = row.get(9);
        let fence = Fence::new(id, row.get(6), state, row.get(5), row.get(10), row.get(11));
        Some(Leased { fence, data, context, attempts: row.get(7) })
    }

    /// Is it due again?
    async fn drive(&self, mut flow: Leased<M>) -> bool {
        let span = tracing::info_span!("flow", kind = M::KIND, flow = %flow.fence.id, correlation_id = %flow.context.correlation_id);
        trace::continue_from(&span, flow.context.traceparent.as_deref());
        flow.context.traceparent = trace::traceparent(&span).or(flow.context.traceparent);
        async {
            let outcome = match self.steps(&mut flow).await {
                Ok(outcome) => outcome,
                Err(error) => Outcome::Failed(format!("{error:?}")),
            };
            match outcome {
                Outcome::Settled { due_again } => due_again,
                Outcome::Failed(error) => self.back_off(&flow, &error).await,
            }
        }
        .instrument(span)
        .await
    }

    async fn steps(&self, flow: &mut Leased<M>) -> types::Result<Outcome> {
        for _ in 0..STEPS_MAX {
            let state = flow.fence.state();
            let facts = self.machine.observe(&flow.context, state, &flow.data).await?;
            let now = self.clock.now();
            self.check_time(flow, state, now);
            match self.machine.step(state, &flow.data, &facts, now) {
                Step::Goto(to) => {
                    flow.fence.goto(&self.internal, to, now).await?;
                    flow.attempts = 0;
                }
                Step::Do(effect) => {
                    self.perform(flow, effect).await?;
                    if flow.fence.state() != state {
                        flow.attempts = 0;
                    }
                }
                Step::Wait { reason, until } => {
                    let none: Option<String> = None;
                    let due_again = self.settle(flow, store::WAIT, &[&until, &reason, &0i32, &none]).await?;
                    return Ok(Outcome::Settled { due_again });
                }
                Step::Done => {
                    let due_again = self.settle(flow, store::DONE, &[&now]).await?;
                    return Ok(Outcome::Settled { due_again });
                }
            }
            metrics::counter!("gpuaas_flow_steps_total", "kind" => M::KIND, "state" => state.name())
                .increment(1);
        }
        Ok(Outcome::Failed(format!("made {STEPS_MAX} steps without waiting")))
    }

    /// Gives the lease back. Was the flow woken while we had it?
    async fn settle(
        &self,
        flow: &Leased<M>,
        sql: &'static str,
        rest: db::Params<'_>,
    ) -> Result<bool, DbError> {
        let (id, token, generation) = (flow.fence.id, flow.fence.token(), flow.fence.generation());
        let mut params: Vec<&(dyn db::ToSql + Sync)> = vec![&id, &token, &generation];
        params.extend(rest);
        let rows = self.internal.bookkeeping_one(&["spine.flow"], sql, &params).await?;
        Fence::<M::State>::must_hold(&rows)?;
        Ok(rows.iter().any(|row| row.get(0)))
    }

    /// Acts, under a lease that is renewed as long as it takes. An effect whose lease is gone is dropped where it waits.
    async fn perform(&self, flow: &Leased<M>, effect: M::Effect) -> types::Result<()> {
        Fence::<M::State>::must_hold(&self.renew(flow).await?)?;
        let mut work = std::pin::pin!(self.machine.perform(&flow.context, &flow.data, effect, &flow.fence));
        let rhythm = LEASE_SECONDS.seconds(&self.settings) / 3; // fixed: two renewals may fail before the lease ends
        loop {
            // Beside the work, not between: a change of its own may hold the flow's row until it commits.
            let renewal = async {
                tokio::time::sleep(rhythm).await;
                self.renew(flow).await
            };
            tokio::select! {
                biased;
                done = &mut work => return done,
                renewed = renewal => match renewed {
                    Ok(rows) => Fence::<M::State>::must_hold(&rows)?,
                    Err(error) => tracing::warn!(%error, "the lease could not be renewed, will try again"),
                },
            }
        }
    }

    async fn renew(&self, flow: &Leased<M>) -> Result<Vec<Row>, DbError> {
        let params: db::Params<'_> = &[&flow.fence.id, &flow.fence.token(), &self.lease_seconds()];
        self.internal.bookkeeping_one(&["spine.flow"], store::RENEW, params).await
    }

    async fn back_off(&self, flow: &Leased<M>, error: &str) -> bool {
        let attempts = flow.attempts.saturating_add(1);
        let doubled = BACKOFF_MS
            .millis(&self.settings)
            .saturating_mul(2u32.saturating_pow(attempts.clamp(1, 20).unsigned_abs() - 1));
        let pause = doubled.min(BACKOFF_SECONDS_MAX.seconds(&self.settings));
        tracing::warn!(
            attempt = attempts,
            pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
            error,
            "flow step failed"
        );
        metrics::counter!("gpuaas_flow_failures_total", "kind" => M::KIND).increment(1);
        let until = self.clock.now().checked_add(pause).unwrap_or(Timestamp::MAX);
        let reason = "retry after an error".to_owned();
        let rest: db::Params<'_> = &[&until, &reason, &attempts, &Some(error.to_owned())];
        self.settle(flow, store::WAIT, rest).await.unwrap_or_else(|lost| {
            tracing::warn!(error = %lost, "the lease is left to run out");
            false
        })
    }

    fn check_time(&self, flow: &Leased<M>, state: M::State, now: Timestamp) {
        if flow.fence.deadline_at().is_some_and(|deadline| deadline < now) {
            let seconds = now.duration_since(flow.fence.entered_at()).as_secs();
            tracing::warn!(
                state = state.name(),
                seconds,
                owner = state.owner(),
                "flow has been in this state longer than agreed"
            );
        }
    }

    fn lease_seconds(&self) -> f64 {
        LEASE_SECONDS.seconds(&self.settings).as_secs_f64()
    }
}

//! What a flow is, without how it runs.

use std::fmt::Debug;
use std::time::Duration;

use authz::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use types::{Result, Timestamp};

use crate::fence::Fence;

/// The states of one kind of flow: an enum with a fixed set of edges.
pub trait State: Copy + Eq + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    const ALL: &'static [Self];
    /// Every transition there is. The runner refuses others; the diagram is drawn from these.
    const EDGES: &'static [(Self, Self)];

    fn name(self) -> &'static str;

    /// How long a flow may stay in this state before somebody should look.
    fn sla(self) -> Duration;

    /// Who looks.
    fn owner(self) -> &'static str;
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub enum Step<S, E> {
    /// Move on; nothing but the flow's own row changes.
    Goto(S),
    /// Carry out an effect. If it commits the transition itself (through its fence), the flow goes on from there;
    /// else the machine is asked again with fresh facts.
    Do(E),
    /// Nothing to do until something happens, or until `until` at the latest.
    Wait { reason: String, until: Timestamp },
    /// The work is over.
    Done,
}

/// One kind of flow.
pub trait Machine: Send + Sync + 'static {
    /// `domain.name`; never changes.
    const KIND: &'static str;
    type State: State;
    /// What the flow carries from step to step.
    type Data: Serialize + DeserializeOwned + Send + Sync;
    type Facts: Send + Sync;
    type Effect: Debug + Send;

    /// Looks at the world. Reads only.
    fn observe(
        &self,
        context: &Context,
        state: Self::State,
        data: &Self::Data,
    ) -> impl Future<Output = Result<Self::Facts>> + Send;

    /// Decides. Pure: no I/O, no clock but `now`.
    fn step(
        &self,
        state: Self::State,
        data: &Self::Data,
        facts: &Self::Facts,
        now: Timestamp,
    ) -> Step<Self::State, Self::Effect>;

    /// Acts. Runs outside any transaction of the flow, may run twice.
    fn perform(
        &self,
        context: &Context,
        data: &Self::Data,
        effect: Self::Effect,
        fence: &Fence<Self::State>,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// The state diagram as text, for a module's header and its test.
pub fn diagram<S: State>() -> String {
    let mut lines: Vec<String> =
        S::EDGES.iter().map(|(from, to)| format!("{} -> {}", from.name(), to.name())).collect();
    for state in S::ALL {
        if !S::EDGES.iter().any(|(from, _)| from == state) {
            lines.push(format!("{} -> (done)", state.name()));
        }
    }
    lines.join("\n")
}

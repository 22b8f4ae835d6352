//! Beginning and waking flows, from inside the change that wants them.

use authz::Context;
use db::{DbError, Tx};
use serde::Serialize;
use types::{Id, Kind};
use uuid::Uuid;

use crate::machine::{Machine, State as _};
use crate::store;

/// Kind of a flow's id.
pub enum FlowKind {}
impl Kind for FlowKind {
    const PREFIX: &'static str = "flw";
    const NAME: &'static str = "flow";
}

/// A flow to begin.
pub struct Start<'a, M: Machine> {
    /// What it works on; one live flow per kind and key.
    pub key: &'a str,
    pub organization: Option<Uuid>,
    pub state: M::State,
    pub data: &'a M::Data,
}

/// Begins a flow when the transaction commits. If one is already running for the key, it is woken instead.
pub async fn start<M: Machine>(
    tx: &mut Tx<'_>,
    context: &Context,
    flow: Start<'_, M>,
) -> Result<(), DbError> {
    let id: Id<FlowKind> = tx.make_id();
    let now = tx.now();
    let deadline = now.checked_add(flow.state.sla()).ok();
    let data = to_json(flow.data)?;
    let params: db::Params<'_> = &[
        id.as_uuid(),
        &M::KIND,
        &flow.key,
        &flow.organization,
        &flow.state.name(),
        &data,
        &now,
        &deadline,
        context.correlation_id.as_uuid(),
        &context.causation_id,
        &context.traceparent,
    ];
    tx.execute(store::START, params).await
}

/// Lets a waiting flow look again when the transaction commits.
pub async fn wake<M: Machine>(tx: &mut Tx<'_>, key: &str) -> Result<(), DbError> {
    let now = tx.now();
    tx.execute(store::WAKE, &[&M::KIND, &key, &now]).await
}

fn to_json<T: Serialize>(value: &T) -> Result<String, DbError> {
    serde_json::to_string(value)
        .map_err(|error| DbError::Unexpected(format!("flow data cannot be written: {error}")))
}

//! The right to move one flow, as of one lease and one generation.

use std::sync::Mutex;

use db::{DbError, Internal, Tx};
use types::Timestamp;
use uuid::Uuid;

use crate::machine::State;
use crate::store;

/// Held by the worker that leased the flow; passed to effects, so that they can commit the transition together with
/// what they change.
pub struct Fence<S> {
    pub(crate) id: Uuid,
    token: i64,
    position: Mutex<Position<S>>,
}

#[derive(Clone, Copy)]
struct Position<S> {
    state: S,
    generation: i64,
    entered_at: Timestamp,
    deadline_at: Option<Timestamp>,
}

fn lost() -> DbError {
    DbError::Unexpected("the flow was taken over by another worker".to_owned())
}

impl<S: State> Fence<S> {
    pub(crate) fn new(
        id: Uuid,
        token: i64,
        state: S,
        generation: i64,
        entered_at: Timestamp,
        deadline_at: Option<Timestamp>,
    ) -> Self {
        Self { id, token, position: Mutex::new(Position { state, generation, entered_at, deadline_at }) }
    }

    pub fn state(&self) -> S {
        self.position().state
    }

    pub(crate) fn generation(&self) -> i64 {
        self.position().generation
    }

    pub(crate) fn deadline_at(&self) -> Option<Timestamp> {
        self.position().deadline_at
    }

    pub(crate) fn entered_at(&self) -> Timestamp {
        self.position().entered_at
    }

    pub(crate) fn token(&self) -> i64 {
        self.token
    }

    /// Moves the flow inside a change of domain state: both commit, or neither does. A worker that lost its lease gets
    /// an error here, and its change is rolled back.
    pub async fn advance(&self, tx: &mut Tx<'_>, to: S) -> Result<(), DbError> {
        let next = self.next(to, tx.now())?;
        let params: db::Params<'_> =
            &[&self.id, &self.token, &self.generation(), &to.name(), &next.entered_at, &next.deadline_at];
        tx.query_opt(store::ADVANCE, params).await?.ok_or_else(lost)?;
        self.move_to(next);
        Ok(())
    }

    /// For a change that leaves the flow where it is: nobody takes the flow over until it is committed. A worker that lost
    /// its lease gets an error here, and its change is rolled back. Goes first, before the rows that a successor may lock.
    pub async fn hold(&self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        let params: db::Params<'_> = &[&self.id, &self.token, &self.generation()];
        tx.query_opt(store::HOLD, params).await?.map(drop).ok_or_else(lost)
    }

    /// Moves the flow alone.
    pub(crate) async fn goto(&self, internal: &Internal, to: S, now: Timestamp) -> Result<(), DbError> {
        let next = self.next(to, now)?;
        let params: db::Params<'_> =
            &[&self.id, &self.token, &self.generation(), &to.name(), &next.entered_at, &next.deadline_at];
        let rows = internal.bookkeeping_one(&["spine.flow"], store::ADVANCE, params).await?;
        if rows.is_empty() {
            return Err(lost());
        }
        self.move_to(next);
        Ok(())
    }

    /// After an effect whose outcome is unknown: what does the row say? Errs if the lease is gone.
    pub(crate) fn must_hold(rows: &[db::Row]) -> Result<(), DbError> {
        if rows.is_empty() { Err(lost()) } else { Ok(()) }
    }

    fn next(&self, to: S, now: Timestamp) -> Result<Position<S>, DbError> {
        let from = self.position();
        if !S::EDGES.contains(&(from.state, to)) {
            return Err(DbError::Unexpected(format!("a flow cannot go from {:?} to {to:?}", from.state)));
        }
        let deadline_at = now.checked_add(to.sla()).ok();
        Ok(Position { state: to, generation: from.generation + 1, entered_at: now, deadline_at })
    }

    fn position(&self) -> Position<S> {
        *self.position.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn move_to(&self, next: Position<S>) {
        *self.position.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = next;
    }
}

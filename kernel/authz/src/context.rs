//! What travels with a piece of work from its beginning to its last effect: who, under which correlation id, as
//! which retry of which request.

use std::sync::{Arc, Mutex};

use types::{Id, Kind};

use crate::actor::{Actor, ActorKind};
use crate::standing::Standing;

/// Kind of the id that ties a request to everything it caused.
pub enum Correlation {}
impl Kind for Correlation {
    const PREFIX: &'static str = "cor";
    const NAME: &'static str = "correlation";
}
pub type CorrelationId = Id<Correlation>;

/// The caller's promise that a repeated request is the same request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The operation the key was used on; the same key on another operation is another key.
    pub operation: &'static str,
    /// SHA-256 of the key: the key itself is the caller's and is not stored.
    pub key_hash: [u8; 32],
    /// SHA-256 over the raw request: path and body bytes.
    pub body_hash: [u8; 32],
}

/// The circumstances of one piece of work.
#[derive(Debug, Clone)]
pub struct Context {
    pub actor: Actor,
    pub standing: Arc<Standing>,
    pub correlation_id: CorrelationId,
    /// What caused this, if not a person: an event's or a flow step's id.
    pub causation_id: Option<String>,
    /// W3C trace context, so a trace goes on in whoever reads the event.
    pub traceparent: Option<String>,
    pub idempotency: Option<Idempotency>,
    pub trail: Trail,
}

impl Context {
    pub fn new(actor: Actor, correlation_id: CorrelationId) -> Self {
        Self {
            actor,
            standing: Arc::default(),
            correlation_id,
            causation_id: None,
            traceparent: None,
            idempotency: None,
            trail: Trail::default(),
        }
    }

    /// Is it the platform that acts, through an operator or a worker of ours?
    pub fn is_of_platform(&self) -> bool {
        self.actor.kind() == ActorKind::System || self.standing.is_of_platform()
    }
}

/// What was asked and written while the work ran. Shared by the clones of a context.
#[derive(Debug, Clone, Default)]
pub struct Trail(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    authorized: Vec<&'static str>,
    recorded: Vec<String>,
    replayed: bool,
}

impl Trail {
    pub(crate) fn note_decision(&self, action: &'static str) {
        self.notes().authorized.push(action);
    }

    /// Called by the transaction for each audit action it commits.
    pub fn note_recorded(&self, action: &str) {
        self.notes().recorded.push(action.to_owned());
    }

    /// Called by the transaction when an earlier request with the same key had done the work.
    pub fn note_replayed(&self) {
        self.notes().replayed = true;
    }

    /// Was the answer an earlier request's?
    pub fn was_replayed(&self) -> bool {
        self.notes().replayed
    }

    /// Was a decision about this action asked for?
    pub fn has_decision(&self, action: &str) -> bool {
        self.notes().authorized.contains(&action)
    }

    /// The audit actions committed so far.
    pub fn recorded(&self) -> Vec<String> {
        self.notes().recorded.clone()
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

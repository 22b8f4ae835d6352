//! Who acts, what they may do, and the proof of it.
//!
//! A [`Permit`] is the only key to the database's read and write paths, and [`authorize`] is the only maker of
//! permits: a domain function that forgets to ask does not compile. The decision itself is somebody else's
//! ([`Decider`]); this crate knows no role and no policy.
//!
//! Invariants
//! - `Permit`'s constructor is private to this crate; it cannot be cloned, stored or deserialised.
//! - A permit names one action (by type) on one resource; the transaction it opens is confined to that resource's
//!   organization by row-level security.
//! - Every decision, yes or no, is noted in the request's [`Trail`], so the web layer can prove after the fact that
//!   the permission an endpoint declares is the one that was asked for.

mod actor;
mod context;
mod permit;
mod standing;

pub use actor::{Actor, ActorKind, Subject};
pub use context::{Context, Correlation, CorrelationId, Idempotency, Trail};
pub use permit::{
    Action, ActionInfo, Decider, Decision, DomainPolicy, FORBIDDEN, NOT_FOUND, Permit, Question, Resource,
    Scope, UNAUTHENTICATED, authorize, not_found_message,
};
pub use standing::{Grant, Level, Place, Role, RoleInfo, Standing};

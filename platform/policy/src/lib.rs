//! Who may do what: the policies of all domains, in Cedar, and the one decider that asks them.
//!
//! A domain says in a schema which actions there are on which resources, and in policies which role may do them; the
//! server hands all of them to [`Policies::compile`]. What a caller holds, and whether it holds *here*, is worked out
//! before Cedar is asked: a principal's parents are exactly the roles that reach the resource in question. So a policy
//! can forget a tenant no more than it can name one.
//!
//! "The list of X" is a resource of its own type (`ProjectList` beside `Project`): an action on one cannot be asked of
//! the other, and the schema says so.
//!
//! Invariants
//! - Nothing is allowed by default, and a question that does not fit the schema is refused.
//! - A decision depends on the roles that reach the resource, the kind of actor, the action and the type of the
//!   resource, and on nothing else: so it can be remembered, and the whole matrix can be printed and reviewed.
//! - A tenant's own role gives only actions that [`CUSTOM_ROLE_BOUND`] has and no policy keeps back (`@custom("no")`).
//!
//! Must never: own a table, read a clock, wait for anything.

mod compile;
mod decide;
mod matrix;
#[cfg(test)]
mod tests;

pub use compile::{CUSTOM_ROLE_BOUND, PolicyFault};
pub use decide::{Explanation, Policies, Reason};
pub use matrix::MatrixRow;

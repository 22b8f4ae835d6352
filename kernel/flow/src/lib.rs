//! Long work in durable steps.
//!
//! A [`Machine`] is a pure function from state and facts to the next [`Step`]; a [`Runner`] leases rows of
//! `spine.flow`, asks the machine, runs effects outside any transaction and writes each transition down before the
//! next. Machines are reconcilers: they take no input but what they observe, so any step may run again after a crash,
//! on any replica.
//!
//! Invariants
//! - A transition is written only by the holder of the row's lease token, at the generation it was read with: a
//!   worker that lost its lease changes nothing, however late it comes ([`Fence`]).
//! - A domain change and the transition that belongs to it commit together ([`Fence::advance`] inside the change). One that
//!   moves nothing holds the flow until it is committed ([`Fence::hold`]).
//! - At most one live flow exists per kind and key.
//! - Nudges only shorten the wait; the periodic sweep is the guarantee.
//! - Every state has a time limit; overrun is counted and logged with the reason it waits for and who owns it.

mod fence;
mod machine;
mod runner;
mod settings;
mod start;
mod store;

pub use fence::Fence;
pub use machine::{Machine, State, Step, diagram};
pub use runner::Runner;
pub use settings::SETTINGS;
pub use start::{Start, start, wake};

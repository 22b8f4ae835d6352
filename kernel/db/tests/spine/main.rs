//! The database layer at its boundary, against a real PostgreSQL: what commits, what cannot, and what is left after
//! the worst moment. One binary, because linking costs more than the tests.

// A test has its thread to itself: a large future overflows nobody's stack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_futures)]

mod append_only;
mod backstop;
mod change;
mod compile_fail;
mod idempotency;
mod migrations;
mod partitions;
mod settings;
mod upgrade;
mod walls;

//! The database layer at its boundary, against a real PostgreSQL: what commits, what cannot, and what is left after
//! the worst moment. One binary, because linking costs more than the tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod append_only;
mod backstop;
mod change;
mod compile_fail;
mod idempotency;
mod migrations;
mod partitions;
mod upgrade;
mod walls;

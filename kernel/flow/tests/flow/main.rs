//! Flows at their boundary: each step may run twice, a worker may die anywhere, and the work is done once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crash;
mod schedule;
mod trip;

//! Flows at their boundary: each step may run twice, a worker may die anywhere, and the work is done once.

// A test has its thread to itself: a large future overflows nobody's stack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_futures)]

mod crash;
mod schedule;
mod trip;

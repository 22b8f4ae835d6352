//! Against a real PostgreSQL: each test has a database of its own on one throwaway server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod canonical;
mod delivering;
mod fixture;
mod pruning;
mod reach;
mod reading;
mod rotating;
mod sealing;
mod tampering;

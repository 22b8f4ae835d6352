//! Every protection the crate claims, against a real PostgreSQL. Each test names the promise it holds the code to.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_futures)]

mod delivery;
mod fixture;
mod keys;
mod leaks;
mod life;
mod signing;
mod tampering;
mod wire;

//! The server as its callers meet it: real processes, real PostgreSQL, HTTP from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod backup;
mod bad_input;
mod events;
mod manners;
mod relay;
mod shared;
mod sign_in;
mod tenants;
mod traces;
mod up;

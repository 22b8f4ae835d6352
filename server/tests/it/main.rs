//! The server as its callers meet it: real processes, real PostgreSQL, HTTP from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod backup;
mod bad_input;
mod config_check;
mod database_tls;
mod disk;
mod events;
mod installation;
mod logins;
mod manners;
mod readiness;
mod replicas;
mod restore;
mod secret_keys;
mod settings;
mod shared;
mod sign_in;
mod tenants;
mod traces;
mod up;

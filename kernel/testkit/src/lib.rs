//! What tests stand on: a real PostgreSQL with a database per test, real NATS, OpenID provider and `gpuaasd` processes, and waiting
//! for a state instead of sleeping.
//!
//! ```text
//! let test = TestDb::with(&[SPINE, iam::MIGRATION_SET]).await;       // its own database, milliseconds
//! let context = test.context("user-1");
//! test.db.change(&context, permit, async |tx| …).await?;
//! eventually("the event has a position", async || test.count("SELECT count(*) FROM spine.log").await == 1).await;
//! ```
//!
//! Who pays for the servers
//! - **One PostgreSQL per test run.** `test-servers COMMAND …` (what `make test` calls) starts it, names it in
//!   `GPUAAS_TEST_POSTGRES`, runs the command and stops it. Without that variable a test process starts one for
//!   itself when its first test asks: `cargo test -p db` needs no ceremony, and costs two seconds.
//! - **One template per set of migrations**, named by their hash, so domains and branches share a server without
//!   meeting. A test's database is a copy of it, dropped when its [`TestDb`] is.
//!
//! Nothing stays behind. A server dies with the process that started it (parent-death signal), also under `kill -9`;
//! its directory is removed by a small shell that waits for the same death. Rejected: a server that outlives its
//! starter and ends when idle. It would save the two seconds, and leave something running after every test.
//!
//! This crate knows no domain: the caller brings its migrations. It is a dev-dependency only, so it may panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_futures)]

mod child;
mod cut;
mod database;
mod eventually;
mod gpuaasd;
mod http_client;
mod nats;
mod net;
mod oidc;
mod postgres;
mod proxy;
pub mod released;
mod s3;
pub mod schema;
mod scratch;
mod small_disk;
mod template;
#[cfg(test)]
mod tests;
pub mod toy;
mod walls;

pub use child::Child;
pub use cut::{cut_after, cut_at_every_await};
pub use database::{Plan, TestDb};
pub use eventually::{DEADLINE, eventually, eventually_some};
pub use gpuaasd::{Gpuaasd, binary};
pub use http_client::{HttpClient, Reply};
pub use nats::NatsServer;
pub use net::free_port;
pub use oidc::{Browser, OidcProvider, Visit};
pub use postgres::{PrivatePostgres, shared_connection};
pub use proxy::Proxy;
pub use s3::S3Server;
pub use scratch::Scratch;
pub use small_disk::SmallDisk;
pub use walls::check_walls;

// So that a test, and a fixture that must not compile, names the very crates this one was built with.
pub use {authz, db, types};

/// The spine's migrations; every set begins with them.
pub const SPINE: db::migrate::MigrationSet =
    db::migrate::MigrationSet { domain: "spine", migrations: db::MIGRATIONS };

//! The one road to PostgreSQL.
//!
//! Every change of domain state goes through [`Db::change`]: it takes a [`Permit`](authz::Permit) that only
//! `authorize` can make, and its closure must return a [`Recorded`], which only [`Tx::record`] can make. There is no
//! public commit. So row, audit entry and outbox event are written together or not at all, and forgetting one does
//! not compile.
//!
//! Invariants
//! - A transaction commits if and only if at least one [`Change`] was recorded in it. One that recorded nothing is
//!   rolled back, whatever it wrote. [`Internal::bookkeeping`] is the listed exception, for tables that are no
//!   domain state; it names those tables, and a test server checks what was really written (`backstop.rs`).
//! - Every statement runs under a scope (one organization, or the platform) that row-level security reads.
//! - No transaction is open across an await that is not SQL: closures get a [`Tx`], and nothing else to wait for.
//! - A mutation costs at most three round trips: opening, idempotency look-up and first statement travel together,
//!   and so do record, idempotency result and COMMIT.

mod backstop;
mod bridge;
mod change;
mod error;
mod idempotency;
mod internal;
mod line;
pub mod login;
pub mod migrate;
mod nudge;
mod partition;
mod pool;
mod read;
mod record;
pub mod restore;
pub mod settings;
mod share;
mod tls;
mod transaction;
mod tx;

#[cfg(test)]
mod tests;

pub use backstop::UNRECORDED_CHANGE;
pub use bridge::{Bridge, NUDGE_GATHER_MS, SETTINGS};
pub use change::{Change, Event, EventInfo};
pub use error::{DbError, catalogue};
pub use internal::{Bookkeeping, Internal};
pub use line::Line;
pub use login::Login;
pub use migrate::Migration;
pub use nudge::{Listener, LocalNudges, Nudges, Topic, nudge_words};
pub use partition::PartitionedTable;
pub use pool::{Pool, PoolOptions, Target};
pub use read::Reader;
pub use settings::{Freedom, Resolved, Setting, SettingFault, SettingInfo, Settings, Source, StoredSetting};
pub use tls::TlsFault;
pub use tokio_postgres::Row;
pub use tokio_postgres::types::ToSql;
pub use tx::{Db, Recorded, Tx};

/// Query parameters, as everywhere in `store.rs`.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The spine's own migrations; they run before any domain's.
pub static MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "spine", sql: include_str!("../migrations/0001_spine.sql") }];

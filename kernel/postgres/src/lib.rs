//! A private PostgreSQL for `gpuaasd up` and for the tests: found, initialised, started, watched and stopped.
//!
//! ```text
//! let lock = DataDirLock::acquire(data_dir)?;
//! let binaries = Binaries::for_cluster(data_dir, &Binaries::installed().await)?;
//! let server = Server::start(&lock, Options { binaries, settings: vec![], durable: true }).await?;
//! … connect with server.connection_string(user, database) and server.password() …
//! server.stop().await?;
//! ```
//!
//! A production installation brings its own PostgreSQL; this crate is what makes the first five minutes and every
//! test need nothing but a server's programs on the disk. What it keeps, below the data directory:
//!
//! ```text
//! lock                     held with flock by the process that owns the directory; holds its pid
//! postgres/cluster         the database, 0700, of the account that runs the server
//! postgres/socket          the only way in: a Unix socket, 0700; no TCP port is ever opened
//! postgres/password        the superuser's password, 0600, ours
//! postgres/*.conf          written anew at every start
//! postgres/log             what the server says; postgres/initdb.log what initdb said
//! ```
//!
//! Invariants
//! - Whoever starts a server holds the [`DataDirLock`], so a server found running on the cluster is an orphan and
//!   may be stopped. The running server keeps the lock alive.
//! - No signal is sent on the word of a pid file. A process is ours to stop when the kernel says that it is a
//!   `postgres` working in our cluster directory (see `orphan`).
//! - A cluster is there whole or not at all: initdb works in a neighbouring directory that is renamed when done.
//! - The files root writes are in directories that only root can write, never in the cluster, where the server's
//!   account could have put a link to something else.
//! - The password is on no command line, in no environment and in no log.

mod account;
mod binaries;
mod configuration;
mod error;
mod initialise;
mod layout;
mod lock;
mod orphan;
mod password;
mod process;
mod random;
mod running;
mod server;
mod socket;

pub use binaries::{Binaries, OLDEST_MAJOR, Version};
pub use error::{PostgresError, Result};
pub use lock::DataDirLock;
pub use running::Running;
pub use server::{Options, PORT, SUPERUSER, Server};

#[cfg(test)]
mod tests;

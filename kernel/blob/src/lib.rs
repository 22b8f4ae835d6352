//! Objects: bytes under a path, in a directory or in an S3 bucket.
//!
//! What is too large or too cold for PostgreSQL goes here: the audit log's second copy, recordings, exports, backups.
//! The crate is a thin wall in front of `object_store`: it narrows paths to ones that mean the same everywhere, bounds
//! every read and write, and gives errors that say what to do.
//!
//! Invariants
//! - A [`BlobPath`] cannot leave its place: no `..`, no absolute path, no empty segment, no character that a file
//!   system, a shell or S3 reads as something else. There is no other way to name an object.
//! - An object is there whole or not at all, and on disk (file and directory entry) when a write returns.
//! - [`Blobs::put_new`] never replaces anything. When it finds the path taken it tells whether by the same bytes: a
//!   retry after a lost reply is then no error, and a second writer with other bytes is not silently ignored.
//!   A store that ignores conditional writes cannot keep this; [`Blobs::check_write_once`] finds out.
//! - No call reads or holds more than `object_bytes_max` of one object.
//!
//! Must never: keep secrets (they live in `platform/secrets`), or be asked inside a database transaction.
//!
//! A directory cannot hold an object `a` and an object `a/b` at once, S3 can; choose paths where no object's path is
//! another's directory.

mod config;
mod error;
mod path;
mod store;

pub use config::{BlobConfig, BlobConfigError, BlobLimits, DirectoryConfig, S3Config};
pub use error::BlobError;
pub use path::{BlobPath, BlobPathError};
pub use store::{BlobInfo, Blobs, PutNew};

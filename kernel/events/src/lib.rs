//! What happened, in one order, for everyone.
//!
//! Events are written to the outbox in the transaction that changed the state. A sequencer gives them gapless
//! positions in `spine.log`; from then on that position is all anyone needs: SSE cursors, durable consumers,
//! projections and the relay to NATS keep nothing else. PostgreSQL is the log; NATS is only a fan-out.
//!
//! Invariants
//! - Positions are gapless and never change. An event gets its position only when every transaction that began
//!   before its own has ended, so a reader at position N has seen all there will ever be up to N.
//! - A consumer's position moves in PostgreSQL, guarded by a lease token: two workers never both advance it.
//! - The log keeps what a registered consumer or projection has not read, however old (`spine.partition_prune`). One
//!   that finds a gap all the same says so: a projection is rebuilt, a consumer counts what it missed.
//! - Waiting for events holds no database connection: one reader per process feeds a bounded ring.

mod asyncapi;
mod consumer;
mod feed;
mod lag;
mod lease;
mod log;
mod log_event;
mod parked;
mod projection;
mod sequencer;
mod settings;
mod span;
mod store;
#[cfg(test)]
mod tests;
mod wait;

pub use asyncapi::document as asyncapi_document;
pub use consumer::{Consumer, HandleError, run as run_consumer};
pub use feed::{CURSOR_EXPIRED, EventCursor, Feed, Filter, INVALID_CURSOR};
pub use lag::{Lag, lags, measure, oldest_waiting};
pub use log::{Log, LogEnd};
pub use log_event::{CloudEvent, EventId, LogEvent};
pub use parked::{ParkedEvent, parked};
pub use projection::{Projection, as_of as projection_as_of, rebuild, run as run_projection};
pub use sequencer::Sequencer;
pub use settings::{LOG_RETENTION_SECONDS, SETTINGS, outbox_retention};
pub use store::NEW_CLUSTER;
pub use wait::wait_until;

use types::ErrorCode;

/// The codes this crate can produce, for the catalogue.
pub fn catalogue() -> Vec<&'static ErrorCode> {
    vec![&CURSOR_EXPIRED, &INVALID_CURSOR]
}

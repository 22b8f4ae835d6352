//! Carries the log to NATS JetStream, for those outside who want events pushed to them.
//!
//! PostgreSQL holds the log; the stream `GPUAAS_EVENTS` is a copy of its newest part, and a copy that may be damaged:
//! JetStream acknowledges before it has synced, and a store can be wiped or restored. So the relay never trusts its own
//! position alone. Before it publishes it reads the stream's last message, looks that event up in the log, and goes on
//! after it ([`Relay`], `compare.rs`).
//!
//! Every message also names the stream sequence it expects to follow. The server refuses one that does not fit, so
//! - a stream that lost its end between two batches refuses the next one, instead of growing over the hole;
//! - messages are stored in the order of the log, or not at all, even when one in the middle of a batch got lost;
//! - a relay that lost its lease without noticing cannot publish beside its successor.
//!
//! `Nats-Msg-Id` is the second net, for whoever publishes the same event again within the server's window, and the
//! position in each message the third: a consumer drops what is not after what it has seen.
//!
//! Invariants
//! - An event is counted as relayed only after the server acknowledged it and every one before it.
//! - This crate is the only one that knows NATS, and nothing inside the product waits for it: nudges between replicas
//!   ([`NudgeCarrier`]) only make waiting shorter.

mod compare;
mod connect;
mod message;
mod nudges;
mod publish;
mod relay;
mod settings;
mod stream;

pub use connect::{Credentials, NatsTarget, RelayError};
pub use message::{EPOCH_HEADER, POSITION_HEADER, TRACEPARENT_HEADER};
pub use nudges::NudgeCarrier;
pub use relay::Relay;
pub use settings::SETTINGS;
pub use stream::{STREAM, SUBJECTS};

#[cfg(test)]
mod tests;

//! Against a real PostgreSQL and a real NATS server, which are restarted, wiped and kept away while events flow.
//!
//! What every test asks is what somebody outside can see: the stream, read from its beginning, has every event of the
//! log once and in order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod compare;
mod faults;
mod nats;
mod nudges;
mod stage;

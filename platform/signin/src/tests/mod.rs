#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake_provider;
mod forge;
mod hostile_provider;
mod hostile_tokens;
mod outgoing;
mod real_provider;
mod small_parts;

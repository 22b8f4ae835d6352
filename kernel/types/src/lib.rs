//! The vocabulary every crate shares: identifiers, time, randomness, money, errors, cursors, names and secrets.
//!
//! Nothing here knows a domain, a database or a wire format beyond JSON. A type enters only when two crates
//! need it; a type that one domain needs stays in that domain.

pub mod clock;
pub mod cursor;
pub mod entropy;
pub mod error;
pub mod id;
pub mod money;
pub mod secret;
pub mod text;

pub use clock::{Clock, ManualClock, Moment, SystemClock, Timestamp};
pub use cursor::Cursor;
pub use entropy::{Entropy, SeededEntropy, SystemEntropy};
pub use error::{Error, ErrorCode, ErrorKind, Result};
pub use id::{Id, IdMaker, Kind};
pub use money::{Currency, Money};
pub use secret::Secret;
pub use text::{Name, Text};

#[cfg(test)]
mod tests;

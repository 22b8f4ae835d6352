//! Random text, for a password and for a name that nobody can guess.

use types::{Entropy, SystemEntropy};

/// `BYTES` random bytes in hexadecimal: safe in a path, a file and a connection string without quoting.
pub(crate) fn random_hex<const BYTES: usize>() -> String {
    let mut bytes = [0u8; BYTES];
    SystemEntropy.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Randomness is injected like time: ids and tokens in a replayed test come out the same.

use std::sync::Mutex;

use aws_lc_rs::digest::{SHA256, digest};

/// A source of random bytes.
pub trait Entropy: Send + Sync + 'static {
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[allow(clippy::expect_used)] // Without randomness no id or key is safe to make: stopping is the only right answer.
    fn fill(&self, bytes: &mut [u8]) {
        aws_lc_rs::rand::fill(bytes).expect("the operating system's random generator failed");
    }
}

/// A reproducible stream for tests: SHA-256 of seed and counter. Never used for anything that must be secret.
#[derive(Debug)]
pub struct SeededEntropy {
    state: Mutex<(u64, u64)>,
}

impl SeededEntropy {
    pub fn new(seed: u64) -> Self {
        Self { state: Mutex::new((seed, 0)) }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for chunk in bytes.chunks_mut(32) {
            state.1 += 1;
            let mut input = [0u8; 16];
            input[..8].copy_from_slice(&state.0.to_be_bytes());
            input[8..].copy_from_slice(&state.1.to_be_bytes());
            chunk.copy_from_slice(&digest(&SHA256, &input).as_ref()[..chunk.len()]);
        }
    }
}

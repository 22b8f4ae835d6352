//! Waiting for a state, with a deadline. A test never sleeps to give something time: too short is flaky, long enough
//! is slow.

use std::time::{Duration, Instant};

/// How long anything may take on a loaded machine before a test gives up. Generous, because only failures pay it.
pub const DEADLINE: Duration = Duration::from_secs(20);

const POLL: Duration = Duration::from_millis(3);

/// Returns when `holds` does; fails the test, naming `what`, when it does not within [`DEADLINE`].
#[track_caller]
pub fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < DEADLINE, "waited in vain until {what} (at {caller})");
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Like [`eventually`], for a value that is there in the end.
#[track_caller]
pub fn eventually_some<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let begun = Instant::now();
        loop {
            if let Some(value) = look().await {
                return value;
            }
            assert!(begun.elapsed() < DEADLINE, "waited in vain until {what} (at {caller})");
            tokio::time::sleep(POLL).await;
        }
    }
}

//! Crashes at every place a future can be interrupted.
//!
//! A task is dropped, or its process killed, only where it awaits. Polling a future n times and dropping it then, for
//! every n until it finishes, therefore visits every one of these places.

use std::pin::pin;
use std::task::Poll;

/// Runs `work` again and again, dropped at its first await, then at its second, and so on, until it finishes;
/// `check` looks at the world after each. Returns how often it was cut.
pub async fn cut_at_every_await<T>(
    mut work: impl AsyncFnMut() -> T,
    mut check: impl AsyncFnMut(usize),
) -> usize {
    for polls in 1.. {
        if cut_after(polls, work()).await.is_some() {
            return polls - 1;
        }
        check(polls).await;
    }
    unreachable!("an unbounded range ends only by return")
}

/// The future's value if it is there after so many polls; else the future is dropped.
pub async fn cut_after<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut left = polls;
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => {
            left -= 1;
            if left == 0 { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

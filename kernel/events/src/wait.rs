//! Waiting for a resource to reach a state, without polling the database.

use std::time::Duration;

use crate::feed::Feed;

/// Calls `check` now and after every event about `subject` until it gives a value that is `done`, or the time is up;
/// then the last value is returned as it is.
pub async fn wait_until<T, F>(
    feed: &Feed,
    subject: &str,
    patience: Duration,
    check: impl Fn() -> F,
    done: impl Fn(&T) -> bool,
) -> types::Result<T>
where
    F: Future<Output = types::Result<T>>,
{
    let mut head = feed.watch();
    let mut seen = head.borrow_and_update().position;
    let mut value = check().await?;
    let deadline = tokio::time::sleep(patience);
    tokio::pin!(deadline);
    while !done(&value) {
        tokio::select! {
            () = &mut deadline => return Ok(value),
            changed = head.changed() => {
                if changed.is_err() {
                    return Ok(value);
                }
            }
        }
        // The end is read before the events: one that comes between is seen twice, never missed.
        let upto = head.borrow_and_update().position;
        let news = feed.after(seen);
        seen = upto;
        // Out of the ring: we cannot know what was missed, so look.
        if news.is_none_or(|events| events.iter().any(|event| event.subject == subject)) {
            value = check().await?;
        }
    }
    Ok(value)
}

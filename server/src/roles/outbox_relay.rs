//! `outbox-relay`: gives events their positions, and copies them to NATS where one is configured.

use std::sync::Arc;
use std::time::Duration;

use db::Internal;
use events::Sequencer;
use relay::{NatsTarget, Relay};

use crate::Failure;
use crate::process::Process;

pub async fn start(process: &mut Process, nats: Option<NatsTarget>) -> Result<(), Failure> {
    start_sequencer(process);
    start_measuring(process);
    match nats {
        Some(target) => start_relay(process, target).await,
        None => Ok(()),
    }
}

fn start_sequencer(process: &mut Process) {
    let app = &process.app;
    let internal = Internal::new(process.relay_pool.clone(), "outbox-relay", process.backstop);
    let sequencer =
        Sequencer::new(internal, Arc::clone(&app.clock), app.db.nudges().clone(), app.settings.clone());
    let stop = process.stop.clone();
    process.spawn("sequencer", async move { sequencer.run(stop).await });
}

fn start_measuring(process: &mut Process) {
    let (app, stop) = (Arc::clone(&process.app), process.stop.clone());
    let internal = Internal::new(process.relay_pool.clone(), "events.lag", process.backstop);
    process.spawn("event lag", async move {
        while !stop.is_cancelled() {
            if let Err(error) = events::measure(&internal, &*app.clock, &app.settings).await {
                tracing::warn!(%error, "how late events are could not be measured");
            }
            tokio::select! {
                () = tokio::time::sleep(MEASURE_EVERY) => {}
                () = stop.cancelled() => {}
            }
        }
    });
}

// fixed: as often as metrics are usually scraped
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// Returns at once: a NATS server that is away is waited for, and nobody else waits with us.
async fn start_relay(process: &mut Process, target: NatsTarget) -> Result<(), Failure> {
    let app = Arc::clone(&process.app);
    let internal = Internal::new(process.relay_pool.clone(), "nats-relay", process.backstop);
    let relay = Relay::new(target, internal.clone(), app.settings.clone(), Arc::clone(&app.clock)).await?;
    let stop = process.stop.clone();
    process.spawn("nats relay", async move {
        events::run_consumer(&relay, &internal, &app.feed, &*app.clock, &app.settings, stop).await;
    });
    Ok(())
}

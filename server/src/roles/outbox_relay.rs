//! `outbox-relay`: gives events their positions, and copies them to NATS where one is configured.

use std::sync::Arc;
use std::time::Duration;

use db::Login;
use events::Sequencer;
use relay::{NatsTarget, Relay};

use crate::Failure;
use crate::process::Process;

pub async fn start(process: &mut Process, nats: Option<NatsTarget>) -> Result<(), Failure> {
    start_sequencer(process)?;
    start_measuring(process)?;
    match nats {
        Some(target) => start_relay(process, target).await,
        None => Ok(()),
    }
}

fn start_sequencer(process: &mut Process) -> Result<(), Failure> {
    let (base, internal) = (process.base.clone(), process.internal(Login::Relay, "outbox-relay")?);
    let sequencer = Sequencer::new(internal, base.clock, base.nudges, base.settings);
    let stop = process.stop.clone();
    process.spawn("sequencer", async move { sequencer.run(stop).await });
    Ok(())
}

fn start_measuring(process: &mut Process) -> Result<(), Failure> {
    let (base, stop) = (process.base.clone(), process.stop.clone());
    let internal = process.internal(Login::Relay, "events.lag")?;
    process.spawn("event lag", async move {
        while !stop.is_cancelled() {
            if let Err(error) = events::measure(&internal, &*base.clock, &base.settings).await {
                tracing::warn!(%error, "how late events are could not be measured");
            }
            tokio::select! {
                () = tokio::time::sleep(MEASURE_EVERY) => {}
                () = stop.cancelled() => {}
            }
        }
    });
    Ok(())
}

// fixed: as often as metrics are usually scraped
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// Returns at once: a NATS server that is away is waited for, and nobody else waits with us.
async fn start_relay(process: &mut Process, target: NatsTarget) -> Result<(), Failure> {
    let (base, internal) = (process.base.clone(), process.internal(Login::Relay, "nats-relay")?);
    let relay = Relay::new(target, internal.clone(), base.settings.clone(), Arc::clone(&base.clock)).await?;
    let stop = process.stop.clone();
    process.spawn("nats relay", async move {
        events::run_consumer(&relay, &internal, &base.feed, &*base.clock, &base.settings, stop).await;
    });
    Ok(())
}

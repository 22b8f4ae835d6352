//! How fast the sequencer works off a backlog: the outbox is filled in large changes, then positions are given until
//! nothing is left.

use std::time::Instant;

use db::{Change, Event};
use events::Sequencer;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::runtime::Runtime;
use types::Id;

use crate::Result;
use crate::cpu::Processes;
use crate::load::measured;
use crate::sample::Sample;
use crate::spine::{Spine, ThingKind, Work, in_words};

/// Events recorded by one change.
const BATCH: u64 = 500;

/// About as large as the product's own events.
#[derive(Serialize, JsonSchema)]
struct Happened {
    number: u64,
    what: String,
}

impl Event for Happened {
    const TYPE: &'static str = "bench.thing.happened";
    const TITLE: &'static str = "Something happened to be counted";
}

/// Gives `events` events their positions.
pub fn measure(runtime: &Runtime, spine: &Spine, postmaster: u32, events: u64) -> Result<Sample> {
    let sequencer = Sequencer::new(
        spine.relay.clone(),
        std::sync::Arc::clone(&spine.clock),
        spine.db.nudges().clone(),
        spine.settings.clone(),
    );
    // What earlier measurements left is not ours to count.
    runtime.block_on(drain(&sequencer))?;
    runtime.block_on(fill(spine, events))?;
    let processes = Processes { server: Some(std::process::id()), postmaster: Some(postmaster) };
    let sample = measured(processes, || {
        let begun = Instant::now();
        Ok((runtime.block_on(drain(&sequencer))?, begun.elapsed()))
    })?;
    if sample.done != events {
        return Err(format!("{events} events were recorded, {} got a position", sample.done).into());
    }
    Ok(sample)
}

async fn drain(sequencer: &Sequencer) -> Result<u64> {
    let mut all = 0;
    loop {
        match sequencer.step().await? {
            0 => return Ok(all),
            moved => all += moved.unsigned_abs(),
        }
    }
}

/// Commits so many changes, each with an audit entry and an event.
pub async fn fill(spine: &Spine, events: u64) -> Result<()> {
    for batch in 0..events / BATCH {
        let context = spine.context();
        let permit = spine.permit(&context)?;
        let changed = spine.db.change(&context, permit, async |tx| {
            let changes: Vec<Change> = (0..BATCH)
                .map(|number| {
                    let thing: Id<ThingKind> = tx.make_id();
                    let event = Happened { number: batch * BATCH + number, what: "x".repeat(200) };
                    Change::new(<Work as authz::Action>::NAME, thing, 1).after(&event).event(&event)
                })
                .collect();
            Ok(tx.record_many(changes))
        });
        changed.await.map_err(in_words)?;
    }
    Ok(())
}

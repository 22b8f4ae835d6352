//! How fast the sealer works off a backlog: entries are committed in large changes, then sealed until nothing is left.

use std::sync::Arc;
use std::time::Instant;

use audit::{SealKeys, Sealer};
use merkle::SignerKey;
use tokio::runtime::Runtime;

use crate::Result;
use crate::cpu::Processes;
use crate::load::measured;
use crate::sample::Sample;
use crate::sequencing::fill;
use crate::spine::Spine;

/// Seals `entries` entries.
pub fn measure(runtime: &Runtime, spine: &Spine, postmaster: u32, entries: u64) -> Result<Sample> {
    let key = SignerKey::from_seed("bench.example/log", &[7; 32])?;
    let sealer = Sealer::new(
        spine.sealer.clone(),
        Arc::clone(&spine.clock),
        spine.db.nudges().clone(),
        spine.settings.clone(),
        Arc::new(SealKeys::from(key)),
    );
    // What earlier measurements left is not ours to count.
    runtime.block_on(drain(&sealer))?;
    runtime.block_on(fill(spine, entries))?;
    let processes = Processes { server: Some(std::process::id()), postmaster: Some(postmaster) };
    let sample = measured(processes, || {
        let begun = Instant::now();
        let mut sealed = 0;
        // Other transactions on the server hold the newest entries back for a moment; they are waited for.
        while sealed < entries {
            sealed += runtime.block_on(drain(&sealer))?;
        }
        Ok((sealed, begun.elapsed()))
    })?;
    if sample.done != entries {
        return Err(format!("{entries} entries were committed, {} were sealed", sample.done).into());
    }
    Ok(sample)
}

async fn drain(sealer: &Sealer) -> Result<u64> {
    let mut all = 0;
    loop {
        match sealer.step().await?.sealed {
            0 => return Ok(all),
            sealed => all += sealed as u64,
        }
    }
}

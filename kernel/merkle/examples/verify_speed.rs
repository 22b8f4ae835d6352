//! How fast an export is verified: `cargo run --release -p merkle --example verify_speed [ENTRIES]`.
//!
//! Writes an export of entries of about 600 bytes to a temporary directory and verifies it five times from the page
//! cache. The first round warms up; the median of all is what to quote.

use std::error::Error;
use std::io::Write as _;
use std::time::Instant;

use merkle::{Checkpoint, ExportWriter, Frontier, Outside, SignerKey, leaf_hash, verify_export};

const ROUNDS: usize = 5;
const SEAL_EVERY: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let entries = std::env::args().nth(1).map_or(Ok(1_000_000), |argument| argument.parse::<u64>())?;
    let home = std::env::temp_dir().join(format!("merkle-verify-speed-{}", std::process::id()));
    std::fs::create_dir(&home)?;
    let outcome = measure(&home, entries);
    std::fs::remove_dir_all(&home)?;
    outcome
}

fn measure(home: &std::path::Path, entries: u64) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let key = SignerKey::from_seed("speed.example/log", &[7; 32])?;
    let export = home.join("export");
    let started = Instant::now();
    write_export(&export, entries, &key)?;
    writeln!(out, "wrote {entries} entries in {:.2} s", started.elapsed().as_secs_f64())?;
    let key_file = home.join("kept-key");
    std::fs::write(&key_file, key.verifier().to_string())?;
    let outside = Outside { key: Some(key_file), checkpoint: None };
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let report = verify_export(&export, &outside)?;
        if !report.is_clean() || report.intact != entries {
            return Err(report.to_string().into());
        }
        rates.push(entries as f64 / started.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    let (slowest, median, fastest) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
    writeln!(out, "verified {median:.0} entries/s (slowest {slowest:.0}, fastest {fastest:.0})")?;
    Ok(())
}

fn write_export(export: &std::path::Path, entries: u64, key: &SignerKey) -> Result<(), Box<dyn Error>> {
    let mut writer = ExportWriter::create(export)?;
    let mut frontier = Frontier::default();
    let padding = "x".repeat(480);
    for index in 0..entries {
        let line = format!(
            r#"{{"index":{index},"id":"aud_{index:026}","action":"organization.rename","note":"{padding}"}}"#
        );
        let leaf = leaf_hash(line.as_bytes());
        writer.entry(line.as_bytes(), &leaf)?;
        frontier.append(leaf);
        if frontier.size().is_multiple_of(SEAL_EVERY) {
            writer.earlier_checkpoint(&checkpoint(&frontier, key)?)?;
        }
    }
    writer.finish(&checkpoint(&frontier, key)?, key.verifier())?;
    Ok(())
}

fn checkpoint(frontier: &Frontier, key: &SignerKey) -> Result<merkle::SignedNote, merkle::CheckpointError> {
    Checkpoint::new(key.verifier().name(), frontier.size(), frontier.root()).sign(key)
}

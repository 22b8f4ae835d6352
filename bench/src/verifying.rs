//! How fast an audit export is verified offline: the work of `gpuaasd audit verify`, called directly.

use std::path::{Path, PathBuf};
use std::time::Instant;

use merkle::{Checkpoint, ExportWriter, Frontier, Outside, SignerKey, leaf_hash, verify_export};

use crate::Result;

/// How often the log was sealed on the way; every checkpoint is checked.
const SEAL_EVERY: u64 = 10_000;

/// An export to verify, and the key its verifier kept elsewhere.
pub struct Export {
    directory: PathBuf,
    key: PathBuf,
    entries: u64,
}

impl Export {
    /// Writes an export with `entries` entries of about 600 bytes, as an organization's changes have.
    pub fn write(home: &Path, entries: u64) -> Result<Self> {
        let key = SignerKey::from_seed("bench.example/log", &[7; 32])?;
        let export = Self { directory: home.join("export"), key: home.join("kept-key"), entries };
        std::fs::write(&export.key, key.verifier().to_string())?;
        let mut writer = ExportWriter::create(&export.directory)?;
        let mut frontier = Frontier::default();
        let padding = "x".repeat(480);
        let sign = |frontier: &Frontier| {
            Checkpoint::new(key.verifier().name(), frontier.size(), frontier.root()).sign(&key)
        };
        for index in 0..entries {
            let line = format!(
                r#"{{"index":{index},"id":"aud_{index:026}","action":"organization.rename","note":"{padding}"}}"#
            );
            let leaf = leaf_hash(line.as_bytes());
            writer.entry(line.as_bytes(), &leaf)?;
            frontier.append(leaf);
            if frontier.size().is_multiple_of(SEAL_EVERY) {
                writer.earlier_checkpoint(&sign(&frontier)?)?;
            }
        }
        writer.finish(&sign(&frontier)?, key.verifier())?;
        Ok(export)
    }

    /// Entries verified per second.
    pub fn verify(&self) -> Result<f64> {
        let outside = Outside { key: Some(self.key.clone()), checkpoint: None };
        let begun = Instant::now();
        let report = verify_export(&self.directory, &outside)?;
        let elapsed = begun.elapsed();
        if !report.is_clean() || report.intact != self.entries {
            return Err(report.to_string().into());
        }
        Ok(self.entries as f64 / elapsed.as_secs_f64())
    }
}

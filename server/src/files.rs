//! Files that hold secrets or that others wait for.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::Failure;

/// Of files only their owner can read.
pub const PRIVATE: u32 = 0o600;

/// Writes a file only its owner can read, whole or not at all.
pub fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    write_with_mode(path, text.as_bytes(), PRIVATE)
}

/// The same for bytes, with a mode of one's own.
pub fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::new(format!("{} cannot be written: {error}", path.display()));
    let part = path.with_added_extension("part");
    let _ = std::fs::remove_file(&part);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&part).map_err(failed)?;
    std::io::Write::write_all(&mut file, bytes).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&part, path).map_err(failed)
}

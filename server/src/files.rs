//! Files that hold secrets or that others wait for.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::Failure;

/// Writes a file only its owner can read, whole or not at all.
pub fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    write_private_bytes(path, text.as_bytes())
}

/// The same for bytes.
pub fn write_private_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::new(format!("{} cannot be written: {error}", path.display()));
    let part = path.with_added_extension("part");
    let _ = std::fs::remove_file(&part);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
    std::io::Write::write_all(&mut file, bytes).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&part, path).map_err(failed)
}

//! What a backup says about itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use types::Timestamp;

use crate::{Failure, VERSION};

const FILE: &str = "manifest.json";
const FORMAT: u32 = 1;

/// The moment a backup is as of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    pub taken_at: Timestamp,
    pub database_version: String,
    /// The last event with a position.
    pub log_position: i64,
    /// How many audit entries there are, sealed or not.
    pub audit_entries: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    pub version: String,
    #[serde(flatten)]
    pub facts: Facts,
    /// Every file of the backup with its size and SHA-256.
    files: BTreeMap<String, FileFacts>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileFacts {
    bytes: u64,
    sha256: String,
}

impl Manifest {
    pub fn of(directory: &Path, facts: Facts) -> Result<Self, Failure> {
        Ok(Self { format: FORMAT, version: VERSION.to_owned(), facts, files: measure(directory)? })
    }

    pub fn write(&self, directory: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(|error| Failure::new(error.to_string()))?;
        crate::files::write_private(&directory.join(FILE), &text)
    }

    /// Reads a backup's manifest and checks every file against it.
    pub fn read_checked(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Failure::new(format!(
                "{} is not a backup: {} cannot be read: {error}",
                directory.display(),
                path.display()
            ))
        })?;
        let manifest: Self = serde_json::from_str(&text).map_err(|error| {
            Failure::new(format!("{} is damaged: {error}. Use another backup", path.display()))
        })?;
        if manifest.format != FORMAT {
            return Err(Failure::new(format!(
                "the backup has format {}, this version reads {FORMAT}. Restore it with gpuaasd {}",
                manifest.format, manifest.version
            )));
        }
        let found = measure(directory)?;
        for (name, expected) in &manifest.files {
            match found.get(name) {
                Some(facts) if facts == expected => {}
                Some(_) => {
                    return Err(Failure::new(format!(
                        "{name} of the backup was changed or damaged. Use another backup"
                    )));
                }
                None => {
                    return Err(Failure::new(format!("{name} of the backup is missing. Use another backup")));
                }
            }
        }
        Ok(manifest)
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: u64 = self.files.values().map(|file| file.bytes).sum();
        let Facts { taken_at, log_position, audit_entries, .. } = &self.facts;
        write!(
            f,
            "{bytes} bytes, as of {taken_at}, event position {log_position}, {audit_entries} audit entries"
        )
    }
}

fn measure(directory: &Path) -> Result<BTreeMap<String, FileFacts>, Failure> {
    let mut files = BTreeMap::new();
    walk(directory, directory, &mut files)
        .map_err(|error| Failure::new(format!("{}: {error}", directory.display())))?;
    files.remove(FILE);
    Ok(files)
}

fn walk(root: &Path, directory: &Path, files: &mut BTreeMap<String, FileFacts>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(root, &path, files)?;
        } else if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            files.insert(name.to_owned(), file_facts(&path)?);
        }
    }
    Ok(())
}

fn file_facts(path: &Path) -> std::io::Result<FileFacts> {
    use std::io::Read as _;
    let mut file = std::fs::File::open(path)?;
    let (mut hash, mut bytes, mut buffer) = (Context::new(&SHA256), 0u64, vec![0u8; 1 << 20]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
    }
    let sha256 = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(FileFacts { bytes, sha256 })
}

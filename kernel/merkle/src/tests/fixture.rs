//! An export on disk with what a careful operator kept elsewhere, and the tools an attacker would use on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::checkpoint::Checkpoint;
use crate::export::{CHECKPOINT_FILE, CHECKPOINTS_FILE, ENTRIES_FILE, ExportWriter, KEY_FILE, LEAVES_FILE};
use crate::note::{SignedNote, SignerKey};
use crate::tree::{Frontier, leaf_hash};
use crate::verify::{Outside, Report, verify_export};

/// A directory of its own, removed at the end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("merkle-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn log_key() -> SignerKey {
    SignerKey::from_seed("log.example", &[1; 32]).unwrap()
}

/// The attacker's own key, under the log's name.
pub(super) fn false_key() -> SignerKey {
    SignerKey::from_seed("log.example", &[2; 32]).unwrap()
}

pub(super) fn entry(index: u64) -> Vec<u8> {
    format!(r#"{{"index":{index},"id":"aud_{index}","action":"rename"}}"#).into_bytes()
}

pub(super) fn checkpoint_over(lines: &[Vec<u8>], key: &SignerKey) -> SignedNote {
    let mut frontier = Frontier::default();
    for line in lines {
        frontier.append(leaf_hash(line));
    }
    Checkpoint::new("log.example", frontier.size(), frontier.root()).sign(key).unwrap()
}

/// What the verifier brings along.
#[derive(Debug, Clone, Copy)]
pub(super) enum With {
    Nothing,
    Key,
    /// The checkpoint over that many entries, made before the attack.
    Checkpoint(u64),
    Both(u64),
}

pub(super) struct Export {
    home: Scratch,
    /// The entries as sealed.
    pub(super) sealed: Vec<Vec<u8>>,
}

impl Export {
    /// An honest export of `size` entries, with earlier seals at the given sizes.
    pub(super) fn honest(size: u64, seals: &[u64]) -> Self {
        Self::honest_with((0..size).map(entry).collect(), seals)
    }

    pub(super) fn honest_with(sealed: Vec<Vec<u8>>, seals: &[u64]) -> Self {
        let export = Self { home: Scratch::new(), sealed };
        let key = log_key();
        let mut writer = ExportWriter::create(&export.path("export")).unwrap();
        for line in &export.sealed {
            writer.entry(line, &leaf_hash(line)).unwrap();
        }
        for seal in seals {
            writer.earlier_checkpoint(&export.genuine_checkpoint(*seal)).unwrap();
        }
        writer.finish(&checkpoint_over(&export.sealed, &key), key.verifier()).unwrap();
        export
    }

    pub(super) fn genuine_checkpoint(&self, size: u64) -> SignedNote {
        checkpoint_over(&self.sealed[..size as usize], &log_key())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.0.join(name)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path("export").join(name)
    }

    pub(super) fn verify(&self, with: With) -> Report {
        let (key, checkpoint) = match with {
            With::Nothing => (false, None),
            With::Key => (true, None),
            With::Checkpoint(size) => (false, Some(size)),
            With::Both(size) => (true, Some(size)),
        };
        let keep = |name: &str, text: String| {
            fs::write(self.path(name), text).unwrap();
            self.path(name)
        };
        let outside = Outside {
            key: key.then(|| keep("kept-key", format!("{}\n", log_key().verifier()))),
            checkpoint: checkpoint
                .map(|size| keep("kept-checkpoint", self.genuine_checkpoint(size).to_string())),
        };
        verify_export(&self.path("export"), &outside).unwrap()
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.path("export")
    }

    pub(super) fn lines(&self) -> Vec<Vec<u8>> {
        let bytes = fs::read(self.file(ENTRIES_FILE)).unwrap();
        bytes
            .strip_suffix(b"\n")
            .map_or(Vec::new(), |body| body.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.file(name), bytes).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        remove(&self.file(name));
    }

    pub(super) fn write_lines(&self, lines: &[Vec<u8>]) {
        self.write(
            ENTRIES_FILE,
            lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect::<Vec<_>>(),
        );
    }

    pub(super) fn edit_lines(&self, edit: impl FnOnce(&mut Vec<Vec<u8>>)) {
        let mut lines = self.lines();
        edit(&mut lines);
        self.write_lines(&lines);
    }

    /// The attacker makes the leaf hashes fit the entries as they now are.
    pub(super) fn refit_leaves(&self) {
        self.write(
            LEAVES_FILE,
            self.lines().iter().flat_map(|line| *leaf_hash(line).as_bytes()).collect::<Vec<_>>(),
        );
    }

    /// The attacker signs the entries as they now are, with whatever key they have.
    pub(super) fn resign(&self, key: &SignerKey) {
        self.write(CHECKPOINT_FILE, checkpoint_over(&self.lines(), key).to_string());
    }

    pub(super) fn write_earlier(&self, notes: &[SignedNote]) {
        let line = |note: &SignedNote| format!("{}\n", serde_json::Value::String(note.to_string()));
        self.write(CHECKPOINTS_FILE, notes.iter().map(line).collect::<String>());
    }

    pub(super) fn ship_key(&self, key: &SignerKey) {
        self.write(KEY_FILE, format!("{}\n", key.verifier()));
    }
}

/// Gives every line the number of its position, as an attacker would to hide a removal.
pub(super) fn renumber(lines: &mut [Vec<u8>]) {
    for (position, line) in lines.iter_mut().enumerate() {
        let text = String::from_utf8(line.clone()).unwrap();
        let (_, rest) = text.split_once(',').unwrap();
        *line = format!("{{\"index\":{position},{rest}").into_bytes();
    }
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

//! The tree under inspection, read once: tracked files, their Rust tokens, the manifests and `architecture.toml`.
//!
//! Which files count is git's answer: tracked ones, and new ones that nothing ignores, so that a breach shows before
//! it is committed. What is not text is left out.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::GuardError;
use super::architecture::{self, Architecture, is_under};
use super::rust::RustSource;
use super::workspace::Workspace;

pub struct Project {
    pub architecture: Architecture,
    pub files: Vec<File>,
    pub workspace: Workspace,
}

pub struct File {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: Arc<str>,
    pub rust: Option<RustSource>,
}

impl Project {
    pub fn load(root: &Path) -> Result<Self, GuardError> {
        let text = read(root, architecture::FILE)?.unwrap_or_default();
        let architecture: Architecture = toml::from_str(&text)
            .map_err(|cause| GuardError::Parse { path: architecture::FILE.to_owned(), cause })?;
        let mut files = Vec::new();
        for path in tracked(root)? {
            if architecture.skip.iter().any(|skipped| is_under(&path, skipped)) {
                continue;
            }
            if let Some(text) = read(root, &path)? {
                files.push(File::new(path, text, &architecture));
            }
        }
        let workspace = Workspace::read(&files)?;
        Ok(Self { architecture, files, workspace })
    }

    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files, with their tokens.
    pub fn rust(&self) -> impl Iterator<Item = (&File, &RustSource)> {
        self.files.iter().filter_map(|file| file.rust.as_ref().map(|source| (file, source)))
    }

    /// Migration files, in order of their names.
    pub fn migrations(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_migration())
    }

    /// The line of `architecture.toml` a finding about it should point at; the first if none fits.
    pub fn line_in_architecture(&self, fits: impl FnMut(&str) -> bool) -> usize {
        self.file(architecture::FILE).map_or(1, |file| line_where(&file.text, fits))
    }
}

impl File {
    fn new(path: String, text: String, architecture: &Architecture) -> Self {
        let text: Arc<str> = text.into();
        let all_test =
            is_test_path(&path) || architecture.crate_of(&path).is_some_and(|(_, member)| member.tests);
        let rust = path.ends_with(".rs").then(|| RustSource::lex(Arc::clone(&text), all_test));
        Self { path, text, rust }
    }

    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub fn is_test(&self) -> bool {
        is_test_path(&self.path)
    }

    /// Is it `part.rs`, or a file in a directory `part`?
    pub fn is_part(&self, part: &str) -> bool {
        self.name().strip_suffix(".rs") == Some(part) || self.has_directory(part)
    }

    pub fn is_migration(&self) -> bool {
        self.path.ends_with(".sql") && self.has_directory("migrations")
    }

    fn has_directory(&self, name: &str) -> bool {
        has_directory(&self.path, name)
    }
}

/// The number of the first line that fits; 1 if none does.
pub fn line_where(text: &str, fits: impl FnMut(&str) -> bool) -> usize {
    text.lines().position(fits).map_or(1, |index| index + 1)
}

fn is_test_path(path: &str) -> bool {
    path.ends_with("/tests.rs") || has_directory(path, "tests") || has_directory(path, "benches")
}

fn has_directory(path: &str, name: &str) -> bool {
    path.rsplit('/').skip(1).any(|directory| directory == name)
}

fn tracked(root: &Path) -> Result<Vec<String>, GuardError> {
    let failed = |cause: String| GuardError::List { root: root.display().to_string(), cause };
    // A clone made by another user, as in many pipelines, is still the tree we were asked to look at.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        // Inside a git hook these point at the repository of the hook, whatever the directory.
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .output()
        .map_err(|cause| failed(cause.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let mut paths: Vec<String> =
        String::from_utf8_lossy(&output.stdout).split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The text of a file; `None` if it is not text, not a plain file, or deleted but not yet from the index.
fn read(root: &Path, path: &str) -> Result<Option<String>, GuardError> {
    let full = root.join(path);
    if !full.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(&full).map_err(|cause| GuardError::Read { path: path.to_owned(), cause })?;
    Ok(String::from_utf8(bytes).ok())
}

//! The workspace's crates and what each is built from, read from the manifests and the lock file.
//!
//! `cargo metadata` would say the same, but needs the whole registry to be at hand and a second to answer, and the
//! fixtures would have to be complete workspaces. The manifests here follow one convention (versions in the root,
//! members say `workspace = true`), so reading them is short.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::{Table, Value};

use super::GuardError;
use super::project::{File, line_where};

#[derive(Debug, Default)]
pub struct Workspace {
    /// Package name to member.
    pub members: BTreeMap<String, Member>,
    /// Package name to the names it is built from, as locked. Versions of one package are taken together.
    locked: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug)]
pub struct Member {
    pub directory: String,
    pub manifest: String,
    /// Package name to the line that says so: normal and build dependencies.
    pub built_from: BTreeMap<String, usize>,
    /// The same for what only tests use.
    pub tested_with: BTreeMap<String, usize>,
}

impl Workspace {
    pub fn read(files: &[File]) -> Result<Self, GuardError> {
        let Some(root) = files.iter().find(|file| file.path == "Cargo.toml") else {
            return Ok(Self::default());
        };
        let root: Root = parse(root)?;
        let mut members = BTreeMap::new();
        for file in files {
            let Some(directory) = file.path.strip_suffix("/Cargo.toml") else { continue };
            if root.workspace.members.iter().any(|pattern| matches(pattern, directory)) {
                let manifest: Manifest = parse(file)?;
                let name = manifest.package.name.clone();
                members.insert(name, manifest.into_member(directory, file, &root.workspace.dependencies));
            }
        }
        let lock = files.iter().find(|file| file.path == "Cargo.lock");
        let locked = lock.map(parse::<Lock>).transpose()?.unwrap_or_default().into_edges();
        Ok(Self { members, locked })
    }

    /// Everything a package is built from, however indirectly, with the way there.
    pub fn reach(&self, from: &str) -> BTreeMap<String, String> {
        let mut reached = BTreeMap::new();
        let mut waiting = vec![(from.to_owned(), from.to_owned())];
        while let Some((package, way)) = waiting.pop() {
            for next in self.next(&package) {
                if !reached.contains_key(next) {
                    let way = format!("{way} → {next}");
                    reached.insert(next.to_owned(), way.clone());
                    waiting.push((next.to_owned(), way));
                }
            }
        }
        reached
    }

    /// The lock file mixes in what a member's tests use, so members answer from their manifests.
    fn next(&self, package: &str) -> Vec<&str> {
        match self.members.get(package) {
            Some(member) => member.built_from.keys().map(String::as_str).collect(),
            None => self.locked.get(package).into_iter().flatten().map(String::as_str).collect(),
        }
    }
}

#[derive(Deserialize)]
struct Root {
    workspace: WorkspaceTable,
}

#[derive(Deserialize)]
struct WorkspaceTable {
    #[serde(default)]
    members: Vec<String>,
    #[serde(default)]
    dependencies: Table,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Manifest {
    package: Package,
    #[serde(flatten)]
    tables: Dependencies,
    #[serde(default)]
    target: BTreeMap<String, Dependencies>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Dependencies {
    #[serde(default)]
    dependencies: Table,
    #[serde(default)]
    build_dependencies: Table,
    #[serde(default)]
    dev_dependencies: Table,
}

impl Manifest {
    fn into_member(self, directory: &str, file: &File, shared: &Table) -> Member {
        let mut member = Member {
            directory: directory.to_owned(),
            manifest: file.path.clone(),
            built_from: BTreeMap::new(),
            tested_with: BTreeMap::new(),
        };
        for tables in self.target.values().chain([&self.tables]) {
            for (key, value) in tables.dependencies.iter().chain(&tables.build_dependencies) {
                member.built_from.insert(package_name(key, value, shared), line_of(file, key));
            }
            for (key, value) in &tables.dev_dependencies {
                member.tested_with.insert(package_name(key, value, shared), line_of(file, key));
            }
        }
        member
    }
}

#[derive(Deserialize, Default)]
struct Lock {
    #[serde(default)]
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    #[serde(default)]
    dependencies: Vec<String>,
}

impl Lock {
    fn into_edges(self) -> BTreeMap<String, BTreeSet<String>> {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for package in self.package {
            // An entry reads `name`, or `name version` where there are several.
            let names = package.dependencies.iter().filter_map(|entry| entry.split(' ').next());
            edges.entry(package.name).or_default().extend(names.map(str::to_owned));
        }
        edges
    }
}

/// A dependency may be called otherwise than its package, here or in the workspace's table.
fn package_name(key: &str, value: &Value, shared: &Table) -> String {
    let renamed = |value: &Value| value.get("package").and_then(Value::as_str).map(str::to_owned);
    renamed(value).or_else(|| shared.get(key).and_then(renamed)).unwrap_or_else(|| key.to_owned())
}

fn line_of(file: &File, key: &str) -> usize {
    line_where(&file.text, |line| {
        line.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
            || line.ends_with(&format!("dependencies.{key}]"))
    })
}

/// Cargo's member patterns, as far as we use them: a path, or a directory and `*`.
fn matches(pattern: &str, directory: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(parent) => directory.rsplit_once('/').is_some_and(|(above, _)| above == parent),
        None => pattern == directory,
    }
}

fn parse<T: serde::de::DeserializeOwned>(file: &File) -> Result<T, GuardError> {
    toml::from_str(&file.text).map_err(|cause| GuardError::Parse { path: file.path.clone(), cause })
}

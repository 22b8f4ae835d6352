//! `architecture.toml`, typed. The file itself explains each table; here is only its shape.
//!
//! Unknown keys are errors: a misspelt permission must not silently permit nothing or everything.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

pub const FILE: &str = "architecture.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Architecture {
    /// Directories the guard does not look into.
    pub skip: Vec<String>,
    pub layers: BTreeMap<String, Layer>,
    pub crates: BTreeMap<String, Crate>,
    pub never_reaches: Vec<NeverReaches>,
    pub domains: BTreeMap<String, Domain>,
    /// Table to reason.
    pub bookkeeping: BTreeMap<String, String>,
    /// Ban to where it does not hold.
    pub exceptions: BTreeMap<String, Vec<Exception>>,
    pub debt: Vec<Debt>,
}

/// A top directory. A crate belongs to the layer its path starts with.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    pub about: String,
    /// The layers its crates may depend on.
    pub sees: Vec<String>,
    /// Its crates are domains and have a domain's shape.
    #[serde(default)]
    pub domains: bool,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Crate {
    pub path: String,
    pub owner: String,
    /// Workspace crates it is built from, exactly.
    pub uses: Vec<String>,
    /// Further workspace crates only its tests use, exactly; crates with `tests = true` need no mention.
    #[serde(default)]
    pub tests_use: Vec<String>,
    /// Nothing but test support: judged as tests are, and never part of a product binary.
    #[serde(default)]
    pub tests: bool,
}

/// What a part of the tree must not be built from, however indirectly.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeverReaches {
    /// Path of a crate, or of a directory of crates.
    pub from: String,
    #[serde(default)]
    pub layers: Vec<String>,
    /// Package names, ours or others'.
    #[serde(default)]
    pub packages: Vec<String>,
    pub reason: String,
}

/// A thing with data, events and routes of its own.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    pub crates: Vec<String>,
    #[serde(default)]
    pub schema: Option<String>,
    #[serde(default)]
    pub events: Option<String>,
    #[serde(default)]
    pub routes: Vec<String>,
}

/// A place where a ban does not hold, for good.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    pub path: String,
    #[serde(default)]
    pub item: Option<String>,
    pub reason: String,
}

/// A breach we know of and will repair until a date.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Debt {
    pub rule: String,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub item: Option<String>,
    pub owner: String,
    pub reason: String,
    /// The last day on which it is excused.
    pub expires: Date,
}

impl Architecture {
    /// The crate a file belongs to: the one with the longest path above it.
    pub fn crate_of(&self, path: &str) -> Option<(&str, &Crate)> {
        self.crates
            .iter()
            .filter(|(_, it)| is_under(path, &it.path))
            .max_by_key(|(_, it)| it.path.len())
            .map(|(name, it)| (name.as_str(), it))
    }

    pub fn domain_of_crate(&self, name: &str) -> Option<(&str, &Domain)> {
        self.domains
            .iter()
            .find(|(_, domain)| domain.crates.iter().any(|it| it == name))
            .map(|(name, domain)| (name.as_str(), domain))
    }

    pub fn domain_of(&self, path: &str) -> Option<(&str, &Domain)> {
        self.crate_of(path).and_then(|(name, _)| self.domain_of_crate(name))
    }

    pub fn layer_of(&self, path: &str) -> Option<(&str, &Layer)> {
        let first = path.split('/').next().unwrap_or(path);
        self.layers.get_key_value(first).map(|(name, layer)| (name.as_str(), layer))
    }
}

/// Is this path the directory or below it?
pub fn is_under(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

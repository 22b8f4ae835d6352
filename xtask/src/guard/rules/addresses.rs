//! Nothing in the tree may depend on the machine it was written on.
//!
//! A path below somebody's home, or a lock file that points at the registry mirror of one network, works for its
//! author and for nobody else.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::{File, Project};

pub const FAMILY: Family = Family { bans: &[&MACHINE_PATH, &REGISTRY_ADDRESS], check };

static MACHINE_PATH: Ban = Ban::new(
    "machine-path",
    "a path of one machine works for its author and for nobody else",
    "make it relative to the repository, an argument, or a temporary directory",
);

static REGISTRY_ADDRESS: Ban = Ban::new(
    "registry-address",
    "which registry or mirror packages come from is a property of the network, not of the project",
    "leave the address to the package manager's configuration (npm: omit-lockfile-registry-resolved=true)",
);

const DIRECTORIES: &[&str] = &["/work/", "/root/", "/home/"];

/// A line with one of these chooses or names a registry. Cargo's default index is spelt in every lock file it writes.
const REGISTRIES: &[&str] = &[
    "\"resolved\": \"http",
    "resolved \"http",
    "registry=http",
    "registry = \"http",
    "registry = \"sparse+",
    "index = \"http",
    "index = \"sparse+",
    "index-url",
    "replace-with",
    "GOPROXY=",
    "registry+http",
    "registry.npmjs.org",
    "files.pythonhosted.org",
    "pypi.org/simple",
    "static.crates.io",
    "proxy.golang.org",
];
const CARGO_INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for file in &project.files {
        if DIRECTORIES.iter().any(|directory| file.text.contains(directory)) {
            for_lines(file, &MACHINE_PATH, machine_path, findings);
        }
        if REGISTRIES.iter().any(|registry| file.text.contains(registry)) {
            for_lines(file, &REGISTRY_ADDRESS, registry, findings);
        }
    }
}

fn for_lines(
    file: &File,
    ban: &'static Ban,
    look: fn(&str) -> Option<&'static str>,
    findings: &mut Vec<Finding>,
) {
    for (index, line) in file.text.lines().enumerate() {
        if let Some(item) = look(line) {
            findings.push(ban.at(&file.path, index + 1, item, format!("{item}… in a tracked file")));
        }
    }
}

/// The directory must start a path (`x/work/y` is no machine path), and below `/home/` there must be a name.
fn machine_path(line: &str) -> Option<&'static str> {
    let starts_path = |before: &str| {
        !before.ends_with(|c: char| {
            c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '}' | ')' | '*' | '~')
        })
    };
    DIRECTORIES.iter().copied().find(|directory| {
        line.match_indices(directory).any(|(at, _)| {
            let named = line[at + directory.len()..].starts_with(|c: char| c.is_ascii_alphanumeric());
            starts_path(&line[..at]) && (named || *directory != "/home/")
        })
    })
}

fn registry(line: &str) -> Option<&'static str> {
    REGISTRIES.iter().copied().find(|registry| line.contains(registry) && !line.contains(CARGO_INDEX))
}

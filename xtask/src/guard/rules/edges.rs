//! Dependency edges: exactly those of `architecture.toml`, only towards lower layers, and never, however indirectly,
//! to what a part of the tree must not know.
//!
//! "Exactly" goes both ways: an edge somebody adds shows up in review as a line of `architecture.toml`, and an edge
//! that is gone leaves the list, so the list is the picture of the system and not of its past.

use super::Family;
use crate::guard::architecture::{Crate, FILE, is_under};
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;
use crate::guard::workspace::Member;

pub const FAMILY: Family =
    Family { bans: &[&CRATE_LIST, &EDGE_UNLISTED, &EDGE_GONE, &LAYER, &TEST_CRATE, &REACH], check };

static CRATE_LIST: Ban = Ban::absolute(
    "crate-list",
    "architecture.toml is the map of the system: a crate that is not on it has no owner and no place",
    "list the crate under [crates] with path, owner and uses, in a layer listed under [layers]; delete crates that are gone",
);

static EDGE_UNLISTED: Ban = Ban::absolute(
    "edge-unlisted",
    "an edge nobody decided on is how layers dissolve",
    "reach the other side through an event or an existing facade; if the edge is right, add it to the crate's `uses` and say why in the commit",
);

static EDGE_GONE: Ban = Ban::absolute(
    "edge-gone",
    "a listed edge that does not exist is a permission nobody is watching",
    "remove it from the crate's list in architecture.toml",
);

static LAYER: Ban = Ban::absolute(
    "layer",
    "a lower layer that knows a higher one cannot be understood, tested or reused without it",
    "turn the edge round: the lower layer offers a trait or an event, the higher one uses it",
);

static TEST_CRATE: Ban = Ban::absolute(
    "test-crate",
    "test support carries shortcuts (fixed keys, manual clocks) that must not be in a product binary",
    "make it a dev-dependency",
);

static REACH: Ban = Ban::absolute(
    "reach",
    "some parts must not even contain the code: what is not linked cannot be called, exploited or updated wrongly",
    "cut the edge that leads there; [[never_reaches]] in architecture.toml says why it must not exist",
);

fn check(project: &Project, findings: &mut Vec<Finding>) {
    check_list(project, findings);
    for (name, member) in &project.workspace.members {
        if let Some(listed) = project.architecture.crates.get(name) {
            check_edges(project, name, member, listed, findings);
            check_layers(project, name, member, listed, findings);
        }
        check_reach(project, name, member, findings);
    }
}

fn check_list(project: &Project, findings: &mut Vec<Finding>) {
    for (name, member) in &project.workspace.members {
        let fault = match project.architecture.crates.get(name) {
            None => "is not listed".to_owned(),
            Some(listed) if listed.path != member.directory => format!("is listed at {}", listed.path),
            Some(_) if project.architecture.layer_of(&member.directory).is_none() => {
                "is in no layer".to_owned()
            }
            Some(_) => continue,
        };
        findings.push(CRATE_LIST.at(&member.manifest, 1, name, format!("crate {name} {fault}")));
    }
    for name in project.architecture.crates.keys() {
        if !project.workspace.members.contains_key(name) {
            let what = format!("crate {name} is listed and is not in the workspace");
            findings.push(CRATE_LIST.at(FILE, line_of_crate(project, name), name, what));
        }
    }
}

fn check_edges(project: &Project, name: &str, member: &Member, listed: &Crate, findings: &mut Vec<Finding>) {
    let ours = &project.workspace.members;
    let is_test_crate = |to: &str| project.architecture.crates.get(to).is_some_and(|it| it.tests);
    for (to, line) in member.built_from.iter().filter(|(to, _)| ours.contains_key(*to)) {
        if !listed.uses.contains(to) {
            findings.push(EDGE_UNLISTED.at(
                &member.manifest,
                *line,
                to,
                format!("{name} → {to} is not listed"),
            ));
        }
        if is_test_crate(to) && !listed.tests {
            findings.push(TEST_CRATE.at(&member.manifest, *line, to, format!("{name} is built from {to}")));
        }
    }
    for (to, line) in member.tested_with.iter().filter(|(to, _)| ours.contains_key(*to)) {
        if !listed.uses.contains(to) && !listed.tests_use.contains(to) && !is_test_crate(to) {
            let what = format!("{name} → {to} (in tests) is not listed");
            findings.push(EDGE_UNLISTED.at(&member.manifest, *line, to, what));
        }
    }
    let gone_from_build = listed.uses.iter().filter(|to| !member.built_from.contains_key(*to));
    let gone_from_tests = listed.tests_use.iter().filter(|to| !member.tested_with.contains_key(*to));
    for to in gone_from_build.chain(gone_from_tests) {
        let what = format!("{name} → {to} is listed and does not exist");
        findings.push(EDGE_GONE.at(FILE, line_of_crate(project, name), to, what));
    }
}

fn check_layers(project: &Project, name: &str, member: &Member, listed: &Crate, findings: &mut Vec<Finding>) {
    let Some((layer, rules)) = project.architecture.layer_of(&listed.path) else { return };
    for (to, line) in &member.built_from {
        let Some(target) = project.workspace.members.get(to) else { continue };
        let Some((other, _)) = project.architecture.layer_of(&target.directory) else { continue };
        if !rules.sees.iter().any(|seen| seen == other) {
            let what = format!("{name} → {to}: {layer} does not see {other}");
            findings.push(LAYER.at(&member.manifest, *line, to, what));
        }
    }
}

fn check_reach(project: &Project, name: &str, member: &Member, findings: &mut Vec<Finding>) {
    let rules = &project.architecture.never_reaches;
    for rule in rules.iter().filter(|rule| is_under(&member.directory, &rule.from)) {
        for (package, way) in project.workspace.reach(name) {
            let layer = project.workspace.members.get(&package).and_then(|it| it.directory.split('/').next());
            let in_layer = layer.is_some_and(|layer| rule.layers.iter().any(|it| it == layer));
            if in_layer || rule.packages.contains(&package) {
                let what = format!("{name} reaches {package} ({way}): {}", rule.reason);
                findings.push(REACH.at(&member.manifest, 1, &package, what));
            }
        }
    }
}

fn line_of_crate(project: &Project, name: &str) -> usize {
    project.line_in_architecture(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
            || line.trim_end() == format!("[crates.{name}]")
    })
}

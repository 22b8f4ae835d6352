//! The guard's findings and the map it checked them against, for programs: `cargo xtask guard --report json`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::architecture::{Crate, Debt, Domain, Exception, Layer};
use super::ledger::Settled;
use super::project::Project;

#[derive(Serialize)]
pub struct Report<'a> {
    layers: &'a BTreeMap<String, Layer>,
    crates: &'a BTreeMap<String, Crate>,
    domains: &'a BTreeMap<String, Domain>,
    bookkeeping: &'a BTreeMap<String, String>,
    exceptions: &'a BTreeMap<String, Vec<Exception>>,
    edges: Vec<Edge<'a>>,
    debt: Vec<DebtLine<'a>>,
    findings: Vec<FindingLine<'a>>,
}

/// An edge that is really there, as opposed to one that is listed.
#[derive(Serialize)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    only_tests: bool,
}

#[derive(Serialize)]
struct DebtLine<'a> {
    #[serde(flatten)]
    debt: &'a Debt,
    days_left: i64,
}

#[derive(Serialize)]
struct FindingLine<'a> {
    rule: &'static str,
    path: &'a str,
    line: usize,
    item: &'a str,
    what: &'a str,
    why: &'static str,
    instead: &'static str,
}

impl<'a> Report<'a> {
    pub fn new(project: &'a Project, settled: &'a Settled) -> Self {
        let architecture = &project.architecture;
        Self {
            layers: &architecture.layers,
            crates: &architecture.crates,
            domains: &architecture.domains,
            bookkeeping: &architecture.bookkeeping,
            exceptions: &architecture.exceptions,
            edges: edges(project),
            debt: architecture
                .debt
                .iter()
                .zip(&settled.debt_days_left)
                .map(|(debt, days_left)| DebtLine { debt, days_left: *days_left })
                .collect(),
            findings: settled
                .findings
                .iter()
                .map(|finding| FindingLine {
                    rule: finding.ban.id,
                    path: &finding.path,
                    line: finding.line,
                    item: &finding.item,
                    what: &finding.what,
                    why: finding.ban.why,
                    instead: finding.ban.instead,
                })
                .collect(),
        }
    }
}

fn edges(project: &Project) -> Vec<Edge<'_>> {
    let members = &project.workspace.members;
    let mut edges = Vec::new();
    for (from, member) in members {
        let built = member.built_from.keys().map(|to| (to, false));
        let tested = member.tested_with.keys().map(|to| (to, true));
        edges.extend(
            built.chain(tested).filter(|(to, _)| members.contains_key(*to)).map(|(to, only_tests)| Edge {
                from,
                to,
                only_tests,
            }),
        );
    }
    edges
}

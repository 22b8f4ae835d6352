//! Every rule against a tree that breaks it, and all of them against one that breaks none.
//!
//! A fixture is `xtask/fixtures/<name>/tree` with the findings it must give in `expected.txt`. After a deliberate
//! change, `GUARD_BLESS=1 cargo test -p xtask` rewrites the goldens; the diff is what gets reviewed.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::civil::{Date, date};

use super::finding::Finding;
use super::project::Project;
use super::{check, report, rules};

/// The day on which the fixtures are looked at; their debts expire around it.
const TODAY: Date = date(2026, 11, 15);

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn fixture(name: &str) -> Project {
    Project::load(&fixtures().join(name).join("tree")).unwrap()
}

fn fixture_names() -> Vec<String> {
    let entries = std::fs::read_dir(fixtures()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn brief(findings: &[Finding]) -> String {
    findings.iter().map(|finding| finding.brief() + "\n").collect()
}

#[test]
fn every_fixture_gives_its_findings() {
    let mut wrong = Vec::new();
    for name in fixture_names() {
        let found = brief(&check(&fixture(&name), TODAY).findings);
        let golden = fixtures().join(&name).join("expected.txt");
        if std::env::var_os("GUARD_BLESS").is_some() {
            std::fs::write(&golden, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if found != expected {
            wrong.push(format!("{name}\n--- expected\n{expected}--- found\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_ban_has_a_fixture_that_breaks_it() {
    let broken: BTreeSet<&str> = fixture_names()
        .iter()
        .flat_map(|name| check(&fixture(name), TODAY).findings)
        .map(|finding| finding.ban.id)
        .collect();
    let unproven: Vec<&str> = rules::bans().map(|ban| ban.id).filter(|id| !broken.contains(id)).collect();
    assert!(unproven.is_empty(), "no fixture breaks {unproven:?}");
}

#[test]
fn ban_names_are_unique() {
    let ids: Vec<&str> = rules::bans().map(|ban| ban.id).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn the_clean_fixture_is_clean() {
    assert_eq!(brief(&check(&fixture("clean"), TODAY).findings), "");
}

#[test]
fn a_debt_excuses_until_its_day_and_not_a_day_longer() {
    let project = fixture("clean");
    let on = |today: Date| check(&project, today);
    assert_eq!(on(date(2026, 12, 31)).findings.len(), 0);
    assert_eq!(on(date(2026, 12, 30)).debt_days_left, [1]);
    assert_eq!(
        brief(&on(date(2027, 1, 1)).findings),
        "architecture.toml:46: debt-expired: identity owes limit-literal at platform/iam/src/model.rs since 2026-12-31\n\
         platform/iam/src/model.rs:6: limit-literal: INVITATION_TTL is fixed in the code\n"
    );
}

#[test]
fn a_finding_says_where_what_why_and_what_instead() {
    let settled = check(&fixture("bus"), TODAY);
    let text = settled.findings.first().unwrap().to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    assert_eq!(lines[0], "platform/iam/src/flow.rs:2: bus: use of async_nats");
    assert!(lines[1].starts_with("why: ") && lines[2].starts_with("instead: "), "{text}");
}

#[test]
fn the_report_lists_edges_owners_debt_and_findings() {
    let project = fixture("clean");
    let settled = check(&project, TODAY);
    let report = serde_json::to_value(report::Report::new(&project, &settled)).unwrap();
    assert_eq!(report["crates"]["iam"]["owner"], "identity");
    assert_eq!(report["debt"][0]["days_left"], 46);
    assert_eq!(report["findings"], serde_json::json!([]));
    let edge = serde_json::json!({ "from": "billing", "to": "iam", "only_tests": false });
    assert!(report["edges"].as_array().unwrap().contains(&edge), "{report}");
}

#[test]
fn this_repository_passes() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let findings = check(&Project::load(&root).unwrap(), today).findings;
    let text: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(text.is_empty(), "{}", text.join("\n\n"));
}

//! Time and randomness come in as values: `types::Clock` and `types::Entropy`.
//!
//! A test that cannot set the time cannot test an expiry, and a crash drill that cannot repeat its ids cannot be
//! replayed. Measuring how long something took is not a decision and may read the monotonic clock where listed.

use super::{Family, spelling};
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;

pub const FAMILY: Family = Family { bans: &[&CLOCK, &RANDOMNESS], check };

static CLOCK: Ban = Ban::new(
    "clock",
    "code that reads the machine's clock cannot be stepped by a test or replayed after a crash",
    "take `now` as an argument, or hold an injected `types::Clock`",
);

static RANDOMNESS: Ban = Ban::new(
    "randomness",
    "ids and tokens from a hidden source differ in each run, so a failing run cannot be repeated",
    "hold an injected `types::Entropy`, or make ids with `types::IdMaker`",
);

const CLOCKS: &[&str] = &["Instant", "SystemTime", "Timestamp", "Zoned", "Utc", "Local"];

/// Types whose renaming would hide a call from this rule.
const HIDEABLE: &[&str] = &["Instant", "SystemTime", "Zoned"];

const RANDOM: &[&[&str]] = &[
    &["aws_lc_rs", "::", "rand"],
    &["rand", "::"],
    &["getrandom", "::"],
    &["fastrand", "::"],
    &["Uuid", "::", "new_v4"],
    &["Uuid", "::", "now_v7"],
    &["SystemRandom", "::", "new"],
    &["OsRng"],
    &["thread_rng"],
];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust() {
        for name in CLOCKS {
            for index in source.find(&[name, "::", "now"]) {
                let item = format!("{name}::now");
                findings.push(CLOCK.at(&file.path, source.line(index), &item, format!("call of {item}")));
            }
        }
        for name in HIDEABLE {
            for index in source.find(&[name, "as"]) {
                let what = format!("{name} under another name");
                findings.push(CLOCK.at(&file.path, source.line(index), name, what));
            }
        }
        let mut lines = Vec::new();
        for pattern in RANDOM {
            for index in source.find(pattern) {
                let line = source.line(index);
                // `aws_lc_rs::rand::fill` fits two patterns and is one breach.
                if !lines.contains(&line) {
                    let item = spelling(pattern);
                    findings.push(RANDOMNESS.at(&file.path, line, &item, format!("use of {item}")));
                    lines.push(line);
                }
            }
        }
    }
}

//! Domains look the same everywhere, files fit a head, and modules are named after what they are.
//!
//! Whoever has read one domain should find their way in the next: what it owns and must never do in the header of
//! `lib.rs`, its data behind a private store. A file that outgrows its length is missing a concept; a module called
//! `util` is where the missing concepts collect.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::{File, Project};
use crate::guard::rust::RustSource;

pub const FAMILY: Family =
    Family { bans: &[&DOMAIN_HEADER, &STORE_PUBLIC, &FILE_LENGTH, &MODULE_NAME], check };

static DOMAIN_HEADER: Ban = Ban::new(
    "domain-header",
    "the header of lib.rs is the only place that says what a domain owns, guarantees and must never do",
    "write src/lib.rs with a header (//!) of at least five lines: what it owns, its invariants, what it must never do",
);

static STORE_PUBLIC: Ban = Ban::absolute(
    "store-public",
    "a store that others can call lets them change rows without permission, audit entry or event",
    "declare it `mod store;` and offer a function of the domain that authorizes and records",
);

static FILE_LENGTH: Ban = Ban::new(
    "file-length",
    "a file that does not fit a head is missing a concept",
    "find the name of the missing concept and give it a file",
);

static MODULE_NAME: Ban = Ban::absolute(
    "module-name",
    "a module named after nothing attracts everything",
    "name it after what it holds, or put its parts where they are used",
);

// fixed: the house style's numbers; a setting would only invite raising them.
const FILE_LINES_MAX: usize = 600;
// fixed: as above, for tests.
const TEST_LINES_MAX: usize = 1_000;
// fixed: below five lines a header cannot say what a domain owns, guarantees and must never do.
const HEADER_LINES_MIN: usize = 5;

const NAMELESS: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc"];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    check_domains(project, findings);
    for (file, source) in project.rust() {
        check_length(file, findings);
        check_name(file, findings);
        check_store(file, source, findings);
    }
}

fn check_domains(project: &Project, findings: &mut Vec<Finding>) {
    for (name, listed) in &project.architecture.crates {
        if !project.architecture.layer_of(&listed.path).is_some_and(|(_, layer)| layer.domains) {
            continue;
        }
        let path = format!("{}/src/lib.rs", listed.path);
        let header = project.file(&path).map_or(0, |file| {
            file.text.lines().take_while(|line| line.starts_with("//!")).filter(|line| line.len() > 3).count()
        });
        if header < HEADER_LINES_MIN {
            let what = format!("domain {name} has a header of {header} lines");
            findings.push(DOMAIN_HEADER.at(&path, 1, name, what));
        }
    }
}

fn check_store(file: &File, source: &RustSource, findings: &mut Vec<Finding>) {
    for index in source.find(&["mod", "store"]) {
        let before = index.checked_sub(1).map_or("", |before| source.text(before));
        // `pub mod` and `pub(crate) mod`: nobody outside the parent needs the store.
        if before == "pub" || before == ")" {
            findings.push(STORE_PUBLIC.at(&file.path, source.line(index), "store", "the store is public"));
        }
    }
}

fn check_length(file: &File, findings: &mut Vec<Finding>) {
    let limit = if file.is_test() { TEST_LINES_MAX } else { FILE_LINES_MAX };
    let lines = file.text.lines().count();
    if lines > limit {
        let what = format!("{lines} lines, at most {limit}");
        findings.push(FILE_LENGTH.at(&file.path, limit + 1, file.name(), what));
    }
}

fn check_name(file: &File, findings: &mut Vec<Finding>) {
    let parts = file.path.split('/').map(|part| part.trim_end_matches(".rs"));
    if let Some(part) = parts.into_iter().find(|part| NAMELESS.contains(part)) {
        findings.push(MODULE_NAME.at(&file.path, 1, part, format!("module {part}")));
    }
}

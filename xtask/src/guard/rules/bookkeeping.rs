//! The list of bookkeeping tables is the list of what may change without an audit entry, so it must be true.
//!
//! `kernel/db` reads the same list to refuse every other table outside of a recorded change; here it is only checked
//! that each entry is a table some migration makes, in a schema somebody owns, and that it says why.

use std::collections::BTreeSet;

use super::Family;
use super::migrations::created_table;
use crate::guard::architecture::FILE;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;
use crate::guard::sql;

pub const FAMILY: Family = Family { bans: &[&BOOKKEEPING], check };

static BOOKKEEPING: Ban = Ban::absolute(
    "bookkeeping",
    "a table on this list changes without an audit entry: a wrong line is a hole in the audit",
    "name an existing table as schema.table and say in a sentence why its changes need no audit",
);

fn check(project: &Project, findings: &mut Vec<Finding>) {
    let tables: BTreeSet<String> = project
        .migrations()
        .flat_map(|file| sql::statements(&file.text).iter().filter_map(created_table).collect::<Vec<_>>())
        .collect();
    for (table, reason) in &project.architecture.bookkeeping {
        let fault = match (tables.contains(table), reason.split_whitespace().count() > 2) {
            (false, _) => "is made by no migration",
            (true, false) => "says no reason",
            (true, true) => continue,
        };
        let line = project.line_in_architecture(|line| line.contains(&format!("\"{table}\"")));
        findings.push(BOOKKEEPING.at(FILE, line, table, format!("{table} {fault}")));
    }
}

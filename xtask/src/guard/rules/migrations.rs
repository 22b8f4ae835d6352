//! Migrations that two versions of the server can live with, side by side, under load.
//!
//! Version N still runs while N+1 migrates: what N reads must not disappear under it (expand first, contract a release
//! later), and no statement may lock a table that has rows for longer than a moment. Roles belong to the cluster, not
//! to the database, so a migration that makes one works once and fails in the next database.

use std::collections::BTreeSet;

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::{File, Project};
use crate::guard::sql::{self, Statement};

pub const FAMILY: Family = Family {
    bans: &[&MIGRATION_NAME, &MIGRATION_CONTRACT, &MIGRATION_INDEX, &MIGRATION_LOCK, &MIGRATION_ROLE],
    check,
};

static MIGRATION_NAME: Ban = Ban::absolute(
    "migration-name",
    "the number is the order: a gap or a double is a branch that merged wrongly",
    "name it NNNN_what_it_does.sql, counting from 0001 without gaps",
);

static MIGRATION_CONTRACT: Ban = Ban::absolute(
    "migration-contract",
    "the previous version is still running and reads what this takes away",
    "add the new form, move the readers, and contract a release later with `-- contract: <release>, <reason>` above the statement",
);

static MIGRATION_INDEX: Ban = Ban::absolute(
    "migration-index",
    "building an index blocks every write to the table until it is done",
    "build it CONCURRENTLY, or say `-- no rows yet: <reason>` above the statement",
);

static MIGRATION_LOCK: Ban = Ban::absolute(
    "migration-lock",
    "an explicit lock waits behind every transaction and makes every later one wait",
    "write the change so that it needs no lock: small batches, constraints NOT VALID first",
);

static MIGRATION_ROLE: Ban = Ban::absolute(
    "migration-role",
    "roles belong to the cluster: the next database in it already has them, and the migrating login may not make them",
    "make logins in `gpuaasd db init`; a migration only grants to them",
);

/// Phrases that take something away from the version before.
const CONTRACTING: &[&[&str]] = &[
    &["DROP", "COLUMN"],
    &["DROP", "TABLE"],
    &["DROP", "SCHEMA"],
    &["DROP", "VIEW"],
    &["RENAME"],
    &["ALTER", "TYPE"],
    &["SET", "DATA", "TYPE"],
    &["SET", "NOT", "NULL"],
];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    let mut directory = "";
    let mut number = 0;
    for file in project.migrations() {
        let here = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        if here != directory {
            (directory, number) = (here, 0);
        }
        number += 1;
        check_name(file, number, findings);
        let statements = sql::statements(&file.text);
        // A table made in this very migration has no rows and no readers.
        let created: BTreeSet<String> = statements.iter().filter_map(created_table).collect();
        for statement in &statements {
            check_statement(file, statement, &created, findings);
        }
    }
}

fn check_name(file: &File, number: usize, findings: &mut Vec<Finding>) {
    let name = file.name();
    let rest = name.strip_prefix(&format!("{number:04}_")).and_then(|rest| rest.strip_suffix(".sql"));
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_plain)) {
        let what = format!("{name} where {number:04}_….sql is next");
        findings.push(MIGRATION_NAME.at(&file.path, 1, name, what));
    }
}

fn check_statement(
    file: &File,
    statement: &Statement<'_>,
    created: &BTreeSet<String>,
    findings: &mut Vec<Finding>,
) {
    let line = statement.line() + 1;
    let mut report = |ban: &'static Ban, item: &str, what: String| {
        findings.push(ban.at(&file.path, line, item, what));
    };
    let contract = statement.remark("contract:").is_some_and(|remark| remark.contains(','));
    if let Some(phrase) = contracting(statement).filter(|_| !contract) {
        report(&MIGRATION_CONTRACT, &phrase, format!("{phrase} without `-- contract:`"));
    }
    let excused = statement.remark("no rows yet:").is_some();
    if let Some(table) = indexed_table(statement).filter(|table| !excused && !created.contains(table)) {
        report(&MIGRATION_INDEX, &table, format!("index on {table}, which may have rows"));
    }
    if statement.has(&["LOCK", "TABLE"]) {
        report(&MIGRATION_LOCK, "LOCK TABLE", "LOCK TABLE".to_owned());
    }
    for verb in ["CREATE", "ALTER", "DROP"] {
        for noun in ["ROLE", "USER", "GROUP"] {
            if statement.has(&[verb, noun]) {
                report(&MIGRATION_ROLE, noun, format!("{verb} {noun}"));
            }
        }
    }
}

fn contracting(statement: &Statement<'_>) -> Option<String> {
    // A function only says what it will do when called, and a value added to an enumeration takes nothing away.
    let defines = statement.words.iter().take(4).any(|word| word.is("FUNCTION") || word.is("PROCEDURE"));
    let creates = statement.words.first().is_some_and(|word| word.is("CREATE"));
    if defines && creates || statement.has(&["ADD", "VALUE"]) {
        return None;
    }
    if let Some(phrase) = CONTRACTING.iter().find(|phrase| statement.has(phrase)) {
        return Some(phrase.join(" "));
    }
    // `ALTER COLUMN name TYPE …`
    let at = statement.find(&["ALTER", "COLUMN"])?;
    statement.words.get(at + 3).filter(|word| word.is("TYPE")).map(|_| "ALTER COLUMN TYPE".to_owned())
}

/// The table of a `CREATE INDEX` that blocks writers.
fn indexed_table(statement: &Statement<'_>) -> Option<String> {
    let is_index = statement.has(&["CREATE", "INDEX"]) || statement.has(&["CREATE", "UNIQUE", "INDEX"]);
    if !is_index || statement.has(&["CONCURRENTLY"]) {
        return None;
    }
    let on = statement.words.iter().position(|word| word.is("ON"))?;
    let start = if statement.words.get(on + 1)?.is("ONLY") { on + 2 } else { on + 1 };
    name_at(statement, start)
}

/// The table a statement creates, as `schema.name`.
pub fn created_table(statement: &Statement<'_>) -> Option<String> {
    let create = statement.words.first()?.is("CREATE");
    let at = statement.words.iter().take(4).position(|word| word.is("TABLE")).filter(|_| create)?;
    let skip = if statement.words.get(at + 1)?.is("IF") { 4 } else { 1 };
    name_at(statement, at + skip)
}

fn name_at(statement: &Statement<'_>, at: usize) -> Option<String> {
    let first = statement.words.get(at)?.text.to_lowercase();
    match (statement.words.get(at + 1), statement.words.get(at + 2)) {
        (Some(dot), Some(name)) if dot.text == "." => Some(format!("{first}.{}", name.text.to_lowercase())),
        _ => Some(first),
    }
}

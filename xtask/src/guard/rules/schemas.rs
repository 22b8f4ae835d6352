//! A statement names only the schema of the domain it belongs to.
//!
//! Two domains that write each other's tables cannot be reasoned about apart, and no grant can tell them apart
//! either. Foreign keys may cross, but only downward along the dependency edges and only to an id, so that dropping
//! or splitting off a higher domain never touches a lower one.
//!
//! Read off the words: `x.y` counts as a schema where `x` is the schema of another domain, or where it stands after a
//! keyword that a table follows. An alias that is spelt like a schema is therefore reported, and should be renamed.

use super::Family;
use super::sql_place::looks_like_sql;
use crate::guard::architecture::Domain;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::{File, Project};
use crate::guard::sql::{self, Statement};

pub const FAMILY: Family = Family { bans: &[&FOREIGN_SCHEMA, &FOREIGN_KEY, &SCHEMA_UNOWNED], check };

static FOREIGN_SCHEMA: Ban = Ban::new(
    "foreign-schema",
    "a domain's tables are its own: whoever else reads or writes them breaks when it changes them",
    "call the other domain's facade with `&mut Tx` (an edge in architecture.toml), or follow its events",
);

static FOREIGN_KEY: Ban = Ban::new(
    "foreign-key",
    "a foreign key ties the migrations and backups of two domains together",
    "refer only to an `id` column of a domain this crate depends on; otherwise keep the id without a constraint",
);

static SCHEMA_UNOWNED: Ban = Ban::new(
    "schema-unowned",
    "SQL in a crate that owns no schema is somebody else's data",
    "give the domain a schema under [domains] in architecture.toml, or move the statement to the domain that owns the data",
);

/// PostgreSQL's own, open to everybody.
const SYSTEM_SCHEMAS: &[&str] = &["pg_catalog", "information_schema", "pg_temp"];

/// What the spine offers to the migrations of every domain.
const OFFERED: &[&str] = &["spine.wall", "spine.refuse_rewrite"];

/// Words after which a qualified name is a table, function or schema object.
const BEFORE_TABLE: &[&str] =
    &["from", "join", "into", "update", "table", "references", "only", "exists", "truncate"];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for file in project.migrations() {
        match own_schema(project, file) {
            Some(own) => check_text(project, file, own, 1, &file.text, findings),
            None => findings.push(unowned(file, 1)),
        }
    }
    for (file, source) in project.rust() {
        for (index, text) in source.strings().filter(|(_, text)| looks_like_sql(text)) {
            match own_schema(project, file) {
                Some(own) => check_text(project, file, own, source.line(index), text, findings),
                None if file.is_part("store") => findings.push(unowned(file, source.line(index))),
                // SQL that is in the wrong file anyway is another rule's business.
                None => {}
            }
        }
    }
}

fn unowned(file: &File, line: usize) -> Finding {
    SCHEMA_UNOWNED.at(&file.path, line, &file.path, "SQL in a crate that owns no schema")
}

fn own_schema<'a>(project: &'a Project, file: &File) -> Option<&'a str> {
    project.architecture.domain_of(&file.path).and_then(|(_, domain)| domain.schema.as_deref())
}

fn check_text(
    project: &Project,
    file: &File,
    own: &str,
    first_line: usize,
    text: &str,
    findings: &mut Vec<Finding>,
) {
    for statement in sql::statements(text) {
        let mut report = |ban: &'static Ban, index: usize, item: &str, what: String| {
            findings.push(ban.at(&file.path, first_line + statement.words[index].line, item, what));
        };
        for index in statement.qualified().filter(|index| is_schema(project, &statement, *index)) {
            let item = format!("{}.{}", statement.words[index].text, statement.words[index + 2].text);
            let offered = file.is_migration() && OFFERED.contains(&item.as_str());
            if offered || statement.words[index].is(own) {
                continue;
            }
            if index > 0 && statement.words[index - 1].is("references") && file.is_migration() {
                if let Some(fault) = foreign_key_fault(project, &file.path, &statement, index) {
                    report(&FOREIGN_KEY, index, &item, format!("{item} {fault}"));
                }
            } else {
                report(&FOREIGN_SCHEMA, index, &item, format!("{item} in SQL of the owner of schema {own}"));
            }
        }
        for index in schemas_by_name(&statement).filter(|index| !statement.words[*index].is(own)) {
            let name = statement.words[index].text;
            report(
                &FOREIGN_SCHEMA,
                index,
                name,
                format!("schema {name} in SQL of the owner of schema {own}"),
            );
        }
    }
}

/// `CREATE SCHEMA iam`, `GRANT USAGE ON SCHEMA iam`: the index of the name.
fn schemas_by_name<'a>(statement: &'a Statement<'_>) -> impl Iterator<Item = usize> + 'a {
    let after = |index: usize| {
        let exists = ["if", "not", "exists"];
        (index + 1..statement.words.len()).find(|at| !exists.iter().any(|word| statement.words[*at].is(word)))
    };
    let marks = (0..statement.words.len()).filter(|index| statement.words[*index].is("schema"));
    marks.filter_map(after).filter(|index| statement.words[*index].is_name())
}

fn is_schema(project: &Project, statement: &Statement<'_>, index: usize) -> bool {
    let name = statement.words[index].text.to_lowercase();
    if SYSTEM_SCHEMAS.contains(&name.as_str()) {
        return false;
    }
    if domain_with_schema(project, &name).is_some() {
        return true;
    }
    // `IS DISTINCT FROM t.column` and `extract(epoch FROM t.column)` are no tables.
    let before = |distance: usize| index.checked_sub(distance).map_or("", |at| statement.words[at].text);
    let after_from = before(1).eq_ignore_ascii_case("from");
    let no_table = after_from
        && (before(2).eq_ignore_ascii_case("distinct")
            || before(3) == "(" && !before(2).eq_ignore_ascii_case("delete"));
    !no_table && BEFORE_TABLE.contains(&before(1).to_lowercase().as_str())
}

fn domain_with_schema<'a>(project: &'a Project, schema: &str) -> Option<&'a Domain> {
    project.architecture.domains.values().find(|domain| domain.schema.as_deref() == Some(schema))
}

/// Only to crates below, only to an id.
fn foreign_key_fault(
    project: &Project,
    path: &str,
    statement: &Statement<'_>,
    index: usize,
) -> Option<String> {
    let name = statement.words[index].text;
    let Some(target) = domain_with_schema(project, &name.to_lowercase()) else {
        return Some(format!("refers to schema {name}, which no domain owns"));
    };
    let from = project.architecture.crate_of(path).map_or("", |(name, _)| name);
    let reached = project.workspace.reach(from);
    if !target.crates.iter().any(|it| reached.contains_key(it)) {
        return Some(format!("refers to a domain {from} does not depend on"));
    }
    let column =
        statement.words.get(index + 3).filter(|word| word.text == "(").and(statement.words.get(index + 4));
    match column {
        Some(column) if !column.is("id") => Some(format!("refers to column {}, not to an id", column.text)),
        _ => None,
    }
}

//! SQL only in `store.rs`, `store/` and migrations.
//!
//! A domain's statements beside its row mapping, in one private module, can be read, prepared by a test and changed
//! together with the schema. A string counts as SQL when it holds an upper-case phrase of the language, or starts in
//! lower case with one and goes on like a statement; prose hardly ever does either.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;

pub const FAMILY: Family = Family { bans: &[&SQL_PLACE], check };

static SQL_PLACE: Ban = Ban::new(
    "sql-place",
    "a statement outside the store is one that nobody finds when the schema changes, and no test prepares",
    "move it to the domain's store.rs as a constant beside the function that maps its rows",
);

/// A statement's first words, and what must follow somewhere.
const PHRASES: &[(&str, &str)] = &[
    ("SELECT", "FROM"),
    ("INSERT INTO", ""),
    ("UPDATE", "SET"),
    ("DELETE FROM", ""),
    ("CREATE TABLE", ""),
    ("CREATE INDEX", ""),
    ("CREATE UNIQUE INDEX", ""),
    ("CREATE SCHEMA", ""),
    ("CREATE FUNCTION", ""),
    ("CREATE OR REPLACE", ""),
    ("CREATE ROLE", ""),
    ("CREATE DATABASE", ""),
    ("ALTER TABLE", ""),
    ("ALTER ROLE", ""),
    ("DROP TABLE", ""),
    ("DROP DATABASE", ""),
    ("TRUNCATE TABLE", ""),
    ("GRANT", "TO"),
    ("REVOKE", "FROM"),
    ("LOCK TABLE", ""),
    ("COPY", "STDIN"),
];

/// What a lower-case statement also has, and a sentence has not.
const SIGNS: &[&str] = &["$1", " where ", " values ", " returning ", " limit ", "::", " = "];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust().filter(|(file, _)| !file.is_part("store")) {
        for (index, text) in source.strings().filter(|(_, text)| looks_like_sql(text)) {
            let words: Vec<&str> = text.split_whitespace().take(4).collect();
            let what = format!("SQL outside the store: \"{} …\"", words.join(" "));
            findings.push(SQL_PLACE.at(&file.path, source.line(index), &words.join(" "), what));
        }
    }
}

pub fn looks_like_sql(text: &str) -> bool {
    // The shortest statement has a dozen characters; most strings in a program are shorter or a single word.
    if text.len() < 8 || !text.contains(' ') {
        return false;
    }
    if text.trim_start().starts_with("SELECT ") || PHRASES.iter().any(|phrase| has_phrase(text, *phrase)) {
        return true;
    }
    let starts_lower = text.trim_start().starts_with(|c: char| c.is_ascii_lowercase());
    let lower_phrase = |(start, then): &(&str, &str)| {
        text.trim_start().to_uppercase().starts_with(&format!("{start} "))
            && has_phrase(&text.to_uppercase(), (start, then))
    };
    starts_lower && SIGNS.iter().any(|sign| text.contains(sign)) && PHRASES.iter().any(lower_phrase)
}

fn has_phrase(text: &str, (start, then): (&str, &str)) -> bool {
    find_word(text, start).is_some_and(|rest| then.is_empty() || find_word(rest, then).is_some())
}

/// What follows the phrase where it stands as whole words; a phrase at the very end starts no statement.
fn find_word<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    text.match_indices(phrase).find_map(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        let apart = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        (apart && after.starts_with([' ', '\n', '\\'])).then_some(after)
    })
}

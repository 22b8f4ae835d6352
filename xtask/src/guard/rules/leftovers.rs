//! Nothing half-done and nothing hidden: no unfinished code, no ignored tests, no unsafe code where it is not argued.
//!
//! What is left to do is an issue, with an owner; a note in the code has neither. An ignored test is a green light
//! that is not connected.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::{File, Project};

pub const FAMILY: Family = Family { bans: &[&UNSAFE, &IGNORED_TEST, &UNFINISHED], check };

static UNSAFE: Ban = Ban::new(
    "unsafe",
    "unsafe code must be so rare that every line of it is reviewed by someone who knows why it is there",
    "find a crate that wraps the call (rustix, nix); a crate that must use it is listed in architecture.toml with its reason",
);

static IGNORED_TEST: Ban = Ban::absolute(
    "ignored-test",
    "a test that does not run proves nothing and looks as if it did",
    "repair it or delete it; a slow one gets a lane of its own that reports when it was not run",
);

static UNFINISHED: Ban = Ban::new(
    "unfinished",
    "a note in the code has no owner and no date, and code behind `todo!` fails in front of a user",
    "finish it, or open an issue and leave the code complete for what it does today",
);

const MACROS: &[&str] = &["todo", "unimplemented"];
const MARKS: &[&str] = &["TODO", "FIXME"];

/// Other texts that hold code or configuration. Prose may talk about such notes.
const CODE_ENDINGS: &[&str] =
    &[".sql", ".sh", ".toml", ".yml", ".yaml", ".ts", ".tsx", ".py", ".go", ".css", "Makefile", ".ci/run"];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust() {
        for index in source.find_all(&["unsafe"]) {
            findings.push(UNSAFE.at(&file.path, source.line(index), "unsafe", "unsafe code"));
        }
        for index in source.find_all(&["#", "[", "ignore"]) {
            findings.push(IGNORED_TEST.at(&file.path, source.line(index), "ignore", "an ignored test"));
        }
        for name in MACROS {
            for index in source.find_all(&[name, "!"]) {
                findings.push(UNFINISHED.at(&file.path, source.line(index), name, format!("{name}!")));
            }
        }
        for comment in &source.comments {
            check_note(file, comment.line, source.comment_text(comment), findings);
        }
    }
    for file in
        project.files.iter().filter(|file| CODE_ENDINGS.iter().any(|ending| file.path.ends_with(ending)))
    {
        check_note(file, 1, &file.text, findings);
    }
}

fn check_note(file: &File, first_line: usize, text: &str, findings: &mut Vec<Finding>) {
    for mark in MARKS.iter().filter(|mark| text.contains(**mark)) {
        for (offset, line) in text.lines().enumerate() {
            let is_letter = |c: char| c.is_alphanumeric() || c == '_';
            let as_word = line.match_indices(mark).any(|(at, _)| {
                !line[..at].ends_with(is_letter) && !line[at + mark.len()..].starts_with(is_letter)
            });
            if as_word {
                findings.push(UNFINISHED.at(&file.path, first_line + offset, mark, format!("a {mark} note")));
            }
        }
    }
}

//! What the program says goes through `tracing`, and never holds a secret.
//!
//! A printed line has no level, no correlation id and no destination an operator can choose. A logged secret is in
//! every log store from then on. `types::Secret` prints as `***`, but a plain string of that name would not, so the
//! names themselves are refused as fields.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::{File, Project};
use crate::guard::rust::{Kind, RustSource};

pub const FAMILY: Family = Family { bans: &[&PRINT, &SECRET_LOGGED], check };

static PRINT: Ban = Ban::new(
    "print",
    "a printed line has no level, no correlation id and no destination an operator can choose",
    "use a `tracing` event with fields; a command line tool that talks to a terminal is an exception in architecture.toml",
);

static SECRET_LOGGED: Ban = Ban::absolute(
    "secret-logged",
    "a log line lives longer and travels further than the secret in it may",
    "log the id of the secret, or leave the field out",
);

const PRINTERS: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];
const TRACERS: &[&str] = &[
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "event",
    "span",
    "trace_span",
    "debug_span",
    "info_span",
    "warn_span",
    "error_span",
];
const SECRETS: &[&str] = &["secret", "password", "token"];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust() {
        for name in PRINTERS {
            for index in source.find(&[name, "!"]) {
                findings.push(PRINT.at(&file.path, source.line(index), name, format!("call of {name}!")));
            }
        }
        for name in TRACERS {
            for index in source.find(&[name, "!"]) {
                check_fields(file, source, index + 2, findings);
            }
        }
        for index in source.find(&["instrument", "("]) {
            let close = source.closing(index + 1);
            let fields = (index..close).find(|at| source.reads(*at, &["fields", "("]));
            if let Some(fields) = fields {
                check_fields(file, source, fields + 1, findings);
            }
        }
    }
}

/// Fields stand directly inside the macro's brackets: `name = …`, `%name`, `?name`, `name,`; also `{name}` in its text.
fn check_fields(file: &File, source: &RustSource, open: usize, findings: &mut Vec<Finding>) {
    let close = source.closing(open);
    let mut index = open + 1;
    while index < close {
        let mut names: Vec<&str> = Vec::new();
        match source.tokens[index].kind {
            Kind::Text => names.extend(placeholders(source.text(index))),
            Kind::Word if ["=", ",", ")"].contains(&source.text(index + 1)) => names.push(source.text(index)),
            _ if ["(", "[", "{"].contains(&source.text(index)) => index = source.closing(index),
            _ => {}
        }
        for name in names.into_iter().filter(|name| is_secret(name)) {
            findings.push(SECRET_LOGGED.at(
                &file.path,
                source.line(index),
                name,
                format!("field {name} in a log line"),
            ));
        }
        index += 1;
    }
}

/// `{name}` and `{name:?}`.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}'))
        .map(|(inside, _)| inside.split(':').next().unwrap_or(inside))
}

/// `join_token` is one; `token_count` and `secret_id` are not.
fn is_secret(name: &str) -> bool {
    name.ends_with("api_key") || name.rsplit('_').next().is_some_and(|last| SECRETS.contains(&last))
}

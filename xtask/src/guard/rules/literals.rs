//! Limits, rates and retentions are settings, not literals.
//!
//! An operator who has to rebuild the product to allow a longer timeout will fork it. A number that is truly fixed (by
//! a wire format, a standard, a law of arithmetic) says so beside it: `// fixed: <reason>`.
//!
//! A heuristic: `Duration::from_…(<number>)`, and integer constants with a limiting word in their name. A number given
//! straight to a function is not seen.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;
use crate::guard::rust::{Kind, RustSource};

pub const FAMILY: Family = Family { bans: &[&LIMIT_LITERAL, &FIXED_REASON], check };

static LIMIT_LITERAL: Ban = Ban::new(
    "limit-literal",
    "whoever runs the product must be able to change a limit without building it",
    "make it a typed setting in settings.rs, or say why it can never differ: `// fixed: <reason>` on or above the line",
);

static FIXED_REASON: Ban = Ban::absolute(
    "fixed-reason",
    "`fixed` without a reason is a limit nobody has thought about",
    "write what fixes the number: the wire format, the standard, the arithmetic",
);

const MARK: &str = "// fixed:";
const INTEGERS: &[&str] =
    &["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize"];
const LIMITING: &[&str] =
    &["LIMIT", "MAX", "MIN", "RATE", "PERCENT", "TIMEOUT", "RETENTION", "INTERVAL", "TTL"];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust().filter(|(file, _)| !file.is_part("settings")) {
        let lines: Vec<&str> = file.text.lines().collect();
        let mut found = durations(source);
        found.extend(constants(source));
        for (line, item) in found {
            if !has_mark(&lines, line) {
                let what = format!("{item} is fixed in the code");
                findings.push(LIMIT_LITERAL.at(&file.path, line, &item, what));
            }
        }
        for comment in &source.comments {
            let reason = source.comment_text(comment).strip_prefix(MARK);
            if reason.is_some_and(|reason| reason.split_whitespace().count() < 2) {
                findings.push(FIXED_REASON.at(&file.path, comment.line, MARK, "`fixed` without a reason"));
            }
        }
    }
}

/// `Duration::from_…(<number>)`.
fn durations(source: &RustSource) -> Vec<(usize, String)> {
    let is_literal = |index: &usize| {
        source.text(index + 2).starts_with("from_")
            && source.text(index + 3) == "("
            && source.tokens.get(index + 4).is_some_and(|token| token.kind == Kind::Number)
            && source.text(index + 5) == ")"
    };
    let found = source.find(&["Duration", "::"]).into_iter().filter(is_literal);
    found
        .map(|index| {
            let item = format!("Duration::{}({})", source.text(index + 2), source.text(index + 4));
            (source.line(index), item)
        })
        .collect()
}

/// `const NAME: <integer>` and `static NAME: <integer>` with a limiting word in the name.
fn constants(source: &RustSource) -> Vec<(usize, String)> {
    let starts = ["const", "static"].into_iter().flat_map(|keyword| source.find(&[keyword]));
    let is_limit = |index: &usize| {
        source.text(index + 2) == ":"
            && INTEGERS.contains(&source.text(index + 3))
            && source.text(index + 1).split('_').any(|word| LIMITING.contains(&word))
    };
    starts.filter(is_limit).map(|index| (source.line(index), source.text(index + 1).to_owned())).collect()
}

/// The mark stands on the line, or in the comments and attributes right above it.
fn has_mark(lines: &[&str], line: usize) -> bool {
    let own = lines.get(line - 1).is_some_and(|text| text.contains(MARK));
    let above = lines.iter().take(line - 1).rev().map(|text| text.trim_start());
    own || above
        .take_while(|text| text.starts_with("//") || text.starts_with('#'))
        .any(|text| text.starts_with(MARK))
}

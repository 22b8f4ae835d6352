//! The error catalogue: each code declared once, spelt in snake case, with a page of its own in `docs/errors/`.
//!
//! A code is a promise to programs (never renamed) and its page a promise to people (what happened, why, what to do).
//! The server links every problem it sends to that page, so a missing page is a broken link in a bad moment.

use std::collections::BTreeMap;

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;
use crate::guard::rust::Kind;

pub const FAMILY: Family = Family { bans: &[&ERROR_CODE, &ERROR_PAGE], check };

static ERROR_CODE: Ban = Ban::absolute(
    "error-code",
    "programs match on the code: two meanings under one code, or two spellings, break them",
    "declare one static with a snake_case code that no other crate uses, and share it",
);

static ERROR_PAGE: Ban = Ban::new(
    "error-page",
    "every problem we send links to its page; whoever follows the link has something broken in front of them",
    "write docs/errors/<code>.md (what happened, why, what to do next), or delete the page of a code that is gone",
);

const PAGES: &str = "docs/errors/";

fn check(project: &Project, findings: &mut Vec<Finding>) {
    let mut declared: BTreeMap<String, String> = BTreeMap::new();
    for (file, source) in project.rust() {
        for index in source.find(&["ErrorCode", "::", "new", "("]) {
            let Some(token) = source.tokens.get(index + 4).filter(|token| token.kind == Kind::Text) else {
                continue;
            };
            let (code, line) = (source.text(index + 4).trim_matches('"').to_owned(), token.line);
            let mut report =
                |ban: &'static Ban, what: String| findings.push(ban.at(&file.path, line, &code, what));
            if !is_snake_case(&code) {
                report(&ERROR_CODE, format!("code {code} is not in snake case"));
            }
            if let Some(first) = declared.get(&code) {
                report(&ERROR_CODE, format!("code {code} is declared in {first} too"));
                continue;
            }
            if project.file(&format!("{PAGES}{code}.md")).is_none() {
                report(&ERROR_PAGE, format!("code {code} has no page"));
            }
            declared.insert(code, file.path.clone());
        }
    }
    for file in &project.files {
        let page = file.path.strip_prefix(PAGES).and_then(|name| name.strip_suffix(".md"));
        if let Some(code) = page.filter(|code| *code != "README" && !declared.contains_key(*code)) {
            findings.push(ERROR_PAGE.at(
                &file.path,
                1,
                code,
                format!("page of {code}, which no crate declares"),
            ));
        }
    }
}

fn is_snake_case(code: &str) -> bool {
    code.starts_with(|c: char| c.is_ascii_lowercase())
        && code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !code.ends_with('_')
        && !code.contains("__")
}

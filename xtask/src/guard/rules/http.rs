//! The HTTP framework stays at the edge: `kernel/web`, `server` and each domain's `http.rs`.
//!
//! Domain functions that know requests and responses cannot be called by a flow, a test or another domain, and a
//! framework that is everywhere cannot be upgraded.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;
use crate::guard::rust::RustSource;

pub const FAMILY: Family = Family { bans: &[&HTTP_FRAMEWORK], check };

static HTTP_FRAMEWORK: Ban = Ban::new(
    "http-framework",
    "a domain function that knows HTTP cannot be called by a flow, a test or another domain",
    "take and return the domain's own types; translate in http.rs with what kernel/web offers",
);

const CRATES: &[&str] = &[
    "axum",
    "hyper",
    "hyper_util",
    "tower",
    "tower_http",
    "tower_service",
    "http",
    "http_body",
    "http_body_util",
];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust().filter(|(file, _)| !file.is_part("http")) {
        for name in CRATES {
            // `mod http;` makes `http::…` a module of ours in that file.
            if !source.find_all(&["mod", name]).is_empty() {
                continue;
            }
            // Once a file is enough: what has to move is the whole use of the framework.
            if let Some(index) = source.find(&[name]).into_iter().find(|index| is_crate(source, *index)) {
                findings.push(HTTP_FRAMEWORK.at(
                    &file.path,
                    source.line(index),
                    name,
                    format!("use of {name}"),
                ));
            }
        }
    }
}

/// Does this word name the crate, as in `axum::…`, `use axum;` and `use ::axum as …`?
fn is_crate(source: &RustSource, index: usize) -> bool {
    let before = |distance: usize| index.checked_sub(distance).map_or("", |at| source.text(at));
    let imported = before(1) == "use" || before(1) == "::" && before(2) == "use";
    match source.text(index + 1) {
        "::" => source.starts_path(index),
        ";" | "as" => imported,
        _ => false,
    }
}

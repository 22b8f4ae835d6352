//! An event's name is spelt only in the `events.rs` of the domain that owns it.
//!
//! Consumers use the owner's constant, so that renaming an event is a compile error in every consumer and the list of
//! a domain's events is one file long.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;

pub const FAMILY: Family = Family { bans: &[&EVENT_OWNER], check };

static EVENT_OWNER: Ban = Ban::new(
    "event-owner",
    "an event belongs to the domain that knows when it is true; a second spelling drifts",
    "declare it in the owner's events.rs and use its constant; the domain's prefix is in architecture.toml",
);

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust() {
        let prefix =
            project.architecture.domain_of(&file.path).and_then(|(_, domain)| domain.events.as_deref());
        for (index, text) in source.strings().filter(|(_, text)| is_event(text)) {
            let owned = prefix.is_some_and(|prefix| text.starts_with(&format!("{prefix}.")));
            let fault = match (owned, file.is_part("events")) {
                (true, true) => continue,
                (true, false) => "is spelt outside of events.rs",
                (false, _) => "belongs to another domain",
            };
            findings.push(EVENT_OWNER.at(
                &file.path,
                source.line(index),
                text,
                format!("event {text} {fault}"),
            ));
        }
    }
}

/// `gpuaas.<domain>.<…>`, at least three parts, all of them plain words.
fn is_event(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_plain =
        |part: &&str| part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    parts.first() == Some(&"gpuaas")
        && parts.len() >= 3
        && parts.iter().all(|part| !part.is_empty())
        && parts.iter().all(is_plain)
}

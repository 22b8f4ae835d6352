//! What is checked in must be what the code says.
#![allow(clippy::unwrap_used)]

mod registered;
mod released;
mod schema;

use std::collections::BTreeSet;
use std::path::Path;

use crate::{contracts, error_pages};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[test]
fn the_contracts_are_what_the_code_says() {
    for (name, text) in contracts::files(&contracts::described().unwrap()).unwrap() {
        let kept = std::fs::read_to_string(root().join("contracts").join(name)).unwrap_or_default();
        assert!(
            kept == text,
            "contracts/{name} has drifted from the code: run `make contracts` and review the difference"
        );
    }
}

#[test]
fn every_error_code_has_its_page_and_every_page_its_code() {
    let app = contracts::described().unwrap();
    let codes: BTreeSet<&str> = app.errors().iter().map(|code| code.code).collect();
    let pages: BTreeSet<&str> = error_pages::PAGES.iter().map(|page| page.code).collect();
    assert_eq!(codes, pages);
    for page in error_pages::PAGES {
        for part in ["**What happened.**", "**Why.**", "**What to do.**"] {
            assert!(page.markdown.contains(part), "docs/errors/{}.md lacks {part}", page.code);
        }
    }
}

#[test]
fn every_declaration_is_complete_and_unique() {
    let app = contracts::described().unwrap();
    let actions: BTreeSet<&str> = app.actions().iter().map(|action| action.name).collect();
    let catalogue: BTreeSet<&str> = app.errors().iter().map(|code| code.code).collect();
    let mut ids = BTreeSet::new();
    for endpoint in app.endpoints() {
        let info = endpoint.info;
        assert!(ids.insert(info.id), "{} is declared twice", info.id);
        assert!(
            !info.summary.is_empty() && !info.description.is_empty(),
            "{} does not say what it does",
            info.id
        );
        assert!(
            info.body_schema.is_none() || info.example.is_some(),
            "{} shows no example of its body",
            info.id
        );
        assert!(app.tags().iter().any(|(name, _)| *name == info.tag), "{} has an undescribed tag", info.id);
        if let Some(permission) = info.permission {
            assert!(actions.contains(permission.name), "{} asks for an unregistered action", info.id);
        }
        for code in &info.errors {
            assert!(catalogue.contains(code.code), "{} answers with an uncatalogued code", info.id);
        }
    }
    let keys: Vec<&str> = app.settings_reference().iter().map(|setting| setting.key).collect();
    assert_eq!(keys.len(), keys.iter().collect::<BTreeSet<_>>().len(), "a setting is declared twice");
}

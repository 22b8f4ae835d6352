//! What is checked in must be what the code says.
#![allow(clippy::unwrap_used)]

mod registered;
mod released;
mod schema;

use std::collections::BTreeSet;
use std::path::Path;

use clap::{CommandFactory as _, Parser as _};

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

/// The commands people type, not those that only hold others.
fn commands(command: &clap::Command) -> Vec<clap::Command> {
    let inner: Vec<_> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
    match inner.is_empty() {
        true => vec![command.clone()],
        false => inner.into_iter().flat_map(commands).collect(),
    }
}

#[test]
fn every_command_explains_itself_with_examples_that_work() {
    let all = commands(&crate::Arguments::command());
    assert!(all.len() > 10, "commands are missing here");
    for mut command in all {
        let help = command.render_long_help().to_string();
        let examples: Vec<&str> =
            help.lines().filter_map(|line| line.split_once("gpuaasd ")).map(|(_, rest)| rest).collect();
        let examples = examples.iter().filter(|text| text.split(' ').any(|word| word == command.get_name()));
        let mut shown = 0;
        for example in examples.filter(|text| !text.contains('`')) {
            let words = example.split('|').next().unwrap().split_whitespace();
            let read = crate::Arguments::try_parse_from(std::iter::once("gpuaasd").chain(words));
            let missing_url = |error: &clap::Error| error.to_string().contains("--admin-url");
            assert!(read.as_ref().err().is_none_or(missing_url), "{example}: {}", read.err().unwrap());
            shown += 1;
        }
        assert!(shown > 0, "no example in:\n{help}");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{} is not explained in:\n{help}", argument.get_id());
        }
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
fn every_operation_is_allowed_to_somebody() {
    let matrix = crate::assemble::decider().unwrap().matrix();
    for endpoint in contracts::described().unwrap().endpoints() {
        let Some(permission) = endpoint.info.permission else { continue };
        assert!(
            matrix
                .iter()
                .any(|row| row.action.name == permission.name && (row.anyone || !row.roles.is_empty())),
            "nobody may do {}, which {} asks for: add it to its domain's policy.cedar (docs/checklists/domain.md)",
            permission.name,
            endpoint.info.id
        );
    }
}

#[test]
fn every_declaration_is_complete_and_unique() {
    let app = contracts::described().unwrap();
    let matrix = crate::assemble::decider().unwrap().matrix();
    let actions: BTreeSet<&str> = matrix.iter().map(|row| row.action.name).collect();
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

#[test]
fn every_policy_fits_the_schema() {
    crate::assemble::decider().unwrap().check().unwrap();
}

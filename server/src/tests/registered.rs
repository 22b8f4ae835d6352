//! What is declared in the code is listed in the contracts: a setting or an event that nobody registered works, and
//! nobody knows of it.

use std::path::{Path, PathBuf};

use super::root;

/// Layers whose crates may declare settings and events.
const LAYERS: [&str; 3] = ["kernel", "platform", "server"];

#[test]
fn every_setting_that_is_declared_is_registered() {
    let declared = declared(|text| between(text, "Setting::new("));
    assert!(declared.len() > 30, "only {} settings were found", declared.len());
    listed_in("settings.json", &declared);
}

#[test]
fn every_event_that_is_declared_is_registered() {
    let in_macros = |text: &str| between(text, "event!(");
    let by_hand = |text: &str| between(text, "const TYPE: &'static str =");
    let mut declared = declared(in_macros);
    declared.extend(self::declared(by_hand));
    declared.retain(|(_, name)| name.starts_with("gpuaas."));
    assert!(declared.len() > 10, "only {} events were found", declared.len());
    listed_in("asyncapi.json", &declared);
}

fn listed_in(contract: &str, declared: &[(PathBuf, String)]) {
    let text = std::fs::read_to_string(root().join("contracts").join(contract)).unwrap();
    for (path, name) in declared {
        let place = path.strip_prefix(root()).unwrap().display();
        assert!(
            text.contains(&format!("\"{name}\"")),
            "{place} declares {name}, which is not in contracts/{contract}: register it where its domain lists its own"
        );
    }
}

/// What `find` finds in the product's own sources, with the file. Tests and what serves them are left out.
fn declared(find: impl Fn(&str) -> Vec<String>) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for layer in LAYERS {
        collect(&root().join(layer), &mut files);
    }
    let found = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        find(&text).into_iter().map(|name| (path.clone(), name)).collect::<Vec<_>>()
    };
    files.iter().flat_map(found).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "testkit", "benches", "examples"].contains(&name.as_str()) {
            collect(&path, files);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}

/// The string literals that follow a word, each the first one after it. Comments do not count.
fn between(text: &str, word: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let after_word = code.split(word).skip(1);
    after_word.filter_map(|rest| rest.split('"').nth(1)).map(str::to_owned).collect()
}

//! What must not compile, does not; and for the reason given, not for a slip in the example.
//!
//! Each example is the sound one with one change, given straight to rustc with the library this test was linked with.
//! Not by trybuild: it would build every dependency anew in a workspace of its own, minutes for what takes half a
//! second. Not by doctests: on a stable compiler they pass for any error at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use testkit::Scratch;

/// A change as a domain makes it; `PERMIT`, `BODY` and `AFTER` are what the examples replace.
const SOUND: &str = "
#![allow(unused)]
use testkit::{authz::{Context, Permit}, db::Db, toy::{self, ThingCreate}, types::Result};
pub async fn example(db: &Db, context: &Context, permit: Permit<ThingCreate>) -> Result<()> {
    db.change(context, PERMIT, async |tx| {
        let thing = toy::insert(tx, toy::org(1), \"a\").await?;
        BODY
    }).await?;
    AFTER
    Ok(())
}";

/// What is wrong, the replacement, and the compiler's error.
const UNSOUND: [(&str, &str, &str, &str); 8] = [
    ("a write without a permit", "PERMIT", "()", "E0308"),
    (
        "a permit made by hand",
        "PERMIT",
        "Permit::<ThingCreate> { resource: toy::resource(toy::org(1)), share: testkit::authz::Scope::Platform, policy_version: 1, action: std::marker::PhantomData }",
        "E0451",
    ),
    ("a permit used twice", "AFTER", "db.read(&permit);", "E0382"),
    ("a copied permit", "PERMIT", "permit.clone()", "E0599"),
    ("a commit without a record", "BODY", "Ok(())", "E0308"),
    ("a record made by hand", "BODY", "Ok(testkit::db::Recorded { value: () })", "E0451"),
    ("a commit of one's own", "BODY", "tx.commit().await?; Ok(tx.record(toy::created(&thing)))", "E0599"),
    (
        "bookkeeping from inside a change",
        "BODY",
        "tx.bookkeeping(&[]).await?; Ok(tx.record(toy::created(&thing)))",
        "E0599",
    ),
];

#[test]
fn a_write_needs_a_permit_and_a_commit_needs_a_record() {
    let scratch = Scratch::new("compile-fail");
    let library = libraries()
        .into_iter()
        .find(|library| compile(scratch.path(), "sound", &example("", ""), library).is_ok())
        .expect("the sound example compiles with one of the libraries beside this test");
    std::thread::scope(|scope| {
        for (number, (what, place, replacement, code)) in UNSOUND.into_iter().enumerate() {
            let (library, directory) = (&library, scratch.path());
            scope.spawn(move || {
                let source = example(place, replacement);
                let said = compile(directory, &format!("unsound{number}"), &source, library)
                    .expect_err(&format!("{what} compiles"));
                assert!(said.contains(&format!("error[{code}]")), "{what}: expected {code}, got\n{said}");
            });
        }
    });
}

fn example(place: &str, replacement: &str) -> String {
    let replaced = if place.is_empty() { SOUND.to_owned() } else { SOUND.replace(place, replacement) };
    replaced
        .replace("PERMIT", "permit")
        .replace("BODY", "Ok(tx.record(toy::created(&thing)))")
        .replace("AFTER", "")
}

/// Every build of testkit beside this test, newest first: an older one may lie there still.
fn libraries() -> Vec<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let entries = fs::read_dir(test.parent().unwrap()).unwrap().flatten();
    let mut found: Vec<(SystemTime, PathBuf)> = entries
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("libtestkit-") && name.ends_with(".rlib")
        })
        .map(|entry| (entry.metadata().unwrap().modified().unwrap(), entry.path()))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

fn compile(directory: &Path, name: &str, source: &str, library: &Path) -> Result<(), String> {
    let file = directory.join(format!("{name}.rs"));
    fs::write(&file, source).unwrap();
    let output = Command::new("rustc")
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--crate-name=example", "--out-dir"])
        .arg(directory)
        .arg("--extern")
        .arg(format!("testkit={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", library.parent().unwrap().display()))
        .arg(&file)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("run rustc");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

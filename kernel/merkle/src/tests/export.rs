//! The export writer: complete or absent, and nothing refused that a verifier should see.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::fixture::{Scratch, checkpoint_over, entry, log_key};
use crate::export::{ENTRIES_FILE, ExportError, ExportWriter, LINE_BYTES_MAX};
use crate::tree::leaf_hash;
use crate::verify::{Finding, Outside, verify_export};

#[test]
fn an_export_appears_whole_or_not_at_all() {
    let home = Scratch::new();
    let target = home.0.join("export");
    let mut writer = ExportWriter::create(&target).unwrap();
    writer.entry(&entry(0), &leaf_hash(&entry(0))).unwrap();
    assert!(!target.exists());
    drop(writer);
    assert_eq!(fs::read_dir(&home.0).unwrap().count(), 0, "an abandoned export leaves nothing");

    let mut writer = ExportWriter::create(&target).unwrap();
    writer.entry(&entry(0), &leaf_hash(&entry(0))).unwrap();
    writer.finish(&checkpoint_over(&[entry(0)], &log_key()), log_key().verifier()).unwrap();
    assert_eq!(fs::read_dir(&home.0).unwrap().count(), 1);
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(verify_export(&target, &Outside::default()).unwrap().is_clean());
}

#[test]
fn an_occupied_place_is_refused_and_an_empty_one_used() {
    let home = Scratch::new();
    let target = home.0.join("export");
    fs::create_dir(&target).unwrap();
    let writer = ExportWriter::create(&target).unwrap();
    // Two at once, or the leftover of a killed one, do not get in each other's way.
    let second = ExportWriter::create(&target).unwrap();
    writer.finish(&checkpoint_over(&[], &log_key()), log_key().verifier()).unwrap();
    let late = second.finish(&checkpoint_over(&[], &log_key()), log_key().verifier());
    assert!(matches!(late, Err(ExportError::Write { .. })));
    assert!(matches!(ExportWriter::create(&target), Err(ExportError::Occupied(_))));
    assert!(matches!(ExportWriter::create(&target.join(ENTRIES_FILE)), Err(ExportError::Occupied(_))));
    assert_eq!(fs::read_dir(&home.0).unwrap().count(), 1);
}

#[test]
fn only_what_breaks_the_format_is_refused() {
    let home = Scratch::new();
    let target = home.0.join("export");
    let mut writer = ExportWriter::create(&target).unwrap();
    let leaf = leaf_hash(&entry(0));
    assert!(matches!(writer.entry(b"a\nb", &leaf), Err(ExportError::LineBreak(0))));
    let long = vec![b'x'; LINE_BYTES_MAX + 1];
    assert!(matches!(writer.entry(&long, &leaf), Err(ExportError::TooLong { index: 0, .. })));
    // A row that was changed in the database is exported as it is: the verifier must get to see it.
    writer.entry(b"changed", &leaf).unwrap();
    writer.finish(&checkpoint_over(&[entry(0)], &log_key()), log_key().verifier()).unwrap();
    let report = verify_export(&target, &Outside::default()).unwrap();
    assert_eq!(report.problem, Some(Finding::Altered { index: 0, id: None }));
}

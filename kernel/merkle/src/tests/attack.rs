//! Attacks on an export, and what the verifier must say about each.
//!
//! The honest export has twelve entries and earlier seals at four and eight.

use std::fs;

use proptest::prelude::*;

use super::fixture::{Export, Scratch, With, checkpoint_over, entry, false_key, log_key, renumber};
use crate::checkpoint::Checkpoint;
use crate::export::{CHECKPOINT_FILE, CHECKPOINTS_FILE, ENTRIES_FILE, KEY_FILE, LEAVES_FILE, LINE_BYTES_MAX};
use crate::note::SignerKey;
use crate::verify::{Anchor, Damage, EntryId, Finding, Outside, VerifyError, verify_export};

const SIZE: u64 = 12;

fn honest() -> Export {
    Export::honest(SIZE, &[4, 8])
}

fn id(index: u64) -> Option<EntryId> {
    EntryId::of(&entry(index))
}

/// One attack: what is done, with what the verifier comes, what it must find first, and what it still vouches for.
struct Attack {
    name: &'static str,
    tamper: fn(&Export),
    with: With,
    finding: Finding,
    intact: u64,
}

fn check(attacks: Vec<Attack>) {
    for Attack { name, tamper, with, finding, intact } in attacks {
        let export = honest();
        assert!(export.verify(with).is_clean(), "{name}: before");
        tamper(&export);
        let report = export.verify(with);
        assert_eq!(report.problem, Some(finding), "{name}\n{report}");
        assert_eq!(report.intact, intact, "{name}\n{report}");
    }
}

const FORGED: &[u8] = br#"{"index":5,"id":"aud_forged","action":"nothing happened"}"#;

fn forged_id() -> Option<EntryId> {
    EntryId::of(FORGED)
}

#[test]
fn only_the_entries_are_changed() {
    check(vec![
        Attack {
            name: "one entry is rewritten",
            tamper: |export| export.edit_lines(|lines| lines[5] = FORGED.to_vec()),
            with: With::Key,
            finding: Finding::Altered { index: 5, id: forged_id() },
            intact: 5,
        },
        Attack {
            name: "two entries are rewritten",
            tamper: |export| {
                export.edit_lines(|lines| {
                    lines[9].push(b' ');
                    lines[2].push(b' ');
                });
            },
            with: With::Key,
            finding: Finding::Altered { index: 2, id: id(2) },
            intact: 2,
        },
        Attack {
            name: "an entry becomes bytes that are not text",
            tamper: |export| export.edit_lines(|lines| lines[3] = vec![0xff, 0xfe, 0x00]),
            with: With::Key,
            finding: Finding::Altered { index: 3, id: None },
            intact: 3,
        },
        Attack {
            name: "only the number is changed",
            tamper: |export| {
                export.edit_lines(|lines| {
                    lines[5] = lines[5].iter().map(|b| if *b == b'5' { b'6' } else { *b }).collect()
                });
            },
            with: With::Key,
            finding: Finding::Altered { index: 5, id: id(6) },
            intact: 5,
        },
        Attack {
            name: "the last line is cut in the middle",
            tamper: |export| export.edit_lines(|lines| lines[11].truncate(20)),
            with: With::Key,
            finding: Finding::Altered { index: 11, id: None },
            intact: 11,
        },
        Attack {
            name: "line ends are converted",
            tamper: |export| export.edit_lines(|lines| lines.iter_mut().for_each(|line| line.push(b'\r'))),
            with: With::Key,
            finding: Finding::LineEnding { index: 0 },
            intact: 0,
        },
        Attack {
            name: "a line without end",
            tamper: |export| export.edit_lines(|lines| lines[6] = vec![b'x'; 10 * LINE_BYTES_MAX]),
            with: With::Key,
            finding: Finding::Oversized { index: 6 },
            intact: 6,
        },
        Attack {
            name: "a line just too long",
            tamper: |export| export.edit_lines(|lines| lines[6] = vec![b'x'; LINE_BYTES_MAX + 1]),
            with: With::Key,
            finding: Finding::Oversized { index: 6 },
            intact: 6,
        },
        Attack {
            name: "a line without end behind the last",
            tamper: |export| export.edit_lines(|lines| lines.push(vec![b'x'; 10 * LINE_BYTES_MAX])),
            with: With::Key,
            finding: Finding::Oversized { index: 12 },
            intact: 12,
        },
    ]);
}

#[test]
fn entries_are_removed_added_or_moved() {
    check(vec![
        Attack {
            name: "one is removed",
            tamper: |export| export.edit_lines(|lines| drop(lines.remove(5))),
            with: With::Key,
            finding: Finding::Removed { index: 5, instead: 6 },
            intact: 5,
        },
        Attack {
            name: "the first is removed and the rest renumbered",
            tamper: |export| {
                export.edit_lines(|lines| {
                    lines.remove(0);
                    renumber(lines);
                });
            },
            with: With::Key,
            finding: Finding::Removed { index: 0, instead: 1 },
            intact: 0,
        },
        Attack {
            name: "three are removed, the rest renumbered, and the count made up at the end",
            tamper: |export| {
                export.edit_lines(|lines| {
                    lines.drain(5..8);
                    lines.extend([entry(9), entry(10), entry(11)]);
                    renumber(lines);
                });
            },
            with: With::Key,
            finding: Finding::Removed { index: 5, instead: 8 },
            intact: 5,
        },
        Attack {
            name: "one is inserted",
            tamper: |export| export.edit_lines(|lines| lines.insert(5, FORGED.to_vec())),
            with: With::Key,
            finding: Finding::Inserted { index: 5, id: forged_id(), copy_of: None },
            intact: 5,
        },
        Attack {
            name: "one is inserted and the rest renumbered",
            tamper: |export| {
                export.edit_lines(|lines| {
                    lines.insert(5, FORGED.to_vec());
                    renumber(lines);
                });
            },
            with: With::Key,
            finding: Finding::Inserted { index: 5, id: forged_id(), copy_of: None },
            intact: 5,
        },
        Attack {
            name: "one is repeated",
            tamper: |export| export.edit_lines(|lines| lines.insert(6, entry(5))),
            with: With::Key,
            finding: Finding::Inserted { index: 6, id: id(5), copy_of: Some(5) },
            intact: 6,
        },
        Attack {
            name: "a later one is repeated earlier",
            tamper: |export| export.edit_lines(|lines| lines.insert(2, entry(9))),
            with: With::Key,
            finding: Finding::Inserted { index: 2, id: id(9), copy_of: Some(9) },
            intact: 2,
        },
        Attack {
            name: "two neighbours are swapped",
            tamper: |export| export.edit_lines(|lines| lines.swap(5, 6)),
            with: With::Key,
            finding: Finding::Reordered { index: 5, line: 6, instead: 6 },
            intact: 5,
        },
        Attack {
            name: "two are swapped and renumbered",
            tamper: |export| {
                export.edit_lines(|lines| {
                    lines.swap(2, 9);
                    renumber(lines);
                });
            },
            with: With::Key,
            finding: Finding::Reordered { index: 2, line: 9, instead: 9 },
            intact: 2,
        },
        Attack {
            name: "one is added at the end",
            tamper: |export| export.edit_lines(|lines| lines.push(entry(12))),
            with: With::Key,
            finding: Finding::Appended { index: 12, id: id(12) },
            intact: 12,
        },
        Attack {
            name: "an empty line is added at the end",
            tamper: |export| export.edit_lines(|lines| lines.push(Vec::new())),
            with: With::Key,
            finding: Finding::Appended { index: 12, id: None },
            intact: 12,
        },
    ]);
}

#[test]
fn the_newest_entries_are_removed() {
    check(vec![
        Attack {
            name: "the last three lines",
            tamper: |export| export.edit_lines(|lines| lines.truncate(9)),
            with: With::Key,
            finding: Finding::NewestRemoved { index: 9, last: 11 },
            intact: 9,
        },
        Attack {
            name: "all lines",
            tamper: |export| export.write_lines(&[]),
            with: With::Key,
            finding: Finding::NewestRemoved { index: 0, last: 11 },
            intact: 0,
        },
        Attack {
            name: "the last lines and their leaf hashes",
            tamper: |export| {
                export.edit_lines(|lines| lines.truncate(9));
                export.refit_leaves();
            },
            with: With::Key,
            finding: Finding::NewestRemoved { index: 9, last: 11 },
            intact: 8,
        },
        Attack {
            name: "back to an older, genuine checkpoint; its successors were forgotten",
            tamper: |export| {
                export.edit_lines(|lines| lines.truncate(4));
                export.refit_leaves();
                export.write(CHECKPOINT_FILE, export.genuine_checkpoint(4).to_string());
            },
            with: With::Key,
            finding: Finding::NewestRemoved { index: 4, last: 7 },
            intact: 4,
        },
        Attack {
            name: "back to an older, genuine checkpoint, leaving no trace within the export",
            tamper: roll_back_to_8,
            with: With::Checkpoint(12),
            finding: Finding::EndsBefore { index: 8, last: 11 },
            intact: 8,
        },
        Attack {
            name: "the same, with the key too",
            tamper: roll_back_to_8,
            with: With::Both(12),
            finding: Finding::EndsBefore { index: 8, last: 11 },
            intact: 8,
        },
    ]);
}

const AGREES: &str = "agrees with the checkpoint kept elsewhere";

#[test]
fn agreement_is_claimed_only_where_it_is_shown() {
    let said = |tamper: fn(&Export), with: With| {
        let export = honest();
        tamper(&export);
        export.verify(with).to_string()
    };
    assert!(said(|_| {}, With::Both(8)).contains(AGREES));
    let by_leaves = said(|export| export.edit_lines(|lines| lines[5] = FORGED.to_vec()), With::Both(12));
    assert!(by_leaves.contains(AGREES), "the sealed leaf hashes show it: {by_leaves}");
    // Whether eight entries are the beginning of those twelve, nobody can tell.
    for with in [With::Checkpoint(12), With::Both(12)] {
        let shorter = said(roll_back_to_8, with);
        assert!(!shorter.contains(AGREES), "{shorter}");
        assert!(shorter.contains("Does not prove: that anything agrees with that checkpoint"), "{shorter}");
    }
    let another_history = said(
        |export| {
            rewrite_with(export, &log_key());
            export.edit_lines(|lines| lines.truncate(8));
            export.refit_leaves();
            export.resign(&log_key());
        },
        With::Both(12),
    );
    assert!(!another_history.contains(AGREES), "{another_history}");
    let two_histories = said(|export| rewrite_with(export, &log_key()), With::Both(8));
    assert!(!two_histories.contains(AGREES), "{two_histories}");
    assert!(two_histories.contains("Proves: the log's own key signed two histories"), "{two_histories}");
}

/// The perfect rollback: the export is exactly what an honest one was, some time ago.
fn roll_back_to_8(export: &Export) {
    export.edit_lines(|lines| lines.truncate(8));
    export.refit_leaves();
    export.write(CHECKPOINT_FILE, export.genuine_checkpoint(8).to_string());
    export.write_earlier(&[export.genuine_checkpoint(4)]);
}

#[test]
fn a_perfect_rollback_needs_an_outside_checkpoint_and_the_report_says_so() {
    let export = honest();
    roll_back_to_8(&export);
    let unanchored = export.verify(With::Nothing);
    assert_eq!((unanchored.problem.as_ref(), unanchored.anchor), (None, Anchor::None));
    let text = unanchored.to_string();
    assert!(text.starts_with("UNANCHORED") && !text.contains("as sealed"), "{text}");
    let keyed = export.verify(With::Key);
    assert!(keyed.is_clean());
    assert!(keyed.to_string().contains("Does not prove: that nothing is missing at the end"), "{keyed}");
    // A checkpoint from before the rollback's target cannot see it either, and says up to where it can.
    let early = export.verify(With::Checkpoint(8));
    assert!(early.is_clean() && early.to_string().contains("behind the first 8 entries"), "{early}");
}

#[test]
fn the_leaf_hashes_are_changed_too() {
    check(vec![
        Attack {
            name: "altered with its leaf: only the seals around it tell",
            tamper: |export| {
                export.edit_lines(|lines| lines[5] = FORGED.to_vec());
                export.refit_leaves();
            },
            with: With::Key,
            finding: Finding::Within { from: 4, to: 8 },
            intact: 4,
        },
        Attack {
            name: "altered, and the leaves made to accuse a later entry",
            tamper: |export| {
                export.edit_lines(|lines| lines[5] = FORGED.to_vec());
                export.refit_leaves();
                let mut leaves = fs::read(export.file(LEAVES_FILE)).unwrap();
                leaves[9 * 32] ^= 1;
                export.write(LEAVES_FILE, leaves);
            },
            with: With::Key,
            finding: Finding::Within { from: 4, to: 8 },
            intact: 4,
        },
        Attack {
            name: "altered, leaves and earlier seals gone",
            tamper: |export| {
                export.edit_lines(|lines| lines[5] = FORGED.to_vec());
                export.remove(LEAVES_FILE);
                export.remove(CHECKPOINTS_FILE);
            },
            with: With::Key,
            finding: Finding::Within { from: 0, to: 12 },
            intact: 0,
        },
        Attack {
            name: "removed: the numbers tell",
            tamper: |export| {
                export.edit_lines(|lines| drop(lines.remove(5)));
                export.refit_leaves();
            },
            with: With::Key,
            finding: Finding::Removed { index: 5, instead: 6 },
            intact: 4,
        },
        Attack {
            name: "swapped: the numbers tell",
            tamper: |export| {
                export.edit_lines(|lines| lines.swap(5, 6));
                export.remove(LEAVES_FILE);
            },
            with: With::Key,
            finding: Finding::Reordered { index: 5, line: 6, instead: 6 },
            intact: 4,
        },
        Attack {
            name: "repeated: the numbers tell",
            tamper: |export| {
                export.edit_lines(|lines| lines.insert(6, entry(5)));
                export.refit_leaves();
            },
            with: With::Key,
            finding: Finding::Inserted { index: 6, id: id(5), copy_of: Some(5) },
            intact: 4,
        },
        Attack {
            name: "replaced by something without a number",
            tamper: |export| {
                export.edit_lines(|lines| lines[5] = b"gone".to_vec());
                export.refit_leaves();
            },
            with: With::Key,
            finding: Finding::Altered { index: 5, id: None },
            intact: 4,
        },
    ]);
}

#[test]
fn only_the_leaf_hashes_are_changed() {
    check(vec![
        Attack {
            name: "one of them",
            tamper: |export| {
                let mut leaves = fs::read(export.file(LEAVES_FILE)).unwrap();
                leaves[7 * 32] ^= 1;
                export.write(LEAVES_FILE, leaves);
            },
            with: With::Key,
            finding: Finding::Export(Damage::Leaves { index: 7 }),
            intact: 12,
        },
        Attack {
            name: "the leaves cut within a hash",
            tamper: |export| {
                let leaves = fs::read(export.file(LEAVES_FILE)).unwrap();
                export.write(LEAVES_FILE, &leaves[..100]);
            },
            with: With::Key,
            finding: Finding::Export(Damage::Leaves { index: 3 }),
            intact: 12,
        },
        Attack {
            name: "the leaves longer",
            tamper: |export| {
                let mut leaves = fs::read(export.file(LEAVES_FILE)).unwrap();
                leaves.push(0);
                export.write(LEAVES_FILE, leaves);
            },
            with: With::Key,
            finding: Finding::Export(Damage::Leaves { index: 12 }),
            intact: 12,
        },
    ]);
}

const UNKNOWN: &str = "no signature is by the key expected";

fn unsigned() -> Finding {
    Finding::Export(Damage::CheckpointSignature { reason: UNKNOWN.to_owned() })
}

fn rewrite_with(export: &Export, key: &SignerKey) {
    export.edit_lines(|lines| lines[5] = FORGED.to_vec());
    export.refit_leaves();
    export.resign(key);
    export.write_earlier(&[4, 8].map(|size| checkpoint_over(&export.lines()[..size], key)));
    export.ship_key(key);
}

#[test]
fn everything_is_rewritten() {
    check(vec![
        Attack {
            name: "with a false key; the verifier has the true one",
            tamper: |export| rewrite_with(export, &false_key()),
            with: With::Key,
            finding: unsigned(),
            intact: 0,
        },
        Attack {
            name: "with a false key; the verifier has a checkpoint",
            tamper: |export| rewrite_with(export, &false_key()),
            with: With::Checkpoint(8),
            finding: Finding::Within { from: 0, to: 8 },
            intact: 0,
        },
        Attack {
            name: "behind the outside checkpoint, with a false key",
            tamper: |export| {
                export.edit_lines(|lines| lines[10] = FORGED.to_vec());
                export.refit_leaves();
                export.resign(&false_key());
                export.ship_key(&false_key());
            },
            with: With::Checkpoint(8),
            finding: Finding::Export(Damage::KeyReplaced),
            intact: 8,
        },
        Attack {
            name: "with the log's own key; the verifier has a checkpoint",
            tamper: |export| rewrite_with(export, &log_key()),
            with: With::Both(8),
            finding: Finding::TwoHistories { size: 8 },
            intact: 0,
        },
        Attack {
            name: "with the log's own key, but the leaves forgotten",
            tamper: |export| {
                export.edit_lines(|lines| lines[5] = FORGED.to_vec());
                export.resign(&log_key());
                export.remove(CHECKPOINTS_FILE);
            },
            with: With::Both(8),
            finding: Finding::Altered { index: 5, id: forged_id() },
            intact: 5,
        },
        Attack {
            name: "with the log's own key, but the earlier seals forgotten",
            tamper: |export| {
                export.edit_lines(|lines| lines[5] = FORGED.to_vec());
                export.refit_leaves();
                export.resign(&log_key());
            },
            with: With::Key,
            finding: Finding::TwoHistories { size: 8 },
            intact: 0,
        },
    ]);
}

#[test]
fn the_checkpoint_is_attacked() {
    check(vec![
        Attack {
            name: "missing",
            tamper: |export| export.remove(CHECKPOINT_FILE),
            with: With::Key,
            finding: Finding::Export(Damage::CheckpointMissing),
            intact: 0,
        },
        Attack {
            name: "missing, and an outside one covers a part",
            tamper: |export| export.remove(CHECKPOINT_FILE),
            with: With::Both(8),
            finding: Finding::Export(Damage::CheckpointMissing),
            intact: 8,
        },
        Attack {
            name: "empty",
            tamper: |export| export.write(CHECKPOINT_FILE, ""),
            with: With::Key,
            finding: Finding::Export(Damage::CheckpointGarbage {
                reason:
                    "a signed note is a text, an empty line, and signature lines, each ended by a newline"
                        .to_owned(),
            }),
            intact: 0,
        },
        Attack {
            name: "huge",
            tamper: |export| export.write(CHECKPOINT_FILE, vec![b'x'; 1 << 20]),
            with: With::Key,
            finding: Finding::Export(Damage::CheckpointGarbage {
                reason: "a signed note has at most 262144 bytes".to_owned(),
            }),
            intact: 0,
        },
        Attack {
            name: "its size is changed",
            tamper: |export| {
                let note = export.genuine_checkpoint(12).to_string().replacen("\n12\n", "\n11\n", 1);
                export.write(CHECKPOINT_FILE, note);
            },
            with: With::Key,
            finding: Finding::Export(Damage::CheckpointSignature {
                reason: "the signature of log.example is wrong".to_owned(),
            }),
            intact: 0,
        },
        Attack {
            name: "an older one, with the entries left as they are",
            tamper: |export| export.write(CHECKPOINT_FILE, export.genuine_checkpoint(6).to_string()),
            with: With::Both(12),
            finding: Finding::Export(Damage::CheckpointReplaced { size: 6, entries: 12 }),
            intact: 12,
        },
        Attack {
            name: "of another log, signed by the same key",
            tamper: |export| {
                let text = format!("other.example\n12\n{}\n", crate::leaf_hash(b"x"));
                let note = crate::SignedNote::sign(&text, &log_key()).unwrap();
                export.write(CHECKPOINT_FILE, note.to_string());
            },
            with: With::Key,
            finding: Finding::Export(Damage::OtherLog),
            intact: 0,
        },
        Attack {
            name: "the key is missing",
            tamper: |export| export.remove(KEY_FILE),
            with: With::Nothing,
            finding: Finding::Export(Damage::KeyMissing),
            intact: 0,
        },
        Attack {
            name: "the key is garbage",
            tamper: |export| export.write(KEY_FILE, b"\xff"),
            with: With::Checkpoint(8),
            finding: Finding::Export(Damage::KeyGarbage {
                reason: crate::NoteError::VerifierKey.to_string(),
            }),
            intact: 8,
        },
        Attack {
            name: "an earlier seal is forged",
            tamper: |export| {
                let mut other = export.sealed.clone();
                other[0] = FORGED.to_vec();
                export.write_earlier(&[checkpoint_over(&other[..4], &false_key())]);
            },
            with: With::Key,
            finding: Finding::Export(Damage::EarlierCheckpoint { line: 1 }),
            intact: 12,
        },
        Attack {
            name: "an earlier seal is garbage",
            tamper: |export| export.write(CHECKPOINTS_FILE, "\"x\"\n"),
            with: With::Key,
            finding: Finding::Export(Damage::EarlierCheckpoint { line: 1 }),
            intact: 12,
        },
    ]);
}

/// The sealer's own fault, signed and all: the entries are as sealed, and still not what they should be.
#[test]
fn a_log_that_sealed_wrong_numbers_is_told_so() {
    for (line, found) in [(entry(7), Some(7)), (b"{}".to_vec(), None)] {
        let export = honest();
        export.edit_lines(|lines| lines[5] = line);
        export.refit_leaves();
        export.resign(&log_key());
        export.write_earlier(&[]);
        let report = export.verify(With::Key);
        assert_eq!(report.problem, Some(Finding::Misnumbered { index: 5, found }), "{report}");
    }
}

#[test]
fn what_is_no_tampering_is_no_finding() {
    for size in [0, 1, 2, 12, 300] {
        let export = Export::honest(size, &[]);
        for with in [With::Nothing, With::Key, With::Checkpoint(size), With::Both(size / 2)] {
            let report = export.verify(with);
            assert!(report.is_clean() && report.intact == size, "{report}");
        }
    }
    let export = honest();
    let mut bytes = fs::read(export.file(ENTRIES_FILE)).unwrap();
    bytes.pop();
    export.write(ENTRIES_FILE, bytes);
    assert!(export.verify(With::Both(12)).is_clean(), "a last line without newline is still the entry");
    export.remove(LEAVES_FILE);
    export.remove(CHECKPOINTS_FILE);
    assert!(export.verify(With::Both(12)).is_clean(), "entries and checkpoint alone are an export");
}

/// Lines as long as an entry may be, in a file of several chunks: nothing is lost where one chunk ends.
#[test]
fn a_file_of_many_chunks_is_read_whole() {
    let long = |index: u64| {
        let mut line = entry(index);
        line.resize(LINE_BYTES_MAX - usize::from(index.is_multiple_of(3)), b' ');
        line
    };
    let export = Export::honest_with((0..20).map(long).collect(), &[7]);
    assert!(export.verify(With::Both(20)).is_clean());
    export.edit_lines(|lines| lines.swap(9, 17));
    let report = export.verify(With::Both(20));
    assert_eq!(report.problem, Some(Finding::Reordered { index: 9, line: 17, instead: 17 }), "{report}");
    export.edit_lines(|lines| lines.swap(9, 17));
    assert!(export.verify(With::Both(20)).is_clean());
    // Many short lines, so that every thread gets some.
    let export = Export::honest_with((0..200_000).map(entry).collect(), &[]);
    assert!(export.verify(With::Both(200_000)).is_clean());
    export.edit_lines(|lines| drop(lines.remove(199_000)));
    let report = export.verify(With::Both(200_000));
    assert_eq!(report.problem, Some(Finding::Removed { index: 199_000, instead: 199_001 }), "{report}");
}

#[test]
fn an_anchor_within_the_export_is_none() {
    let export = honest();
    let outside =
        Outside { key: Some(export.file(KEY_FILE)), checkpoint: Some(export.file(CHECKPOINT_FILE)) };
    let report = verify_export(&export.directory(), &outside).unwrap();
    assert_eq!((report.anchor, report.ignored.len()), (Anchor::None, 2));
    assert!(report.to_string().starts_with("UNANCHORED"), "{report}");
}

/// A verifier of two logs keeps both keys; an export of the one must not pass for the other.
#[test]
fn a_known_key_does_not_speak_for_another_log() {
    let export = honest();
    let other = SignerKey::from_seed("other.example", &[3; 32]).unwrap();
    let root = export.verify(With::Key).root;
    export.write(
        CHECKPOINT_FILE,
        Checkpoint::new("other.example", SIZE, root).sign(&other).unwrap().to_string(),
    );
    let elsewhere = Scratch::new();
    let (key, checkpoint) = (elsewhere.0.join("keys"), elsewhere.0.join("checkpoint"));
    fs::write(&key, format!("{}\n{}\n", log_key().verifier(), other.verifier())).unwrap();
    fs::write(&checkpoint, export.genuine_checkpoint(8).to_string()).unwrap();
    let outside = Outside { key: Some(key), checkpoint: Some(checkpoint) };
    let report = verify_export(&export.directory(), &outside).unwrap();
    assert_eq!((report.problem, report.intact), (Some(Finding::Export(Damage::OtherLog)), 8));
}

#[test]
fn unusable_outside_files_are_errors_not_findings() {
    let export = honest();
    let elsewhere = Scratch::new();
    let file = elsewhere.0.join("kept");
    fs::write(&file, "garbage").unwrap();
    let verify = |key: bool, checkpoint: bool| {
        let given = |wanted: bool| wanted.then(|| file.clone());
        verify_export(&export.directory(), &Outside { key: given(key), checkpoint: given(checkpoint) })
    };
    assert!(matches!(verify(true, false), Err(VerifyError::Key { .. })));
    assert!(matches!(verify(false, true), Err(VerifyError::Checkpoint { .. })));
    fs::remove_file(&file).unwrap();
    assert!(matches!(verify(true, false), Err(VerifyError::Read { .. })));
    export.remove(ENTRIES_FILE);
    assert!(matches!(verify_export(&export.directory(), &Outside::default()), Err(VerifyError::Read { .. })));
}

#[test]
fn a_hostile_id_cannot_write_to_the_terminal() {
    let export = honest();
    let hostile = "{\"index\":5,\"id\":\"\\u001b[2J\u{202e}evil\\u0007".to_owned() + &"x".repeat(500) + "\"}";
    export.edit_lines(|lines| lines[5] = hostile.into_bytes());
    let text = export.verify(With::Key).to_string();
    assert!(text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{text:?}");
    assert!(text.contains(r#""\u{1b}[2J\u{202e}evil\u{7}x"#) && text.len() < 1000, "{text}");
}

/// How the attacker follows up on changed entries.
#[derive(Debug, Clone, Copy)]
enum Cover {
    Nothing,
    RefitLeaves,
    RemoveLeaves,
    /// Leaves, checkpoint, earlier seals and shipped key, all made to fit with a key of the attacker's own.
    Everything,
}

#[derive(Debug, Clone)]
enum Change {
    Flip(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Swap(prop::sample::Index, prop::sample::Index),
    Truncate(prop::sample::Index),
    Renumber,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = any::<prop::sample::Index>;
    let change = prop_oneof![
        (at(), 1u8..).prop_map(|(at, by)| Change::Flip(at, by)),
        at().prop_map(Change::Remove),
        (at(), at()).prop_map(|(from, to)| Change::Repeat(from, to)),
        (at(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(at, line)| Change::Insert(at, line)),
        (at(), at()).prop_map(|(one, other)| Change::Swap(one, other)),
        at().prop_map(Change::Truncate),
        Just(Change::Renumber),
    ];
    prop::collection::vec(change, 1..4)
}

fn apply(change: &Change, bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut lines: Vec<Vec<u8>> = body.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let count = lines.len();
    match change {
        Change::Flip(at, by) => {
            let mut bytes = bytes;
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= by;
            }
            return bytes;
        }
        Change::Remove(at) => drop(lines.remove(at.index(count))),
        Change::Repeat(from, to) => lines.insert(to.index(count + 1), lines[from.index(count)].clone()),
        Change::Insert(at, line) => lines.insert(at.index(count + 1), line.clone()),
        Change::Swap(one, other) => lines.swap(one.index(count), other.index(count)),
        Change::Truncate(at) => lines.truncate(at.index(count)),
        Change::Renumber if lines.iter().all(|line| line.contains(&b',') && line.is_ascii()) => {
            renumber(&mut lines)
        }
        Change::Renumber => {}
    }
    lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect()
}

/// The first place where the lines differ from what was sealed.
fn first_difference(sealed: &[Vec<u8>], bytes: &[u8]) -> Option<u64> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines: Vec<&[u8]> =
        if bytes.is_empty() { Vec::new() } else { body.split(|byte| *byte == b'\n').collect() };
    let same = sealed.iter().zip(&lines).take_while(|(sealed, line)| sealed == *line).count();
    (same < sealed.len() || same < lines.len()).then_some(same as u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is done to the entries, and however it is covered up without the log's key: an anchored verifier
    /// notices, never vouches for a changed entry, and with genuine leaf hashes names exactly the first one.
    #[test]
    fn every_tampering_is_noticed(
        size in 1u64..40,
        seal: prop::sample::Index,
        changes in changes(),
        cover in prop_oneof![
            Just(Cover::Nothing), Just(Cover::RefitLeaves), Just(Cover::RemoveLeaves), Just(Cover::Everything)
        ],
        anchor in 0u8..3,
    ) {
        let seal = seal.index(size as usize) as u64;
        let export = Export::honest(size, &[seal]);
        let before = fs::read(export.file(ENTRIES_FILE)).unwrap();
        let after = changes.iter().fold(before, |bytes, change| apply(change, bytes));
        export.write(ENTRIES_FILE, &after);
        match cover {
            Cover::Nothing => {}
            Cover::RefitLeaves => export.refit_leaves(),
            Cover::RemoveLeaves => export.remove(LEAVES_FILE),
            Cover::Everything => {
                export.refit_leaves();
                export.resign(&false_key());
                export.write_earlier(&[]);
                export.ship_key(&false_key());
            }
        }
        let with = [With::Key, With::Checkpoint(size), With::Both(size)][usize::from(anchor)];
        let report = export.verify(with);
        let Some(first) = first_difference(&export.sealed, &after) else { return Ok(()) };
        prop_assert!(report.problem.is_some(), "{}", report);
        prop_assert!(report.intact <= first, "{}", report);
        if matches!(cover, Cover::Nothing) {
            prop_assert_eq!(report.problem.as_ref().and_then(Finding::index), Some(first), "{}", report);
            prop_assert_eq!(report.intact, first, "{}", report);
        }
    }

    /// Any change of the other files that an anchored verification relies on is noticed, or changes nothing.
    #[test]
    fn garbage_in_any_file_never_panics(name in 0usize..5, bytes: Vec<u8>, with in 0u8..2) {
        let export = honest();
        let name = [ENTRIES_FILE, CHECKPOINT_FILE, LEAVES_FILE, CHECKPOINTS_FILE, KEY_FILE][name];
        export.write(name, &bytes);
        let report = export.verify(if with == 0 { With::Nothing } else { With::Both(8) });
        let harmless = name == KEY_FILE && with == 1 || name == CHECKPOINTS_FILE && bytes.is_empty();
        prop_assert_eq!(report.is_clean(), harmless, "{} {}", name, report);
        prop_assert!(!report.to_string().is_empty());
    }
}

//! A log that changed its key twice, at five and at nine of its twelve entries, and what an attacker makes of that.

use std::fs;
use std::path::PathBuf;

use super::fixture::{Scratch, entry};
use crate::chain::{ChainFault, Handover, HandoverError, KeyChain};
use crate::checkpoint::Checkpoint;
use crate::export::{CHECKPOINT_FILE, ENTRIES_FILE, ExportWriter, HANDOVERS_FILE, note_line};
use crate::note::{SignedNote, SignerKey};
use crate::tree::{Frontier, leaf_hash};
use crate::verify::{Damage, Finding, Outside, Report, VerifyError, verify_export};

const NAME: &str = "log.example";

fn key(seed: u8) -> SignerKey {
    SignerKey::from_seed(NAME, &[seed; 32]).unwrap()
}

const FIRST: u8 = 1;
const SECOND: u8 = 2;
const THIRD: u8 = 3;
const EVIL: u8 = 9;

fn unsigned(size: u64) -> Checkpoint {
    over((0..size).map(entry))
}

fn over(lines: impl Iterator<Item = Vec<u8>>) -> Checkpoint {
    let mut frontier = Frontier::default();
    lines.for_each(|line| drop(frontier.append(leaf_hash(&line))));
    Checkpoint::new(NAME, frontier.size(), frontier.root())
}

fn checkpoint(size: u64, seed: u8) -> SignedNote {
    unsigned(size).sign(&key(seed)).unwrap()
}

fn handover(size: u64, old: u8, new: u8) -> SignedNote {
    Handover::sign(unsigned(size), &key(old), &key(new)).unwrap()
}

struct Export {
    home: Scratch,
}

impl Export {
    fn honest() -> Self {
        let export = Self { home: Scratch::new() };
        let mut writer = ExportWriter::create(&export.directory()).unwrap();
        for line in (0..12).map(entry) {
            writer.entry(&line, &leaf_hash(&line)).unwrap();
        }
        for earlier in [checkpoint(3, FIRST), checkpoint(7, SECOND), checkpoint(10, THIRD)] {
            writer.earlier_checkpoint(&earlier).unwrap();
        }
        for handover in [handover(5, FIRST, SECOND), handover(9, SECOND, THIRD)] {
            writer.handover(&handover).unwrap();
        }
        writer.finish(&checkpoint(12, THIRD), key(THIRD).verifier()).unwrap();
        export
    }

    fn directory(&self) -> PathBuf {
        self.home.0.join("export")
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.directory().join(name), bytes).unwrap();
    }

    fn handovers(&self, notes: &[SignedNote]) {
        self.write(HANDOVERS_FILE, notes.iter().map(note_line).collect::<String>());
    }

    fn try_verify(&self, keys: &[u8], kept: Option<SignedNote>) -> Result<Report, VerifyError> {
        let keep = |name: &str, text: String| {
            fs::write(self.home.0.join(name), text).unwrap();
            self.home.0.join(name)
        };
        let lines: String = keys.iter().map(|seed| format!("{}\n", key(*seed).verifier())).collect();
        let outside = Outside {
            key: (!keys.is_empty()).then(|| keep("kept.vkey", lines)),
            checkpoint: kept.map(|note| keep("kept.checkpoint", note.to_string())),
        };
        verify_export(&self.directory(), &outside)
    }

    fn verify(&self, keys: &[u8]) -> Report {
        self.try_verify(keys, None).unwrap()
    }
}

#[test]
fn every_key_the_log_ever_had_verifies_all_of_it() {
    let export = Export::honest();
    for keys in [&[FIRST][..], &[SECOND], &[THIRD], &[FIRST, THIRD], &[]] {
        for kept in
            [None, Some(checkpoint(3, FIRST)), Some(handover(5, FIRST, SECOND)), Some(checkpoint(10, THIRD))]
        {
            let report = export.try_verify(keys, kept.clone()).unwrap();
            assert!(report.is_clean() && report.intact == 12, "{keys:?} {kept:?}\n{report}");
        }
    }
    assert!(!export.verify(&[EVIL]).is_clean());
}

#[test]
fn an_altered_entry_is_named_whichever_key_was_kept() {
    for keys in [[FIRST], [SECOND], [THIRD]] {
        for index in [1, 6, 11] {
            let export = Export::honest();
            let lines = (0..12).map(|n| if n == index { entry(100 + n) } else { entry(n) });
            let bytes: Vec<u8> = lines.flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
            export.write(ENTRIES_FILE, bytes);
            let problem = export.verify(&keys).problem.unwrap();
            assert_eq!(problem.index(), Some(index), "{keys:?} {problem}");
        }
    }
}

/// What must be found, if all that was kept is the first key.
fn check(name: &str, handovers: &[SignedNote], expected: &Damage) {
    let export = Export::honest();
    export.handovers(handovers);
    let report = export.verify(&[FIRST]);
    let found: Vec<Finding> = report.problem.iter().chain(&report.also).cloned().collect();
    assert!(found.contains(&Finding::Export(expected.clone())), "{name}\n{report}");
    assert!(report.intact < 12, "{name}: what only the new key signed is not proven\n{report}");
}

#[test]
fn a_new_key_without_the_old_keys_signature_is_refused_and_named() {
    // The attacker's key signs, and claims to follow; the old key never said so.
    let mut claim = unsigned(5);
    claim.extensions.push(format!("handover {} {}", key(FIRST).verifier(), key(EVIL).verifier()));
    let forged = claim.sign(&key(EVIL)).unwrap();
    let reason = HandoverError::NotByOld(key(FIRST).verifier().clone()).to_string();
    let damage = Damage::Handover { line: 1, reason: reason.clone() };
    check("forged", std::slice::from_ref(&forged), &damage);
    // Two signatures under a plain checkpoint are no hand-over: anyone can add theirs.
    let mut both = checkpoint(5, FIRST);
    both.add(checkpoint(5, EVIL).signatures()[0].clone()).unwrap();
    assert_eq!(Handover::open(&both), Ok(None));
    check(
        "added",
        &[both],
        &Damage::Handover { line: 1, reason: "it is not a hand-over from one key to the next".to_owned() },
    );
    // The old key's signature under other words does not help either.
    let mut moved = forged;
    moved.add(handover(5, FIRST, SECOND).signatures()[0].clone()).unwrap();
    check("moved", &[moved], &damage);
    // And the whole export made by the attacker, with a clean chain from a key nobody kept.
    let export = Export::honest();
    export.handovers(&[handover(5, EVIL, EVIL + 1)]);
    export.write(CHECKPOINT_FILE, checkpoint(12, EVIL + 1).to_string());
    let report = export.verify(&[FIRST]);
    assert_eq!(report.problem, Some(Finding::Export(Damage::StrangeHandover { size: 5 })), "{report}");
    assert_eq!(report.intact, 0, "{report}");
}

#[test]
fn a_new_key_that_did_not_sign_itself_is_refused() {
    let mut claim = unsigned(5);
    claim.extensions.push(format!("handover {} {}", key(FIRST).verifier(), key(SECOND).verifier()));
    let one_sided = claim.sign(&key(FIRST)).unwrap();
    let reason = HandoverError::NotByNew(key(SECOND).verifier().clone()).to_string();
    check("one-sided", &[one_sided, handover(9, SECOND, THIRD)], &Damage::Handover { line: 1, reason });
}

#[test]
fn a_chain_with_a_link_missing_is_named() {
    let (one, two) = (handover(5, FIRST, SECOND), handover(9, SECOND, THIRD));
    check("the first is gone", std::slice::from_ref(&two), &Damage::StrangeHandover { size: 9 });
    let reason = "no signature is by the key expected".to_owned();
    check("the last is gone", &[one], &Damage::CheckpointSignature { reason: reason.clone() });
    check("all are gone", &[], &Damage::CheckpointSignature { reason });
    // The log cut back to before the change of keys, against a checkpoint kept from after it.
    let export = Export::honest();
    export.handovers(&[]);
    let bytes: Vec<u8> = (0..3).map(entry).flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
    export.write(ENTRIES_FILE, bytes);
    export.write(CHECKPOINT_FILE, checkpoint(3, FIRST).to_string());
    let refused = export.try_verify(&[FIRST], Some(checkpoint(10, THIRD)));
    assert!(matches!(refused, Err(VerifyError::Chain { .. })), "{refused:?}");
}

#[test]
fn one_key_with_two_successors_is_named_and_neither_counts() {
    let key_text = key(FIRST).verifier().to_string();
    let honest = [handover(5, FIRST, SECOND), handover(9, SECOND, THIRD)];
    for size in [4, 5, 11] {
        let forged = handover(size, FIRST, EVIL);
        let sizes = [5, size];
        check(
            "two",
            &[&honest[..], &[forged]].concat(),
            &Damage::TwoSuccessors { key: key_text.clone(), sizes },
        );
    }
    // The genuine hand-over was kept elsewhere, and the export shows only the forged one.
    let export = Export::honest();
    export.handovers(&[handover(4, FIRST, EVIL)]);
    export.write(CHECKPOINT_FILE, checkpoint(12, EVIL).to_string());
    let report = export.try_verify(&[FIRST], Some(handover(5, FIRST, SECOND)));
    let named = match report {
        Ok(report) => {
            report.problem == Some(Finding::Export(Damage::TwoSuccessors { key: key_text, sizes: [5, 4] }))
        }
        Err(VerifyError::Chain { .. }) => true,
        Err(_) => false,
    };
    assert!(named);
}

#[test]
fn an_old_key_that_leaked_after_its_replacement_signs_nothing_that_counts() {
    // The thief rewrites an entry from after the change of keys and signs the new history with the old key.
    let export = Export::honest();
    let rewritten = |n: u64| if n == 7 { entry(100) } else { entry(n) };
    let bytes: Vec<u8> = (0..12).map(rewritten).flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
    export.write(ENTRIES_FILE, bytes);
    export.write(CHECKPOINT_FILE, over((0..12).map(rewritten)).sign(&key(FIRST)).unwrap().to_string());
    for keys in [[FIRST], [SECOND], [THIRD]] {
        let report = export.verify(&keys);
        let found: Vec<Finding> = report.problem.iter().chain(&report.also).cloned().collect();
        assert!(found.contains(&Finding::Export(Damage::ReplacedKey { size: 5 })), "{report}");
        assert_eq!(report.problem.unwrap().index(), Some(7), "the entry is named");
    }
    // With the newer key kept, a succession of the thief's own leads nowhere.
    let export = Export::honest();
    export.handovers(&[handover(5, FIRST, EVIL)]);
    export.write(CHECKPOINT_FILE, checkpoint(12, EVIL).to_string());
    assert!(!export.verify(&[THIRD]).is_clean());
    assert!(!export.verify(&[SECOND]).is_clean());
}

#[test]
fn a_chain_does_not_go_back_in_time_or_in_circles() {
    let open = |note: SignedNote| Handover::open(&note).unwrap().unwrap();
    let mut chain = KeyChain::new(vec![key(FIRST).verifier().clone()]);
    let backwards = [open(handover(5, FIRST, SECOND)), open(handover(4, SECOND, THIRD))];
    assert_eq!(chain.follow(&backwards), [ChainFault::Unrelated { size: 4 }]);
    let mut chain = KeyChain::new(vec![key(FIRST).verifier().clone()]);
    let circle = [open(handover(5, FIRST, SECOND)), open(handover(9, SECOND, FIRST))];
    assert_eq!(chain.follow(&circle), [ChainFault::Unrelated { size: 9 }]);
    assert!(chain.open(&checkpoint(12, FIRST)).is_err());
    assert!(chain.open(&checkpoint(12, SECOND)).is_ok());
    assert!(chain.open(&checkpoint(4, SECOND)).is_err(), "the new key does not speak for the time before it");
}

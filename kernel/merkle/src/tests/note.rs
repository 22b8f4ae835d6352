//! Signed notes and checkpoints, against the vectors of the format's first implementation (golang.org/x/mod/sumdb/note)
//! and against garbage.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::note::{NoteError, NoteSignature, SIGNATURES_MAX, SignedNote, SignerKey, VerifierKey};
use crate::tree::{Hash, leaf_hash};

const GO_KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const GO_SEED: &str = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const GO_TEXT: &str =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const GO_SIGNATURE: &str = "\u{2014} PeterNeumann \
    x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=";

fn signer(name: &str, seed: u8) -> SignerKey {
    SignerKey::from_seed(name, &[seed; 32]).unwrap()
}

#[test]
fn the_published_note_is_made_and_verified() {
    let note = format!("{GO_TEXT}\n{GO_SIGNATURE}\n");
    let key: VerifierKey = GO_KEY.parse().unwrap();
    assert_eq!(key.to_string(), GO_KEY);
    let parsed = SignedNote::parse(note.as_bytes()).unwrap();
    assert_eq!(parsed.verify(std::slice::from_ref(&key)).unwrap(), [&key]);

    let typed_seed = STANDARD.decode(GO_SEED).unwrap();
    let signer = SignerKey::from_seed("PeterNeumann", typed_seed[1..].try_into().unwrap()).unwrap();
    assert_eq!(signer.verifier(), &key);
    assert_eq!(SignedNote::sign(GO_TEXT, &signer).unwrap().to_string(), note);
}

#[test]
fn no_other_spelling_of_a_key_is_accepted() {
    for start in 0..GO_KEY.len() {
        for end in start..GO_KEY.len() {
            assert!(GO_KEY[start..end].parse::<VerifierKey>().is_err());
        }
        let mut mangled = GO_KEY.as_bytes().to_vec();
        mangled[start] += 1;
        assert!(std::str::from_utf8(&mangled).unwrap().parse::<VerifierKey>().is_err(), "byte {start}");
    }
    for bad in [
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "++",
        "",
    ] {
        assert!(bad.parse::<VerifierKey>().is_err(), "{bad}");
    }
}

#[test]
fn unknown_signatures_are_kept_and_ignored() {
    let (log, witness) = (signer("log.example", 1), signer("witness.example", 2));
    let mut note = SignedNote::sign("text\n", &log).unwrap();
    let cosigned = SignedNote::sign("text\n", &witness).unwrap();
    note.add(cosigned.signatures()[0].clone()).unwrap();
    note.add(cosigned.signatures()[0].clone()).unwrap();
    let note = SignedNote::parse(note.to_string().as_bytes()).unwrap();
    assert_eq!(note.signatures().len(), 2);
    let (log, witness) = (log.verifier().clone(), witness.verifier().clone());
    assert_eq!(note.verify(std::slice::from_ref(&log)).unwrap().len(), 1);
    assert_eq!(note.verify(&[log, witness]).unwrap().len(), 2);
    // The same name with another key is another signer.
    let stranger = signer("log.example", 3).verifier().clone();
    assert_eq!(note.verify(&[stranger]), Err(NoteError::UnknownSigner));
    assert_eq!(note.verify(&[]), Err(NoteError::UnknownSigner));
}

#[test]
fn one_wrong_signature_of_a_known_key_spoils_the_note() {
    let (log, witness) = (signer("log.example", 1), signer("witness.example", 2));
    let mut note = SignedNote::sign("text\n", &log).unwrap();
    note.add(SignedNote::sign("other text\n", &witness).unwrap().signatures()[0].clone()).unwrap();
    let keys = [log.verifier().clone(), witness.verifier().clone()];
    assert_eq!(note.verify(&keys), Err(NoteError::WrongSignature("witness.example".to_owned())));
    assert!(note.verify(&keys[..1]).is_ok());
}

#[test]
fn malformed_notes_are_refused() {
    let line = GO_SIGNATURE;
    for (bad, why) in [
        (String::new(), NoteError::NoSignatures),
        ("text\n".to_owned(), NoteError::NoSignatures),
        ("text\n\n".to_owned(), NoteError::NoSignatures),
        (format!("text\n\n{line}"), NoteError::NoSignatures),
        (format!("text\n{line}\n"), NoteError::NoSignatures),
        (format!("text\n\n{line}\nmore\n"), NoteError::SignatureLine(2)),
        (format!("text\n\n{}\n", line.replace('\u{2014}', "-")), NoteError::SignatureLine(1)),
        (format!("text\n\n{}\n", line.replace("PeterNeumann", "Peter+Neumann")), NoteError::SignatureLine(1)),
        (format!("text\n\n{}\n", line.replace("PeterNeumann ", "")), NoteError::SignatureLine(1)),
        ("text\n\n\u{2014} name AAAA\n".to_owned(), NoteError::SignatureLine(1)),
        (format!("te\rxt\n\n{line}\n"), NoteError::NotText),
        (format!("text\n\n{}", format!("{line}\n").repeat(SIGNATURES_MAX + 1)), NoteError::TooManySignatures),
        ("x".repeat(1 << 20), NoteError::TooLong),
    ] {
        assert_eq!(SignedNote::parse(bad.as_bytes()).unwrap_err(), why, "{:.60}", bad);
    }
    assert_eq!(SignedNote::parse(b"te\xffxt\n\n"), Err(NoteError::NotText));
    for bad in ["no newline", "control\u{1b}\n"] {
        assert_eq!(SignedNote::sign(bad, &signer("log.example", 1)), Err(NoteError::NotText));
    }
    for bad in ["", "a b", "a+b", "a\u{a0}b", "a\nb", &"x".repeat(256)] {
        assert_eq!(VerifierKey::new(bad, [0; 32]), Err(NoteError::KeyName));
    }
}

#[test]
fn signatures_are_bounded() {
    let mut note = SignedNote::sign("text\n", &signer("log.example", 0)).unwrap();
    let line = |number: usize, bytes: usize| {
        let text = format!("\u{2014} witness{number} {}", STANDARD.encode(vec![1; bytes]));
        NoteSignature::parse(&text).unwrap()
    };
    assert_eq!(note.add(line(0, 300_000)), Err(NoteError::TooLong));
    for number in 1..SIGNATURES_MAX {
        note.add(line(number, 68)).unwrap();
    }
    assert_eq!(note.add(line(SIGNATURES_MAX, 68)), Err(NoteError::TooManySignatures));
    assert_eq!(SignedNote::parse(note.to_string().as_bytes()).unwrap(), note);
}

#[test]
fn checkpoints_have_one_spelling() {
    let root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
    let good = format!("example.com/behind-the-sofa\n20852163\n{root}\n");
    let checkpoint = Checkpoint::parse(&good).unwrap();
    assert_eq!((checkpoint.size, checkpoint.root.to_string().as_str()), (20_852_163, root));
    assert_eq!(checkpoint.to_text(), good);
    let extended = format!("{good}anything\n");
    assert_eq!(Checkpoint::parse(&extended).unwrap().to_text(), extended);
    for bad in [
        format!("origin\n5\n{root}"),
        format!("\n5\n{root}\n"),
        format!("origin\n05\n{root}\n"),
        format!("origin\n+5\n{root}\n"),
        format!("origin\n-5\n{root}\n"),
        format!("origin\n\n{root}\n"),
        format!("origin\n99999999999999999999\n{root}\n"),
        "origin\n5\nAAAA\n".to_owned(),
        "origin\n5\n".to_owned(),
        format!("origin\n5\n{root}\n\n"),
        format!("origin\n5\n{root}\n{}", "x\n".repeat(17)),
        format!("{}\n5\n{root}\n", "x".repeat(9000)),
    ] {
        assert_eq!(Checkpoint::parse(&bad), Err(CheckpointError::Malformed), "{bad:.60}");
    }
    let huge = format!("origin\n{}\n{root}\n", u64::MAX);
    assert_eq!(Checkpoint::parse(&huge), Err(CheckpointError::TooLarge(u64::MAX)));
}

#[test]
fn a_checkpoint_is_signed_by_its_own_log_only() {
    let (log, other) = (signer("log.example", 1), signer("other.example", 2));
    let checkpoint = Checkpoint::new("log.example", 5, leaf_hash(b""));
    let note = checkpoint.sign(&log).unwrap();
    assert_eq!(Checkpoint::open(&note, &[log.verifier().clone()]).unwrap(), checkpoint);
    assert!(matches!(checkpoint.sign(&other), Err(CheckpointError::OtherLog { .. })));
    // The other log's key may well have signed the text: it still does not speak for this log.
    let foreign = SignedNote::sign(&checkpoint.to_text(), &other).unwrap();
    let opened = Checkpoint::open(&foreign, &[other.verifier().clone()]);
    assert!(matches!(opened, Err(CheckpointError::OtherLog { .. })));
    let two_lines = Checkpoint::new("log.example\n9", 5, leaf_hash(b""));
    assert_eq!(two_lines.sign(&log), Err(CheckpointError::Malformed));
}

proptest! {
    /// Whatever parses, parses to exactly its own bytes: there is no second spelling to hide a change in.
    #[test]
    fn parsing_is_exact_and_never_panics(
        bytes: Vec<u8>,
        text in "[\u{20}-\u{7e}\n\u{2014}]{0,80}",
        tail in "[—A-Za-z0-9+/= \n]{0,60}",
    ) {
        let _ = SignedNote::parse(&bytes);
        for candidate in [text.clone(), format!("{text}\n\n{tail}"), format!("{text}\n\n— a {tail}\n")] {
            if let Ok(note) = SignedNote::parse(candidate.as_bytes()) {
                prop_assert_eq!(note.to_string(), candidate.clone());
            }
            if let Ok(checkpoint) = Checkpoint::parse(&candidate) {
                prop_assert_eq!(checkpoint.to_text(), candidate.clone());
            }
            if let Ok(key) = candidate.parse::<VerifierKey>() {
                prop_assert_eq!(key.to_string(), candidate);
            }
        }
    }

    #[test]
    fn one_changed_byte_is_noticed(
        at: prop::sample::Index,
        change in 1u8..=255,
        size in 0u64..1 << 40,
        root: [u8; 32],
    ) {
        let log = signer("log.example", 1);
        let note = Checkpoint::new("log.example", size, Hash::from_bytes(root)).sign(&log).unwrap();
        let mut bytes = note.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        let opened = SignedNote::parse(&bytes)
            .map_err(CheckpointError::from)
            .and_then(|note| Checkpoint::open(&note, &[log.verifier().clone()]));
        prop_assert!(opened.is_err());
    }
}

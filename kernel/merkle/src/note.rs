//! Signed notes (c2sp.org/signed-note): a short text and Ed25519 signatures, readable by people and by other tools.
//!
//! The format is strict on purpose. Exactly one byte sequence stands for a note, so a note can be compared, stored and
//! hashed as bytes. Signatures of unknown keys are kept and ignored, which is what lets witnesses add theirs and lets
//! a key be replaced; a wrong signature under a key we know spoils the whole note, because somebody tried.
//!
//! Only plain Ed25519 signatures (type 0x01) are verified. Timestamped witness cosignatures (0x04) and anything newer
//! travel along as unknown signatures.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Room for sixteen post-quantum signatures, which the format obliges readers to accept, and no more.
pub const NOTE_BYTES_MAX: usize = 256 * 1024;
pub const SIGNATURES_MAX: usize = 100;
pub const KEY_NAME_BYTES_MAX: usize = 255;

const PUBLIC_KEY_BYTES: usize = 32;
const KEY_ID_BYTES: usize = 4;
const TYPE_ED25519: u8 = 0x01;
const SIGNATURE_MARK: &str = "\u{2014} ";

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoteError {
    #[error("a signed note has at most {NOTE_BYTES_MAX} bytes")]
    TooLong,
    #[error("a signed note has at most {SIGNATURES_MAX} signatures")]
    TooManySignatures,
    #[error("a signed note is UTF-8 text without control characters")]
    NotText,
    #[error("a signed note is a text, an empty line, and signature lines, each ended by a newline")]
    NoSignatures,
    #[error("signature line {0} is not of the form “— name base64”")]
    SignatureLine(usize),
    #[error("a key name has 1 to {KEY_NAME_BYTES_MAX} bytes, and no space, plus sign or control character")]
    KeyName,
    #[error(
        "a verifier key is of the form name+id+base64, with an Ed25519 key and the id that belongs to it"
    )]
    VerifierKey,
    #[error("a signing key's seed is 32 bytes")]
    Seed,
    #[error("no signature is by the key expected")]
    UnknownSigner,
    #[error("the signature of {0} is wrong")]
    WrongSignature(String),
}

/// A public key with the name it signs under. As text: `name+id+base64`, the form to keep outside the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    id: u32,
    public_key: [u8; PUBLIC_KEY_BYTES],
}

impl VerifierKey {
    pub fn new(name: &str, public_key: [u8; PUBLIC_KEY_BYTES]) -> Result<Self, NoteError> {
        check_key_name(name)?;
        Ok(Self { name: name.to_owned(), id: key_id(name, &public_key), public_key })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A short handle, not a fingerprint: anyone can make a key with the same id.
    pub fn id(&self) -> u32 {
        self.id
    }

    fn is_signer_of(&self, signature: &NoteSignature) -> bool {
        self.id == signature.key_id && self.name == signature.name
    }

    fn verifies(&self, text: &str, signature: &NoteSignature) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.public_key).verify(text.as_bytes(), &signature.bytes).is_ok()
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut typed_key = vec![TYPE_ED25519];
        typed_key.extend_from_slice(&self.public_key);
        write!(f, "{}+{:08x}+{}", self.name, self.id, STANDARD.encode(typed_key))
    }
}

impl FromStr for VerifierKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Base64 may itself contain a plus sign: only the first two separate.
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(_), Some(typed_key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoteError::VerifierKey);
        };
        let typed_key = STANDARD.decode(typed_key).map_err(|_| NoteError::VerifierKey)?;
        let Some((&TYPE_ED25519, public_key)) = typed_key.split_first() else {
            return Err(NoteError::VerifierKey);
        };
        let key = Self::new(name, public_key.try_into().map_err(|_| NoteError::VerifierKey)?)?;
        // Printing it again also checks the id, and that there is no second spelling.
        if key.to_string() == text { Ok(key) } else { Err(NoteError::VerifierKey) }
    }
}

/// A private key with the name it signs under. It has no `Debug` and cannot be serialised.
pub struct SignerKey {
    verifier: VerifierKey,
    pair: Ed25519KeyPair,
}

impl SignerKey {
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<Self, NoteError> {
        use aws_lc_rs::signature::KeyPair as _;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| NoteError::Seed)?;
        let public_key = pair.public_key().as_ref().try_into().map_err(|_| NoteError::Seed)?;
        Ok(Self { verifier: VerifierKey::new(name, public_key)?, pair })
    }

    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    fn sign(&self, text: &str) -> NoteSignature {
        let bytes = self.pair.sign(text.as_bytes()).as_ref().to_vec();
        NoteSignature { name: self.verifier.name.clone(), key_id: self.verifier.id, bytes }
    }
}

/// One signature line, verified or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    name: String,
    key_id: u32,
    bytes: Vec<u8>,
}

impl NoteSignature {
    /// Reads a signature line without its newline, such as a witness returns.
    pub fn parse(line: &str) -> Option<Self> {
        let (name, encoded) = line.strip_prefix(SIGNATURE_MARK)?.split_once(' ')?;
        check_key_name(name).ok()?;
        let decoded = STANDARD.decode(encoded).ok()?;
        let (key_id, bytes) = decoded.split_first_chunk::<KEY_ID_BYTES>()?;
        if bytes.is_empty() {
            return None;
        }
        Some(Self { name: name.to_owned(), key_id: u32::from_be_bytes(*key_id), bytes: bytes.to_vec() })
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.key_id.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.bytes);
        write!(f, "{SIGNATURE_MARK}{} {}", self.name, STANDARD.encode(bytes))
    }
}

/// A text with its signatures. Having parsed one says nothing about who signed it: that is [`SignedNote::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

impl SignedNote {
    pub fn sign(text: &str, key: &SignerKey) -> Result<Self, NoteError> {
        if text.len() > NOTE_BYTES_MAX / 2 {
            return Err(NoteError::TooLong);
        }
        if !text.ends_with('\n') || !is_note_text(text) {
            return Err(NoteError::NotText);
        }
        Ok(Self { text: text.to_owned(), signatures: vec![key.sign(text)] })
    }

    /// Adds a signature of another key, a witness for instance, unless it is there already.
    pub fn add(&mut self, signature: NoteSignature) -> Result<(), NoteError> {
        if self.signatures.contains(&signature) {
            return Ok(());
        }
        if self.signatures.len() >= SIGNATURES_MAX {
            return Err(NoteError::TooManySignatures);
        }
        self.signatures.push(signature);
        if self.to_string().len() > NOTE_BYTES_MAX {
            self.signatures.pop();
            return Err(NoteError::TooLong);
        }
        Ok(())
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > NOTE_BYTES_MAX {
            return Err(NoteError::TooLong);
        }
        let note = std::str::from_utf8(bytes).map_err(|_| NoteError::NotText)?;
        if !is_note_text(note) {
            return Err(NoteError::NotText);
        }
        // The text may hold empty lines: the last one is the border.
        let border = note.rfind("\n\n").ok_or(NoteError::NoSignatures)?;
        let (text, lines) = (&note[..=border], &note[border + 2..]);
        let lines = lines.strip_suffix('\n').ok_or(NoteError::NoSignatures)?;
        if lines.matches('\n').count() >= SIGNATURES_MAX {
            return Err(NoteError::TooManySignatures);
        }
        let signatures = lines
            .split('\n')
            .enumerate()
            .map(|(position, line)| NoteSignature::parse(line).ok_or(NoteError::SignatureLine(position + 1)))
            .collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), signatures })
    }

    /// The text, ended by a newline. Do not act on it before [`SignedNote::verify`].
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Which of the keys signed. No known signature is an error, and so is one wrong signature under a known key.
    pub fn verify<'k>(&self, keys: &'k [VerifierKey]) -> Result<Vec<&'k VerifierKey>, NoteError> {
        let mut signers = Vec::new();
        for signature in &self.signatures {
            for key in keys.iter().filter(|key| key.is_signer_of(signature)) {
                if !key.verifies(&self.text, signature) {
                    return Err(NoteError::WrongSignature(key.name.clone()));
                }
                signers.push(key);
            }
        }
        if signers.is_empty() { Err(NoteError::UnknownSigner) } else { Ok(signers) }
    }
}

impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

fn is_note_text(text: &str) -> bool {
    text.bytes().all(|byte| byte >= 0x20 || byte == b'\n')
}

fn check_key_name(name: &str) -> Result<(), NoteError> {
    let allowed = |c: char| c != '+' && !c.is_whitespace() && !c.is_control();
    let fits = !name.is_empty() && name.len() <= KEY_NAME_BYTES_MAX;
    if fits && name.chars().all(allowed) { Ok(()) } else { Err(NoteError::KeyName) }
}

fn key_id(name: &str, public_key: &[u8; PUBLIC_KEY_BYTES]) -> u32 {
    let mut message = name.as_bytes().to_vec();
    message.extend_from_slice(&[b'\n', TYPE_ED25519]);
    message.extend_from_slice(public_key);
    let hash = digest(&SHA256, &message);
    hash.as_ref().iter().take(KEY_ID_BYTES).fold(0, |id, byte| (id << 8) | u32::from(*byte))
}

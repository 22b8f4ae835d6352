//! The code a person types to let a device in (RFC 8628): eight letters, easy to read out, hard to misread.

use std::fmt;

use types::Entropy;

/// Twenty consonants: no vowels, so no words; no digits, so no 0 for O (RFC 8628, 6.1).
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LETTERS: usize = 8;

/// 20^8, or 34 bits: enough for minutes of life and few guesses, which the endpoint has to see to.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UserCode([u8; LETTERS]);

impl UserCode {
    pub fn make(entropy: &dyn Entropy) -> Self {
        let mut letters = [0; LETTERS];
        let mut made = 0;
        while made < LETTERS {
            let mut byte = [0];
            entropy.fill(&mut byte);
            // 240 is the largest multiple of 20 in a byte: above it some letters would come up more often.
            if byte[0] < 240 {
                letters[made] = ALPHABET[usize::from(byte[0] % 20)];
                made += 1;
            }
        }
        Self(letters)
    }

    /// As people type it: any case, with or without the dash, spaces anywhere.
    pub fn read(text: &str) -> Option<Self> {
        let mut letters =
            text.bytes().filter(|byte| !matches!(byte, b'-' | b' ')).map(|byte| byte.to_ascii_uppercase());
        let mut code = [0; LETTERS];
        for letter in &mut code {
            *letter = letters.next().filter(|byte| ALPHABET.contains(byte))?;
        }
        letters.next().is_none().then_some(Self(code))
    }

    /// Without the dash: what is hashed and stored.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// `WDJB-MJHT`, as it is shown.
impl fmt::Display for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.as_str().split_at(LETTERS / 2);
        write!(f, "{first}-{second}")
    }
}

/// It lets a device in: not for logs.
impl fmt::Debug for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

//! AES-256-GCM over a byte string: `nonce ‖ ciphertext ‖ tag`. The only file that touches the cipher.
//!
//! Nonces are 96 random bits. For a data key that is beyond question, it seals one message in its life. A key
//! encryption key wraps one data key per secret version; at 2^32 of them the chance of a repeated nonce reaches 2^-33,
//! so it should be rotated before that, which nobody will reach by hand.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use types::{Entropy, Secret};
use zeroize::Zeroize as _;

pub const KEY_BYTES: usize = 32; // fixed: the cipher's key size
const TAG_BYTES: usize = 16; // fixed: the cipher's tag size

/// The bytes were not made with this key for this place.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("authentication failed: another key, another place, or altered bytes")]
pub struct DoesNotOpen;

/// Seals `plaintext`. `place` is not stored; whoever opens must name the same.
pub fn seal(
    key: &Secret<[u8; KEY_BYTES]>,
    entropy: &dyn Entropy,
    place: &[u8],
    plaintext: &[u8],
) -> Result<Vec<u8>, DoesNotOpen> {
    let mut nonce = [0u8; NONCE_LEN];
    entropy.fill(&mut nonce);
    // Room for everything at once: a growing buffer would leave plaintext behind in freed memory.
    let mut body = Vec::with_capacity(plaintext.len() + TAG_BYTES);
    body.extend_from_slice(plaintext);
    let sealed = cipher(key)?.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(place),
        &mut body,
    );
    if sealed.is_err() {
        body.zeroize();
        return Err(DoesNotOpen);
    }
    Ok([nonce.as_slice(), &body].concat())
}

pub fn open(
    key: &Secret<[u8; KEY_BYTES]>,
    place: &[u8],
    sealed: &[u8],
) -> Result<Secret<Vec<u8>>, DoesNotOpen> {
    let (nonce, body) = sealed.split_at_checked(NONCE_LEN).ok_or(DoesNotOpen)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| DoesNotOpen)?;
    let mut body = body.to_vec();
    match cipher(key)?.open_in_place(nonce, Aad::from(place), &mut body).map(|plain| plain.len()) {
        Ok(length) => {
            body.truncate(length);
            Ok(Secret::new(body))
        }
        Err(_) => {
            body.zeroize();
            Err(DoesNotOpen)
        }
    }
}

fn cipher(key: &Secret<[u8; KEY_BYTES]>) -> Result<LessSafeKey, DoesNotOpen> {
    UnboundKey::new(&AES_256_GCM, key.expose()).map(LessSafeKey::new).map_err(|_| DoesNotOpen)
}

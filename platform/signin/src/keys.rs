//! Public keys and sets of them (RFC 7517), as providers publish them and as we do.
//!
//! A key has exactly one algorithm. It says which, or its type does; the token never does. That is what makes a token
//! "signed" with a public key as an HMAC secret, or with `none`, nothing special here: no key has such an algorithm.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPublicKeyComponents, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

/// The algorithms we accept. All asymmetric: a shared secret would let the relying party make tokens, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    /// `Ed25519` is what RFC 9864 calls the one curve of `EdDSA` that is in use.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "ES384" => Some(Self::Es384),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

#[derive(Clone)]
pub struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: ParsedPublicKey,
}

impl PublicKey {
    /// A key of ours.
    pub fn ed25519(id: &str, bytes: &[u8; 32]) -> Option<Self> {
        let key = ParsedPublicKey::new(&ED25519, bytes).ok()?;
        Some(Self { id: Some(id.to_owned()), algorithm: Algorithm::EdDsa, key })
    }

    /// One member of a set. `None` for a key we cannot or must not verify with: another use, a kind we do not know, a
    /// private key that should never have been published.
    pub fn from_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|r#use| r#use != "sig") || jwk.contains_key("d") || jwk.contains_key("k") {
            return None;
        }
        if let Some(operations) = jwk.get("key_ops") {
            operations.as_array()?.iter().find(|operation| *operation == "verify")?;
        }
        let own = match (text("kty")?, text("crv")) {
            ("RSA", None) => Algorithm::Rs256,
            ("EC", Some("P-256")) => Algorithm::Es256,
            ("EC", Some("P-384")) => Algorithm::Es384,
            ("OKP", Some("Ed25519")) => Algorithm::EdDsa,
            _ => return None,
        };
        let algorithm = match jwk.get("alg") {
            None => own,
            Some(name) => Algorithm::named(name.as_str()?)?,
        };
        let key = match (own, algorithm) {
            (Algorithm::Rs256, Algorithm::Rs256) => rsa(jwk, &RSA_PKCS1_2048_8192_SHA256),
            (Algorithm::Rs256, Algorithm::Ps256) => rsa(jwk, &RSA_PSS_2048_8192_SHA256),
            (Algorithm::Es256, Algorithm::Es256) => point(jwk, &ECDSA_P256_SHA256_FIXED, 32),
            (Algorithm::Es384, Algorithm::Es384) => point(jwk, &ECDSA_P384_SHA384_FIXED, 48),
            (Algorithm::EdDsa, Algorithm::EdDsa) => {
                ParsedPublicKey::new(&ED25519, member(jwk, "x").filter(|x| x.len() == 32)?).ok()
            }
            _ => None,
        }?;
        Some(Self { id: text("kid").map(str::to_owned), algorithm, key })
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.verify_sig(message, signature).is_ok()
    }
}

fn member(jwk: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(jwk.get(name)?.as_str()?).ok()
}

fn rsa(jwk: &Map<String, Value>, parameters: &'static RsaParameters) -> Option<ParsedPublicKey> {
    // Some publish the sign byte of the DER form along.
    let number = |name: &str| {
        let bytes = member(jwk, name)?;
        let first = bytes.iter().position(|byte| *byte != 0)?;
        Some(bytes[first..].to_vec())
    };
    let components = RsaPublicKeyComponents { n: number("n")?, e: number("e")? };
    components.to_parsed_public_key(parameters).ok()
}

fn point(
    jwk: &Map<String, Value>,
    algorithm: &'static dyn VerificationAlgorithm,
    length: usize,
) -> Option<ParsedPublicKey> {
    const UNCOMPRESSED: u8 = 4;
    let coordinate = |name: &str| member(jwk, name).filter(|bytes| bytes.len() == length);
    let bytes = [vec![UNCOMPRESSED], coordinate("x")?, coordinate("y")?].concat();
    ParsedPublicKey::new(algorithm, bytes).ok()
}

/// The keys of one issuer.
#[derive(Clone, Default)]
pub struct KeySet(Vec<PublicKey>);

/// Why no key of a set fits a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    Unknown,
    Ambiguous,
    OtherAlgorithm,
}

impl KeySet {
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// A set as published. Keys we cannot use are passed over: a provider may add kinds we do not know. `None` if it is no set.
    pub fn from_jwks(document: &Map<String, Value>, keys_max: usize) -> Option<Self> {
        let keys = document.get("keys")?.as_array().filter(|keys| keys.len() <= keys_max)?;
        Some(Self::new(keys.iter().filter_map(|key| PublicKey::from_jwk(key.as_object()?))))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys a token with this header may have been signed with. Without an id only a set with one key of this algorithm
    /// is clear about it.
    pub(crate) fn candidates(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<&PublicKey>, Unfit> {
        let Some(id) = id else {
            let fit: Vec<_> = self.0.iter().filter(|key| key.algorithm == algorithm).collect();
            return match fit.len() {
                0 => Err(Unfit::Unknown),
                1 => Ok(fit),
                _ => Err(Unfit::Ambiguous),
            };
        };
        let named: Vec<_> = self.0.iter().filter(|key| key.id.as_deref() == Some(id)).collect();
        if named.is_empty() {
            return Err(Unfit::Unknown);
        }
        let fit: Vec<_> = named.into_iter().filter(|key| key.algorithm == algorithm).collect();
        if fit.is_empty() { Err(Unfit::OtherAlgorithm) } else { Ok(fit) }
    }
}

/// The document under which our own keys are published: public halves only, as `platform/secrets` keeps them.
pub fn jwks<'a>(keys: impl IntoIterator<Item = (&'a str, &'a [u8; 32])>) -> Value {
    let keys: Vec<Value> = keys
        .into_iter()
        .map(|(id, bytes)| {
            let x = URL_SAFE_NO_PAD.encode(bytes);
            json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": id, "x": x})
        })
        .collect();
    json!({"keys": keys})
}

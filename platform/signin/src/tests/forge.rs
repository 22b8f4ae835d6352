//! Keys we own and tokens made with them, right or wrong in every part.

use std::sync::LazyLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use types::Timestamp;

use crate::KeySet;

pub const ISSUER: &str = "https://login.example.test";
pub const CLIENT: &str = "gpuaas";
pub const NOW: i64 = 1_800_000_000;

pub fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A private key with its id, and how the provider publishes it.
pub struct Key {
    pub id: String,
    pub alg: &'static str,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Key {
    pub fn new(id: &str, alg: &'static str) -> Self {
        let pair = match alg {
            "RS256" | "PS256" => Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
            "ES256" => Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()),
            "ES384" => Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap()),
            _ => Pair::Ed(Ed25519KeyPair::generate().unwrap()),
        };
        Self { id: id.to_owned(), alg, pair }
    }

    pub fn jwk(&self) -> Value {
        let mut jwk = json!({"kid": self.id, "alg": self.alg, "use": "sig"});
        let members = match &self.pair {
            Pair::Rsa(pair) => {
                let (n, e) = numbers(pair.public_key().as_ref());
                json!({"kty": "RSA", "n": encode(n), "e": encode(e)})
            }
            Pair::Ec(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if self.alg == "ES256" { "P-256" } else { "P-384" };
                json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)})
            }
            Pair::Ed(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key())}),
        };
        jwk.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        jwk
    }

    pub fn public_bytes(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ec(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ed(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    pub fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let encoding = if self.alg == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).unwrap();
                signature
            }
            Pair::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// Signs exactly these texts, whatever they are.
    pub fn sign_texts(&self, header: &str, payload: &str) -> String {
        let signed = format!("{}.{}", encode(header), encode(payload));
        let signature = self.signature(signed.as_bytes());
        format!("{signed}.{}", encode(signature))
    }

    pub fn header(&self) -> Value {
        json!({"alg": self.alg, "kid": self.id})
    }

    pub fn sign(&self, claims: &Value) -> String {
        self.sign_texts(&self.header().to_string(), &claims.to_string())
    }

    pub fn sign_typed(&self, typ: &str, claims: &Value) -> String {
        self.sign_texts(&with(&self.header(), json!({"typ": typ})).to_string(), &claims.to_string())
    }
}

/// The two numbers of a DER RSAPublicKey.
fn numbers(der: &[u8]) -> (Vec<u8>, Vec<u8>) {
    fn element(der: &[u8]) -> (&[u8], &[u8]) {
        let (length, start) = match usize::from(der[1]) {
            short @ 0..0x80 => (short, 2),
            long => {
                let bytes = long - 0x80;
                (der[2..2 + bytes].iter().fold(0, |sum, byte| sum * 256 + usize::from(*byte)), 2 + bytes)
            }
        };
        (&der[start..start + length], &der[start + length..])
    }
    let (sequence, _) = element(der);
    let (n, rest) = element(sequence);
    let (e, _) = element(rest);
    (n.to_vec(), e.to_vec())
}

pub fn set(keys: &[&Key]) -> KeySet {
    KeySet::from_jwks(&jwks_of(keys), 100).unwrap()
}

pub fn jwks_of(keys: &[&Key]) -> Map<String, Value> {
    let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
    json!({"keys": keys}).as_object().unwrap().clone()
}

/// One key of each kind, made once.
pub static KEYS: LazyLock<Vec<Key>> =
    LazyLock::new(|| ["RS256", "PS256", "ES256", "ES384", "EdDSA"].map(|alg| Key::new(alg, alg)).into());

pub fn key(alg: &str) -> &'static Key {
    KEYS.iter().find(|key| key.alg == alg).unwrap()
}

/// An object with members added, replaced, or (with null) taken away.
pub fn with(object: &Value, changes: Value) -> Value {
    let mut object = object.as_object().unwrap().clone();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
    Value::Object(object)
}

pub fn id_claims() -> Value {
    json!({"iss": ISSUER, "sub": "ada", "aud": CLIENT, "exp": NOW + 300, "iat": NOW, "auth_time": NOW - 10, "nonce": "n"})
}

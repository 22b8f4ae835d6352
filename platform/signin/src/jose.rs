//! Signed tokens (RFC 7515, 7519): checking those of others, making ours.
//!
//! Written on `aws-lc-rs` directly. `jsonwebtoken` was tried: it takes unknown `crit`, any `typ` and a future `nbf`, and reads
//! the machine's clock, so all of this would still be here, around it.
//!
//! The order is fixed: size, form, header, key, signature, and only then what the token says. Nothing it says is used before
//! the signature has been checked, except `kid` (which key to try) and `alg` (which must be the key's own).
//!
//! A token is of one [`TokenKind`], and never passes for another: the header's `typ` and the claims each kind must have and
//! must not have see to that (RFC 8725, 3.11 and 3.12). Whether a `jti` was seen before is for the caller, who has a database.

use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use types::{Secret, Timestamp};

use crate::keys::{Algorithm, KeySet, Unfit};
use crate::strict;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Who signed in, from a provider.
    Id,
    /// Who was signed out, from a provider (OpenID Connect Back-Channel Logout).
    Logout,
    /// A machine proves who it is with its private key (RFC 7523).
    ClientAssertion,
    /// What we hand out to machines (RFC 9068).
    Access,
}

impl TokenKind {
    /// Providers type id tokens as `JWT` or not at all, so a `typ` of another kind is what is refused there.
    fn accepts(self, typ: Option<&str>) -> bool {
        let typ = typ.map(str::to_ascii_lowercase);
        let typ = typ.as_deref().map(|typ| typ.strip_prefix("application/").unwrap_or(typ));
        match self {
            Self::Id => matches!(typ, None | Some("jwt")),
            Self::Logout => typ == Some("logout+jwt"),
            Self::ClientAssertion => matches!(typ, None | Some("jwt" | "client-authentication+jwt")),
            Self::Access => typ == Some("at+jwt"),
        }
    }

    const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Id => &["sub", "iat"],
            Self::Logout => &["iat", "jti", "events"],
            Self::ClientAssertion => &["sub", "jti"],
            Self::Access => &["sub", "iat", "jti"],
        }
    }

    const fn forbidden(self) -> &'static [&'static str] {
        match self {
            Self::Id | Self::ClientAssertion | Self::Access => &["events"],
            Self::Logout => &["nonce"],
        }
    }
}

/// What a token must be.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    pub kind: TokenKind,
    pub issuer: &'a str,
    pub audience: &'a str,
    pub now: Timestamp,
    /// How far the issuer's clock may be from ours.
    pub skew: Duration,
    pub bytes_max: usize,
    /// How much longer it may be good for, at most. For kinds whose `jti` has to be remembered as long.
    pub lifetime_max: Option<Duration>,
}

/// Why a token is not accepted. The texts are for people and say nothing that came with the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is larger than a token may be")]
    TooLarge,
    #[error("it is not three parts with dots between")]
    NotThreeParts,
    #[error("its {0} is not base64url")]
    NotBase64(&'static str),
    #[error("its {0} is not a JSON object")]
    NotAnObject(&'static str),
    #[error("its {0} says something twice")]
    RepeatedName(&'static str),
    #[error("its algorithm is not one we accept")]
    Algorithm,
    #[error("its header has {0}, which we do not accept")]
    Header(&'static str),
    #[error("it is a token of another kind")]
    Kind,
    #[error("it is signed with a key its issuer does not publish")]
    UnknownKey,
    #[error("it does not say which of several keys signed it")]
    AmbiguousKey,
    #[error("its algorithm is not that of its key")]
    OtherAlgorithm,
    #[error("its signature is wrong")]
    Signature,
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error("its {0} has the wrong form")]
    Malformed(&'static str),
    #[error("it comes from another issuer")]
    Issuer,
    #[error("it was made for somebody else")]
    Audience,
    #[error("it was asked for by somebody else")]
    AuthorizedParty,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYetValid,
    #[error("its {0} lies in the future")]
    Future(&'static str),
    #[error("it is valid for too long")]
    LivesTooLong,
}

/// What a token whose signature was checked says.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    map: Map<String, Value>,
    algorithm: Algorithm,
}

impl Claims {
    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    /// The algorithm it was signed with.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// A text that is not empty; a value of another type is a refusal, not an absence.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        match self.map.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(Refusal::Malformed(name)),
        }
    }

    /// A time in whole seconds (RFC 7519's NumericDate without a fraction, as everybody writes it).
    pub fn time(&self, name: &'static str) -> Result<Option<Timestamp>, Refusal> {
        let seconds = match self.map.get(name) {
            None => return Ok(None),
            Some(value) => value.as_i64().ok_or(Refusal::Malformed(name))?,
        };
        Timestamp::from_second(seconds).map(Some).map_err(|_| Refusal::Malformed(name))
    }

    fn require_text(&self, name: &'static str) -> Result<&str, Refusal> {
        self.text(name)?.ok_or(Refusal::Missing(name))
    }

    fn require_time(&self, name: &'static str) -> Result<Timestamp, Refusal> {
        self.time(name)?.ok_or(Refusal::Missing(name))
    }
}

/// Checks a token; what it says is only to be had this way.
pub fn verify(token: &str, keys: &KeySet, expected: &Expected<'_>) -> Result<Claims, Refusal> {
    if token.len() > expected.bytes_max {
        return Err(Refusal::TooLarge);
    }
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Refusal::NotThreeParts);
    };
    let signed = &token[..header.len() + 1 + payload.len()];
    let (algorithm, key_id) = read_header(&object(header, "header")?, expected.kind)?;
    let signature = decode(signature, "signature")?;
    let candidates = keys.candidates(key_id.as_deref(), algorithm).map_err(|unfit| match unfit {
        Unfit::Unknown => Refusal::UnknownKey,
        Unfit::Ambiguous => Refusal::AmbiguousKey,
        Unfit::OtherAlgorithm => Refusal::OtherAlgorithm,
    })?;
    let key = candidates.into_iter().find(|key| key.verifies(signed.as_bytes(), &signature));
    let algorithm = key.ok_or(Refusal::Signature)?.algorithm();
    let claims = Claims { map: object(payload, "payload")?, algorithm };
    check_kind(&claims, expected.kind)?;
    check_parties(&claims, expected)?;
    check_times(&claims, expected)?;
    Ok(claims)
}

/// Whose token this claims to be, before anything about it was checked: to find the keys to check it with, and for nothing
/// else. A machine that asserts who it is need not say so anywhere but inside.
pub fn claimed_issuer(token: &str, bytes_max: usize) -> Option<String> {
    if token.len() > bytes_max {
        return None;
    }
    let claims = object(token.split('.').nth(1)?, "payload").ok()?;
    claims.get("iss").and_then(Value::as_str).map(str::to_owned)
}

fn decode(part: &str, name: &'static str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Refusal::NotBase64(name))
}

fn object(part: &str, name: &'static str) -> Result<Map<String, Value>, Refusal> {
    strict::object(&decode(part, name)?).map_err(|fault| match fault {
        strict::Fault::NotAnObject => Refusal::NotAnObject(name),
        strict::Fault::RepeatedName => Refusal::RepeatedName(name),
    })
}

/// `crit` and `b64` change what is signed; the others bring a key along or say where to fetch one.
const FORBIDDEN_IN_HEADER: &[&str] = &["crit", "b64", "jwk", "jku", "x5u", "zip"];

fn read_header(header: &Map<String, Value>, kind: TokenKind) -> Result<(Algorithm, Option<String>), Refusal> {
    if let Some(name) = FORBIDDEN_IN_HEADER.iter().find(|name| header.contains_key(**name)) {
        return Err(Refusal::Header(name));
    }
    let text = |name: &'static str| match header.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(Refusal::Malformed(name)),
    };
    let algorithm = text("alg")?.and_then(Algorithm::named).ok_or(Refusal::Algorithm)?;
    if !kind.accepts(text("typ")?) {
        return Err(Refusal::Kind);
    }
    Ok((algorithm, text("kid")?.map(str::to_owned)))
}

fn check_kind(claims: &Claims, kind: TokenKind) -> Result<(), Refusal> {
    if kind.forbidden().iter().any(|name| claims.map.contains_key(*name)) {
        return Err(Refusal::Kind);
    }
    for name in kind.required() {
        if !claims.map.contains_key(*name) {
            return Err(Refusal::Missing(name));
        }
    }
    // OpenID Connect Core, 2: a subject has at most 255 characters of ASCII.
    let subject_fits = |subject: &str| subject.len() <= 255 && subject.is_ascii();
    if claims.text("sub")?.is_some_and(|subject| !subject_fits(subject)) {
        return Err(Refusal::Malformed("sub"));
    }
    claims.text("jti")?;
    Ok(())
}

fn check_parties(claims: &Claims, expected: &Expected<'_>) -> Result<(), Refusal> {
    let issuer = claims.require_text("iss")?;
    if issuer != expected.issuer {
        return Err(Refusal::Issuer);
    }
    if expected.kind == TokenKind::ClientAssertion && claims.text("sub")? != Some(issuer) {
        return Err(Refusal::Issuer);
    }
    let audience: Vec<&str> = match claims.map.get("aud") {
        None => return Err(Refusal::Missing("aud")),
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => {
            let texts = several.iter().map(|one| one.as_str().ok_or(Refusal::Malformed("aud")));
            texts.collect::<Result<_, _>>()?
        }
        Some(_) => return Err(Refusal::Malformed("aud")),
    };
    if !audience.contains(&expected.audience) {
        return Err(Refusal::Audience);
    }
    match expected.kind {
        // An assertion that others accept as well is one that others can pass on.
        TokenKind::ClientAssertion if audience.len() > 1 => Err(Refusal::Audience),
        TokenKind::Id => check_authorized_party(claims, audience.len() > 1, expected.audience),
        _ => Ok(()),
    }
}

/// With several audiences a token must say that it was us who asked for it; if it says who, it must be us.
fn check_authorized_party(claims: &Claims, several: bool, us: &str) -> Result<(), Refusal> {
    match claims.text("azp")? {
        Some(party) if party == us => Ok(()),
        None if !several => Ok(()),
        _ => Err(Refusal::AuthorizedParty),
    }
}

fn check_times(claims: &Claims, expected: &Expected<'_>) -> Result<(), Refusal> {
    let latest = later(expected.now, expected.skew);
    let expires = claims.require_time("exp")?;
    if later(expires, expected.skew) <= expected.now {
        return Err(Refusal::Expired);
    }
    if expected.lifetime_max.is_some_and(|lifetime| expires > later(latest, lifetime)) {
        return Err(Refusal::LivesTooLong);
    }
    if claims.time("nbf")?.is_some_and(|from| from > latest) {
        return Err(Refusal::NotYetValid);
    }
    for name in ["iat", "auth_time"] {
        if claims.time(name)?.is_some_and(|at| at > latest) {
            return Err(Refusal::Future(name));
        }
    }
    Ok(())
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Signs our own tokens.
pub struct Signer {
    key_id: String,
    pair: Ed25519KeyPair,
}

impl Signer {
    /// `None` if the seed makes no key. `key_id` and `seed` as `secrets::SigningKey` has them.
    pub fn new(key_id: &str, seed: &Secret<[u8; 32]>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose()).ok()?;
        Some(Self { key_id: key_id.to_owned(), pair })
    }

    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    pub fn public_key(&self) -> Option<[u8; 32]> {
        self.pair.public_key().as_ref().try_into().ok()
    }

    /// An access token (`at+jwt`). The claims are the caller's; [`verify`] wants `iss`, `sub`, `aud`, `exp`, `iat` and `jti`.
    pub fn access_token(&self, claims: &Map<String, Value>) -> Secret {
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": self.key_id});
        let payload = Value::Object(claims.clone());
        let signed = [header, payload].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = self.pair.sign(signed.as_bytes());
        Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

//! Tokens as an attacker makes them, each refused for the reason it should be.

use std::time::Duration;

use aws_lc_rs::hmac;
use proptest::prelude::*;
use serde_json::{Value, json};
use types::Secret;

use super::forge::*;
use crate::*;

fn expected(kind: TokenKind) -> Expected<'static> {
    let lifetime_max =
        matches!(kind, TokenKind::Logout | TokenKind::ClientAssertion).then(|| Duration::from_secs(600));
    let (now, skew) = (now(), Duration::from_secs(60));
    Expected { kind, issuer: ISSUER, audience: CLIENT, now, skew, bytes_max: 16 * 1024, lifetime_max }
}

fn check_as(kind: TokenKind, token: &str, outcome: Result<(), Refusal>) {
    let keys: Vec<&Key> = KEYS.iter().collect();
    let got = verify(token, &set(&keys), &expected(kind)).map(drop);
    assert_eq!(got, outcome, "as {kind:?}: {}", &token[..token.len().min(300)]);
}

fn check(token: &str, outcome: Result<(), Refusal>) {
    check_as(TokenKind::Id, token, outcome);
}

fn check_claims(changes: Value, outcome: Result<(), Refusal>) {
    check(&key("ES256").sign(&with(&id_claims(), changes)), outcome);
}

fn check_header(changes: Value, outcome: Result<(), Refusal>) {
    let key = key("ES256");
    let header = with(&key.header(), changes).to_string();
    check(&key.sign_texts(&header, &id_claims().to_string()), outcome);
}

#[test]
fn a_right_token_passes_with_each_algorithm() {
    for key in KEYS.iter() {
        check(&key.sign(&id_claims()), Ok(()));
        check(&key.sign_typed("JWT", &id_claims()), Ok(()));
    }
    // The name of RFC 9864.
    let key = key("EdDSA");
    check(&key.sign_texts(r#"{"alg":"Ed25519","kid":"EdDSA"}"#, &id_claims().to_string()), Ok(()));
}

#[test]
fn forged_signatures_are_refused() {
    let right = key("RS256").sign(&id_claims());
    let (signed, signature) = right.rsplit_once('.').unwrap();
    let other = key("ES256").sign(&with(&id_claims(), json!({"sub": "eve"})));
    let (_, payload) = other.rsplit_once('.').unwrap().0.split_once('.').unwrap();
    let header = right.split('.').next().unwrap();
    check(&format!("{header}.{payload}.{signature}"), Err(Refusal::Signature));
    check(&format!("{signed}."), Err(Refusal::Signature));
    check(&format!("{signed}.{}", &signature[..signature.len() - 2]), Err(Refusal::Signature));
    // Somebody else's key under a known id.
    let stranger = Key::new("ES256", "ES256");
    check(&stranger.sign(&id_claims()), Err(Refusal::Signature));
    check(&Key::new("unheard-of", "ES256").sign(&id_claims()), Err(Refusal::UnknownKey));
}

#[test]
fn the_key_decides_the_algorithm() {
    let claims = id_claims().to_string();
    for alg in ["none", "None", "NONE", "HS256", "HS384", "HS512", "RS512", "ES512", "RSA1_5", ""] {
        check_header(json!({"alg": alg}), Err(Refusal::Algorithm));
    }
    check_header(json!({"alg": 7}), Err(Refusal::Malformed("alg")));
    check_header(json!({"alg": null}), Err(Refusal::Algorithm));
    // Signed with the public key as if it were a shared secret.
    for public in [key("RS256").public_bytes(), key("RS256").jwk().to_string().into_bytes()] {
        let signed = format!("{}.{}", encode(r#"{"alg":"HS256","kid":"RS256"}"#), encode(&claims));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public), signed.as_bytes());
        check(&format!("{signed}.{}", encode(tag)), Err(Refusal::Algorithm));
    }
    // The same RSA key with the other padding, or another key's name.
    check(
        &key("RS256").sign_texts(r#"{"alg":"PS256","kid":"RS256"}"#, &claims),
        Err(Refusal::OtherAlgorithm),
    );
    check(
        &key("RS256").sign_texts(r#"{"alg":"ES256","kid":"RS256"}"#, &claims),
        Err(Refusal::OtherAlgorithm),
    );
    check(&key("RS256").sign_texts(r#"{"alg":"PS256","kid":"PS256"}"#, &claims), Err(Refusal::Signature));
    // ES384's signature under ES256's name.
    check(&key("ES384").sign_texts(r#"{"alg":"ES256","kid":"ES256"}"#, &claims), Err(Refusal::Signature));
}

#[test]
fn headers_that_bring_keys_or_change_the_rules_are_refused() {
    let own = Key::new("mine", "ES256");
    for (name, value) in [
        ("crit", json!(["exp"])),
        ("crit", json!([])),
        ("b64", json!(false)),
        ("jwk", own.jwk()),
        ("jku", json!("https://evil.test/jwks")),
        ("x5u", json!("https://evil.test/x5u")),
        ("zip", json!("DEF")),
    ] {
        let header = with(&own.header(), json!({name: value})).to_string();
        check(&own.sign_texts(&header, &id_claims().to_string()), Err(Refusal::Header(name)));
    }
}

#[test]
fn a_token_without_a_key_id_needs_a_set_that_is_clear() {
    let token = key("ES256").sign_texts(r#"{"alg":"ES256"}"#, &id_claims().to_string());
    check(&token, Ok(()));
    let other = Key::new("second", "ES256");
    let got = verify(&token, &set(&[key("ES256"), &other]), &expected(TokenKind::Id));
    assert_eq!(got.unwrap_err(), Refusal::AmbiguousKey);
    let got = verify(&token, &set(&[key("RS256")]), &expected(TokenKind::Id));
    assert_eq!(got.unwrap_err(), Refusal::UnknownKey);
}

#[test]
fn one_kind_of_token_does_not_pass_for_another() {
    let event = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    let logout = with(&id_claims(), json!({"nonce": null, "jti": "j", "events": event}));
    let assertion = with(&id_claims(), json!({"iss": ISSUER, "sub": ISSUER, "jti": "j", "nonce": null}));
    let access = with(&id_claims(), json!({"jti": "j", "nonce": null}));
    let key = key("EdDSA");
    check_as(TokenKind::Logout, &key.sign_typed("logout+jwt", &logout), Ok(()));
    check_as(TokenKind::Logout, &key.sign_typed("application/logout+JWT", &logout), Ok(()));
    check_as(TokenKind::ClientAssertion, &key.sign(&assertion), Ok(()));
    check_as(TokenKind::Access, &key.sign_typed("at+jwt", &access), Ok(()));

    for typ in ["logout+jwt", "at+jwt", "secevent+jwt", "dpop+jwt", ""] {
        check(&key.sign_typed(typ, &id_claims()), Err(Refusal::Kind));
    }
    check(&key.sign_typed("logout+jwt", &logout), Err(Refusal::Kind));
    check(&key.sign(&logout), Err(Refusal::Kind)); // without its type it is still told apart
    check_as(TokenKind::Logout, &key.sign(&logout), Err(Refusal::Kind));
    check_as(TokenKind::Logout, &key.sign_typed("JWT", &logout), Err(Refusal::Kind));
    check_as(
        TokenKind::Logout,
        &key.sign_typed("logout+jwt", &with(&logout, json!({"nonce": "n"}))),
        Err(Refusal::Kind),
    );
    for kind in [TokenKind::Logout, TokenKind::Access] {
        check_as(kind, &key.sign(&id_claims()), Err(Refusal::Kind));
    }
    check_as(TokenKind::ClientAssertion, &key.sign_typed("at+jwt", &access), Err(Refusal::Kind));
    check_as(TokenKind::ClientAssertion, &key.sign(&access), Err(Refusal::Issuer)); // iss and sub differ
    check_as(TokenKind::Access, &key.sign_typed("JWT", &access), Err(Refusal::Kind));
    let several = with(&assertion, json!({"aud": [CLIENT, "another"]}));
    check_as(TokenKind::ClientAssertion, &key.sign(&several), Err(Refusal::Audience));
    for name in ["jti", "sub", "iat"] {
        let token = key.sign_typed("at+jwt", &with(&access, json!({name: null})));
        check_as(TokenKind::Access, &token, Err(Refusal::Missing(name)));
    }
    check_as(
        TokenKind::Logout,
        &key.sign_typed("logout+jwt", &with(&logout, json!({"events": null}))),
        Err(Refusal::Missing("events")),
    );
}

#[test]
fn an_assertion_names_the_machine_whose_keys_to_try() {
    let token = key("EdDSA").sign(&json!({"iss": "sva_1", "sub": "sva_1"}));
    assert_eq!(claimed_issuer(&token, 1024).as_deref(), Some("sva_1"));
    assert_eq!(claimed_issuer(&token, 10), None);
    for rubbish in
        ["", ".", "a.b.c", &format!(".{}.", encode("[]")), &format!(".{}.", encode(r#"{"iss":7}"#))]
    {
        assert_eq!(claimed_issuer(rubbish, 1024), None);
    }
}

#[test]
fn issuer_and_audience_must_be_exactly_ours() {
    for issuer in ["https://login.example.test/", "https://LOGIN.example.test", "https://evil.test"] {
        check_claims(json!({"iss": issuer}), Err(Refusal::Issuer));
    }
    check_claims(json!({"iss": [ISSUER]}), Err(Refusal::Malformed("iss")));
    check_claims(json!({"iss": null}), Err(Refusal::Missing("iss")));
    check_claims(json!({"aud": "another"}), Err(Refusal::Audience));
    check_claims(json!({"aud": []}), Err(Refusal::Audience));
    check_claims(json!({"aud": [CLIENT]}), Ok(()));
    check_claims(json!({"aud": [CLIENT, 7]}), Err(Refusal::Malformed("aud")));
    check_claims(json!({"aud": {"gpuaas": true}}), Err(Refusal::Malformed("aud")));
    check_claims(json!({"aud": null}), Err(Refusal::Missing("aud")));
    check_claims(json!({"aud": [CLIENT, "another"]}), Err(Refusal::AuthorizedParty));
    check_claims(json!({"aud": [CLIENT, "another"], "azp": CLIENT}), Ok(()));
    check_claims(json!({"aud": [CLIENT, "another"], "azp": "another"}), Err(Refusal::AuthorizedParty));
    check_claims(json!({"azp": "another"}), Err(Refusal::AuthorizedParty));
    check_claims(json!({"azp": CLIENT}), Ok(()));
}

#[test]
fn times_are_judged_by_our_clock_give_or_take_the_skew() {
    check_claims(json!({"exp": NOW - 60}), Err(Refusal::Expired));
    check_claims(json!({"exp": NOW - 59}), Ok(()));
    check_claims(json!({"exp": -1}), Err(Refusal::Expired));
    check_claims(json!({"exp": null}), Err(Refusal::Missing("exp")));
    for exp in
        [json!("1900000000"), json!(1.9e9), json!(u64::MAX), json!(i64::MAX), json!([NOW]), json!(true)]
    {
        check_claims(json!({"exp": exp}), Err(Refusal::Malformed("exp")));
    }
    check_claims(json!({"nbf": NOW + 60}), Ok(()));
    check_claims(json!({"nbf": NOW + 61}), Err(Refusal::NotYetValid));
    check_claims(json!({"nbf": "soon"}), Err(Refusal::Malformed("nbf")));
    check_claims(json!({"iat": NOW + 60}), Ok(()));
    check_claims(json!({"iat": NOW + 61}), Err(Refusal::Future("iat")));
    check_claims(json!({"iat": null}), Err(Refusal::Missing("iat")));
    check_claims(json!({"auth_time": NOW + 61}), Err(Refusal::Future("auth_time")));
    check_claims(json!({"auth_time": "now"}), Err(Refusal::Malformed("auth_time")));

    let assertion = json!({"iss": ISSUER, "sub": ISSUER, "aud": CLIENT, "jti": "j", "exp": NOW + 660});
    check_as(TokenKind::ClientAssertion, &key("EdDSA").sign(&assertion), Ok(()));
    let long = with(&assertion, json!({"exp": NOW + 661}));
    check_as(TokenKind::ClientAssertion, &key("EdDSA").sign(&long), Err(Refusal::LivesTooLong));
}

#[test]
fn subjects_are_short_plain_text() {
    check_claims(json!({"sub": "a".repeat(255)}), Ok(()));
    check_claims(json!({"sub": "a".repeat(256)}), Err(Refusal::Malformed("sub")));
    for sub in [json!(""), json!(7), json!("å"), json!(["ada"])] {
        check_claims(json!({"sub": sub}), Err(Refusal::Malformed("sub")));
    }
    check_claims(json!({"sub": null}), Err(Refusal::Missing("sub")));
}

#[test]
fn what_is_said_twice_is_refused() {
    let key = key("ES256");
    let claims = id_claims().to_string();
    let twice = format!("{},\"sub\":\"eve\"}}", &claims[..claims.len() - 1]);
    check(&key.sign_texts(&key.header().to_string(), &twice), Err(Refusal::RepeatedName("payload")));
    let deep = claims.replace("\"ada\"", "\"ada\",\"x\":{\"y\":[{\"z\":1,\"z\":2}]}");
    check(&key.sign_texts(&key.header().to_string(), &deep), Err(Refusal::RepeatedName("payload")));
    let header = r#"{"alg":"ES256","kid":"ES256","alg":"none"}"#;
    check(&key.sign_texts(header, &claims), Err(Refusal::RepeatedName("header")));
}

#[test]
fn rubbish_is_refused_for_what_it_is() {
    let right = key("ES256").sign(&id_claims());
    let (header, rest) = right.split_once('.').unwrap();
    for text in ["", "x", "a.b", "a.b.c.d", "a.b.c.d.e", &format!("{right}."), &right[..header.len() + 9]] {
        check(text, Err(Refusal::NotThreeParts));
    }
    check(&format!("{header}=.{rest}"), Err(Refusal::NotBase64("header")));
    check(&format!("+{header}.{rest}"), Err(Refusal::NotBase64("header")));
    check(&format!("{right}\n"), Err(Refusal::NotBase64("signature")));
    check("..", Err(Refusal::NotAnObject("header")));
    check(&format!("{}.{rest}", encode("[]")), Err(Refusal::NotAnObject("header")));
    check(&format!("{}.{rest}", encode("{")), Err(Refusal::NotAnObject("header")));
    check(&format!("{}.{rest}", encode([0xff, 0xfe])), Err(Refusal::NotAnObject("header")));
    let key = key("ES256");
    check(&key.sign_texts(&key.header().to_string(), "[1]"), Err(Refusal::NotAnObject("payload")));
    check(
        &key.sign_texts(&key.header().to_string(), &"[".repeat(9_000)),
        Err(Refusal::NotAnObject("payload")),
    );
    let huge = with(&key.header(), json!({"x": "x".repeat(1024 * 1024)})).to_string();
    check(&key.sign_texts(&huge, &id_claims().to_string()), Err(Refusal::TooLarge));
}

#[test]
fn keys_that_must_not_be_used_are_passed_over() {
    let rsa = key("RS256").jwk();
    let ec = key("ES256").jwk();
    let usable = |jwk: &Value| PublicKey::from_jwk(jwk.as_object().unwrap()).is_some();
    assert!(usable(&rsa) && usable(&ec));
    assert!(usable(&with(&rsa, json!({"alg": null, "use": null, "kid": null}))));
    assert!(usable(&with(&rsa, json!({"use": null, "key_ops": ["verify"]}))));
    for (jwk, changes) in [
        (&rsa, json!({"use": "enc"})),
        (&rsa, json!({"key_ops": ["encrypt"]})),
        (&rsa, json!({"d": "AQAB"})),
        (&rsa, json!({"alg": "HS256"})),
        (&rsa, json!({"alg": "RSA-OAEP"})),
        (&rsa, json!({"alg": "ES256"})),
        (&rsa, json!({"n": "AAAA"})),
        (&rsa, json!({"e": ""})),
        (&ec, json!({"crv": "P-384"})),
        (&ec, json!({"crv": "secp256k1"})),
        (&ec, json!({"x": encode([7; 32])})), // not on the curve
        (&ec, json!({"x": encode([7; 31])})),
        (&ec, json!({"kty": "oct", "k": "c2VjcmV0"})),
    ] {
        assert!(!usable(&with(jwk, changes.clone())), "{changes}");
    }
    assert!(KeySet::from_jwks(json!({"keys": {}}).as_object().unwrap(), 9).is_none());
    assert!(KeySet::from_jwks(json!({"keys": [1, 2]}).as_object().unwrap(), 1).is_none());
}

/// 1,024 bits can be broken; the published set cannot talk us into them.
#[test]
fn short_rsa_keys_verify_nothing() {
    let jwk = json!({"kty": "RSA", "kid": "RS256", "e": "AQAB", "n": encode([0xc1; 128])});
    let keys = KeySet::from_jwks(json!({"keys": [jwk]}).as_object().unwrap(), 9).unwrap();
    let got = verify(&key("RS256").sign(&id_claims()), &keys, &expected(TokenKind::Id));
    assert_eq!(got.unwrap_err(), Refusal::Signature);
}

#[test]
fn our_own_tokens_verify_with_the_document_we_publish() {
    let signer = Signer::new("sec_1.1", &Secret::new([7; 32])).unwrap();
    let claims =
        json!({"iss": ISSUER, "sub": "sva_1", "aud": CLIENT, "iat": NOW, "exp": NOW + 600, "jti": "j"});
    let token = signer.access_token(claims.as_object().unwrap());
    let public = signer.public_key().unwrap();
    let published = jwks([(signer.key_id(), &public)]);
    let keys = KeySet::from_jwks(published.as_object().unwrap(), 9).unwrap();
    let got = verify(token.expose(), &keys, &expected(TokenKind::Access)).unwrap();
    assert_eq!(got.map(), claims.as_object().unwrap());
    assert!(!published.to_string().contains("\"d\""));
    let keys = KeySet::new(PublicKey::ed25519("sec_1.1", &public));
    assert!(verify(token.expose(), &keys, &expected(TokenKind::Access)).is_ok());
    let keys = KeySet::new(PublicKey::ed25519("sec_1.2", &public));
    let got = verify(token.expose(), &keys, &expected(TokenKind::Access));
    assert_eq!(got.unwrap_err(), Refusal::UnknownKey);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn no_text_panics_or_passes(text in ".{0,200}") {
        prop_assert!(verify(&text, &set(&[key("ES256")]), &expected(TokenKind::Id)).is_err());
    }

    #[test]
    fn no_header_and_payload_panic(header in any::<Vec<u8>>(), payload in any::<Vec<u8>>(), signature in any::<Vec<u8>>()) {
        let token = [header, payload, signature].map(encode).join(".");
        prop_assert!(verify(&token, &set(&[key("ES256")]), &expected(TokenKind::Id)).is_err());
    }

    /// A right token with one character changed anywhere is not one.
    #[test]
    fn no_changed_token_passes(at in 0usize..2_000, to in proptest::char::range('!', '~')) {
        let mut token: Vec<char> = key("EdDSA").sign(&id_claims()).chars().collect();
        let at = at % token.len();
        prop_assume!(token[at] != to);
        token[at] = to;
        let token: String = token.into_iter().collect();
        prop_assert!(verify(&token, &set(&[key("EdDSA")]), &expected(TokenKind::Id)).is_err());
    }

    /// Whatever is signed with a right key either has the claims it must have, or is refused; nothing panics.
    #[test]
    fn no_signed_claims_panic(name in "(iss|sub|aud|exp|iat|nbf|azp|auth_time|jti)", value in json_value()) {
        let token = key("EdDSA").sign(&with(&id_claims(), json!({name: value})));
        let _ = verify(&token, &set(&[key("EdDSA")]), &expected(TokenKind::Id));
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| proptest::collection::vec(inner, 0..4).prop_map(Value::from))
}

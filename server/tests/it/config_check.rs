//! `gpuaasd config check`: what would stop a start, told before it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use testkit::{Scratch, binary};

/// Writes a certificate that ends so many days from now, and its key.
fn certificate(directory: &Path, name: &str, days: i64) -> (PathBuf, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let day = Duration::from_secs(24 * 3600);
    let now = SystemTime::now();
    params.not_before = (now - 1000 * day).into();
    params.not_after = if days < 0 { now - day } else { now + u32::try_from(days).unwrap() * day }.into();
    let made = params.self_signed(&key).unwrap();
    let paths = (directory.join(format!("{name}.pem")), directory.join(format!("{name}.key")));
    std::fs::write(&paths.0, made.pem()).unwrap();
    std::fs::write(&paths.1, key.serialize_pem()).unwrap();
    paths
}

fn check(directory: &Path, text: &str, environment: &[(&str, &str)], arguments: &[&str]) -> (bool, String) {
    let file = directory.join("gpuaas.toml");
    std::fs::write(&file, text).unwrap();
    let output = Command::new(binary())
        .args(["config", "check"])
        .args(arguments)
        .arg("--config")
        .arg(&file)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    (output.status.success(), crate::installation::text(&output))
}

#[test]
fn certificates_are_looked_at_before_the_start() {
    let directory = Scratch::new("config-check");
    let at = directory.path();
    let (good, good_key) = certificate(at, "good", 400);
    let (soon, soon_key) = certificate(at, "soon", 10);
    let (expired, expired_key) = certificate(at, "expired", -1);
    let (garbage, empty) = (at.join("garbage.pem"), at.join("empty.pem"));
    std::fs::write(&garbage, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::write(&empty, "").unwrap();
    let missing = at.join("missing.pem");
    let database = "[database]\nhost = \"/run/postgresql\"\npassword_dir = \"/nowhere\"\n";
    let cases = [
        (&good, &good_key, true, "is valid."),
        (&soon, &soon_key, true, "renew it in time"),
        (&expired, &expired_key, false, "expired at"),
        (&good, &soon_key, false, "do not fit together"),
        (&missing, &good_key, false, "missing.pem"),
        (&garbage, &good_key, false, "garbage.pem"),
        (&empty, &good_key, false, "holds no certificate"),
        (&good, &missing, false, "missing.pem"),
    ];
    for (chain, key, fine, words) in cases {
        let public =
            format!("[public]\nlisten = \"0.0.0.0:443\"\ntls_certificate = {chain:?}\ntls_key = {key:?}\n");
        let (passed, said) = check(at, &format!("{database}{public}"), &[], &[]);
        assert!(passed == fine && said.contains(words), "{chain:?} {key:?}: {said}");
        // A node listener's are looked at as well, and who signs the nodes'.
        let node = format!(
            "[node]\nlisten = \"0.0.0.0:8443\"\ntls_certificate = {chain:?}\ntls_key = {key:?}\nclient_ca = {chain:?}\n"
        );
        let (passed, said) = check(at, &format!("{database}{node}"), &[], &[]);
        assert!(passed == fine && said.contains(words), "{chain:?} {key:?}: {said}");
    }
    let over_tls = format!("[database]\nhost = \"db\"\npassword_dir = \"/nowhere\"\ntls_ca = {expired:?}\n");
    let (passed, said) = check(at, &over_tls, &[], &[]);
    assert!(!passed && said.contains("database.tls_ca") && said.contains("expired at"), "{said}");
}

#[test]
fn the_mode_comes_from_the_environment_too_and_roles_ask_for_their_passwords() {
    let directory = Scratch::new("config-mode");
    let at = directory.path();
    let plain = format!(
        "[database]\nhost = \"/run/postgresql\"\npassword_dir = {at:?}\n[public]\nlisten = \"127.0.0.1:8080\"\n"
    );
    let (passed, said) = check(at, &plain, &[], &[]);
    assert!(!passed && said.contains("plaintext"), "production is the default: {said}");
    let (passed, said) = check(at, &plain, &[("GPUAAS_MODE", "development")], &[]);
    assert!(passed, "{said}");
    let strict = format!("mode = \"development\"\n{plain}");
    let (passed, said) = check(at, &strict, &[("GPUAAS_MODE", "production")], &[]);
    assert!(!passed && said.contains("plaintext"), "the environment beats the file: {said}");
    let (passed, said) = check(at, &strict, &[], &["--role", "outbox-relay"]);
    assert!(!passed && said.contains("relay.password"), "{said}");
    std::fs::write(at.join("relay.password"), "its own\n").unwrap();
    let (passed, said) = check(at, &strict, &[], &["--role", "outbox-relay"]);
    assert!(passed, "{said}");
}

#[test]
fn roles_ask_for_their_sections_in_check_and_run_alike() {
    let directory = Scratch::new("config-sections");
    let at = directory.path();
    for login in ["app", "sealer", "relay"] {
        std::fs::write(at.join(format!("{login}.password")), "its own\n").unwrap();
    }
    let database = format!("mode = \"development\"\n[database]\nhost = {at:?}\npassword_dir = {at:?}\n");
    let public = "[public]\nlisten = \"127.0.0.1:0\"\n";
    let key = at.join("secrets.key");
    std::fs::write(&key, [7u8; 32]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let secrets = format!("[secrets]\nkey_file = {key:?}\n");
    let cases = [
        ("api", secrets.as_str(), "the role api needs the section [public]"),
        ("api", public, "the role api needs the section [secrets]"),
        ("audit-sealer", "", "the role audit-sealer needs the section [secrets]"),
    ];
    for (role, sections, words) in cases {
        let (passed, said) = check(at, &format!("{database}{sections}"), &[], &["--role", role]);
        assert!(!passed && said.contains(words), "{role}: {said}");
        let ran =
            crate::installation::gpuaasd(&["run", "--role", role], &[("--config", &at.join("gpuaas.toml"))]);
        let said = crate::installation::text(&ran);
        assert!(!ran.status.success() && said.contains(words), "{role}: {said}");
    }
    let whole = format!("{database}{public}{secrets}");
    let (passed, said) = check(at, &whole, &[], &["--role", "api,outbox-relay,audit-sealer,platform-worker"]);
    assert!(passed, "{said}");
}

#[test]
fn every_problem_is_named_at_once_and_each_in_a_line() {
    let directory = Scratch::new("config-problems");
    let at = directory.path();
    let several = format!(
        "[database]\nhost = \"/run/postgresql\"\npassword_dir = {at:?}\n[public]\nlisten = \"127.0.0.1:0\"\nurl = \"nowhere\"\n\
         trusted_proxies = [\"everyone\"]\n"
    );
    let (passed, said) = check(at, &several, &[], &["--role", "outbox-relay"]);
    assert!(!passed && said.contains("4 problems"), "{said}");
    for words in ["relay.password", "nowhere", "everyone", "plaintext"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let database = format!("[database]\nhost = \"/run/postgresql\"\npassword_dir = {at:?}\n");
    for (text, words) in [
        (format!("{database}prot = 5432\n"), "unknown field `prot`"),
        (format!("{database}port = \n"), "line 4: "),
    ] {
        let (passed, said) = check(at, &text, &[], &[]);
        assert!(!passed && said.contains(words), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

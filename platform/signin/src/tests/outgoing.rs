//! Where questions may go: nowhere a tenant should not see.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::json;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, pki_types::PrivateKeyDer};
use types::{ManualClock, SeededEntropy};

use super::fake_provider::{config, refused, settings};
use super::forge::now;
use crate::outgoing::is_public;
use crate::*;

#[test]
fn addresses_inside_a_network_are_not_public() {
    for inside in [
        "0.0.0.0",
        "0.1.2.3",
        "10.1.2.3",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:a9fe:a9fe::1",
        "3fff::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ] {
        assert!(!is_public(inside.parse::<IpAddr>().unwrap()), "{inside} passes for public");
    }
    for outside in [
        "1.1.1.1",
        "8.8.8.8",
        "100.63.0.1",
        "100.128.0.1",
        "172.32.0.1",
        "192.1.0.1",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "2606:4700::1111",
        "2a00:1450::1",
    ] {
        assert!(is_public(outside.parse::<IpAddr>().unwrap()), "{outside} is public");
    }
}

#[test]
fn addresses_are_judged_by_who_gave_them() {
    let production = Outgoing::new(Mode::Production, settings(json!({}))).unwrap();
    let development = Outgoing::new(Mode::Development, settings(json!({}))).unwrap();
    let (tenant, operator) = (Trust::Tenant, Trust::Operator);
    for (outgoing, trust, address, allowed) in [
        (&production, tenant, "https://login.example.test/x?y", true),
        (&production, tenant, "https://8.8.8.8/", true),
        (&production, tenant, "https://127.0.0.1/", false),
        (&production, tenant, "https://[::1]/", false),
        (&production, tenant, "https://[::ffff:10.0.0.1]/", false),
        (&production, tenant, "https://169.254.169.254/latest", false),
        (&production, tenant, "https://2130706433/", false), // 127.0.0.1 as one number
        (&production, tenant, "https://0x7f.1/", false),
        (&production, operator, "https://10.0.0.1/", true),
        (&production, operator, "http://127.0.0.1/", false),
        (&production, operator, "http://login.example.test/", false),
        (&development, operator, "http://127.0.0.1:9/", true),
        (&development, tenant, "http://localhost:9/", true),
        (&development, tenant, "http://10.0.0.1/", false),
        (&development, tenant, "https://10.0.0.1/", false),
        (&development, operator, "http://login.example.test/", false),
        (&development, operator, "http://localhost.evil.test/", false),
        (&development, operator, "ftp://127.0.0.1/", false),
        (&development, operator, "/relative", false),
        (&development, operator, "", false),
    ] {
        assert_eq!(outgoing.allowed(address, trust).is_ok(), allowed, "{address} for {trust:?}");
    }
}

fn provider(issuer: &str, trust: Trust) -> Provider {
    let settings = settings(json!({"signin.provider_timeout_ms": 20_000}));
    let outgoing = Outgoing::new(Mode::Production, settings.clone()).unwrap();
    let (clock, entropy) = (Arc::new(ManualClock::at(now())), Arc::new(SeededEntropy::new(1)));
    let config = ProviderConfig { trust, ..config(issuer) };
    Provider::new(config, Surroundings { outgoing, clock, entropy, settings })
}

/// A public-looking name that leads inside: only the resolver can see it. `localhost` is such a name on every machine.
#[tokio::test]
async fn a_name_that_leads_inside_is_not_dialled_for_a_tenant() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let wish = Wish::default();
    let tenant = provider(&issuer, Trust::Tenant);
    tokio::select! {
        outcome = tenant.begin(&wish) => refused(outcome, &PROVIDER_MISCONFIGURED, "not a public one"),
        _ = listener.accept() => panic!("the address was dialled"),
    }
    // The operator's own provider may be there, so that one is dialled.
    let operator = provider(&issuer, Trust::Operator);
    tokio::select! {
        _ = operator.begin(&wish) => panic!("the address was not dialled"),
        accepted = listener.accept() => drop(accepted),
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_not_believed() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let tls =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let server = async {
        let (stream, _) = listener.accept().await.unwrap();
        TlsAcceptor::from(Arc::new(tls)).accept(stream).await.map(drop)
    };
    let (wish, provider) = (Wish::default(), provider(&issuer, Trust::Operator));
    let (begun, served) = tokio::join!(provider.begin(&wish), server);
    refused(begun, &PROVIDER_UNREACHABLE, "cannot be reached");
    assert!(served.is_err(), "the handshake was finished");
}

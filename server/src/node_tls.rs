//! The node listener's certificates on the embedded default: an authority of our own, and a server certificate it signed.
//!
//! Made once and kept in the data directory, readable by its owner only. The PKI domain takes over from here: it moves
//! the authority's key into the secrets domain and signs the nodes' certificates; until then no certificate for a node
//! exists, so nobody gets in.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};

use crate::Failure;
use crate::files::write_private;
use crate::listen::tls_from_files;

/// Where `up` keeps them, in its data directory.
pub const DIRECTORY: &str = "node-tls";
/// What is kept, the last one last: its presence means that all are there.
pub const FILES: [&str; 4] = ["ca.pem", "ca.key", "server.pem", "server.key"];

/// TLS for the node listener from `directory`, made there if it is missing.
pub fn at(directory: &Path, address: IpAddr) -> Result<Arc<rustls::ServerConfig>, Failure> {
    let [ca, ca_key, certificate, key] = FILES.map(|name| directory.join(name));
    if !key.exists() {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::new(format!("{} cannot be made: {error}", directory.display())))?;
        let made = make(address).map_err(|error| {
            Failure::new(format!("the node listener's certificate cannot be made: {error}"))
        })?;
        write_private(&ca, &made.ca)?;
        write_private(&ca_key, &made.ca_key)?;
        write_private(&certificate, &made.certificate)?;
        write_private(&key, &made.key)?;
    }
    tls_from_files(&certificate, &key, Some(&ca))
}

struct Made {
    ca: String,
    ca_key: String,
    certificate: String,
    key: String,
}

fn make(address: IpAddr) -> Result<Made, rcgen::Error> {
    let ca_key = KeyPair::generate()?;
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.distinguished_name.push(DnType::CommonName, "GPUaaS embedded node authority");
    let ca = authority.self_signed(&ca_key)?;
    let issuer = Issuer::new(authority, &ca_key);
    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(vec!["localhost".to_owned()])?;
    server.subject_alt_names.push(SanType::IpAddress(address));
    server.distinguished_name.push(DnType::CommonName, "GPUaaS node listener");
    let certificate = server.signed_by(&key, &issuer)?;
    Ok(Made {
        ca: ca.pem(),
        ca_key: ca_key.serialize_pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

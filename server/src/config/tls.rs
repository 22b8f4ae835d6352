//! The certificates a configuration names, looked at before anything starts: there, whole, fitting their keys, and good
//! for a while.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use types::Timestamp;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::{Config, Mode, NodeConfig};
use crate::Failure;
use crate::listen::{certificates, tls_from_files};

/// From when on an end is near enough to be told: time enough to renew in peace.
const SOON: Duration = Duration::from_secs(30 * 24 * 3600); // fixed: renewals are planned by the month

impl Config {
    /// TLS to clients; `None` for plaintext, where that is allowed.
    pub fn public_tls(&self) -> Result<Option<Arc<rustls::ServerConfig>>, Failure> {
        let Some(public) = &self.public else { return Ok(None) };
        match (&public.tls_certificate, &public.tls_key) {
            (Some(certificate), Some(key)) => tls_from_files(certificate, key, None).map(Some),
            (None, None) if self.mode == Mode::Development && public.listen.ip().is_loopback() => Ok(None),
            (None, None) => Err(Failure::new(
                "clients would have to speak plaintext: set public.tls_certificate and public.tls_key \
                 (plaintext is allowed only with mode = \"development\" on a loopback address)",
            )),
            _ => Err(Failure::new("public.tls_certificate and public.tls_key belong together: set both")),
        }
    }

    /// Fails if a certificate cannot be used; returns what should be known about those that can.
    pub(super) fn check_certificates(&self, now: Timestamp) -> Result<Vec<String>, Failure> {
        self.public_tls()?;
        let mut named: Vec<(&str, &Path)> = Vec::new();
        if let Some(path) = self.public.as_ref().and_then(|public| public.tls_certificate.as_deref()) {
            named.push(("public.tls_certificate", path));
        }
        if let Some(node) = &self.node {
            node.tls()?;
            named.push(("node.tls_certificate", &node.tls_certificate));
            named.push(("node.client_ca", &node.client_ca));
        }
        if let Some(path) = &self.database.tls_ca {
            named.push(("database.tls_ca", path));
        }
        if let Some(path) = self.nats.as_ref().and_then(|nats| nats.tls_ca.as_deref()) {
            named.push(("nats.tls_ca", path));
        }
        let mut notes = Vec::new();
        for (key, path) in named {
            for certificate in certificates(path)? {
                notes.extend(check_dates(key, path, &certificate, now)?);
            }
        }
        Ok(notes)
    }
}

impl NodeConfig {
    pub fn tls(&self) -> Result<Arc<rustls::ServerConfig>, Failure> {
        tls_from_files(&self.tls_certificate, &self.tls_key, Some(&self.client_ca))
    }
}

fn check_dates(key: &str, path: &Path, bytes: &[u8], now: Timestamp) -> Result<Option<String>, Failure> {
    let place = format!("{key}: a certificate in {}", path.display());
    let certificate = Certificate::from_der(bytes)
        .map_err(|error| Failure::new(format!("{place} cannot be read: {error}")))?;
    let validity = certificate.tbs_certificate.validity;
    let at = |time: x509_cert::time::Time| {
        let seconds = i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    };
    let (begins, ends) = (at(validity.not_before), at(validity.not_after));
    if now < begins {
        return Err(Failure::new(format!("{place} is not valid before {begins}. Check the clock, or wait")));
    }
    if now >= ends {
        return Err(Failure::new(format!("{place} expired at {ends}. Renew it")));
    }
    let near = ends.duration_since(now).unsigned_abs() < SOON;
    Ok(near.then(|| format!("{place} expires at {ends}: renew it in time.")))
}

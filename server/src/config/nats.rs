//! `[nats]`: where events are copied to, and what replicas may nudge each other by.

use std::path::PathBuf;

use relay::{Credentials, NatsTarget};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Mode, secret_from_file, trust};
use crate::Failure;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// `tls://host:4222`, or `nats://…` without TLS; several servers of a cluster separated by commas.
    pub url: String,
    /// A `.creds` file. Either this, or user and password, or neither.
    pub credentials_file: Option<PathBuf>,
    pub user: Option<String>,
    /// File with the user's password.
    pub password_file: Option<PathBuf>,
    /// Certificate authority of the server, PEM. Turns TLS on; without it, `tls://` trusts the machine's authorities.
    pub tls_ca: Option<PathBuf>,
}

impl NatsConfig {
    pub(super) fn target(&self, mode: Mode) -> Result<NatsTarget, Failure> {
        let encrypted = self.tls_ca.is_some();
        for url in self.url.split(',').map(str::trim) {
            check_url(url, encrypted, mode)?;
        }
        let credentials = match (&self.credentials_file, &self.user, &self.password_file) {
            (None, None, None) => None,
            (Some(file), None, None) => Some(Credentials::File(file.clone())),
            (None, Some(user), Some(file)) => {
                Some(Credentials::Password { user: user.clone(), password: secret_from_file(file)? })
            }
            (Some(_), _, _) => {
                return Err(Failure::new(
                    "nats.credentials_file says who we are already: remove nats.user and nats.password_file, or it",
                ));
            }
            (None, _, _) => {
                return Err(Failure::new("nats.user and nats.password_file belong together: set both"));
            }
        };
        let tls = self.tls_ca.as_deref().map(trust).transpose()?;
        Ok(NatsTarget { url: self.url.clone(), credentials, tls })
    }
}

/// Is this an address we speak to, and may we speak to it like that?
fn check_url(url: &str, encrypted: bool, mode: Mode) -> Result<(), Failure> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = host_of(rest);
    if !["nats", "tls"].contains(&scheme) || host.is_empty() {
        return Err(Failure::new(format!(
            "nats.url: {url:?} is not of the form tls://host:4222 or nats://host:4222"
        )));
    }
    if rest.contains('@') {
        return Err(Failure::new(
            "nats.url holds a user or a token: put it into nats.user and nats.password_file, or nats.credentials_file",
        ));
    }
    let plain = scheme == "nats" && !encrypted;
    if mode == Mode::Production && plain && !is_loopback(host) {
        return Err(Failure::new(format!(
            "production mode wants TLS to NATS: use tls://{host} or set nats.tls_ca (plaintext is allowed only to a \
             loopback address)"
        )));
    }
    Ok(())
}

fn host_of(rest: &str) -> &str {
    let rest = rest.split('/').next().unwrap_or("");
    match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => rest.rsplit_once(':').map_or(rest, |(host, _)| host),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plaintext_leaves_the_machine_only_in_development() {
        let check = |url: &str, encrypted: bool, mode: Mode, fine: bool| {
            assert_eq!(check_url(url, encrypted, mode).is_ok(), fine, "{url} {mode:?}");
        };
        check("nats://127.0.0.1:4222", false, Mode::Production, true);
        check("nats://[::1]:4222", false, Mode::Production, true);
        check("nats://localhost", false, Mode::Production, true);
        check("nats://nats.example:4222", false, Mode::Production, false);
        check("nats://127.0.0.1.example:4222", false, Mode::Production, false);
        check("nats://nats.example:4222", true, Mode::Production, true);
        check("tls://nats.example:4222", false, Mode::Production, true);
        check("nats://nats.example:4222", false, Mode::Development, true);
        check("ws://127.0.0.1:4222", false, Mode::Development, false);
        check("127.0.0.1:4222", false, Mode::Development, false);
        check("nats://user:password@127.0.0.1:4222", false, Mode::Development, false);
    }
}

//! Who is calling, found out in a way that guessers can neither use nor make expensive.
//!
//! Wrong credentials are counted by the address they come from. Beyond the limit an address is refused before anything
//! is looked up, so guessing costs no query. An address may be shared, though, by a whole office or by a proxy in front
//! of us: a credential that this replica has found good before is still looked up, wherever it comes from. One that it
//! has not seen yet has to wait like a guess, as only the look-up could tell the two apart. A session that is over is no
//! guess: browsers go on sending its cookie. A cookie that never was a session's is one.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use types::Result;

use crate::context::{Authenticator, Credential, Found, Identity, sha256};
use crate::limits::Limits;

/// Someone at the door, identified.
pub(crate) struct Caller {
    pub identity: Identity,
    /// Whom to count what it does for: who it is if it signed in, else where it comes from.
    pub key: String,
    pub credential: Option<Credential>,
}

/// Tells callers apart.
pub(crate) struct Callers {
    pub authenticator: Arc<dyn Authenticator>,
    /// Hashes of credentials that were good when they were last looked up.
    good: Mutex<HashSet<[u8; 32]>>,
}

/// Good credentials remembered. Only real ones get in, so nobody can fill it; if it is full all the same, forgetting
/// costs those who share an address with a guesser a moment's wait.
const GOOD_MAX: usize = 100_000; // fixed: bounds memory

impl Callers {
    pub fn new(authenticator: Arc<dyn Authenticator>) -> Self {
        Self { authenticator, good: Mutex::default() }
    }

    pub async fn identify(&self, head: &Parts, limits: &Limits) -> Result<Caller> {
        let peer = peer_key(head);
        let Some(credential) = self.authenticator.credential(head)? else {
            return Ok(Caller { identity: Identity::anonymous(), key: peer, credential: None });
        };
        let mark = sha256(&[credential.text.expose().as_bytes()]);
        if !self.is_good(&mark) {
            limits.refuse_guesser(&peer)?;
        }
        let found = self.authenticator.identify(&credential).await?;
        self.remember(mark, matches!(found, Found::Good(_)));
        match found {
            Found::Good(identity) => {
                let actor = &identity.actor;
                let key = actor.credential.as_ref().unwrap_or(&actor.subject.id).clone();
                return Ok(Caller { identity, key, credential: Some(credential) });
            }
            Found::Stale => {}
            Found::Wrong => limits.count_guess(&peer)?,
        }
        if credential.optional {
            return Ok(Caller { identity: Identity::anonymous(), key: peer, credential: None });
        }
        Err(authz::UNAUTHENTICATED.error("the credential is unknown, expired or revoked"))
    }

    fn is_good(&self, mark: &[u8; 32]) -> bool {
        self.good.lock().unwrap_or_else(PoisonError::into_inner).contains(mark)
    }

    fn remember(&self, mark: [u8; 32], is_good: bool) {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_good {
            good.remove(&mark);
            return;
        }
        if good.len() >= GOOD_MAX {
            good.clear();
        }
        good.insert(mark);
    }
}

/// Where a request comes from.
pub(crate) fn peer_key(head: &Parts) -> String {
    match head.extensions.get::<ConnectInfo<SocketAddr>>() {
        None => "unknown".to_owned(),
        Some(peer) => address_key(peer.0.ip()),
    }
}

/// An address as far as anyone can be held to it, to count by.
pub fn address_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        // Whoever has one address of IPv6 has the 2^64 beside it as well.
        IpAddr::V6(address) => {
            format!("{}/64", Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)))
        }
    }
}

//! Questions to identity providers: where they may go, how long they may take, how much is read.
//!
//! An issuer's address is typed in by somebody, sometimes by a tenant, and its answers name further addresses. So each one is
//! held against the same rules: HTTPS, no redirects, and for a tenant's provider no address inside our own network. The name
//! is resolved by us and the very addresses that were judged are dialled, so a name that changes its mind between the two
//! (DNS rebinding) gains nothing. No proxy is used: it would resolve the name itself.
//!
//! In development mode plain HTTP and loopback are allowed, and nothing else is loosened.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use db::Settings;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Url};
use types::{Result, Secret};

use crate::model::{PROVIDER_MISCONFIGURED, PROVIDER_UNREACHABLE};
use crate::settings::{PROVIDER_BYTES_MAX, PROVIDER_TIMEOUT_MS};

/// Who typed in the provider's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Whoever runs the platform: their provider may well be on their own network.
    Operator,
    /// A tenant, who must not be able to look around there.
    Tenant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Production,
    Development,
}

/// Speaks to providers. Cheap to clone.
#[derive(Clone)]
pub struct Outgoing {
    operator: Client,
    tenant: Client,
    mode: Mode,
    settings: Settings,
}

/// What a provider answered: anything between 200 and 299, or 400 and 499.
pub(crate) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Outgoing {
    pub fn new(mode: Mode, settings: Settings) -> Result<Self> {
        let client = |trust| {
            let built = Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .user_agent(concat!("gpuaas/", env!("CARGO_PKG_VERSION")))
                .dns_resolver(Resolver { trust, mode })
                .build();
            built.map_err(|error| {
                PROVIDER_UNREACHABLE.error("there is no TLS on this machine").caused_by(error)
            })
        };
        Ok(Self { operator: client(Trust::Operator)?, tenant: client(Trust::Tenant)?, mode, settings })
    }

    /// An address we may send something to, or send a browser to.
    pub(crate) fn allowed(&self, address: &str, trust: Trust) -> Result<Url> {
        let refused =
            |why: &'static str| PROVIDER_MISCONFIGURED.error(format!("an address of the provider {why}"));
        let url = Url::parse(address).map_err(|_| refused("is not a URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("contains a user name"));
        }
        if url.fragment().is_some() {
            return Err(refused("contains a fragment"));
        }
        let host = url.host_str().ok_or_else(|| refused("names no host"))?;
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let loopback = host == "localhost" || literal.is_some_and(|address| address.is_loopback());
        match url.scheme() {
            "https" => {}
            "http" if loopback && self.mode == Mode::Development => {}
            _ => return Err(refused("is not an https:// one")),
        }
        match literal {
            Some(address) if !may_dial(address, trust, self.mode) => Err(refused(NOT_PUBLIC)),
            _ => Ok(url),
        }
    }

    pub(crate) async fn get(&self, url: &Url, trust: Trust, bearer: Option<&Secret>) -> Result<Answer> {
        let mut request = self.client(trust).get(url.clone());
        if let Some(token) = bearer {
            request = request.bearer_auth(token.expose());
        }
        self.send(request).await
    }

    pub(crate) async fn post(
        &self,
        url: &Url,
        trust: Trust,
        form: Secret,
        authorization: Option<Secret>,
    ) -> Result<Answer> {
        let mut request = self.client(trust).post(url.clone());
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value.expose());
        }
        let form_type = "application/x-www-form-urlencoded";
        self.send(request.header(CONTENT_TYPE, form_type).body(form.expose().clone())).await
    }

    pub(crate) fn timeout(&self) -> Duration {
        PROVIDER_TIMEOUT_MS.millis(&self.settings)
    }

    fn client(&self, trust: Trust) -> &Client {
        match trust {
            Trust::Operator => &self.operator,
            Trust::Tenant => &self.tenant,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Answer> {
        let answered = self.read(request.header(ACCEPT, "application/json"));
        match tokio::time::timeout(self.timeout(), answered).await {
            Ok(answer) => answer,
            Err(_) => Err(PROVIDER_UNREACHABLE.error("the provider did not answer in time")),
        }
    }

    async fn read(&self, request: RequestBuilder) -> Result<Answer> {
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        match status {
            200..=299 | 400..=428 | 430..=499 => {}
            429 | 500..=599 => {
                return Err(PROVIDER_UNREACHABLE.error(format!("the provider answered {status}")));
            }
            300..=399 => return Err(PROVIDER_MISCONFIGURED.error("the provider sends us elsewhere")),
            _ => return Err(PROVIDER_MISCONFIGURED.error(format!("the provider answered {status}"))),
        }
        let limit = usize::try_from(self.settings.get(&PROVIDER_BYTES_MAX)).unwrap_or(usize::MAX);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > limit {
                return Err(PROVIDER_MISCONFIGURED.error("the provider's answer is too long"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body })
    }
}

const NOT_PUBLIC: &str = "is not a public one";

/// The address was judged and not dialled.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to an address that is not public")]
struct NotPublic;

/// The address is left out of the cause: it may hold a code.
fn failed(error: reqwest::Error) -> types::Error {
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        if cause.is::<NotPublic>() {
            return PROVIDER_MISCONFIGURED.error(format!("an address of the provider {NOT_PUBLIC}"));
        }
        source = cause.source();
    }
    PROVIDER_UNREACHABLE.error("the provider cannot be reached").caused_by(error.without_url())
}

/// Resolves names and keeps back what must not be dialled.
struct Resolver {
    trust: Trust,
    mode: Mode,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (trust, mode) = (self.trust, self.mode);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One bad address among good ones is an attempt, not an accident.
            if found.iter().any(|address| !may_dial(address.ip(), trust, mode)) {
                return Err(NotPublic.into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

fn may_dial(address: IpAddr, trust: Trust, mode: Mode) -> bool {
    match trust {
        Trust::Operator => true,
        Trust::Tenant => is_public(address) || mode == Mode::Development && address.is_loopback(),
    }
}

/// Is this an address of the internet at large? What is not known to be is not (`IpAddr::is_global` is not stable yet).
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b); // carrier-grade NAT, and clouds' own services
    let protocol = a == 192 && b == 0 && c == 0;
    let relay = a == 192 && b == 88 && c == 99; // 6to4
    let measuring = a == 198 && (b == 18 || b == 19);
    let never_unicast = a == 0 || a >= 224;
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || shared
        || protocol
        || relay
        || measuring
        || never_unicast)
}

/// Global unicast is 2000::/3; within it, ways to write an IPv4 address are judged as that address, or not dialled.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let inner = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(inner(high, low)), // NAT64
        [0x2002, high, low, ..] => is_public_v4(inner(high, low)),               // 6to4
        [0x2001, second, ..] if second < 0x200 => false, // protocols' own, Teredo among them
        [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false, // documentation
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

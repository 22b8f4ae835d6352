//! Whom to believe about where a request comes from.
//!
//! A proxy that is trusted says for whom it speaks in `X-Forwarded-For`. Each hop appends the address it was reached
//! from, so only the right end is worth anything: the first address from the right that is not a trusted proxy is the
//! client's. `Forwarded` (RFC 7239) is not read: proxies pass on the header they do not write, so whoever reads both
//! believes the client. From anybody else nothing is believed.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::{IpNet, Ipv4Net};

use crate::Failure;

const FORWARDED_FOR: &str = "x-forwarded-for";

#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// From addresses and networks, such as `10.0.0.7` and `10.0.0.0/24`.
    pub fn parse(texts: &[String]) -> Result<Self, Failure> {
        let parse = |text: &String| {
            let alone = text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
            alone.or_else(|_| text.parse::<IpNet>().map(canonical)).map_err(|_| {
                Failure::new(format!(
                    "public.trusted_proxies: {text:?} is neither an address nor a network such as 10.0.0.0/24"
                ))
            })
        };
        texts.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Where a request comes from that arrived from `peer`. What a proxy says is taken as a whole or not at all: in
    /// doubt it is the proxy's own.
    pub fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        if !self.has(peer.ip()) {
            return peer;
        }
        let lines: Vec<&[u8]> = headers.get_all(FORWARDED_FOR).iter().map(|line| line.as_bytes()).collect();
        for entry in lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
            match address_of(entry) {
                Some(address) if self.has(address) => {}
                Some(address) => return SocketAddr::new(address, 0),
                None => return peer,
            }
        }
        peer
    }
}

/// IPv4 in the clothes of IPv6 is IPv4, for networks as for the addresses that are looked for in them.
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(six) = network else { return network };
    let four = six.network().to_ipv4_mapped().zip(six.prefix_len().checked_sub(96));
    let four = four.and_then(|(address, bits)| Ipv4Net::new(address, bits).ok());
    four.map_or(network, IpNet::V4)
}

/// An address, with or without a port.
fn address_of(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let bare = text.parse().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip())).ok()?;
    Some(bare.to_canonical())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use axum::http::HeaderValue;
    use types::{Entropy as _, SystemEntropy};

    use super::*;

    const PROXY: &str = "10.0.0.7";

    fn client(peer: &str, lines: &[&[u8]]) -> String {
        let proxies = TrustedProxies::parse(&["10.0.0.0/24".to_owned(), "2001:db8::1".to_owned()]).unwrap();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_bytes(line).unwrap());
        }
        proxies.client(SocketAddr::new(peer.parse().unwrap(), 4711), &headers).ip().to_string()
    }

    #[test]
    fn only_what_a_trusted_proxy_says_last_is_believed() {
        for (peer, lines, expected) in [
            (PROXY, &["192.0.2.1"][..], "192.0.2.1"),
            (PROXY, &["203.0.113.9, 192.0.2.1"], "192.0.2.1"),
            (PROXY, &["203.0.113.9", "192.0.2.1 , 10.0.0.8"], "192.0.2.1"),
            (PROXY, &["192.0.2.1:443"], "192.0.2.1"),
            (PROXY, &["[2001:db8::2]:443"], "2001:db8::2"),
            (PROXY, &["::ffff:192.0.2.1"], "192.0.2.1"),
            ("::ffff:10.0.0.7", &["192.0.2.1"], "192.0.2.1"),
            ("2001:db8::1", &["192.0.2.1"], "192.0.2.1"),
            (PROXY, &[], PROXY),
            (PROXY, &["10.0.0.8"], PROXY),
            (PROXY, &["192.0.2.1, unknown"], PROXY),
            (PROXY, &["192.0.2.1,"], PROXY),
            ("10.0.1.7", &["192.0.2.1"], "10.0.1.7"),
            ("198.51.100.1", &["192.0.2.1, 10.0.0.8"], "198.51.100.1"),
        ] {
            let bytes: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(client(peer, &bytes), expected, "{peer} says {lines:?}");
        }
    }

    #[test]
    fn garbage_is_the_proxys_own_address() {
        let mut garbage = [0u8; 40];
        for _ in 0..1_000 {
            SystemEntropy.fill(&mut garbage);
            // What a header cannot carry never gets here; letters make sure that it is no address.
            let line: Vec<u8> = garbage.iter().map(|byte| byte | 0x80).chain(*b"z").collect();
            assert_eq!(client(PROXY, &[b"192.0.2.1", &line]), PROXY, "{line:?}");
        }
    }

    #[test]
    fn a_network_of_mapped_addresses_is_one_of_ipv4() {
        let proxies = TrustedProxies::parse(&["::ffff:10.0.0.0/104".to_owned()]).unwrap();
        for (address, expected) in
            [("10.255.0.1", true), ("::ffff:10.1.1.1", true), ("11.0.0.1", false), ("::1", false)]
        {
            assert_eq!(proxies.has(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["10.0.0.0/33", "proxy.example", "", "10.0.0.7:80"] {
            let refused = TrustedProxies::parse(&[text.to_owned()]).unwrap_err().to_string();
            assert!(refused.contains("public.trusted_proxies"), "{refused}");
        }
    }
}

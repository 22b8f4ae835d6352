//! Ports.

use std::net::{Ipv4Addr, TcpListener};

/// A port nobody listens on right now. Prefer `:0` and a ready file where the program can say what it got: between
/// this answer and its use somebody else may take the port.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind a port on loopback");
    listener.local_addr().expect("a bound socket has an address").port()
}

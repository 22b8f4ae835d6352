//! One address cannot have every connection.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use testkit::eventually;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::*;

/// A connection from a loopback address that has been answered once and is kept; nothing if it was closed.
async fn answered(from: &str, to: SocketAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(to).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.ok()?;
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.ok()?;
    assert_eq!(&first, b"HTTP/1.1 404");
    Some(stream)
}

#[tokio::test]
async fn an_address_has_only_so_many_connections() {
    let mut listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    listener.per_address_max = 2;
    let (address, stop) = (listener.address().unwrap(), CancellationToken::new());
    let serving = tokio::spawn(listener.serve(Router::new(), stop.clone()));

    let first = answered("127.0.0.1", address).await.expect("the first is served");
    let second = answered("127.0.0.1", address).await.expect("so is the second");
    assert!(answered("127.0.0.1", address).await.is_none(), "the third is closed");
    let other = answered("127.0.0.2", address).await.expect("another address is served");
    drop(first);
    eventually("the place is free", async || answered("127.0.0.1", address).await.is_some()).await;

    drop((second, other));
    stop.cancel();
    serving.await.unwrap();
}

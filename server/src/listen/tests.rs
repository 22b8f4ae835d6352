//! One address cannot have every connection, and nobody can keep one without using it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use testkit::{Scratch, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

async fn connected(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

/// A connection from a loopback address that has been answered once and is kept; nothing if it was closed.
async fn answered(from: &str, to: SocketAddr) -> Option<TcpStream> {
    let mut stream = connected(from, to).await;
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

#[tokio::test]
async fn a_request_says_once_whom_it_is_for() {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    let (address, stop) = (listener.address().unwrap(), CancellationToken::new());
    let serving = tokio::spawn(listener.serve(Router::new(), stop.clone()));
    for (head, expected) in [
        ("GET / HTTP/1.1\r\nhost: a\r\n", "404"),
        ("GET / HTTP/1.0\r\n", "404"),
        ("GET / HTTP/1.1\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\nHost: b\r\n", "400"),
    ] {
        let mut stream = connected("127.0.0.1", address).await;
        stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert_eq!(reply.split(' ').nth(1), Some(expected), "{head:?}");
    }
    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn a_trusted_proxy_names_its_clients_and_has_the_connections_it_needs() {
    let proxies = TrustedProxies::parse(&["127.0.0.1".to_owned()]).unwrap();
    let mut listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap().behind(proxies);
    listener.per_address_max = 1;
    let (address, stop) = (listener.address().unwrap(), CancellationToken::new());
    let router = Router::new()
        .route("/whom", get(async |ConnectInfo(client): ConnectInfo<SocketAddr>| client.to_string()));
    tokio::spawn(listener.serve(router, stop.clone()));

    let mut kept = Vec::new();
    for (from, expected) in
        [("127.0.0.1", "192.0.2.1:0"), ("127.0.0.1", "192.0.2.1:0"), ("127.0.0.2", "127.0.0.2:")]
    {
        let mut stream = connected(from, address).await;
        let request = "GET /whom HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.1\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = String::new();
        while !said.contains("\r\n\r\n") || !said.contains(expected) {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).await.unwrap();
            assert_ne!(count, 0, "{from} is {said}");
            said.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        kept.push(stream);
    }
    stop.cancel();
}

/// A listener that soon loses patience, and operations to try it with.
struct Impatient {
    address: SocketAddr,
    trust: Option<TlsConnector>,
    /// Lets one request to `/wait` go.
    go: Arc<Notify>,
    /// Held by every body of `/endless`.
    endless: Arc<()>,
    stop: CancellationToken,
}

impl Impatient {
    async fn start(with_tls: bool) -> Self {
        let directory = Scratch::new("impatient");
        let (mut tls, mut trust) = (None, None);
        if with_tls {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            let file = |name: &str, text: String| {
                std::fs::write(directory.path().join(name), text).unwrap();
                directory.path().join(name)
            };
            let certificate = file("certificate", made.cert.pem());
            let key = file("key", made.signing_key.serialize_pem());
            tls = Some(tls_from_files(&certificate, &key, None).unwrap());
            let roots = roots(&certificate).unwrap();
            let mut client =
                rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
            client.alpn_protocols = vec![b"h2".to_vec()];
            trust = Some(TlsConnector::from(Arc::new(client)));
        }
        let mut listener = Listener::bind("127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
        listener.patience = Patience { first: Duration::from_millis(500), later: Duration::from_millis(100) };
        let (go, endless) = (Arc::new(Notify::new()), Arc::new(()));
        let (waits_for, held) = (Arc::clone(&go), Arc::clone(&endless));
        let router = Router::new()
            .route("/now", get(async || "now"))
            .route("/small", get(async || Body::from(vec![b'x'; 1_000])))
            .route(
                "/wait",
                get(async move || {
                    waits_for.notified().await;
                    "waited"
                }),
            )
            .route(
                "/endless",
                get(async move || {
                    let chunk = move |_| {
                        let _held = &held;
                        Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 64 * 1024]))
                    };
                    Body::from_stream(futures::StreamExt::map(futures::stream::repeat(()), chunk))
                }),
            );
        let (address, stop) = (listener.address().unwrap(), CancellationToken::new());
        tokio::spawn(listener.serve(router, stop.clone()));
        Self { address, trust, go, endless, stop }
    }

    async fn tls(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = "localhost".try_into().unwrap();
        self.trust.as_ref().unwrap().connect(name, stream).await.unwrap()
    }

    /// A client of HTTP/2 that sends pings all the time, and the end of its connection.
    async fn http2(&self) -> (http2::SendRequest<Empty<Bytes>>, Ending) {
        self.http2_with_window(64 * 1024).await
    }

    async fn http2_with_window(&self, bytes: u32) -> (http2::SendRequest<Empty<Bytes>>, Ending) {
        let (client, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_millis(20))
            .keep_alive_while_idle(true)
            .initial_stream_window_size(bytes)
            .handshake(TokioIo::new(self.tls().await))
            .await
            .unwrap();
        (client, tokio::spawn(connection))
    }

    /// The listener's patience with somebody who says nothing passes.
    async fn a_while(&self) {
        let mut unused = self.tls().await;
        in_time(unused.read_to_end(&mut Vec::new())).await;
    }

    async fn nobody_is_sent_anything(&self) {
        eventually("the reply is given up", async || Arc::strong_count(&self.endless) == 2).await;
    }
}

/// How a client's connection ends.
type Ending = tokio::task::JoinHandle<hyper::Result<()>>;

impl Drop for Impatient {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What the listener's patience brings about, however it ends.
async fn in_time<T>(ending: impl Future<Output = T>) {
    tokio::time::timeout(testkit::DEADLINE, ending).await.expect("the listener has lost patience");
}

fn request(path: &str) -> hyper::Request<Empty<Bytes>> {
    hyper::Request::get(format!("https://localhost{path}")).body(Empty::new()).unwrap()
}

#[tokio::test]
async fn a_reply_that_nobody_reads_is_given_up() {
    let server = Impatient::start(false).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    eventually("the reply has begun", async || Arc::strong_count(&server.endless) > 2).await;
    server.nobody_is_sent_anything().await;
    drop(stream);
}

#[tokio::test]
async fn so_is_one_of_http2_without_room_in_its_window() {
    let server = Impatient::start(true).await;
    let (mut client, connection) = server.http2().await;
    let unread = client.send_request(request("/endless")).await.unwrap();
    server.nobody_is_sent_anything().await;
    in_time(connection).await;
    drop(unread);
}

/// Streams that hold memory are not saved by one beside them that is in use, even if all they lack is their end.
#[tokio::test]
async fn one_unread_reply_is_not_saved_by_others_that_are_read() {
    for path in ["/endless", "/small"] {
        let server = Impatient::start(true).await;
        let (mut client, connection) = server.http2_with_window(100).await;
        let unread = client.send_request(request(path)).await.unwrap();
        eventually("the connection is given up", async || {
            if let Ok(reply) = client.send_request(request("/now")).await {
                drop(reply.into_body().collect().await);
            }
            connection.is_finished()
        })
        .await;
        drop(unread);
    }
}

#[tokio::test]
async fn a_slow_reader_is_not_cut_off() {
    let server = Impatient::start(true).await;
    let (mut client, _connection) = server.http2_with_window(100).await;
    let mut reply = client.send_request(request("/small")).await.unwrap().into_body();
    let mut length = 0;
    while let Some(frame) = reply.frame().await {
        length += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(length, 1_000, "the whole reply, in small pieces");
}

#[tokio::test]
async fn a_connection_of_http2_that_is_not_used_is_closed() {
    let server = Impatient::start(true).await;
    server.a_while().await;
    let (mut client, connection) = server.http2().await;
    let reply = client.send_request(request("/now")).await.unwrap();
    assert_eq!(reply.into_body().collect().await.unwrap().to_bytes(), "now");
    in_time(async { connection.await.unwrap().expect("it is told, not cut off") }).await;
}

#[tokio::test]
async fn a_client_that_waits_for_us_is_not_cut_off() {
    let server = Impatient::start(true).await;
    let (mut client, _connection) = server.http2().await;
    let waiting = tokio::spawn(async move { client.send_request(request("/wait")).await });
    server.a_while().await;
    server.a_while().await;
    server.go.notify_one();
    let reply = waiting.await.unwrap().unwrap();
    assert_eq!(reply.into_body().collect().await.unwrap().to_bytes(), "waited");
}

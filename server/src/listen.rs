//! Listeners: accept, speak HTTP (over TLS where told), and drain.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use self::watch::{Patience, Watch, WatchedStream};
use crate::Failure;

mod proxies;
#[cfg(test)]
mod tests;
mod watch;

pub use proxies::TrustedProxies;

/// Connections one listener serves at the same time. Beyond it new ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 8_192; // fixed: half of the file descriptors a process commonly gets
/// Connections one listener serves at the same time for one address, so that no single one can have them all. Trusted
/// proxies are exempt.
const CONNECTIONS_PER_ADDRESS_MAX: u32 = 2_048; // fixed: a quarter of all
// fixed: how slowly a client may greet us and send its head before it counts as an attack
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
// fixed: how long a client may leave a connection unused or its reply unread; above the heartbeat of streams
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
// fixed: how long a silent HTTP/2 peer is waited for
const KEEP_ALIVE: Duration = Duration::from_secs(20);
// fixed: the largest request head, part of the API's contract
const HEAD_BYTES_MAX: usize = 32 * 1024;
// fixed: requests under way on one connection of HTTP/2; the least that RFC 9113 recommends
const STREAMS_MAX: u32 = 100;
// fixed: what is kept of one reply until the client of HTTP/2 has room for it
const SEND_BUFFER_BYTES: usize = 64 * 1024;
// fixed: how long a connection that is given up has for a last word, so that clients send no request into it
const FAREWELL: Duration = Duration::from_secs(1);
// fixed: how long open requests may go on after we were told to stop
const DRAIN: Duration = Duration::from_secs(10);

/// A bound address.
pub struct Listener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    per_address_max: u32,
    patience: Patience,
    proxies: Arc<TrustedProxies>,
}

impl Listener {
    pub async fn bind(address: SocketAddr, tls: Option<Arc<rustls::ServerConfig>>) -> Result<Self, Failure> {
        Self::bind_named(address, tls, "its `listen` key").await
    }

    /// `option` is what a person changes to choose another address.
    pub async fn bind_named(
        address: SocketAddr,
        tls: Option<Arc<rustls::ServerConfig>>,
        option: &str,
    ) -> Result<Self, Failure> {
        let socket = TcpListener::bind(address).await.map_err(|error| {
            if error.kind() == std::io::ErrorKind::AddrInUse {
                Failure::new(format!(
                    "{address} is already in use. Stop the program that listens there (`ss -ltnp 'sport = :{}'` names it), \
                     or choose another address with {option}",
                    address.port()
                ))
            } else {
                Failure::new(format!("cannot listen on {address}: {error}. Choose another address with {option}"))
            }
        })?;
        let tls = tls.map(TlsAcceptor::from);
        let patience = Patience { first: HEAD_TIMEOUT, later: IDLE_TIMEOUT };
        Ok(Self {
            socket,
            tls,
            per_address_max: CONNECTIONS_PER_ADDRESS_MAX,
            patience,
            proxies: Arc::default(),
        })
    }

    /// The same behind proxies that say for whom they speak.
    #[must_use]
    pub fn behind(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = Arc::new(proxies);
        self
    }

    pub fn address(&self) -> Result<SocketAddr, Failure> {
        self.socket.local_addr().map_err(|error| Failure::new(error.to_string()))
    }

    /// Serves until told to stop, then lets open requests finish for a while.
    pub async fn serve(self, router: Router, stop: CancellationToken) {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        // Fixed per connection by `serve_connection`, never guessed from the first bytes: guessing has no time limit.
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .max_concurrent_streams(STREAMS_MAX)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE);
        let builder = Arc::new(builder);
        let connections = TaskTracker::new();
        let places = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
        let places_per_address = Arc::<web::Places>::default();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.socket, &places) => accepted,
                () = stop.cancelled() => break,
            };
            let Some((stream, peer, place)) = accepted else { continue };
            // A trusted proxy speaks for many, and limits them itself.
            let most = if self.proxies.has(peer.ip()) { u32::MAX } else { self.per_address_max };
            let Some(own) = places_per_address.take(&web::address_key(peer.ip()), most) else {
                // Closed without a word: an answer would cost what the limit is to save.
                tracing::debug!(%peer, "too many connections from this address");
                continue;
            };
            let (router, builder, tls) = (router.clone(), Arc::clone(&builder), self.tls.clone());
            let from = (peer, Arc::clone(&self.proxies));
            let (watch, patience) = (Arc::<Watch>::default(), self.patience);
            let (graceful, stop) = (GracefulShutdown::new(), stop.clone());
            connections.spawn(async move {
                let watcher = graceful.watcher();
                let mut serving =
                    pin!(serve_connection(stream, from, router, &builder, tls, watcher, &watch));
                let rest = tokio::select! {
                    () = &mut serving => return,
                    () = watch.until_deserted(patience) => FAREWELL,
                    () = stop.cancelled() => DRAIN,
                };
                if tokio::time::timeout(rest, async { tokio::join!(graceful.shutdown(), serving) })
                    .await
                    .is_err()
                {
                    tracing::debug!(%peer, "a connection is cut off");
                }
                drop((place, own));
            });
        }
        drop(self.socket);
        connections.close();
        connections.wait().await;
    }
}

async fn accept(
    socket: &TcpListener,
    places: &Arc<tokio::sync::Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match socket.accept().await {
        Ok((stream, peer)) => {
            // Small replies should not wait for more to come.
            let _ = stream.set_nodelay(true);
            Some((stream, peer, place))
        }
        Err(error) => {
            // Out of file descriptors, mostly: a pause lets some be freed.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(50)).await; // fixed: only paces a retry
            None
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    (peer, proxies): (SocketAddr, Arc<TrustedProxies>),
    router: Router,
    builder: &auto::Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    watcher: hyper_util::server::graceful::Watcher,
    watch: &Arc<Watch>,
) {
    let watched = Arc::clone(watch);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        let client = proxies.client(peer, request.headers());
        request.extensions_mut().insert(ConnectInfo(client));
        let (mut router, exchange) = (router.clone(), watched.request());
        let has_clear_host = has_clear_host(&request);
        async move {
            if !has_clear_host {
                let error = web::INVALID_REQUEST.error("Host: a request says once whom it is for");
                return Ok(web::to_response(&error, None).map(|body| exchange.reply(body)));
            }
            let response = router.call(request.map(axum::body::Body::new)).await?;
            Ok::<_, std::convert::Infallible>(response.map(|body| exchange.reply(body)))
        }
    });
    let result = match tls {
        None => {
            let http1 = builder.clone().http1_only();
            let io = TokioIo::new(WatchedStream::new(stream, watch));
            watcher.watch(http1.serve_connection(io, service).into_owned()).await
        }
        Some(acceptor) => match acceptor.accept(stream).await {
            Ok(stream) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let chosen =
                    if is_http2 { builder.clone().http2_only() } else { builder.clone().http1_only() };
                let io = TokioIo::new(WatchedStream::new(stream, watch));
                watcher.watch(chosen.serve_connection(io, service).into_owned()).await
            }
            Err(error) => {
                tracing::debug!(%peer, %error, "TLS handshake failed");
                return;
            }
        },
    };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "connection ended with an error");
    }
}

/// Does a request say whom it is for, and only one? Else a proxy on the way may have believed something else.
fn has_clear_host<B>(request: &hyper::Request<B>) -> bool {
    let most = request.headers().get_all(hyper::header::HOST).iter().count();
    let is_needed = request.version() == hyper::Version::HTTP_11;
    most == 1 || (most == 0 && !is_needed)
}

/// TLS from a certificate chain and a key, both PEM files. With `client_ca`, callers must show a certificate it signed.
pub fn tls_from_files(
    certificate: &Path,
    key: &Path,
    client_ca: Option<&Path>,
) -> Result<Arc<rustls::ServerConfig>, Failure> {
    let chain = certificates(certificate)?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| {
        Failure::new(format!("the private key in {} cannot be read: {error}", key.display()))
    })?;
    let builder = rustls::ServerConfig::builder();
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots(path)?)).build();
            builder.with_client_cert_verifier(
                verifier.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?,
            )
        }
    };
    let mut config = builder.with_single_cert(chain, key_der).map_err(|error| {
        Failure::new(format!("{} and {} do not fit together: {error}", certificate.display(), key.display()))
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The certificates in a PEM file; at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found = found.map_err(|error| {
        Failure::new(format!("the certificates in {} cannot be read: {error}", path.display()))
    })?;
    if found.is_empty() {
        return Err(Failure::new(format!("{} holds no certificate", path.display())));
    }
    Ok(found)
}

/// The certificate authorities in a PEM file.
pub fn roots(path: &Path) -> Result<rustls::RootCertStore, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    }
    Ok(roots)
}

//! TLS to PostgreSQL, with an authority of the test's own: what a person is told when it does not come about.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use testkit::Scratch;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;

use crate::installation::{gpuaasd, text};

/// An authority, and a certificate for `localhost` that it signed.
pub struct Authority {
    pub ca_pem: String,
    server: Arc<rustls::ServerConfig>,
    /// The same in the hands of servers that were set up wrongly.
    expired: Arc<rustls::ServerConfig>,
    itself: Arc<rustls::ServerConfig>,
}

pub fn authority(name: &str) -> Authority {
    let ca_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    // OpenSSL takes a certificate that is named like its issuer for its own.
    params.distinguished_name.push(DnType::CommonName, name);
    let ca = params.self_signed(&ca_key).unwrap();
    let itself = served(ca.der().clone(), &ca_key);
    let issuer = Issuer::new(params, &ca_key);
    let key = KeyPair::generate().unwrap();
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let server = served(leaf.signed_by(&key, &issuer).unwrap().der().clone(), &key);
    leaf.not_after = (SystemTime::now() - Duration::from_secs(3600)).into();
    let expired = served(leaf.signed_by(&key, &issuer).unwrap().der().clone(), &key);
    Authority { ca_pem: ca.pem(), server, expired, itself }
}

fn served(certificate: CertificateDer<'static>, key: &KeyPair) -> Arc<rustls::ServerConfig> {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = rustls::ServerConfig::builder().with_no_client_auth();
    Arc::new(server.with_single_cert(vec![certificate], key).unwrap())
}

/// PostgreSQL's TLS in front of a socket. The first `honest` connections meet the right certificate, later ones another.
pub async fn tls_in_front(socket: PathBuf, right: &Authority, wrong: &Authority, honest: usize) -> u16 {
    let (right, wrong) = (Arc::clone(&right.server), Arc::clone(&wrong.server));
    let seen = AtomicUsize::new(0);
    answering(socket, move || {
        let config = if seen.fetch_add(1, Ordering::SeqCst) < honest { &right } else { &wrong };
        Some(Arc::clone(config))
    })
    .await
}

/// A server in front of a socket, whose TLS is asked for with each connection; `None` offers none.
async fn answering(
    socket: PathBuf,
    tls: impl Fn() -> Option<Arc<rustls::ServerConfig>> + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(carry(client, socket.clone(), tls()));
        }
    });
    port
}

async fn carry(
    mut client: TcpStream,
    socket: PathBuf,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> std::io::Result<()> {
    let mut request = [0u8; 8];
    client.read_exact(&mut request).await?;
    let Some(tls) = tls else { return client.write_all(b"N").await };
    client.write_all(b"S").await?;
    let mut client = TlsAcceptor::from(tls).accept(client).await?;
    let mut server = UnixStream::connect(socket).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// The commonest mistakes, each with its own remedy instead of the library's words.
#[tokio::test]
async fn what_is_wrong_with_the_certificate_is_told_with_a_remedy() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let directory = Scratch::new("database-tls");
    let at = directory.path();
    let (ours, another) = (authority("ours"), authority("another"));
    let ca = at.join("ca.pem");
    std::fs::write(&ca, &ours.ca_pem).unwrap();
    std::fs::write(at.join("owner.password"), "its own\n").unwrap();
    let cases = [
        ("localhost", None, "does not offer TLS", "ssl = on"),
        ("localhost", Some(&another.server), "signed by an authority", "database.tls_ca"),
        ("127.0.0.1", Some(&ours.server), "for another host name", "Set database.host"),
        ("localhost", Some(&ours.expired), "has expired", "Renew it"),
        ("localhost", Some(&ours.itself), "is that of an authority", "CA:FALSE"),
    ];
    for (host, tls, what, remedy) in cases {
        let tls = tls.cloned();
        let port = answering(at.join("nothing"), move || tls.clone()).await;
        let file = at.join("gpuaas.toml");
        let config = format!(
            "[database]\nhost = {host:?}\nport = {port}\npassword_dir = {at:?}\ntls_ca = {:?}\n",
            at.join("ca.pem")
        );
        std::fs::write(&file, config).unwrap();
        let tried = tokio::task::spawn_blocking(move || gpuaasd(&["db", "migrate"], &[("--config", &file)]));
        let tried = tried.await.unwrap();
        let said = text(&tried);
        assert!(!tried.status.success() && said.contains(what) && said.contains(remedy), "{what}: {said}");
        assert!(!said.contains("invalid peer certificate"), "the library's words: {said}");
    }
}

#[test]
fn a_server_that_does_not_answer_is_told_with_a_remedy() {
    let directory = Scratch::new("database-gone");
    let (at, file) = (directory.path(), directory.path().join("gpuaas.toml"));
    std::fs::write(at.join("owner.password"), "its own\n").unwrap();
    std::fs::write(&file, format!("[database]\nhost = {at:?}\npassword_dir = {at:?}\n")).unwrap();
    let tried = gpuaasd(&["db", "migrate"], &[("--config", &file)]);
    let said = text(&tried);
    assert!(!tried.status.success() && said.contains("See that PostgreSQL runs"), "{said}");
}

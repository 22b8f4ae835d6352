//! Why no encrypted connection to PostgreSQL came about, in words for the person who has to mend it.

use std::error::Error as StdError;

use rustls::{CertificateError, Error as TlsError};

/// What is wrong with PostgreSQL's TLS, as far as a remedy depends on it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFault {
    #[error("it does not offer TLS")]
    NotOffered,
    #[error("its certificate was signed by an authority that we were not told to trust")]
    UnknownAuthority,
    #[error("its certificate is for another host name")]
    AnotherName,
    #[error("its certificate has expired")]
    Expired,
    #[error("its certificate is not valid yet")]
    NotYetValid,
    #[error("its certificate is that of an authority, which may sign others but not serve")]
    AuthorityItself,
    #[error("{0}")]
    Other(String),
}

impl TlsFault {
    /// The fault, if it was TLS that made a connection fail.
    pub(crate) fn of(error: &tokio_postgres::Error) -> Option<Self> {
        let source = error.source()?;
        if let Some(tls) = tls_error(source) {
            return Some(Self::from(tls));
        }
        // The driver's own words, which it gives no other form.
        (source.to_string() == "server does not support TLS").then_some(Self::NotOffered)
    }
}

/// rustls' error, which travels inside one of input and output.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a TlsError> {
    error.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref()
}

impl From<&TlsError> for TlsFault {
    fn from(error: &TlsError) -> Self {
        let TlsError::InvalidCertificate(certificate) = error else { return Self::Other(error.to_string()) };
        match certificate {
            CertificateError::UnknownIssuer => Self::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::AnotherName
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            // Known only by its name: the type behind it belongs to the verifier.
            CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                Self::AuthorityItself
            }
            other => Self::Other(format!("its certificate is refused ({other})")),
        }
    }
}

//! TLS: a certificate and its key from files, and connections that speak it. By rustls, with ring as its only cryptography.

use crate::limits::MAX_PEM_FILE;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate with its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that is too long for what it should be.
    #[error("{}: more than {MAX_PEM_FILE} bytes; give a file of certificates and one key alone", path.display())]
    Large {
        /// The file.
        path: PathBuf,
    },
    /// A file without what it should have.
    #[error("{}: {why}; expected PEM, as in -----BEGIN {wanted}-----", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What its parser said.
        why: String,
        /// What it should have.
        wanted: &'static str,
    },
    /// A key of another certificate, or of a kind that is not supported.
    #[error("{} with {}: {source}", certificate.display(), key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its key, both as PEM.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let wrong = |path: &Path, wanted, why: String| TlsError::Pem { path: path.to_owned(), why, wanted };
        let chain = CertificateDer::pem_slice_iter(&bytes(certificate)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|why| wrong(certificate, "CERTIFICATE", why.to_string()))?;
        if chain.is_empty() {
            return Err(wrong(certificate, "CERTIFICATE", "there is no certificate".into()));
        }
        let secret = PrivateKeyDer::from_pem_slice(&bytes(key)?);
        let secret = secret.map_err(|why| wrong(key, "PRIVATE KEY", why.to_string()))?;
        let pair = |source| TlsError::Pair { certificate: certificate.to_owned(), key: key.to_owned(), source };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(pair)?.with_no_client_auth().with_single_cert(chain, secret);
        let mut config = config.map_err(pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    /// Agrees with the other end on a key.
    ///
    /// # Errors
    /// Whatever the other end does wrong.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    let of = |source| TlsError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).map_err(of)?.take(MAX_PEM_FILE + 1).read_to_end(&mut bytes).map_err(of)?;
    if bytes.len() as u64 > MAX_PEM_FILE {
        return Err(TlsError::Large { path: path.to_owned() });
    }
    Ok(bytes)
}

//! TLS: the certificate and its key, read again when the files change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde::Deserialize;
use thiserror::Error;

use crate::sync::ShareAnyway;

/// The files of the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate and those above it, in PEM.
    pub certificate: PathBuf,
    /// Its key, in PEM.
    pub key: PathBuf,
}

/// A certificate that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}")]
    File {
        /// Which one.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file holds something else.
    #[error("{path} does not hold {wanted} in PEM")]
    Pem {
        /// Which one.
        path: String,
        /// What it should hold.
        wanted: &'static str,
    },
    /// They do not belong together.
    #[error("the certificate and its key cannot be used together: {0}")]
    Pair(rustls::Error),
}

/// The certificate that is shown now.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    provider: Arc<CryptoProvider>,
    shown: RwLock<Shown>,
}

#[derive(Debug)]
struct Shown {
    stamps: [Option<Stamp>; 2],
    pair: Arc<CertifiedKey>,
}

/// The time and the length of a file, which tell that it changed without reading it.
type Stamp = (SystemTime, u64);

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// They cannot be read or do not belong together.
    pub fn open(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let provider = Arc::new(default_provider());
        let shown = RwLock::new(Shown { stamps: files.stamps(), pair: files.read(&provider)? });
        Ok(Arc::new(Self { files, provider, shown }))
    }

    /// Reads the files again if they have changed. New connections are shown the new certificate.
    ///
    /// # Errors
    /// They cannot be used, perhaps because only one of them is new yet; what was shown is still shown.
    pub fn reload(&self) -> Result<(), TlsError> {
        let stamps = self.files.stamps();
        if self.shown.read_anyway().stamps == stamps {
            return Ok(());
        }
        let pair = self.files.read(&self.provider)?;
        *self.shown.write_anyway() = Shown { stamps, pair };
        tracing::info!("a new certificate is shown");
        Ok(())
    }

    /// For HTTP/2 and HTTP/1.1.
    pub(crate) fn server_config(self: &Arc<Self>) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider));
        let builder = builder.with_safe_default_protocol_versions().expect("ring knows the usual versions");
        let mut config =
            builder.with_no_client_auth().with_cert_resolver(Arc::new(Resolver(Arc::clone(self))));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

#[derive(Debug)]
struct Resolver(Arc<Tls>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = self.0.shown.read_anyway();
        Some(Arc::clone(&shown.pair))
    }
}

impl TlsFiles {
    fn stamps(&self) -> [Option<Stamp>; 2] {
        [&self.certificate, &self.key].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }

    fn read(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
        let text = read(&self.certificate)?;
        let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| no_pem(&self.certificate, "a certificate"))?;
        let text = zeroize::Zeroizing::new(read(&self.key)?);
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| no_pem(&self.key, "a private key"))?;
        Ok(Arc::new(CertifiedKey::from_der(chain, key, provider).map_err(TlsError::Pair)?))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::File { path: path.display().to_string(), source })
}

fn no_pem(path: &Path, wanted: &'static str) -> TlsError {
    TlsError::Pem { path: path.display().to_string(), wanted }
}

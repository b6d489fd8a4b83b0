//! TLS of the coordinator, from the files of a folder: `ca.crt`, `tls.crt`, `tls.key`.
//!
//! Contract: TLS 1.3 only. Workers and clients show a certificate of the CA. Browsers and scrapers of the pages need none;
//! their token identifies them. The files are named as in a Kubernetes secret.

use crate::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use x509_cert::der::Decode;

/// The files, in the order that [`calls`] and [`pages`] expect.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    ["tls.crt", "tls.key", "ca.crt"].map(|name| folder.join(name)).into()
}

fn failed(path: &Path, why: impl ToString) -> Error {
    Error::Certs { path: path.to_owned(), why: why.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|e| failed(path, e))?;
    if all.is_empty() { Err(failed(path, "there is no certificate in it")) } else { Ok(all) }
}

/// When the first certificate of each file expires: the file, and Unix seconds.
pub(crate) type Ends = Vec<(&'static str, u64)>;

/// See [`Ends`]. A certificate whose end cannot be read is left out; whether it can be used is checked by [`calls`] and
/// [`pages`].
pub(super) fn ends(files: &[PathBuf]) -> Result<Ends, Error> {
    let [own, _, ca] = files else { unreachable!("see `files`") };
    let end = |der: &CertificateDer<'_>| {
        let read = x509_cert::Certificate::from_der(der).ok()?;
        Some(read.tbs_certificate().validity().not_after.to_unix_duration().as_secs())
    };
    let mut ends = Ends::new();
    for (name, path) in [("tls.crt", own), ("ca.crt", ca)] {
        ends.extend(certificates(path)?.iter().filter_map(end).min().map(|end| (name, end)));
    }
    Ok(ends)
}

fn builder() -> Result<rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13])
}

/// For workers and clients.
pub(super) fn calls(files: &[PathBuf]) -> Result<ServerConfig, Error> {
    let [_, _, ca] = files else { unreachable!("see `files`") };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca)? {
        roots.add(certificate).map_err(|e| failed(ca, e))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|e| failed(ca, e))?;
    let config = builder().map_err(|e| failed(ca, e))?.with_client_cert_verifier(verifier);
    own(config, files, b"h2")
}

/// For pages and metrics.
pub(super) fn pages(files: &[PathBuf]) -> Result<ServerConfig, Error> {
    let config = builder().map_err(|e| failed(&files[0], e))?.with_no_client_auth();
    own(config, files, b"http/1.1")
}

fn own(
    config: rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>,
    files: &[PathBuf],
    protocol: &[u8],
) -> Result<ServerConfig, Error> {
    let (certificate, key) = (&files[0], &files[1]);
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| failed(key, e))?;
    let config = config.with_single_cert(certificates(certificate)?, secret);
    let mut config = config.map_err(|e| failed(certificate, e))?;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

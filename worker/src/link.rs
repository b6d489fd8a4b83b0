//! Connections to a coordinator: its address, the certificates and the token.
//!
//! Contract: without certificates, only to a coordinator on this machine. With certificates, mutual TLS under the CA of
//! the folder, with its token in every call. The files are read at each connection, so replaced files are used from the
//! next connection on.

use hyper_util::rt::TokioIo;
use moire_proto::{Linked, Token};
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Uri};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two signs of life of a connection, and longest wait for the answer to one.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Host and port of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address; write HOST:PORT, as in 127.0.0.1:7420 or [::1]:7420")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let v6 = host.len() > bare.len() && bare.parse::<std::net::Ipv6Addr>().is_ok();
        if bare.is_empty() || bare.len() > 253 || !(v6 || bare.chars().all(name)) {
            return Err(wrong());
        }
        Ok(Self { host: bare.to_owned(), port: port.parse().map_err(|_| wrong())? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl From<std::net::SocketAddr> for Address {
    fn from(addr: std::net::SocketAddr) -> Self {
        Self { host: addr.ip().to_string(), port: addr.port() }
    }
}

impl Address {
    /// Whether the host is this machine, as its text says.
    fn is_here(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The coordinator is on another machine, and there are no certificates.
    #[error("{0} is not on this machine: use --certs DIR with a folder that `moire certs init` made")]
    NotLoopback(Address),
    /// A file of the folder cannot be used.
    #[error("{path}: {why}", path = path.display())]
    Certs {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The name or the certificates are malformed, so no connection is tried.
    #[error("a connection to {address} cannot even be tried: {why}")]
    Wrong {
        /// Where.
        address: Address,
        /// Why, from the outside in.
        why: String,
    },
    /// The peer is not trusted, or does not trust us.
    #[error("what answers at {address} is no coordinator of our certificates: {why}")]
    Stranger {
        /// Where.
        address: Address,
        /// Why, from the outside in.
        why: String,
    },
    /// The name is not known, or nothing listens there.
    #[error("cannot reach the coordinator at {address}: {why}")]
    Connect {
        /// Where.
        address: Address,
        /// Why, from the outside in.
        why: String,
    },
}

impl LinkError {
    /// Whether the same attempt may succeed later: the coordinator, or its name, may still come up.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Connect { .. })
    }
}

/// Both directions of a connection.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Makes a connection.
type Dial = dyn Fn() -> Pin<Box<dyn Future<Output = std::io::Result<Box<dyn Io>>> + Send>> + Send + Sync;

/// The address of a coordinator, and the folder of certificates to reach it.
#[derive(Clone)]
pub struct Link {
    address: Address,
    certs: Option<PathBuf>,
    alive: Duration,
    /// A simulated network, in a trial.
    dial: Option<Arc<Dial>>,
}

impl From<std::net::SocketAddr> for Link {
    fn from(addr: std::net::SocketAddr) -> Self {
        Self::new(addr.into(), None)
    }
}

fn read(folder: &Path, name: &str) -> Result<String, LinkError> {
    let path = folder.join(name);
    std::fs::read_to_string(&path).map_err(|e| LinkError::Certs { path, why: e.to_string() })
}

impl Link {
    /// A link to `address`, with the certificates of a worker or client.
    pub fn new(address: Address, certs: Option<PathBuf>) -> Self {
        Self { address, certs, alive: KEEP_ALIVE, dial: None }
    }
    /// A link over connections that `dial` makes, for trials. `alive` is the time between two signs of life, and the
    /// longest wait for the answer to one.
    pub fn through<F>(dial: impl Fn() -> F + Send + Sync + 'static, alive: Duration) -> Self
    where
        F: Future<Output = std::io::Result<Box<dyn Io>>> + Send + 'static,
    {
        let here = Address { host: "localhost".to_owned(), port: 0 };
        let dial = move || -> Pin<Box<dyn Future<Output = _> + Send>> { Box::pin(dial()) };
        Self { alive, dial: Some(Arc::new(dial)), ..Self::new(here, None) }
    }
    /// Where it goes.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connects.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn connect(&self) -> Result<Linked, LinkError> {
        let wrong = |error: tonic::transport::Error| LinkError::Wrong {
            address: self.address.clone(),
            why: causes(&error),
        };
        let scheme = if self.certs.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}", self.address))
            .map_err(wrong)?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(self.alive)
            .keep_alive_timeout(self.alive);
        let token = match &self.certs {
            None if !self.address.is_here() => return Err(LinkError::NotLoopback(self.address.clone())),
            None => Token::default(),
            Some(folder) => {
                let identity = Identity::from_pem(read(folder, "tls.crt")?, read(folder, "tls.key")?);
                let tls = ClientTlsConfig::new()
                    .ca_certificate(Certificate::from_pem(read(folder, "ca.crt")?))
                    .identity(identity)
                    .domain_name(self.address.host.clone());
                endpoint = endpoint.tls_config(tls).map_err(wrong)?;
                let path = folder.join("token");
                let token = Token::new(&read(folder, "token")?);
                token.ok_or_else(|| LinkError::Certs { path, why: "this is no token".to_owned() })?
            }
        };
        let channel = match self.dial.clone() {
            None => endpoint.connect().await,
            Some(dial) => {
                let dialled = tower::service_fn(move |_: Uri| {
                    let connection = dial();
                    async { connection.await.map(TokioIo::new) }
                });
                endpoint.connect_with_connector(dialled).await
            }
        };
        let channel = channel.map_err(|error| {
            let (address, why) = (self.address.clone(), causes(&error));
            match strange(&error) {
                true => LinkError::Stranger { address, why },
                false => LinkError::Connect { address, why },
            }
        })?;
        Ok(InterceptedService::new(channel, token))
    }
}

/// Whether a peer answered that we do not trust. TLS reports that as invalid data.
fn strange(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::InvalidData)
        {
            return true;
        }
        next = cause.source();
    }
    false
}

/// The error and its causes in one line, without repetitions.
fn causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let word = cause.to_string();
        if !said.ends_with(&word) {
            said = format!("{said}: {word}");
        }
        next = cause.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for text in ["127.0.0.1:7420", "[::1]:7420", "moire.example:443", "coordinator:1"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for bad in ["", ":1", "a", "a:", "a:99999", "::1:7420", "[::1]", "a/b:1", "http://a:1", "a b:1"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        let here = |text: &str| text.parse::<Address>().unwrap().is_here();
        assert!(["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"].into_iter().all(here));
        assert!(
            !["192.0.2.1:1", "0.0.0.0:1", "localhost.example:1", "[2001:db8::1]:1"].into_iter().any(here)
        );
    }
}

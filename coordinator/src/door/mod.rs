//! Access control: who may connect, and which calls each may make.
//!
//! Contract:
//!
//! * Without certificates everybody may call, and only this machine can connect ([`crate::Local::open`] ensures that).
//! * With certificates every connection is mutual TLS under a private CA, and every call carries a token with a role. A call
//!   that no role is named for is refused ([`role`]).
//! * Files are read again when they change: new connections get the new certificate, and all calls and streams of a token
//!   that was removed end within a second.
//! * Each peer (an IPv4 address, or an IPv6 network) has bounds on its connections, its calls at one time and its calls a
//!   second.
//! * The audit log has every call that changes something and every refusal.

mod accept;
mod audit;
pub(crate) mod guard;
mod rate;
pub(crate) mod role;
mod tls;
mod tokens;
mod watched;

pub use accept::Io;
pub(crate) use accept::{Connection, Face, Gate, Peer};
pub(crate) use audit::{Audit, Entry};
pub(crate) use guard::Caller;
pub(crate) use rate::Pace;
pub use role::{Role, UnknownRole};
pub(crate) use tokens::hash_of;
pub use tokens::{TokenError, TokensError, check_tokens};

use crate::Error;
use rate::{Buckets, Slots};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokens::Tokens;
use tokio_rustls::rustls::ServerConfig;
use tonic::Status;
use watched::Watched;

/// Time between two looks whether the token of an open call is still good.
const LOOK: Duration = Duration::from_millis(500);

/// Bounds on what peers do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at one time.
    pub connections: usize,
    /// Connections of one peer at one time.
    pub peer_connections: usize,
    /// Connections for pages and metrics at one time; a quarter of them by one peer.
    pub pages: usize,
    /// Calls of one peer at one time, streams of workers and jobs that wait included.
    pub peer_calls: usize,
    /// Calls of one peer a second, on average, and ten times as many at once.
    pub calls_per_second: u32,
    /// Messages of one worker a second, on average, and four times as many at once; more wait.
    pub messages_per_second: u32,
    /// Longest time for a handshake, for the first message of a worker's stream, and without an answer on a connection for
    /// pages.
    pub patience: Duration,
}

impl Limits {
    /// For peers on other machines.
    pub const FAR: Self = Self {
        connections: 20_000,
        peer_connections: 256,
        pages: 512,
        peer_calls: 256,
        calls_per_second: 50,
        messages_per_second: 1_000,
        patience: Duration::from_secs(10),
    };
    /// For this machine alone: only what bounds memory.
    pub const NEAR: Self = Self {
        peer_connections: 20_000,
        peer_calls: 20_000,
        calls_per_second: 100_000,
        messages_per_second: 100_000,
        ..Self::FAR
    };

    /// The same within so many descriptors of this process, of which the store and the logs have some. Pages never take
    /// what calls need.
    pub fn within(self, descriptors: u64) -> Self {
        let all = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let free = all.saturating_sub(OWN_DESCRIPTORS).max(16);
        let pages = self.pages.min(free / 4);
        Self { pages, connections: self.connections.min(free - pages), ..self }
    }
    /// Descriptors that it takes to serve all of these connections.
    pub fn descriptors(&self) -> u64 {
        (self.connections + self.pages + OWN_DESCRIPTORS) as u64
    }
}

/// Descriptors that a coordinator needs beside those of its connections.
const OWN_DESCRIPTORS: usize = 128;

/// Counts of refusals since the start.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Connections over a bound, or without TLS of this CA.
    pub(crate) connections: AtomicU64,
    /// Calls without a token, with a wrong one, or one of another role.
    pub(crate) denied: AtomicU64,
    /// Calls over a bound.
    pub(crate) limited: AtomicU64,
}

impl Refused {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The certificates and tokens of a coordinator that other machines can reach.
struct Lock {
    /// For workers and clients: mutual TLS.
    calls: Arc<Watched<ServerConfig>>,
    /// For pages and metrics: TLS; the token identifies the caller.
    pages: Arc<Watched<ServerConfig>>,
    tokens: Watched<Tokens>,
    /// When the certificates expire.
    ends: Watched<tls::Ends>,
}

/// The admission of peers: certificates, tokens, limits and the audit log.
pub(crate) struct Door {
    lock: Option<Lock>,
    limits: Limits,
    connections: Arc<Slots>,
    pages: Arc<Slots>,
    calls: Arc<Slots>,
    rates: Buckets,
    pub(crate) refused: Arc<Refused>,
    pub(crate) audit: Audit,
}

impl Door {
    /// Admits holders of the certificates and tokens in `certs`; without it, everybody.
    ///
    /// # Errors
    /// The files are not there or do not fit together.
    pub(crate) fn new(certs: Option<&Path>, limits: Limits, audit: Audit) -> Result<Self, Error> {
        let lock = match certs {
            Some(folder) => Some(Lock {
                calls: Arc::new(Watched::new(tls::files(folder), tls::calls)?),
                pages: Arc::new(Watched::new(tls::files(folder), tls::pages)?),
                tokens: Watched::new(vec![folder.join(tokens::FILE)], tokens::read)?
                    .or_closed(Tokens::default),
                ends: Watched::new(tls::files(folder), tls::ends)?,
            }),
            None => None,
        };
        Ok(Self {
            lock,
            limits,
            connections: Arc::new(Slots::new(limits.connections, limits.peer_connections)),
            pages: Arc::new(Slots::new(limits.pages, (limits.pages / 4).max(1).min(limits.peer_connections))),
            calls: Arc::new(Slots::new(limits.connections, limits.peer_calls)),
            rates: Buckets::new(limits.calls_per_second),
            refused: Arc::default(),
            audit,
        })
    }
    /// Whether callers have to identify themselves.
    pub(crate) fn locked(&self) -> bool {
        self.lock.is_some()
    }
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }
    /// When the certificates that are shown and trusted expire: by file, in Unix seconds.
    pub(crate) fn ends(&self) -> tls::Ends {
        self.lock.as_ref().map(|lock| tls::Ends::clone(&lock.ends.current())).unwrap_or_default()
    }
    /// Completes when the token a call came with is not good any more.
    pub(crate) async fn revoked(&self, caller: &Caller) -> Status {
        loop {
            match self.locked() {
                true => tokio::time::sleep(LOOK).await,
                false => std::future::pending().await,
            }
            if !self.still(caller) {
                return Status::unauthenticated("the token is not good any more");
            }
        }
    }
    /// Whether the token a call came with is still good for its role.
    pub(crate) fn still(&self, caller: &Caller) -> bool {
        match (&self.lock, &caller.token) {
            (None, _) => true,
            (Some(lock), Some(token)) => {
                lock.tokens.current().who(token).is_some_and(|h| h.role == caller.role)
            }
            (Some(_), None) => false,
        }
    }
}

/// The peer that an address counts for: itself, or its IPv6 network (/64), because one host can use all of that.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_fit_the_descriptors() {
        let few = Limits::FAR.within(1024);
        assert_eq!((few.pages, few.connections), (224, 672));
        assert!(few.descriptors() <= 1024);
        let many = Limits::FAR.within(Limits::FAR.descriptors());
        assert_eq!((many.pages, many.connections), (Limits::FAR.pages, Limits::FAR.connections));
        let none = Limits::FAR.within(0);
        assert_eq!((none.pages, none.connections), (4, 12), "as few as that are tried");
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_the_address() {
        let peer = |text: &str| network(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:2"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert!(
            peer("::1").is_loopback() && peer("127.0.0.2").is_loopback(),
            "this machine stays this machine"
        );
    }
}

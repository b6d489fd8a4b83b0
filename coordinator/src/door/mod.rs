//! Who may come in, and what they may do.
//!
//! Contract: without certificates the door stands open and only this machine reaches it ([`crate::Local::open`] sees to
//! that). With them every connection is mutual TLS under a private CA, every call carries a token of a role, and what no
//! role is named for is refused ([`role`]). Files are read again when they change: new connections get the new
//! certificate, and a token that is gone ends its calls. Each peer (an address, or a network of IPv6) has bounds on its
//! connections, its calls at one time and its calls a second. What changes anything, and whatever is refused, is in the
//! audit log.

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
pub use role::Role;
pub use tokens::check_tokens;
pub(crate) use tokens::hash_of;

use crate::Error;
use rate::{Buckets, Places};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokens::Tokens;
use tokio_rustls::rustls::ServerConfig;
use watched::Watched;

/// Bounds on what peers do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at one time.
    pub connections: usize,
    /// Connections of one peer at one time.
    pub peer_connections: usize,
    /// Calls of one peer at one time, streams of workers and jobs that wait included.
    pub peer_calls: usize,
    /// Calls of one peer a second, on average, and ten times as many at once.
    pub calls_per_second: u32,
    /// Messages of one worker a second, on average, and four times as many at once; more wait.
    pub messages_per_second: u32,
    /// Longest time a connection may take to say who it is, and a stream of a worker to begin.
    pub patience: Duration,
}

impl Limits {
    /// For peers on other machines.
    pub const FAR: Self = Self {
        connections: 20_000,
        peer_connections: 256,
        peer_calls: 256,
        calls_per_second: 50,
        messages_per_second: 1_000,
        patience: Duration::from_secs(10),
    };
    /// For this machine alone: nothing but the bounds that keep its memory flat.
    pub const NEAR: Self = Self {
        peer_connections: 20_000,
        peer_calls: 20_000,
        calls_per_second: 100_000,
        messages_per_second: 100_000,
        ..Self::FAR
    };
}

/// Counts of refusals since the start.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Connections: over a bound, or no TLS of ours.
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

/// The keys to the door, if it has a lock.
struct Lock {
    /// For workers and clients: mutual TLS.
    calls: Arc<Watched<ServerConfig>>,
    /// For pages and metrics: TLS; the token says who it is.
    pages: Arc<Watched<ServerConfig>>,
    tokens: Watched<Tokens>,
    /// When certificates are over.
    ends: Watched<tls::Ends>,
}

/// The admission of peers: certificates, tokens, limits and the audit log.
pub(crate) struct Door {
    lock: Option<Lock>,
    limits: Limits,
    connections: Arc<Places>,
    calls: Arc<Places>,
    rates: Buckets,
    pub(crate) refused: Arc<Refused>,
    pub(crate) audit: Audit,
}

impl Door {
    /// A door that opens for what `certs` names; without it for everybody.
    ///
    /// # Errors
    /// The files are not there or do not fit together.
    pub(crate) fn new(certs: Option<&Path>, limits: Limits, audit: Audit) -> Result<Self, Error> {
        let lock = match certs {
            Some(folder) => Some(Lock {
                calls: Arc::new(Watched::new(tls::files(folder), tls::calls)?),
                pages: Arc::new(Watched::new(tls::files(folder), tls::pages)?),
                tokens: Watched::new(vec![folder.join(tokens::FILE)], tokens::read)?,
                ends: Watched::new(tls::files(folder), tls::ends)?,
            }),
            None => None,
        };
        Ok(Self {
            lock,
            limits,
            connections: Arc::new(Places::new(limits.connections, limits.peer_connections)),
            calls: Arc::new(Places::new(limits.connections, limits.peer_calls)),
            rates: Buckets::new(limits.calls_per_second),
            refused: Arc::default(),
            audit,
        })
    }
    /// Whether it wants to know who comes.
    pub(crate) fn locked(&self) -> bool {
        self.lock.is_some()
    }
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }
    /// When the certificates that are shown and trusted are over, by file, Unix seconds.
    pub(crate) fn ends(&self) -> tls::Ends {
        self.lock.as_ref().map(|lock| tls::Ends::clone(&lock.ends.current())).unwrap_or_default()
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

/// What counts as one peer: an address, or a network of IPv6, whose every host owns it whole.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_the_address() {
        let peer = |text: &str| network(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:2"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
    }
}

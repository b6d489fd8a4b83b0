//! The coordinator: gives out leases, judges reports, keeps findings.
//!
//! Contract: the coordinator never explores. Workers do, as other processes or threads; all of them speak to it over the
//! same kind of gRPC stream.

mod aside;
mod base;
mod belief;
pub mod certs;
pub mod clock;
mod core;
mod door;
mod draw;
pub mod failpoints;
mod finding;
mod http;
mod inline;
mod intake;
mod job;
pub mod lease;
pub mod line;
mod local;
mod night;
pub mod nightly;
mod parts;
mod plain;
mod reduction;
mod repeat;
pub mod report;
mod run;
mod service;
mod spread;
mod states;
mod stored;
mod suspects;
mod totals;
mod triage;
pub mod trial;
mod words;

pub use door::{Io, Limits, Role, TokenError, TokensError, UnknownRole, check_tokens};
pub use inline::Inline;
pub use local::{Local, Setup};
pub use moire_program::words::{grouped, many};
pub use moire_proto::v1;
pub use plain::{Plain, PlainWriter};
pub use run::{CLASS_PREFIX, MUTANT_PREFIX, class_of, judged};
pub use words::{digest_words, seen_again};

use std::net::SocketAddr;

/// Most events handled before one commit.
pub const BATCH_EVENTS: usize = 256;
/// Items of one range lease.
pub const LEASE_ITEMS: u64 = 64;
/// Most claims of one class that are reduced in a campaign; further ones are only counted.
pub const CLASS_MAX: u64 = 4;
/// Most items with claims under way in a campaign; beyond it no new items are leased.
pub const HELD_MAX: usize = 4096;
/// Most jobs of clients that wait at one time.
pub const CLIENT_JOBS_MAX: usize = 1024;
/// Most campaigns of one store, ended ones included.
pub const CAMPAIGNS_MAX: usize = 10_000;
/// Most candidates tried in one minimisation.
pub const MINIMISE_CANDIDATES: u64 = 20_000;

/// Why the coordinator failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store did not open.
    #[error(transparent)]
    Open(#[from] moire_corpus::OpenError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] moire_corpus::StoreError),
    /// An address cannot be listened on.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// The network failed.
    #[error("network: {0}")]
    Io(#[from] std::io::Error),
    /// The server failed.
    #[error("server: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// Other machines can reach the address, and there are no certificates.
    #[error(
        "{0} is not on this machine: make certificates with `moire certs init DIR --name HOST`, then use --certs DIR/server"
    )]
    NotLoopback(SocketAddr),
    /// A certificate, key or list of tokens cannot be used or made.
    #[error("{path}: {why}", path = path.display())]
    Certs {
        /// The file or folder.
        path: std::path::PathBuf,
        /// The reason.
        why: String,
    },
    /// A request was refused.
    #[error("{}", .0.message())]
    Status(#[from] tonic::Status),
    /// The core did not answer in time.
    #[error("the coordinator is busy")]
    Busy,
    /// The core's thread is gone.
    #[error("the coordinator has stopped")]
    Stopped,
}

impl From<moire_corpus::MarkError> for Error {
    fn from(error: moire_corpus::MarkError) -> Self {
        match error {
            moire_corpus::MarkError::Store(error) => Self::Store(error),
            moire_corpus::MarkError::Unknown(_) => Self::Status(tonic::Status::not_found(error.to_string())),
            other => Self::Status(tonic::Status::invalid_argument(other.to_string())),
        }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Status(status) => status,
            Error::Stopped => tonic::Status::unavailable(error.to_string()),
            other => tonic::Status::internal(other.to_string()),
        }
    }
}

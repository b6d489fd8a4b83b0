//! The arguments by which a command reaches a coordinator: address and certificates.

use clap::Args;
use moire_console::stored::STORE;
use moire_worker::link::{Address, Link};
use std::path::PathBuf;

/// The default address of a coordinator.
pub(crate) const COORDINATOR: &str = "127.0.0.1:7420";

/// The certificates with which a command proves who it is.
#[derive(Clone, Debug, Args)]
pub(crate) struct Certs {
    /// Folder of certificates that `moire certs init` made; needed to reach another machine
    #[arg(long, value_name = "DIR", env = "MOIRE_CERTS")]
    pub(crate) certs: Option<PathBuf>,
}

/// A coordinator.
#[derive(Clone, Debug, Args)]
pub(crate) struct Remote {
    /// The coordinator
    #[arg(long, value_name = "HOST:PORT", default_value = COORDINATOR, env = "MOIRE_COORDINATOR")]
    pub(crate) coordinator: Address,
    #[command(flatten)]
    pub(crate) certs: Certs,
}

/// A store on this machine, or a running coordinator.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreOrRemote {
    /// Ask a running coordinator instead of opening the store
    #[arg(long, value_name = "HOST:PORT", env = "MOIRE_COORDINATOR")]
    pub(crate) coordinator: Option<Address>,
    #[command(flatten)]
    pub(crate) certs: Certs,
    /// Folder of the store
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

impl Remote {
    pub(crate) fn link(&self) -> Link {
        Link::new(self.coordinator.clone(), self.certs.certs.clone())
    }
}

impl StoreOrRemote {
    /// The way to the coordinator; `None`: the store is meant.
    pub(crate) fn link(&self) -> Option<Link> {
        self.coordinator.as_ref().map(|addr| Link::new(addr.clone(), self.certs.certs.clone()))
    }
}

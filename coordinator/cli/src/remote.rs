//! How a command reaches a coordinator: address, certificates, and the words for what it says.

use anyhow::{Context, Result};
use clap::Args;
use moire_coordinator::v1::control_service_client::ControlServiceClient;
use moire_proto::Linked;
use moire_worker::link::{Address, Link};
use std::path::PathBuf;

/// Where a coordinator listens unless told otherwise.
pub(crate) const COORDINATOR: &str = "127.0.0.1:7420";

/// What proves who is who.
#[derive(Clone, Debug, Args)]
pub(crate) struct Certs {
    /// Folder of certificates as `moire certs init` makes them; needed beyond this machine
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

/// A coordinator, or none: then the store is opened.
#[derive(Clone, Debug, Args)]
pub(crate) struct MaybeRemote {
    /// Ask a running coordinator instead of opening the store
    #[arg(long, value_name = "HOST:PORT", env = "MOIRE_COORDINATOR")]
    pub(crate) coordinator: Option<Address>,
    #[command(flatten)]
    pub(crate) certs: Certs,
}

impl Remote {
    pub(crate) fn link(&self) -> Link {
        Link::new(self.coordinator.clone(), self.certs.certs.clone())
    }
}

impl MaybeRemote {
    pub(crate) fn link(&self) -> Option<Link> {
        self.coordinator.as_ref().map(|addr| Link::new(addr.clone(), self.certs.certs.clone()))
    }
}

/// A client of the control service.
pub(crate) async fn connect(link: &Link) -> Result<ControlServiceClient<Linked>> {
    let linked = link.connect().await;
    let linked = linked
        .with_context(|| format!("no coordinator for us at {}; `moire serve` starts one", link.address()))?;
    Ok(ControlServiceClient::new(linked).max_decoding_message_size(moire_proto::MESSAGE_BYTES_MAX))
}

/// What the coordinator answered instead.
pub(crate) fn said(status: tonic::Status) -> anyhow::Error {
    // An answer has no cause; a connection that failed has one.
    match std::error::Error::source(&status) {
        None => anyhow::anyhow!("the coordinator says: {}", status.message()),
        Some(_) => anyhow::anyhow!(
            "the connection failed: {}; a coordinator behind certificates wants --certs DIR with some of its CA that have not expired",
            status.message()
        ),
    }
}

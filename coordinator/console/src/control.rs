//! The control service of a coordinator, as clients see it.

use anyhow::{Context, Result};
use moire_coordinator::v1::control_service_client::ControlServiceClient;
use moire_proto::Linked;
use moire_worker::link::Link;

/// The runtime of a command that talks to others.
///
/// # Errors
/// No thread can be started.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")
}

/// Connects a client of the control service.
///
/// # Errors
/// No coordinator answers there, or it does not let us in.
pub async fn connect(link: &Link) -> Result<ControlServiceClient<Linked>> {
    let linked = link.connect().await;
    let linked = linked
        .with_context(|| format!("no coordinator for us at {}; `moire serve` starts one", link.address()))?;
    Ok(ControlServiceClient::new(linked).max_decoding_message_size(moire_proto::MESSAGE_BYTES_MAX))
}

/// Words the error that a coordinator, or the connection to it, answered with.
pub fn said(status: tonic::Status) -> anyhow::Error {
    // An answer has no cause; a connection that failed has one.
    match std::error::Error::source(&status) {
        None => anyhow::anyhow!("the coordinator says: {}", status.message()),
        Some(_) => anyhow::anyhow!(
            "the connection failed: {}; a coordinator behind certificates wants --certs DIR with some of its CA that have not expired",
            status.message()
        ),
    }
}

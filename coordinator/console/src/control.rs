//! The control service of a coordinator, as clients see it.

use anyhow::{Context, Result, anyhow};
use moire_coordinator::v1::control_service_client::ControlServiceClient;
use moire_proto::Linked;
use moire_worker::link::{Link, LinkError};

/// Builds the runtime of a command that talks to other processes.
///
/// # Errors
/// No thread can be started.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")
}

/// Connects a client of the control service.
///
/// # Errors
/// No coordinator answers there, or it refuses the connection.
pub async fn connect(link: &Link) -> Result<ControlServiceClient<Linked>> {
    let linked = link.connect().await.map_err(|why| match &why {
        LinkError::Connect { .. } => anyhow!("{why}; `moire serve` starts one"),
        _ => anyhow!(why),
    })?;
    Ok(ControlServiceClient::new(linked).max_decoding_message_size(moire_proto::MESSAGE_BYTES_MAX))
}

/// Turns a failed call into an error for people: an answer of the coordinator, or a failed connection.
pub fn said(status: tonic::Status) -> anyhow::Error {
    // Only a failed connection has a cause.
    match std::error::Error::source(&status) {
        None => anyhow::anyhow!("the coordinator says: {}", status.message()),
        Some(_) => anyhow::anyhow!(
            "the connection failed: {}; a coordinator with certificates needs --certs DIR, with unexpired certificates of its CA",
            status.message()
        ),
    }
}

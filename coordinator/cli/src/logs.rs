//! The log of the process on stderr: lines of text, or JSON for machines.
//!
//! `MOIRE_LOG` selects what is logged (`warn`, `moire_coordinator=debug`, ..), in the syntax of tracing-subscriber.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The default of `MOIRE_LOG`: notes of our own crates, and errors of the crates they depend on.
const USUAL: &str = "error,moire=info,moire_coordinator=info,moire_worker=info,moire_corpus=info";

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Log {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Starts the log.
pub(crate) fn start(log: Log) {
    let filter = EnvFilter::try_from_env("MOIRE_LOG").unwrap_or_else(|_| EnvFilter::new(USUAL));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let builder = builder.with_ansi(std::io::stderr().is_terminal());
    // Where nobody reads the log, the process goes on.
    let builder = builder.log_internal_errors(false);
    match log {
        Log::Text => builder.with_target(false).without_time().init(),
        Log::Json => builder.json().flatten_event(true).init(),
    }
}

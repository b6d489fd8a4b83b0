//! Tests of the binary from outside.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::print_stdout,
    unreachable_pub,
    reason = "tests, and code of fuzz targets"
)]

mod attacked;
#[cfg(unix)]
mod blind;
mod browser;
mod cli;
#[cfg(target_os = "linux")]
mod confined;
#[cfg(unix)]
mod deploy;
#[cfg(unix)]
mod devices;
#[cfg(unix)]
mod ended;
mod fleet;
mod formats;
mod found;
mod fuzzed;
mod guide;
mod kernels;
#[cfg(unix)]
mod kill;
mod known;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod library;
mod lsp;
mod mend;
mod mutants;
mod newest;
mod outside;
#[cfg(target_os = "linux")]
mod partition;
mod people;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod recorded;
#[cfg(unix)]
mod replayed;
mod said;
mod sarif;
mod spread;
mod stream;
mod words;

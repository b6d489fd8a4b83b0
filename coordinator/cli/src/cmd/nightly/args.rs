//! The arguments of `moire nightly`.

use crate::device::Lent;
use crate::remote::Certs;
use clap::{Args, ValueEnum};
use moire_console::output::Format;
use moire_console::stored::STORE;
use moire_worker::link::Address;
use std::path::PathBuf;

/// What fails a night.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Findings that are new or flaky
    New,
    /// Every open finding
    Open,
}

#[derive(Debug, Args)]
pub(crate) struct Nightly {
    /// A campaign: a stream, as `moire generate --help` lists them, and its programs (repeatable) [default: core=10000 protocol=60;
    /// tile-ir=300 and source=300 where their compilers are here, 2000 of core on a device that is lent]
    #[arg(long, value_name = "STREAM=PROGRAMS")]
    pub(crate) campaign: Vec<String>,
    /// Seed of the first night's streams; each night has its own
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Times that each finding is run again; a finding whose runs disagree is flaky
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: u32,
    /// Most findings run again, those longest untested first [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) retests: Option<u64>,
    /// Stop after this time: 90s, 10m, 2h
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// What fails the night
    #[arg(long, value_enum, default_value = "new")]
    pub(crate) fail_on: FailOn,
    /// Folder for report.html, summary.md, findings.jsonl, report.sarif and junit.xml
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// How to print; all but text as the files of --out
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Worker threads [default: all processors]
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Use a running coordinator and its workers instead of the store
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["workers", "store"])]
    pub(crate) coordinator: Option<Address>,
    #[command(flatten)]
    pub(crate) certs: Certs,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) lent: Lent,
}

//! `moire report`: writes the findings of a store in five formats, compared with the last report. It runs nothing.

use anyhow::Result;
use clap::Args;
use moire_console::stored::STORE;
use moire_console::{exit, stored};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Only findings seen or tested in this time: 24h [default: all]
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Folder for report.html, summary.md, findings.jsonl, report.sarif and junit.xml
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    let since = args.since.as_deref().map(moire_console::time::duration).transpose()?;
    stored::report(&mut stored::open(&args.store)?, since, &args.out)?;
    Ok(exit::CLEAN)
}

//! `moire report`: writes the findings of a store or of a running coordinator in five formats, or prints their summary, and
//! marks what changed since the last report. It runs no program.

use crate::remote::StoreOrRemote;
use anyhow::{Context, Result};
use clap::Args;
use moire_console::control::{connect, runtime};
use moire_console::exit;
use moire_console::output::Format;
use moire_console::stored::{self, To};
use moire_coordinator::nightly;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Only findings seen or tested in this time: 24h [default: all]
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Folder for report.html, summary.md, findings.jsonl, report.sarif and junit.xml; without it the report is printed, and
    /// the next report compares with the same one as this
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    pub(crate) out: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) at: StoreOrRemote,
}

pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    let since = args.since.as_deref().map(moire_console::time::duration).transpose()?;
    report(&args.at, since, args.out.as_deref().map_or(To::Stdout(args.format), To::Folder))
}

/// Writes the report of a store or a coordinator into a folder, or prints it in a format.
pub(crate) fn report(at: &StoreOrRemote, since: Option<Duration>, to: To<'_>) -> Result<u8> {
    let Some(link) = at.link() else {
        stored::report(&mut stored::open(&at.store)?, since, to)?;
        return Ok(exit::CLEAN);
    };
    runtime()?.block_on(async {
        let mut client = connect(&link).await?;
        let place = tempfile::tempfile().context("cannot create a temporary file for the findings")?;
        let (night, findings) = nightly::collect(&mut client, since, place).await?;
        let out = match to {
            To::Folder(out) => out,
            To::Stdout(format) => {
                stored::show(&night, &findings, format)?;
                return Ok(exit::CLEAN);
            }
        };
        stored::write(&night, &findings, out)?.iter().for_each(|path| println!("{}", path.display()));
        nightly::close(&mut client, &night).await?;
        Ok(exit::CLEAN)
    })
}

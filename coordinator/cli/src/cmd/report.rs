//! `moire report`: writes the findings of a store or of a running coordinator in five formats, or prints their summary, and
//! marks what changed since the last report. It runs no program.

use crate::remote::StoreOrRemote;
use anyhow::{Context, Result, bail};
use clap::Args;
use moire_console::control::{connect, runtime};
use moire_console::{exit, stored};
use moire_coordinator::nightly;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Only findings seen or tested in this time: 24h [default: all]
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Folder for report.html, summary.md, findings.jsonl, report.sarif and junit.xml; without it the summary is printed, and
    /// the next report compares with the same one as this
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// A report has all forms.
    #[arg(long, hide = true)]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) at: StoreOrRemote,
}

pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    if args.format.is_some() {
        bail!("--out DIR gets every form of the report, report.html among them; leave out --format");
    }
    let since = args.since.as_deref().map(moire_console::time::duration).transpose()?;
    let Some(link) = args.at.link() else {
        stored::report(&mut stored::open(&args.at.store)?, since, args.out.as_deref())?;
        return Ok(exit::CLEAN);
    };
    runtime()?.block_on(async {
        let mut client = connect(&link).await?;
        let place = tempfile::tempfile().context("cannot create a temporary file for the findings")?;
        let (night, findings) = nightly::collect(&mut client, since, place).await?;
        let Some(out) = &args.out else {
            stored::show(&night, &findings)?;
            return Ok(exit::CLEAN);
        };
        stored::write(&night, &findings, out)?;
        nightly::close(&mut client, &night).await?;
        Ok(exit::CLEAN)
    })
}

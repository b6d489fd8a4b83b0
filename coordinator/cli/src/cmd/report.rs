//! `moire report`: the findings of a store in five formats, against the last report; runs nothing.

use crate::args::ReportArgs;
use crate::{exit, local};
use anyhow::Result;
use moire_coordinator::report::{CampaignLine, Night, Stored};
use moire_corpus::{Counters, Snapshot, Store};
use std::path::Path;
use std::time::Duration;

pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    let since = args.since.as_deref().map(super::fuzz::duration).transpose()?;
    write(&mut super::store::open(&args.store)?, since, &args.out)?;
    Ok(exit::CLEAN)
}

/// Writes the report of a store into the folder `out`, and records it there. `window`: only what was seen or tested since.
/// The findings stay in the store: a million of them need no more memory than a row each.
pub(crate) fn write(store: &mut Store, window: Option<Duration>, out: &Path) -> Result<()> {
    let at_ms = local::now_ms();
    let mut counters = Counters::default();
    let mut campaigns = Vec::new();
    for campaign in store.campaigns()? {
        let progress = store.progress(&campaign.name)?;
        counters.add(&progress.counters);
        campaigns.push(CampaignLine {
            name: campaign.name,
            programs: (0, progress.done()),
            executions: progress.counters.executions,
            abstentions: progress.counters.abstentions,
            cut: String::new(),
        });
    }
    let snapshot = Snapshot { at_ms, counters, ..Snapshot::default() };
    let window = window.map_or(at_ms, |w| u64::try_from(w.as_millis()).unwrap_or(u64::MAX));
    let night = Night { at_ms, last: store.last_snapshot()?, campaigns, ..Night::default() };
    let findings = Stored::new(store, at_ms.saturating_sub(window), snapshot);
    super::nightly::write(&night, &findings, out)?;
    let snapshot = findings.snapshot();
    store.save_snapshot(&snapshot)?;
    Ok(())
}

//! `moire report`: the findings of a store in five formats, against the last report; runs nothing.

use crate::args::ReportArgs;
use crate::{exit, local};
use anyhow::Result;
use moire_coordinator::report::{CampaignLine, Night};
use moire_corpus::{Counters, Snapshot};

pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    let mut store = super::store::open(&args.store)?;
    let mut findings = store.findings().collect::<Result<Vec<_>, _>>()?;
    let last = store.last_snapshot()?;
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
    let snapshot = Snapshot::of(at_ms, &findings, counters);
    findings.iter_mut().for_each(|f| f.replay = local::replay_line(f));
    if let Some(since) = &args.since {
        let window = u64::try_from(super::fuzz::duration(since)?.as_millis()).unwrap_or(u64::MAX);
        findings.retain(|f| f.last_seen_ms.max(f.last_tested_ms) >= at_ms.saturating_sub(window));
    }
    let night = Night { at_ms, findings, last, campaigns, ..Night::default() };
    super::nightly::write(&night, &args.out)?;
    store.save_snapshot(&snapshot)?;
    Ok(exit::CLEAN)
}

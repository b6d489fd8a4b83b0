//! `moire report`: one page for people and JSON lines for scripts, against the last report.

use crate::args::ReportArgs;
use crate::{exit, local};
use anyhow::{Context, Result};
use moire_corpus::{Counters, Snapshot};

pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    let mut store = super::store::open(&args.store)?;
    let mut findings = store.findings().collect::<Result<Vec<_>, _>>()?;
    findings.iter_mut().for_each(|f| f.replay = local::replay_line(f));
    let last = store.last_snapshot()?;
    let at_ms = local::now_ms();
    if let Some(since) = &args.since {
        let window = u64::try_from(super::fuzz::duration(since)?.as_millis()).unwrap_or(u64::MAX);
        findings.retain(|f| f.last_seen_ms.max(f.last_tested_ms) >= at_ms.saturating_sub(window));
    }
    let report = moire_coordinator::report::render(&findings, last.as_ref(), at_ms)?;
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    for (name, text) in [("report.html", &report.html), ("findings.jsonl", &report.json_lines)] {
        let path = args.out.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    let mut counters = Counters::default();
    for campaign in store.campaigns()? {
        counters.add(&store.progress(&campaign.name)?.counters);
    }
    let states = store.findings().map(|f| f.map(|f| (f.id, f.state))).collect::<Result<_, _>>()?;
    store.save_snapshot(&Snapshot { at_ms, findings: states, counters })?;
    Ok(exit::CLEAN)
}

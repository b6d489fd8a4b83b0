//! `/metrics`: the OpenMetrics text format, version 1.0.0.
//!
//! Contract:
//!
//! * Every counter (its name ends in `_total`) is read from the store or from stored totals, so it survives restarts
//!   and never decreases. Gauges show the current moment.
//! * Labels are words of a closed list or names of campaigns.
//! * At most [`CAMPAIGNS_MAX`] campaigns have lines of their own, open ones first. Sums are over all campaigns.

use crate::Error;
use crate::core::Core;
use crate::run::CampaignRun;
use crate::spread::{STATES, View};
use crate::totals::TOTALS;
use moire_corpus::{CampaignState, Counters};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Most campaigns with lines of their own.
const CAMPAIGNS_MAX: usize = 1_000;

/// Reads a number of a campaign.
type Read = fn(&CampaignRun) -> u64;

/// The metrics of each campaign: name, kind, help text, number.
const OF_CAMPAIGNS: &[(&str, &str, &str, Read)] = &[
    ("moire_campaign_programs_total", "counter", "Programs done", |r| r.progress.done()),
    ("moire_campaign_executions_total", "counter", "Executions explored", |r| r.progress.counters.executions),
    ("moire_campaign_discrepancies_total", "counter", "Broken rules before dedupe", |r| {
        r.progress.counters.discrepancies
    }),
    ("moire_campaign_quarantined_total", "counter", "Items given up", |r| abstained(r, "quarantined")),
    ("moire_campaign_refuted_total", "counter", "Claims refuted when run again", |r| abstained(r, "refuted")),
    ("moire_campaign_canaries_planted_total", "counter", "Bugs planted to be found", |r| {
        r.progress.counters.canaries_planted
    }),
    ("moire_campaign_canaries_caught_total", "counter", "Planted bugs found", |r| {
        r.progress.counters.canaries_caught
    }),
    ("moire_campaign_running", "gauge", "1 while its leases are given out", |r| {
        u64::from(r.campaign.state == CampaignState::Running)
    }),
    ("moire_campaign_programs_limit", "gauge", "Number of programs after which it ends; 0: no limit", |r| {
        r.campaign.limits.programs.unwrap_or(0)
    }),
    ("moire_campaign_claims_open", "gauge", "Items whose claims are being verified and reduced", |r| {
        r.claims_open() as u64
    }),
];

fn abstained(run: &CampaignRun, reason: &str) -> u64 {
    run.progress.counters.abstentions.get(reason).copied().unwrap_or(0)
}

/// Metrics of one name.
#[derive(Debug)]
struct Family {
    name: String,
    kind: &'static str,
    help: &'static str,
    /// Labels, at most one, and the number.
    samples: Vec<(Vec<(&'static str, String)>, u64)>,
}

/// The page under construction.
#[derive(Debug, Default)]
struct Page(Vec<Family>);

impl Page {
    fn family(&mut self, name: &str, kind: &'static str, help: &'static str) {
        self.0.push(Family { name: name.to_owned(), kind, help, samples: Vec::new() });
    }

    /// Adds a number to the family that was begun last.
    fn sample(&mut self, label: Option<(&'static str, &str)>, number: u64) {
        let labels = label.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
        self.0.last_mut().expect("a family is begun").samples.push((labels, number));
    }

    fn labelled(&mut self, label: &'static str, value: &str, number: u64) {
        self.sample(Some((label, value)), number);
    }

    fn one(&mut self, name: &str, kind: &'static str, help: &'static str, number: u64) {
        self.family(name, kind, help);
        self.sample(None, number);
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        for Family { name, kind, help, samples } in &self.0 {
            let counts = *kind == "counter";
            let (kind, name) = match counts {
                true => (MetricType::Counter, name.trim_end_matches("_total")),
                false => (MetricType::Gauge, name.as_str()),
            };
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, number) in samples {
                let one = |encoder: MetricEncoder<'_>| match counts {
                    true => ConstCounter::new(*number).encode(encoder),
                    false => ConstGauge::new(i64::try_from(*number).unwrap_or(i64::MAX)).encode(encoder),
                };
                one(family.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

/// Renders the whole page. `ends`: the expiry times of certificates, by file.
pub(crate) fn render(core: &mut Core, ends: &[(&'static str, u64)]) -> Result<String, Error> {
    let states = core.finding_states()?;
    let states = states.whole.then(|| states.counts().clone());
    let mut page = Page::default();
    page.family("moire_build_info", "gauge", "1; the version is a label");
    page.labelled("version", env!("CARGO_PKG_VERSION"), 1);
    page.one(
        "moire_start_time_seconds",
        "gauge",
        "When this process started, Unix time",
        core.base.started_s(),
    );
    fleet(core, &mut page);
    page.family(
        "moire_findings",
        "gauge",
        "Findings by state; absent until all are counted, soon after the first request",
    );
    for state in ["open", "duplicate", "invalid", "fixed", "reopened"] {
        let Some(states) = &states else { break };
        page.labelled("state", state, states.get(state).copied().unwrap_or(0));
    }
    for (name, help) in TOTALS {
        page.one(&format!("moire_{name}_total"), "counter", help, core.totals.stored(name));
    }
    campaigns(core, &mut page);
    explorations(core, &mut page);
    page.family("moire_certificate_end_seconds", "gauge", "When a certificate expires, by file, Unix time");
    for (file, end) in ends {
        page.labelled("file", file, *end);
    }
    let (log, commits) = core.base.store.log_size();
    page.one("moire_store_log_bytes", "gauge", "Size of the findings log", log);
    page.one("moire_store_commits_total", "counter", "Commits in the findings log", commits);
    page.one(
        "moire_store_reserve_used",
        "gauge",
        "1 when the disk is full and its reserve is used up",
        u64::from(core.base.store.reserve_used()),
    );
    page.one(
        "moire_store_losses",
        "gauge",
        "Losses of the store that nobody has acknowledged",
        core.base.store.losses().count() as u64,
    );
    page.one(
        "moire_set_aside",
        "gauge",
        "Records that cannot be used or stored; the log and the overview name them",
        core.base.aside.count(),
    );
    let (mut registry, mut text) = (Registry::default(), String::new());
    registry.register_collector(Box::new(page));
    encode(&mut text, &registry).expect("a string takes everything");
    Ok(text)
}

fn fleet(core: &Core, page: &mut Page) {
    let fleet = &core.base.fleet;
    page.one("moire_workers", "gauge", "Workers connected", fleet.workers() as u64);
    page.one(
        "moire_sources_refused",
        "gauge",
        "Credentials on hosts whose workers are refused, because others contradicted them",
        core.base.suspects.refused() as u64,
    );
    page.one("moire_leases", "gauge", "Leases out", fleet.leases() as u64);
    page.one("moire_jobs_queued", "gauge", "Jobs with text that wait for a worker", fleet.queued() as u64);
    page.one(
        "moire_queue_depth",
        "gauge",
        "Leases that could be given out now if there were workers for them; at most a million",
        fleet.waiting(),
    );
}

fn explorations(core: &Core, page: &mut Page) {
    let views = core.spread.views();
    page.family("moire_explorations", "gauge", "Explorations that the fleet shares, by state");
    for state in STATES {
        let count = views.iter().filter(|v| v.state == state).count();
        page.labelled("state", state, count as u64);
    }
    page.family("moire_exploration_pieces", "gauge", "Pieces of explorations that are left, by state");
    let sum = |of: fn(&View) -> usize| views.iter().map(of).sum::<usize>() as u64;
    page.labelled("state", "waiting", sum(|v| v.waiting));
    page.labelled("state", "leased", sum(|v| v.leased));
}

fn campaigns(core: &Core, page: &mut Page) {
    let mut sum = Counters::default();
    let mut programs = 0_u64;
    for run in core.triage.runs.values() {
        sum.executions = sum.executions.saturating_add(run.progress.counters.executions);
        sum.discrepancies = sum.discrepancies.saturating_add(run.progress.counters.discrepancies);
        programs = programs.saturating_add(run.progress.done());
    }
    page.one("moire_programs_total", "counter", "Programs done, all campaigns", programs);
    page.one("moire_executions_total", "counter", "Executions explored, all campaigns", sum.executions);
    page.one(
        "moire_discrepancies_total",
        "counter",
        "Broken rules before dedupe, all campaigns",
        sum.discrepancies,
    );
    page.family("moire_campaigns", "gauge", "Campaigns by state");
    let states = [
        (CampaignState::Running, "running"),
        (CampaignState::Paused, "paused"),
        (CampaignState::Cancelled, "cancelled"),
        (CampaignState::Done, "done"),
    ];
    for (state, word) in states {
        let count = core.triage.runs.values().filter(|r| r.campaign.state == state).count();
        page.labelled("state", word, count as u64);
    }
    let (open, over): (Vec<&CampaignRun>, Vec<&CampaignRun>) =
        core.triage.runs.values().partition(|r| r.open());
    let listed: Vec<&CampaignRun> = open.into_iter().chain(over).take(CAMPAIGNS_MAX).collect();
    for (name, kind, help, read) in OF_CAMPAIGNS {
        page.family(name, kind, help);
        for run in &listed {
            page.labelled("campaign", &run.campaign.name, read(run));
        }
    }
}

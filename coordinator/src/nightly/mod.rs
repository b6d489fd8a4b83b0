//! A night, as a client of the service: campaigns with a budget, then re-tests of all open and fixed findings.
//!
//! Contract: budgets are counts. If a night is stopped earlier, its report says why. Only [`close`] records the night,
//! so that the next one is compared with it; it is called once the report is written.
//!
//! Limit: the snapshot that a night is compared with must fit into one message, which holds some hundred thousand open
//! findings.

mod again;
mod spool;

pub use spool::Spool;

use crate::report::{CampaignLine, Night, Score};
use crate::{Error, judged, line, many, v1};
use moire_corpus::{Finding, Snapshot};
use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};
use v1::control_service_client::ControlServiceClient;

/// A connection to the service.
pub type Client = ControlServiceClient<moire_proto::Linked>;
/// Returns the reason to stop now, if there is one. It is called often.
pub type Stop = Arc<dyn Fn() -> Option<&'static str> + Send + Sync>;

/// Time between two polls of the campaigns.
const LOOK: Duration = Duration::from_millis(250);
/// Time between two messages about progress.
const WORD: Duration = Duration::from_secs(10);

/// The plan of a night.
#[derive(Clone, Debug, Default)]
pub struct NightPlan {
    /// The campaigns. Each gets a new name and seed: the seed given here, or the next one that no earlier night used.
    pub campaigns: Vec<v1::CampaignSpec>,
    /// How often each finding is run again.
    pub runs: u32,
    /// Most findings run again, those untested for longest first; `None`: all.
    pub retests: Option<u64>,
}

/// Runs the night. `score` measures a campaign, `tell` is called with messages about progress. The findings are kept in
/// `place`, an empty file that is also open for reading.
///
/// # Errors
/// The coordinator refuses or goes away, there is no worker to run findings again, or the file cannot be written.
pub async fn run(
    client: &mut Client,
    plan: &NightPlan,
    stop: &Stop,
    place: File,
    score: impl Fn(&v1::CampaignStatus) -> Vec<Score>,
    tell: impl Fn(&str),
) -> Result<(Night, Spool), Error> {
    let statuses = campaigns(client, plan, stop, &tell).await?;
    let untested = again::all(client, plan, stop, &tell).await?;
    let (night, findings) = so_far(client, place, |_, _| true).await?;
    let scores = statuses.iter().flat_map(|(_, status)| score(status)).collect();
    let campaigns = statuses.into_iter().map(|(cut, status)| shown(cut, status)).collect();
    Ok((Night { untested, campaigns, scores, ..night }, findings))
}

/// Collects what a coordinator has, without running anything: all its campaigns, and the findings seen or tested within
/// `window` (none: all). The findings are kept in `place`, an empty file that is also open for reading.
///
/// # Errors
/// The coordinator refuses or goes away, or the file cannot be written.
pub async fn collect(
    client: &mut Client,
    window: Option<Duration>,
    place: File,
) -> Result<(Night, Spool), Error> {
    let window = window.map_or(u64::MAX, |w| u64::try_from(w.as_millis()).unwrap_or(u64::MAX));
    let recent = |finding: &Finding, at_ms: u64| {
        finding.last_seen_ms.max(finding.last_tested_ms) >= at_ms.saturating_sub(window)
    };
    let (night, findings) = so_far(client, place, recent).await?;
    let known = client.list_campaigns(v1::ListCampaignsRequest {}).await?.into_inner().campaigns;
    let cut = |status: &v1::CampaignStatus| CampaignLine::cut(status.phase() == v1::CampaignPhase::Done);
    let campaigns = known.into_iter().map(|status| shown(cut(&status), status)).collect();
    Ok((Night { campaigns, ..night }, findings))
}

/// The findings of a coordinator that are wanted, the last report and the losses.
async fn so_far(
    client: &mut Client,
    place: File,
    wanted: impl Fn(&Finding, u64) -> bool,
) -> Result<(Night, Spool), Error> {
    let last = client.get_snapshot(v1::GetSnapshotRequest {}).await?.into_inner();
    let at_ms = last.now_ms;
    let last: Option<Snapshot> = if last.json.is_empty() { None } else { Some(read(&last.json)?) };
    let mut findings = spool::Filling::new(place);
    let keep = |mut finding: Finding| {
        // Newer findings belong to the next report.
        if finding.first_seen_ms > at_ms || !wanted(&finding, at_ms) {
            return Ok(());
        }
        finding.replay = line::command(&finding);
        Ok(findings.push(&finding)?)
    };
    again::findings(client, keep).await?;
    let status = client.get_status(v1::GetStatusRequest {}).await?.into_inner();
    let losses = [status.losses, status.set_aside].concat();
    Ok((Night { at_ms, last, losses, ..Night::default() }, findings.done()?))
}

/// Records the night, so that the next one is compared with it.
///
/// # Errors
/// The coordinator refuses or goes away.
pub async fn close(client: &mut Client, night: &Night) -> Result<(), Error> {
    client.save_snapshot(v1::SaveSnapshotRequest { at_ms: night.at_ms }).await?;
    Ok(())
}

fn shown(mut cut: String, status: v1::CampaignStatus) -> CampaignLine {
    if cut.is_empty() && status.programs > 0 && judged(&status) == 0 {
        "no program was judged".clone_into(&mut cut);
    }
    let name = status.spec.unwrap_or_default().name;
    let programs = (status.programs, status.programs);
    CampaignLine { name, programs, executions: status.executions, abstentions: status.abstentions, cut }
}

/// Gives each campaign a name and a seed for this night: the first seed, from its own on, that no earlier night used.
fn named(plan: &NightPlan, known: &[v1::CampaignStatus]) -> Vec<v1::CampaignSpec> {
    let mut taken: BTreeSet<String> =
        known.iter().filter_map(|s| Some(s.spec.as_ref()?.name.clone())).collect();
    let named = |spec: &v1::CampaignSpec| {
        let (start, build) =
            (format!("nightly-{}", spec.profile), &spec.fingerprint[..8.min(spec.fingerprint.len())]);
        let had = |seed: u64| format!("{start}-{seed}-");
        let mut seed = spec.seed;
        while taken.iter().any(|name| name.starts_with(&had(seed))) {
            seed = seed.wrapping_add(1);
        }
        let name = format!("{}{build}", had(seed));
        taken.insert(name.clone());
        v1::CampaignSpec { name, seed, ..spec.clone() }
    };
    plan.campaigns.iter().map(named).collect()
}

/// Runs the campaigns to their ends or until `stop` says to stop. Returns each with the reason why it was cut short, or
/// an empty text.
async fn campaigns(
    client: &mut Client,
    plan: &NightPlan,
    stop: &Stop,
    tell: &impl Fn(&str),
) -> Result<Vec<(String, v1::CampaignStatus)>, Error> {
    let known = client.list_campaigns(v1::ListCampaignsRequest {}).await?.into_inner().campaigns;
    let mut names = Vec::new();
    for spec in named(plan, &known) {
        tell(&format!("campaign {}: {}", spec.name, many(spec.programs, "program")));
        names.push(spec.name.clone());
        client.create_campaign(spec).await?;
    }
    let mut told = Instant::now();
    loop {
        let mut statuses = Vec::new();
        for name in &names {
            let name = v1::CampaignName { name: name.clone() };
            statuses.push(client.get_campaign(name).await?.into_inner());
        }
        if !statuses.iter().any(is_open) {
            let ended = |s: &v1::CampaignStatus| match s.phase() {
                v1::CampaignPhase::Cancelled => "somebody cancelled it".to_owned(),
                _ => String::new(),
            };
            return Ok(statuses.into_iter().map(|s| (ended(&s), s)).collect());
        }
        if let Some(why) = stop() {
            return cancel(client, statuses, why).await;
        }
        if told.elapsed() >= WORD {
            told = Instant::now();
            let sum = |of: fn(&v1::CampaignStatus) -> u64| statuses.iter().map(of).sum::<u64>();
            let (programs, findings) = (sum(|s| s.programs), sum(|s| s.findings));
            tell(&format!("{}, {}", many(programs, "program"), many(findings, "finding")));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn is_open(status: &v1::CampaignStatus) -> bool {
    status.phase < i32::from(v1::CampaignPhase::Cancelled)
}

/// Cancels the open campaigns. Returns all, each with the reason why it was cut short, or an empty text.
async fn cancel(
    client: &mut Client,
    statuses: Vec<v1::CampaignStatus>,
    why: &str,
) -> Result<Vec<(String, v1::CampaignStatus)>, Error> {
    let mut out = Vec::new();
    for status in statuses {
        if is_open(&status) {
            let name = status.spec.clone().unwrap_or_default().name;
            let phase = v1::CampaignPhase::Cancelled.into();
            let set = v1::SetCampaignStateRequest { name: name.clone(), phase };
            match client.set_campaign_state(set).await {
                Ok(set) => out.push((why.to_owned(), set.into_inner())),
                // The campaign ended meanwhile.
                Err(_) => {
                    let status = client.get_campaign(v1::CampaignName { name }).await?;
                    out.push((String::new(), status.into_inner()));
                }
            }
        } else {
            out.push((String::new(), status));
        }
    }
    Ok(out)
}

/// Reads a JSON record of the service.
fn read<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, Error> {
    let unread =
        |e| tonic::Status::internal(format!("the coordinator sent a record this version cannot read: {e}"));
    Ok(serde_json::from_str(json).map_err(unread)?)
}

fn finding(record: &v1::FindingRecord) -> Result<Finding, Error> {
    read(&record.json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_night_has_names_and_seeds_of_its_own() {
        let spec = |profile: &str| v1::CampaignSpec {
            profile: profile.to_owned(),
            seed: 5,
            fingerprint: "0123456789".to_owned(),
            ..v1::CampaignSpec::default()
        };
        let plan = NightPlan {
            campaigns: vec![spec("mixed"), spec("mixed"), spec("tensor")],
            ..NightPlan::default()
        };
        let first = named(&plan, &[]);
        let names: Vec<&str> = first.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            ["nightly-mixed-5-01234567", "nightly-mixed-6-01234567", "nightly-tensor-5-01234567"]
        );
        let known = first.into_iter().map(|s| v1::CampaignStatus { spec: Some(s), ..Default::default() });
        let second = named(&plan, &known.collect::<Vec<_>>());
        assert_eq!(second.iter().map(|s| s.seed).collect::<Vec<_>>(), [7, 8, 6]);
    }
}

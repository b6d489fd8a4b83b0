//! Re-tests of all open and fixed findings, through the service.

use super::{Client, LOOK, NightPlan, Stop, finding};
use crate::{Error, many, v1};
use moire_corpus::{Finding, FindingId};
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// Most findings being re-tested at one time.
const AT_ONCE: usize = 16;

/// Hands all findings to `take`, one after the other. They are fetched page by page.
pub(super) async fn findings(
    client: &mut Client,
    mut take: impl FnMut(Finding) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut after = String::new();
    loop {
        let request = v1::ListFindingsRequest { after, ..v1::ListFindingsRequest::default() };
        let page = client.list_findings(request).await?.into_inner();
        for record in &page.findings {
            take(finding(record)?)?;
        }
        match page.findings.into_iter().next_back().filter(|_| page.more) {
            Some(last) => after = last.id,
            None => return Ok(()),
        }
    }
}

/// Runs findings again, those untested for longest first. Returns, for each finding that was not run again, the reason.
pub(super) async fn all(
    client: &mut Client,
    plan: &NightPlan,
    stop: &Stop,
    tell: &impl Fn(&str),
) -> Result<BTreeMap<FindingId, String>, Error> {
    let mut due: Vec<(u64, FindingId)> = Vec::new();
    let note = |f: Finding| {
        // A re-test without an answer counts as a turn.
        let tried = f.retest.as_ref().map_or(0, |r| r.at_ms).max(f.last_tested_ms);
        due.extend(f.is_retested().then_some((tried, f.id)));
        Ok(())
    };
    findings(client, note).await?;
    due.sort_unstable();
    if due.is_empty() {
        return Ok(BTreeMap::new());
    }
    let status = client.get_status(v1::GetStatusRequest {}).await?.into_inner();
    if status.workers == 0 {
        let text = "no worker is connected to run findings again; `moire work` starts one";
        return Err(tonic::Status::failed_precondition(text).into());
    }
    let all = due.len() as u64;
    let budget = plan.retests.unwrap_or(all);
    let (findings, runs) = (many(all.min(budget), "finding"), many(plan.runs, "time"));
    tell(&format!("running {findings} again, {runs} each"));
    let mut untested = BTreeMap::new();
    let mut out = JoinSet::new();
    for (n, (_, id)) in (0..).zip(&due) {
        let why = if n >= budget { Some("the budget of findings to run again was used up") } else { stop() };
        if let Some(why) = why {
            untested.insert(*id, why.to_owned());
            continue;
        }
        while out.len() >= AT_ONCE {
            take(out.join_next().await, &mut untested);
        }
        out.spawn(one(client.clone(), *id, plan.runs, stop.clone()));
    }
    while !out.is_empty() {
        take(out.join_next().await, &mut untested);
    }
    Ok(untested)
}

/// The result of one re-test.
struct Done {
    id: FindingId,
    /// Why it was not run again, if it was not.
    untested: Option<String>,
}

/// Runs one finding again, until it has an answer or `stop` says to stop.
async fn one(mut client: Client, id: FindingId, runs: u32, stop: Stop) -> Done {
    let stopped = async {
        loop {
            match stop() {
                Some(why) => return why,
                None => tokio::time::sleep(LOOK).await,
            }
        }
    };
    let request = v1::RetestFindingRequest { id: id.to_string(), runs };
    tokio::select! {
        answer = client.retest_finding(request) => Done { id, untested: answer.err().map(|e| e.message().to_owned()) },
        why = stopped => Done { id, untested: Some(why.to_owned()) },
    }
}

fn take(done: Option<Result<Done, tokio::task::JoinError>>, untested: &mut BTreeMap<FindingId, String>) {
    if let Some(Ok(Done { id, untested: Some(why) })) = done {
        untested.insert(id, why);
    }
}

//! What a night asks of the coordinator: findings by page, marked, run again, and the snapshot of the last report.
//!
//! Contract: what came of running a finding again is decided here, from the answers of workers, and durable before it
//! is told; a finding that cannot be asked about any more says why. Source: design sections 7 (findings) and 9.

use crate::core::Core;
use crate::intake::Answer;
use crate::service::{Control, record};
use crate::triage::claim_of;
use crate::{Error, v1};
use moire_corpus::{Counters, Finding, FindingId, Mark, MarkError, Retest, Snapshot, Write};
use moire_program::text::{Format, parse};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::oneshot;
use tonic::Status;

/// Runs of one request.
const RUNS_MAX: u32 = 64;
/// Time between looks whether somebody is connected who could answer.
const LOOK: Duration = Duration::from_secs(1);
/// Looks in vain before nobody waits any more: a worker that lost its connection is back earlier.
const LOOKS: u32 = 60;
/// Bytes of records in one page, about.
const PAGE_BYTES: usize = 4 << 20;

impl From<MarkError> for Error {
    fn from(error: MarkError) -> Self {
        match error {
            MarkError::Store(error) => Self::Store(error),
            MarkError::Unknown(_) => Self::Status(Status::not_found(error.to_string())),
            other => Self::Status(Status::invalid_argument(other.to_string())),
        }
    }
}

/// Why a finding cannot even be asked about: its text is a litmus text and reads no more.
fn unreadable(finding: &Finding) -> Option<String> {
    let litmus = finding.reduced.trim_start().starts_with("moire ");
    let error = parse(&finding.reduced, Format::Native).err().filter(|_| litmus)?;
    Some(format!("its program does not read any more: {error}"))
}

/// The answers of the runs as a record.
fn tally(at_ms: u64, answers: impl IntoIterator<Item = Option<Answer>>) -> Retest {
    use v1::verify_result::Answer as Said;
    let mut retest = Retest { at_ms, ..Retest::default() };
    for answer in answers {
        let reason = match answer {
            Some(Answer::Verified(result)) => match result.answer() {
                Said::Confirmed => {
                    retest.seen += 1;
                    continue;
                }
                Said::Refuted => {
                    retest.held += 1;
                    continue;
                }
                Said::Abstained | Said::Unspecified => result.reason,
            },
            _ => "its workers were lost, or none was there that could".to_owned(),
        };
        retest.silent += 1;
        if retest.reason.is_empty() {
            retest.reason = reason;
        }
    }
    retest
}

impl Control {
    /// Runs a finding again and records what came of it.
    pub(crate) async fn retest(&self, request: v1::RetestFindingRequest) -> Result<v1::FindingRecord, Error> {
        let finding = self.call(move |core| core.named(&request.id)).await??;
        let id = finding.id;
        let runs = request.runs.clamp(1, RUNS_MAX);
        let retest = if let Some(reason) = unreadable(&finding) {
            Retest { at_ms: Core::unix_ms(), silent: runs.into(), reason, ..Retest::default() }
        } else {
            let campaign = finding.campaign.clone();
            let needs = self.call(move |core| core.needs(&campaign)).await?;
            if !needs.is_empty() && !self.suited(&needs).await? {
                let names = needs.into_iter().collect::<Vec<_>>().join(" and ");
                let reason = format!("no worker with {names} is connected");
                let retest =
                    Retest { at_ms: Core::unix_ms(), silent: runs.into(), reason, ..Retest::default() };
                return self.call(move |core| core.retested(&id, retest)).await?;
            }
            let mut waiting = Vec::new();
            for _ in 0..runs {
                let job = v1::submit_job_request::Job::Verify(claim_of(&finding));
                let request = v1::SubmitJobRequest { plan: None, job: Some(job) };
                let (reply, answer) = oneshot::channel();
                let needs = needs.clone();
                self.call(move |core| core.submit(request, needs, reply)).await??;
                waiting.push(answer);
            }
            let (mut answers, mut away) = (Vec::new(), 0);
            for answer in waiting {
                answers.push(self.answered(answer, &needs, &mut away).await?);
            }
            tally(Core::unix_ms(), answers)
        };
        self.call(move |core| core.retested(&id, retest)).await?
    }
}

impl Control {
    async fn suited(&self, needs: &BTreeSet<String>) -> Result<bool, Error> {
        let needs = needs.clone();
        self.call(move |core| core.fleet.suited(&needs)).await
    }

    /// The answer of a job; none if those who could give it have been away for too long, `away` looks one after another.
    async fn answered(
        &self,
        mut answer: oneshot::Receiver<Option<Answer>>,
        needs: &BTreeSet<String>,
        away: &mut u32,
    ) -> Result<Option<Answer>, Error> {
        loop {
            tokio::select! {
                said = &mut answer => return Ok(said.ok().flatten()),
                () = tokio::time::sleep(LOOK), if !needs.is_empty() => {}
            }
            *away = if self.suited(needs).await? { 0 } else { *away + 1 };
            if *away > LOOKS {
                return Ok(None);
            }
        }
    }
}

impl Core {
    /// What a campaign asks of its workers, a device of some class, say; so do those who run its findings again.
    fn needs(&self, campaign: &str) -> BTreeSet<String> {
        self.runs.get(campaign).into_iter().flat_map(|run| run.campaign.needs.iter().cloned()).collect()
    }

    /// The finding of an id or of a prefix of one.
    pub(crate) fn named(&self, id: &str) -> Result<Finding, Error> {
        Ok(self.store.named(id)?)
    }

    pub(crate) fn mark(&mut self, request: &v1::MarkFindingRequest) -> Result<v1::FindingRecord, Error> {
        let mark = match request.state.as_str() {
            "suppress" => Mark::Suppress { until_ms: request.until_ms },
            word => word.parse()?,
        };
        let before = self.store.named(&request.id)?.state;
        let marked = self.store.mark(Self::unix_ms(), &request.id, &mark, &request.who, &request.why)?;
        self.finding_changed(&marked.id, Some(&before), &marked.state);
        Ok(record(&marked)?)
    }

    /// One page of findings.
    pub(crate) fn list(&self, request: &v1::ListFindingsRequest) -> Result<v1::ListFindingsResponse, Error> {
        let after: Option<FindingId> = match request.after.as_str() {
            "" => None,
            id => Some(id.parse().map_err(Status::invalid_argument)?),
        };
        let mut page = v1::ListFindingsResponse::default();
        let mut bytes = 0;
        for finding in self.store.findings_behind(after.as_ref()) {
            let finding = finding?;
            if !request.campaign.is_empty() && finding.campaign != request.campaign {
                continue;
            }
            if bytes > PAGE_BYTES {
                page.more = true;
                break;
            }
            let record = record(&finding)?;
            bytes += record.json.len();
            page.findings.push(record);
        }
        Ok(page)
    }

    fn retested(&mut self, id: &FindingId, retest: Retest) -> Result<v1::FindingRecord, Error> {
        let stored = self.store.finding(id)?;
        let mut finding = stored.ok_or_else(|| Status::not_found("the finding has gone"))?;
        let before = finding.state.clone();
        finding.retested(retest);
        self.store.commit(vec![Write::Finding(Box::new(finding.clone()))])?;
        self.finding_changed(id, Some(&before), &finding.state);
        Ok(record(&finding)?)
    }

    pub(crate) fn last_snapshot(&self) -> Result<v1::SnapshotRecord, Error> {
        let last = self.store.last_snapshot()?;
        let json = last.map(|s| text(&s)).transpose()?.unwrap_or_default();
        Ok(v1::SnapshotRecord { json, now_ms: Self::unix_ms() })
    }

    pub(crate) fn save_snapshot(&mut self, at_ms: u64) -> Result<v1::SnapshotRecord, Error> {
        let mut counters = Counters::default();
        self.runs.values().for_each(|run| counters.add(&run.progress.counters));
        let mut snapshot = Snapshot { at_ms, counters, ..Snapshot::default() };
        for finding in self.store.findings() {
            let finding = finding?;
            if finding.first_seen_ms <= at_ms {
                snapshot.add(&finding);
            }
        }
        self.store.save_snapshot(&snapshot)?;
        Ok(v1::SnapshotRecord { json: text(&snapshot)?, now_ms: Self::unix_ms() })
    }
}

fn text(snapshot: &Snapshot) -> Result<String, Status> {
    serde_json::to_string(snapshot).map_err(|e| Status::internal(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_tallied() {
        let said = |answer: v1::verify_result::Answer, reason: &str| {
            let result = v1::VerifyResult { answer: answer.into(), reason: reason.to_owned() };
            Some(Answer::Verified(result))
        };
        use v1::verify_result::Answer::{Abstained, Confirmed, Refuted};
        let answers = [
            said(Confirmed, ""),
            said(Refuted, "it holds"),
            said(Abstained, "no tool"),
            None,
            said(Refuted, ""),
        ];
        let retest = tally(7, answers);
        assert_eq!((retest.seen, retest.held, retest.silent), (1, 2, 2));
        assert_eq!((retest.reason.as_str(), retest.at_ms), ("no tool", 7));
        assert!(retest.disagrees() && retest.answered());
    }

    #[test]
    fn a_text_that_reads_no_more_is_not_gone() {
        let of = |text: &str| Finding { reduced: text.to_owned(), ..Finding::default() };
        assert!(unreadable(&of("moire \"t\"\nP0 { st.weaj; }\n")).is_some());
        assert!(
            unreadable(&of("moire \"t\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\n"))
                .is_none()
        );
        assert!(unreadable(&of("// a kernel of Tile IR")).is_none());
    }
}

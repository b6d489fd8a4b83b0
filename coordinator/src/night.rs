//! Runs a finding again for a client.
//!
//! Contract: the result is decided here, from the answers of workers, and is durable before the client is told. If the text
//! of a finding can no longer be read, the result says why.
//!
//! A finding of a campaign that needs capabilities (a class of devices, a target) is run again only by workers that have
//! them. If no such worker is connected, that is the result.

use crate::base::unix_ms;
use crate::finding::claim_of;
use crate::job::Answer;
use crate::service::Control;
use crate::{Error, v1};
use moire_corpus::{Finding, Retest};
use moire_program::text::{Format, parse};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::oneshot;

/// Most runs of one request.
const RUNS_MAX: u32 = 64;
/// Time between two looks for a worker that could answer.
const WORKER_POLL: Duration = Duration::from_secs(1);
/// How often we look for a worker before a re-test is given up. A worker that only lost its connection reconnects sooner.
const MAX_WORKER_POLLS: u32 = 60;

/// Why a finding cannot be run at all: it is a litmus text that this version does not read.
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
    /// Runs a finding again and records the result.
    pub(crate) async fn retest(&self, request: v1::RetestFindingRequest) -> Result<v1::FindingRecord, Error> {
        let finding = self.call(move |core| core.named(&request.id)).await??;
        let id = finding.id;
        let runs = request.runs.clamp(1, RUNS_MAX);
        let retest = if let Some(reason) = unreadable(&finding) {
            Retest { at_ms: unix_ms(), silent: runs.into(), reason, ..Retest::default() }
        } else {
            let campaign = finding.campaign.clone();
            let needs = self.call(move |core| core.needs(&campaign)).await?;
            if !needs.is_empty() && !self.suited(&needs).await? {
                let names = needs.into_iter().collect::<Vec<_>>().join(" and ");
                let reason = format!("no worker with {names} is connected");
                let retest = Retest { at_ms: unix_ms(), silent: runs.into(), reason, ..Retest::default() };
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
            tally(unix_ms(), answers)
        };
        self.call(move |core| core.retested(&id, retest)).await?
    }
}

impl Control {
    async fn suited(&self, needs: &BTreeSet<String>) -> Result<bool, Error> {
        let needs = needs.clone();
        self.call(move |core| core.base.fleet.suited(&needs)).await
    }

    /// The answer of a job; `None` if no suitable worker was connected in more than [`MAX_WORKER_POLLS`] consecutive polls,
    /// which `away` counts.
    async fn answered(
        &self,
        mut answer: oneshot::Receiver<Option<Answer>>,
        needs: &BTreeSet<String>,
        away: &mut u32,
    ) -> Result<Option<Answer>, Error> {
        loop {
            tokio::select! {
                said = &mut answer => return Ok(said.ok().flatten()),
                () = tokio::time::sleep(WORKER_POLL), if !needs.is_empty() => {}
            }
            *away = if self.suited(needs).await? { 0 } else { *away + 1 };
            if *away > MAX_WORKER_POLLS {
                return Ok(None);
            }
        }
    }
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

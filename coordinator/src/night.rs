//! Runs a finding again for a client.
//!
//! Contract: the result is decided here, from the answers of workers, and is durable before the client is told. If the text
//! of a finding can no longer be read, the result says why.
//!
//! Where workers come from elsewhere, one source closes nothing: another one has to say that the rule holds, and a source
//! that stands alone against two is not counted ([`crate::belief`]).
//!
//! A finding of a campaign that needs capabilities (a class of devices, a target), or of an oracle that needs a tool, is run
//! again only by workers that have them. If no such worker is connected, that is the result.

use crate::belief::{Ruling, Words};
use crate::clock::unix_ms;
use crate::core::Core;
use crate::finding::claim_of;
use crate::job::{Answer, Reply, Whom};
use crate::lease::Source;
use crate::line::ABOUT_WORKERS;
use crate::repeat::FLEET;
use crate::service::Control;
use crate::trial::Planted;
use crate::{Error, v1};
use moire_corpus::{Finding, Retest};
use moire_program::text::{Format, parse};
use moire_proto::needs;
use std::time::Duration;
use tokio::sync::oneshot;

/// Most runs of one request.
const RUNS_MAX: u32 = 64;
/// Time between two looks for a worker that could answer.
const WORKER_POLL: Duration = Duration::from_secs(1);
/// How often we look for a worker before a re-test is given up. A worker that only lost its connection reconnects sooner.
const MAX_WORKER_POLLS: u32 = 60;
/// The same for a second source, of which there may be none.
const SOURCE_POLLS: u32 = 5;
/// Most sources that are asked beside those that made the runs.
const SOURCES_MAX: usize = 4;
/// The reason where only one source says that the rule holds.
const ONE_SOURCE: &str = "only one source says that the rule holds, and another one has to";

/// Why a finding cannot be run at all: it is about the fleet, or a litmus text that this version does not read.
fn unreadable(finding: &Finding) -> Option<String> {
    if finding.oracle == FLEET {
        return Some(ABOUT_WORKERS.to_owned());
    }
    let litmus = finding.reduced.trim_start().starts_with("moire ");
    let error = parse(&finding.reduced, Format::Native).err().filter(|_| litmus)?;
    Some(format!("its program does not read any more: {error}"))
}

/// The answers of the runs as a record.
fn tally(at_ms: u64, runs: impl IntoIterator<Item = Run>) -> Retest {
    let mut retest = Retest { at_ms, ..Retest::default() };
    for run in runs {
        let (broken, reason) = match run.map(|said| said.answer) {
            Some(Answer::Verified(result)) => (broken(&result), result.reason),
            _ => (None, "its workers were lost, or none was there that could".to_owned()),
        };
        match broken {
            Some(true) => retest.seen += 1,
            Some(false) => retest.held += 1,
            None => retest.silent += 1,
        }
        if broken.is_none() && retest.reason.is_empty() {
            retest.reason = reason;
        }
    }
    retest
}

/// One run of a finding on the fleet; `None`: no answer came.
type Run = Option<Reply>;

/// What sources say of a finding: whether the rule is broken.
fn words(runs: &[Run]) -> Words<bool> {
    let word = |said: &Reply| {
        let broken = match &said.answer {
            Answer::Verified(result) => broken(result),
            _ => None,
        };
        (said.by.clone(), broken)
    };
    Words::of(runs.iter().flatten().map(word))
}

/// Whether the rule is broken; `None`: the worker could not say.
fn broken(result: &v1::VerifyResult) -> Option<bool> {
    match result.answer() {
        v1::verify_result::Answer::Confirmed => Some(true),
        v1::verify_result::Answer::Refuted => Some(false),
        _ => None,
    }
}

/// What nobody but one source says is not said.
fn without_lone(retest: Retest) -> Retest {
    let reason = if retest.reason.is_empty() { ONE_SOURCE.to_owned() } else { retest.reason };
    Retest { held: 0, silent: retest.silent.saturating_add(retest.held), reason, ..retest }
}

impl Control {
    /// Runs a finding again and records the result.
    pub(crate) async fn retest(&self, request: v1::RetestFindingRequest) -> Result<v1::FindingRecord, Error> {
        let finding = self.call(move |core| core.named(&request.id)).await??;
        let (id, runs) = (finding.id, request.runs.clamp(1, RUNS_MAX));
        let retest = match unreadable(&finding) {
            Some(reason) => silent(runs, reason),
            None => self.run_again(&finding, runs).await?,
        };
        self.call(move |core| core.retested(&id, retest)).await?
    }

    /// The result of so many runs.
    async fn run_again(&self, finding: &Finding, runs: u32) -> Result<Retest, Error> {
        let campaign = finding.campaign.clone();
        let mut whom = Whom { needs: self.call(move |core| core.needs(&campaign)).await?, ..Whom::default() };
        whom.needs.extend(needs::needs([finding.oracle.as_str()]));
        if !whom.needs.is_empty() && !self.suited(&whom).await? {
            let names = whom.needs.into_iter().collect::<Vec<_>>().join(" and ");
            return Ok(silent(runs, format!("no worker with {names} is connected")));
        }
        let mut waiting = Vec::new();
        for _ in 0..runs {
            waiting.push(self.ask(finding, &whom).await?);
        }
        let (mut all, mut away) = (Vec::new(), 0);
        for answer in waiting {
            all.push(self.answered(answer, &whom, &mut away, MAX_WORKER_POLLS).await?);
        }
        let holds = words(&all).by(&false).next().is_some();
        let one_is_enough =
            |core: &mut Core| core.base.fleet.at_home() || core.base.trial.has(Planted::RetestsAlone);
        if !holds || self.call(one_is_enough).await? {
            return Ok(tally(unix_ms(), all));
        }
        self.settle(finding, whom, &mut all).await?;
        let retest = tally(unix_ms(), all.iter().cloned());
        // What one source says of a finding that is fixed changes nothing.
        let lone = finding.is_open() && words(&all).by(&false).count() < 2;
        Ok(if lone { without_lone(retest) } else { retest })
    }

    /// Asks further sources until two say the same. The runs of a source that stands alone against two do not count.
    async fn settle(&self, finding: &Finding, whom: Whom, runs: &mut Vec<Run>) -> Result<(), Error> {
        for _ in 0..SOURCES_MAX {
            let words = words(runs);
            match words.ruling() {
                Ruling::Another => {
                    let avoid = words.asked().cloned().collect();
                    let other = Whom { avoid, ..whom.clone() };
                    let answer = self.ask(finding, &other).await?;
                    match self.answered(answer, &other, &mut 0, SOURCE_POLLS).await? {
                        None => return Ok(()),
                        said => runs.push(said),
                    }
                }
                Ruling::Believed(said, Some(alone)) => {
                    runs.retain(|run| run.as_ref().is_none_or(|said| said.by != alone));
                    let right: Vec<Source> = words.by(&said).cloned().collect();
                    return self.call(move |core| core.base.contradicted(&right, &alone)).await;
                }
                Ruling::Believed(_, None) | Ruling::Open => return Ok(()),
            }
        }
        Ok(())
    }

    /// Has a finding run again once.
    async fn ask(&self, finding: &Finding, whom: &Whom) -> Result<oneshot::Receiver<Run>, Error> {
        let job = v1::submit_job_request::Job::Verify(claim_of(finding));
        let request = v1::SubmitJobRequest { plan: None, job: Some(job) };
        let (reply, answer) = oneshot::channel();
        let whom = whom.clone();
        self.call(move |core| core.submit(request, whom, reply)).await??;
        Ok(answer)
    }

    async fn suited(&self, whom: &Whom) -> Result<bool, Error> {
        let whom = whom.clone();
        self.call(move |core| core.base.fleet.suited(&whom.needs, &whom.avoid)).await
    }

    /// The answer of a job; `None` if no suitable worker was connected in more than `polls` consecutive polls, which `away`
    /// counts, or if a source that is needed as a second one does not answer in [`MAX_WORKER_POLLS`].
    async fn answered(
        &self,
        mut answer: oneshot::Receiver<Run>,
        whom: &Whom,
        away: &mut u32,
        polls: u32,
    ) -> Result<Run, Error> {
        let mut waited = 0;
        loop {
            tokio::select! {
                said = &mut answer => return Ok(said.ok().flatten()),
                () = tokio::time::sleep(WORKER_POLL), if !whom.is_anyone() => {}
            }
            waited += 1;
            *away = if self.suited(whom).await? { 0 } else { *away + 1 };
            if *away > polls || (waited > MAX_WORKER_POLLS && !whom.avoid.is_empty()) {
                return Ok(None);
            }
        }
    }
}

/// The result of runs that nobody made.
fn silent(runs: u32, reason: String) -> Retest {
    Retest { at_ms: unix_ms(), silent: runs.into(), reason, ..Retest::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_tallied() {
        let said = |answer: v1::verify_result::Answer, reason: &str| {
            let result = v1::VerifyResult { answer: answer.into(), reason: reason.to_owned() };
            Some(Reply { by: Source::Known("w".to_owned()), answer: Answer::Verified(result) })
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
        let lone = without_lone(retest);
        assert_eq!((lone.seen, lone.held, lone.silent, lone.reason.as_str()), (1, 0, 4, "no tool"));
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

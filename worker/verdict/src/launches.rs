//! Judges the launches of a kernel, the smallest first.
//!
//! Contract: the answer is about the largest launch that was tried, also where no engine models it or a limit ended its
//! exploration. A smaller one adds the races, lifetimes and broken preconditions that the largest does not show, each headed
//! with its command, and never a hang: a CTA may wait for another one that only a larger launch has. Larger launches are tried
//! as long as all before are clean or hang, each within a multiple of the checks that the one before needed. Which launches
//! those are depends on counts, and on no clock. A launch is clean only if everything that synchronises runs in it, or in a
//! smaller one that is clean.

use crate::answer::Answer;
use crate::input::File;
use crate::judging::{Explored, Judge};
use crate::kernel::{Candidate, Launched, Smaller, Statement};
use crate::verdicts::{Verdicts, told, undecided, union};
use anyhow::{Context, Result};
use moire_execution::leaf::Finding;
use moire_explore::Limits;
use moire_explore::judge::{Judgement, Verdict, flag_verdict};
use std::collections::BTreeSet;

/// Consistency checks of a larger launch, by those of the one before, and at least.
const LARGER_CHECKS: (u64, u64) = (8, 2_000);

/// A launch that was tried.
struct Tried {
    explored: Vec<Explored>,
    launch: Launched,
    /// No engine was asked, or its answer is about any data and only says what could happen.
    unasked: bool,
}

impl Tried {
    fn verdicts(&self) -> Vec<Verdict> {
        union(self.explored.iter().map(|e| &e.1.verdicts))
    }

    fn is_clean(&self) -> bool {
        self.explored.iter().all(|e| e.1.is_clean())
    }

    /// Whether a larger launch can have another answer.
    fn is_open(&self) -> bool {
        let refused = self.unasked && self.launch.any_data.is_none();
        refused || self.is_clean() || self.verdicts().contains(&Verdict::Hang)
    }

    /// The statements that synchronise and do not run, where the launch was run ahead.
    fn missed(&self) -> Option<BTreeSet<Statement>> {
        Some(self.launch.coverage.as_ref()?.synchronising.missed.iter().cloned().collect())
    }
}

impl Judge<'_> {
    /// The answer for the launches of a kernel.
    pub(crate) fn launches(&self, file: &File, candidates: Vec<Candidate>) -> Result<Answer> {
        let mut limits = *self.limits();
        let mut tried: Vec<Tried> = Vec::new();
        let mut candidates = candidates.into_iter().peekable();
        while let Some(candidate) = candidates.next() {
            self.host.doubt(candidates.peek().is_some());
            let one = self.launch(candidate, &limits)?;
            let (checks, open) =
                (one.explored.iter().map(|e| e.1.summary.checks).sum::<u64>(), one.is_open());
            let (times, least) = LARGER_CHECKS;
            limits.checks = checks.saturating_mul(times).max(least).min(self.limits().checks);
            tried.push(one);
            if !open {
                break;
            }
            self.host.forget();
        }
        let (uncovered, covered) = coverage(&tried);
        let Tried { explored, mut launch, unasked } = tried.pop().context("a kernel has a launch")?;
        launch.covers(covered.map(|of| &tried[of].launch), &self.question.options());
        launch.coverage.iter_mut().for_each(|c| c.uncovered.clone_from(&uncovered));
        let largest = union(explored.iter().map(|e| &e.1.verdicts));
        let mut beside = Vec::new();
        for Tried { explored, launch: smaller, .. } in tried {
            let command = smaller.command(&self.question.options());
            let verdicts = Verdicts(union(explored.iter().map(|e| &e.1.verdicts)));
            launch.smaller.push(Smaller { command: command.clone(), verdicts });
            let own = explored.into_iter().filter_map(|e| added(e, &largest));
            beside.extend(own.map(|e| (e, command.clone())));
        }
        let mut answer = match unasked {
            false => self.noted(explored, Some(launch), &limits, Some(file)),
            true => {
                let (source, judgement, _) = explored.into_iter().next().context("a launch has a program")?;
                Answer { launch: Some(launch), ..self.untried(&source, &judgement) }
            }
        };
        let part = |(e, command)| self.part(e, Some(command), &limits, Some(file));
        answer.parts.extend(beside.into_iter().map(part));
        Ok(answer)
    }

    /// Explores a launch, unless it is refused.
    fn launch(&self, candidate: Candidate, limits: &Limits) -> Result<Tried> {
        let Candidate { mut sources, mut launch, refused, reserve } = candidate;
        if let Some(why) = refused {
            let source = sources.pop().context("a launch has a program")?;
            return Ok(Tried { explored: vec![(source, undecided(why), None)], launch, unasked: true });
        }
        // What is found for any data need not happen, so nothing is said at once.
        let mut explored = self.explored(sources, limits, launch.any_data.is_none())?;
        reserve.into_iter().for_each(|why| reserved(&mut explored, &why));
        let clean = explored.iter().all(|e| e.1.is_clean());
        let could = launch.any_data.as_mut().filter(|_| !clean);
        let unasked = could.is_some();
        if let Some(any) = could {
            any.possible = could_happen(&explored);
            explored.truncate(1);
            explored.iter_mut().for_each(|e| e.1 = undecided(Verdict::Abstained(any.why.clone())));
        }
        Ok(Tried { explored, launch, unasked })
    }
}

/// Abstains from what is clean.
fn reserved(explored: &mut [Explored], why: &str) {
    let all = explored.iter_mut().flat_map(|e| &mut e.1.verdicts);
    all.filter(|v| matches!(v, Verdict::Clean(_))).for_each(|v| *v = Verdict::Abstained(why.to_owned()));
}

/// What synchronises and runs in none of the launches that decide: in the largest one that was run ahead, and in no smaller
/// one that is clean. With the position of that largest one, if a larger one was refused.
fn coverage(tried: &[Tried]) -> (Vec<Statement>, Option<usize>) {
    let Some(of) = tried.iter().rposition(|t| t.launch.coverage.is_some()) else { return (Vec::new(), None) };
    let smaller = tried[..of].iter().filter(|t| t.is_clean()).filter_map(Tried::missed);
    let own = tried[of].missed().unwrap_or_default();
    let left = smaller.fold(own, |left, missed| &left & &missed);
    (left.into_iter().collect(), (of + 1 < tried.len()).then_some(of))
}

/// What a smaller launch adds to the verdicts of the largest one.
fn added((source, judgement, sample): Explored, largest: &[Verdict]) -> Option<Explored> {
    let adds = |v: &Verdict| {
        matches!(
            v,
            Verdict::Race | Verdict::Lifetime | Verdict::Protocol | Verdict::EarlyPass | Verdict::Undefined
        ) && !largest.contains(v)
    };
    judgement.summary.executions()?;
    let verdicts: Vec<Verdict> = judgement.verdicts.iter().filter(|v| adds(v)).cloned().collect();
    let about = |flag: &str| verdicts.contains(&flag_verdict(flag));
    let own = Judgement {
        race: judgement.race.filter(|(flag, _)| about(flag)),
        broken: judgement.broken.into_iter().filter(|(flag, _)| about(flag)).collect(),
        findings: judgement.findings.into_iter().filter(|f| about(&f.flag)).collect(),
        summary: judgement.summary,
        ..told(verdicts.clone())
    };
    (!verdicts.is_empty()).then_some((source, own, sample))
}

/// The verdicts of programs, each with the lines it is about first.
fn could_happen(explored: &[Explored]) -> Vec<String> {
    let one = |verdict: String| {
        let about = |f: &&Finding| flag_verdict(&f.flag).word() == verdict;
        let found = explored.iter().flat_map(|e| &e.1.findings).find(about);
        let lines: BTreeSet<u32> = found.iter().flat_map(|f| &f.places).map(|p| p.line).collect();
        let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
        if lines.is_empty() { verdict } else { format!("{verdict} (line {})", lines.join(" and ")) }
    };
    Verdicts(union(explored.iter().map(|e| &e.1.verdicts))).words().into_iter().map(one).collect()
}

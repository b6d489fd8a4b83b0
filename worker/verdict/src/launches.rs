//! Judges the launches of a kernel, the smallest first.
//!
//! Contract: the answer is about the largest launch that was tried, also where no engine models it or a limit ended its
//! exploration. A smaller one adds the races, lifetimes and broken preconditions that the largest does not show, each headed
//! with its command, and a hang only if more CTAs with the same parameters hang, too: a CTA may wait for another one that only a
//! larger launch has. Larger launches are tried
//! as long as all before are clean or hang, each within a multiple of the checks that the one before needed. Which launches
//! those are depends on counts, and on no clock. A launch is clean only if everything that is asked of the kernel happens in it,
//! or in another one that is clean. If the largest launch is clean, more are judged for what it leaves (`kernel/covering`). What is
//! wrong with one of these is wrong with the kernel, with two exceptions. A hang is none if a larger grid with the same
//! parameters does not hang. A launch whose rows may overlap, or with a very large number,
//! shows nothing but what it covers; what is wrong with it is said.

use crate::answer::Answer;
use crate::door::Answered;
use crate::every::{Asking, every};
use crate::input::{File, Source};
use crate::judging::{Explored, Judge};
use crate::kernel::{Candidate, Covering, Every, Launched, Run, Search, Smaller, Taken};
use crate::verdicts::{Verdicts, told, undecided, union};
use anyhow::{Context, Result};
use moire_execution::leaf::Finding;
use moire_explore::judge::{Judgement, Verdict, flag_verdict};
use moire_explore::{Bound, Limits};
use moire_kernel::specialise::CHOOSER;
use moire_program::ir::Program;
use std::collections::BTreeSet;

/// Consistency checks of a larger launch, by those of the one before, and at least.
const LARGER_CHECKS: (u64, u64) = (8, 2_000);
/// The work of all launches for the coverage. A check costs about the square of the number of instructions.
const MORE_WORK: u64 = 1 << 30;
/// The work for one launch in which something is wrong, for each second after the first finding.
const SOON_WORK: u64 = 1 << 25;
/// How many times the values of parameters that decide addresses are taken where CTAs have no room.
const ROOM: [u64; 2] = [2, 16];
/// Most launches for the coverage.
const MORE: usize = 10;

/// A launch that was tried.
struct Tried {
    explored: Vec<Explored>,
    launch: Launched,
    /// By kernel.
    runs: Vec<Run>,
    /// No engine was asked, or its answer is about any data and only says what could happen.
    unasked: bool,
}

impl Tried {
    fn verdicts(&self) -> Vec<Verdict> {
        union(self.explored.iter().map(|e| &e.judgement.verdicts))
    }

    fn is_clean(&self) -> bool {
        self.explored.iter().all(|e| e.judgement.is_clean())
    }

    /// Whether a larger launch can have another answer.
    fn is_open(&self) -> bool {
        let refused = self.unasked && self.launch.any_data.is_none();
        refused || self.is_clean() || self.verdicts().contains(&Verdict::Hang)
    }

    /// Consistency checks of its explorations.
    fn checks(&self) -> u64 {
        self.explored.iter().map(|e| e.judgement.summary.checks).sum()
    }

    /// The launches, if they were explored and are clean.
    fn clean(&self) -> Option<&[Run]> {
        Some(self.runs.as_slice()).filter(|runs| !runs.is_empty() && !self.unasked && self.is_clean())
    }

    /// The lines of what is wrong.
    fn lines(&self) -> BTreeSet<u32> {
        self.explored.iter().flat_map(Explored::wrong).flatten().map(|place| place.1).collect()
    }

    /// Whether all that is wrong is work that a CTA has not waited for when it ends.
    fn is_unfinished(&self) -> bool {
        let told = |e: &Explored| e.second.as_ref().is_none_or(|s| s.answered != Answered::Operational);
        let all = self.explored.iter().flat_map(|e| &e.judgement.findings);
        self.explored.iter().all(told) && all.into_iter().all(|f| f.flag == "lifetime-pending")
    }

    /// Whether all that is wrong is that one instruction of two CTAs meets itself.
    fn stores_meet(&self) -> bool {
        let meets = |explored: &Explored, places: &[(usize, u32)]| {
            let cta = |thread: usize| explored.source.program.threads.get(thread).map(|t| t.place.cta);
            matches!(places, [(a, x), (b, y)] if x == y && cta(*a) != cta(*b))
        };
        let of = |e: &Explored| e.wrong().iter().all(|places| meets(e, places));
        self.verdicts() == [Verdict::Race] && self.explored.iter().all(of)
    }

    fn has_finding(&self) -> bool {
        !self.unasked && Verdicts(self.verdicts()).has_finding()
    }
}

/// What the launches for the coverage gave.
#[derive(Default)]
struct Covered {
    /// The launches, with their commands.
    judged: Vec<Smaller>,
    /// A launch that is wrong.
    wrong: Option<Tried>,
    taken: Vec<Taken>,
}

impl Covered {
    /// Adds those of another kernel.
    fn join(&mut self, other: Covered) {
        self.judged.extend(other.judged);
        self.taken.extend(other.taken);
        self.wrong = self.wrong.take().or(other.wrong);
    }
}

impl Judge<'_> {
    /// The answer for the launches of a kernel.
    pub(crate) fn launches(
        &self,
        file: &File,
        candidates: Vec<Candidate>,
        coverings: &[Covering],
    ) -> Result<Answer> {
        // What is asked of one kernel alone.
        let covering = if let [one] = coverings { Some(one) } else { None };
        if let Some(answer) = self.stood_for(file, &candidates, covering)? {
            return Ok(answer);
        }
        let mut limits = *self.limits();
        let mut tried: Vec<Tried> = Vec::new();
        let mut candidates = candidates.into_iter().peekable();
        while let Some(candidate) = candidates.next() {
            self.host.doubt(candidates.peek().is_some());
            let one = self.launch(candidate, &limits, true)?;
            let (checks, open) = (one.checks(), one.is_open());
            let (times, least) = LARGER_CHECKS;
            limits.checks = checks.saturating_mul(times).max(least).min(self.limits().checks);
            tried.push(one);
            if !open {
                break;
            }
            self.host.forget();
        }
        let left_out = self.given_room(&mut tried, covering, &limits)?;
        let every = self.sized(&tried, covering, &limits)?;
        let mut more = Covered::default();
        for (n, covering) in coverings.iter().enumerate() {
            let own = self.covered(&mut tried, (n, covering))?;
            more.join(own);
        }
        more.taken.extend(left_out);
        more.wrong = more.wrong.or(every.1);
        let Tried { explored, mut launch, unasked, .. } = tried.pop().context("a kernel has a launch")?;
        let largest = union(explored.iter().map(|e| &e.judgement.verdicts));
        let mut beside = Vec::new();
        (launch.more, launch.every) = (more.judged, every.0);
        launch.taken.extend(more.taken);
        let proofs: BTreeSet<Taken> =
            launch.every.iter_mut().flat_map(|e| std::mem::take(&mut e.taken)).collect();
        let new: Vec<Taken> = proofs.into_iter().filter(|t| !launch.taken.contains(t)).collect();
        launch.taken.extend(new);
        let hangs: Vec<bool> = tried.iter().map(|t| stands(t, &tried, &launch, &largest)).collect();
        for (Tried { explored, launch: smaller, .. }, hangs) in tried.into_iter().zip(hangs) {
            let command = smaller.command(&self.question.options());
            let verdicts = Verdicts(union(explored.iter().map(|e| &e.judgement.verdicts)));
            launch.smaller.push(Smaller { command: command.clone(), verdicts });
            let own = explored.into_iter().filter_map(|e| added(e, &largest, hangs));
            beside.extend(own.map(|e| (e, command.clone())));
        }
        if let Some(wrong) = more.wrong {
            let command = wrong.launch.command(&self.question.options());
            beside.extend(
                wrong.explored.into_iter().filter(|e| !e.judgement.is_clean()).map(|e| (e, command.clone())),
            );
        }
        let mut answer = match unasked {
            false => self.noted(explored, Some(launch), &limits, Some(file)),
            true => {
                let one = explored.into_iter().next().context("a launch has a program")?;
                Answer { launch: Some(launch), ..self.untried(&one.source, &one.judgement) }
            }
        };
        let part = |(e, command)| self.part(e, Some(command), &limits, Some(file));
        answer.parts.extend(beside.into_iter().map(part));
        Ok(answer)
    }

    /// The answer for a shorter launch in the place of one that is too long to be run ahead, if a proof says that it is about both.
    fn stood_for(
        &self,
        file: &File,
        candidates: &[Candidate],
        covering: Option<&Covering>,
    ) -> Result<Option<Answer>> {
        let (Some(covering), [Candidate { long: Some(long), .. }]) = (covering, candidates) else {
            return Ok(None);
        };
        let Some((shorter, place, value)) = covering.shorter(long) else { return Ok(None) };
        let mut answer = self.launches(file, vec![shorter], std::slice::from_ref(covering))?;
        let proofs = answer.launch.iter_mut().flat_map(|launch| &mut launch.every);
        let stands = proofs.map(|one| one.stands_for(place, value)).fold(false, |all, one| all | one);
        Ok(stands.then_some(answer))
    }

    /// What is said of parameters that decide how often loops run, where nothing is wrong so far, and a launch with other
    /// values of them that is wrong.
    fn sized(
        &self,
        tried: &[Tried],
        covering: Option<&Covering>,
        limits: &Limits,
    ) -> Result<(Vec<Every>, Option<Tried>)> {
        let run = tried.iter().rev().find_map(|t| t.runs.first());
        let (Some(covering), Some(run), false) = (covering, run, tried.iter().any(Tried::has_finding)) else {
            return Ok((Vec::new(), None));
        };
        let explore = &|program: Program, most: u64| {
            let source = covering.source(program);
            let price = price(&source);
            let limits = Limits { checks: (most / price).min(self.limits().checks), ..*self.limits() };
            if limits.checks == 0 {
                return Ok((Vec::new(), most));
            }
            let judgement = self.explored(source, &limits, false)?.judgement;
            let work = judgement.summary.checks.saturating_mul(price);
            Ok((union([&judgement.verdicts]), work))
        };
        let model = (self.asked.name.as_str(), &self.asked.model);
        let (said, wrong) = every(&Asking { covering, run, model, explore })?;
        let wrong =
            wrong.map(|launch| self.launch(covering.candidate(launch)?, limits, false)).transpose()?;
        Ok((said, wrong.filter(Tried::has_finding)))
    }

    /// Puts a launch with larger parameters in the place of the largest one, if all that is wrong there is that two CTAs store to
    /// one place, and that is not so with these. Says what is left out.
    fn given_room(
        &self,
        tried: &mut Vec<Tried>,
        covering: Option<&Covering>,
        limits: &Limits,
    ) -> Result<Option<Taken>> {
        let Some((covering, last)) = covering.zip(tried.last()) else { return Ok(None) };
        let Some(run) = last.runs.first().filter(|_| last.stores_meet()) else { return Ok(None) };
        let lines = last.lines();
        let mut found = None;
        for candidate in ROOM.iter().filter_map(|times| covering.roomier(run, &lines, *times)) {
            found = Some(self.launch(candidate, limits, false)?).filter(|one| one.clean().is_some());
            if found.is_some() {
                break;
            }
        }
        let Some(roomier) = found else { return Ok(None) };
        let why =
            "CTAs store to one place there, and nothing says that so many are launched with such parameters";
        let command = last.launch.command(&self.question.options());
        let taken = doubted(why, &last.verdicts(), &command);
        tried.pop();
        tried.push(roomier);
        Ok(Some(taken))
    }

    /// Judges more launches of a kernel, if the largest one is clean, and says in its coverage what is left.
    fn covered(&self, tried: &mut [Tried], (n, covering): (usize, &Covering)) -> Result<Covered> {
        let Some(of) = tried.iter().rposition(|t| t.launch.coverage.is_some()) else {
            return Ok(Covered::default());
        };
        let clean: Vec<&Run> = tried.iter().filter_map(Tried::clean).filter_map(|runs| runs.get(n)).collect();
        let judged = tried.iter().filter_map(|t| Some(t.runs.get(n)?.launch.clone())).collect();
        let mut search = covering.search(&clean, judged);
        let right = |t: &Tried| t.is_clean() || t.verdicts() == [Verdict::Hang];
        let closed = tried.last().is_some_and(|t| t.clean().is_some()) && tried.iter().all(right);
        let mut more = match closed {
            true => self.more(&mut search, n)?,
            false => Covered::default(),
        };
        let never = search.never();
        more.taken.extend(search.taken());
        let (smaller, largest) = tried.split_at_mut(tried.len() - 1);
        let first = &mut largest[0].launch;
        if n == 0 {
            first.covers(smaller.get(of).map(|t| &t.launch), &self.question.options());
        }
        let largest = first.grid_mut(n);
        largest.coverage.iter_mut().for_each(|c| c.leave_out(&never));
        more.taken.extend(never);
        if more.wrong.is_none() && (closed || largest.coverage.as_ref().is_some_and(|c| c.of.is_some())) {
            let uncovered = search.uncovered(largest, !closed);
            largest.coverage.iter_mut().for_each(|c| c.uncovered.clone_from(&uncovered));
        }
        Ok(more)
    }

    /// Judges launches that run more of the kernel, until nothing is left, nothing more is found, or one is wrong.
    fn more(&self, search: &mut Search<'_>, n: usize) -> Result<Covered> {
        let mut out = Covered::default();
        let mut left = MORE_WORK;
        for _ in 0..MORE {
            let Some(more) = search.next() else { break };
            let check = more.candidate.sources.iter().map(price).max().unwrap_or(1);
            let limits =
                Limits { checks: (left / 2 / check).max(1).min(self.limits().checks), ..*self.limits() };
            let one = self.launch(more.candidate, &limits, false)?;
            left = left.saturating_sub(one.checks().saturating_mul(check));
            let command = one.launch.command(&self.question.options());
            if !one.has_finding() {
                one.clean().and_then(|runs| runs.get(n)).into_iter().for_each(|run| search.count(run));
                out.judged.push(Smaller { command, verdicts: Verdicts(one.verdicts()) });
                continue;
            }
            let excuse = one
                .runs
                .get(n)
                .and_then(|run| search.excuse(run, &one.verdicts(), &one.lines(), one.is_unfinished()));
            let excused = excuse.is_some();
            out.taken.extend(excuse.map(|place| empty(&place, &one.verdicts())));
            if excused {
                continue;
            }
            if let Some(why) = more.doubt {
                let taken = doubted(why, &one.verdicts(), &command);
                // The first launch of several that are left out for one reason is enough.
                let same = |t: &Taken| t.text.split(';').next() == taken.text.split(';').next();
                if !out.taken.iter().any(same) {
                    out.taken.push(taken);
                }
                continue;
            }
            let larger = one.runs.get(n).filter(|_| one.verdicts() == [Verdict::Hang]);
            match larger
                .and_then(|run| search.larger(run))
                .map(|c| self.launch(c, &limits, false))
                .transpose()?
            {
                Some(larger) if larger.clean().is_some() => {
                    larger.clean().and_then(|runs| runs.get(n)).into_iter().for_each(|run| search.count(run));
                    let command = larger.launch.command(&self.question.options());
                    out.judged.push(Smaller { command, verdicts: Verdicts(larger.verdicts()) });
                }
                larger => {
                    out.wrong = Some(larger.filter(Tried::has_finding).unwrap_or(one));
                    break;
                }
            }
        }
        Ok(out)
    }

    /// Explores a program to the end, or until something is wrong and some work is done: what is wrong is not less so for what
    /// else there is.
    fn soon(&self, source: Source, limits: &Limits, telling: bool) -> Result<Explored> {
        let work = SOON_WORK.saturating_mul(self.question.after_finding.as_secs());
        let soon = (work / price(&source)).max(1);
        if soon >= limits.checks {
            return self.offered(source, limits, telling);
        }
        let mut explored = self.offered(source, &Limits { checks: soon, ..*limits }, telling)?;
        let open = explored.judgement.summary.bounded == Some(Bound::Checks);
        if open && is_wrong(&explored) {
            let ended = |v: &mut Verdict| *v = Verdict::Bounded(Bound::Ended.to_string());
            let all = explored.judgement.verdicts.iter_mut();
            all.filter(|v| matches!(v, Verdict::Bounded(_))).for_each(ended);
        }
        if !open || is_wrong(&explored) || explored.judgement.is_clean() {
            return Ok(explored);
        }
        self.offered(explored.source, limits, telling)
    }

    /// Explores a launch, unless it is refused; with `telling`, what is found may be told at once.
    fn launch(&self, candidate: Candidate, limits: &Limits, telling: bool) -> Result<Tried> {
        let Candidate { mut sources, mut launch, refused, reserve, loose, runs, long: _ } = candidate;
        if let Some(why) = refused {
            let source = sources.pop().context("a launch has a program")?;
            let one = Explored { source, judgement: undecided(why), sample: None, second: None };
            return Ok(Tried { explored: vec![one], launch, runs, unasked: true });
        }
        // What is found for any data need not happen, so nothing is said at once.
        let telling = telling && launch.any_data.is_none() && loose.is_empty();
        let soon = |source| self.soon(source, limits, telling);
        let mut explored: Vec<Explored> = sources.into_iter().map(soon).collect::<Result<_>>()?;
        reserve.into_iter().for_each(|why| reserved(&mut explored, &why));
        explored.iter_mut().for_each(|one| doubted_by_data(one, &loose));
        let clean = explored.iter().all(|e| e.judgement.is_clean());
        let could = launch.any_data.as_mut().filter(|_| !clean);
        let unasked = could.is_some();
        if let Some(any) = could {
            any.possible = could_happen(&explored);
            explored.truncate(1);
            explored.iter_mut().for_each(|e| e.judgement = undecided(Verdict::Abstained(any.why.clone())));
        }
        Ok(Tried { explored, launch, runs, unasked })
    }
}

/// Abstains where all that is wrong are races of accesses to places that data decides, or comes from a word that has other data
/// than what one lane hands on.
fn doubted_by_data(explored: &mut Explored, loose: &BTreeSet<(u32, bool)>) {
    let wrong = explored.wrong();
    let strange = |p: &(usize, u32)| {
        explored.source.program.threads.get(p.0).is_some_and(|thread| thread.name == CHOOSER)
    };
    let global = |p: &(usize, u32)| loose.contains(&(p.1, true));
    let doubtful = |places: &Vec<(usize, u32)>| {
        places.iter().any(|p| strange(p) || global(p)) || places.iter().all(|p| loose.contains(&(p.1, false)))
    };
    let race = |v: &Verdict| matches!(v, Verdict::Race | Verdict::Bounded(_));
    let races = explored.judgement.verdicts.iter().all(race);
    if wrong.is_empty() || !races || !wrong.iter().all(doubtful) {
        return;
    }
    let lines: BTreeSet<u32> = wrong.iter().flatten().map(|p| p.1).collect();
    let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
    let why = format!("whether accesses to places that data decides meet (line {})", lines.join(", "));
    (explored.judgement, explored.second) = (undecided(Verdict::Abstained(why)), None);
}

/// Abstains from what is clean.
fn reserved(explored: &mut [Explored], why: &str) {
    let all = explored.iter_mut().flat_map(|e| &mut e.judgement.verdicts);
    all.filter(|v| matches!(v, Verdict::Clean(_))).for_each(|v| *v = Verdict::Abstained(why.to_owned()));
}

/// Whether something is wrong with a program.
fn is_wrong(explored: &Explored) -> bool {
    explored.judgement.verdicts.iter().any(|v| v.exit_code() == crate::exit::FINDING)
}

/// The work of one check of a program.
pub(crate) fn price(source: &Source) -> u64 {
    let size = source.program.threads.iter().map(|t| t.body.len() as u64).sum::<u64>();
    size.saturating_mul(size).max(1)
}

/// The work of one check of a program that may be large: its rows are wide, and it has many of them.
pub(crate) fn wide_price(source: &Source) -> u64 {
    let price = price(source);
    price.saturating_mul((price.isqrt() / SMALL).max(1).pow(2))
}

/// Most instructions of a program whose checks cost no more than the square of them.
const SMALL: u64 = 256;

/// That a launch in which a parameter is 0 is not asked about, and what is wrong with it.
fn empty(place: &str, verdicts: &[Verdict]) -> Taken {
    let words = Verdicts(verdicts.to_vec()).words().join(", ");
    Taken { line: 0, text: format!("parameter {place} is not 0; with 0: {words}") }
}

/// That what is wrong with a launch is left out, why, and how it is decided.
fn doubted(why: &str, verdicts: &[Verdict], command: &str) -> Taken {
    let words = Verdicts(verdicts.to_vec()).words().join(", ");
    let text =
        format!("{words} is left out, because {why}; if such a launch is allowed, this decides: {command}");
    Taken { line: 0, text }
}

/// Whether a hang of a smaller launch is one of the kernel: no launch with the same parameters and more CTAs goes without.
fn stands(one: &Tried, smaller: &[Tried], launch: &Launched, largest: &[Verdict]) -> bool {
    let others = smaller.iter().map(|t| (&t.launch, t.verdicts())).chain([(launch, largest.to_vec())]);
    let mut more = others.filter(|(other, _)| one.launch.is_part_of(other));
    more.all(|(_, verdicts)| verdicts.contains(&Verdict::Hang))
}

/// What a smaller launch adds to the verdicts of the largest one. Its hang counts if `hangs`.
fn added(one: Explored, largest: &[Verdict], hangs: bool) -> Option<Explored> {
    let Explored { source, judgement, sample, second } = one;
    let adds = |v: &Verdict| {
        let counts = match v {
            Verdict::Race
            | Verdict::Lifetime
            | Verdict::Protocol
            | Verdict::EarlyPass
            | Verdict::Undefined => true,
            Verdict::Hang => hangs,
            _ => false,
        };
        counts && !largest.contains(v)
    };
    judgement.summary.executions()?;
    let verdicts: Vec<Verdict> = judgement.verdicts.iter().filter(|v| adds(v)).cloned().collect();
    let about = |flag: &str| verdicts.contains(&flag_verdict(flag));
    let own = Judgement {
        hang: judgement.hang.filter(|_| hangs),
        race: judgement.race.filter(|(flag, _)| about(flag)),
        broken: judgement.broken.into_iter().filter(|(flag, _)| about(flag)).collect(),
        findings: judgement.findings.into_iter().filter(|f| about(&f.flag)).collect(),
        summary: judgement.summary,
        ..told(verdicts.clone())
    };
    (!verdicts.is_empty()).then_some(Explored { source, judgement: own, sample, second })
}

/// The verdicts of programs, each with the lines it is about first.
fn could_happen(explored: &[Explored]) -> Vec<String> {
    let one = |verdict: String| {
        let about = |f: &&Finding| flag_verdict(&f.flag).word() == verdict;
        let found = explored.iter().flat_map(|e| &e.judgement.findings).find(about);
        let lines: BTreeSet<u32> = found.iter().flat_map(|f| &f.places).map(|p| p.line).collect();
        let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
        if lines.is_empty() { verdict } else { format!("{verdict} (line {})", lines.join(" and ")) }
    };
    Verdicts(union(explored.iter().map(|e| &e.judgement.verdicts))).words().into_iter().map(one).collect()
}

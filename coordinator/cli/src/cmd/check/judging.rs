//! Judges the programs of one file: each part of a launch on its own, then the notes beside the verdicts.

use super::Asked;
use super::answer::{Answer, Contest, Judged, Part};
use super::args::Check;
use super::draw::below;
use super::mending::{self, Origin};
use super::notes::{Asking, Notes};
use super::progress::Progress;
use super::spread::Fleet;
use super::stale::{self, Stale};
use super::telling::Teller;
use super::verdicts::{undecided, union, words_of};
use crate::kernel::{self, Kernel, LaunchArgs, Launched, Taken};
use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_console::input::{File, Rejected, Source};
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, Verdict, judge, judge_some, judge_watched};
use moire_explore::search::{Descents, Sample};
use moire_mend::Why;
use moire_program::clusters;
use moire_program::ir::Instr;
use moire_program::loops::has_loops;
use moire_program::text::{Format, Severity, instruction};
use moire_program::validate::validate;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::cell::RefCell;

/// How the programs of a file are judged.
pub(super) struct Judge<'a> {
    pub(super) args: &'a Check,
    /// The launch that is asked for.
    pub(super) launch: LaunchArgs,
    pub(super) asked: &'a Asked,
    pub(super) limits: &'a Limits,
    pub(super) fleet: Option<&'a Fleet>,
}

/// A program that was explored.
pub(super) type Explored = (Source, Judgement, Option<Sample>);

impl<'a> Judge<'a> {
    /// The answer for a file.
    pub(super) fn file(&self, file: &File) -> Answer<'a> {
        if kernel::is_module(file) {
            return match kernel::read(file, &self.launch) {
                Ok(kernel) => self.kernel(file, kernel),
                Err(error) => Answer::failed(file.name(), error),
            };
        }
        let source = match file.program() {
            Ok(source) => source,
            Err(error) => return Answer::failed(file.name(), error),
        };
        let remarks = validate(&source.program).into_iter().map(|d| source.remark(d));
        let (errors, advice): (Vec<_>, _) = remarks.partition(|r| r.diagnostic.severity == Severity::Error);
        if !errors.is_empty() {
            return Answer::Rejected(errors);
        }
        let taken = one_cluster(&source);
        let mut answer = match has_loops(&source.program) {
            true => self.looped(source, advice),
            false => self.programs(vec![source], None, advice, self.limits),
        };
        if let Answer::Judged(judged) = &mut answer {
            judged.taken = taken;
        }
        answer
    }

    fn kernel(&self, file: &File, kernel: Kernel) -> Answer<'a> {
        match kernel {
            Kernel::Launches(candidates) => self
                .launches(file, candidates)
                .unwrap_or_else(|error| Answer::Unread(file.name().to_owned(), error)),
            Kernel::Rejected(errors) => Answer::Rejected(errors),
        }
    }

    pub(super) fn teller(&self) -> Teller {
        Teller::new(self.args.format, self.args.explain_time)
    }

    /// Explores programs that are independent of each other, and adds the notes.
    pub(super) fn programs(
        &self,
        sources: Vec<Source>,
        launch: Option<Launched>,
        advice: Vec<Rejected>,
        limits: &Limits,
    ) -> Answer<'a> {
        let teller = self.teller();
        let name = sources.first().map_or(String::new(), |s| s.name.clone());
        match self.explored(sources, limits, Some(&teller)) {
            Ok(explored) => self.noted(explored, launch, advice, limits, (&teller, None)),
            Err(error) => Answer::Unread(name, error),
        }
    }

    pub(super) fn explored(
        &self,
        sources: Vec<Source>,
        limits: &Limits,
        teller: Option<&Teller>,
    ) -> Result<Vec<Explored>> {
        let one = |source: Source| {
            let (judgement, sample) = self.one(
                &source,
                &self.asked.model,
                limits,
                Questions { witnesses: true, about: About::All },
                teller,
            )?;
            Ok((source, judgement, sample))
        };
        sources.into_iter().map(one).collect()
    }

    /// The judgement of one program.
    fn one(
        &self,
        source: &Source,
        model: &Model,
        limits: &Limits,
        questions: Questions,
        teller: Option<&Teller>,
    ) -> Result<(Judgement, Option<Sample>)> {
        if let Some(fleet) = self.fleet {
            return fleet.judge(source, &self.asked.name, model, limits, questions).map(|j| (j, None));
        }
        Ok(match self.args.limits.descents {
            None => {
                let mut progress = Progress::new(&source.program, model);
                let watch = &mut |seen: moire_explore::judge::Seen<'_>| {
                    progress.at(seen.executions);
                    teller.into_iter().for_each(|t| t.see(&source.name, &source.program, &seen));
                };
                (judge_watched(&source.program, model, limits, questions, watch), None)
            }
            Some(count) => {
                let numbers = RefCell::new(ChaCha8Rng::seed_from_u64(self.args.limits.seed));
                let below = |n| below(&mut numbers.borrow_mut(), n);
                judge_some(&source.program, model, Descents { count, below: &below }, limits, questions)
            }
        })
    }

    /// The verdicts of one program under another model. If the fleet is lost meanwhile, they are not known.
    fn quiet(&self, source: &Source, model: Result<&Model>, limits: &Limits) -> Judgement {
        let questions = Questions { witnesses: false, about: About::All };
        let said = model.and_then(|model| self.one(source, model, limits, questions, None));
        said.map_or_else(|e| undecided(Verdict::Bounded(format!("{e:#}"))), |found| found.0)
    }

    /// Adds the notes to what was explored.
    pub(super) fn noted(
        &self,
        explored: Vec<Explored>,
        launch: Option<Launched>,
        advice: Vec<Rejected>,
        limits: &Limits,
        (teller, file): (&Teller, Option<&File>),
    ) -> Answer<'a> {
        let model = &self.asked.model;
        let plain = words_of(&union(explored.iter().map(|e| &e.1)));
        let contest = |(setting, model): &(String, Model)| {
            let others: Vec<Judgement> =
                explored.iter().map(|e| self.quiet(&e.0, Ok(model), limits)).collect();
            let verdicts = words_of(&union(&others));
            (verdicts != plain).then(|| Contest { setting: setting.clone(), verdicts })
        };
        let contested = self.asked.others.iter().filter_map(contest).collect();
        let part = |e: Explored| self.part(e, None, limits, (teller, file));
        Answer::Judged(Box::new(Judged {
            name: explored.first().map_or(String::new(), |e| e.0.name.clone()),
            model,
            advice,
            contested,
            launch,
            taken: None,
            options: self.options(),
            parts: explored.into_iter().map(part).collect(),
            proof: None,
        }))
    }

    /// A program with its notes. `launch` is the command of the smaller launch that it belongs to, `file` a module.
    pub(super) fn part(
        &self,
        (source, judgement, sample): Explored,
        launch: Option<String>,
        limits: &Limits,
        (teller, file): (&Teller, Option<&File>),
    ) -> Part {
        let under = |switches: &Variants| match self.asked.with(switches) {
            Ok(model) => self.quiet(&source, Ok(&*model), limits),
            Err(error) => self.quiet(&source, Err(error), limits),
        };
        let asking = Asking { under: &under, more: &|| teller.more() };
        let mut notes = Notes::of(&self.asked.profiles, &judgement, &asking);
        if file.is_some() && judgement.is_clean() && teller.more() {
            notes.stale = self.stale(&source, limits);
        }
        if sample.is_none() {
            self.tried(&source, &judgement, file, limits, teller, &mut notes);
        }
        Part { source, judgement, notes, sample, launch }
    }

    /// Adds what was tried to the notes: edits that mend the program, and what could go. `file` is a module.
    fn tried(
        &self,
        source: &Source,
        judgement: &Judgement,
        file: Option<&File>,
        limits: &Limits,
        teller: &Teller,
        notes: &mut Notes,
    ) {
        let Some(models) = self.asked.models() else { return };
        let more = || teller.more();
        let holds = |text: &str| file.is_some_and(|file| more() && self.is_clean(&file.with(text), limits));
        let origin = if file.is_some() { Origin::Module(&holds) } else { Origin::Litmus };
        notes.mended = mending::advice(source, judgement, models, limits, (origin, &more));
        if self.args.redundant {
            let spare = || mending::spare(source, judgement, models, limits, &more);
            notes.spare = Some(if file.is_some() { Err(Why::Lanes) } else { spare() });
        }
    }

    /// Whether the launch of a module is clean.
    fn is_clean(&self, file: &File, limits: &Limits) -> bool {
        let Ok(Kernel::Launches(candidates)) = kernel::read(file, &self.launch) else { return false };
        let mut all = candidates.iter().flat_map(|c| &c.sources);
        candidates.iter().all(|c| c.refused.is_none() && c.reserve.is_none())
            && all.all(|s| self.quiet(s, Ok(&self.asked.model), limits).is_clean())
    }

    /// The reads of a clean kernel that may be stale.
    fn stale(&self, source: &Source, limits: &Limits) -> Vec<Stale> {
        if self.asked.name != stale::OF || !stale::is_possible(&source.program) {
            return Vec::new();
        }
        let Ok(model) = stale::model(self.asked.model.variants()) else { return Vec::new() };
        let questions = Questions { witnesses: false, about: About::All };
        let judgement = judge(&source.program, &model, limits, questions);
        stale::found(&source.program, &judgement)
    }

    /// What the command line says about the model.
    pub(super) fn options(&self) -> String {
        let model = self.args.model.model.iter().map(|m| format!(" --model {m}"));
        let profile = self.args.profile.iter().map(|p| format!(" --profile {p}"));
        model.chain(profile).collect()
    }
}

/// That the CTAs of a text in our own language are one cluster, if it names none and needs one.
fn one_cluster(source: &Source) -> Option<Taken> {
    let own = Format::detect(&source.name, &source.text) == Format::Native;
    let (thread, at) = clusters::assumed(&source.program).filter(|_| own)?;
    let thread = &source.program.threads[thread];
    let instr = &thread.body[at];
    let used = instruction(&source.program, thread, &Instr::new(instr.op.clone()));
    let used = used.split([' ', ';']).next().unwrap_or_default();
    let text =
        format!("the CTAs of a grid are one cluster: no thread names its `cluster`, and `{used}` uses it");
    Some(Taken { line: instr.line, text })
}

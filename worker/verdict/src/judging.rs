//! Judges the programs of one file: each part of a launch on its own, then the notes beside the verdicts.

use crate::answer::{Answer, Contest, Judged, Part};
use crate::asked::Asked;
use crate::input::{File, Rejected, Source};
use crate::kernel::{self, Kernel, Launched, Taken, Wanted};
use crate::mending::{self, Origin};
use crate::notes::{Asking, Notes};
use crate::question::{Host, Question};
use crate::stale::{self, Stale};
use crate::verdicts::{undecided, union, words_of};
use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, Verdict, judge};
use moire_explore::search::Sample;
use moire_mend::Why;
use moire_program::clusters;
use moire_program::ir::Instr;
use moire_program::loops::has_loops;
use moire_program::text::{Format, Severity, instruction};
use moire_program::validate::validate;

/// How the programs of a file are judged.
pub struct Judge<'a, 'h> {
    /// What is asked about every program.
    pub question: &'h Question,
    /// The launch that is asked for.
    pub launch: Wanted,
    /// The models.
    pub asked: &'a Asked,
    /// The process around it.
    pub host: &'h dyn Host,
}

/// A program that was explored.
pub(crate) type Explored = (Source, Judgement, Option<Sample>);

impl<'a> Judge<'a, '_> {
    /// The answer for a file.
    pub fn file(&self, file: &File) -> Answer<'a> {
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
            false => self.programs(vec![source], None, advice, self.limits()),
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

    /// Bounds of each exploration.
    pub(crate) fn limits(&self) -> &Limits {
        &self.question.limits
    }

    /// Explores programs that are independent of each other, and adds the notes.
    pub(crate) fn programs(
        &self,
        sources: Vec<Source>,
        launch: Option<Launched>,
        advice: Vec<Rejected>,
        limits: &Limits,
    ) -> Answer<'a> {
        let name = sources.first().map_or(String::new(), |s| s.name.clone());
        match self.explored(sources, limits, true) {
            Ok(explored) => self.noted(explored, launch, advice, limits, None),
            Err(error) => Answer::Unread(name, error),
        }
    }

    /// Explores programs; with `telling`, what is found may be told at once.
    pub(crate) fn explored(
        &self,
        sources: Vec<Source>,
        limits: &Limits,
        telling: bool,
    ) -> Result<Vec<Explored>> {
        let questions = Questions { witnesses: true, about: About::All };
        let one = |source: Source| {
            let (judgement, sample) =
                self.host.judge(&source, self.model(&self.asked.model), limits, questions, telling)?;
            Ok((source, judgement, sample))
        };
        sources.into_iter().map(one).collect()
    }

    /// A model with the name that the user gives it.
    fn model<'m>(&self, model: &'m Model) -> (&'a str, &'m Model) {
        (&self.asked.name, model)
    }

    /// The verdicts of one program under another model. If the fleet is lost meanwhile, they are not known.
    fn quiet(&self, source: &Source, model: Result<&Model>, limits: &Limits) -> Judgement {
        let questions = Questions { witnesses: false, about: About::All };
        let said =
            model.and_then(|model| self.host.judge(source, self.model(model), limits, questions, false));
        said.map_or_else(|e| undecided(Verdict::Bounded(format!("{e:#}"))), |found| found.0)
    }

    /// Adds the notes to what was explored.
    pub(crate) fn noted(
        &self,
        explored: Vec<Explored>,
        launch: Option<Launched>,
        advice: Vec<Rejected>,
        limits: &Limits,
        file: Option<&File>,
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
        let part = |e: Explored| self.part(e, None, limits, file);
        Answer::Judged(Box::new(Judged {
            name: explored.first().map_or(String::new(), |e| e.0.name.clone()),
            model,
            advice,
            contested,
            launch,
            taken: None,
            options: self.question.options(),
            parts: explored.into_iter().map(part).collect(),
            proof: None,
        }))
    }

    /// A program with its notes. `launch` is the command of the smaller launch that it belongs to, `file` a module.
    pub(crate) fn part(
        &self,
        (source, judgement, sample): Explored,
        launch: Option<String>,
        limits: &Limits,
        file: Option<&File>,
    ) -> Part {
        let under = |switches: &Variants| match self.asked.with(switches) {
            Ok(model) => self.quiet(&source, Ok(&*model), limits),
            Err(error) => self.quiet(&source, Err(error), limits),
        };
        let asking = Asking { under: &under, more: &|| self.host.more() };
        let mut notes = Notes::of(&self.asked.profiles, &judgement, &asking);
        if file.is_some() && judgement.is_clean() && self.host.more() {
            notes.stale = self.stale(&source, limits);
        }
        if sample.is_none() {
            self.tried(&source, &judgement, file, limits, &mut notes);
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
        notes: &mut Notes,
    ) {
        let Some(models) = self.asked.models() else { return };
        let more = || self.host.more();
        let holds = |text: &str| file.is_some_and(|file| more() && self.is_clean(&file.with(text), limits));
        let origin = if file.is_some() { Origin::Module(&holds) } else { Origin::Litmus };
        notes.mended = mending::advice(source, judgement, models, limits, (origin, &more));
        if self.question.redundant {
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

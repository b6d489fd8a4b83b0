//! Judges the programs of one file: each part of a launch on its own, then the notes beside the verdicts.

use crate::answer::{Answer, Condition, Contest, Hang, Part, Shown};
use crate::asked::{Asked, Reading};
use crate::barrier::{Left, Place, lines};
use crate::door::{Answered, Second};
use crate::execution::Execution;
use crate::finding::Finding;
use crate::input::{File, Rejected, Source, is_source};
use crate::kernel::{self, Kernel, Launched, Taken, Wanted};
use crate::mending::{self, Advice, Origin, Redundant};
use crate::proof::Mistake;
use crate::question::{Host, Question};
use crate::readings::Asking;
use crate::stale::{self, Stale};
use crate::verdicts::{Verdicts, undecided, union};
use crate::waiting;
use anyhow::{Result, bail};
use moire_cat::{Model, Variants};
use moire_execution::leaf::Witness;
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, Verdict, judge};
use moire_explore::search::Sample;
use moire_mend::{Advice as Edits, Models, Why};
use moire_program::clusters;
use moire_program::ir::{Instr, Program, Quantifier};
use moire_program::lanes::reduced;
use moire_program::loops::has_loops;
use moire_program::text::{Format, instruction};
use moire_program::validate::validate;

/// Consistency checks of a part of a kernel under the profile that is not in use, if the one in use needed fewer.
const BESIDE_CHECKS: u64 = 1_000;
/// Consistency checks of each program of a module with edits.
const TRIED_CHECKS: u64 = 20_000;

/// How the programs of a file are judged.
pub struct Judge<'a> {
    /// What is asked about every program.
    pub question: &'a Question,
    /// The launch that is asked for.
    pub launch: Wanted,
    /// The models.
    pub asked: &'a Asked,
    /// The process around it.
    pub host: &'a dyn Host,
}

/// A program that was explored.
pub(crate) struct Explored {
    pub(crate) source: Source,
    /// What both engines say of it, with the executions of the explorer.
    pub(crate) judgement: Judgement,
    pub(crate) sample: Option<Sample>,
    /// What the operational engine says of it, if it was asked.
    pub(crate) second: Option<Second>,
}

impl Explored {
    /// The instructions of all that is wrong, by thread and line, as the engine that answered names them.
    pub(crate) fn wrong(&self) -> Vec<Vec<Place>> {
        wrong(&self.judgement, self.second.as_ref())
    }
}

fn wrong(judgement: &Judgement, second: Option<&Second>) -> Vec<Vec<Place>> {
    if let Some(second) = second.filter(|s| s.answered == Answered::Operational) {
        let places = |m: &Mistake| m.places.iter().map(|p| (p.thread, p.line)).collect();
        return second.findings.iter().map(places).collect();
    }
    let places = |f: &moire_execution::leaf::Finding| {
        f.places.iter().map(|p| (usize::from(p.thread), p.line)).collect()
    };
    judgement.findings.iter().map(places).collect()
}

impl Judge<'_> {
    /// The answer for a file.
    pub fn file(&self, file: &File) -> Answer {
        let answer = if kernel::is_module(file) { self.kernel(file) } else { self.litmus(file) };
        let answer = answer.unwrap_or_else(|error| Answer::failed(file.name(), error));
        answer.complete(&kernel::pieces(file, &self.launch.then).0)
    }

    fn litmus(&self, file: &File) -> Result<Answer> {
        if !self.launch.then.is_empty() {
            bail!("{}: --then is about PTX modules", file.name());
        }
        let source = file.program()?;
        let remarks = validate(source.written()).into_iter().map(|d| source.remark(d));
        let (errors, advice): (Vec<_>, _) = remarks.partition(Rejected::is_error);
        if !errors.is_empty() {
            return Ok(Answer::rejected(file.name(), errors));
        }
        let taken = one_cluster(&source).into_iter().chain(left_out(&source, file)).collect();
        let answer = match has_loops(source.written()) {
            true => self.looped(source)?,
            false => self.program(source)?,
        };
        Ok(Answer { taken, remarks: advice, ..answer })
    }

    fn kernel(&self, file: &File) -> Result<Answer> {
        match kernel::read(file, &self.wanted())? {
            Kernel::Launches(candidates, covering) => self.launches(file, candidates, &covering),
            Kernel::Rejected(errors) => Ok(Answer::rejected(file.name(), errors)),
        }
    }

    /// The launch that is asked for, under the profile in use.
    fn wanted(&self) -> Wanted {
        let profiles = &self.asked.profiles;
        Wanted { letter: profiles.is_letter(), both: profiles.are_both(), ..self.launch.clone() }
    }

    /// Bounds of each exploration.
    pub(crate) fn limits(&self) -> &Limits {
        &self.question.limits
    }

    /// The answer for a program that is explored as it stands.
    pub(crate) fn program(&self, source: Source) -> Result<Answer> {
        let explored = self.offered(source, self.limits(), true)?;
        Ok(self.noted(vec![explored], None, self.limits(), None))
    }

    /// Explores a program; with `telling`, what is found may be told at once.
    pub(crate) fn explored(&self, source: Source, limits: &Limits, telling: bool) -> Result<Explored> {
        let questions = Questions { witnesses: true, about: About::All };
        let model = (self.asked.name.as_str(), &self.asked.model);
        let (judgement, sample) = self.host.judge(&source, model, limits, questions, telling)?;
        Ok(Explored { source, judgement, sample, second: None })
    }

    /// The verdicts of one program under another model. If the fleet is lost meanwhile, they are not known.
    fn quiet(&self, source: &Source, model: Result<&Model>, limits: &Limits) -> Judgement {
        let questions = Questions { witnesses: false, about: About::All };
        let judge = |model| self.both(source, model, limits, questions, false);
        let said = model.and_then(judge);
        said.map_or_else(|e| undecided(Verdict::Bounded(format!("{e:#}"))), |found| found.0)
    }

    /// The answer about a program that was not explored.
    pub(crate) fn untried(&self, source: &Source, judgement: &Judgement) -> Answer {
        let part = told(source, judgement, None);
        Answer::new(&source.name, &self.asked.model, vec![part], self.question.options())
    }

    /// Adds the notes to what was explored.
    pub(crate) fn noted(
        &self,
        explored: Vec<Explored>,
        launch: Option<Launched>,
        limits: &Limits,
        file: Option<&File>,
    ) -> Answer {
        let plain = Verdicts(union(explored.iter().map(|e| &e.judgement.verdicts))).words();
        let contest = |(setting, model): &(String, Model)| {
            let others: Vec<Vec<Verdict>> =
                explored.iter().map(|e| self.quiet(&e.source, Ok(model), limits).verdicts).collect();
            let verdicts = Verdicts(union(&others));
            (verdicts.words() != plain).then(|| Contest { setting: setting.clone(), verdicts })
        };
        let contested = self.asked.others.iter().filter_map(contest).collect();
        let name = explored.first().map_or(String::new(), |e| e.source.name.clone());
        let parts = explored.into_iter().map(|e| self.part(e, None, limits, file)).collect();
        let answer = Answer::new(&name, &self.asked.model, parts, self.question.options());
        Answer { contested, launch, ..answer }
    }

    /// A program with its notes. `launch` is the command of the smaller launch that it belongs to, `file` a module.
    pub(crate) fn part(
        &self,
        Explored { source, judgement, sample, second }: Explored,
        launch: Option<String>,
        limits: &Limits,
        file: Option<&File>,
    ) -> Part {
        let alone = second.as_ref().is_some_and(|s| s.answered == Answered::Operational);
        let spent = judgement.summary.checks.max(BESIDE_CHECKS);
        let beside = match file {
            _ if alone => Limits { checks: judgement.summary.checks.min(limits.checks), ..*limits },
            Some(_) => Limits { checks: spent.min(limits.checks), ..*limits },
            None => *limits,
        };
        let under = |program: Option<&Program>, switches: &Variants| {
            let other = program.map(|p| source.with(p.clone()));
            let source = other.as_ref().unwrap_or(&source);
            match self.asked.with(switches) {
                Ok(model) => self.quiet(source, Ok(&*model), &beside),
                Err(error) => self.quiet(source, Err(error), &beside),
            }
        };
        let asking = Asking { under: &under, more: &|| self.host.more() };
        let profile = self.asked.profiles.beside(&source, &judgement, &asking);
        let stale = match file.is_some() && judgement.is_clean() && self.host.more() {
            true => self.stale(&source, if alone { &beside } else { limits }),
            false => Vec::new(),
        };
        let (advice, redundant) = match sample {
            None => self.tried(&source, (&judgement, second.as_ref()), file, limits),
            Some(_) => (None, None),
        };
        Part { launch, profile, stale, advice, redundant, second, ..told(&source, &judgement, sample) }
    }

    /// What was tried: edits that mend the program, and what could go. `file` is a module.
    fn tried(
        &self,
        source: &Source,
        (judgement, second): (&Judgement, Option<&Second>),
        file: Option<&File>,
        limits: &Limits,
    ) -> (Option<Advice>, Option<Redundant>) {
        if !self.launch.then.is_empty() && Verdicts(judgement.verdicts.clone()).has_finding() {
            let none = Some("edits are not tried in kernels that are launched one after another".to_owned());
            return (Some(Advice { none, ..Advice::default() }), None);
        }
        let Some(models) = self.asked.models() else { return (None, None) };
        let wrong = wrong(judgement, second);
        let second =
            |p: &Program| mending::found_in_one_run(p, (self.asked.name.as_str(), &self.asked.model));
        let models = Models { second: Some(&second), ..models };
        let more = || self.host.more();
        let left = |text: &str| file.filter(|_| more()).and_then(|file| self.left(&file.with(text)));
        let origin = if file.is_some() { Origin::Module(&wrong, &left) } else { Origin::Litmus };
        let readings = |found: Edits, extend: &dyn Fn(&Edits, Models<'_>) -> Option<Edits>| {
            let one = |found: Edits, reading: &Reading| {
                let holds = |found: &Edits| {
                    let source = source.with(reduced(&found.program).program.into_owned());
                    self.quiet(&source, Ok(&reading.model), limits).is_clean()
                };
                if !more() || holds(&found) {
                    return found;
                }
                let second =
                    |p: &Program| mending::found_in_one_run(p, (self.asked.name.as_str(), &reading.model));
                let models = self.asked.models_of(reading).map(|m| Models { second: Some(&second), ..m });
                models.and_then(|models| extend(&found, models)).unwrap_or(found)
            };
            self.asked.readings().iter().fold(found, one)
        };
        let advice = mending::advice(source, judgement, models, limits, (origin, &more), &readings);
        let redundant = self.question.redundant.then(|| match file.is_some() {
            true => mending::not_asked(Why::Lanes),
            false => {
                let readings = self.asked.readings().iter().filter_map(|r| self.asked.models_of(r));
                let all: Vec<Models<'_>> = [models].into_iter().chain(readings).collect();
                mending::spare(source, judgement, &all, limits, &more)
            }
        });
        (advice, redundant)
    }

    /// What is wrong with a module in any launch that is judged for it. None if that is not known.
    fn left(&self, file: &File) -> Option<Left> {
        let launch = Wanted { both: false, ..self.wanted() };
        let limits = Limits { checks: self.limits().checks.min(TRIED_CHECKS), ..*self.limits() };
        let question = Question { limits, contest: false, redundant: false, ..self.question.clone() };
        let answer = Judge { question: &question, launch, host: &Silent(self.host), ..*self }.file(file);
        let verdicts = &answer.verdicts.0;
        let clean = !verdicts.is_empty() && verdicts.iter().all(|v| matches!(v, Verdict::Clean(_)));
        let mut left = Left::new();
        for part in &answer.parts {
            match part.second.as_ref().filter(|s| s.answered == Answered::Operational) {
                Some(second) => {
                    let places =
                        |m: &Mistake| m.places.iter().map(|p| (p.thread, p.line)).collect::<Vec<_>>();
                    left.extend(second.findings.iter().map(|m| (m.kind, lines(&places(m)))));
                }
                None => left.extend(part.findings.iter().map(|f| (f.verdict, f.lines()))),
            }
        }
        (clean || !left.is_empty()).then_some(left)
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

/// A process that tells nothing and explains nothing.
struct Silent<'a>(&'a dyn Host);

impl Host for Silent<'_> {
    fn judge(
        &self,
        source: &Source,
        model: (&str, &Model),
        limits: &Limits,
        questions: Questions,
        _: bool,
    ) -> Result<(Judgement, Option<Sample>)> {
        self.0.judge(source, model, limits, questions, false)
    }

    fn more(&self) -> bool {
        false
    }

    fn doubt(&self, _: bool) {}

    fn forget(&self) {}
}

/// What a judgement says of a program, without notes.
fn told(source: &Source, judgement: &Judgement, sample: Option<Sample>) -> Part {
    let program = &source.program;
    let hang = |ends: &Vec<_>, witness| {
        let waits = waiting::waits(program, ends, judgement, witness);
        let line = waits.first().map_or(0, |w| w.line);
        Hang { who: waiting::sentences(&waits), line, waits }
    };
    Part {
        verdicts: Verdicts(judgement.verdicts.clone()),
        launch: None,
        threads: program.threads.iter().map(|t| t.name.clone()).collect(),
        visited: judgement.summary.into(),
        conditions: conditions(program, judgement),
        hang: judgement.hang.as_ref().map(|(ends, witness)| hang(ends, witness)),
        executions: executions(program, judgement),
        findings: judgement.findings.iter().map(|f| Finding::new(program, f)).collect(),
        profile: None,
        stale: Vec::new(),
        advice: None,
        redundant: None,
        second: None,
        descents: sample.map(Into::into),
    }
}

fn conditions(program: &Program, judgement: &Judgement) -> Vec<Condition> {
    let incomplete = Verdicts(judgement.verdicts.clone()).is_incomplete();
    let one = |c: &moire_explore::judge::ConditionResult| Condition {
        name: c.name.clone(),
        quantifier: match c.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::ForAll => "forall",
        },
        reachable: c.reachable,
        holds: (!incomplete || c.witness.is_some()).then_some(c.holds),
        execution: c.witness.as_ref().map(|w| Execution::new(program, w)),
    };
    judgement.conditions.iter().map(one).collect()
}

/// The executions that show what is wrong, each once.
fn executions(program: &Program, judgement: &Judgement) -> Vec<Shown> {
    let hang = judgement.hang.iter().map(|(_, w)| ("hang", w));
    let race = judgement.race.iter().map(|(flag, w)| (flag.as_str(), w));
    let broken = judgement.broken.iter().map(|(flag, w)| (flag.as_str(), w));
    let mut out: Vec<(Vec<String>, &Witness)> = Vec::new();
    for (flag, witness) in hang.chain(race).chain(broken) {
        match out.iter_mut().find(|s| s.1 == witness) {
            Some((flags, _)) => flags.push(flag.to_owned()),
            None => out.push((vec![flag.to_owned()], witness)),
        }
    }
    let one = |(shows, w)| Shown { shows, execution: Execution::new(program, w) };
    out.into_iter().map(one).collect()
}

/// What the filter of a text leaves out. That of a source program only keeps what its compare-exchanges can do.
fn left_out(source: &Source, file: &File) -> Option<Taken> {
    let own = source.written().filter.is_some() && !is_source(&file.bytes);
    let text = "executions outside the `filter` of the text do not count".to_owned();
    own.then_some(Taken { line: 0, text })
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

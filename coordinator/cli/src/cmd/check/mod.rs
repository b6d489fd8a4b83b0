//! `moire check`: what is true of all executions of a program.
//!
//! Contract: one answer a file, in the order of the command line; the verdicts are those of
//! [`moire_explore::judge::Verdict`]. What the static rules call an error is `rejected` and not explored; their advice goes beside the
//! verdict. Text and JSON come out file by file, SARIF and JUnit once at the end.

mod answer;
mod args;
mod draw;
mod notes;
mod progress;
mod render;
mod reports;
mod spread;
mod verdicts;
mod witness;

use crate::kernel::{self, Kernel};
use answer::{Answer, Contest};
use anyhow::{Result, bail};
pub(crate) use args::Check;
use args::CheckFormat;
use draw::below;
use moire_cat::{Model, PROFILE, Variants};
use moire_console::exit;
use moire_console::input::{File, Rejected, Source, include_notes, load_model, variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, Verdict, judge_some, judge_watched};
use moire_explore::search::Descents;
use moire_program::text::Severity;
use moire_program::validate::validate;
use notes::{Notes, Profiles};
use progress::Progress;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use spread::Fleet;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use verdicts::{undecided, words};

/// A model that files are checked under, and those it is compared with.
struct Asked {
    name: String,
    model: Model,
    profiles: Profiles,
    /// The same model with other switches, as far as it was asked for.
    loaded: RefCell<BTreeMap<Variants, Rc<Model>>>,
    /// Settings of single switches, with `--contest`.
    others: Vec<(String, Model)>,
}

impl Asked {
    fn new(args: &Check, name: &str) -> Result<Self> {
        let model = load_model(name, &chosen(args, &args.model.variants)?)?;
        let profiles = Profiles::new(args, &model)?;
        let others = if args.contest { flipped(args, name, &model)? } else { Vec::new() };
        Ok(Asked { name: name.to_owned(), model, profiles, loaded: RefCell::default(), others })
    }

    fn with(&self, switches: &Variants) -> Result<Rc<Model>> {
        if let Some(model) = self.loaded.borrow().get(switches) {
            return Ok(Rc::clone(model));
        }
        let model = Rc::new(load_model(&self.name, switches)?);
        self.loaded.borrow_mut().insert(switches.clone(), Rc::clone(&model));
        Ok(model)
    }
}

pub(crate) fn run(args: &Check) -> Result<u8> {
    let files: Vec<(&Path, Result<File>)> =
        args.files.iter().map(|path| (&**path, File::read(path))).collect();
    let mut models: BTreeMap<&str, Asked> = BTreeMap::new();
    for file in files.iter().filter_map(|(_, file)| file.as_ref().ok()) {
        let name = args.model.name(file);
        if !models.contains_key(name) {
            let asked = Asked::new(args, name)?;
            include_notes(&asked.model).iter().for_each(|note| eprintln!("{name}: note: {note}"));
            models.insert(name, asked);
        }
    }
    let limits = Limits {
        leaves: args.limits.limit,
        loop_bound: args.limits.loop_bound,
        reductions: args.limits.reduce,
        ..Limits::default()
    };
    let fleet = args.coordinator.as_ref().map(|to| Fleet::new(to, &args.certs)).transpose()?;
    let mut codes = Vec::new();
    let mut kept = Vec::new();
    for (path, file) in files {
        if args.launch.lowered {
            codes.push(print_lowered(&file?, args)?);
            continue;
        }
        let answer = match file {
            Ok(file) => answer(&file, args, &models[args.model.name(&file)], &limits, fleet.as_ref()),
            Err(error) => Answer::Unread(path.display().to_string(), error),
        };
        match &answer {
            Answer::Judged { judgement, contested, .. } => {
                codes.extend(judgement.verdicts.iter().map(Verdict::exit_code));
                codes.extend(contested.first().map(|_| exit::FINDING));
            }
            _ => codes.push(exit::USAGE),
        }
        if let (Some(folder), Answer::Judged { source, judgement, .. }) = (&args.witness, &answer) {
            witness::write(folder, source, judgement)?;
        }
        match args.format {
            CheckFormat::Text => render::text(&answer),
            CheckFormat::Json => render::json(&answer),
            CheckFormat::Sarif | CheckFormat::Junit => kept.push(answer),
        }
    }
    match args.format {
        CheckFormat::Sarif => println!("{}", reports::sarif(&kept)),
        CheckFormat::Junit => println!("{}", reports::junit(&kept)?),
        CheckFormat::Text | CheckFormat::Json => {}
    }
    Ok(exit::worst(codes))
}

/// The model under each contesting value of each switch that has another value now.
fn flipped(args: &Check, name: &str, model: &Model) -> Result<Vec<(String, Model)>> {
    let mut out = Vec::new();
    for switch in model.switches() {
        for value in &switch.contesting {
            if model.variant(&switch.name) != Some(value) {
                let setting = format!("{}={value}", switch.name);
                let own = args.model.variants.iter().filter(|v| v.split('=').next() != Some(&switch.name));
                let words: Vec<String> = own.cloned().chain([setting.clone()]).collect();
                out.push((setting, load_model(name, &chosen(args, &words)?)?));
            }
        }
    }
    Ok(out)
}

/// The litmus text of what a kernel becomes, for people.
fn print_lowered(file: &File, args: &Check) -> Result<u8> {
    if !kernel::is_module(file) {
        bail!("{}: --lowered is about PTX modules and Tile IR kernels", file.name());
    }
    match kernel::read(file, &args.launch)? {
        Kernel::Program(source, notes) => {
            notes.iter().for_each(|n| eprintln!("{n}"));
            print!("{}", moire_program::text::print(&source.program));
            Ok(exit::CLEAN)
        }
        Kernel::Rejected(errors) => {
            errors.iter().for_each(|e| eprintln!("{e}"));
            Ok(exit::USAGE)
        }
        Kernel::Abstained(source, why) | Kernel::Bounded(source, why) => {
            eprintln!("{}: {why}", source.name);
            Ok(exit::INCOMPLETE)
        }
    }
}

/// Settings of switches, with the profile asked for.
fn chosen(args: &Check, words: &[String]) -> Result<Variants> {
    let mut out = variants(words)?;
    out.extend(args.profile.iter().map(|p| (PROFILE.to_owned(), p.clone())));
    Ok(out)
}

fn answer<'m>(
    file: &File,
    args: &Check,
    asked: &'m Asked,
    limits: &Limits,
    fleet: Option<&Fleet>,
) -> Answer<'m> {
    if kernel::is_module(file) {
        return match kernel::read(file, &args.launch) {
            Ok(Kernel::Program(source, notes)) => judged(source, notes, args, asked, limits, fleet),
            Ok(Kernel::Rejected(errors)) => Answer::Rejected(errors),
            Ok(Kernel::Abstained(source, why)) => {
                Answer::unasked(source, &asked.model, Verdict::Abstained(why))
            }
            Ok(Kernel::Bounded(source, why)) => Answer::unasked(source, &asked.model, Verdict::Bounded(why)),
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
    judged(Box::new(source), advice, args, asked, limits, fleet)
}

fn judged<'m>(
    source: Box<Source>,
    advice: Vec<Rejected>,
    args: &Check,
    asked: &'m Asked,
    limits: &Limits,
    fleet: Option<&Fleet>,
) -> Answer<'m> {
    let model = &asked.model;
    let one = |model: &Model, witnesses: bool| {
        let questions = Questions { witnesses, about: About::All };
        if let Some(fleet) = fleet {
            return fleet.judge(&source, &asked.name, model, limits, questions).map(|j| (j, None));
        }
        Ok(match args.limits.descents {
            None => {
                let mut progress = Progress::new(&source.program, model);
                let watch = &mut |executions| progress.at(executions);
                (judge_watched(&source.program, model, limits, questions, watch), None)
            }
            Some(count) => {
                let numbers = RefCell::new(ChaCha8Rng::seed_from_u64(args.limits.seed));
                let below = |n| below(&mut numbers.borrow_mut(), n);
                judge_some(&source.program, model, Descents { count, below: &below }, limits, questions)
            }
        })
    };
    let (judgement, sample) = match one(model, true) {
        Ok(found) => found,
        Err(error) => return Answer::Unread(source.name.clone(), error),
    };
    // Where the fleet is lost meanwhile, what it did not say is not known.
    let known = |said: Result<(Judgement, _)>| {
        said.map_or_else(|e| undecided(Verdict::Bounded(format!("{e:#}"))), |found| found.0)
    };
    let other = |model: &Model| known(one(model, false));
    let under = |switches: &Variants| known(asked.with(switches).and_then(|m| one(&m, false)));
    let plain = words(&judgement);
    let judgement = Box::new(judgement);
    let contest = |(setting, model): &(String, Model)| {
        let verdicts = words(&other(model));
        (verdicts != plain).then(|| Contest { setting: setting.clone(), verdicts })
    };
    let contested = asked.others.iter().filter_map(contest).collect();
    let notes = Box::new(Notes::of(&source.program, model, &asked.profiles, &judgement, &under));
    Answer::Judged { source, model, advice, judgement, contested, notes, sample }
}

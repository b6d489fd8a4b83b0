//! `moire check`: what is true of all executions of a program.
//!
//! Contract: one answer a file, in the order of the command line; the verdicts are those of
//! [`moire_explore::judge::Verdict`]. What the static rules call an error is `rejected` and not explored; their advice goes beside the
//! verdict. Text and JSON come out file by file, SARIF and JUnit once at the end.

mod answer;
mod args;
mod draw;
mod files;
mod judging;
mod launches;
mod looped;
mod mending;
mod naming;
mod notes;
mod progress;
mod proof;
mod render;
mod reports;
mod spread;
mod stale;
mod states;
mod telling;
mod verdicts;
mod witness;

use crate::kernel::{self, Kernel};
use answer::Answer;
use anyhow::{Context, Result, anyhow, bail};
pub(crate) use args::Check;
use args::CheckFormat;
use files::{Task, tasks};
use judging::Judge;
use moire_cat::{Model, PROFILE, Variants};
use moire_console::input::{File, ModelSpec, include_notes, load_model};
use moire_console::{exit, processors};
use moire_explore::Limits;
use moire_mend::Models;
use moire_program::loops::{has_loops, unroll};
use notes::Profiles;
use spread::Fleet;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

/// A model that files are checked under, and those it is compared with.
struct Asked {
    name: String,
    model: Model,
    profiles: Profiles,
    /// The same model with other switches, as far as it was asked for.
    loaded: Mutex<BTreeMap<Variants, Arc<Model>>>,
    /// Settings of single switches, with `--contest`.
    others: Vec<(String, Model)>,
    /// The same model with the order of execution, once it was asked for.
    order: OnceLock<Option<Model>>,
}

impl Asked {
    /// The model of that name; for `compiled` modules under its profile, if none is named.
    fn new(args: &Check, name: &str, compiled: bool) -> Result<Self> {
        let mut profile = args.profile.clone();
        let mut model = load_model(name, &chosen(args, profile.as_deref()))?;
        let named = profile.is_some() || model.variants().contains_key(PROFILE);
        let both = compiled && !named && !model.profiles().is_empty();
        if both {
            profile = model.profiles().first().map(|p| p.name.clone());
            model = load_model(name, &chosen(args, profile.as_deref()))?;
        }
        let profiles = Profiles::new(args, &model, both);
        let others = if args.contest { flipped(args, name, &model, profile.as_deref())? } else { Vec::new() };
        let (name, order) = (name.to_owned(), OnceLock::new());
        Ok(Asked { name, model, profiles, loaded: Mutex::default(), others, order })
    }

    /// The models under which edits are tried.
    fn models(&self) -> Option<Models<'_>> {
        let load = || mending::order_model(&self.name, self.model.variants());
        let order = self.order.get_or_init(load).as_ref()?;
        Some(Models { model: &self.model, order })
    }

    fn with(&self, switches: &Variants) -> Result<Arc<Model>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = loaded.get(switches) {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(load_model(&self.name, switches)?);
        loaded.insert(switches.clone(), Arc::clone(&model));
        Ok(model)
    }
}

pub(crate) fn run(args: &Check) -> Result<u8> {
    let (tasks, many) = tasks(&args.files, args.launch.entry.as_deref())?;
    if args.states {
        let codes: Result<Vec<u8>> = tasks.iter().map(|task| print_states(task, args)).collect();
        return Ok(exit::worst(codes?));
    }
    if args.launch.lowered {
        let codes: Result<Vec<u8>> = tasks.iter().map(|task| print_lowered(task, args)).collect();
        return Ok(exit::worst(codes?));
    }
    let to_stdout = args.fix.as_ref().is_some_and(|to| to.as_os_str() == "-");
    if to_stdout && args.format != CheckFormat::Text {
        bail!("--fix writes to stdout, as --format does; name a file, --fix=FILE");
    }
    let mut patches = String::new();
    let mut models: BTreeMap<(&str, bool), Asked> = BTreeMap::new();
    for file in tasks.iter().filter_map(|task| task.file.as_ref().ok()) {
        let key = (args.model.name(file), kernel::is_compiled(file));
        if let Entry::Vacant(place) = models.entry(key) {
            let asked = Asked::new(args, key.0, key.1)?;
            include_notes(&asked.model).iter().for_each(|note| eprintln!("{}: note: {note}", key.0));
            place.insert(asked);
        }
    }
    let limits = limits(args);
    let fleet = args.coordinator.as_ref().map(|to| Fleet::new(to, &args.certs)).transpose()?;
    let answer = |task: &Task| match &task.file {
        Ok(file) => {
            let asked = &models[&(args.model.name(file), kernel::is_compiled(file))];
            let mut launch = args.launch.clone();
            launch.entry = launch.entry.or_else(|| task.entry.clone());
            Judge { args, launch, asked, limits: &limits, fleet: fleet.as_ref() }.file(file)
        }
        Err(error) => Answer::Unread(task.path.display().to_string(), anyhow!("{error:#}")),
    };
    let mut codes = Vec::new();
    let mut kept = Vec::new();
    let mut rows = Vec::new();
    let jobs = if args.jobs == 0 { processors() } else { args.jobs };
    in_order(&tasks, jobs, &answer, &mut |answer| {
        codes.extend(answer.codes(args.strict));
        rows.push(answer.row());
        if let (Some(folder), Answer::Judged(judged)) = (&args.witness, &answer) {
            for (n, part) in judged.parts.iter().enumerate() {
                let n = (judged.parts.len() > 1).then_some(n);
                witness::write(folder, &part.source, n, &part.judgement)?;
            }
        }
        if let (Some(_), Answer::Judged(judged)) = (&args.fix, &answer) {
            // Parts of one launch have one text.
            match judged.parts.iter().find_map(|part| part.notes.diff(&part.source)) {
                Some(patch) => patches += &patch,
                None => judged.parts.first().into_iter().for_each(|part| {
                    eprintln!("{}: no patch: {}", judged.name, part.notes.unpatched());
                }),
            }
        }
        match args.format {
            CheckFormat::Text => render::text(&answer, to_stdout),
            CheckFormat::Json => render::json(&answer),
            CheckFormat::Sarif | CheckFormat::Junit => kept.push(answer),
        }
        Ok(())
    })?;
    match &args.fix {
        Some(_) if to_stdout => print!("{patches}"),
        Some(to) => std::fs::write(to, &patches).with_context(|| format!("cannot write {}", to.display()))?,
        None => {}
    }
    match args.format {
        CheckFormat::Text if to_stdout => {}
        CheckFormat::Sarif => println!("{}", reports::sarif(&kept)),
        CheckFormat::Junit => println!("{}", reports::junit(&kept)?),
        CheckFormat::Text if many => print!("{}", render::table(&rows)),
        CheckFormat::Text | CheckFormat::Json => {}
    }
    Ok(exit::worst(codes))
}

/// Answers tasks on so many threads, and takes the answers in the order of the tasks.
fn in_order<'m>(
    tasks: &[Task],
    jobs: usize,
    answer: &(dyn Fn(&Task) -> Answer<'m> + Sync),
    take: &mut dyn FnMut(Answer<'m>) -> Result<()>,
) -> Result<()> {
    let jobs = jobs.min(tasks.len());
    if jobs < 2 {
        return tasks.iter().try_for_each(|task| take(answer(task)));
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (send, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (send, next, stop) = (send.clone(), &next, &stop);
            let work = move || {
                while !stop.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(n) else { break };
                    if send.send((n, answer(task))).is_err() {
                        break;
                    }
                }
            };
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
        }
        drop(send);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (n, answer) in answers {
            early.insert(n, answer);
            while let Some(answer) = early.remove(&wanted) {
                wanted += 1;
                if let Err(error) = take(answer) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(())
    })
}

/// Stack of a thread that judges: that of a process.
const STACK: usize = 8 << 20;

/// The model under each contesting value of each switch that has another value now.
fn flipped(args: &Check, name: &str, model: &Model, profile: Option<&str>) -> Result<Vec<(String, Model)>> {
    let mut out = Vec::new();
    for switch in model.switches() {
        for value in &switch.contesting {
            if model.variant(&switch.name) != Some(value) {
                let setting = format!("{}={value}", switch.name);
                let mut switches = chosen(args, profile);
                switches.insert(switch.name.clone(), value.clone());
                out.push((setting, load_model(name, &switches)?));
            }
        }
    }
    Ok(out)
}

/// The final states of a litmus text under the model that is asked for and under the shipped ones.
fn print_states(task: &Task, args: &Check) -> Result<u8> {
    let file = match &task.file {
        Ok(file) => file,
        Err(error) => bail!("{error:#}"),
    };
    if kernel::is_module(file) {
        bail!(
            "{}: --states is about litmus texts; the texts of a kernel are printed by --lowered",
            file.name()
        );
    }
    let first =
        ModelSpec { name: args.model.name(file).to_owned(), switches: chosen(args, args.profile.as_deref()) };
    let mut models = vec![(first.to_string(), first.load()?)];
    for name in states::BESIDE.into_iter().filter(|_| !kernel::has_blocks(file)) {
        if name != models[0].0 {
            models.push((name.to_owned(), load_model(name, &Variants::new())?));
        }
    }
    let source = file.program()?;
    Ok(states::States::of(&source.program, &models, &limits(args)).print(&source, args.format))
}

/// The limits that the command line sets.
fn limits(args: &Check) -> Limits {
    Limits {
        leaves: args.limits.limit,
        loop_bound: args.limits.loop_bound,
        reductions: args.limits.reduce,
        ..Limits::default()
    }
}

/// The litmus text of what a kernel becomes, for people.
fn print_lowered(task: &Task, args: &Check) -> Result<u8> {
    let file = match &task.file {
        Ok(file) => file,
        Err(error) => bail!("{error:#}"),
    };
    if !kernel::is_module(file) {
        return print_unrolled(file, args);
    }
    let mut launch = args.launch.clone();
    launch.entry = launch.entry.or_else(|| task.entry.clone());
    match kernel::read(file, &launch)? {
        Kernel::Launches(mut candidates) => {
            let largest = candidates.iter().rposition(|c| c.refused.is_none());
            let candidate = candidates.swap_remove(largest.unwrap_or(0));
            if let Some(why) = candidate.refused {
                eprintln!("{}: {}", file.name(), verdicts::words_of(&[why]).join(""));
                return Ok(exit::INCOMPLETE);
            }
            eprint!("{}", candidate.launch.text(""));
            let programs = candidate.sources.iter().map(|s| moire_program::text::print(&s.program));
            programs.for_each(|text| print!("{text}"));
            Ok(exit::CLEAN)
        }
        Kernel::Rejected(errors) => {
            errors.iter().for_each(|e| eprintln!("{e}"));
            Ok(exit::USAGE)
        }
    }
}

/// A litmus text with copies of its loops; a free loop without a trip count has its least one.
fn print_unrolled(file: &File, args: &Check) -> Result<u8> {
    let program = file.program()?.program;
    if !has_loops(&program) {
        bail!(
            "{}: --lowered is about PTX modules and Tile IR kernels, and litmus texts with loops",
            file.name()
        );
    }
    let unrolled = unroll(&program, &proof::given(&args.trips, &program)?)?;
    print!("{}", moire_program::text::print(&unrolled));
    Ok(exit::CLEAN)
}

/// Settings of switches, with the profile asked for.
fn chosen(args: &Check, profile: Option<&str>) -> Variants {
    let mut out = args.model.switches();
    out.extend(profile.map(|p| (PROFILE.to_owned(), p.to_owned())));
    out
}

//! `moire check`: what is true of all executions of a program.
//!
//! Contract: one answer a file, in the order of the command line; the verdicts are those of
//! [`moire_explore::judge::Verdict`]. What the static rules call an error is `rejected` and not explored; their advice goes beside the
//! verdict.

mod args;
mod draw;
mod files;
mod here;
mod junit;
mod known;
mod output;
mod patience;
mod progress;
mod recorded;
mod sarif;
pub(crate) mod smaller;
mod spread;
mod telling;
mod text;
mod witness;

use crate::interrupt::on_interrupt;
use anyhow::{Result, anyhow, bail};
pub(crate) use args::Check;
use files::{Task, Tasks, opened, tasks, tasks_of};
use here::Here;
use known::Known;
use moire_cat::{PROFILE, Variants};
use moire_console::input::{File, ModelSpec, include_notes, load_model};
use moire_console::output::Format;
use moire_console::{bounded, exit, processors};
use moire_coordinator::clock::unix_ms;
use moire_program::lanes::{has_warps, joined};
use moire_program::loops::{has_loops, unroll};
use moire_shown::states::{BESIDE, States};
use moire_verdict::answer::Answer;
use moire_verdict::asked::Asked;
use moire_verdict::judging::Judge;
use moire_verdict::kernel::{self, Kernel};
use moire_verdict::problems::problems as problems_of;
use moire_verdict::proof;
use moire_verdict::question::{Library, Question};
use moire_verdict::verdicts::Verdicts;
use moire_worker::job::Cancel;
use output::Output;
use spread::Fleet;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// How models are read here.
const LIBRARY: Library = Library { load: load_model, beside: |path| bounded::read_to_string(path).ok() };

pub(crate) fn run(args: &Check) -> Result<u8> {
    let Tasks { tasks, many, notes } = tasks(&args.files, args.launch.entry.as_deref())?;
    if args.states && matches!(args.format, Format::Sarif | Format::Junit) {
        bail!("--states prints text or json: final states are no findings");
    }
    if args.states {
        let codes: Result<Vec<u8>> = tasks.iter().map(|task| print_states(task, args)).collect();
        return Ok(exit::worst(codes?));
    }
    if args.lowered {
        let codes: Result<Vec<u8>> = tasks.iter().map(|task| print_lowered(task, args)).collect();
        return Ok(exit::worst(codes?));
    }
    if args.patch_to_stdout() && args.format != Format::Text {
        bail!("--fix writes to stdout, as --format does; name a file, --fix=FILE");
    }
    let question = args.question();
    let mut output = Output::new(args, many)?;
    let models = models(&tasks, args, &question)?;
    tasks
        .iter()
        .filter_map(|task| task.file.as_ref().ok())
        .filter_map(renumbered)
        .for_each(|n| eprintln!("{n}"));
    let interrupt = Cancel::default();
    on_interrupt(interrupt.clone());
    let fleet = args.coordinator.as_ref().map(|to| Fleet::new(to, &args.certs)).transpose()?;
    let answer = |task: &Task| answered(task, args, &models, &Here::new(args, fleet.as_ref(), &interrupt));
    let jobs = if args.jobs == 0 { processors() } else { args.jobs };
    in_order(&tasks, (jobs, &interrupt), &answer, &mut |answer| output.take(&tasks[output.taken()], answer))?;
    let left = tasks.len() - output.taken();
    output.end(left, &notes)
}

/// The answer for a task.
fn answered(task: &Task, args: &Check, models: &Models<'_>, host: &Here<'_>) -> Answer {
    let file = match &task.file {
        Ok(file) => file,
        Err(error) => return Answer::failed(&task.path.display().to_string(), anyhow!("{error:#}")),
    };
    let asked = &models[&(args.model.name(file), kernel::is_compiled(file))];
    match args.launch.wanted(&task.wanted) {
        Ok(launch) => Judge { question: &args.question(), launch, asked, host }.file(file),
        Err(error) => Answer::failed(file.name(), error),
    }
}

/// What is said of a text in one place of it, and the mend that goes with it: in words, and as a patch.
pub(crate) struct Told {
    /// A result of SARIF about the text.
    pub(crate) result: serde_json::Value,
    pub(crate) mend: Option<(String, String)>,
}

/// Judges a text that stands for this file.
///
/// # Errors
/// The file cannot be judged with these arguments, or it is no program.
pub(crate) fn told_of(path: &Path, text: &str, args: &Check, interrupt: &Cancel) -> Result<Vec<Told>> {
    let tasks = tasks_of(path, opened(path, text), args.launch.entry.as_deref());
    let models = models(&tasks, args, &args.question())?;
    let mut known = Known::new(args.baseline.as_deref(), unix_ms())?;
    let mut out = Vec::new();
    for task in &tasks {
        let mut answer = answered(task, args, &models, &Here::new(args, None, interrupt));
        answer.problems = problems_of(&answer);
        known.about(&mut answer, path, text);
        out.extend(sarif::told(&answer));
    }
    Ok(out)
}

/// Says of a source program that is not laid out as it is printed which lines are meant.
fn renumbered(file: &File) -> Option<String> {
    let text = str::from_utf8(&file.bytes).ok().filter(|text| moire_source::text::is_source(text))?;
    let printed = moire_source::text::print(&moire_source::text::parse(text).ok()?);
    let name = file.name();
    (printed != text)
        .then(|| format!("{name}: note: lines are those that `moire generate --print text {name}` prints"))
}

/// The models that files are judged under, by name and whether they are compiled modules.
type Models<'t> = BTreeMap<(&'t str, bool), Asked>;

fn models<'t>(tasks: &'t [Task], args: &'t Check, question: &Question) -> Result<Models<'t>> {
    let mut models = Models::new();
    for file in tasks.iter().filter_map(|task| task.file.as_ref().ok()) {
        let key = (args.model.name(file), kernel::is_compiled(file));
        if let Entry::Vacant(place) = models.entry(key) {
            let asked = Asked::new(question, key.0, key.1, LIBRARY)?;
            include_notes(&asked.model).iter().for_each(|note| eprintln!("{}: note: {note}", key.0));
            place.insert(asked);
        }
    }
    Ok(models)
}

/// Answers tasks on so many threads, and takes the answers in the order of the tasks. None is begun after an interrupt.
fn in_order(
    tasks: &[Task],
    (jobs, interrupt): (usize, &Cancel),
    answer: &(dyn Fn(&Task) -> Answer + Sync),
    take: &mut dyn FnMut(Answer) -> Result<()>,
) -> Result<()> {
    let jobs = jobs.min(tasks.len());
    if jobs < 2 {
        let begun = tasks.iter().take_while(|_| !interrupt.is_cancelled());
        return begun.map(answer).try_for_each(take);
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (send, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (send, next, stop) = (send.clone(), &next, &stop);
            let work = move || {
                while !stop.load(Ordering::Relaxed) && !interrupt.is_cancelled() {
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
    let mut switches = args.model.switches();
    switches.extend(args.profile.iter().map(|p| (PROFILE.to_owned(), p.clone())));
    let first = ModelSpec { name: args.model.name(file).to_owned(), switches };
    let mut models = vec![(first.to_string(), first.load()?)];
    for name in BESIDE.into_iter().filter(|_| !kernel::has_blocks(file)) {
        if name != models[0].0 {
            models.push((name.to_owned(), load_model(name, &Variants::new())?));
        }
    }
    let source = file.program()?;
    let states = States::of(&source.program, &models, &args.limits.limits());
    match args.format {
        Format::Json => println!("{}", states.json(&source.name)),
        _ => print!("{}", states.text(&source.name)),
    }
    Ok(if states.is_complete() { exit::CLEAN } else { exit::INCOMPLETE })
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
    match kernel::read(file, &args.launch.wanted(&task.wanted)?)? {
        Kernel::Launches(mut candidates, _) => {
            let largest = candidates.iter().rposition(|c| c.refused.is_none());
            let candidate = candidates.swap_remove(largest.unwrap_or(0));
            if let Some(why) = candidate.refused {
                eprintln!("{}: {}", file.name(), Verdicts(vec![why]).words().join(""));
                return Ok(exit::INCOMPLETE);
            }
            let mut launch = candidate.launch;
            launch.complete("");
            eprint!("{}", moire_shown::text::launch_text(&launch, &launch.taken));
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

/// A litmus text with copies of its loops, and few threads for each warp; a free loop without a trip count has its least one.
fn print_unrolled(file: &File, args: &Check) -> Result<u8> {
    let source = file.program()?;
    let mut program = source.written().clone();
    if !has_loops(&program) && !has_warps(&program) {
        bail!(
            "{}: --lowered is about PTX modules and Tile IR kernels, and litmus texts with loops or warps",
            file.name()
        );
    }
    if has_loops(&program) {
        program = unroll(&program, &proof::given(&args.trips, &program)?)?;
    }
    print!("{}", moire_program::text::print(&joined(&program)));
    Ok(exit::CLEAN)
}

//! `moire bench mutants`: is each mistake in the synchronisation of a right program found?
//!
//! Contract: the right programs are litmus texts and PTX modules of folders that are clean, and drawn tensor-core protocols. A
//! mutant of them that is still clean is confirmed by a second witness, argued by a line of a table that is checked in, or
//! open. The table depends on the words of the command, the files and the budgets alone. A stopped run resumes from the file
//! of `--keep`. A wrong answer, or more than 2 % that are argued, is a finding (exit 10). What is open or not yet tried makes
//! the run incomplete (exit 11).

mod argued;
mod edits;
mod fate;
mod module;
mod right;
mod table;

use crate::kept;
use anyhow::{Result, bail};
use edits::Edit;
use fate::Fate;
use moire_cat::{Model, PROFILE, Variants};
use moire_console::exit;
use moire_console::input::load_model;
use moire_console::time::duration;
use moire_explore::Limits;
use moire_generate::numbers::Draw;
use moire_program::mutate::{Mistake, Mutant, mutants};
use moire_program::text::{instruction, print};
use moire_worker::agreement::MODEL;
use right::Right;
pub(crate) use right::below;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use table::Table;

/// Mutants between two notes of the progress.
const BLOCK: usize = 128;
const SCHEMA: u32 = 2;

#[derive(Debug, clap::Args)]
pub(crate) struct Mutants {
    /// Folder of litmus texts; those that are not clean are left out
    #[arg(long, default_value = "corpus/litmus", value_name = "DIR")]
    from: PathBuf,
    /// PTX modules, or folders of them; those that are not clean are left out, and so is what is not there
    #[arg(
        long,
        value_name = "DIR",
        value_delimiter = ',',
        default_values = ["corpus/ptx", "../shared/pairs", "../shared/kernels"]
    )]
    modules: Vec<PathBuf>,
    /// Mutants tried
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    mutants: usize,
    /// Drawn protocols beside the texts
    #[arg(long, default_value_t = 200, value_name = "N")]
    protocols: u64,
    /// What protocols and mutants are drawn by
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The model of litmus texts and protocols
    #[arg(long, default_value = "ptx", value_name = "MODEL")]
    model: String,
    /// Time for one mutant of a module, and for each question of its second witnesses
    #[arg(long, default_value = "20s", value_name = "TIME", value_parser = duration)]
    budget: Duration,
    /// Stop after this time; the same command with the file of --keep goes on
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Note progress in this file, and resume from it
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// List every clean mutant that is not confirmed, and every one without a verdict
    #[arg(long)]
    list: bool,
    /// Worker threads [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

/// A right program with one mistake.
struct Tried<'r> {
    of: &'r Right,
    change: Change,
}

enum Change {
    Program(Box<Mutant>),
    Module(Edit),
}

/// What is noted between two runs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    schema: u32,
    /// Whether each module that was asked about is right, by name and content. A slow machine must not change what is tried.
    right: BTreeMap<String, bool>,
    /// Hash of all mutants: the same command on the same files.
    of: String,
    fates: BTreeMap<usize, Fate>,
}

impl Kept {
    /// The notes of an earlier run.
    fn read(args: &Mutants) -> Result<Self> {
        let earlier = args.keep.as_deref().map(|path| kept::read::<Kept>(path, "a run of mutants"));
        match earlier.transpose()?.flatten() {
            Some(kept) if kept.schema != SCHEMA => bail!("the file of --keep is of another version"),
            Some(kept) => Ok(kept),
            None => Ok(Kept { schema: SCHEMA, ..Kept::default() }),
        }
    }

    /// Writes them to the file of `--keep`, if there is one.
    fn write(&self, args: &Mutants) -> Result<()> {
        args.keep.as_deref().map_or(Ok(()), |path| kept::write(path, self))
    }

    /// Refuses notes about other mutants.
    fn about(&mut self, tried: &[Tried<'_>]) -> Result<()> {
        let mut hasher = blake3::Hasher::new();
        tried.iter().for_each(|t| _ = hasher.update(t.text().as_bytes()));
        let of = hasher.finalize().to_hex()[..16].to_owned();
        if !self.of.is_empty() && self.of != of {
            bail!("the file of --keep belongs to other words of the command, or to other files");
        }
        self.of = of;
        Ok(())
    }
}

/// What judges.
struct Bench<'a> {
    args: &'a Mutants,
    model: Model,
    /// What modules are judged by.
    practice: Model,
    limits: Limits,
    folder: Folder,
    assembler: Option<moire_toolchain::Ptxas>,
}

/// A folder that is there as long as this is.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies among the temporary files of the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn run(args: &Mutants) -> Result<u8> {
    let begin = Instant::now();
    let folder = Folder(std::env::temp_dir().join(format!("moire-mutants-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0)?;
    let bench = Bench {
        args,
        model: load_model(&args.model, &Variants::new())?,
        practice: load_model(MODEL, &Variants::from([(PROFILE.to_owned(), "practice".to_owned())]))?,
        limits: Limits { leaves: 20_000, checks: 200_000, steps: 2_000_000, ..Limits::default() },
        folder,
        assembler: moire_toolchain::Ptxas::find(None).ok(),
    };
    let _held = args.keep.as_deref().map(kept::hold).transpose()?;
    let mut noted = Kept::read(args)?;
    let right = right::programs(&bench, &mut noted)?;
    let all: Vec<Tried<'_>> = right.iter().flat_map(changes).collect();
    let (programs, total) = (right.len(), all.len());
    let tried = sample(all, args.mutants, args.seed);
    eprintln!("{programs} right programs, {total} mutants, {} tried", tried.len());
    noted.about(&tried)?;
    for at in (0..tried.len()).step_by(BLOCK) {
        if args.time.is_some_and(|time| begin.elapsed() >= time) {
            break;
        }
        let block: Vec<usize> =
            (at..tried.len().min(at + BLOCK)).filter(|n| !noted.fates.contains_key(n)).collect();
        noted.fates.extend(bench.judged(&tried, &block));
        if !block.is_empty() {
            noted.write(args)?;
        }
        eprintln!("{} of {}, {:.0} s", noted.fates.len(), tried.len(), begin.elapsed().as_secs_f64());
    }
    tell(args, &tried, &noted.fates)
}

/// Every mutant of a right program.
fn changes(of: &Right) -> Vec<Tried<'_>> {
    let changes: Vec<Change> = match &of.what {
        right::What::Program(program) => {
            mutants(program).into_iter().map(|m| Change::Program(Box::new(m))).collect()
        }
        right::What::Module(text) => edits::edits(text).into_iter().map(Change::Module).collect(),
    };
    changes.into_iter().map(|change| Tried { of, change }).collect()
}

impl Tried<'_> {
    fn mistake(&self) -> Mistake {
        match &self.change {
            Change::Program(mutant) => mutant.mistake,
            Change::Module(edit) => edit.mistake,
        }
    }

    /// The changed text.
    fn text(&self) -> String {
        match &self.change {
            Change::Program(mutant) => print(&mutant.program),
            Change::Module(edit) => edit.text.clone(),
        }
    }

    /// The changed instruction, as it was.
    fn instruction(&self) -> String {
        match (&self.change, &self.of.what) {
            (Change::Module(edit), _) => edit.was.clone(),
            (Change::Program(mutant), right::What::Program(program)) => {
                let instr = &program.threads[mutant.thread].body[mutant.at];
                instruction(program, &program.threads[mutant.thread], instr)
            }
            (Change::Program(_), right::What::Module(_)) => String::new(),
        }
    }

    /// Where the mistake is, for people.
    fn place(&self) -> String {
        let (name, mistake) = (&self.of.name, self.mistake().name());
        match &self.change {
            Change::Program(mutant) => {
                let Mutant { thread, at, .. } = mutant.as_ref();
                format!("{mistake} instruction {at} of thread {thread} in {name}: {}", self.instruction())
            }
            Change::Module(edit) => format!("{mistake} {name}:{}: {} -> {}", edit.line, edit.was, edit.now),
        }
    }
}

/// Draws `count` of them, in their order.
fn sample(all: Vec<Tried<'_>>, count: usize, seed: u64) -> Vec<Tried<'_>> {
    let mut draw = Draw::new(seed);
    let mut left = count.min(all.len());
    let total = all.len();
    let taken = all.into_iter().enumerate().filter(|(at, _)| {
        let take = draw.below(total - at) < left;
        left -= usize::from(take);
        take
    });
    taken.map(|(_, tried)| tried).collect()
}

impl Bench<'_> {
    /// How many threads judge.
    fn workers(&self) -> usize {
        self.args
            .workers
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
            .max(1)
    }

    /// The fates of these mutants, on all workers.
    fn judged(&self, tried: &[Tried<'_>], which: &[usize]) -> BTreeMap<usize, Fate> {
        let next = AtomicUsize::new(0);
        let found: Mutex<BTreeMap<usize, Fate>> = Mutex::default();
        let work = || {
            while let Some(at) = which.get(next.fetch_add(1, Ordering::Relaxed)) {
                let fate = self.fate(&tried[*at], *at);
                found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(*at, fate);
            }
        };
        std::thread::scope(|scope| {
            (0..self.workers()).for_each(|_| drop(scope.spawn(work)));
        });
        found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn fate(&self, tried: &Tried<'_>, number: usize) -> Fate {
        let fate = match &tried.change {
            Change::Program(mutant) => fate::of_program(mutant, &self.model, &self.limits),
            Change::Module(edit) => module::fate(self, tried.of, edit, number),
        };
        match fate {
            Fate::Open(why) => {
                argued::reason(tried.mistake(), &tried.instruction()).map_or(Fate::Open(why), Fate::Argued)
            }
            other => other,
        }
    }
}

/// Prints the tables, and what is wrong or open.
fn tell(args: &Mutants, tried: &[Tried<'_>], fates: &BTreeMap<usize, Fate>) -> Result<u8> {
    let (mut programs, mut modules) = (Table::default(), Table::default());
    for (at, fate) in fates {
        let tried = &tried[*at];
        let table = if matches!(tried.change, Change::Program(_)) { &mut programs } else { &mut modules };
        table.count(tried.mistake(), fate);
        let line = |what: &str| println!("{what}: {}", tried.place());
        match fate {
            Fate::Wrong(how) => line(&format!("wrong, {how}")),
            Fate::Open(why) if args.list => line(&format!("open, {why}")),
            Fate::Argued(why) if args.list => line(&format!("argued, {why}")),
            Fate::Undecided(why) if args.list => line(&format!("undecided, {why}")),
            Fate::Spent if args.list => line("over its budget"),
            _ => {}
        }
    }
    for (name, table) in [("programs", &programs), ("modules", &modules)] {
        print!("{}", table.print(name));
    }
    let all = programs.total().plus(&modules.total());
    let (tried, done) = (tried.len(), fates.len());
    println!("{done} of {tried} mutants tried");
    Ok(if all.wrong > 0 || all.argued * 50 > done {
        exit::FINDING
    } else if all.open > 0 || done < tried {
        exit::INCOMPLETE
    } else {
        exit::CLEAN
    })
}

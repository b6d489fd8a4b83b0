//! The judgement of one program and its PTX: whether the PTX does anything that the program may not do.
//!
//! The program is explored under `rc11-scoped` and the PTX under `ptx`; both are small and explored as they are. A program
//! with a race may do anything. Final states are compared as registers and memory of the program.
//!
//! Under the default reading a release sequence has read-modify-writes only, which is the weaker reading; U3 is asked in its
//! weaker reading too, and of the PTX accesses of 128 bits in their stronger one. So a claim does not depend on a switch.
//!
//! A compiler may load early what only one arm of a branch needs (LLVM's "Atomic Instructions and Concurrency Guide", optimization outside
//! atomic: loads may be introduced, stores may not). Such a load races and its value goes nowhere. So a race where all that the
//! program asks for is there is none of the compiler's if the final states agree.
//!
//! Releases of a compiler often emit the same but for names, and all are asked of one program, so what was found lately is kept.

use super::blame;
use crate::oracle::abstention::Abstention;
use crate::oracle::forbidden::{self, Forbidden};
use crate::oracle::lately::Lately;
use crate::oracle::models::Models;
use crate::oracle::refine::{Compared, Judged, Until, known};
use moire_execution::leaf::{FinalState, Memory};
use moire_explore::Limits;
use moire_explore::search::Bound;
use moire_kernel::ptx;
use moire_kernel::specialise::entry;
use moire_program::ir::Program;
use moire_source::Source;
use moire_source::compiled::{Compiled, assemble};
use moire_source::lower::lower;
use moire_source::mapping::mapped;
use moire_source::state::State;
use moire_source::text::print;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The model of the program.
pub(super) const SOURCE: &str = "rc11-scoped";
/// The model of the PTX. Accesses of 128 bits are one operation, the reading under which compilers use them for atomic ones.
pub(super) const PTX: &str = "ptx:Q2=A";

/// The limits of exploration for both sides.
fn limits() -> Limits {
    Limits { leaves: 8_000, checks: 40_000, steps: 200_000, ..Limits::default() }
}

/// What a judgement is made with: the models, and what was found lately.
#[derive(Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) models: &'a Models,
    pub(super) found: &'a Found,
}

/// Meanings of programs and judgements found lately.
#[derive(Debug, Default)]
pub(super) struct Found {
    meanings: Lately<Option<Arc<BTreeSet<State>>>>,
    judged: Lately<(Seen, Vec<String>)>,
}

/// The judgement, and what it is about.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) judged: Judged,
    /// The PTX as a program; `None` if the source has a race.
    pub(super) compiled: Option<Compiled>,
    /// Executions of the PTX.
    pub(super) executions: u64,
    /// What the compiler lost, and the instruction that lost it.
    pub(super) class: Vec<String>,
}

/// Judges a program and the PTX of its threads.
pub(super) fn judge(source: &Source, texts: &[String], desk: Desk<'_>) -> Result<Verdict, Abstention> {
    let models = desk.models;
    let Some(allowed) = meaning(source, desk).map_err(|why| why.at("source"))? else {
        return Ok(Verdict { judged: Judged::Racy, compiled: None, executions: 0, class: Vec::new() });
    };
    let compiled = together(source, texts).map_err(|why| why.at("PTX"))?;
    let asked = Asked { source, allowed: &allowed, compiled: &compiled, models };
    let (seen, class) = desk.found.judged.get(&unnamed(source, &compiled.program), || {
        let search = |whole| asked.search(&compiled.program, whole).map_err(|why| why.at("PTX"));
        let classed = |whole| {
            let seen = search(whole)?;
            let wrong = seen.judged.direction().is_some();
            let class = if wrong { blame::class(&asked, &seen.judged, whole) } else { Vec::new() };
            Ok((seen, class))
        };
        match classed(true)? {
            (_, class) if class == [blame::RACE] => classed(false),
            answer => Ok(answer),
        }
    })?;
    Ok(Verdict { judged: seen.judged, executions: seen.executions, compiled: Some(compiled), class })
}

/// What a judgement depends on: both programs, without names of registers and labels, and without lines.
fn unnamed(source: &Source, compiled: &Program) -> String {
    let mut out = compiled.clone();
    for thread in &mut out.threads {
        thread.labels.clear();
        thread.regs.iter_mut().for_each(|register| register.name.clear());
        thread.body.iter_mut().for_each(|instr| (instr.line, instr.column) = (0, 0));
    }
    format!("{}\0{out:?}", print(source))
}

/// Whether a program means more than another one.
pub(super) fn means_more(more: &Source, source: &Source, desk: Desk<'_>) -> Result<bool, Abstention> {
    Ok(match (meaning(more, desk)?, meaning(source, desk)?) {
        (Some(more), Some(less)) => !more.is_subset(&less),
        (None, Some(_)) => true,
        (_, None) => false,
    })
}

/// Whether what is lost in a program is lost in other threads than this one.
pub(super) fn lost_elsewhere(
    source: &Source,
    texts: &[String],
    thread: usize,
    desk: Desk<'_>,
) -> Result<bool, Abstention> {
    let models = desk.models;
    let Some(allowed) = meaning(source, desk)? else { return Ok(true) };
    let compiled = together(source, texts)?;
    let asked = Asked { source, allowed: &allowed, compiled: &compiled, models };
    Ok(blame::helps_elsewhere(&asked, thread))
}

/// The PTX of all threads as one program.
fn together(source: &Source, texts: &[String]) -> Result<Compiled, Abstention> {
    let mut kernels = Vec::new();
    for text in texts {
        let module = ptx::parse(text).map_err(|e| Abstention::Module(e.0.message))?;
        kernels.push(entry(&module, None)?.clone());
    }
    Ok(assemble(source, &kernels.iter().collect::<Vec<_>>())?)
}

/// The final states that a program may reach; `None` if it has a race.
fn meaning(source: &Source, desk: Desk<'_>) -> Result<Option<Arc<BTreeSet<State>>>, Abstention> {
    desk.found.meanings.get(&print(source), || Ok(meant(source, desk.models)?.map(Arc::new)))
}

fn meant(source: &Source, models: &Models) -> Result<Option<BTreeSet<State>>, Abstention> {
    let lowered = lower(source)?;
    let state = |end: &FinalState| lowered.state(source, &end.regs, &end.memory);
    let compared = Compared::State(&state);
    let known = known(&lowered.program, &*models.get(SOURCE)?, &limits(), &compared, Until::Allowed(None))?;
    match known.bounded {
        _ if known.undefined => Ok(None),
        _ if known.hangs => Err(Abstention::Unusable("a source program that waits for ever")),
        _ if known.cut => Err(Abstention::Bounded(Bound::Loop)),
        None => Ok(Some(known.ends)),
        Some(bound) => Err(Abstention::Bounded(bound)),
    }
}

/// Why a program does not end so; the end is in the words of [`State::shown`].
pub(super) fn forbidden(source: &Source, end: &str, models: &Models) -> Result<Forbidden, Abstention> {
    let (lowered, text) = (lower(source)?, print(source));
    let so =
        |e: &FinalState| lowered.state(source, &e.regs, &e.memory).is_some_and(|s| s.shown(source) == end);
    let line = |n: u32| text.lines().nth((n as usize).checked_sub(1)?).map(str::to_owned);
    Ok(forbidden::forbidden(&lowered.program, &*models.get(SOURCE)?, &limits(), &so, &line))
}

/// The question whether a form of the PTX stays within the program.
pub(super) struct Asked<'a> {
    pub(super) source: &'a Source,
    allowed: &'a BTreeSet<State>,
    pub(super) compiled: &'a Compiled,
    models: &'a Models,
}

/// What the search found.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) judged: Judged,
    executions: u64,
}

impl<'a> Asked<'a> {
    /// The same question of another form of the PTX.
    pub(super) fn with(&self, compiled: &'a Compiled) -> Asked<'a> {
        Asked { compiled, ..*self }
    }

    /// Whether the published mapping of the program ends so, too.
    pub(super) fn is_mapped(&self, end: &State) -> bool {
        let found = || -> Result<bool, Abstention> {
            let lowered = lower(&mapped(self.source, &|_| None))?;
            let state = |end: &FinalState| lowered.state(self.source, &end.regs, &end.memory);
            let (compared, until) = (Compared::State(&state), Until::Found(&|other| other == end));
            let known = known(&lowered.program, &*self.models.get(PTX)?, &limits(), &compared, until)?;
            Ok(known.ends.contains(end))
        };
        found().unwrap_or(false)
    }

    /// Explores a form of the PTX until a final state is not allowed. With `whole` races count too.
    pub(super) fn search(&self, program: &Program, whole: bool) -> Result<Seen, Abstention> {
        let state = |memory: &Memory| self.compiled.state(memory);
        let compared = Compared::Memory(&state);
        let beyond = Until::Found(&|end| !self.allowed.contains(end));
        let known = known(program, &*self.models.get(PTX)?, &limits(), &compared, beyond)?;
        // What was seen of an undefined program counts; what was not seen does not.
        let judged = match &known.found {
            Some(outcome) => Judged::Beyond(outcome.clone()),
            None if known.undefined && whole => Judged::Undefined,
            None if known.race && whole => Judged::Race,
            None if known.cut => return Err(Abstention::Bounded(Bound::Loop)),
            None => known.agrees()?,
        };
        Ok(Seen { judged, executions: known.executions })
    }
}

//! The judgement of one program and its PTX: whether the PTX does anything that the program may not do.
//!
//! The program is explored under `rc11-scoped` and the PTX under `ptx`; both are small and explored as they are. A program
//! with a race may do anything. Final states are compared as registers and memory of the program.
//!
//! Under the default reading a release sequence has read-modify-writes only, which is the weaker reading; U3 is asked in its
//! weaker reading too. So a claim does not depend on a switch.

use super::blame;
use crate::oracle::abstention::{Abstention, executed};
use crate::oracle::models::Models;
use moire_execution::leaf::{LeafKind, Memory, Outcome};
use moire_explore::judge::{Verdict as FlagVerdict, flag_verdict};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_kernel::ptx;
use moire_kernel::specialise::entry;
use moire_program::ir::Program;
use moire_source::Source;
use moire_source::compiled::{Compiled, assemble};
use moire_source::lower::lower;
use moire_source::state::State;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::ops::ControlFlow;

/// The model of the program.
pub(super) const SOURCE: &str = "rc11-scoped";
/// The model of the PTX.
pub(super) const PTX: &str = "ptx";

/// The limits of exploration for both sides.
fn limits() -> Limits {
    Limits { leaves: 8_000, checks: 40_000, steps: 200_000, ..Limits::default() }
}

/// The judgement of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// The program has a race.
    Racy,
    /// Every final state of the PTX is one of the program.
    Agrees(NonZeroU64),
    /// A final state of the PTX that the program does not have.
    Beyond(Outcome),
    /// The PTX has a race that leaves it undefined.
    Undefined,
    /// The PTX has another race.
    Race,
}

moire_program::spells! {
    Judged {
        Judged::Racy => "Racy" (),
        Judged::Agrees(executions) => "Agrees" (executions),
        Judged::Beyond(outcome) => "Beyond" (outcome),
        Judged::Undefined => "Undefined" (),
        Judged::Race => "Race" (),
    }
}

impl Judged {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Judged::Racy => "racy",
            Judged::Agrees(_) => "clean",
            Judged::Beyond(_) => "discrepancy",
            Judged::Undefined => "undefined",
            Judged::Race => "race",
        }
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self, Judged::Beyond(_) | Judged::Undefined | Judged::Race)
    }
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
pub(super) fn judge(source: &Source, texts: &[String], models: &Models) -> Result<Verdict, Abstention> {
    let Some(allowed) = meaning(source, models).map_err(|why| why.at("source"))? else {
        return Ok(Verdict { judged: Judged::Racy, compiled: None, executions: 0, class: Vec::new() });
    };
    let compiled = together(source, texts).map_err(|why| why.at("PTX"))?;
    let asked = Asked { source, allowed: &allowed, compiled: &compiled, models };
    let seen = asked.search(&compiled.program, true).map_err(|why| why.at("PTX"))?;
    let class = if seen.judged.is_wrong() { blame::class(&asked, &seen.judged) } else { Vec::new() };
    Ok(Verdict { judged: seen.judged, executions: seen.executions, compiled: Some(compiled), class })
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
fn meaning(source: &Source, models: &Models) -> Result<Option<BTreeSet<State>>, Abstention> {
    let lowered = lower(source)?;
    let model = models.get(SOURCE)?;
    let (mut states, mut racy, mut stuck) = (BTreeSet::new(), false, false);
    let summary = explore(&lowered.program, &model, &[], &limits(), &mut |leaf: &mut dyn LeafView| {
        let ends = leaf.states();
        let own: Vec<State> = ends.iter().filter_map(|e| lowered.state(source, &e.regs, &e.memory)).collect();
        stuck |= leaf.kind() == LeafKind::Blocked;
        // An execution that contradicts its choices is none of the program, and neither is its race.
        let raised = |f: &String| flag_verdict(f) == FlagVerdict::Undefined;
        racy |= !own.is_empty() && leaf.flags().iter().any(raised);
        states.extend(own);
        if racy { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if racy {
        return Ok(None);
    }
    if stuck {
        return Err(Abstention::Unusable("a source program that waits for ever"));
    }
    match summary?.bounded {
        None => Ok(Some(states)),
        Some(bound) => Err(Abstention::Bounded(bound)),
    }
}

/// The question whether a form of the PTX stays within the program.
pub(super) struct Asked<'a> {
    pub(super) source: &'a Source,
    allowed: &'a BTreeSet<State>,
    pub(super) compiled: &'a Compiled,
    models: &'a Models,
}

/// What the search found.
pub(super) struct Seen {
    pub(super) judged: Judged,
    executions: u64,
}

impl Asked<'_> {
    /// Explores a form of the PTX until a final state is not allowed. With `whole` races count too.
    pub(super) fn search(&self, program: &Program, whole: bool) -> Result<Seen, Abstention> {
        let model = self.models.get(PTX)?;
        let (mut executions, mut beyond) = (0, None);
        let (mut undefined, mut race) = (false, false);
        let summary = explore(program, &model, &[], &limits(), &mut |leaf: &mut dyn LeafView| {
            executions += 1;
            for flag in leaf.flags() {
                match flag_verdict(flag) {
                    FlagVerdict::Undefined => undefined = true,
                    FlagVerdict::Race => race = true,
                    _ => {}
                }
            }
            let ends = leaf.memories();
            let extra = |m: &Memory| !self.allowed.contains(&self.compiled.state(self.source, m));
            if ends.iter().any(extra) {
                beyond = leaf.facts().outcomes.into_iter().find(|o| extra(&o.memory));
            }
            if beyond.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let judged = match beyond {
            Some(outcome) => Judged::Beyond(outcome),
            None => {
                // What was seen of an undefined program counts; what was not seen does not.
                let bounded = summary?.bounded;
                match bounded {
                    _ if undefined && whole => Judged::Undefined,
                    _ if race && whole => Judged::Race,
                    None => Judged::Agrees(executed(executions)?),
                    Some(bound) => return Err(Abstention::Bounded(bound)),
                }
            }
        };
        Ok(Seen { judged, executions })
    }
}

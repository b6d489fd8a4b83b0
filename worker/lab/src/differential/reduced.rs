//! Compares the explorer with reductions and without: final states, flags and hangs must be the same.

use moire_cat::Model;
use moire_execution::leaf::{Finding, LeafKind, asked, observed_registers};
use moire_explore::planted::Planted;
use moire_explore::reduce::Reductions;
use moire_explore::reduce::symmetry::{Alike, Registers};
use moire_explore::search::explore_planted;
use moire_explore::search::{Bound, LeafView, Limits, Summary};
use moire_generate::numbers::Draw;
use moire_program::ir::{CmpOp, Condition, Expr, Program, Quantifier, Term};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The facts about all executions of a program that reductions keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Final states; registers that no condition names are 0.
    pub states: BTreeSet<Registers>,
    /// Flags raised.
    pub flags: BTreeSet<String>,
    /// The instructions that the flags name.
    pub findings: BTreeSet<Finding>,
    /// Whether some thread can wait for ever.
    pub hangs: bool,
}

/// Reductions that change these facts, and the facts without and with them.
pub type Changed = (Reductions, Box<(Told, Told)>);

/// The number of executions of one program under several settings of reductions.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// Executions without reductions.
    pub all: u64,
    /// Executions under each setting, in the order of the settings.
    pub left: Vec<u64>,
    /// The first setting that changes the facts.
    pub changed: Option<Changed>,
}

/// Explores a program with these reductions, and returns the facts and the totals. The error says why there are none.
pub fn told(
    program: &Program,
    model: &Model,
    on: Reductions,
    bug: Option<Planted>,
) -> Result<(Told, Summary), String> {
    let limits =
        Limits { leaves: 20_000, checks: 200_000, steps: 2_000_000, reductions: on, ..Limits::default() };
    let (mut out, named) = (Told::default(), asked(program).registers);
    let kept = |t: usize, r: usize| named.iter().any(|(u, s)| (u.index(), s.index()) == (t, r));
    let result = explore_planted(program, model, bug, &limits, &mut |leaf: &mut dyn LeafView| {
        out.hangs |= leaf.kind() == LeafKind::Blocked;
        out.flags.extend(leaf.flags().iter().cloned());
        out.findings.extend(leaf.findings());
        for mut state in leaf.states() {
            for (t, regs) in state.regs.iter_mut().enumerate() {
                regs.iter_mut().enumerate().filter(|(r, _)| !kept(t, *r)).for_each(|(_, v)| *v = 0);
            }
            out.states.insert((state.regs, state.memory));
        }
        ControlFlow::Continue(())
    });
    let summary = result.map_err(|abstain| abstain.reason)?;
    match summary.bounded {
        None | Some(Bound::Loop) => {}
        Some(bound) => return Err(bound.to_string()),
    }
    if on.threads {
        let alike = Alike::planted(program, bug);
        out.states = alike.states(out.states);
        out.findings = alike.findings(program, out.findings);
    }
    Ok((out, summary))
}

/// Compares the facts under each of these settings with those without reductions.
pub fn compare_reduced(
    program: &Program,
    model: &Model,
    settings: &[Reductions],
    bug: Option<Planted>,
) -> Result<Saved, String> {
    let (plain, summary) = told(program, model, Reductions::NONE, None)?;
    let mut out = Saved { all: summary.complete + summary.blocked, ..Saved::default() };
    for on in settings {
        let (reduced, summary) = told(program, model, *on, bug)?;
        out.left.push(summary.complete + summary.blocked);
        if reduced != plain {
            out.changed = Some((*on, Box::new((plain, reduced))));
            return Ok(out);
        }
    }
    Ok(out)
}

/// Replaces the condition of a program by one about some of its registers, by one about the same register of all
/// threads, or by none.
pub fn questioned(mut program: Program, seed: u64) -> Program {
    let mut d = Draw::new(seed ^ 0x5eed);
    let all = observed_registers(&program);
    let style = d.below(4);
    let chosen: Vec<_> = match style {
        0 => Vec::new(),
        1 => {
            let wanted = all.get(d.below(all.len())).map(|(_, r)| *r);
            all.into_iter().filter(|(_, r)| Some(*r) == wanted).collect()
        }
        _ => all.into_iter().filter(|_| d.chance(40)).collect(),
    };
    (program.conditions, program.filter) = (Vec::new(), None);
    if !chosen.is_empty() {
        let one = |(t, r)| Expr::Cmp(CmpOp::Eq, Term::Reg(t, r), Term::Const(1));
        let expr = Expr::And(chosen.into_iter().map(one).collect());
        program.conditions.push(Condition { name: String::new(), quantifier: Quantifier::Exists, expr });
    }
    program
}

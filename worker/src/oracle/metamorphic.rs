//! The metamorphic oracle: changes to a program whose effect on its outcomes is known without running it.
//!
//! A fence more, a stronger order, a wider scope: no outcome is added. Threads in another order: as many executions.

use super::Broken;
use super::answer::{Answer, explored};
use moire_cat::Model;
use moire_explore::Outcome;
use moire_program::ir::*;

/// Number of different changes; item indices take turns.
pub(super) const CHANGES: u64 = 24;

/// The rules one change of `program` breaks under `model`.
pub(super) fn broken(
    program: &Program,
    spec: &str,
    model: &Model,
    answer: &Answer,
    index: u64,
) -> Result<Vec<Broken>, String> {
    if answer.undefined || answer.cut {
        return Ok(Vec::new());
    }
    let turn = index % CHANGES;
    let models = vec![spec.to_owned()];
    if turn.is_multiple_of(4) {
        let mut other = program.clone();
        other.threads.reverse();
        other.conditions.clear();
        other.filter = None;
        let permuted = explored(&other, model)?;
        let same =
            permuted.leaves.len() == answer.leaves.len() && permuted.outcomes.len() == answer.outcomes.len();
        return Ok(if same {
            Vec::new()
        } else {
            vec![Broken { oracle: "metamorphic", direction: "equal", models, outcome: None, cause: None }]
        });
    }
    let Some(stronger) = strengthen(program, turn) else { return Ok(Vec::new()) };
    let after = explored(&stronger, model)?;
    if after.undefined || after.cut {
        return Ok(Vec::new());
    }
    let added: Option<&Outcome> = after.outcomes.difference(&answer.outcomes).next();
    Ok(added
        .map(|_| Broken { oracle: "metamorphic", direction: "subset", models, outcome: None, cause: None })
        .into_iter()
        .collect())
}

/// The program with one thing made stronger; which one depends on `turn`.
fn strengthen(program: &Program, turn: u64) -> Option<Program> {
    let mut sites = Vec::new();
    for (t, thread) in program.threads.iter().enumerate() {
        for pc in 0..thread.body.len() {
            if turn % 4 == 1 || stronger(&thread.body[pc].op, turn % 4 == 2).is_some() {
                sites.push((t, pc));
            }
        }
    }
    let (t, pc) = *sites.get(usize::try_from(turn / 4).ok()? % sites.len().max(1))?;
    let mut out = program.clone();
    let thread = &mut out.threads[t];
    if turn % 4 == 1 {
        let fence = Op::Fence { order: FenceOrder::Sc, scope: Scope::Sys };
        thread.body.insert(pc, Instr::new(fence));
        for label in thread.labels.iter_mut().filter(|l| l.at > pc) {
            label.at += 1;
        }
        for instr in &mut thread.body {
            if let Op::Bra { target } = &mut instr.op
                && *target > pc
            {
                *target += 1;
            }
        }
    } else {
        thread.body[pc].op = stronger(&thread.body[pc].op, turn % 4 == 2)?;
    }
    Some(out)
}

/// One step up: in order, or (with `wider`) to system scope. Weak accesses stay weak: making one strong also makes it
/// a party to coherence, which is a different rule.
fn stronger(op: &Op, wider: bool) -> Option<Op> {
    let mut out = op.clone();
    match &mut out {
        Op::Load { order, .. } => match order {
            LoadOrder::Relaxed(s) | LoadOrder::Acquire(s) if wider && *s < Scope::Sys => *s = Scope::Sys,
            LoadOrder::Relaxed(s) if !wider => *order = LoadOrder::Acquire(*s),
            _ => return None,
        },
        Op::Store { order, .. } => match order {
            StoreOrder::Relaxed(s) | StoreOrder::Release(s) if wider && *s < Scope::Sys => *s = Scope::Sys,
            StoreOrder::Relaxed(s) if !wider => *order = StoreOrder::Release(*s),
            _ => return None,
        },
        Op::Rmw { order, scope, red, .. } => match order {
            _ if wider && *scope < Scope::Sys => *scope = Scope::Sys,
            RmwOrder::Relaxed if !wider => *order = RmwOrder::Release,
            RmwOrder::Acquire | RmwOrder::Release if !wider && !*red => *order = RmwOrder::AcqRel,
            _ => return None,
        },
        Op::Fence { order, scope } => match order {
            _ if wider && *scope < Scope::Sys => *scope = Scope::Sys,
            FenceOrder::Acquire | FenceOrder::Release if !wider => *order = FenceOrder::AcqRel,
            FenceOrder::AcqRel if !wider => *order = FenceOrder::Sc,
            _ => return None,
        },
        _ => return None,
    }
    Some(out)
}

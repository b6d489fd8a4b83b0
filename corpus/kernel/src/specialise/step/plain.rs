//! Dispatches instructions that litmus texts do not have.

use super::arithmetic::{cut, results};
use super::followed::followed;
use super::moves::{matrix, plain_load, plain_store, range, uniform_load, updated, vector_away};
use super::{Executing, Then};
use crate::Refusal;
use crate::ptx::{Sort, Statement, Sum, sort};
use crate::specialise::known::arms::{ASSERT_FAIL, called};
use crate::specialise::known::flow::effects;
use crate::specialise::known::value::{Val, Why};
use crate::specialise::practice::Practice;
use moire_isa::kinds::VoteMode;
use moire_isa::{Call, Instr, Value};

pub(super) fn plain(
    step: &mut Executing<'_, '_>,
    statement: &Statement,
    instr: &Instr,
) -> Result<Then, Refusal> {
    match sort(instr) {
        Sort::Computes(sum) => return computed(step, statement, instr, sum),
        Sort::Load(ld) => return plain_load(step, statement, ld),
        Sort::Uniform(ldu) => return uniform_load(step, statement, ldu),
        Sort::LoadMatrix(ld) => return matrix(step, statement, ld.into()),
        Sort::StoreMatrix(st) => return matrix(step, statement, st.into()),
        Sort::Hint => return Ok(Then::Next),
        Sort::Fence => {
            // This keeps less order than PTX has. What is clean without the fence is clean with it.
            let text = format!("{} is ignored: it is assumed to order nothing", step.mnemonic());
            step.note(text);
            return Ok(Then::Next);
        }
        Sort::Store(_) | Sort::Update(_) | Sort::StoreAway(_) | Sort::StoreRange(_) | Sort::Call(_) => {}
        Sort::Trap | Sort::Synchronises | Sort::Touches | Sort::Elsewhere => {}
    }
    step.mask = step.guarded(statement.guard)?;
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    match sort(instr) {
        Sort::Store(st) => plain_store(step, st),
        Sort::Update(update) => updated(step, statement, update),
        Sort::StoreAway(st) => vector_away(step, st),
        Sort::StoreRange(st) => range(step, st),
        Sort::Call(of) => call(step, of),
        Sort::Trap => step.abstain("`trap`: the launch ends here with an error"),
        Sort::Synchronises
        | Sort::Touches
        | Sort::Elsewhere
        | Sort::Computes(_)
        | Sort::Load(_)
        | Sort::Uniform(_)
        | Sort::LoadMatrix(_)
        | Sort::StoreMatrix(_)
        | Sort::Fence
        | Sort::Hint => step.abstain(format!("`{}` is not interpreted", step.mnemonic())),
    }
}

fn computed(
    step: &mut Executing<'_, '_>,
    statement: &Statement,
    instr: &Instr,
    sum: Sum<'_>,
) -> Result<Then, Refusal> {
    if let Some(mask) = exchanged(sum) {
        meet(step, statement, mask)?;
    }
    if matches!(sum, Sum::Vote(vote) if vote.mode == VoteMode::Ballot) {
        // Ranks in another ballot belong to another ticket.
        step.state.tickets.clear();
    }
    let (written, _) = effects(statement);
    if !written.iter().any(|r| step.matters(*r)) {
        return Ok(Then::Next);
    }
    match step.guarded(statement.guard) {
        Ok(mask) => step.mask = mask,
        Err(_) => {
            for r in written {
                step.set(r, Val::Unknown(Why::Computed(statement.line)));
            }
            return Ok(Then::Next);
        }
    }
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    if matches!(sum, Sum::Activemask) && !step.relies(Practice::Together) {
        for r in written {
            step.set(r, Val::Unknown(Why::Computed(statement.line)));
        }
        return Ok(Then::Next);
    }
    if let Some(then) = followed(step, sum, &written)? {
        return Ok(then);
    }
    let values = results(step, instr, sum, written.len());
    for (reg, value) in written.into_iter().zip(values) {
        let value = cut(step, reg, value);
        step.set(reg, value);
    }
    Ok(Then::Next)
}

/// The mask of an exchange between lanes.
fn exchanged(sum: Sum<'_>) -> Option<&Value> {
    match sum {
        Sum::Shfl(i) => Some(&i.mask),
        Sum::Vote(i) => Some(&i.mask),
        Sum::Match(i) => Some(&i.mask),
        Sum::Redux(i) => Some(&i.mask),
        _ => None,
    }
}

/// The lanes of an exchange meet, if they are known.
fn meet(step: &mut Executing<'_, '_>, statement: &Statement, mask: &Value) -> Result<(), Refusal> {
    let Ok(here) = step.guarded(statement.guard) else { return Ok(()) };
    let named = step.only(here).read(mask).known().and_then(|m| m.one(here)).unwrap_or(0);
    step.meet(here, u32::try_from(named & 0xffff_ffff).unwrap_or(0))
}

/// Runs a call. Those of functions of the module were inlined; two of the runtime are known.
fn call(step: &mut Executing<'_, '_>, call: &Call) -> Result<Then, Refusal> {
    match called(step.round().kernel, call) {
        Some("vprintf") => {
            step.note("printf is ignored: it is taken to touch no memory that other threads use");
            Ok(Then::Next)
        }
        Some(ASSERT_FAIL) => step.abstain("a failed `assert`: the launch ends here with an error"),
        Some(name) => {
            let shown: String = name.chars().take(80).collect();
            step.abstain(format!("a call of `{shown}`, which is outside the module or calls itself"))
        }
        None => step.abstain("a call of a function in a register"),
    }
}

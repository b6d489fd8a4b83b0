//! Dispatches instructions that litmus texts do not have.

use super::arithmetic::{cut, results};
use super::moves::{matrix, plain_load, plain_store};
use super::{Step, Then};
use crate::Refusal;
use crate::ptx::{Arg, Plain, Statement};
use crate::specialise::item::Item;
use crate::specialise::known::flow::effects;
use crate::specialise::known::value::{Base, Val, Why};
use moire_program::ir::{CmpOp, Op};

pub(super) fn plain(step: &mut Step<'_, '_>, statement: &Statement, plain: &Plain) -> Result<Then, Refusal> {
    let words: Vec<&str> = plain.words.iter().map(String::as_str).collect();
    match words[0] {
        "ld" | "ldu" => return plain_load(step, statement, &words, plain),
        "st" => return plain_store(step, statement, &words, plain),
        "brkpt" | "discard" | "applypriority" => return Ok(Then::Next),
        "fence" => {
            // This keeps less order than PTX has. What is clean without the fence is clean with it.
            let text = format!("{} is ignored: it is assumed to order nothing", plain.words.join("."));
            step.note(text);
            return Ok(Then::Next);
        }
        "trap" => {
            step.mask = step.guarded(statement.guard)?;
            if step.mask == 0 {
                return Ok(Then::Next);
            }
            step.emit(Item::Exit)?;
            step.state.active &= !step.mask;
            return Ok(if step.state.active == 0 { Then::End } else { Then::Next });
        }
        "ldmatrix" | "stmatrix" => return matrix(step, statement, &words, plain),
        "call" | "brx" | "alloca" | "stacksave" | "stackrestore" | "atom" | "red" | "cp" | "multimem"
        | "tensormap" | "bar" | "barrier" | "mbarrier" | "sust" | "sured" => {
            step.mask = step.guarded(statement.guard)?;
            if step.mask == 0 {
                return Ok(Then::Next);
            }
            return step.abstain(format!("`{}` is not interpreted", plain.words.join(".")));
        }
        _ => {}
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
    if let Some(then) = dynamic(step, &words, plain)? {
        return Ok(then);
    }
    let values = results(step, &words, plain, written.len());
    for (reg, value) in written.into_iter().zip(values) {
        let value = cut(step, reg, value);
        step.set(reg, value);
    }
    Ok(Then::Next)
}

/// Splits the run at a comparison with a register of the exploration, because both answers are possible.
fn dynamic(step: &mut Step<'_, '_>, words: &[&str], plain: &Plain) -> Result<Option<Then>, Refusal> {
    let ("setp", [Arg::Reg(dst), a, b]) = (words[0], plain.args.as_slice()) else { return Ok(None) };
    let Some(ty) = words.last().and_then(|w| crate::ptx::type_of(w)) else { return Ok(None) };
    let compare = match words.get(1) {
        Some(&"eq") => CmpOp::Eq,
        Some(&"ne") => CmpOp::Ne,
        Some(&"lt") => CmpOp::Lt,
        Some(&"le") => CmpOp::Le,
        Some(&"gt") => CmpOp::Gt,
        Some(&"ge") => CmpOp::Ge,
        _ => return Ok(None),
    };
    let (a, b) = (step.arg(a), step.arg(b));
    if !matches!(
        (&a, &b),
        (Val::Based(Base::Register(_), _), Val::Known(_)) | (Val::Known(_), Val::Based(Base::Register(_), _))
    ) {
        return Ok(None);
    }
    let (Some(a), Some(b)) = (step.operand_of(&a), step.operand_of(&b)) else {
        return Ok(None);
    };
    let q = step.slot(0)?;
    let op = Op::Setp { op: compare, ty, dst: q, a, b };
    step.leave_op(op)?;
    Ok(Some(step.both(q, &[*dst])))
}

//! Dispatches instructions that litmus texts do not have.

use super::arithmetic::{cut, results};
use super::followed::followed;
use super::moves::{matrix, plain_load, plain_store};
use super::{Step, Then};
use crate::Refusal;
use crate::ptx::{Plain, Statement};
use crate::specialise::known::arms::{ASSERT_FAIL, called};
use crate::specialise::known::flow::effects;
use crate::specialise::known::value::{Val, Why};

pub(super) fn plain(step: &mut Step<'_, '_>, statement: &Statement, plain: &Plain) -> Result<Then, Refusal> {
    let words: Vec<&str> = plain.words.iter().map(String::as_str).collect();
    match words[0] {
        "ld" | "ldu" => return plain_load(step, statement, &words, plain),
        "st" => return plain_store(step, statement, &words, plain),
        "brkpt" | "applypriority" => return Ok(Then::Next),
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
            return step.abstain("`trap`: the launch ends here with an error");
        }
        "ldmatrix" | "stmatrix" => return matrix(step, statement, &words, plain),
        "call" => return call(step, statement, plain),
        "brx" | "alloca" | "stacksave" | "stackrestore" | "atom" | "red" | "cp" | "multimem"
        | "tensormap" | "bar" | "barrier" | "mbarrier" | "sust" | "sured" | "suld" | "tex" | "tld4"
        | "discard" => {
            return uninterpreted(step, statement, plain);
        }
        // `wmma.mma` touches registers only; the other forms of `wmma` load and store memory.
        "wmma" if words.get(1) != Some(&"mma") => return uninterpreted(step, statement, plain),
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
    if words[0] == "activemask" {
        step.note("activemask is taken to give the lanes that come here together");
    }
    if let Some(then) = followed(step, &words, plain, &written)? {
        return Ok(then);
    }
    let values = results(step, &words, plain, written.len());
    for (reg, value) in written.into_iter().zip(values) {
        let value = cut(step, reg, value);
        step.set(reg, value);
    }
    Ok(Then::Next)
}

/// Refuses an instruction that touches memory or orders threads, if any lane runs it.
fn uninterpreted(step: &mut Step<'_, '_>, statement: &Statement, plain: &Plain) -> Result<Then, Refusal> {
    step.mask = step.guarded(statement.guard)?;
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    step.abstain(format!("`{}` is not interpreted", plain.words.join(".")))
}

/// Runs a call. Those of functions of the module were inlined; two of the runtime are known.
fn call(step: &mut Step<'_, '_>, statement: &Statement, plain: &Plain) -> Result<Then, Refusal> {
    step.mask = step.guarded(statement.guard)?;
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    match called(plain) {
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

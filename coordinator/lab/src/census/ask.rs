//! Asks ptxas about many forms at once: a module has a form a line, and each diagnostic names its line.
//!
//! A parsing error ends the module, and some errors are reported of no line; so the last line is one that no target
//! accepts. Where it is not reported, the forms before it are asked again, without those that were refused, or in halves.

use anyhow::Result;
use moire_isa::census::{NEWEST, POISON, TARGETS, VERSIONS, introduced, module, target};
use moire_toolchain::Ptxas;

/// Most forms of one module.
const TOGETHER: usize = 200;

/// What forms are asked of: a target and a version.
#[derive(Clone, Copy)]
struct Of<'p> {
    ptxas: &'p Ptxas,
    sm: u16,
    version: u16,
}

/// Which forms ptxas accepts for a target at a version.
fn accepted(of: Of<'_>, forms: &[&str]) -> Result<Vec<bool>> {
    let mut out = Vec::with_capacity(forms.len());
    for part in forms.chunks(TOGETHER) {
        let mut answers = vec![true; part.len()];
        let all: Vec<usize> = (0..part.len()).collect();
        judge(of, part, &all, &mut answers)?;
        out.extend(answers);
    }
    Ok(out)
}

/// Which targets accept each form at the newest version.
pub(super) fn targets(ptxas: &Ptxas, forms: &[&str]) -> Result<Vec<[bool; 7]>> {
    let mut answers = vec![[false; 7]; forms.len()];
    for (at, sm) in TARGETS.into_iter().enumerate() {
        let accepted = accepted(Of { ptxas, sm, version: NEWEST }, forms)?;
        answers.iter_mut().zip(accepted).for_each(|(answer, accepted)| answer[at] = accepted);
    }
    Ok(answers)
}

/// Whether ptxas takes a form in a module of its own. Beside others it may only have read the form: where any line cannot be
/// read, it reports nothing that later phases find.
pub(super) fn takes(ptxas: &Ptxas, form: &str, sm: u16) -> Result<bool> {
    let (text, _) = module(sm, NEWEST, [form], "");
    Ok(ptxas.diagnostics(&text, &target(sm))?.is_empty())
}

/// The least version at which any target accepts each form; 0 for those that none accepts.
pub(super) fn versions(ptxas: &Ptxas, forms: &[&str], targets: &[[bool; 7]]) -> Result<Vec<u16>> {
    let mut out = vec![0; forms.len()];
    for version in VERSIONS {
        for (at, sm) in TARGETS.into_iter().enumerate().filter(|(_, sm)| introduced(*sm) <= version) {
            let left: Vec<usize> = (0..forms.len()).filter(|i| out[*i] == 0 && targets[*i][at]).collect();
            let texts: Vec<&str> = left.iter().map(|i| forms[*i]).collect();
            for (i, accepted) in left.into_iter().zip(accepted(Of { ptxas, sm, version }, &texts)?) {
                out[i] = if accepted { version } else { 0 };
            }
        }
    }
    Ok(out)
}

/// Judges the forms at these positions.
fn judge(of: Of<'_>, forms: &[&str], at: &[usize], answers: &mut [bool]) -> Result<()> {
    let Of { ptxas, sm, version } = of;
    if at.is_empty() {
        return Ok(());
    }
    let (text, first) = module(sm, version, at.iter().map(|i| forms[*i]), &format!("{POISON};"));
    let said = ptxas.diagnostics(&text, &target(sm))?;
    let line = |i: usize| first + i;
    let refused: Vec<usize> = (0..at.len()).filter(|i| said.iter().any(|d| d.line == line(*i))).collect();
    refused.iter().for_each(|i| answers[at[*i]] = false);
    let ended = said.iter().any(|d| d.line == line(at.len()));
    if ended && !said.iter().any(|d| d.fatal && d.line != line(at.len())) {
        return Ok(());
    }
    let left: Vec<usize> = (0..at.len()).filter(|i| !refused.contains(i)).map(|i| at[i]).collect();
    if !refused.is_empty() {
        return judge(of, forms, &left, answers);
    }
    if let [one] = at {
        let (text, _) = module(sm, version, [forms[*one]], "");
        answers[*one] = ptxas.diagnostics(&text, &target(sm))?.is_empty();
        return Ok(());
    }
    let (low, high) = at.split_at(at.len() / 2);
    judge(of, forms, low, answers)?;
    judge(of, forms, high, answers)
}

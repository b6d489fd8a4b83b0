//! Advice beside a verdict: edits that were applied and explored again, the patch of the input, and what could go.
//!
//! Contract: nothing is printed that was not verified. The text of a patch is that of the file with the edits, and reads back
//! as the program that was explored.

use crate::input::Source;
use crate::question::Library;
use moire_cat::{Model, Variants};
use moire_execution::leaf::Finding;
use moire_explore::Limits;
use moire_explore::judge::{Judgement, Verdict};
use moire_explore::reduce::Reductions;
use moire_mend::redundant::{self, ASSUMPTIONS, Removal};
use moire_mend::{Advice, Budget, Models, Why, describe, mend, order, patch};
use moire_models::Beside;
use serde_json::{Value, json};
use similar::TextDiff;
use std::collections::BTreeSet;
use std::path::Path;

/// Consistency checks of a program beyond which no edit is tried.
const MAX_CHECKS: u64 = 20_000;
/// Most removable edits listed as text.
const LISTED: usize = 40;

/// Edits that make a program clean.
pub(crate) struct Mended {
    sentences: Vec<String>,
    weakest: bool,
    explorations: u32,
    /// The whole file with the edits.
    fixed: Option<String>,
    /// What the edits mend.
    pub(crate) mistakes: Vec<Mistake>,
}

/// Findings that return without one of the edits.
pub(crate) struct Mistake {
    pub(crate) findings: BTreeSet<Finding>,
}

/// Where a program comes from, which decides how its text is patched.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// The text of the program itself.
    Litmus,
    /// A module. The function says whether a patched text, lowered for the same launch, is clean.
    Module(&'a dyn Fn(&str) -> bool),
}

/// Advice, or the reason that there is none.
pub(crate) type Told = Result<Mended, Why>;

/// The model with the order of execution, for a model as the command line names it.
pub(crate) fn order_model(name: &str, variants: &Variants, library: Library) -> Option<Model> {
    let own = name.ends_with(".cat");
    let (path, file) = if own {
        let path = Path::new(name);
        (path.with_file_name("moire-order.cat"), path.file_name()?.to_string_lossy().into_owned())
    } else {
        ("moire-order.cat".into(), format!("{name}.cat"))
    };
    let beside = Beside(|path: &Path| if own { (library.beside)(path) } else { None });
    moire_cat::load(&path.display().to_string(), &order::text(&file), &beside, variants).ok()
}

/// Whether advice is given for this kind of verdict.
fn can_be_mended(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Race | Verdict::Hang | Verdict::Lifetime | Verdict::Protocol | Verdict::EarlyPass
    )
}

/// Advice for a program. None if nothing is wrong with it that edits of its synchronisation could mend.
pub(crate) fn advice(
    source: &Source,
    judgement: &Judgement,
    models: Models<'_>,
    limits: &Limits,
    (origin, more): (Origin<'_>, &dyn Fn() -> bool),
) -> Option<Told> {
    if !judgement.verdicts.iter().any(can_be_mended) {
        return None;
    }
    let checks = judgement.summary.checks;
    if checks > MAX_CHECKS {
        return Some(Err(Why::Budget));
    }
    let limits = Limits { reductions: Reductions::NONE, ..*limits };
    let found = mend(&source.program, judgement, models, &limits, Budget::of(checks), more);
    Some(found.and_then(|advice| mended(source, &advice, &judgement.findings, origin)))
}

fn mended(source: &Source, advice: &Advice, all: &BTreeSet<Finding>, origin: Origin<'_>) -> Told {
    let Source { text, program, .. } = source;
    let fixed = match origin {
        Origin::Litmus => patch::native(text, program, &advice.edits(), &advice.program),
        Origin::Module(holds) => match patch::ptx(text, program, &advice.steps) {
            Some(fixed) if !holds(&fixed) => return Err(Why::Again),
            fixed => fixed,
        },
    };
    Ok(Mended {
        sentences: describe(&source.program, &advice.steps),
        weakest: advice.weakest,
        explorations: advice.explorations,
        fixed,
        mistakes: mistakes(&advice.solves, all),
    })
}

/// Why advice has no patch.
pub(crate) fn unpatched(told: Option<&Told>) -> String {
    match told {
        None => "nothing that edits of the synchronisation could mend was found".to_owned(),
        Some(Err(why)) => why.to_string(),
        Some(Ok(mended)) => format!("the edits cannot be written into this text: {}", mended.edits()),
    }
}

impl Mended {
    /// The patch of the file, as `patch -p0` takes it.
    pub(crate) fn diff(&self, source: &Source) -> Option<String> {
        let fixed = self.fixed.as_ref()?;
        let diff = TextDiff::from_lines(&source.text, fixed);
        Some(diff.unified_diff().header(&source.name, &source.name).to_string())
    }

    fn json(&self, source: &Source) -> Value {
        json!({
            "edits": self.sentences, "weakest": self.weakest, "explorations": self.explorations,
            "mistakes": self.mistakes.len(), "patch": self.diff(source),
        })
    }

    /// All edits in one line.
    pub(crate) fn edits(&self) -> String {
        self.sentences.join("; ")
    }
}

/// The advice as text.
pub(crate) fn text(mended: &Mended) -> String {
    let least = if mended.weakest { ", and nothing weaker is enough" } else { "" };
    let mut out = format!("  mend, explored again and clean{least}:\n");
    mended.sentences.iter().for_each(|s| out += &format!("    {s}\n"));
    out
}

/// All findings by mistake: those that the same edits mend stand together, and so do those that no single edit brings back.
fn mistakes(solves: &[BTreeSet<Finding>], all: &BTreeSet<Finding>) -> Vec<Mistake> {
    let mut out: Vec<Mistake> = Vec::new();
    for findings in solves.iter().filter(|f| !f.is_empty()) {
        let mut all = Mistake { findings: findings.clone() };
        let (same, other): (Vec<Mistake>, Vec<Mistake>) =
            out.into_iter().partition(|m| !m.findings.is_disjoint(&all.findings));
        same.into_iter().for_each(|mut m| all.findings.append(&mut m.findings));
        out = other;
        out.push(all);
    }
    let known = |f: &&Finding| !out.iter().any(|m| m.findings.contains(*f));
    let rest: BTreeSet<Finding> = all.iter().filter(known).cloned().collect();
    out.extend((!rest.is_empty()).then_some(Mistake { findings: rest }));
    out
}

/// The advice as JSON.
pub(crate) fn json(told: Option<&Told>, source: &Source) -> Value {
    match told {
        None => Value::Null,
        Some(Ok(mended)) => mended.json(source),
        Some(Err(why)) => json!({"edits": [], "none": format!("no advice: {why}")}),
    }
}

/// Synchronisation that a program can do without.
pub(crate) struct Spare {
    alone: Vec<String>,
    together: Vec<String>,
    complete: bool,
}

/// The synchronisation of a program that can go, as far as time allows.
pub(crate) fn spare(
    source: &Source,
    judgement: &Judgement,
    models: Models<'_>,
    limits: &Limits,
    more: &dyn Fn() -> bool,
) -> Result<Spare, Why> {
    let checks = judgement.summary.checks;
    if checks > MAX_CHECKS {
        return Err(Why::Budget);
    }
    let limits = Limits { reductions: Reductions::NONE, ..*limits };
    let budget = Budget::of(checks);
    let found = redundant::redundant(&source.program, models, &limits, budget, more)?;
    let words = |all: &[Removal]| -> Vec<String> {
        all.iter().map(|r| describe(&source.program, r).join(", and ")).collect()
    };
    Ok(Spare { alone: words(&found.alone), together: words(&found.together), complete: found.complete })
}

impl Spare {
    /// The answer as text.
    fn text(&self) -> String {
        let mut out = String::new();
        let mut list = |title: &str, all: &[String]| {
            out += &format!("  {title}:{}\n", if all.is_empty() { " nothing" } else { "" });
            all.iter().take(LISTED).for_each(|s| out += &format!("    {s}\n"));
            if all.len() > LISTED {
                out += &format!("    and {} more, see --format json\n", all.len() - LISTED);
            }
        };
        list("redundant, each alone", &self.alone);
        list("redundant, all together", &self.together);
        if !self.complete {
            out += "    not everything was tried; --explain-time gives more time\n";
        }
        ASSUMPTIONS.iter().for_each(|a| out += &format!("    assumed: {a}\n"));
        out
    }

    fn json(&self) -> Value {
        json!({"alone": self.alone, "together": self.together, "complete": self.complete, "assumed": ASSUMPTIONS})
    }
}

/// The removable synchronisation, as text.
pub(crate) fn spare_text(spare: &Result<Spare, Why>) -> String {
    match spare {
        Ok(spare) => spare.text(),
        Err(why) => format!("  redundant: not asked: {why}\n"),
    }
}

/// The same as JSON.
pub(crate) fn spare_json(spare: Option<&Result<Spare, Why>>) -> Value {
    match spare {
        Some(Ok(spare)) => spare.json(),
        Some(Err(why)) => json!({"alone": [], "together": [], "complete": false, "none": why.to_string()}),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_that_share_an_edit_are_one_mistake() {
        let of = |names: &[&str]| -> BTreeSet<Finding> {
            names.iter().map(|n| Finding { flag: (*n).to_owned(), places: Vec::new() }).collect()
        };
        let counts = |solves: &[BTreeSet<Finding>]| -> Vec<usize> {
            mistakes(solves, &of(&["a", "z"])).iter().map(|m| m.findings.len()).collect()
        };
        assert_eq!(counts(&[of(&["a", "b"]), of(&["b", "c"]), of(&["d"]), of(&[])]), [3, 1, 1]);
        assert_eq!(counts(&[of(&["a"]), of(&["b"]), of(&["a", "b"])]), [2, 1]);
    }
}

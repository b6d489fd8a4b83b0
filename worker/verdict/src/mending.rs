//! Advice beside a verdict: edits that were applied and explored again, the patch of the input, and what could go.
//!
//! Contract: nothing is printed that was not verified. The text of a patch is that of the file with the edits, and reads back
//! as the program that was explored.

use crate::barrier::{Found, Left, Place, barriers, is_level};
use crate::input::Source;
use crate::proof;
use crate::question::Library;
use moire_cat::{Model, Variants};
use moire_execution::leaf::Finding;
use moire_explore::Limits;
use moire_explore::judge::{Judgement, Verdict};
use moire_explore::reduce::Reductions;
use moire_mend::redundant::{self, ASSUMPTIONS, Removal};
use moire_mend::{Budget, Models, Step, Why, describe, extend, finding_of, has_barrier, mend, order, patch};
use moire_models::Beside;
use moire_program::edit::{Added, Edit};
use moire_program::ir::{Op, Program};
use moire_program::lanes::reduced;
use schemars::JsonSchema;
use serde::Serialize;
use similar::{DiffOp, DiffTag, TextDiff};
use std::collections::BTreeSet;
use std::path::Path;

/// Consistency checks of a program beyond which no edit is tried.
const MAX_CHECKS: u64 = 20_000;

/// The edits that make a program clean, or the reason that there are none.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Advice {
    /// Each in a sentence.
    pub edits: Vec<String>,
    /// Whether each subset and each weaker form was tried, and is not enough.
    pub weakest: bool,
    /// How many programs were explored for it.
    pub explorations: u32,
    /// The findings of the program by mistake: their positions in its list. The same edits mend those that stand together.
    pub mistakes: Vec<Vec<usize>>,
    /// The patch of the file, as `patch -p0` takes it.
    pub patch: Option<String>,
    /// Why there are no edits.
    pub none: Option<String>,
}

impl Advice {
    /// All edits in one line; none if there are none.
    pub fn line(&self) -> Option<String> {
        self.none.is_none().then(|| self.edits.join("; "))
    }
}

/// Where a program comes from, which decides how its text is patched.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// The text of the program itself.
    Litmus,
    /// A module, with the instructions of what is wrong. The function says what is wrong with a patched text. None if it is not known, or
    /// there is no time.
    Module(&'a [Vec<Place>], &'a dyn Fn(&str) -> Option<Left>),
}

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

/// What the operational engine finds in a program, as trials ask it. None if it does not decide.
pub(crate) fn found_in_one_run(
    program: &Program,
    (name, model): (&str, &Model),
) -> Option<BTreeSet<Finding>> {
    let (outcome, _) = proof::run(program, name, model).ok()?;
    if outcome.bounded.is_some() || outcome.differs.is_some() || outcome.runs == 0 {
        return None;
    }
    let place = |(thread, line): &(usize, u32)| moire_execution::leaf::Place {
        thread: u16::try_from(*thread).unwrap_or(u16::MAX),
        line: *line,
    };
    let one = |f: &moire_operate::Finding| Finding {
        flag: f.kind.word().to_owned(),
        places: f.places.iter().map(place).collect(),
    };
    Some(outcome.findings.iter().map(one).collect())
}

/// Whether advice is given for this kind of verdict.
fn can_be_mended(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Race | Verdict::Hang | Verdict::Lifetime | Verdict::Protocol | Verdict::EarlyPass
    )
}

/// Makes edits hold under other readings, where some do: a function extends edits to one more reading.
pub(crate) type Readings<'a> = &'a dyn Fn(
    moire_mend::Advice,
    &dyn Fn(&moire_mend::Advice, Models<'_>) -> Option<moire_mend::Advice>,
) -> moire_mend::Advice;

/// Advice for a program. None if nothing is wrong with it that edits of its synchronisation could mend.
pub(crate) fn advice(
    source: &Source,
    judgement: &Judgement,
    models: Models<'_>,
    limits: &Limits,
    (origin, more): (Origin<'_>, &dyn Fn() -> bool),
    readings: Readings<'_>,
) -> Option<Advice> {
    if !judgement.verdicts.iter().any(can_be_mended) {
        return None;
    }
    if let Origin::Module(wrong, left) = origin
        && more()
        && let Some(found) = barriers((&source.text, &source.program), wrong, left)
    {
        return Some(joined(source, found, judgement.findings.len()));
    }
    let checks = judgement.summary.checks;
    let limits = Limits { reductions: Reductions::NONE, ..*limits };
    let whole = judgement.summary.executions().is_some();
    let found = match whole && checks > MAX_CHECKS {
        true => Err(Why::Budget),
        false => mend(source.written(), judgement, models, &limits, Budget::of(checks.min(MAX_CHECKS)), more),
    };
    let found = found.map(|edits| {
        let budget = Budget::of(checks.min(MAX_CHECKS));
        readings(edits, &|edits, other| {
            extend(source.written(), edits, (models, other), &limits, budget, more)
        })
    });
    let told = found.and_then(|edits| mended(source, &edits, &judgement.findings, origin));
    Some(told.unwrap_or_else(|why| Advice { none: Some(why.to_string()), ..Advice::default() }))
}

/// Advice of barriers in the text of a kernel.
fn joined(source: &Source, found: Found, findings: usize) -> Advice {
    let diff = TextDiff::from_lines(&source.text, &found.text);
    Advice {
        edits: found.edits,
        weakest: found.weakest,
        explorations: found.judged,
        mistakes: vec![(0..findings).collect()],
        patch: Some(diff.unified_diff().header(&source.name, &source.name).to_string()),
        none: None,
    }
}

/// Whether all threads come to a barrier that is put in at one line. One of a warp, and one that stands at a line for each side, has no line that
/// all come to.
fn meets(text: &str, program: &Program, steps: &[Step], late: bool) -> bool {
    let barriers: Vec<&Step> = steps.iter().filter(|step| has_barrier(step)).collect();
    let [step] = barriers[..] else { return true };
    let of_warp = |e: &Edit| matches!(e, Edit::Insert { what: Added::Plain(Op::WarpSync { .. }), .. });
    step.iter().any(of_warp)
        || patch::place(program, step, late).is_some_and(|(line, behind)| is_level(text, line, behind))
}

/// What is new in a text, in its own words: a sentence for each place.
fn changes(text: &str, fixed: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(text, fixed);
    let (old, new): (Vec<&str>, Vec<&str>) = (text.lines().collect(), fixed.lines().collect());
    let code =
        |lines: &[&str]| lines.iter().map(|l| l.trim().trim_end_matches(';')).collect::<Vec<_>>().join("; ");
    let one = |op: &DiffOp| -> Vec<String> {
        let (from, to) = (op.old_range(), op.new_range());
        let (gone, come) = (&old[from.clone()], &new[to]);
        if gone.is_empty() {
            let behind = from.start > 0 && old[from.start - 1].trim_end().ends_with(';');
            let (side, line) = if behind { ("behind", from.start) } else { ("in front of", from.start + 1) };
            return vec![format!("add `{}` {side} line {line}", code(come))];
        }
        let pairs = gone.iter().zip(come).zip(from.start + 1..).filter(|((a, b), _)| a != b);
        pairs
            .map(|((a, b), line)| {
                format!("write `{}` instead of `{}` in line {line}", code(&[b]), code(&[a]))
            })
            .collect()
    };
    diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal).flat_map(one).collect()
}

/// The module with these edits, judged again: early between the lines of the launch, late, or with fences for all launches. Also whether it is late.
fn rewritten(
    text: &str,
    program: &Program,
    steps: &[Step],
    left: &dyn Fn(&str) -> Option<Left>,
) -> Result<(String, bool), Why> {
    let mut why = Why::Named;
    let mut tried = BTreeSet::new();
    let apart = patch::apart(program, steps);
    for (steps, late) in [(Some(steps), false), (Some(steps), true), (apart.as_deref(), false)] {
        let Some(steps) = steps else { continue };
        let Some(fixed) = patch::ptx(text, program, steps, late) else { continue };
        why = Why::Again;
        let new = meets(text, program, steps, late) && tried.insert(fixed.clone());
        if new && left(&fixed).is_some_and(|left| left.is_empty()) {
            return Ok((fixed, late));
        }
    }
    Err(why)
}

fn mended(
    source: &Source,
    found: &moire_mend::Advice,
    all: &BTreeSet<Finding>,
    origin: Origin<'_>,
) -> Result<Advice, Why> {
    let (name, text, program) = (&source.name, &source.text, source.written());
    let (fixed, late) = match origin {
        Origin::Litmus => (patch::native(text, program, &found.edits(), &found.program), false),
        Origin::Module(_, left) => {
            let (fixed, late) = rewritten(text, program, &found.steps, left)?;
            (Some(fixed), late)
        }
    };
    let diff =
        |fixed: String| TextDiff::from_lines(text, &fixed).unified_diff().header(name, name).to_string();
    let at = |m: &BTreeSet<Finding>| (0..).zip(all).filter(|f| m.contains(f.1)).map(|f| f.0).collect();
    let edits = match (origin, &fixed) {
        (Origin::Module(..), Some(fixed)) => changes(text, fixed),
        (Origin::Module(..) | Origin::Litmus, _) => describe(program, &found.steps),
    };
    Ok(Advice {
        edits,
        // Of several edits one may be needed only where the others do not stand late.
        weakest: found.weakest && (!late || found.steps.len() == 1),
        explorations: found.explorations,
        mistakes: mistakes(&explored(program, &found.solves, all), all).iter().map(at).collect(),
        patch: fixed.map(diff),
        none: None,
    })
}

/// Findings about the threads of a text as findings about those that were explored for it.
fn explored(text: &Program, solves: &[BTreeSet<Finding>], all: &BTreeSet<Finding>) -> Vec<BTreeSet<Finding>> {
    let of = reduced(text).of;
    let one = |text: &BTreeSet<Finding>| {
        all.iter().filter(|f| text.contains(&finding_of(&of, f))).cloned().collect::<BTreeSet<Finding>>()
    };
    solves.iter().map(one).collect()
}

/// All findings by mistake: those that the same edits mend stand together, and so do those that no single edit brings back.
fn mistakes(solves: &[BTreeSet<Finding>], all: &BTreeSet<Finding>) -> Vec<BTreeSet<Finding>> {
    let mut out: Vec<BTreeSet<Finding>> = Vec::new();
    for findings in solves.iter().filter(|f| !f.is_empty()) {
        let mut together = findings.clone();
        let (same, other): (Vec<_>, Vec<_>) = out.into_iter().partition(|m| !m.is_disjoint(&together));
        same.into_iter().for_each(|mut m: BTreeSet<Finding>| together.append(&mut m));
        out = other;
        out.push(together);
    }
    let rest: BTreeSet<Finding> =
        all.iter().filter(|f| !out.iter().any(|m| m.contains(*f))).cloned().collect();
    out.extend((!rest.is_empty()).then_some(rest));
    out
}

/// Synchronisation that a program can do without.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Redundant {
    /// What can go alone.
    pub alone: Vec<String>,
    /// What can go together.
    pub together: Vec<String>,
    /// Whether everything was tried.
    pub complete: bool,
    /// What that takes for granted.
    pub assumed: Vec<&'static str>,
    /// Why it was not asked.
    pub none: Option<String>,
}

/// The synchronisation of a program that can go under the model of the verdict and under readings, as far as time allows.
pub(crate) fn spare(
    source: &Source,
    judgement: &Judgement,
    models: &[Models<'_>],
    limits: &Limits,
    more: &dyn Fn() -> bool,
) -> Redundant {
    let checks = judgement.summary.checks;
    let limits = Limits { reductions: Reductions::NONE, ..*limits };
    let found = match checks > MAX_CHECKS {
        true => Err(Why::Budget),
        false => redundant::redundant(source.written(), models, &limits, Budget::of(checks), more),
    };
    let words = |all: &[Removal]| -> Vec<String> {
        all.iter().map(|r| describe(source.written(), r).join(", and ")).collect()
    };
    found.map_or_else(not_asked, |found| Redundant {
        alone: words(&found.alone),
        together: words(&found.together),
        complete: found.complete,
        assumed: ASSUMPTIONS.to_vec(),
        none: None,
    })
}

/// The reason that nobody asked what can go.
pub(crate) fn not_asked(why: Why) -> Redundant {
    Redundant { none: Some(why.to_string()), ..Redundant::default() }
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
            mistakes(solves, &of(&["a", "z"])).iter().map(BTreeSet::len).collect()
        };
        assert_eq!(counts(&[of(&["a", "b"]), of(&["b", "c"]), of(&["d"]), of(&[])]), [3, 1, 1]);
        assert_eq!(counts(&[of(&["a"]), of(&["b"]), of(&["a", "b"])]), [2, 1]);
    }
}

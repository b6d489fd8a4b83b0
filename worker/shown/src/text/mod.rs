//! One answer for people.

mod chain;
mod findings;
mod launch;
mod operational;

use crate::show;
use moire_explore::Bound;
use moire_explore::judge::Verdict;
use moire_program::words::many;
use moire_verdict::answer::{Answer, Descended, Part, Visited};
use moire_verdict::door::Answered;
use moire_verdict::exit;
use moire_verdict::kernel::Launched;
use moire_verdict::problem::{Standing, Suppressed};
use std::collections::{BTreeMap, BTreeSet};

pub use findings::{mends, relied, sentence, title};
pub use launch::{text as launch_text, uncovered};

/// An answer as one text, with the errors and the advice.
pub fn page(answer: &Answer) -> String {
    let remarks: String = answer.remarks.iter().map(|r| format!("{r}\n")).collect();
    match answer.parts.is_empty() {
        true => remarks,
        false => format!("{remarks}{}: {}\n{}", answer.title(), answer.verdicts.line(), body(answer)),
    }
}

/// The verdicts without reasons, and whether nothing of them fails because it is known.
pub fn kinds(answer: &Answer) -> String {
    let known = answer.verdicts.has_finding() && !answer.codes(false).contains(&exit::FINDING);
    answer.verdicts.kinds().join(", ") + if known { " (known)" } else { "" }
}

/// What is decided about problems.
fn standings(answer: &Answer) -> String {
    let mut out = String::new();
    for problem in &answer.problems {
        let at = if problem.lines.is_empty() { "" } else { " at lines " };
        let what = format!("{}{at}{}", problem.name(), findings::joined(&problem.lines, ", "));
        let said = |s: &Suppressed| format!("{}: {} ({})", s.until, s.reason, s.place);
        match &problem.standing {
            Standing::Open => {}
            Standing::Known => out += &format!("  known: the baseline has {what}\n"),
            Standing::Suppressed(s) => {
                out += &format!("  suppressed: {what}, by {} until {}\n", s.owner, said(s));
            }
            Standing::Expired(s) => {
                out += &format!(
                    "  not suppressed any more: {what}; what {} wrote ended on {}\n",
                    s.owner,
                    said(s)
                );
            }
        }
    }
    out
}

/// What is wrong with a part, without the executions that show it.
pub fn wrong(answer: &Answer, part: &Part) -> String {
    let hang = part.hang.iter().map(|h| format!("  hang: {}\n", h.who)).collect::<String>();
    hang + &findings::text(answer, part)
}

/// Everything below the verdicts.
pub fn body(answer: &Answer) -> String {
    let mut out = standings(answer) + &scope(answer);
    answer.parts.iter().for_each(|part| out += &findings::text(answer, part));
    for contest in &answer.contested {
        out += &format!("  contested({}): {}\n", contest.setting, contest.verdicts.line());
    }
    for (part, shown) in answer.parts.iter().flat_map(|p| p.executions.iter().map(move |e| (p, e))) {
        let table = show::table(&part.threads, &shown.execution);
        let shows: Vec<&str> = shown.shows.iter().map(|s| findings::title(s)).collect();
        out += &format!("  in this execution, {}:\n{table}", shows.join("; "));
    }
    out
}

/// The scope of the verdicts: executions, conditions and hangs, launch, and the parts of a clean kernel that did not run.
fn scope(answer: &Answer) -> String {
    let mut out = String::new();
    let options: BTreeSet<&str> = answer.verdicts.0.iter().filter_map(|v| raised_by(v, answer)).collect();
    options.iter().for_each(|option| out += &format!("  {option} raises this limit\n"));
    let explored = answer.operational.as_ref().is_none_or(|o| o.explored.is_some());
    for (n, part) in answer.parts.iter().enumerate().filter(|_| explored) {
        out += &explored_text(answer, part, answer.part_title(n));
        out.extend(part.descents.iter().map(sampled));
    }
    out.extend(answer.operational.iter().map(operational::text));
    match &answer.launch {
        Some(launch) => out += &launch::text(launch, &answer.taken),
        None => {
            let taken = answer.taken.iter();
            out.extend(taken.map(|taken| format!("  {}\n", launch::granted(taken))));
        }
    }
    let quiet = answer.launch.iter().filter(|_| !answer.verdicts.has_finding());
    out.extend(quiet.flat_map(Launched::all).map(launch::covered));
    out
}

/// The option that raises the limit of a verdict.
fn raised_by(verdict: &Verdict, answer: &Answer) -> Option<&'static str> {
    let Verdict::Bounded(reason) = verdict else { return None };
    match Bound::ALL.into_iter().find(|bound| bound.to_string() == *reason)? {
        Bound::Loop => Some("--loop-bound N"),
        Bound::Leaves => Some("--limit N"),
        Bound::Ended if answer.verdicts.has_finding() => Some("--after-finding TIME"),
        _ => None,
    }
}

/// A verdict that leaves something open, behind the command of the other launch that has it.
pub fn undecided(part: &Part, verdict: &Verdict) -> String {
    let head = part.launch.as_ref().map_or(String::new(), |command| format!("{command}: "));
    match verdict {
        Verdict::Bounded(reason) => format!("{head}a limit was hit: {reason}"),
        Verdict::Abstained(reason) => format!("{head}not modelled: {reason}"),
        other => format!("{head}{}", other.word()),
    }
}

/// A line for each answer, and how often each verdict is there.
pub fn table(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (verdicts, name) in rows {
        out += &format!("{verdicts:width$}  {name}\n");
        *counts.entry(verdicts).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(verdicts, n)| format!("{n} {verdicts}")).collect();
    out + &format!("{}: {}\n", many(rows.len(), "answer"), counts.join("; "))
}

/// Where a part was explored, what was visited, and what is true of its conditions.
fn explored_text(answer: &Answer, part: &Part, title: Option<String>) -> String {
    let Visited { executions, blocked, .. } = part.visited;
    let title = title.map_or(String::new(), |title| format!("{title}, {}: ", part.verdicts.line()));
    let agrees = part.second.as_ref().is_some_and(|s| s.answered == Answered::Both);
    let mut out = format!(
        "  {title}under {}: {}{}{}{}\n",
        answer.model.as_deref().unwrap_or_default(),
        many(executions, "execution"),
        if blocked > 0 { format!(" that end, {blocked} that hang") } else { String::new() },
        left_out(part.visited),
        if agrees { "; the operational engine agrees" } else { "" }
    );
    out.extend(part.second.iter().map(|second| operational::second(second, part)));
    for condition in &part.conditions {
        let name = if condition.name.is_empty() { String::new() } else { format!(" {}", condition.name) };
        let holds = match condition.holds {
            None => "is not decided",
            Some(true) => "holds",
            Some(false) => "does not hold",
        };
        out += &format!("  {}{name} {holds}\n", condition.quantifier);
        out.extend(condition.execution.iter().map(|e| show::table(&part.threads, e)));
    }
    out.extend(part.hang.iter().map(|hang| format!("  hang: {}\n", hang.who)));
    out
}

/// The executions that reductions left out, if any.
fn left_out(visited: Visited) -> String {
    let named = [
        (visited.cut_threads, "symmetric threads"),
        (visited.cut_unseen, "accesses that no condition observes"),
    ];
    let some: Vec<String> =
        named.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} for {what}")).collect();
    if some.is_empty() { String::new() } else { format!("; parts left out: {}", some.join(", ")) }
}

/// The executions that random descents saw, and an estimate of how many there are.
fn sampled(d: &Descended) -> String {
    format!(
        "  {} random descents, {} lost, {} different executions of about {:.3e} (standard error {:.1e}), \
         {} communications\n",
        d.made, d.lost, d.different, d.estimate, d.standard_error, d.communications
    )
}

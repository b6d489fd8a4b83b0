//! The answer of the operational engine in sentences.

use super::findings::joined;
use moire_explore::judge::Verdict;
use moire_operate::{ASSUMPTIONS, SCHEDULES};
use moire_verdict::answer::Part;
use moire_verdict::door::{Answered, Second};
use moire_verdict::proof::{Confirmation, Free, Mistake, Operational, shown};

/// Most findings listed.
const LISTED: usize = 8;

/// The proof for every trip count, or what keeps it from being one.
pub(super) fn text(o: &Operational) -> String {
    let cost = format!("  operational engine, {}: {} states, {} steps\n", o.readings, o.states, o.steps);
    match (&o.explored, &o.bounded) {
        (Some(explored), _) if o.findings.is_empty() => format!(
            "{cost}  refuted by the explorer for {}: the operational engine finds nothing\n    again: {}\n",
            shown(&explored.trips),
            explored.again
        ),
        (_, Some(bounded)) => format!("{cost}  stopped by the limit on {bounded}\n"),
        _ if o.findings.is_empty() && o.differs.is_none() => proved(o, &cost),
        _ => found(o, cost),
    }
}

/// What the operational engine says of a program that the explorer did not finish.
pub(super) fn second(second: &Second, part: &Part) -> String {
    match second.answered {
        Answered::Both | Answered::Neither => String::new(),
        Answered::Explorer if !part.verdicts.is_incomplete() => String::new(),
        Answered::Explorer => format!("  operational engine: {}\n", second.verdicts.words().join(", ")),
        Answered::Operational => {
            let mut out = format!("  answered by the operational engine, in {} steps\n", second.steps);
            if second.findings.is_empty() {
                out += &format!("  the same under {SCHEDULES} other schedules of threads and completions\n");
                out += "  arrivals, waits and expect_tx are ordered (D1 to D5), so one run stands for all; assumed:\n";
                out.extend(ASSUMPTIONS.iter().skip(1).map(|a| format!("    {a}\n")));
            }
            out.extend(second.findings.iter().take(LISTED).map(mistake));
            let more = second.findings.len().saturating_sub(LISTED);
            if more > 0 {
                out += &format!("    and {more} more\n");
            }
            out
        }
    }
}

fn proved(o: &Operational, cost: &str) -> String {
    let mut out =
        format!("  clean for every trip count: {}\n{cost}", joined(o.classes.iter().map(scope), ", "));
    out += &format!("  the same under {} other schedules of threads and completions\n", o.schedules);
    out += &confirmations(&o.confirmations);
    out += "  arrivals, waits and expect_tx are ordered (D1 to D5), so one run stands for all; assumed:\n";
    out.extend(o.assumptions.iter().map(|a| format!("    {a}\n")));
    out
}

fn found(o: &Operational, cost: String) -> String {
    let mut out = cost;
    out.extend(o.findings.iter().take(LISTED).map(mistake));
    let more = o.findings.len().saturating_sub(LISTED);
    if more > 0 {
        out += &format!("    and {more} more\n");
    }
    if let Some(explored) = &o.explored {
        let says = if explored.confirmed { "confirmed by" } else { "not confirmed by" };
        out += &format!("  {says} the explorer for {}\n", shown(&explored.trips));
        if explored.confirmed {
            out += "    advice is tried with these trip counts only\n";
        }
        out += &format!("    again: {}\n", explored.again);
    }
    out
}

fn mistake(mistake: &Mistake) -> String {
    let condition = mistake.condition.as_ref().map_or(String::new(), |c| format!(" [{c}]"));
    format!("    {}: {}{condition}\n", mistake.kind, mistake.text)
}

/// `confirmed by the explorer for 2 of 3 trip counts from K = 0 to K = 2; K = 2: bounded (checks)`
fn confirmations(all: &[Confirmation]) -> String {
    let is_clean =
        |c: &Confirmation| c.verdicts.as_ref().is_some_and(|v| matches!(v.0[..], [Verdict::Clean(_)]));
    let [from, .., to] = all else { return String::new() };
    let sure = all.iter().filter(|c| is_clean(c)).count();
    let mut out = format!(
        "  confirmed by the explorer for {sure} of {} trip counts from {} to {}\n",
        all.len(),
        shown(&from.trips),
        shown(&to.trips)
    );
    for c in all.iter().filter(|c| !is_clean(c)) {
        let why =
            c.verdicts.as_ref().map_or("not tried, the budget is spent".to_owned(), |v| v.words().join(", "));
        out += &format!("    {}: {why}\n", shown(&c.trips));
    }
    out
}

/// `K >= 1 (lines 7, 19)`
fn scope(free: &Free) -> String {
    let Free { name, least, lines } = free;
    let bound = if *least > 0 { format!("{name} >= {least}") } else { name.clone() };
    let word = if lines.len() == 1 { "line" } else { "lines" };
    format!("{bound} ({word} {})", joined(lines, ", "))
}

//! What is wrong with a part, and the notes beside it: mistakes with their lines, edits, stale reads, other readings.

use super::chain;
use moire_cat::LETTER;
use moire_verdict::answer::{Answer, Part};
use moire_verdict::finding::{Finding, Place};
use moire_verdict::mending::{Advice, Redundant};
use moire_verdict::problem::PLAIN;
use moire_verdict::readings::{Profile, Unwritten};
use moire_verdict::told;
use std::collections::{BTreeMap, BTreeSet};

/// Most groups of findings listed.
const LISTED: usize = 12;
/// Most removable edits listed.
const REMOVED: usize = 40;
/// Characters of a source line that are shown.
const SHOWN: usize = 100;

/// What a rule, or a hang, is called in a sentence.
pub fn title(rule: &str) -> &str {
    told::rule(rule).or_else(|| told::verdict(rule)).map_or(rule, |told| told.title)
}

/// The findings and notes of a part.
pub(super) fn text(answer: &Answer, part: &Part) -> String {
    let mut out = match &part.advice {
        Some(advice) if advice.none.is_none() => mistakes(answer, part, advice),
        advice => unmended(answer, part, advice.as_ref()),
    };
    out.extend(part.redundant.iter().map(redundant));
    for stale in part.stale.iter().take(LISTED) {
        out += &format!(
            "  note: no race between lines {} and {}, because these accesses are strong; a stale value is allowed at line {}\n",
            stale.write, stale.read, stale.read
        );
    }
    out.extend(part.profile.iter().map(|p| if p.name == LETTER { grouped_by_reading(p) } else { listed(p) }));
    out
}

fn mistakes(answer: &Answer, part: &Part, advice: &Advice) -> String {
    let of = |m: &Vec<usize>| m.iter().filter_map(|at| part.findings.get(*at)).collect::<Vec<_>>();
    let mut out: String = advice.mistakes.iter().map(|m| mistake(answer, part, of(m))).collect();
    let least = if advice.weakest { ", and nothing weaker is enough" } else { "" };
    out += &format!("  mend, explored again and clean{least}:\n");
    advice.edits.iter().for_each(|s| out += &format!("    {s}\n"));
    out
}

fn unmended(answer: &Answer, part: &Part, advice: Option<&Advice>) -> String {
    let groups = grouped(&part.findings);
    let mut out: String = groups.iter().take(LISTED).map(|g| shown(answer, part, g)).collect();
    let more = groups.len().saturating_sub(LISTED);
    if more > 0 {
        out += &format!("  and {more} more\n");
    }
    if let Some(why) = advice.and_then(|a| a.none.as_ref()) {
        out += &format!("  no advice: {why}\n");
        let orders = groups.iter().filter_map(|g| g[0].missing.as_ref());
        let arrivals = part.hang.iter().flat_map(|h| &h.waits).filter_map(|w| w.missing.as_ref());
        let mut told = BTreeSet::new();
        let missing = orders.chain(arrivals).filter(|m| told.insert(*m));
        out.extend(missing.take(LISTED).map(|m| format!("    missing: {m}\n")));
    }
    out
}

fn redundant(redundant: &Redundant) -> String {
    if let Some(why) = &redundant.none {
        return format!("  redundant: not asked: {why}\n");
    }
    let mut out = String::new();
    for (title, all) in [("each alone", &redundant.alone), ("all together", &redundant.together)] {
        out += &format!("  redundant, {title}:{}\n", if all.is_empty() { " nothing" } else { "" });
        all.iter().take(REMOVED).for_each(|s| out += &format!("    {s}\n"));
        if all.len() > REMOVED {
            out += &format!("    and {} more, see --format json\n", all.len() - REMOVED);
        }
    }
    if !redundant.complete {
        out += "    not everything was tried; --explain-time gives more time\n";
    }
    out.extend(redundant.assumed.iter().map(|a| format!("    assumed: {a}\n")));
    out
}

/// Findings of one kind about the same lines, whichever threads they are of. Races stand first.
fn grouped<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Vec<Vec<&'f Finding>> {
    let mut out: BTreeMap<(&str, Vec<u32>), Vec<&Finding>> = BTreeMap::new();
    findings.into_iter().for_each(|f| out.entry((&f.kind, f.lines())).or_default().push(f));
    let mut out: Vec<Vec<&Finding>> = out.into_values().collect();
    out.sort_by_key(|g| !g[0].kind.ends_with("-race"));
    out
}

/// A group of findings: verdict, what the instructions do, where, and their lines.
fn shown(answer: &Answer, part: &Part, group: &[&Finding]) -> String {
    let first = group[0];
    // A race of accesses of the same bytes needs no more words.
    let plain = first.kind == PLAIN;
    let title = Some(title(&first.kind)).filter(|_| !plain || first.accesses.is_none());
    let together = together(part, group);
    let known = title.into_iter().chain(first.accesses.as_deref()).chain([together.as_str()]);
    let words: Vec<&str> = known.filter(|w| !w.is_empty()).collect();
    let rule = if plain { String::new() } else { format!(" [{}]", first.kind) };
    let mut out = format!("  {}: {}{rule}\n", first.verdict, words.join(", "));
    let mut lines: Vec<u32> = first.places.iter().map(|p| p.line).collect();
    lines.dedup();
    out.extend(lines.into_iter().map(|line| quoted(answer, line)));
    out.extend(chain::broken(part, first).map(|why| format!("    {why}\n")));
    out
}

/// The same as a sentence: what is wrong, what the instructions do, where, and where the chain breaks.
pub fn sentence(part: &Part, group: &[&Finding]) -> String {
    let Some(first) = group.first() else { return String::new() };
    let together = together(part, group);
    let known = [title(&first.kind)].into_iter().chain(first.accesses.as_deref()).chain([together.as_str()]);
    let why = chain::broken(part, first).map_or(String::new(), |why| format!("; {why}"));
    joined(known.filter(|w| !w.is_empty()), ", ") + &why
}

/// A sentence about the edits that mend a part.
pub fn mends(part: &Part) -> Option<String> {
    Some(format!("mend: {}", part.advice.as_ref()?.line()?))
}

/// One mistake: its first finding, how many more it has, and where.
fn mistake(answer: &Answer, part: &Part, findings: Vec<&Finding>) -> String {
    let groups = grouped(findings);
    let Some(first) = groups.first() else { return String::new() };
    let mut out = shown(answer, part, first);
    if groups.len() > 1 {
        let pair = |g: &Vec<&Finding>| joined(g[0].lines().into_iter().collect::<BTreeSet<u32>>(), "/");
        let rest: Vec<String> =
            groups.iter().skip(1).take(LISTED).map(pair).filter(|p| !p.is_empty()).collect();
        let dots = if groups.len() - 1 > LISTED { ", .." } else { "" };
        let findings = if groups.len() == 2 { "finding" } else { "findings" };
        let lines =
            if rest.is_empty() { String::new() } else { format!(", lines {}{dots}", rest.join(", ")) };
        out += &format!("    the same mistake: {} more {findings}{lines}\n", groups.len() - 1);
    }
    out
}

/// `lines 51 and 52 of P0, P1`, or `line 51 of P0, P1 and line 61 of P2`
fn together(part: &Part, group: &[&Finding]) -> String {
    let position = |name: &str| part.threads.iter().position(|t| t == name);
    let mut by_line: BTreeMap<u32, BTreeSet<(Option<usize>, &str)>> = BTreeMap::new();
    for place in group.iter().flat_map(|f| &f.places) {
        by_line.entry(place.line).or_default().insert((position(&place.thread), &place.thread));
    }
    let names = |threads: &BTreeSet<(Option<usize>, &str)>| joined(threads.iter().map(|t| t.1), ", ");
    let alone = group.iter().all(|f| f.places.iter().all(|p| p.thread == f.places[0].thread));
    match by_line.first_key_value() {
        Some((_, threads)) if alone && by_line.len() > 1 => {
            format!("lines {} of {}", joined(by_line.keys(), " and "), names(threads))
        }
        _ => joined(
            by_line.iter().map(|(line, threads)| format!("line {line} of {}", names(threads))),
            " and ",
        ),
    }
}

/// A line of the text as it stands there.
fn quoted(answer: &Answer, number: u32) -> String {
    let Some(line) = answer.lines.get(&number) else { return String::new() };
    let shown: String = line.text.chars().take(SHOWN).collect();
    let dots = if shown.len() < line.text.len() { " .." } else { "" };
    let origin = line.source.as_ref().map_or(String::new(), |s| format!("         | {}\n", s.text()));
    let file = line.file.as_ref().map_or(String::new(), |f| format!("         | {}:{}\n", f.file, f.line));
    format!("    {number:4} | {shown}{dots}\n{file}{origin}")
}

/// `P0 line 7 and P1 line 12`
fn places(finding: &Finding) -> String {
    let one = |p: &Place| format!("{} line {}", p.thread, p.line);
    if finding.places.is_empty() {
        return finding.kind.clone();
    }
    joined(finding.places.iter().map(one), " and ")
}

/// The settings of the readings that findings rely on.
pub fn relied(unwritten: &Unwritten) -> String {
    match unwritten.relies.as_slice() {
        [] => "readings that were not looked for in the time for explanations".to_owned(),
        all => joined(all.iter().map(|r| &r.setting), ", "),
    }
}

fn kinds(unwritten: &Unwritten) -> String {
    joined(unwritten.findings.iter().map(|f| f.verdict).collect::<BTreeSet<_>>(), ", ")
}

/// What the letter has and the profile has not, when the letter is in use.
fn listed(profile: &Profile) -> String {
    let mut out = format!("  under {}: {}\n", profile.name, profile.verdicts.line());
    for u in &profile.contested {
        let places = joined(u.findings.iter().map(places).collect::<BTreeSet<_>>(), "; ");
        out += &format!(
            "  contested(profile): {} under the letter only, {} relies on {} at {places}\n",
            kinds(u),
            profile.name,
            relied(u)
        );
        u.relies.iter().for_each(|r| out += &format!("    {}: {}\n", r.setting, r.says));
    }
    out
}

/// The same as one note, when the profile is in use: readings and lines. Without a difference, the verdicts by the letter.
fn grouped_by_reading(profile: &Profile) -> String {
    let (against, verdicts) = (&profile.against, profile.verdicts.line());
    if !profile.letter_only {
        return format!("  judged under {against}; by the letter: {verdicts}\n");
    }
    let mut out = format!(
        "  contested(profile): by the letter {verdicts}; --profile letter lists it, --strict counts it\n"
    );
    for u in &profile.contested {
        let lines: BTreeSet<u32> = u.findings.iter().flat_map(Finding::lines).collect();
        let more = lines.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = joined(lines.iter().take(LISTED), ", ");
        let lines = if shown.is_empty() { String::new() } else { format!(", lines {shown}{more}") };
        let says = joined(u.relies.iter().map(|r| &r.says), "; ");
        let says = if u.relies.is_empty() { String::new() } else { format!(": {says}") };
        out += &format!("    {}{lines}: {against} relies on {}{says}\n", kinds(u), relied(u));
    }
    out
}

/// Words with `between` between them.
pub(super) fn joined<T: ToString>(all: impl IntoIterator<Item = T>, between: &str) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(between)
}

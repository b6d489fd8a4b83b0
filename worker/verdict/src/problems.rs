//! The problems of an answer, each with its fingerprint ([`crate::problem`]).

use crate::answer::{Answer, Part};
use crate::exit;
use crate::finding::Finding;
use crate::problem::{Problem, Standing};
use moire_cat::LETTER;
use moire_explore::judge::Verdict;
use std::collections::{BTreeMap, BTreeSet};

/// What tells two problems apart: verdict, rule, whether it is of the letter only, and places in the source or else in the text.
type Key = (&'static str, String, bool, BTreeSet<String>);

/// All problems of an answer, in order of their first lines.
pub fn problems(answer: &Answer) -> Vec<Problem> {
    let mut all: BTreeMap<Key, Problem> = BTreeMap::new();
    for (n, part) in answer.parts.iter().enumerate() {
        let own = part.findings.iter().enumerate();
        own.for_each(|(at, f)| join(answer, &mut all, of_finding(n, at, f, false)));
        letter(part).enumerate().for_each(|(at, f)| join(answer, &mut all, of_finding(n, at, f, true)));
        of_part(n, part).into_iter().for_each(|p| join(answer, &mut all, p));
    }
    for contest in &answer.contested {
        join(answer, &mut all, bare("contested", &contest.setting, None));
    }
    for verdict in answer.verdicts.0.iter().filter(|v| v.exit_code() == exit::FINDING) {
        if !all.values().any(|p| !p.letter && p.verdict == verdict.word()) {
            join(answer, &mut all, bare(verdict.word(), verdict.word(), None));
        }
    }
    let mut all: Vec<Problem> = all.into_values().collect();
    all.sort_by(|a, b| (&a.lines, a.letter, &a.rule).cmp(&(&b.lines, b.letter, &b.rule)));
    name(answer, &mut all);
    all
}

/// The findings under the letter only.
pub fn letter(part: &Part) -> impl Iterator<Item = &Finding> {
    let profile = part.profile.iter().filter(|p| p.name == LETTER && p.letter_only);
    profile.flat_map(|p| &p.contested).flat_map(|c| &c.findings)
}

/// Adds a problem, or its findings to the problem that it is.
fn join(answer: &Answer, all: &mut BTreeMap<Key, Problem>, new: Problem) {
    let places = new.lines.iter().map(|line| place(answer, *line)).collect();
    let key = (new.verdict, new.rule.clone(), new.letter, places);
    match all.get_mut(&key) {
        Some(known) if known.part == new.part => {
            known.findings.extend(new.findings);
            known.lines.extend(new.lines);
            known.lines.sort_unstable();
            known.lines.dedup();
        }
        Some(_) => {}
        None => drop(all.insert(key, new)),
    }
}

fn place(answer: &Answer, line: u32) -> String {
    let source = answer.lines.get(&line).and_then(|l| l.source.as_ref());
    source.map_or_else(|| line.to_string(), |s| format!("{}:{}", s.file, s.line))
}

fn of_finding(part: usize, at: usize, finding: &Finding, letter: bool) -> Problem {
    let mut lines = finding.lines();
    lines.dedup();
    let findings = vec![at];
    Problem { letter, findings, lines, ..bare(finding.verdict, &finding.kind, Some(part)) }
}

/// Hang, conditions, and verdicts that no finding tells more of.
fn of_part(n: usize, part: &Part) -> Vec<Problem> {
    let mut out = Vec::new();
    for verdict in part.verdicts.0.iter().filter(|v| v.exit_code() == exit::FINDING) {
        match verdict {
            Verdict::Hang => {
                let waits = part.hang.iter().flat_map(|h| &h.waits);
                let lines: BTreeSet<u32> = waits.map(|w| w.line).filter(|l| *l > 0).collect();
                let lines = lines.into_iter().collect();
                out.push(Problem { lines, ..bare("hang", "hang", Some(n)) });
            }
            Verdict::Condition(name) if !name.is_empty() => out.push(bare("condition", name, Some(n))),
            other if part.findings.iter().any(|f| f.verdict == other.word()) => {}
            other => out.push(bare(other.word(), other.word(), Some(n))),
        }
    }
    out.extend(by_letter(n, part));
    out
}

/// Verdicts by the letter only that no finding tells more of.
fn by_letter(n: usize, part: &Part) -> Vec<Problem> {
    let Some(profile) = part.profile.iter().find(|p| p.name == LETTER && p.letter_only) else {
        return Vec::new();
    };
    let told = |word: &str| letter(part).any(|f| f.verdict == word);
    let wrong = profile.verdicts.0.iter().filter(|v| v.exit_code() == exit::FINDING);
    let new = wrong.filter(|v| !part.verdicts.0.contains(v)).map(Verdict::word).filter(|word| !told(word));
    let mut out: Vec<Problem> =
        new.map(|word| Problem { letter: true, ..bare("contested", word, Some(n)) }).collect();
    if out.is_empty() && letter(part).next().is_none() {
        out.push(Problem { letter: true, ..bare("contested", "contested", Some(n)) });
    }
    out
}

fn bare(verdict: &'static str, rule: &str, part: Option<usize>) -> Problem {
    let rule = rule.to_owned();
    let (fingerprint, findings, lines) = (String::new(), Vec::new(), Vec::new());
    let standing = Standing::Open;
    Problem { fingerprint, verdict, rule, letter: false, part, findings, lines, standing }
}

/// Gives each its fingerprint.
fn name(answer: &Answer, all: &mut [Problem]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let kernel = answer.launch.as_ref().map_or("", |launch| &launch.entry);
    for problem in all {
        let letter = if problem.letter { "letter" } else { "" };
        let texts = problem.lines.iter().filter_map(|l| answer.lines.get(l)).map(|l| steady(&l.text));
        let texts = texts.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("\n");
        let text = [problem.verdict, &problem.rule, letter, kernel, &texts].join("\0");
        let own = seen.entry(text.clone()).or_default();
        *own += 1;
        let hash = blake3::hash(format!("{text}\0{own}").as_bytes()).to_hex();
        hash.as_str()[..32].clone_into(&mut problem.fingerprint);
    }
}

/// An instruction without its comment and without the numbers of registers and labels.
fn steady(text: &str) -> String {
    let text = text.split("//").next().unwrap_or_default();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut numbered = false;
    let kept = |c: &char| {
        numbered = matches!(c, '%' | '$') || (numbered && (c.is_ascii_alphanumeric() || *c == '_'));
        !(numbered && c.is_ascii_digit())
    };
    words.chars().filter(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_registers_and_comments_are_no_part_of_an_instruction() {
        let one = steady("@%p12  st.shared.u32 [%rd7+16], %r4; // late");
        assert_eq!(one, "@%p st.shared.u32 [%rd+16], %r;");
        assert_eq!(one, steady("@%p1 st.shared.u32 [%rd70+16],  %r5;"));
        assert_ne!(one, steady("@%p1 st.shared.u32 [%rd70+32], %r5;"));
        assert_eq!(steady("bra $L__BB0_12;"), steady("bra $L__BB1_3;"));
        assert_eq!(steady("st.weak.u32 [data2], 1;"), "st.weak.u32 [data2], 1;");
    }
}

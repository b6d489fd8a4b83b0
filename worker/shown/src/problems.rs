//! Problems in sentences, as all formats for other tools say them.

use crate::text;
use moire_verdict::answer::{Answer, Hang, Part};
use moire_verdict::finding::Finding;
use moire_verdict::problem::Problem;
use moire_verdict::problems::letter;

/// What an answer holds of a problem.
pub struct About<'a> {
    /// The part that it is of.
    pub part: Option<&'a Part>,
    /// The findings, the first one first.
    pub findings: Vec<&'a Finding>,
    /// The hang.
    pub hang: Option<&'a Hang>,
}

impl<'a> About<'a> {
    /// What the answer holds of one of its problems.
    pub fn new(answer: &'a Answer, problem: &Problem) -> Self {
        let part = problem.part.and_then(|n| answer.parts.get(n));
        let all = |part: &'a Part| -> Vec<&'a Finding> {
            if problem.letter { letter(part).collect() } else { part.findings.iter().collect() }
        };
        let all = part.map_or(Vec::new(), all);
        let findings = problem.findings.iter().filter_map(|at| all.get(*at).copied()).collect();
        let hang = part.and_then(|p| p.hang.as_ref()).filter(|_| problem.verdict == "hang");
        About { part, findings, hang }
    }
}

/// A problem in sentences, behind the command of the other launch that shows it.
pub fn said(answer: &Answer, problem: &Problem) -> String {
    let about = About::new(answer, problem);
    let head =
        about.part.and_then(|p| p.launch.as_ref()).map_or(String::new(), |command| format!("{command}: "));
    let mend = about.part.filter(|_| !problem.letter).and_then(text::mends);
    let mend = mend.map_or(String::new(), |m| format!("; {m}"));
    let what = match (about.part, about.findings.first(), about.hang) {
        (_, _, Some(hang)) => hang.who.clone(),
        (Some(part), Some(first), None) => {
            let alike = about.findings.iter().filter(|f| f.lines() == first.lines()).copied();
            text::sentence(part, &alike.collect::<Vec<_>>())
        }
        _ => bare(answer, problem),
    };
    format!("{head}{}{what}{mend}", relied(problem, &about))
}

/// What is wrong where no instruction is named.
fn bare(answer: &Answer, problem: &Problem) -> String {
    let mut contests = answer.contested.iter().filter(|_| problem.verdict == "contested");
    match (contests.find(|c| c.setting == problem.rule), problem.verdict) {
        (Some(c), _) => format!("{} gives {}", c.setting, c.verdicts.words().join(", ")),
        (None, "condition") if problem.rule != "condition" => {
            format!("the condition `{}` does not hold", problem.rule)
        }
        (None, verdict) => text::title(verdict).to_owned(),
    }
}

/// That a problem is there by the letter only, and which readings say that it is none.
fn relied(problem: &Problem, about: &About<'_>) -> String {
    let profile = about.part.filter(|_| problem.letter).and_then(|p| p.profile.as_ref());
    let Some(profile) = profile else { return String::new() };
    let has = about.findings.first();
    match profile.contested.iter().find(|u| has.is_some_and(|f| u.findings.contains(f))) {
        Some(u) => format!("under the letter only, {} relies on {}: ", profile.against, text::relied(u)),
        None => format!("under the letter only, not under {}: ", profile.against),
    }
}

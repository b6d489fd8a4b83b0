//! A PTX module without the lines that its mistakes do not need.
//!
//! Contract: the result is judged like the module, with the same options, and the same rules are broken by the same instructions: of each
//! rule, those of its first problem. No statement of it that has a line of its own can go alone; heads stay, so the launch is the same.
//! The bounds of an exploration are counts, so the result depends on the module and the options only.

use super::LIBRARY;
use crate::interrupt::on_interrupt;
use crate::launch::LaunchArgs;
use crate::model::ModelArgs;
use anyhow::{Result, anyhow};
use moire_console::exit;
use moire_console::input::File;
use moire_coordinator::many;
use moire_explore::Limits;
use moire_verdict::answer::Answer;
use moire_verdict::asked::Asked;
use moire_verdict::door::Answered;
use moire_verdict::judging::Judge;
use moire_verdict::kernel::Wanted;
use moire_verdict::problems::problems;
use moire_verdict::question::{Question, Quiet};
use moire_worker::job::Cancel;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Consistency checks of one exploration of a candidate.
const CHECKS: u64 = 20_000;
/// As `moire check` has it: the bound is a count of steps that stands for this time.
const AFTER_FINDING: Duration = Duration::from_secs(10);

/// What is wrong: for each verdict and rule the instructions of its first problem, without blanks.
type Wrong = BTreeMap<(&'static str, String), Vec<String>>;

/// Prints a module with the same mistakes and as few lines as can be. At most `limit` candidates are judged.
///
/// # Errors
/// Nothing is wrong with it, or the options do not fit it.
pub(crate) fn smaller(file: &File, (model, launch): (&ModelArgs, &LaunchArgs), limit: u64) -> Result<u8> {
    let limits = Limits { checks: CHECKS, ..Limits::default() };
    let named = model.model.as_ref().map(ToString::to_string);
    let (switches, after_finding) = (model.switches(), AFTER_FINDING);
    let question = Question { model: named, switches, limits, after_finding, ..Question::default() };
    let asked = Asked::new(&question, model.name(file), true, LIBRARY)?;
    let stop = Cancel::new();
    on_interrupt(stop.clone());
    let launch = launch.wanted(&Wanted::default())?;
    let answer = |text: &str| {
        let stops = || stop.is_cancelled();
        let judge = Judge {
            question: &question,
            launch: launch.clone(),
            asked: &asked,
            host: &Quiet::new(0, &stops),
        };
        judge.file(&file.with(text))
    };
    let text = str::from_utf8(&file.bytes).map_err(|_| anyhow!("{}: this is no text", file.name()))?;
    let first = answer(text);
    if let Some(error) = first.remarks.iter().find(|remark| first.parts.is_empty() && remark.is_error()) {
        return Err(anyhow!(error.clone()));
    }
    let kept = wrong(&first, text);
    if kept.is_empty() {
        return Err(anyhow!(
            "{}: no finding under {}; there is nothing to keep",
            file.name(),
            model.name(file)
        ));
    }
    let rules: BTreeSet<&str> = kept.keys().map(|(verdict, _)| *verdict).collect();
    eprintln!("kept: {} of the same instructions", Vec::from_iter(rules).join(", "));
    let is_kept = |text: &str| wrong(&answer(text), text) == kept;
    let mut search = Search { is_kept: &is_kept, stop: &stop, left: limit };
    let mut pieces = pieces(text);
    let whole = search.reduce(&mut pieces);
    print!("{}", pieces.concat());
    let end = match whole {
        true => "nothing smaller",
        false if stop.is_cancelled() => "interrupted",
        false => "limit hit: --limit raises it",
    };
    eprintln!("{} tried, {end}", many(limit - search.left, "candidate"));
    Ok(if whole { exit::FINDING } else { exit::INCOMPLETE })
}

struct Search<'a> {
    is_kept: &'a dyn Fn(&str) -> bool,
    stop: &'a Cancel,
    /// Candidates that may still be judged.
    left: u64,
}

impl Search<'_> {
    /// Leaves out shorter and shorter runs of pieces, until none can go alone. Whether it came to that end.
    fn reduce(&mut self, pieces: &mut Vec<String>) -> bool {
        let mut run = pieces.len().div_ceil(2);
        loop {
            let before = pieces.len();
            if !self.round(pieces, run) {
                return false;
            }
            if pieces.len() < before {
                eprintln!("{}", many(pieces.concat().lines().count(), "line"));
            } else if run <= 1 {
                return true;
            }
            run = (run / 2).max(1);
        }
    }

    /// Leaves out each run of so many pieces that is not needed, but for what stays. Whether all were tried.
    fn round(&mut self, pieces: &mut Vec<String>, run: usize) -> bool {
        let mut at = 0;
        while at < pieces.len() {
            let to = (at + run).min(pieces.len());
            let stays: Vec<&String> = pieces[at..to].iter().filter(|piece| !may_go(piece)).collect();
            let next = at + stays.len();
            let fewer: Vec<String> = pieces[..at].iter().chain(stays).chain(&pieces[to..]).cloned().collect();
            if fewer.len() == pieces.len() {
                at = to;
                continue;
            }
            if self.left == 0 || self.stop.is_cancelled() {
                return false;
            }
            self.left -= 1;
            if (self.is_kept)(&fewer.concat()) {
                (*pieces, at) = (fewer, next);
            } else {
                at = to;
            }
        }
        true
    }
}

/// The lines of a module. A call with the block around it is one piece.
fn pieces(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let (mut depth, mut within) = (0usize, false);
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        match within {
            true => out.iter_mut().last().into_iter().for_each(|piece| piece.push_str(line)),
            false => out.push(line.to_owned()),
        }
        within = depth > 1 || depth > 0 && code.contains('{') && !code.contains('}');
        depth = (depth + code.matches('{').count()).saturating_sub(code.matches('}').count());
        within &= depth > 1;
        out.iter_mut().last().into_iter().for_each(|piece| piece.push('\n'));
    }
    out
}

/// Whether a piece is one statement, a label, a comment or a block. Heads, braces and what says how a kernel is launched stay.
fn may_go(piece: &str) -> bool {
    let code = piece.split("//").next().unwrap_or_default().trim();
    let count = |c: char| piece.matches(c).count();
    let whole = code.is_empty() || code.ends_with([';', ':']);
    let place = [".loc", ".file"].iter().any(|name| code.starts_with(name));
    (whole || place || code.starts_with('{')) && count('{') == count('}') && !code.starts_with(".param")
}

/// What is wrong with a module, by the reading of its verdict.
fn wrong(answer: &Answer, text: &str) -> Wrong {
    let lines: Vec<&str> = text.lines().collect();
    let line = |n: &u32| {
        let at = usize::try_from(*n).ok()?.checked_sub(1)?;
        Some(lines.get(at)?.split_whitespace().collect::<String>())
    };
    let mut out = Wrong::new();
    let mut add = |verdict: &'static str, rule: String, lines: &[u32]| {
        out.entry((verdict, rule)).or_insert_with(|| lines.iter().filter_map(line).collect());
    };
    for problem in problems(answer).into_iter().filter(|p| !p.letter) {
        add(problem.verdict, problem.rule, &problem.lines);
    }
    // What one engine alone found has its instructions there.
    let alone = answer.parts.iter().filter_map(|part| part.second.as_ref());
    for mistake in alone.filter(|s| s.answered == Answered::Operational).flat_map(|s| &s.findings) {
        let lines: BTreeSet<u32> = mistake.places.iter().map(|p| p.line).collect();
        add(mistake.kind, format!("{} of one run", mistake.kind), &Vec::from_iter(lines));
    }
    out
}

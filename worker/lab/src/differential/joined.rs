//! Compares a program with joined lanes with the one that has a thread for each lane: both explored, by verdict.

use moire_cat::Model;
use moire_explore::judge::{About, Judgement, Questions, Verdict, judge};
use moire_explore::search::Limits;
use moire_program::ir::Program;
use moire_program::lanes::{Planted, joined_with, literal};
use std::collections::BTreeSet;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Both agree: the words of their verdicts, and the numbers of threads, literal and joined.
    Same(BTreeSet<&'static str>, usize, usize),
    /// They differ: in what, literal and joined.
    Different(String),
    /// One of them is not explored to the end, for this reason.
    Skipped(String),
}

/// Compares on one program, with a bug planted in the reduction or none.
pub fn compare_joined(program: &Program, model: &Model, limits: &Limits, bug: Option<Planted>) -> Compared {
    let (one, few) = (literal(program), joined_with(program, bug));
    let about = Questions { witnesses: false, about: About::All };
    let answer = |p: &Program| judge(p, model, limits, about);
    let few_answer = answer(&few);
    if let Some(why) = open(&few_answer) {
        return Compared::Skipped(format!("joined: {why}"));
    }
    let one_answer = answer(&one);
    if let Some(why) = open(&one_answer) {
        return Compared::Skipped(format!("literal: {why}"));
    }
    match difference(&one_answer, &few_answer) {
        Some(what) => Compared::Different(what),
        None => Compared::Same(words(&one_answer), one.threads.len(), few.threads.len()),
    }
}

fn open(judgement: &Judgement) -> Option<String> {
    judgement.verdicts.iter().find_map(|v| match v {
        Verdict::Bounded(why) | Verdict::Abstained(why) => Some(why.clone()),
        _ => None,
    })
}

fn words(judgement: &Judgement) -> BTreeSet<&'static str> {
    judgement.verdicts.iter().map(Verdict::word).collect()
}

/// What the flags are about, by the lines of the instructions.
fn lines(judgement: &Judgement, of: &str) -> BTreeSet<(String, Vec<u32>)> {
    let places = |f: &moire_execution::leaf::Finding| {
        let mut lines: Vec<u32> = f.places.iter().map(|p| p.line).collect();
        lines.sort_unstable();
        (f.flag.clone(), lines)
    };
    judgement.findings.iter().filter(|f| f.flag.contains(of)).map(places).collect()
}

fn difference(one: &Judgement, few: &Judgement) -> Option<String> {
    let clean = (one.is_clean(), few.is_clean());
    if clean == (false, true) && only_conditions(one) {
        return Some("condition".into());
    }
    if clean.0 != clean.1 {
        let what = if clean.1 { "FALSE CLEAN" } else { "false alarm" };
        return Some(format!("{what}: {:?} {:?}", one.verdicts, few.verdicts));
    }
    // S4: where the protocol is broken, lists of races are those of lanes that arrive together.
    let broken =
        |j: &Judgement| words(j).iter().any(|w| !matches!(*w, "clean" | "race" | "hang" | "condition"));
    if broken(one) != broken(few) {
        return Some(format!("protocol: {:?} {:?}", one.broken.keys(), few.broken.keys()));
    }
    if broken(one) {
        return None;
    }
    if lines(one, "race") != lines(few, "race") {
        return Some(format!("pairs: {:?} {:?}", lines(one, "race"), lines(few, "race")));
    }
    if one.hang.is_some() != few.hang.is_some() {
        return Some(format!("hang: {} {}", one.hang.is_some(), few.hang.is_some()));
    }
    let holds = |j: &Judgement| j.conditions.iter().map(|c| c.reachable).collect::<Vec<_>>();
    let races = !lines(one, "race").is_empty();
    (!races && holds(one) != holds(few)).then(|| format!("outcomes: {:?} {:?}", holds(one), holds(few)))
}

fn only_conditions(judgement: &Judgement) -> bool {
    words(judgement).iter().all(|w| *w == "condition")
}

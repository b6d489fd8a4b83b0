//! Why a model forbids a final state: the rules that stand in its way, and a cycle of accesses that they break.
//!
//! The rules are the least sets of checks without which the model allows the state. An execution without them ends so; in
//! it accesses stand in a circle of program order, reads-from, coherence and from-reads, because an execution without one
//! is sequentially consistent, and no model of a source forbids that. A read-modify-write counts as one access. The
//! shortest circle is told.

use super::answer::derived;
use moire_cat::{CheckId, Model};
use moire_execution::leaf::{FinalState, Witness};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_program::ir::Program;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

/// Most checks of a set that is tried.
const MAX_SET: usize = 2;

/// Why a final state is forbidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// The least sets of checks without which it is allowed, by name; none where no few checks forbid it.
    pub rules: Vec<Vec<String>>,
    /// The circle of accesses, one step a line.
    pub cycle: Vec<String>,
}

/// Asks why `program` does not end as `so` says. `line` is the text of a line of the program.
pub(super) fn forbidden(
    program: &Program,
    model: &Model,
    limits: &Limits,
    so: &dyn Fn(&FinalState) -> bool,
    line: &dyn Fn(u32) -> Option<String>,
) -> Forbidden {
    let checks: Vec<usize> = (0..model.checks().len()).filter(|c| !model.checks()[*c].flag).collect();
    let pairs =
        || checks.iter().flat_map(|a| checks.iter().filter(move |b| *b > a).map(move |b| vec![*a, *b]));
    let mut shown = None;
    let mut admits = |set: &Vec<usize>| {
        let weaker = set.iter().rev().fold(model.clone(), |m, c| m.without(CheckId(*c)));
        let found = ends(program, &weaker, limits, so);
        let admitted = found.is_some();
        shown = shown.take().or(found);
        admitted
    };
    let mut sets: Vec<Vec<usize>> = checks.iter().map(|c| vec![*c]).filter(|s| admits(s)).collect();
    if sets.is_empty() && MAX_SET > 1 {
        sets = pairs().filter(|s| admits(s)).collect();
    }
    let names = |set: &Vec<usize>| set.iter().map(|c| model.checks()[*c].name.clone()).collect();
    let cycle = shown.map(|w| told(program, &w, line)).unwrap_or_default();
    Forbidden { rules: sets.iter().map(names).collect(), cycle }
}

/// An execution that ends so.
fn ends(
    program: &Program,
    model: &Model,
    limits: &Limits,
    so: &dyn Fn(&FinalState) -> bool,
) -> Option<Witness> {
    let mut found = None;
    let _ = explore(program, model, &[], limits, &mut |leaf: &mut dyn LeafView| {
        if leaf.states().iter().any(so) {
            found = Some(leaf.witness());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}

/// A step of a circle: the kind of the edge, and the events that it joins.
type Hop = (&'static str, usize, usize);

/// The shortest circle, one step a line.
fn told(program: &Program, witness: &Witness, line: &dyn Fn(u32) -> Option<String>) -> Vec<String> {
    let name = |e: usize| {
        let event = &witness.events[e];
        let thread = program.threads.get(event.event.thread as usize).map_or("start", |t| t.name.as_str());
        match line(event.line).filter(|_| event.line > 0) {
            Some(text) => format!("{thread} `{}`", text.trim().trim_end_matches([';', '{']).trim_end()),
            None => thread.to_owned(),
        }
    };
    let place = |e: usize| witness.events[e].location.clone().unwrap_or_default();
    let value = |e: usize| witness.events[e].value.map_or(String::new(), |v| format!(" {v}"));
    let step = |(kind, a, b): &Hop| match *kind {
        "po" => format!("{} stands before {} in its thread", name(*a), name(*b)),
        "rf" => format!("{} writes{} to {}, which {} reads", name(*a), value(*a), place(*a), name(*b)),
        "co" => format!("{} overwrites in {} what {} wrote", name(*b), place(*b), name(*a)),
        "fr" => format!(
            "{} reads{} from {}, which is older than what {} writes",
            name(*a),
            value(*a),
            place(*a),
            name(*b)
        ),
        _ => format!("{} meets {} at a barrier", name(*a), name(*b)),
    };
    circle(witness).iter().map(step).collect()
}

/// The shortest circle of an execution.
fn circle(witness: &Witness) -> Vec<Hop> {
    let all = hops(witness);
    let one = one_of(witness);
    let nodes: BTreeSet<usize> = all.iter().map(|(_, a, _)| one[*a]).collect();
    let from = |start: &usize| {
        let mut came: BTreeMap<usize, Hop> = BTreeMap::new();
        let mut todo = VecDeque::from([*start]);
        while let Some(at) = todo.pop_front() {
            for hop in all.iter().filter(|(_, a, _)| one[*a] == at) {
                let to = one[hop.2];
                if to == at || came.contains_key(&to) {
                    continue;
                }
                came.insert(to, *hop);
                todo.push_back(to);
            }
        }
        let mut path: Vec<Hop> = Vec::new();
        let mut at = *start;
        while let Some(hop) = came.get(&at) {
            path.push(*hop);
            at = one[hop.1];
            if at == *start {
                path.reverse();
                return Some(path);
            }
        }
        None
    };
    nodes.iter().filter_map(from).min_by_key(Vec::len).unwrap_or_default()
}

/// The steps between events.
fn hops(witness: &Witness) -> Vec<Hop> {
    let kind = |word: &str| ["rf", "co", "fr", "syncbar"].into_iter().find(|k| *k == word);
    let edges = witness.edges.iter().cloned().chain(derived(witness));
    let mut out: Vec<Hop> = edges.filter_map(|(k, a, b)| Some((kind(&k)?, a, b))).collect();
    let access = |e: usize| witness.events[e].location.is_some() && witness.events[e].kind != "init";
    let own = |e: usize| witness.events[e].event;
    for a in (0..witness.events.len()).filter(|e| access(*e)) {
        let behind = (0..witness.events.len()).filter(|b| access(*b));
        let later = |b: &usize| own(*b).thread == own(a).thread && own(*b).index > own(a).index;
        out.extend(behind.filter(later).map(|b| ("po", a, b)));
    }
    out
}

/// For each event the one that stands for it: of a read-modify-write the read.
fn one_of(witness: &Witness) -> Vec<usize> {
    let mut out: Vec<usize> = (0..witness.events.len()).collect();
    for (_, read, write) in witness.edges.iter().filter(|(k, _, _)| k == "rmw") {
        out[*write] = *read;
    }
    out
}

/// What a check of a model of sources says, in words.
pub(super) fn rule(name: &str) -> Option<&'static str> {
    Some(match name {
        "CoherenceTotal" => "writes to one object have an order on which everybody agrees",
        "CoherenceWW" | "Coherence" => "writes to one object stand in the order in which they happen",
        "CoherenceRF" | "CausalityRF" => "a read takes no value from a write that happens after it",
        "CoherenceFR" | "CausalityFR" => "a read takes no value that was overwritten before it happens",
        "CoherenceCR" => "a read takes no value from a write that a write before it came after",
        "CoherenceRR" => "a later read of an object takes no older value than an earlier one",
        "CausalityCO" => "an order of writes does not contradict what happens before what",
        "CausalityCORF" => "a write that happens after a read does not stand before what the read saw",
        "HappensBefore" => "nothing happens before itself",
        "ScPerLocation" => "the accesses to one location are as if they came one after the other",
        "Atomicity" => "nothing is written between the read and the write of a read-modify-write",
        "SingleCopy" => "a wide read sees no half of a write",
        "SeqCst" => "seq_cst operations have one order that agrees with what happens before what",
        "NoThinAir" => "no value comes out of thin air",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::models::Models;
    use super::*;
    use moire_source::lower::lower;
    use moire_source::text::{parse, print};

    fn why(text: &str, end: &str) -> Forbidden {
        let source = parse(text).expect("a program");
        let lowered = lower(&source).expect("lowers");
        let so = |e: &FinalState| {
            lowered.state(&source, &e.regs, &e.memory).is_some_and(|s| s.shown(&source) == end)
        };
        let text = print(&source);
        let line = |n: u32| text.lines().nth(n as usize - 1).map(str::to_owned);
        let model = Models::default().get("rc11-scoped").expect("loads");
        forbidden(&lowered.program, &model, &Limits::default(), &so, &line)
    }

    #[test]
    fn message_passing_is_told_as_a_circle_of_four_steps() {
        let text = "source \"mp\"\n.global .b32 x, y;\nP0 (cta 0) { store.relaxed.gpu x, 1; exch.release.gpu y, 1; }\n\
                    P1 (cta 1) { r0 = load.acquire.gpu y; if r0 == 1 { r1 = load.relaxed.gpu x; } }\n";
        let why = why(text, "P1:r0=1 P1:r1=0 [x]=1 [y]=1");
        assert_eq!(why.rules, [["CoherenceFR"]]);
        let mut steps = why.cycle.clone();
        steps.sort();
        let expected = [
            "P0 `exch.release.gpu y, 1` writes 1 to y, which P1 `r0 = load.acquire.gpu y` reads",
            "P0 `store.relaxed.gpu x, 1` stands before P0 `exch.release.gpu y, 1` in its thread",
            "P1 `r0 = load.acquire.gpu y` stands before P1 `r1 = load.relaxed.gpu x` in its thread",
            "P1 `r1 = load.relaxed.gpu x` reads 0 from x, which is older than what P0 `store.relaxed.gpu x, 1` writes",
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn what_the_model_allows_is_forbidden_by_every_check_and_what_is_no_order_by_none() {
        let text = "source \"mp\"\n.global .b32 x, y;\nP0 (cta 0) { store.relaxed.gpu x, 1; store.relaxed.gpu y, 1; }\n\
                    P1 (cta 1) { r0 = load.relaxed.gpu y; r1 = load.relaxed.gpu x; }\n";
        assert!(why(text, "P1:r0=1 P1:r1=0 [x]=1 [y]=1").rules.len() > 5);
        assert_eq!(why(text, "P1:r0=7 P1:r1=0 [x]=1 [y]=1"), Forbidden::default());
    }

    #[test]
    fn an_update_that_is_lost_breaks_atomicity() {
        let text = "source \"two\"\n.global .b32 x;\nP0 (cta 0) { add.relaxed.gpu x, 1; }\nP1 (cta 1) { add.relaxed.gpu x, 1; }\n";
        let why = why(text, "[x]=1");
        // Without an order of the writes, nothing stands between the halves of an update.
        assert_eq!(why.rules, [["CoherenceTotal"], ["Atomicity"]]);
        assert_eq!(why.cycle.len(), 2, "{why:?}");
    }

    #[test]
    fn every_check_of_a_model_of_sources_has_words() {
        for name in ["rc11-scoped", "tile-ir"] {
            let model = Models::default().get(name).expect("loads");
            for check in model.checks().iter().filter(|c| !c.flag) {
                assert!(rule(&check.name).is_some(), "{name}: {}", check.name);
            }
        }
    }
}

//! The answer of one engine to one program, in a form in which two engines can be compared.

use super::abstention::Abstention;
use crate::difference::shown;
use crate::job::EngineReport;
use moire_cat::Model;
use moire_execution::leaf::{Witness, WitnessEvent, observed_registers};
use moire_execution::{leaf::LeafFacts, leaf::LeafKind, leaf::Outcome};
use moire_explore::judge::{Verdict, flag_verdict};
use moire_explore::planted::Planted;
use moire_explore::search::explore_planted;
use moire_explore::search::{Bound, LeafView};
use moire_explore::{Limits, explore};
use moire_naive::NaiveLimits;
use moire_naive::{Leaves, leaves as naive_leaves};
use moire_program::canon::spell::hash;
use moire_program::ir::{Program, ThreadId};
use moire_program::lanes::{Reduced, reduced};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Most executions of one answer. A campaign compares many small programs rather than a few large ones.
const MAX_LEAVES: u64 = 4_000;
/// Most consistency checks of one answer: some seconds at worst. About one program in a hundred reaches it.
const MAX_CHECKS: u64 = 100_000;
/// Most decisions of one answer. Programs with many unsatisfiable spin iterations take far more decisions than checks.
const MAX_STEPS: u64 = 400_000;
/// Most candidates that the naive enumerator judges for one item.
const MAX_CANDIDATES: u64 = 2_000;

/// The verdict word for a program without a fault.
pub(super) const CLEAN: &str = "clean";

/// All executions (leaves), and what follows from them.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) leaves: Leaves,
    pub(super) outcomes: BTreeSet<Outcome>,
    /// The model gives the program no meaning: everything is allowed.
    pub(super) undefined: bool,
    /// Some executions were cut at the loop bound.
    pub(super) cut: bool,
}

impl Answer {
    fn new(seen: &Seen<'_>, leaves: Leaves, cut: bool) -> Self {
        let outcomes = leaves.values().flat_map(|l| l.outcomes.iter().map(|o| seen.outcome(o))).collect();
        let undefined = leaves.values().flat_map(|l| &l.flags).any(|f| flag_verdict(f) == Verdict::Undefined);
        Answer { leaves, outcomes, undefined, cut }
    }

    /// Whether some execution waits for ever.
    pub(super) fn hangs(&self) -> bool {
        self.leaves.values().any(|l| l.kind == LeafKind::Blocked)
    }

    /// Whether some execution uses an object outside its life, or breaks a documented precondition.
    pub(super) fn misuses(&self) -> bool {
        let wrong = [Verdict::Lifetime, Verdict::Protocol];
        self.leaves.values().flat_map(|l| &l.flags).any(|f| wrong.contains(&flag_verdict(f)))
    }

    /// The words of all verdicts, joined by `+`.
    pub(super) fn verdict(&self) -> String {
        let mut words = BTreeSet::new();
        if self.hangs() {
            words.insert("hang");
        }
        let raised = self.leaves.values().flat_map(|l| &l.flags).map(|f| flag_verdict(f).word());
        words.extend(raised.filter(|w| *w != "race" || !self.undefined));
        if self.cut {
            words.insert("bounded");
        }
        if words.is_empty() {
            words.insert(if self.leaves.is_empty() { Verdict::Undefined.word() } else { CLEAN });
        }
        words.into_iter().collect::<Vec<_>>().join("+")
    }

    /// The row of the item's report. Hashes are over the canonical order of keys and outcomes.
    pub(super) fn report(&self, engine: &str) -> EngineReport {
        EngineReport {
            engine: engine.into(),
            verdict: self.verdict(),
            outcomes: hash(&self.outcomes),
            leaves: hash(&self.leaves.keys().collect::<Vec<_>>()),
            executions: self.leaves.len() as u64,
        }
    }
}

/// What the explorer is given for a program: few threads for each warp. Outcomes are those of the text.
struct Seen<'p> {
    few: Reduced<'p>,
    /// The position of each observable register of the text among those of the few.
    registers: Vec<Option<usize>>,
}

impl<'p> Seen<'p> {
    fn of(program: &'p Program) -> Self {
        let few = reduced(program);
        let there = observed_registers(&few.program);
        let own =
            observed_registers(program).into_iter().map(|(t, r)| (ThreadId::at(few.first[t.index()]), r));
        let registers = own.map(|own| there.iter().position(|r| *r == own)).collect();
        Seen { few, registers }
    }

    /// An outcome in the registers of the text: of a warp those of its first lane.
    fn outcome(&self, of: &Outcome) -> Outcome {
        let value = |at: &Option<usize>| at.map_or(0, |at| of.regs[at]);
        Outcome { regs: self.registers.iter().map(value).collect(), memory: of.memory.clone() }
    }
}

/// The bounds of one answer of the explorer.
pub(super) fn limits() -> Limits {
    Limits { leaves: MAX_LEAVES, checks: MAX_CHECKS, steps: MAX_STEPS, ..Limits::default() }
}

/// The explorer's answer.
pub(super) fn explored(program: &Program, model: &Model) -> Result<Answer, Abstention> {
    explored_planted(program, model, None)
}

/// [`explored`], possibly by an explorer with a planted bug.
pub(super) fn explored_planted(
    program: &Program,
    model: &Model,
    bug: Option<Planted>,
) -> Result<Answer, Abstention> {
    within(program, model, bug, &limits())
}

/// [`explored_planted`] under limits of the caller's choice.
pub(super) fn within(
    program: &Program,
    model: &Model,
    bug: Option<Planted>,
    limits: &Limits,
) -> Result<Answer, Abstention> {
    let (mut leaves, seen) = (Leaves::new(), Seen::of(program));
    let summary = explore_planted(&seen.few.program, model, bug, limits, &mut |leaf: &mut dyn LeafView| {
        let facts: LeafFacts = leaf.facts();
        leaves.insert(facts.key.clone(), facts);
        ControlFlow::Continue(())
    });
    match summary {
        Err(abstain) => Err(abstain.into()),
        Ok(s) => match s.bounded {
            None => Ok(Answer::new(&seen, leaves, false)),
            Some(Bound::Loop) => Ok(Answer::new(&seen, leaves, true)),
            Some(bound) => Err(Abstention::Bounded(bound)),
        },
    }
}

/// The first execution the explorer finds that is not clean, or all of them where there is none.
pub(super) fn first_wrong(program: &Program, model: &Model) -> Result<Answer, Abstention> {
    let (limits, seen) = (limits(), Seen::of(program));
    let mut all = Leaves::new();
    let mut wrong = None;
    let summary = explore(&seen.few.program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        let one = Answer::new(&seen, Leaves::from([(facts.key.clone(), facts.clone())]), false);
        if one.verdict() != CLEAN {
            wrong = Some(one);
            return ControlFlow::Break(());
        }
        all.insert(facts.key.clone(), facts);
        ControlFlow::Continue(())
    });
    match (wrong, summary) {
        (Some(wrong), _) => Ok(wrong),
        (None, Err(abstain)) => Err(abstain.into()),
        (None, Ok(s)) => match s.bounded {
            None => Ok(Answer::new(&seen, all, false)),
            Some(Bound::Loop) => Ok(Answer::new(&seen, all, true)),
            Some(bound) => Err(Abstention::Bounded(bound)),
        },
    }
}

/// The naive enumerator's answer.
pub(super) fn enumerated(program: &Program, model: &Model) -> Result<Answer, Abstention> {
    let limits = NaiveLimits { candidates: MAX_CANDIDATES, ..NaiveLimits::default() };
    let seen = Seen::of(program);
    let (leaves, summary) = naive_leaves(&seen.few.program, model, &limits)?;
    Ok(Answer::new(&seen, leaves, summary.cut))
}

/// The first execution under `model` that ends in `outcome`, as JSON: both in words, events and edges.
pub(super) fn witness(program: &Program, spec: &str, model: &Model, outcome: &Outcome) -> Option<String> {
    let (limits, seen) = (limits(), Seen::of(program));
    let mut found = None;
    let _ = explore(&seen.few.program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        if leaf.facts().outcomes.iter().any(|o| seen.outcome(o) == *outcome) {
            found = Some(leaf.witness());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let found = found?;
    let (events, edges) = graph(&seen.few.program, &found);
    let outcome = shown(program, outcome);
    Some(serde_json::json!({"model": spec, "outcome": outcome, "events": events, "edges": edges}).to_string())
}

/// Events, and edges between them: those of the witness, program order from each event to the next, and from-reads.
fn graph(program: &Program, witness: &Witness) -> (Vec<serde_json::Value>, Vec<serde_json::Value>) {
    let event = |(i, e): (usize, &WitnessEvent)| {
        let thread = program.threads.get(e.event.thread as usize).map_or("init", |t| t.name.as_str());
        let label = e.location.as_ref().map_or(e.kind.clone(), |l| format!("{} {l}", e.kind));
        serde_json::json!({"id": i, "thread": thread, "index": e.event.index, "label": label, "value": e.value})
    };
    let edge =
        |(kind, from, to): &(String, usize, usize)| serde_json::json!({"kind": kind, "from": from, "to": to});
    let edges = witness.edges.iter().chain(&derived(witness)).map(edge).collect();
    (witness.events.iter().enumerate().map(event).collect(), edges)
}

/// Program order from each event to the next, and from-reads.
pub(super) fn derived(witness: &Witness) -> Vec<(String, usize, usize)> {
    let all = &witness.events;
    let mut edges = Vec::new();
    for (to, event) in all.iter().enumerate().filter(|(_, e)| e.kind != "init") {
        let before = |e: &WitnessEvent| {
            e.kind != "init" && e.event.thread == event.event.thread && e.event.index < event.event.index
        };
        let last = (0..all.len()).filter(|i| before(&all[*i])).max_by_key(|i| all[*i].event.index);
        edges.extend(last.map(|from| ("po".to_owned(), from, to)));
    }
    let of = |kind: &str| witness.edges.iter().filter(|e| e.0 == kind).collect::<Vec<_>>();
    for (_, write, read) in of("rf") {
        let initial = all[*write].kind == "init";
        let later = |w: usize| {
            let same = all[w].kind.ends_with('W') && all[w].location == all[*read].location;
            let own = of("rmw").iter().any(|(_, a, b)| a == read && *b == w);
            !own && ((initial && same) || of("co").iter().any(|(_, a, b)| a == write && *b == w))
        };
        edges.extend((0..all.len()).filter(|w| later(*w)).map(|w| ("fr".to_owned(), *read, w)));
    }
    edges
}

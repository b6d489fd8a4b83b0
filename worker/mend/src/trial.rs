//! One exploration of an edited program, and what it says: clean, fewer things wrong, or neither.

use crate::line::{follows_text, has_barrier};
use crate::order::Orders;
use crate::pair::At;
use crate::{Budget, Models, Planted, Step};
use moire_execution::leaf::{Finding, Place, Stall};
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, Verdict, judge};
use moire_program::clusters;
use moire_program::edit::{Edit, apply};
use moire_program::ir::{Instr, Op, Program};
use moire_program::lanes::reduced;
use moire_program::text::{Severity, instruction};
use moire_program::validate::{RuleKind, rule, validate};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Words of instructions that name an order.
const ORDERS: [&str; 7] = ["weak", "relaxed", "acquire", "release", "acq_rel", "sc", "read"];
/// Words that name a scope.
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// The flag of a finding of one run that is a hang.
pub(crate) const HANG: &str = "hang";
/// Decisions that one consistency check may take.
const STEPS: u64 = 1_000;

/// What is wrong with a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Not explored to the end.
    pub(crate) open: bool,
    /// Some execution ends blocked.
    pub(crate) hang: bool,
    /// Threads that wait at mbarriers for ever.
    pub(crate) stalls: Vec<Stall>,
    /// Names of conditions that do not hold.
    pub(crate) conditions: BTreeSet<String>,
    /// Flags, and the instructions that they name.
    pub(crate) findings: BTreeSet<Finding>,
    /// Nothing is wrong.
    pub(crate) clean: bool,
}

impl Standing {
    pub(crate) fn of(judgement: Judgement) -> Self {
        let open = |v: &Verdict| matches!(v, Verdict::Bounded(_) | Verdict::Abstained(_));
        let conditions = judgement.verdicts.iter().filter_map(|v| match v {
            Verdict::Condition(name) => Some(name.clone()),
            _ => None,
        });
        Standing {
            open: judgement.verdicts.iter().any(open) || judgement.summary.executions().is_none(),
            hang: judgement.hang.is_some(),
            conditions: conditions.collect(),
            clean: judgement.is_clean(),
            stalls: judgement.stalls,
            findings: judgement.findings,
        }
    }

    /// What one run that stands for all finds.
    fn found(findings: BTreeSet<Finding>) -> Self {
        let hang = findings.iter().any(|f| f.flag == HANG);
        Standing { hang, clean: findings.is_empty(), findings, ..Standing::default() }
    }

    /// The same about the threads of the text, where several explored ones stand for a warp.
    fn in_text(self, of: &[usize]) -> Self {
        let mut stalls = self.stalls;
        stalls.iter_mut().for_each(|stall| stall.thread = of[stall.thread]);
        stalls.dedup();
        Standing { stalls, findings: self.findings.iter().map(|f| finding_of(of, f)).collect(), ..self }
    }

    /// Whether less is wrong than before, and nothing else. Without a hang threads get further, and more may be found.
    pub(crate) fn better(&self, before: &Standing) -> bool {
        let freed = before.hang && !self.hang;
        !self.open
            && self.hang <= before.hang
            && self.conditions.is_subset(&before.conditions)
            && (freed || self.findings.is_subset(&before.findings))
            && (freed || self.findings != before.findings || self.conditions != before.conditions)
    }
}

/// A finding about the threads of the text: `of` says for each explored thread which it is ([`moire_program::lanes`]).
pub fn finding_of(of: &[usize], finding: &Finding) -> Finding {
    let thread = |p: &Place| u16::try_from(of[usize::from(p.thread)]).unwrap_or(p.thread);
    let mut places: Vec<Place> = finding.places.iter().map(|p| Place { thread: thread(p), ..*p }).collect();
    places.sort();
    Finding { flag: finding.flag.clone(), places }
}

/// A program under trial: its copy whose line numbers are positions, and the rest of the budget.
pub(crate) struct Bench<'a> {
    /// The program as it was read.
    pub(crate) original: &'a Program,
    /// The same, where the line of each instruction is its position, counted from 1.
    pub(crate) program: Program,
    pub(crate) planted: Option<Planted>,
    models: Models<'a>,
    limits: Limits,
    left: Budget,
    total: u32,
    more: &'a dyn Fn() -> bool,
    orders: OnceCell<Option<Orders>>,
    /// The text names clusters, or uses something of them. Otherwise its CTAs are in none.
    pub(crate) clusters: bool,
    /// The program has more executions than are explored: the engine that needs one run is asked.
    pub(crate) wide: bool,
    /// A trial was refused for want of budget.
    pub(crate) spent: bool,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        original: &'a Program,
        models: Models<'a>,
        limits: &Limits,
        left: Budget,
        planted: Option<Planted>,
        more: &'a dyn Fn() -> bool,
    ) -> Self {
        let program = numbered(original);
        let (limits, total) = (*limits, left.explorations);
        let clusters = clusters::named(original) || clusters::first_use(original).is_some();
        Bench {
            original,
            program,
            planted,
            models,
            limits,
            left,
            total,
            more,
            orders: OnceCell::new(),
            clusters,
            wide: false,
            spent: false,
        }
    }

    /// Explorations so far.
    pub(crate) fn explorations(&self) -> u32 {
        self.total - self.left.explorations
    }

    /// The edited program. None if the edits do not fit, or the result is no legal program.
    fn edited(&self, steps: &[Step]) -> Option<Program> {
        let edits: Vec<Edit> = steps.concat();
        let program = apply(&self.program, &edits)?;
        if !self.clusters && clusters::first_use(&program).is_some() {
            return None;
        }
        (illegal(&program) <= illegal(&self.program)).then_some(program)
    }

    /// What is wrong with the edited program. None if it is no program, or the budget is spent.
    pub(crate) fn standing(&mut self, steps: &[Step]) -> Option<Standing> {
        let program = self.edited(steps)?;
        if !self.may() {
            return None;
        }
        let few = reduced(&program);
        if self.wide {
            self.took(1);
            let found = self.models.second.and_then(|second| second(&few.program));
            return found.map(|found| Standing::found(found).in_text(&few.of));
        }
        let mut out = Standing::of(self.explored(&few.program)).in_text(&few.of);
        if self.planted == Some(Planted::IgnoresHangs) && out.hang && out.findings.is_empty() {
            out = Standing { clean: out.conditions.is_empty() && !out.open, hang: false, ..out };
        }
        Some(out)
    }

    fn explored(&mut self, program: &Program) -> Judgement {
        let limits = self.limits();
        let quiet = Questions { witnesses: false, about: About::All };
        let judgement = judge(program, self.models.model, &limits, quiet);
        self.took(judgement.summary.checks);
        judgement
    }

    /// Whether the explorer finds something, as far as it comes, in an edited program that one run found clean.
    pub(crate) fn is_refuted(&mut self, steps: &[Step]) -> bool {
        let Some(program) = self.edited(steps) else { return true };
        let judgement = self.explored(&reduced(&program).program);
        !judgement.findings.is_empty() || judgement.hang.is_some()
    }

    /// Whether the edited program runs its accesses in the order that is asked for.
    pub(crate) fn keeps_order(&mut self, steps: &[Step]) -> bool {
        if self.planted == Some(Planted::AnyDirection) {
            return true;
        }
        // Without a barrier there is no direction, but outcomes may go.
        let as_text = follows_text(&self.program, steps);
        if self.wide || as_text && steps.iter().any(|step| has_barrier(step)) {
            return as_text;
        }
        self.compare(steps, Orders::keeps)
    }

    /// Compares the order of the program with that of the edited one.
    fn compare(&mut self, steps: &[Step], holds: fn(&Orders, &Orders, &Program) -> bool) -> bool {
        if self.orders.get().is_none() {
            let program = self.program.clone();
            let own = self.order_of(&program);
            let _ = self.orders.set(own);
        }
        let Some(program) = self.edited(steps) else { return false };
        let Some(after) = self.order_of(&program) else { return false };
        let before = self.orders.get().and_then(Option::as_ref);
        before.is_some_and(|before| holds(before, &after, &self.program))
    }

    fn order_of(&mut self, program: &Program) -> Option<Orders> {
        if !self.may() {
            return None;
        }
        let limits = self.limits();
        let (orders, checks) = Orders::of(program, &self.program, self.models.order, &limits);
        self.took(checks);
        orders
    }

    fn limits(&self) -> Limits {
        let checks = self.limits.checks.min(self.left.checks).min(self.left.each);
        Limits { checks, steps: self.limits.steps.min(checks.saturating_mul(STEPS)), ..self.limits }
    }

    /// Whether the edited program forces every order that was forced, and ends with no new values.
    pub(crate) fn loosens(&mut self, steps: &[Step]) -> bool {
        self.compare(steps, Orders::loosens)
    }

    fn may(&mut self) -> bool {
        let may = self.left.explorations > 0 && self.left.checks > 0 && (self.more)();
        self.spent |= !may;
        may
    }

    fn took(&mut self, checks: u64) {
        self.left.explorations = self.left.explorations.saturating_sub(1);
        self.left.checks = self.left.checks.saturating_sub(checks.max(1));
    }

    /// What an instruction does after these edits.
    pub(crate) fn op<'s>(&'s self, steps: &'s [Step], thread: usize, pc: usize) -> Option<&'s Op> {
        let replaced = steps.iter().flatten().rev().find_map(|e| match e {
            Edit::Replace { thread: t, at, op } if (*t, *at) == (thread, pc) => Some(op),
            _ => None,
        });
        replaced.or_else(|| Some(&self.program.threads.get(thread)?.body.get(pc)?.op))
    }

    /// Where an instruction stands in the text.
    pub(crate) fn line_of(&self, at: At) -> (u32, u32) {
        let instr = &self.original.threads[at.thread].body[at.pc];
        (instr.line, instr.column)
    }

    /// A finding as the text shows it: lines and columns, whichever threads run them.
    pub(crate) fn in_lines(&self, finding: &Finding) -> (String, BTreeSet<(u32, u32)>) {
        let place = |p: &Place| {
            let body = &self.original.threads.get(usize::from(p.thread))?.body;
            let instr = body.get(usize::try_from(p.line).ok()?.checked_sub(1)?)?;
            Some((instr.line, instr.column))
        };
        (finding.flag.clone(), finding.places.iter().filter_map(place).collect())
    }

    /// Whether less is wrong than before, and nothing else. One run keeps some of many findings only, so lines are compared.
    pub(crate) fn is_better(&self, now: &Standing, before: &Standing) -> bool {
        if !self.wide {
            return now.better(before);
        }
        let lines = |s: &Standing| s.findings.iter().map(|f| self.in_lines(f)).collect::<BTreeSet<_>>();
        let (now, before) = (lines(now), lines(before));
        now != before && now.is_subset(&before)
    }

    /// A finding of a trial with the lines of the text.
    pub(crate) fn with_lines(&self, finding: &Finding) -> Finding {
        let line = |p: &Place| -> u32 {
            let at = usize::try_from(p.line).unwrap_or(0).checked_sub(1);
            let body = self.original.threads.get(usize::from(p.thread)).map(|t| &t.body);
            at.and_then(|at| body?.get(at)).map_or(0, |i| i.line)
        };
        let mut places: Vec<Place> =
            finding.places.iter().map(|p| Place { thread: p.thread, line: line(p) }).collect();
        places.sort();
        Finding { flag: finding.flag.clone(), places }
    }

    /// Whether a weaker form of an instruction gives up an order or a scope that `here`, which is there, has as well.
    pub(crate) fn below(&self, thread: usize, (here, now, form): (&Op, &Op, &Op)) -> bool {
        let words = |op: &Op, known: &[&str]| -> Vec<String> {
            let text = instruction(&self.program, &self.program.threads[thread], &Instr::new(op.clone()));
            let name = text.split_whitespace().next().unwrap_or_default().to_owned();
            name.split('.').filter(|w| known.contains(w)).map(str::to_owned).collect()
        };
        [ORDERS.as_slice(), SCOPES.as_slice()].iter().any(|known| {
            let (here, now, form) = (words(here, known), words(now, known), words(form, known));
            now != form && here == now
        })
    }

    /// The edited program with the lines of the text.
    pub(crate) fn finished(&self, steps: &[Step]) -> Option<Program> {
        let edits: Vec<Edit> = steps.concat();
        apply(self.original, &edits)
    }
}

/// The program where the line of each instruction is its position, counted from 1.
pub(crate) fn numbered(program: &Program) -> Program {
    let mut out = program.clone();
    for thread in &mut out.threads {
        for (pc, instr) in thread.body.iter_mut().enumerate() {
            instr.line = u32::try_from(pc + 1).unwrap_or(u32::MAX);
            instr.column = 0;
        }
    }
    out
}

/// How many remarks of NVIDIA's assembler a program gets.
fn illegal(program: &Program) -> usize {
    let refused = |name: &str| rule(name).is_some_and(|r| r.kind != RuleKind::Lint);
    let remarks = validate(program);
    remarks.iter().filter(|d| d.severity == Severity::Error && d.rule.is_some_and(refused)).count()
}

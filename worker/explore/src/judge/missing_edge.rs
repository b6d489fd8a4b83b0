//! The missing edge of a race: the addition that orders its two instructions, found by trying one after another.
//!
//! A trial puts an instruction (a wait, a fence, a barrier) into the program, or strengthens one that is there, and judges
//! again. It counts when the pair is no longer reported and no new hang appears. Everything tried is one
//! addition, two where a fence has two halves.

use crate::judge::{About, Judgement, Questions, Verdict, judge};
use crate::search::Limits;
use moire_cat::Model;
use moire_execution::leaf::{Finding, Place};
use moire_program::ir::*;

/// Most programs judged for one finding.
const MAX_TRIALS: usize = 120;
/// Consistency checks of the program itself beyond which nothing is tried.
const MAX_CHECKS: u64 = 20_000;

/// Consistency checks of all trials together, by those of the program itself, and at least.
const CHECK_BUDGET: (u64, u64) = (20, 5_000);

/// Kinds of addition.
const WAYS: usize = 8;

/// An addition that orders a racing pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// `wait`, `commit`, `fence`, `proxy fence`, `phase`, `strength`, `scope` or `barrier`.
    pub edge: &'static str,
    /// What to add and where, in words with lines.
    pub text: String,
}

/// An instruction of a thread, by position.
#[derive(Clone, Copy)]
struct At {
    thread: ThreadId,
    pc: usize,
}

struct Repair<'a> {
    program: &'a Program,
    model: &'a Model,
    limits: Limits,
    finding: &'a Finding,
    hangs: bool,
    left: usize,
    /// Checks that trials may still take.
    checks: u64,
    /// Whether the caller still waits.
    more: &'a dyn Fn() -> bool,
}

/// The addition a race lacks; `None` where no single one helps, the program is too large to try, or `more`, which is asked
/// before each trial, says no.
pub fn missing(
    program: &Program,
    model: &Model,
    judgement: &Judgement,
    finding: &Finding,
    more: &dyn Fn() -> bool,
) -> Option<Missing> {
    if !finding.flag.ends_with("-race") || judgement.summary.checks > MAX_CHECKS {
        return None;
    }
    let leaves = 4 * (judgement.summary.complete + judgement.summary.blocked) + 100;
    let limits = Limits { leaves, ..Limits::default() };
    let hangs = judgement.verdicts.contains(&Verdict::Hang);
    let checks = CHECK_BUDGET.0 * judgement.summary.checks + CHECK_BUDGET.1;
    let mut search = Repair { program, model, limits, finding, hangs, left: MAX_TRIALS, checks, more };
    let (first, last) = (finding.places.first()?, finding.places.last()?);
    let (a, b) = (search.find(first)?, search.find(last)?);
    let turned = a.thread != b.thread;
    let mut orders = vec![(a, b)];
    orders.extend(turned.then_some((b, a)));
    for way in 0..WAYS {
        for (x, y) in &orders {
            if let Some(found) = search.way(way, *x, *y) {
                return Some(found);
            }
        }
    }
    None
}

/// Puts instructions in front of a position.
fn insert(program: &mut Program, at: At, ops: &[Op]) {
    let thread = &mut program.threads[at.thread.index()];
    let shift = |to: usize| if to >= at.pc { to + ops.len() } else { to };
    for instr in &mut thread.body {
        if let Op::Bra { target } = &mut instr.op {
            *target = shift(*target);
        }
    }
    thread.labels.iter_mut().for_each(|l| l.at = shift(l.at));
    thread.body.splice(at.pc..at.pc, ops.iter().cloned().map(Instr::new));
}

impl Repair<'_> {
    /// Likely additions first.
    fn way(&mut self, way: usize, x: At, y: At) -> Option<Missing> {
        match way {
            0 => self.completion(x, y),
            1 => self.fences(x, y),
            2 => self.proxy_fence(x, y),
            3 => self.commit(x, y),
            4 => self.phase(x, y),
            5 => self.stronger(x, y),
            6 => self.wait(x, y),
            _ => self.barrier(x, y),
        }
    }

    fn find(&self, place: &Place) -> Option<At> {
        let thread = ThreadId(place.thread);
        let pc = self.program.threads.get(thread.index())?.body.iter().position(|i| i.line == place.line)?;
        Some(At { thread, pc })
    }

    fn op(&self, at: At) -> &Op {
        &self.program.threads[at.thread.index()].body[at.pc].op
    }

    fn place(&self, at: At) -> &Placement {
        &self.program.threads[at.thread.index()].place
    }

    /// Whether the pair is ordered in this program, and no thread waits for ever that did not.
    fn helps(&mut self, program: &Program) -> bool {
        if self.left == 0 || self.checks == 0 || !(self.more)() {
            return false;
        }
        self.left -= 1;
        let quiet = Questions { witnesses: false, about: About::All };
        let limits = Limits { checks: self.checks, ..self.limits };
        let now = judge(program, self.model, &limits, quiet);
        self.checks = self.checks.saturating_sub(now.summary.checks);
        let open = |v: &Verdict| {
            matches!(v, Verdict::Abstained(_) | Verdict::Bounded(_)) || (*v == Verdict::Hang && !self.hangs)
        };
        let same = |f: &Finding| f.places == self.finding.places && f.flag.ends_with("-race");
        !now.verdicts.iter().any(open) && !now.findings.iter().any(same)
    }

    /// Positions of a thread behind `x`, or in front of `y`, up to the other one where they share the thread.
    fn behind(&self, x: At, y: At) -> Vec<usize> {
        let end = if x.thread == y.thread { y.pc } else { self.program.threads[x.thread.index()].body.len() };
        (x.pc + 1..=end).collect()
    }

    fn in_front(&self, x: At, y: At) -> Vec<usize> {
        let start = if x.thread == y.thread { x.pc + 1 } else { 0 };
        (start..=y.pc).rev().collect()
    }

    /// The lines around positions that all do.
    fn between(&self, thread: ThreadId, positions: &[usize]) -> String {
        let body = &self.program.threads[thread.index()].body;
        let (first, last) = (positions.iter().min().copied(), positions.iter().max().copied());
        let line = |pc: Option<usize>| pc.and_then(|pc| body.get(pc)).map(|i| i.line);
        match (line(first.and_then(|p| p.checked_sub(1))), line(last)) {
            (Some(a), Some(b)) => format!("between line {a} and line {b}"),
            (Some(a), None) => format!("after line {a}"),
            (None, Some(b)) => format!("before line {b}"),
            (None, None) => "somewhere".to_owned(),
        }
    }

    /// One instruction at the first of these positions that helps and the ones next to it that do too.
    fn single(&mut self, thread: ThreadId, positions: &[usize], op: &Op) -> Option<String> {
        let mut good = Vec::new();
        for pc in positions {
            let mut program = self.program.clone();
            insert(&mut program, At { thread, pc: *pc }, std::slice::from_ref(op));
            if self.helps(&program) {
                good.push(*pc);
            } else if !good.is_empty() {
                break;
            }
        }
        (!good.is_empty()).then(|| self.between(thread, &good))
    }

    /// `wait::ld`, `wait::st`.
    fn completion(&mut self, x: At, y: At) -> Option<Missing> {
        let (op, name) = match self.op(x) {
            Op::Tcgen05(Tcgen05::Load(_)) => (Tcgen05::WaitLoad, "tcgen05.wait::ld"),
            Op::Tcgen05(Tcgen05::Store(_)) => (Tcgen05::WaitStore, "tcgen05.wait::st"),
            _ => return None,
        };
        let text = self.single(x.thread, &self.behind(x, y), &Op::Tcgen05(op))?;
        Some(Missing { edge: "wait", text: format!("{name} {text}") })
    }

    fn fences(&mut self, x: At, y: At) -> Option<Missing> {
        let tensor = |at: At| matches!(self.op(at), Op::Tcgen05(_));
        if !tensor(x) || !tensor(y) {
            return None;
        }
        let (before, after) = (Op::Tcgen05(Tcgen05::FenceBefore), Op::Tcgen05(Tcgen05::FenceAfter));
        let made = |text: String| Some(Missing { edge: "fence", text });
        if let Some(text) = self.single(y.thread, &self.in_front(x, y), &after) {
            return made(format!("tcgen05.fence::after_thread_sync {text}"));
        }
        if let Some(text) = self.single(x.thread, &self.behind(x, y), &before) {
            return made(format!("tcgen05.fence::before_thread_sync {text}"));
        }
        // Both: the second as near as it gets, the first wherever it helps.
        let positions = self.behind(x, y);
        let found = positions.into_iter().find(|pc| {
            let mut program = self.program.clone();
            let near = At { thread: y.thread, pc: y.pc };
            let (early, late) = ((At { thread: x.thread, pc: *pc }, &before), (near, &after));
            // The later position first, so that it does not move.
            let order = if x.thread == y.thread && *pc > y.pc { [early, late] } else { [late, early] };
            for (at, op) in order {
                insert(&mut program, at, std::slice::from_ref(op));
            }
            self.helps(&program)
        })?;
        let (first, second) = (self.between(x.thread, &[found]), self.between(y.thread, &[y.pc]));
        made(format!("tcgen05.fence::before_thread_sync {first}, tcgen05.fence::after_thread_sync {second}"))
    }

    fn proxy_fence(&mut self, x: At, y: At) -> Option<Missing> {
        let op = Op::ProxyFence(vec![ProxyFence::Of(Proxy::Async)]);
        let sides = [(x.thread, self.behind(x, y)), (y.thread, self.in_front(x, y))];
        let text = sides.into_iter().find_map(|(thread, positions)| self.single(thread, &positions, &op))?;
        Some(Missing { edge: "proxy fence", text: format!("fence.proxy.async {text}") })
    }

    /// A commit where a plain arrival is.
    fn commit(&mut self, x: At, y: At) -> Option<Missing> {
        let Op::Tcgen05(op) = self.op(x) else { return None };
        let group = op.group()?;
        for pc in self.behind(x, y) {
            let Some(instr) = self.program.threads[x.thread.index()].body.get(pc) else { continue };
            let Op::Mbarrier(Mbarrier { op: MbarrierOp::Arrive(_), addr, .. }) = &instr.op else { continue };
            let commit = Commit {
                group,
                reads_only: false,
                space: Space::SharedCluster,
                addr: *addr,
                multicast: None,
            };
            let line = instr.line;
            let mut program = self.program.clone();
            program.threads[x.thread.index()].body[pc].op = Op::Tcgen05(Tcgen05::Commit(commit));
            if self.helps(&program) {
                let text = format!("tcgen05.commit instead of the arrival of line {line}");
                return Some(Missing { edge: "commit", text });
            }
        }
        None
    }

    /// The other parity in a wait in front of `y`.
    fn phase(&mut self, x: At, y: At) -> Option<Missing> {
        for pc in self.in_front(x, y) {
            let mut program = self.program.clone();
            let instr = &mut program.threads[y.thread.index()].body[pc];
            let line = instr.line;
            let Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(wait), .. }) = &mut instr.op else { continue };
            let Operand::Imm(parity) = wait.phase else { continue };
            wait.phase = Operand::Imm(1 - parity);
            if self.helps(&program) {
                let text = format!("parity {} instead of {parity} in the wait of line {line}", 1 - parity);
                return Some(Missing { edge: "phase", text });
            }
        }
        None
    }

    /// Release and acquire, then scope cluster, in every mbarrier operation of both threads.
    fn stronger(&mut self, x: At, y: At) -> Option<Missing> {
        for (edge, scopes) in [("strength", false), ("scope", true)] {
            let mut program = self.program.clone();
            let mut lines = Vec::new();
            for thread in [x.thread, y.thread] {
                for instr in &mut program.threads[thread.index()].body {
                    let Op::Mbarrier(m) = &mut instr.op else { continue };
                    let (relaxed, scope) = match &mut m.op {
                        MbarrierOp::Arrive(a) => (&mut a.relaxed, &mut a.scope),
                        MbarrierOp::Wait(w) => (&mut w.relaxed, &mut w.scope),
                        _ => continue,
                    };
                    let changes = if scopes { *scope == Scope::Cta } else { *relaxed };
                    if changes {
                        (*relaxed, *scope) =
                            (*relaxed && scopes, if scopes { Scope::Cluster } else { *scope });
                        lines.push(instr.line.to_string());
                    }
                }
            }
            if !lines.is_empty() && self.helps(&program) {
                let what = if scopes { "scope .cluster" } else { "release and acquire" };
                return Some(Missing { edge, text: format!("{what} in lines {}", lines.join(", ")) });
            }
        }
        None
    }

    /// A wait for an mbarrier of the CTA in front of `y`.
    fn wait(&mut self, x: At, y: At) -> Option<Missing> {
        let mut objects: Vec<Address> = Vec::new();
        for thread in &self.program.threads {
            let near = thread.place.same_cta(self.place(y));
            for instr in thread.body.iter().filter(|_| near) {
                if let Op::Mbarrier(Mbarrier { op: MbarrierOp::Init { .. }, addr, .. }) = &instr.op
                    && matches!(addr.base, Operand::Address(_))
                    && !objects.contains(addr)
                {
                    objects.push(*addr);
                }
            }
        }
        for addr in objects {
            for parity in 0..2 {
                let mut with = self.program.clone();
                let thread = &mut with.threads[y.thread.index()];
                let dst = Reg(u16::try_from(thread.regs.len()).ok()?);
                thread.regs.push(RegDecl { name: "missing-wait".into(), init: RegInit::Value(0) });
                let wait = MbarrierWait {
                    suspends: true,
                    relaxed: false,
                    scope: Scope::Cluster,
                    dst,
                    phase: Operand::Imm(parity),
                    parity: true,
                    hint: None,
                };
                let ask =
                    Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(wait), space: Space::SharedCta, addr });
                let mut good = Vec::new();
                for pc in self.in_front(x, y) {
                    let mut program = with.clone();
                    insert(&mut program, At { thread: y.thread, pc }, &[ask.clone(), Op::Bra { target: pc }]);
                    program.threads[y.thread.index()].body[pc + 1].guard =
                        Some(Guard { reg: dst, negated: true });
                    if !self.helps(&program) {
                        break;
                    }
                    good.push(pc);
                }
                if !good.is_empty() {
                    let lines = self.between(y.thread, &good);
                    let text = format!("a wait for parity {parity} of {} {lines}", self.name(&addr));
                    return Some(Missing { edge: "wait", text });
                }
            }
        }
        None
    }

    fn name(&self, addr: &Address) -> String {
        let base = match addr.base {
            Operand::Address(s) => self.program.symbols[s.index()].name.as_str(),
            _ => "an mbarrier",
        };
        if addr.offset == 0 { format!("[{base}]") } else { format!("[{base}+{}]", addr.offset) }
    }

    /// A barrier of the two threads.
    fn barrier(&mut self, x: At, y: At) -> Option<Missing> {
        let (p, q) = (*self.place(x), *self.place(y));
        if x.thread == y.thread || !p.same_cta(&q) {
            return None;
        }
        let lanes = i128::from(p.lanes().count_ones() + q.lanes().count_ones());
        let op = Op::Bar {
            kind: BarKind::Sync,
            id: Operand::Imm(13),
            count: Some(Operand::Imm(lanes)),
            instance: None,
        };
        let mut program = self.program.clone();
        insert(&mut program, At { thread: x.thread, pc: x.pc + 1 }, std::slice::from_ref(&op));
        insert(&mut program, y, std::slice::from_ref(&op));
        self.helps(&program).then(|| {
            let (a, b) = (self.between(x.thread, &[x.pc + 1]), self.between(y.thread, &[y.pc]));
            Missing { edge: "barrier", text: format!("a barrier {a} and {b}") }
        })
    }
}

//! Running one warp ahead: both ways where only the exploration can tell, lane by lane where lanes differ.
//!
//! A register holds known values lane by lane, offsets from an address that only the exploration knows, or nothing known.
//! A known branch is taken, so a loop with a known count is unrolled. The answer of an mbarrier wait splits the run in
//! two; a word of shared memory splits it once for each value that some warp stores there, in rounds over all warps until
//! nothing new is stored. A run that comes back to a place with the same live registers becomes a jump, so a wait is a
//! short loop again however it was written. Lanes part at a branch on which they differ and meet at its post-dominator.
//! Masks become predicates on `%laneid`. Registers that reach no control, address or operand of synchronisation are not
//! evaluated.

use super::budget::Budget;
use super::flow::Flow;
use super::heap::{Content, Heap, Map};
use super::layout::{Mem, Touch};
use super::small::Copying;
use super::value::{LANES, Lanes, Val, Why};
use super::warpgroup::Classes;
use super::{Launch, Note, Refusal};
use crate::ptx::{Kernel, Statement, What};
use moire_program::ir::{Guard, Op, Reg};
use moire_program::limits::INSTRUCTIONS;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// Lanes that differ inside lanes that differ.
const DEPTH: usize = 64;

/// Which warp it is.
#[derive(Clone, Debug)]
pub(super) struct Here {
    pub(super) ctaid: [u32; 3],
    /// Number of the CTA in the grid.
    pub(super) cta: u32,
    /// Number of the cluster in the grid.
    pub(super) cluster: u32,
    /// Of the CTA in its cluster.
    pub(super) rank: u32,
    pub(super) warp: u32,
    /// Lanes there are.
    pub(super) lanes: u32,
    /// First CTA of the cluster, by rank.
    pub(super) peers: Vec<u32>,
}

impl Here {
    pub(super) fn new(launch: &Launch, ctaid: [u32; 3], warp: u32, count: u32) -> Self {
        let flat = |p: [u32; 3], of: [u32; 3]| p[0] + of[0] * (p[1] + of[1] * p[2]);
        let c = launch.cluster;
        let in_cluster = [ctaid[0] % c[0], ctaid[1] % c[1], ctaid[2] % c[2]];
        let clusters = [launch.grid[0] / c[0], launch.grid[1] / c[1], launch.grid[2] / c[2]];
        let home = [ctaid[0] / c[0], ctaid[1] / c[1], ctaid[2] / c[2]];
        let size = c.iter().product();
        let peers = (0..size).map(|r| {
            let at = [r % c[0], r / c[0] % c[1], r / c[0] / c[1]];
            flat([home[0] * c[0] + at[0], home[1] * c[1] + at[1], home[2] * c[2] + at[2]], launch.grid)
        });
        Here {
            ctaid,
            cta: flat(ctaid, launch.grid),
            cluster: flat(home, clusters),
            rank: flat(in_cluster, c),
            warp,
            lanes: if count >= 32 { u32::MAX } else { (1 << count) - 1 },
            peers: peers.collect(),
        }
    }
}

/// What is left of a warp.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// An instruction. An address that is a number is an index into `touches`.
    Op { op: Box<Op>, touches: Vec<Touch> },
    /// Data moved by ordinary accesses that nothing depends on.
    Data { write: bool, relaxed: bool, touch: Touch },
    /// A place.
    Label(u32),
    /// `bra`
    Jump(u32),
    /// `bra` when the register says so.
    Branch { reg: Reg, to: u32 },
    /// `bra` by the lanes that are not in the mask.
    Others { mask: u32, to: u32 },
    /// `exit`
    Exit,
    /// Copies of a word differ (`agree`): no engine has an answer.
    Differ(Touch),
}

/// An item with the lanes it is for (all that are there when none) and its line.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) item: Item,
    pub(super) mask: Option<u32>,
    pub(super) line: u32,
}

/// A store other warps may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) cta: u32,
    pub(super) at: u32,
    pub(super) bytes: u32,
    pub(super) content: Content,
    pub(super) line: u32,
}

/// What running a warp ahead gives.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) warp: u32,
    pub(super) items: Vec<Placed>,
    /// Registers of the items.
    pub(super) regs: usize,
    pub(super) stores: Vec<Stored>,
    pub(super) wanted: BTreeSet<(u32, u32, u32)>,
    pub(super) asked: BTreeSet<(Mem, u64, u64)>,
    pub(super) notes: BTreeSet<Note>,
    /// A line that loads a word nothing writes as far as is known.
    pub(super) starved: Option<u32>,
}

/// Where the lanes that are together stand, and what registers hold.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) pc: usize,
    pub(super) active: u32,
    pub(super) env: Vec<Val>,
}

/// How a statement goes on.
pub(super) enum Step {
    Next,
    /// The lanes are gone, or wait for a word nothing writes.
    End,
    /// One value for some registers a way; the register is true for the first.
    Ways(Vec<(Option<Reg>, State)>),
}

pub(super) struct Warp<'w> {
    pub(super) kernel: &'w Kernel,
    pub(super) flow: &'w Flow,
    pub(super) launch: &'w Launch,
    pub(super) map: &'w Map,
    pub(super) here: Here,
    pub(super) heap: &'w Heap,
    pub(super) out: Trace,
    pub(super) copying: Copying,
    pub(super) classes: Classes,
    /// Lanes that are together.
    together: u32,
    labels: u32,
    budget: &'w Budget,
    /// Registers of the items by the statement that writes them.
    slots: BTreeMap<(usize, usize, usize), u16>,
}

type Memo = BTreeMap<(usize, u64, u64), u32>;

impl<'w> Warp<'w> {
    pub(super) fn new(
        kernel: &'w Kernel,
        flow: &'w Flow,
        launch: &'w Launch,
        map: &'w Map,
        here: Here,
        heap: &'w Heap,
        budget: &'w Budget,
    ) -> Self {
        let warp = here.cta << 8 | here.warp;
        let (together, out) = (here.lanes, Trace { warp, ..Trace::default() });
        Warp {
            kernel,
            flow,
            launch,
            map,
            here,
            heap,
            out,
            copying: Copying::default(),
            classes: Classes::new(kernel),
            together,
            labels: 0,
            budget,
            slots: BTreeMap::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<Trace, Refusal> {
        self.budget.looks(self.kernel.types.len());
        let env = vec![Val::Unknown(Why::Unset); self.kernel.types.len()];
        let start = State { pc: 0, active: self.here.lanes, env };
        let end = self.kernel.body.len();
        self.region(start, end, 0)?;
        self.out.regs = self.slots.len();
        self.out.items = super::tidy::items(self.out.items);
        Ok(self.out)
    }

    pub(super) fn abstain<T>(&self, state: &State, what: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::Abstained { what: what.into(), line: self.line(state) })
    }

    pub(super) fn line(&self, state: &State) -> u32 {
        self.kernel.body.get(state.pc).map_or(0, |s| s.line)
    }

    pub(super) fn note(&mut self, line: u32, text: impl Into<String>) {
        self.out.notes.insert(Note { line, text: text.into() });
    }

    fn fresh(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// The register of the items that statement `pc` writes as its `n`th; another one while a value somewhere still
    /// depends on that one.
    pub(super) fn slot(&mut self, state: &State, n: usize) -> Reg {
        use super::value::Base;
        for version in 0.. {
            let next = u16::try_from(self.slots.len()).unwrap_or(u16::MAX);
            let slot = *self.slots.entry((state.pc, n, version)).or_insert(next);
            self.budget.looks(self.flow.live[(state.pc + 1).min(self.kernel.body.len())].len());
            let used = |v: &Val| matches!(v, Val::Based(Base::Register(r), _) if *r == slot);
            let next = (state.pc + 1).min(self.kernel.body.len());
            if !self.flow.live[next].iter().any(|r| used(&state.env[r.index()])) {
                return Reg(slot);
            }
        }
        Reg(u16::MAX)
    }

    pub(super) fn emit(&mut self, state: &State, mask: u32, item: Item) -> Result<(), Refusal> {
        if self.out.items.len() >= INSTRUCTIONS {
            let what =
                format!("a warp with more than {INSTRUCTIONS} instructions after its loops are unrolled");
            return Err(Refusal::Bounded(what));
        }
        self.budget.item(self.heap.size());
        let mask = self.relative(mask);
        self.out.items.push(Placed { item, mask, line: self.line(state) });
        Ok(())
    }

    /// A mask as items have it: none for all lanes that are together.
    pub(super) fn relative(&self, mask: u32) -> Option<u32> {
        (mask != self.together).then_some(mask)
    }

    /// What the rest of the run from here depends on.
    fn key(&self, state: &State, pc: usize) -> (usize, u64, u64) {
        let hash = |seed: u64| {
            let mut h = std::collections::hash_map::DefaultHasher::new();
            (seed, state.active).hash(&mut h);
            for r in &self.flow.live[pc] {
                state.env[r.index()].hash(&mut h);
            }
            h.finish()
        };
        (pc, hash(1), hash(2))
    }

    /// Runs until all lanes are at `stop`, or gone.
    fn region(&mut self, start: State, stop: usize, depth: usize) -> Result<Option<State>, Refusal> {
        if depth > DEPTH {
            return self.abstain(&start, "lanes of a warp that part ways too often");
        }
        let outside = std::mem::replace(&mut self.together, start.active);
        let mut memo = Memo::new();
        let end = self.fresh();
        let mut result: Option<State> = None;
        let mut work = vec![(None, start)];
        while let Some((label, mut state)) = work.pop() {
            self.together = state.active;
            if let Some(label) = label {
                self.emit(&state, self.together, Item::Label(label))?;
            }
            while let Some(arrived) = self.advance(&mut state, stop, &mut memo, &mut work, depth)? {
                if !arrived {
                    continue;
                }
                let same = result.as_ref().is_none_or(|r| self.key(r, stop) == self.key(&state, stop));
                if !same {
                    return self.abstain(
                        &state,
                        "lanes that part ways over something undecided and go on differently",
                    );
                }
                self.emit(&state, self.together, Item::Jump(end))?;
                result = Some(state);
                break;
            }
        }
        self.together = outside;
        if let Some(state) = &result {
            self.emit(state, outside, Item::Label(end))?;
        }
        Ok(result)
    }

    /// One statement; whether the state has arrived at `stop`, none when this way ends.
    fn advance(
        &mut self,
        state: &mut State,
        stop: usize,
        memo: &mut Memo,
        work: &mut Vec<(Option<u32>, State)>,
        depth: usize,
    ) -> Result<Option<bool>, Refusal> {
        if state.pc == stop {
            return Ok(Some(true));
        }
        let kernel = self.kernel;
        let Some(statement) = kernel.body.get(state.pc) else {
            self.emit(state, state.active, Item::Exit)?;
            return Ok(None);
        };
        self.budget.statement()?;
        if self.flow.target[state.pc] {
            self.budget.looks(2 * self.flow.live[state.pc].len());
            let key = self.key(state, state.pc);
            let known = memo.get(&key).copied();
            let label = known.unwrap_or_else(|| self.fresh());
            if known.is_some() {
                self.emit(state, self.together, Item::Jump(label))?;
                return Ok(None);
            }
            memo.insert(key, label);
            self.emit(state, self.together, Item::Label(label))?;
        }
        match &statement.what {
            What::Branch { target } => self.branch(state, statement, *target, depth),
            What::Table { index, table } => self.indexed(state, statement, *index, *table),
            What::Exit => {
                let mask = self.guarded(state, statement)?;
                if mask != 0 {
                    self.emit(state, mask, Item::Exit)?;
                }
                state.active &= !mask;
                state.pc += 1;
                self.together = state.active;
                Ok((state.active != 0).then_some(false))
            }
            _ => match self.statement(state, statement)? {
                Step::Next => {
                    state.pc += 1;
                    Ok(Some(false))
                }
                Step::End => Ok(None),
                Step::Ways(ways) => self.ways(state, ways, work),
            },
        }
    }

    /// All but the last way are jumped to; the last one goes on here.
    fn ways(
        &mut self,
        state: &mut State,
        mut ways: Vec<(Option<Reg>, State)>,
        work: &mut Vec<(Option<u32>, State)>,
    ) -> Result<Option<bool>, Refusal> {
        self.budget.looks(ways.len() * state.env.len());
        let Some((_, last)) = ways.pop() else { return Ok(None) };
        for (reg, mut other) in ways {
            let Some(reg) = reg else { continue };
            let to = self.fresh();
            self.emit(state, self.together, Item::Branch { reg, to })?;
            other.pc += 1;
            work.push((Some(to), other));
        }
        *state = last;
        state.pc += 1;
        Ok(Some(false))
    }

    /// Lanes for which the guard holds.
    pub(super) fn guarded(&self, state: &State, statement: &Statement) -> Result<u32, Refusal> {
        let Some(Guard { reg, negated }) = statement.guard else { return Ok(state.active) };
        match &state.env[reg.index()] {
            Val::Known(l) => {
                let truth = l.truth(state.active);
                Ok(if negated { state.active & !truth } else { truth })
            }
            other => {
                let name = &self.kernel.program.threads[0].regs[reg.index()].name;
                self.abstain(state, format!("a predicate ({name}) that depends on {}", self.reason(other)))
            }
        }
    }

    /// What a value that is not known depends on.
    pub(super) fn reason(&self, value: &Val) -> String {
        match value {
            Val::Unknown(Why::Param(n)) => {
                let name = self.kernel.params.get(usize::from(*n)).map_or("", |p| p.name.as_str());
                let name: String =
                    name.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
                format!("parameter {n} ({name}); give it with --param {n}=VALUE")
            }
            Val::Unknown(Why::Loaded(line)) => format!("data loaded in line {line}"),
            Val::Unknown(Why::Computed(line)) => format!("what line {line} computes"),
            Val::Unknown(Why::Unset) => "a register nothing wrote".into(),
            Val::Based(..) => "an address only the exploration knows".into(),
            Val::Known(_) => "values that differ from lane to lane".into(),
        }
    }

    fn branch(
        &mut self,
        state: &mut State,
        statement: &Statement,
        target: usize,
        depth: usize,
    ) -> Result<Option<bool>, Refusal> {
        let taken = self.guarded(state, statement)?;
        let rest = state.active & !taken;
        if rest == 0 {
            state.pc = target;
            return Ok(Some(false));
        }
        if taken == 0 {
            state.pc += 1;
            return Ok(Some(false));
        }
        let meet = self.flow.meets[state.pc];
        let other = self.fresh();
        let end = self.fresh();
        self.emit(state, self.together, Item::Others { mask: taken, to: other })?;
        self.budget.looks(2 * state.env.len());
        let way = |pc: usize, active: u32, state: &State| State { pc, active, env: state.env.clone() };
        let first = self.region(way(target, taken, state), meet, depth + 1)?;
        self.emit(state, self.together, Item::Jump(end))?;
        self.emit(state, self.together, Item::Label(other))?;
        let second = self.region(way(state.pc + 1, rest, state), meet, depth + 1)?;
        self.emit(state, self.together, Item::Label(end))?;
        let joined = match (first, second) {
            (Some(a), Some(b)) => {
                let mut env = b.env;
                for reg in &self.flow.live[meet] {
                    let r = reg.index();
                    let mine = std::mem::replace(&mut env[r], Val::Unknown(Why::Unset));
                    env[r] = a.env[r].clone().over(a.active, &mine);
                }
                State { pc: meet, active: a.active | b.active, env }
            }
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Ok(None),
        };
        *state = joined;
        self.together = state.active;
        Ok(Some(false))
    }

    fn indexed(
        &mut self,
        state: &mut State,
        statement: &Statement,
        index: Reg,
        table: usize,
    ) -> Result<Option<bool>, Refusal> {
        if self.guarded(state, statement)? != state.active {
            return self.abstain(state, "brx.idx under a predicate");
        }
        let value = &state.env[index.index()];
        let Some(n) = value.known().and_then(|l| l.one(state.active)) else {
            return self.abstain(state, format!("brx.idx on {}", self.reason(value)));
        };
        let targets = self.kernel.tables.get(table).map(Vec::as_slice).unwrap_or_default();
        match usize::try_from(n).ok().and_then(|n| targets.get(n)) {
            Some(target) => {
                state.pc = *target;
                Ok(Some(false))
            }
            None => self.abstain(state, format!("brx.idx with index {n} of {}", targets.len())),
        }
    }

    fn statement(&mut self, state: &mut State, statement: &Statement) -> Result<Step, Refusal> {
        self.touch_registers(state, statement)?;
        match &statement.what {
            What::Plain(plain) => self.plain(state, statement, plain),
            What::Core(op) => {
                let mask = self.guarded(state, statement)?;
                if mask == 0 { Ok(Step::Next) } else { self.core(state, op, mask) }
            }
            _ => Ok(Step::Next),
        }
    }

    /// Writes a register in the lanes of the mask.
    pub(super) fn set(&self, state: &mut State, reg: Reg, value: Val, mask: u32) {
        if self.flow.matters.get(reg.index()) == Some(&true) {
            let old = std::mem::replace(&mut state.env[reg.index()], Val::Unknown(Why::Unset));
            // Lanes outside those that are there never matter.
            let mask = mask | !self.here.lanes;
            state.env[reg.index()] = value.over(mask, &old);
        }
    }

    /// Numbers of the threads of the warp along an axis.
    pub(super) fn thread_ids(&self, axis: u8) -> Lanes {
        let [bx, by, _] = self.launch.block.map(u64::from);
        let first = u64::from(self.here.warp) * LANES as u64;
        Lanes::from_fn(|l| {
            let t = first + l as u64;
            match axis {
                0 => t % bx,
                1 => t / bx % by,
                _ => t / bx / by,
            }
        })
    }
}

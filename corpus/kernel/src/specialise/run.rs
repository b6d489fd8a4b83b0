//! Running one warp ahead: both ways where only the exploration can tell, lane by lane where lanes differ.
//!
//! A register holds known values lane by lane, offsets from an address that only the exploration knows, or nothing known.
//! A known branch is taken, so a loop with a known count is unrolled. The answer of an mbarrier wait splits the run in
//! two; a word of shared memory splits it once for each value that some warp stores there, in rounds over all warps until
//! nothing new is stored. A run that comes back to a place with the same live registers becomes a jump, so a wait is a
//! short loop again however it was written. Lanes part at a branch on which they differ and meet at its post-dominator.
//! Masks become predicates on `%laneid`. Registers that reach no control, address or operand of synchronisation are not
//! evaluated.

use super::item::{Item, Trace};
use super::known::value::{Val, Why};
use super::launch::Here;
use super::residual::tidy;
use super::step::statement::statement;
use super::step::{Step, Then};
use super::warp::{Round, State, Warp};
use crate::Refusal;
use crate::ptx::{Statement, What};
use moire_program::ir::Reg;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Lanes that differ inside lanes that differ.
const DEPTH: usize = 64;

type Memo = BTreeMap<(usize, u64, u64), u32>;

/// Runs a warp ahead, in a round.
pub(super) fn run(round: &Round<'_>, here: Here) -> Result<Trace, Refusal> {
    Run { warp: Warp::new(round, here) }.run()
}

struct Run<'r> {
    warp: Warp<'r>,
}

impl<'r> Run<'r> {
    fn round(&self) -> &'r Round<'r> {
        self.warp.round
    }

    fn run(mut self) -> Result<Trace, Refusal> {
        self.round().budget.looks(self.round().kernel.types.len());
        let env = vec![Val::Unknown(Why::Unset); self.round().kernel.types.len()];
        let start = State { pc: 0, active: self.warp.here.lanes, env };
        let end = self.round().kernel.body.len();
        self.region(start, end, 0)?;
        self.warp.out.regs = self.warp.slots();
        self.warp.out.items = tidy::items(self.warp.out.items);
        Ok(self.warp.out)
    }

    /// What the rest of the run from here depends on.
    fn key(&self, state: &State, pc: usize) -> (usize, u64, u64) {
        let hash = |seed: u64| {
            let mut h = std::collections::hash_map::DefaultHasher::new();
            (seed, state.active).hash(&mut h);
            for r in &self.round().flow.live[pc] {
                state.env[r.index()].hash(&mut h);
            }
            h.finish()
        };
        (pc, hash(1), hash(2))
    }

    /// Runs until all lanes are at `stop`, or gone.
    fn region(&mut self, start: State, stop: usize, depth: usize) -> Result<Option<State>, Refusal> {
        if depth > DEPTH {
            return self.warp.abstain(&start, "lanes of a warp that part ways too often");
        }
        let outside = std::mem::replace(&mut self.warp.together, start.active);
        let mut memo = Memo::new();
        let end = self.warp.fresh();
        let mut result: Option<State> = None;
        let mut work = vec![(None, start)];
        while let Some((label, mut state)) = work.pop() {
            self.warp.together = state.active;
            if let Some(label) = label {
                self.warp.emit(&state, self.warp.together, Item::Label(label))?;
            }
            while let Some(arrived) = self.advance(&mut state, stop, &mut memo, &mut work, depth)? {
                if !arrived {
                    continue;
                }
                let same = result.as_ref().is_none_or(|r| self.key(r, stop) == self.key(&state, stop));
                if !same {
                    return self.warp.abstain(
                        &state,
                        "lanes that part ways over something undecided and go on differently",
                    );
                }
                self.warp.emit(&state, self.warp.together, Item::Jump(end))?;
                result = Some(state);
                break;
            }
        }
        self.warp.together = outside;
        if let Some(state) = &result {
            self.warp.emit(state, outside, Item::Label(end))?;
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
        let kernel = self.round().kernel;
        let Some(statement) = kernel.body.get(state.pc) else {
            self.warp.emit(state, state.active, Item::Exit)?;
            return Ok(None);
        };
        self.round().budget.statement()?;
        if self.round().flow.target[state.pc] {
            self.round().budget.looks(2 * self.round().flow.live[state.pc].len());
            let key = self.key(state, state.pc);
            let known = memo.get(&key).copied();
            let label = known.unwrap_or_else(|| self.warp.fresh());
            if known.is_some() {
                self.warp.emit(state, self.warp.together, Item::Jump(label))?;
                return Ok(None);
            }
            memo.insert(key, label);
            self.warp.emit(state, self.warp.together, Item::Label(label))?;
        }
        match &statement.what {
            What::Branch { target } => self.branch(state, statement, *target, depth),
            What::Table { index, table } => self.indexed(state, statement, *index, *table),
            What::Exit => {
                let mask = self.warp.guarded(state, statement.guard)?;
                if mask != 0 {
                    self.warp.emit(state, mask, Item::Exit)?;
                }
                state.active &= !mask;
                state.pc += 1;
                self.warp.together = state.active;
                Ok((state.active != 0).then_some(false))
            }
            _ => match self.step(state, statement)? {
                Then::Next => {
                    state.pc += 1;
                    Ok(Some(false))
                }
                Then::End => Ok(None),
                Then::Ways(ways) => self.ways(state, ways, work),
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
        self.round().budget.looks(ways.len() * state.env.len());
        let Some((_, last)) = ways.pop() else { return Ok(None) };
        for (reg, mut other) in ways {
            let Some(reg) = reg else { continue };
            let to = self.warp.fresh();
            self.warp.emit(state, self.warp.together, Item::Branch { reg, to })?;
            other.pc += 1;
            work.push((Some(to), other));
        }
        *state = last;
        state.pc += 1;
        Ok(Some(false))
    }

    fn branch(
        &mut self,
        state: &mut State,
        statement: &Statement,
        target: usize,
        depth: usize,
    ) -> Result<Option<bool>, Refusal> {
        let taken = self.warp.guarded(state, statement.guard)?;
        let rest = state.active & !taken;
        if rest == 0 {
            state.pc = target;
            return Ok(Some(false));
        }
        if taken == 0 {
            state.pc += 1;
            return Ok(Some(false));
        }
        let meet = self.round().flow.meets[state.pc];
        let other = self.warp.fresh();
        let end = self.warp.fresh();
        self.warp.emit(state, self.warp.together, Item::Others { mask: taken, to: other })?;
        self.round().budget.looks(2 * state.env.len());
        let way = |pc: usize, active: u32, state: &State| State { pc, active, env: state.env.clone() };
        let first = self.region(way(target, taken, state), meet, depth + 1)?;
        self.warp.emit(state, self.warp.together, Item::Jump(end))?;
        self.warp.emit(state, self.warp.together, Item::Label(other))?;
        let second = self.region(way(state.pc + 1, rest, state), meet, depth + 1)?;
        self.warp.emit(state, self.warp.together, Item::Label(end))?;
        let joined = match (first, second) {
            (Some(a), Some(b)) => {
                let mut env = b.env;
                for reg in &self.round().flow.live[meet] {
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
        self.warp.together = state.active;
        Ok(Some(false))
    }

    fn indexed(
        &mut self,
        state: &mut State,
        statement: &Statement,
        index: Reg,
        table: usize,
    ) -> Result<Option<bool>, Refusal> {
        if self.warp.guarded(state, statement.guard)? != state.active {
            return self.warp.abstain(state, "brx.idx under a predicate");
        }
        let value = &state.env[index.index()];
        let Some(n) = value.known().and_then(|l| l.one(state.active)) else {
            return self.warp.abstain(state, format!("brx.idx on {}", self.warp.reason(value)));
        };
        let targets = self.round().kernel.tables.get(table).map(Vec::as_slice).unwrap_or_default();
        match usize::try_from(n).ok().and_then(|n| targets.get(n)) {
            Some(target) => {
                state.pc = *target;
                Ok(Some(false))
            }
            None => self.warp.abstain(state, format!("brx.idx with index {n} of {}", targets.len())),
        }
    }

    fn step(&mut self, state: &mut State, at: &Statement) -> Result<Then, Refusal> {
        let mask = state.active;
        statement(&mut Step { warp: &mut self.warp, state, mask }, at)
    }
}

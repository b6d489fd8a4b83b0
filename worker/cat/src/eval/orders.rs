//! The orders an evaluator finds: the least coherence and the least `sync_fence` that meet a model's obligations, and
//! what follows from them (`fr`, `torn`). See [`super`] for what they are; obligations are the checks
//! `empty A \ co`, `empty A \ (co | co^-1)` and the same for `sync_fence`.

use super::Evaluator;
use crate::bits::{self, Row};
use crate::inputs::Inputs;
use crate::machine::{CO, FENCE, FR, TORN, ZERO};
use crate::node::{CheckId, NodeId};

impl<const W: usize> Evaluator<W> {
    /// Whether coherence already orders every two writes to a common byte.
    pub(super) fn total(&self, inputs: &Inputs<W>) -> bool {
        let co = self.scene.machine.rows(CO);
        let ordered = |a: usize, b: usize| a == b || bits::has(&co[a], b) || bits::has(&co[b], a);
        let total =
            |writers: &Row<W>| bits::iter(writers).all(|a| bits::iter(writers).all(|b| ordered(a, b)));
        inputs.cells.writers.iter().all(total)
    }

    /// The empty graph: what follows from nothing, so that any other one is an addition to it.
    pub(super) fn begin(&mut self, inputs: &Inputs<W>) {
        self.scene.machine.begin(inputs.cells.writers.len());
        let wrong = self.follows().err();
        self.scene.machine.settled();
        self.scene.empty = (self.scene.machine.point(), wrong);
    }

    fn follows(&mut self) -> Result<(), CheckId> {
        for with in [false, true] {
            let insts = if with { self.scene.machine.with.len() } else { self.scene.machine.before.len() };
            for i in 0..insts {
                let inst = if with { self.scene.machine.with[i] } else { self.scene.machine.before[i] };
                if let Some(check) = self.scene.machine.run(&inst) {
                    return Err(check);
                }
            }
        }
        self.force_fences(true)?;
        self.force_coherence(true)?;
        self.saturate()
    }

    /// Carries what is new through all that is monotone: least `sync_fence` above the present one, least `co` above the
    /// choices, every monotone check.
    pub(super) fn saturate(&mut self) -> Result<(), CheckId> {
        loop {
            loop {
                for i in 0..self.scene.machine.before.len() {
                    let inst = self.scene.machine.before[i];
                    if let Some(check) = self.scene.machine.advance(&inst) {
                        return Err(check);
                    }
                }
                if !self.force_fences(false)? {
                    break;
                }
            }
            self.force_coherence(false)?;
            self.scene.machine.derive((FR, TORN));
            for i in 0..self.scene.machine.with.len() {
                let inst = self.scene.machine.with[i];
                if let Some(check) = self.scene.machine.advance(&inst) {
                    return Err(check);
                }
            }
            if !self.force_coherence(false)? {
                self.scene.machine.settled();
                return Ok(());
            }
        }
    }

    /// Adds the pairs the model puts into `sync_fence`, of those that gained some or of all; whether any was new.
    fn force_fences(&mut self, all: bool) -> Result<bool, CheckId> {
        let mut grown = false;
        for f in 0..self.plan.force_fence.len() {
            let (node, check) = self.plan.force_fence[f];
            let Some(register) = self.scene.machine.register(node).filter(|r| *r != ZERO) else { continue };
            for (a, wanted) in self.scene.machine.wanted(register, FENCE, all) {
                for b in bits::iter(&wanted) {
                    if bits::has(&self.scene.machine.rows(FENCE)[b], a) || a == b {
                        return Err(check);
                    }
                    if bits::has(&self.scene.fence_domain[a], b) {
                        self.scene.machine.insert(FENCE, a, b);
                        grown = true;
                    }
                }
            }
        }
        Ok(grown)
    }

    /// The check that wants a pair in `sync_fence` that did not get there: its fences cannot meet.
    pub(super) fn unmet_fence(&self) -> Option<CheckId> {
        let unmet = |node: NodeId| {
            let rows =
                self.scene.machine.register(node).map(|r| self.scene.machine.rows(r)).unwrap_or_default();
            rows.iter().zip(self.scene.machine.rows(FENCE)).any(|(a, b)| !bits::is_empty(&bits::minus(a, b)))
        };
        self.plan.force_fence.iter().find(|(node, _)| unmet(*node)).map(|f| f.1)
    }

    /// Adds the pairs the model puts into `co`, of those that gained some or of all; whether any was new.
    fn force_coherence(&mut self, all: bool) -> Result<bool, CheckId> {
        let mut grown = false;
        for f in 0..self.plan.force_co.len() {
            let (node, check) = self.plan.force_co[f];
            let Some(register) = self.scene.machine.register(node).filter(|r| *r != ZERO) else { continue };
            for (a, wanted) in self.scene.machine.wanted(register, CO, all) {
                for b in bits::iter(&wanted) {
                    if self.scene.machine.insert(CO, a, b) {
                        return Err(check);
                    }
                    grown = true;
                }
            }
        }
        Ok(grown)
    }

    /// A pair of writes the model wants ordered and that is not: the write with most of them, and among those one with
    /// none of the others behind it, so that one direction decides many pairs.
    pub(super) fn demanded(&self, present: &Row<W>) -> Option<(usize, usize)> {
        let machine = &self.scene.machine;
        let co = machine.rows(CO);
        let mut best: Option<(u32, usize, Row<W>)> = None;
        for node in &self.plan.demand_co {
            let rows = machine.register(*node).map(|r| machine.rows(r)).unwrap_or_default();
            for (a, wanted) in rows.iter().enumerate() {
                if bits::is_empty(wanted) || !bits::has(present, a) {
                    continue;
                }
                let mut open = bits::and(&bits::minus(wanted, &co[a]), present);
                bits::clear(&mut open, a);
                for b in bits::iter(&open) {
                    if bits::has(&co[b], a) {
                        bits::clear(&mut open, b);
                    }
                }
                let count = bits::count(&open);
                if count > best.map_or(0, |b| b.0) {
                    best = Some((count, a, open));
                }
            }
        }
        let (_, a, open) = best?;
        let last = bits::iter(&open).find(|b| bits::is_empty(&bits::and(&co[*b], &open)))?;
        Some((a.min(last), a.max(last)))
    }

    /// A pair of fence.sc that can meet, or that the model wants ordered, and that is not.
    pub(super) fn open_fence_pair(&self) -> Option<(usize, usize)> {
        let fence = self.scene.machine.rows(FENCE);
        for a in 0..self.scene.machine.n {
            let mut wanted = self.scene.fence_domain[a];
            for node in &self.plan.demand_fence {
                if let Some(register) = self.scene.machine.register(*node) {
                    bits::or(&mut wanted, &self.scene.machine.rows(register)[a]);
                }
            }
            let open = bits::minus(&wanted, &fence[a]);
            if let Some(b) = bits::iter(&open).find(|b| *b != a && !bits::has(&fence[*b], a)) {
                return Some((a, b));
            }
        }
        None
    }
}

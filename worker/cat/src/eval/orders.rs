//! The orders an evaluator finds: the least coherence and the least `sync_fence` that meet a model's obligations, and
//! what follows from them (`fr`, `torn`). See [`super`] for what they are; obligations are the checks
//! `empty A \ co`, `empty A \ (co | co^-1)` and the same for `sync_fence`.

use super::{Evaluator, Inputs};
use crate::bits::{self, Row};
use crate::machine::{CO, FENCE, FR, TORN, ZERO};
use crate::model::{CheckId, NodeId};
use crate::vocabulary::rels;

impl<const W: usize> Evaluator<W> {
    /// Whether coherence already orders every two writes to a common byte.
    pub(super) fn total(&self, inputs: &Inputs<W>) -> bool {
        let co = self.machine.rows(CO);
        let ordered = |a: usize, b: usize| a == b || bits::has(&co[a], b) || bits::has(&co[b], a);
        let total =
            |writers: &Row<W>| bits::iter(writers).all(|a| bits::iter(writers).all(|b| ordered(a, b)));
        inputs.cells.writers.iter().all(total)
    }

    /// Least `sync_fence` above the present one and least `co` above the choices, then every monotone check.
    pub(super) fn saturate(&mut self, inputs: &Inputs<W>) -> Result<(), CheckId> {
        self.fences()?;
        let everyone = bits::first::<W>(self.machine.n);
        let co = self.machine.rows_mut(CO);
        for (to, from) in co.iter_mut().zip(&inputs.rels[rels::CO]) {
            *to = bits::and(from, &everyone);
        }
        bits::close(co);
        for i in 0..self.chosen.len() {
            let (a, b) = self.chosen[i];
            self.machine.insert(CO, a, b);
        }
        if !bits::irreflexive(self.machine.rows(CO)) {
            return Err(self.plan.force_co.first().map_or(CheckId(0), |f| f.1));
        }
        let mut first = true;
        loop {
            let grown = self.force_coherence(first)?;
            first = false;
            self.derive(inputs);
            for i in 0..self.machine.with.len() {
                let inst = self.machine.with[i];
                if let Some(check) = self.machine.run(&inst) {
                    return Err(check);
                }
            }
            let again = self.plan.force_co.iter().any(|(node, _)| self.model.facts(*node).on_coherence);
            if !again || !(grown || self.coherence_wanted()) {
                return Ok(());
            }
        }
    }

    /// Runs the part before coherence until `sync_fence` holds every pair the model forces on fences that can meet.
    fn fences(&mut self) -> Result<(), CheckId> {
        loop {
            for i in 0..self.machine.before.len() {
                let inst = self.machine.before[i];
                if let Some(check) = self.machine.run(&inst) {
                    return Err(check);
                }
            }
            let mut grown = false;
            for f in 0..self.plan.force_fence.len() {
                let (node, check) = self.plan.force_fence[f];
                let Some(register) = self.machine.register(node).filter(|r| *r != ZERO) else { continue };
                for a in 0..self.machine.n {
                    let wanted = bits::minus(&self.machine.rows(register)[a], &self.machine.rows(FENCE)[a]);
                    for b in bits::iter(&wanted) {
                        if bits::has(&self.machine.rows(FENCE)[b], a) || a == b {
                            return Err(check);
                        }
                        if bits::has(&self.fence_domain[a], b) {
                            self.machine.insert(FENCE, a, b);
                            grown = true;
                        }
                    }
                }
            }
            if !grown {
                return Ok(());
            }
        }
    }

    /// The check that wants a pair in `sync_fence` that did not get there: its fences cannot meet.
    pub(super) fn unmet_fence(&self) -> Option<CheckId> {
        let unmet = |node: NodeId| {
            let rows = self.machine.register(node).map(|r| self.machine.rows(r)).unwrap_or_default();
            rows.iter().zip(self.machine.rows(FENCE)).any(|(a, b)| !bits::is_empty(&bits::minus(a, b)))
        };
        self.plan.force_fence.iter().find(|(node, _)| unmet(*node)).map(|f| f.1)
    }

    /// Adds the pairs the model puts into `co`; whether any was new. Pairs that depend on coherence itself have no
    /// value before the `first` round.
    fn force_coherence(&mut self, first: bool) -> Result<bool, CheckId> {
        let mut grown = false;
        for f in 0..self.plan.force_co.len() {
            let (node, check) = self.plan.force_co[f];
            if first && self.model.facts(node).on_coherence {
                continue;
            }
            let Some(register) = self.machine.register(node).filter(|r| *r != ZERO) else { continue };
            for a in 0..self.machine.n {
                let wanted = bits::minus(&self.machine.rows(register)[a], &self.machine.rows(CO)[a]);
                for b in bits::iter(&wanted) {
                    if self.machine.insert(CO, a, b) {
                        return Err(check);
                    }
                    grown = true;
                }
            }
        }
        Ok(grown)
    }

    fn coherence_wanted(&self) -> bool {
        let co = self.machine.rows(CO);
        let missing = |node: NodeId| {
            let rows = self.machine.register(node).map(|r| self.machine.rows(r)).unwrap_or_default();
            rows.iter().zip(co).any(|(a, b)| !bits::is_empty(&bits::minus(a, b)))
        };
        self.plan.force_co.iter().any(|(node, _)| missing(*node))
    }

    /// `fr` and `torn` from `rf` and the present `co`, cell by cell.
    fn derive(&mut self, inputs: &Inputs<W>) {
        if !self.machine.uses_fr && !self.machine.uses_torn {
            return;
        }
        self.machine.rows_mut(FR).fill(bits::empty());
        let (cells, mut seen, mut several) = (&inputs.cells, bits::empty::<W>(), false);
        for &(read, cell, source) in &cells.reads {
            let read = read as usize;
            let later = bits::and(&self.machine.rows(CO)[source as usize], &cells.writers[cell as usize]);
            bits::or(&mut self.machine.rows_mut(FR)[read], &later);
            several |= bits::has(&seen, read);
            bits::set(&mut seen, read);
        }
        if self.machine.uses_torn {
            self.machine.rows_mut(TORN).fill(bits::empty());
            if several {
                self.tear(inputs);
            }
        }
    }

    /// A read and a write of which it saw one cell, while in another cell it saw something older.
    fn tear(&mut self, inputs: &Inputs<W>) {
        let cells = &inputs.cells;
        for &(read, _, source) in &cells.reads {
            for &(other, second, older) in &cells.reads {
                let (read, source, older) = (read as usize, source as usize, older as usize);
                let shared = bits::has(&cells.writers[second as usize], source);
                if other as usize == read && shared && bits::has(&self.machine.rows(CO)[older], source) {
                    bits::set(&mut self.machine.rows_mut(TORN)[read], source);
                }
            }
        }
    }

    /// A pair of writes the model wants ordered and that is not.
    pub(super) fn demanded(&self, present: &Row<W>) -> Option<(usize, usize)> {
        let co = self.machine.rows(CO);
        for node in &self.plan.demand_co {
            let rows = self.machine.register(*node).map(|r| self.machine.rows(r)).unwrap_or_default();
            for (a, wanted) in rows.iter().enumerate() {
                if !bits::has(present, a) {
                    continue;
                }
                let open = bits::and(&bits::minus(wanted, &co[a]), present);
                if let Some(b) = bits::iter(&open).find(|b| *b != a && !bits::has(&co[*b], a)) {
                    return Some((a.min(b), a.max(b)));
                }
            }
        }
        None
    }

    /// A pair of fence.sc that can meet, or that the model wants ordered, and that is not.
    pub(super) fn open_fence_pair(&self) -> Option<(usize, usize)> {
        let fence = self.machine.rows(FENCE);
        for a in 0..self.machine.n {
            let mut wanted = self.fence_domain[a];
            for node in &self.plan.demand_fence {
                if let Some(register) = self.machine.register(*node) {
                    bits::or(&mut wanted, &self.machine.rows(register)[a]);
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

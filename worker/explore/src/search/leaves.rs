//! Leaves: a finished graph is settled, judged and shown to the visitor.
//!
//! Contract: an execution is shown once for each coherence it can have. A graph that no order of mbarrier operations allows,
//! or whose hang is not real, is a dead end.

use super::explorer::{Found, Search, Stop};
use crate::finish::hang::hang_is_real;
use crate::finish::settle::{Raised, Settled, faults, settle};
use crate::finish::view::Leaf;
use crate::planted::Planted;
use crate::visit::Bound;
use moire_cat::bits::Row;
use moire_execution::leaf::{LeafKind, flag};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

impl<const W: usize> Search<'_, W> {
    pub(super) fn leaf(&mut self) -> Found {
        if self.led_here() {
            return Ok(());
        }
        if self.state.graph.events.universe.special > 0
            && !self.state.graph.phases.phases_complete(&self.state.graph.events)
        {
            self.summary.dead_ends += 1;
            return Ok(());
        }
        let kind = self.state.graph.events.kind();
        debug_assert!(self.state.graph.events.open.is_empty(), "a leaf has no open read");
        debug_assert_eq!(self.state.graph.events.unplaced_reads().next(), None, "a leaf has all its reads");
        let (limit, model) = (self.limits.outcomes, self.state.model);
        self.summary.checks += 1;
        if kind == LeafKind::Complete && self.state.simple() {
            let mark = self.state.enter();
            if self.state.consistency.plain(&mut self.state.graph) {
                let result = self.show_plain(limit);
                self.state.consistency.evaluator.back(&mark);
                return result;
            }
            self.state.consistency.evaluator.back(&mark);
        }
        let left = self.limits.checks.saturating_sub(self.summary.checks);
        let (results, untried, tried) = settle(&mut self.state, left);
        self.summary.checks += tried.saturating_sub(1);
        if untried {
            let some = self.state.graph.mbarriers.places.iter().any(Option::is_some);
            self.bound(if some { Bound::PhaseOrders } else { Bound::FenceOrders });
        }
        if results.is_empty() {
            self.summary.dead_ends += 1;
        }
        let own = faults(&self.state);
        for Settled { co, fence, flags, ends_badly } in results {
            if kind == LeafKind::Blocked
                && !self.has(Planted::AlwaysHangs)
                && !hang_is_real(&mut self.state, &co)
            {
                self.summary.dead_ends += 1;
                continue;
            }
            match kind {
                LeafKind::Complete => self.summary.complete += 1,
                LeafKind::Blocked => self.summary.blocked += 1,
            }
            self.note(&co, &flags);
            let name = |c: &moire_cat::CheckId| model.checks()[c.0].name.clone();
            let pairs = flags.iter().map(|(c, pairs)| (name(c), pairs.clone())).collect();
            let mut flags: BTreeSet<String> = flags.keys().map(name).chain(own.keys().cloned()).collect();
            if ends_badly {
                flags.insert(flag::NO_COMPLETE.to_owned());
            }
            let mut view = Leaf {
                state: &self.state,
                co: &co,
                fence: &fence,
                flags,
                pairs,
                faults: own.clone(),
                kind,
                limit,
                path: &self.path,
                cut: false,
            };
            let flow = self.visitor.leaf(&mut view);
            let cut = view.cut;
            self.shown(cut, flow)?;
        }
        Ok(())
    }

    /// Shows a complete execution of which there is nothing else to say.
    fn show_plain(&mut self, limit: usize) -> Found {
        self.summary.complete += 1;
        if self.tail.is_some() {
            let co = self.state.consistency.evaluator.coherence().to_vec();
            self.note(&co, &Raised::new());
        }
        let mut view = Leaf {
            state: &self.state,
            co: self.state.consistency.evaluator.coherence(),
            fence: self.state.consistency.evaluator.fence_order(),
            flags: BTreeSet::new(),
            pairs: BTreeMap::new(),
            faults: BTreeMap::new(),
            kind: LeafKind::Complete,
            limit,
            path: &self.path,
            cut: false,
        };
        let flow = self.visitor.leaf(&mut view);
        let cut = view.cut;
        self.shown(cut, flow)
    }

    fn shown(&mut self, cut: bool, flow: ControlFlow<()>) -> Found {
        if cut {
            self.bound(Bound::Outcomes);
        }
        if flow.is_break() {
            return Err(Stop::Visitor);
        }
        if self.summary.complete + self.summary.blocked >= self.limits.leaves {
            self.bound(Bound::Leaves);
            return Err(Stop::Bound);
        }
        Ok(())
    }

    /// Notes the effects of an execution that was shown, in a tail.
    fn note(&mut self, co: &[Row<W>], flags: &Raised) {
        if let Some(tail) = &mut self.tail {
            tail.note(&self.state, co, flags);
        }
    }
}

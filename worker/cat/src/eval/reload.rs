//! From one graph to another that does not contain it.
//!
//! An engine that searches depth first comes back to a universe with a graph that differs from the last one in its latest
//! choices. What the two have in common is a graph itself, smaller than both. So the evaluator goes back to the last *step*
//! that is part of both, loads what they have in common, notes that as a step, and goes on from there: a choice that was
//! made early is carried through the expressions once, not once for every graph it is part of.

use super::{Evaluator, Scene};
use crate::inputs::Inputs;
use crate::machine::Point;

impl<const W: usize> Scene<W> {
    /// Goes back to a graph on the way to the one that is loaded.
    pub(super) fn back(&mut self, to: Point) {
        self.machine.back(to);
        while self.steps.last().is_some_and(|step| step.is_behind(to)) {
            self.steps.pop();
        }
    }
}

impl<const W: usize> Evaluator<W> {
    /// Loads a graph that is not larger than the one that is loaded. Where it goes on from, and whether a coherence choice
    /// makes a cycle.
    pub(super) fn reload(&mut self, inputs: &Inputs<W>) -> (Point, bool) {
        self.renew();
        let mut common = self.common.take().unwrap_or_else(|| Box::new(Inputs::with_room(inputs.n)));
        common.make_room(inputs.n);
        self.scene.machine.common(inputs, &mut common);
        let from = self.load_common(&common);
        self.common = Some(common);
        let cycle = self.scene.machine.load(inputs).expect("a graph contains what it shares with another");
        (from, cycle)
    }

    /// Loads a graph that is part of the one that is loaded, from the last step on that is part of both.
    fn load_common(&mut self, common: &Inputs<W>) -> Point {
        loop {
            let step = self.scene.steps.last().copied();
            let from = step.unwrap_or(self.scene.empty.0);
            self.scene.back(from);
            match self.scene.machine.load(common) {
                Some(false) if self.saturate().is_ok() => {
                    let here = self.scene.machine.point();
                    if here.is_behind(from) {
                        self.scene.steps.push(here);
                    }
                    return here;
                }
                Some(_) => {
                    debug_assert!(false, "part of a graph that is not wrong is not wrong");
                    self.scene.back(self.scene.empty.0);
                    return self.scene.empty.0;
                }
                None if step.is_none() => return from,
                None => drop(self.scene.steps.pop()),
            }
        }
    }
}

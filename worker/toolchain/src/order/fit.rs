//! Whether a path of machine code does what a path of PTX asks for.
//!
//! Each step of the PTX is given a step of the machine that does it, in the order that the PTX asks for: a step that orders
//! what is before it stays behind all of that, one that orders what is after it stays in front, and of two accesses to common
//! bytes, one of which writes, the first stays first. Strong accesses are given different steps.
//!
//! What the assembler may do besides, and why:
//! - A load whose value is not used may go: nobody can tell which write it would have read. So may a weak load that the path
//!   goes on from with one value only: a wait in a weak loop ends at once or never, unless it races.
//! - A weak load may go where the path has accessed its bytes before and nothing releases and then acquires in between: a
//!   store of another thread that it would have to read, and the access before not, races with that access.
//! - A store may go where a later one writes its bytes and nothing releases in between: both may come at once.
//! - Neither holds of volatile and mmio accesses, whose number PTX keeps (8.4.1, 8.4.2).
//! - Weak accesses side by side may be one, and any two side by side to shared memory, where the machine has no scopes: what one
//!   instruction reads or writes there comes at once, so the fence of a release is in front of both.
//! - What a wait acquires may be left out where the path goes on as if it had failed.
//! - One fence, and one invalidation, may serve several steps.
//! - Loads may be added, and a compare-and-swap may be tried again.

use super::step::{Access, Act, Step};
use super::told;
use super::value::{Base, Value};
use std::collections::BTreeMap;

/// Most steps of the search for one pair of paths.
const MAX_TRIED: usize = 4_000;

/// How far a fit went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    /// The step of the PTX, by its place in the path, for which there is none; behind the last: the machine adds a write.
    Fails(usize),
    /// The search was too long.
    Unknown,
}

struct Search<'a> {
    asked: &'a [Step],
    done: &'a [Step],
    /// The step of the machine that each step of the PTX is given so far.
    given: Vec<Given>,
    /// Where names of shared memory are in the window.
    windows: BTreeMap<Base, i64>,
    deepest: usize,
    tried: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// By this step.
    By(usize),
    /// It went; its order stays at that place.
    Gone,
    /// It needs no step: it holds before all steps from this place on.
    Free(usize),
}

/// Whether the counts of steps that are never left out, shared or added allow a fit.
pub(super) fn is_likely(asked: &[Step], done: &[Step]) -> bool {
    let count = |steps: &[Step], of: &dyn Fn(&Step) -> bool| steps.iter().filter(|s| of(s)).count();
    let named = |step: &Step| match step.act {
        Act::Named(name) if !name.starts_with("FENCE") && !step.dead => {
            let same = |s: &Step| s.act == Act::Named(name);
            count(asked, &|s| same(s) && !s.dead) <= count(done, &same)
        }
        _ => true,
    };
    let writes = |step: &Step| step.access().is_some_and(|a| a.writes) && !step.may_fail;
    asked.iter().all(named) && count(done, &writes) <= count(asked, &writes)
}

/// Whether `done` does what `asked` asks for.
pub(super) fn fit(asked: &[Step], done: &[Step]) -> Fit {
    let mut search =
        Search { asked, done, given: Vec::new(), windows: BTreeMap::new(), deepest: 0, tried: 0 };
    match search.from(0) {
        true => Fit::Fits,
        false if search.tried > MAX_TRIED => Fit::Unknown,
        false => Fit::Fails(search.deepest),
    }
}

impl Search<'_> {
    fn from(&mut self, at: usize) -> bool {
        self.tried += 1;
        self.deepest = self.deepest.max(at);
        if self.tried > MAX_TRIED {
            return false;
        }
        let Some(step) = self.asked.get(at) else { return self.nothing_added() };
        let first = self.first(at);
        if step.act == Act::Order {
            return self.give(at, Given::Free(first));
        }
        for to in 0..self.done.len() {
            if self.may(at, to, first) && self.bound(at, to) {
                return true;
            }
        }
        self.released_together(at) || self.may_go(at) && self.give(at, Given::Gone)
    }

    /// Gives the fence of a release a place in front of the step that writes to shared memory both what is released and the
    /// place beside it.
    fn released_together(&mut self, at: usize) -> bool {
        let stores =
            |step: &Step| step.access().is_some_and(|a| a.writes && !a.reads && a.shared == Some(true));
        let Some(Given::By(to)) = self.given.last().copied() else { return false };
        let own = |k: &usize| self.given[*k] == Given::By(to) && stores(&self.asked[*k]);
        let run = (0..at).rev().take_while(own).count();
        let fence = matches!(self.asked[at].act, Act::Fence { .. });
        if run == 0 || !fence || !self.asked.get(at + 1).is_some_and(stores) {
            return false;
        }
        let first = self.behind(at, at - run);
        for place in first..to {
            if self.may(at, place, first) {
                self.given.push(Given::By(place));
                let fits = self.may(at + 1, to, to) && self.bound(at + 1, to);
                self.given.pop();
                if fits {
                    return true;
                }
            }
        }
        false
    }

    fn give(&mut self, at: usize, given: Given) -> bool {
        self.given.push(given);
        let fits = self.from(at + 1);
        self.given.pop();
        fits
    }

    /// Gives a step, with the name of shared memory that follows.
    fn bound(&mut self, at: usize, to: usize) -> bool {
        let places = |step: &Step| step.access().and_then(|a| a.place);
        match (places(&self.asked[at]), places(&self.done[to])) {
            (Some(name), Some(Value { base: Base::Window, add }))
                if !self.windows.contains_key(&name.base) =>
            {
                self.windows.insert(name.base, add - name.add);
                let fits = self.give(at, Given::By(to));
                self.windows.remove(&name.base);
                fits
            }
            _ => self.give(at, Given::By(to)),
        }
    }

    /// The first place at which the step may be done.
    fn first(&self, at: usize) -> usize {
        self.behind(at, at)
    }

    /// The first place behind those of the steps before `end` that the step follows.
    fn behind(&self, at: usize, end: usize) -> usize {
        let step = &self.asked[at];
        let behind = |k: usize| match self.given[k] {
            Given::By(to) => to + 1,
            Given::Free(to) => to,
            Given::Gone => 0,
        };
        (0..end).filter(|k| follows(&self.asked[*k], step)).map(behind).max().unwrap_or(0)
    }

    fn may(&self, at: usize, to: usize, first: usize) -> bool {
        let (step, by) = (&self.asked[at], &self.done[to]);
        let users = || (0..at).filter(|k| self.given[*k] == Given::By(to)).map(|k| &self.asked[k]);
        match (step.act, by.act) {
            (Act::Access(a), Act::Access(b)) => {
                let updates = b.reads && b.writes;
                let may_join = |access: &Access| !updates && (weak(access) || b.shared == Some(true));
                let joins = may_join(&a) && users().all(|user| user.access().is_some_and(may_join));
                let together = joins && b.shared == Some(true) && users().next().is_some();
                (to >= first || together && to + 1 == first)
                    && serves(&a, &b)
                    && self.same_place(&a, &b)
                    && (joins || users().next().is_none())
            }
            (Act::Fence { scope, sc }, Act::Fence { scope: s, sc: strong }) => {
                // A fence that serves two steps is behind itself.
                to + 1 >= first
                    && (scope <= s && (strong || !sc))
                    && (to >= first || users().next().is_some())
            }
            (Act::Invalidate, Act::Invalidate) => to >= first || to + 1 == first && users().next().is_some(),
            (Act::Named(a), Act::Named(b)) => {
                let joins = a.starts_with("FENCE") && to + 1 == first;
                a == b && (to >= first && users().next().is_none() || joins && users().next().is_some())
            }
            _ => false,
        }
    }

    /// Whether the places of both may be one.
    fn same_place(&self, a: &Access, b: &Access) -> bool {
        let (Some(name), Some(place)) = (a.place, b.place) else { return true };
        let end = |add: i64, bytes: u32| add + i64::from(bytes);
        let inside = |at: i64| at >= place.add && end(at, a.bytes) <= end(place.add, b.bytes);
        let exact = |at: i64| if weak(a) || b.shared == Some(true) { inside(at) } else { at == place.add };
        match place.base {
            Base::Window => match self.windows.get(&name.base) {
                Some(begin) => exact(begin + name.add),
                None => a.shared != Some(false),
            },
            base => base == name.base && exact(name.add),
        }
    }

    /// Whether the step may be left out.
    fn may_go(&self, at: usize) -> bool {
        if matches!(self.asked[at].act, Act::Invalidate | Act::Named(_)) {
            return self.asked[at].dead;
        }
        let Some(access) = self.asked[at].access().filter(|a| !a.counted) else { return false };
        let known = |step: &Step| step.access().is_some_and(|other| other.covers(access));
        match (access.reads, access.writes) {
            (true, false) if self.asked[at].dead => true,
            (true, false) => weak(access) && self.is_known(at, known),
            (false, _) => {
                let later = self.asked[at + 1..].iter().take_while(|s| !s.before);
                later.filter(|s| s.access().is_some_and(|a| !a.reads)).any(known)
            }
            (true, true) => false,
        }
    }

    /// Whether the path knows what a weak load would read: from an access since which nothing releases and then acquires.
    fn is_known(&self, at: usize, known: impl Fn(&Step) -> bool) -> bool {
        let (mut acquired, mut both) = (false, false);
        for step in self.asked[..at].iter().rev() {
            acquired |= step.after;
            both |= acquired && step.before;
            if known(step) && !both {
                return true;
            }
        }
        false
    }

    /// Whether each write of the machine is one of the PTX.
    fn nothing_added(&self) -> bool {
        let given = |to: usize| self.given.contains(&Given::By(to));
        let writes = |step: &Step| step.access().is_some_and(|a| a.writes) && !step.may_fail;
        self.done.iter().enumerate().all(|(to, step)| !writes(step) || given(to))
    }
}

fn weak(access: &Access) -> bool {
    access.scope.is_none()
}

/// Whether the second step must stay behind the first.
fn follows(first: &Step, second: &Step) -> bool {
    let conflict = match (first.access(), second.access()) {
        (Some(a), Some(b)) => a.overlaps(b) && (a.writes || b.writes),
        _ => false,
    };
    if let Some(follows) = told::follows(first.act, second.act) {
        return follows;
    }
    let held = |by: &Step, step: &Step| {
        step.access().is_none_or(|a| (!by.shared || a.shared != Some(false)) && (!by.frees || a.writes))
    };
    first.after && held(first, second) || second.before && held(second, first) || conflict
}

/// Whether an access of the machine does what one of the PTX asks for, but for its place.
fn serves(a: &Access, b: &Access) -> bool {
    let space = match (a.shared, b.shared) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let shared = b.shared == Some(true);
    let strong = shared || a.scope.is_none_or(|scope| b.scope >= Some(scope));
    let kind = (a.reads, a.writes) == (b.reads, b.writes);
    let wide = if weak(a) || shared { a.bytes <= b.bytes } else { a.bytes == b.bytes || a.writes && a.reads };
    space && strong && kind && wide && (!a.mmio || b.mmio || shared)
}

/// Why no step of the machine does a step of the PTX.
pub(super) fn word(asked: &[Step], at: usize, done: &[Step]) -> &'static str {
    let Some(step) = asked.get(at) else { return "added" };
    let kind = |by: &&Step| match (step.act, by.act) {
        (Act::Access(a), Act::Access(b)) => {
            (a.reads, a.writes) == (b.reads, b.writes)
                && (a.shared == b.shared || a.shared.is_none() || b.shared.is_none())
        }
        (Act::Fence { .. }, Act::Fence { .. }) | (Act::Invalidate, Act::Invalidate) => true,
        (Act::Named(a), Act::Named(b)) => a == b,
        _ => false,
    };
    let does = |by: &&Step| match (step.act, by.act) {
        (Act::Access(a), Act::Access(b)) => serves(&a, &b),
        (Act::Fence { scope, sc }, Act::Fence { scope: s, sc: strong }) => scope <= s && (strong || !sc),
        _ => true,
    };
    let count = |steps: &[Step], of: &dyn Fn(&&Step) -> bool| steps.iter().filter(|s| of(s)).count();
    let wanted = count(asked, &|s| kind(s) && !s.dead);
    match () {
        () if count(done, &kind) < wanted => "lost",
        () if count(done, &|s| kind(s) && does(s)) < count(asked, &|s| kind(s) && s.act == step.act) => {
            "weakened"
        }
        () => "moved",
    }
}

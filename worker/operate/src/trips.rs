//! Trip counts that are not known: what has been decided of each, and how far each thread is.
//!
//! All loops with one name belong to a *class*. A class has an *instance* for each time its loops are entered: the first
//! time by every thread is instance 0, and so on. Of an instance it is known that its number is at least `least`, or, once
//! it is decided, that it is `least`. A thread that asks at an index beyond what is known decides: one run for each answer.
//! All other threads read the decision. Only differences are stored. Instances that no thread needs any more are dropped, and
//! indices in the oldest one count from the least index of its threads. So states repeat.

use crate::finding::Stop;
use moire_program::ir::{Program, Trips};
use moire_program::loops::{Loop, free, loops};
use std::collections::BTreeMap;

/// How far one thread may run ahead of another one in a loop.
const SKEW: u32 = 64;

/// The loops of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loops {
    /// By thread.
    pub(crate) threads: Vec<Vec<Loop>>,
    /// Name and least number of each class.
    pub(crate) classes: Vec<(String, u32)>,
    /// By thread: the classes of its loops, outer ones first.
    pub(crate) order: Vec<Vec<usize>>,
}

impl Loops {
    pub(crate) fn new(program: &Program) -> Result<Self, Stop> {
        let refuse = |r: moire_program::Refusal| Stop::abstain(r.to_string(), 0);
        let threads =
            program.threads.iter().map(|t| loops(t).map_err(refuse)).collect::<Result<Vec<_>, _>>()?;
        let classes = free(program);
        let class = |l: &Loop| match &l.trips {
            Trips::Free { name, .. } => classes.iter().position(|c| c.0 == *name),
            Trips::Number(_) => None,
        };
        let order = threads
            .iter()
            .map(|all| {
                let mut out: Vec<usize> = Vec::new();
                for found in all.iter().filter_map(class) {
                    if !out.contains(&found) {
                        out.push(found);
                    }
                }
                out
            })
            .collect();
        Ok(Loops { threads, classes, order })
    }

    /// The class of a loop.
    pub(crate) fn class(&self, trips: &Trips) -> Option<usize> {
        match trips {
            Trips::Free { name, .. } => self.classes.iter().position(|c| c.0 == *name),
            Trips::Number(_) => None,
        }
    }

    /// The loop of a thread that starts, or that ends, at a position.
    pub(crate) fn at(&self, thread: usize, pc: usize) -> Option<(usize, &Loop)> {
        self.threads[thread].iter().enumerate().find(|(_, l)| l.start == pc || l.end == pc)
    }
}

/// Where a thread is in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Position {
    /// The instance it is in, or will enter next.
    pub(crate) instance: u32,
    /// Iterations it has completed there; none before it enters.
    pub(crate) index: Option<u32>,
}

/// What is known of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Count {
    pub(crate) least: u32,
    pub(crate) decided: bool,
}

/// What is known of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    /// By instance.
    pub(crate) counts: Vec<Count>,
    /// By thread with such a loop that has not exited.
    pub(crate) threads: BTreeMap<usize, Position>,
}

/// The numbers themselves, which are no part of what states are compared by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trail {
    dropped: usize,
    shifted: u32,
    pub(crate) numbers: Vec<u32>,
}

impl Trail {
    fn note(&mut self, instance: u32, least: u32, lowest: u32) {
        let at = self.dropped + instance as usize;
        while self.numbers.len() <= at {
            self.numbers.push(lowest);
        }
        let number = least + if instance == 0 { self.shifted } else { 0 };
        self.numbers[at] = self.numbers[at].max(number);
    }
}

/// Whether a loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum More {
    Yes,
    No,
    /// Not decided.
    Ask,
}

/// All classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) all: Vec<Class>,
    pub(crate) trails: Vec<Trail>,
}

impl Classes {
    pub(crate) fn new(loops: &Loops) -> Self {
        let users = |class: usize| {
            let uses = |t: &usize| loops.order[*t].contains(&class);
            (0..loops.order.len()).filter(uses).map(|t| (t, Position { instance: 0, index: None })).collect()
        };
        let class = |n| Class { counts: Vec::new(), threads: users(n) };
        let all = (0..loops.classes.len()).map(class).collect();
        Classes { all, trails: vec![Trail::default(); loops.classes.len()] }
    }

    /// A thread enters a loop that has `less` rounds fewer than the number of its class. It counts these rounds as completed.
    /// The number is at least `least`.
    pub(crate) fn enter(&mut self, class: usize, thread: usize, (least, less): (u32, u32)) {
        debug_assert!(less <= least, "a loop has no less than no rounds");
        let is = &mut self.all[class];
        let Some(position) = is.threads.get_mut(&thread) else { return };
        position.index = Some(less);
        debug_assert!(position.instance <= SKEW, "nobody is further ahead than that");
        let instance = position.instance;
        while is.counts.len() <= instance as usize {
            is.counts.push(Count { least, decided: false });
        }
        self.trails[class].note(instance, least, least);
        self.settle(class);
    }

    /// Whether the loop that a thread is in goes on.
    pub(crate) fn more(&self, class: usize, thread: usize) -> More {
        let is = &self.all[class];
        let Some(Position { instance, index: Some(index) }) = is.threads.get(&thread).copied() else {
            return More::No;
        };
        let Some(count) = is.counts.get(instance as usize) else { return More::No };
        match (index < count.least, count.decided) {
            (true, _) => More::Yes,
            (false, true) => More::No,
            (false, false) => More::Ask,
        }
    }

    /// Decides whether the loop that a thread is in goes on.
    pub(crate) fn decide(&mut self, class: usize, thread: usize, on: bool) {
        let is = &mut self.all[class];
        let Some(position) = is.threads.get(&thread).copied() else { return };
        let Some(count) = is.counts.get_mut(position.instance as usize) else { return };
        debug_assert!(!count.decided, "a number is decided once");
        if on {
            count.least = position.index.unwrap_or(0) + 1;
            let least = count.least;
            self.trails[class].note(position.instance, least, 0);
        } else {
            count.decided = true;
        }
    }

    /// A thread has completed an iteration. The error says that it runs ahead too far.
    pub(crate) fn next(&mut self, class: usize, thread: usize) -> Result<(), ()> {
        let Some(position) = self.all[class].threads.get_mut(&thread) else { return Ok(()) };
        let index = position.index.unwrap_or(0) + 1;
        position.index = Some(index);
        self.settle(class);
        if index > SKEW && self.all[class].threads[&thread].index > Some(SKEW) { Err(()) } else { Ok(()) }
    }

    /// A thread has left a loop. The error says that it runs ahead too far.
    pub(crate) fn leave(&mut self, class: usize, thread: usize) -> Result<(), ()> {
        let Some(position) = self.all[class].threads.get_mut(&thread) else { return Ok(()) };
        *position = Position { instance: position.instance + 1, index: None };
        self.settle(class);
        let ahead = self.all[class].threads.get(&thread).map_or(0, |p| p.instance);
        if ahead > SKEW { Err(()) } else { Ok(()) }
    }

    /// A thread has exited.
    pub(crate) fn exit(&mut self, thread: usize) {
        for class in 0..self.all.len() {
            if self.all[class].threads.remove(&thread).is_some() {
                self.settle(class);
            }
        }
    }

    /// Drops what no thread needs any more, and lets indices count from the least one.
    fn settle(&mut self, class: usize) {
        let (is, trail) = (&mut self.all[class], &mut self.trails[class]);
        let Some(oldest) = is.threads.values().map(|p| p.instance).min() else {
            is.counts.clear();
            return;
        };
        if oldest > 0 {
            debug_assert!(is.threads.values().all(|p| p.instance >= oldest), "nobody is behind the last");
            is.counts.drain(..is.counts.len().min(oldest as usize));
            is.threads.values_mut().for_each(|p| p.instance -= oldest);
            trail.dropped += oldest as usize;
            trail.shifted = 0;
        }
        let inside = || is.threads.values().filter(|p| p.instance == 0);
        let least = inside().map(|p| p.index.unwrap_or(0)).min().unwrap_or(0);
        let Some(count) = is.counts.first_mut().filter(|c| least > 0 && c.least >= least) else { return };
        count.least -= least;
        trail.shifted += least;
        for position in is.threads.values_mut().filter(|p| p.instance == 0) {
            position.index = position.index.map(|index| index - least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(threads: usize) -> Classes {
        let threads = (0..threads).map(|t| (t, Position { instance: 0, index: None })).collect();
        Classes { all: vec![Class { counts: Vec::new(), threads }], trails: vec![Trail::default()] }
    }

    #[test]
    fn one_thread_decides_and_the_other_reads_the_decision() {
        let mut c = classes(2);
        c.enter(0, 0, (0, 0));
        c.enter(0, 1, (0, 0));
        assert_eq!((c.more(0, 0), c.more(0, 1)), (More::Ask, More::Ask));
        c.decide(0, 0, true);
        assert_eq!((c.more(0, 0), c.more(0, 1)), (More::Yes, More::Yes));
        assert_eq!(c.next(0, 0), Ok(()));
        c.decide(0, 0, false);
        assert_eq!((c.more(0, 0), c.more(0, 1)), (More::No, More::Yes));
        assert_eq!(c.trails[0].numbers, [1]);
    }

    #[test]
    fn rounds_that_are_over_leave_no_trace_but_the_number() {
        let mut c = classes(2);
        (0..2).for_each(|t| c.enter(0, t, (0, 0)));
        let before = c.all.clone();
        for _ in 0..5 {
            c.decide(0, 0, true);
            assert_eq!((c.next(0, 0), c.next(0, 1)), (Ok(()), Ok(())));
        }
        assert_eq!(c.all, before);
        assert_eq!(c.trails[0].numbers, [5]);
        c.decide(0, 0, false);
        assert_eq!((c.leave(0, 0), c.leave(0, 1)), (Ok(()), Ok(())));
        c.enter(0, 1, (0, 0));
        c.decide(0, 1, true);
        assert_eq!(c.trails[0].numbers, [5, 1]);
    }

    #[test]
    fn a_thread_that_runs_ahead_is_noticed() {
        let mut c = classes(2);
        c.enter(0, 0, (0, 0));
        let far = (0..200).find(|_| {
            c.decide(0, 0, true);
            c.next(0, 0).is_err()
        });
        assert_eq!(far, Some(64));
    }
}

//! Combinations of paths: one path for each thread. A part of one is left as soon as nothing can complete it to an execution.
//!
//! Three things refute a part, whatever paths the other threads take:
//!
//! - It reads a value that is not there initially and that no path written down so far, and no path of another thread, writes.
//! - All threads that ever use some mbarrier have their paths, and no order of the operations on it gives the answers that these
//!   paths assume.
//! - All threads that some barrier concerns have their paths, and there is no way to deal out its phases.
//!
//! No model is asked, so this is right under each of them. What the uses of one object amount to depends on these uses alone:
//! combinations that use it alike share it, and a refusal counts only in a combination that nothing else refutes.

use super::barriers::{self, Phases, Scene, Use};
use super::event::{Path, Refusal, Stop};
use super::history::{self, History, Orders};
use super::space::Memory;
use super::{NaiveLimits, Planted, Skip, Variant};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The ways in which the uses of one object can have worked.
type Ways<W> = Result<Rc<Vec<W>>, Refusal>;

/// An object that threads share.
struct Shared<O, W> {
    object: O,
    /// The threads on whose paths the ways depend.
    threads: Vec<usize>,
    /// By thread and variant: a number for its uses, equal for equal uses.
    kinds: Vec<Vec<u32>>,
    /// By the kinds of these threads.
    known: FxHashMap<SmallVec<[u32; 8]>, Ways<W>>,
}

impl<O: Copy, W> Shared<O, W> {
    /// What the chosen variants amount to.
    fn ways(&mut self, chosen: &[usize], of: impl FnOnce(O) -> Result<Vec<W>, Refusal>) -> Ways<W> {
        let key = self.threads.iter().map(|t| self.kinds[*t][chosen[*t]]).collect();
        self.known.entry(key).or_insert_with(|| of(self.object).map(Rc::new)).clone()
    }
}

/// All that matters of a path: its uses by object, in words, and one thing more.
type Told<O> = (BTreeMap<O, String>, bool);

/// The objects, with the kinds of their uses. `told`: by thread and variant.
fn shared<O: Ord + Copy, W>(told: &[Vec<Told<O>>], concerns: &dyn Fn(O, usize) -> bool) -> Vec<Shared<O, W>> {
    let objects: BTreeSet<O> = told.iter().flatten().flat_map(|(words, _)| words.keys()).copied().collect();
    let one = |object: O| {
        let mut numbers = FxHashMap::default();
        let mut kind = |(words, also): &Told<O>| {
            let next = u32::try_from(numbers.len()).expect("there are fewer paths");
            *numbers.entry((words.get(&object).cloned(), *also)).or_insert(next)
        };
        let kinds: Vec<Vec<u32>> = told.iter().map(|all| all.iter().map(&mut kind).collect()).collect();
        let uses = |t: &usize| told[*t].iter().any(|(words, _)| words.contains_key(&object));
        let threads = (0..told.len()).filter(|t| concerns(object, *t) || uses(t)).collect();
        Shared { object, threads, kinds, known: FxHashMap::default() }
    };
    objects.into_iter().map(one).collect()
}

/// A set of pairs of a cell and a value, a bit each.
type Bits = Vec<u64>;

/// Which values the variants read and write, of those that are read and not there initially.
struct Supply {
    /// By thread and variant: values read, and values written.
    needs: Vec<Vec<Bits>>,
    gives: Vec<Vec<Bits>>,
    /// By number of threads that have a path: the values that the others may write.
    later: Vec<Bits>,
}

impl Supply {
    fn new(variants: &[Vec<Variant>], turns: &[usize], memory: &Memory<'_>) -> Self {
        let initial = |(cell, value): &(usize, u128)| memory.initial(*cell) == *value;
        let read = variants.iter().flatten().flat_map(|v| &v.needs).filter(|pair| !initial(pair));
        let pairs: BTreeSet<&(usize, u128)> = read.collect();
        let number: FxHashMap<&(usize, u128), usize> = pairs.into_iter().zip(0..).collect();
        let words = number.len().div_ceil(64);
        let bits = |pairs: &BTreeSet<(usize, u128)>| {
            let mut out = vec![0; words];
            pairs.iter().filter_map(|p| number.get(p)).for_each(|i| out[i / 64] |= 1 << (i % 64));
            out
        };
        let by = |of: fn(&Variant) -> &BTreeSet<(usize, u128)>| -> Vec<Vec<Bits>> {
            variants.iter().map(|all| all.iter().map(|v| bits(of(v))).collect()).collect()
        };
        let (needs, gives) = (by(|v| &v.needs), by(|v| &v.gives));
        let mut later = vec![vec![0; words]];
        for t in turns.iter().rev() {
            let most = gives[*t].iter().fold(later[0].clone(), |most, more| or(&most, more));
            later.insert(0, most);
        }
        Supply { needs, gives, later }
    }

    /// Whether all that is read is written or may still be.
    fn meets(&self, threads: usize, needs: &Bits, gives: &Bits) -> bool {
        let there = gives.iter().zip(&self.later[threads]).map(|(now, later)| now | later);
        needs.iter().zip(there).all(|(needs, there)| needs & !there == 0)
    }
}

fn or(a: &Bits, b: &Bits) -> Bits {
    a.iter().zip(b).map(|(a, b)| a | b).collect()
}

/// What the uses of all objects in one combination amount to.
pub(super) type Amounts = (Vec<Rc<Vec<Phases>>>, Orders);

/// Looks for combinations.
pub(super) struct Combos<'a> {
    variants: &'a [Vec<Variant>],
    scene: Scene<'a>,
    /// The order in which threads get their paths.
    turns: Vec<usize>,
    supply: Supply,
    barriers: Vec<Shared<barriers::Object, Phases>>,
    mbarriers: Vec<Shared<(usize, u32), Rc<History>>>,
    /// By number of threads that have a path: barriers, and mbarriers, of which the last thread has just got its path.
    ready: Vec<[Vec<usize>; 2]>,
    /// How many more parts are looked at.
    left: u64,
}

impl<'a> Combos<'a> {
    pub(super) fn new(variants: &'a [Vec<Variant>], scene: Scene<'a>, limits: &NaiveLimits) -> Self {
        let words = |t: usize, v: &Variant| {
            let uses = scene.uses(t, &v.path).into_iter();
            (uses.map(|(object, uses)| (object, format!("{uses:?}"))).collect(), v.path.stop == Stop::Done)
        };
        let told: Vec<Vec<Told<barriers::Object>>> =
            (0..).zip(variants).map(|(t, all)| all.iter().map(|v| words(t, v)).collect()).collect();
        let barriers = shared(&told, &|object, t| scene.concerns(object, t));
        let told: Vec<Vec<Told<(usize, u32)>>> = variants
            .iter()
            .map(|all| all.iter().map(|v| (history::told(&v.path), false)).collect())
            .collect();
        let mbarriers = shared(&told, &|_, _| false);
        let users = [threads(&barriers), threads(&mbarriers)];
        let turns = turns(variants.len(), &users.concat());
        let planted = limits.planted;
        let early = usize::from(planted == Some(Planted::Unready));
        let last = |threads: &[usize]| {
            turns.iter().rposition(|t| threads.contains(t)).map(|at| (at + 1 - early).max(1))
        };
        let at = |depth: usize, users: &[Vec<usize>]| {
            (0..users.len()).filter(|i| last(&users[*i]) == Some(depth)).collect::<Vec<usize>>()
        };
        let ready = (0..=variants.len()).map(|depth| [0, 1].map(|sort| at(depth, &users[sort]))).collect();
        let mut supply = Supply::new(variants, &turns, scene.memory);
        if planted == Some(Planted::NobodyElse) {
            supply.later.iter_mut().flatten().for_each(|later| *later = 0);
        }
        let left = limits.combinations;
        Combos { variants, scene, turns, supply, barriers, mbarriers, ready, left }
    }

    /// All combinations that nothing refutes.
    pub(super) fn all(&mut self) -> Result<Vec<Vec<usize>>, Skip> {
        let mut out = Vec::new();
        let none = vec![0; self.supply.later[0].len()];
        self.grow(0, &mut vec![0; self.variants.len()], (&none, &none), &mut out)?;
        Ok(out)
    }

    fn grow(
        &mut self,
        depth: usize,
        chosen: &mut Vec<usize>,
        (needs, gives): (&Bits, &Bits),
        out: &mut Vec<Vec<usize>>,
    ) -> Result<(), Skip> {
        self.left = self.left.checked_sub(1).ok_or(Skip::TooMany("combinations of paths"))?;
        if !self.supply.meets(depth, needs, gives) || !self.works(depth, chosen)? {
            return Ok(());
        }
        let Some(&t) = self.turns.get(depth) else {
            out.push(chosen.clone());
            return Ok(());
        };
        for i in 0..self.variants[t].len() {
            let needs = or(needs, &self.supply.needs[t][i]);
            let gives = or(gives, &self.supply.gives[t][i]);
            chosen[t] = i;
            self.grow(depth + 1, chosen, (&needs, &gives), out)?;
        }
        Ok(())
    }

    /// Whether each object of which the last thread has just got its path can have worked.
    fn works(&mut self, depth: usize, chosen: &[usize]) -> Result<bool, Refusal> {
        let [barriers, mbarriers] = &self.ready[depth];
        for i in mbarriers {
            if none(&orders(&mut self.mbarriers[*i], self.variants, chosen))? {
                return Ok(false);
            }
        }
        for i in barriers {
            if none(&dealt(&mut self.barriers[*i], &self.scene, self.variants, chosen))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What the uses of all objects amount to.
    pub(super) fn amounts(&mut self, chosen: &[usize]) -> Result<Amounts, Refusal> {
        let (variants, scene) = (self.variants, &self.scene);
        let ways = self.barriers.iter_mut().map(|o| dealt(o, scene, variants, chosen));
        let ways = ways.collect::<Result<_, _>>()?;
        let histories = self.mbarriers.iter_mut().map(|o| Ok((o.object, orders(o, variants, chosen)?)));
        Ok((ways, histories.collect::<Result<_, Refusal>>()?))
    }
}

/// Whether there is no way. What is not supported may be left to something else that refutes the combination.
fn none<W>(ways: &Ways<W>) -> Result<bool, Refusal> {
    match ways {
        Ok(ways) => Ok(ways.is_empty()),
        Err(Refusal::Unsupported(_)) => Ok(false),
        Err(Refusal::TooMany(what)) => Err(Refusal::TooMany(what)),
    }
}

/// The threads that use each object.
fn threads<O, W>(objects: &[Shared<O, W>]) -> Vec<Vec<usize>> {
    objects.iter().map(|o| o.threads.clone()).collect()
}

/// An order of threads in which objects have all their users soon. `users`: the threads that use each.
fn turns(threads: usize, users: &[Vec<usize>]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    while out.len() < threads {
        let gain = |t: &usize| {
            let own = users.iter().filter(|users| users.contains(t));
            let missing = own.map(|users| users.iter().filter(|u| *u != t && !out.contains(u)).count());
            let missing: Vec<usize> = missing.collect();
            let least = missing.iter().min().copied().unwrap_or(usize::MAX);
            (missing.iter().filter(|n| **n == 0).count(), Reverse(least))
        };
        // Of equals the first.
        let next = (0..threads).rev().filter(|t| !out.contains(t)).max_by_key(gain);
        out.extend(next);
    }
    out
}

/// The paths that are chosen.
fn paths<'a>(variants: &'a [Vec<Variant>], chosen: &[usize]) -> Vec<&'a Path> {
    chosen.iter().zip(variants).map(|(i, all)| &all[*i].path).collect()
}

/// The histories of an mbarrier.
fn orders(
    object: &mut Shared<(usize, u32), Rc<History>>,
    variants: &[Vec<Variant>],
    chosen: &[usize],
) -> Ways<Rc<History>> {
    object.ways(chosen, |of| history::orders(of, &paths(variants, chosen)))
}

/// The ways to deal out the phases of a barrier.
fn dealt(
    object: &mut Shared<barriers::Object, Phases>,
    scene: &Scene<'_>,
    variants: &[Vec<Variant>],
    chosen: &[usize],
) -> Ways<Phases> {
    object.ways(chosen, |of| {
        let paths = paths(variants, chosen);
        let uses = paths.iter().enumerate().map(|(t, path)| scene.uses(t, path).remove(&of));
        let uses: Vec<Use> = uses.flatten().flatten().collect();
        let done: Vec<bool> = paths.iter().map(|path| path.stop == Stop::Done).collect();
        scene.ways(of, &uses, &done)
    })
}

//! All small programs over an instruction alphabet, by size: threads, then memory events, then instructions.
//!
//! Contract: each program within the bound comes once, in canonical form. Programs of one size come in the order of the
//! enumeration; a caller that wants the least text looks at the whole size class ([`Enumeration::of_size`]). Left out,
//! because they cannot matter to a memory model:
//!
//! - locations that are only read, or accessed once,
//! - threads that access no memory,
//! - groups of threads that share no location with the others,
//! - fences and branches after the last access or barrier of a thread.

mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use moire_program::canon::normal;
use moire_program::features::features;
use moire_program::ir::{
    AtomOp, FenceOrder, LoadOrder, Placement, Program, Proxy, ProxyFence, RmwOrder, Scope, StoreOrder,
};
use moire_program::text;
use tokens::{Token, build, tokens};

/// The bound of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Most threads.
    pub threads: usize,
    /// Most memory events of the whole program.
    pub memory_events: usize,
    /// Most instructions of the whole program.
    pub instructions: usize,
    /// Most locations.
    pub locations: usize,
    /// Instructions and places that programs use.
    pub alphabet: Alphabet,
}

/// Instructions and places that may appear in programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alphabet {
    /// Loads.
    pub loads: Vec<LoadOrder>,
    /// Stores.
    pub stores: Vec<StoreOrder>,
    /// Loads and stores are 128 bits wide. Locations start with 9 in both halves, which reveals half a write.
    pub wide: bool,
    /// RMWs: operation, order, scope, as `red`.
    pub rmws: Vec<(AtomOp, RmwOrder, Scope, bool)>,
    /// Memory fences.
    pub fences: Vec<(FenceOrder, Scope)>,
    /// Proxy fences.
    pub proxy_fences: Vec<ProxyFence>,
    /// Weak accesses through other proxies; `Generic` stands for a virtual alias.
    pub proxies: Vec<Proxy>,
    /// Stores of the latest value read.
    pub data: bool,
    /// Addresses computed from the latest value read.
    pub addr: bool,
    /// Guards on the latest value read.
    pub ctrl: bool,
    /// Branches on the latest value read that skip one access. The instructions after it have reconverged.
    pub branches: bool,
    /// Branches on the latest value read to the next instruction. All instructions after them have reconverged.
    pub jumps: bool,
    /// `bar.sync 0`
    pub barriers: bool,
    /// `barrier.cluster.arrive`, the same relaxed, and `barrier.cluster.wait`.
    pub cluster_barriers: bool,
    /// `bar.warp.sync` of all threads. They must be lanes of one warp: `places` should be [`Near::Warp`].
    pub warp_syncs: bool,
    /// Places of the second and later threads relative to the first.
    pub places: Vec<Near>,
}

/// Place of a thread relative to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Near {
    /// In its warp.
    Warp,
    /// In its CTA.
    Cta,
    /// In its cluster.
    Cluster,
    /// On its GPU.
    Gpu,
    /// On another GPU.
    Sys,
}

/// Threads, memory events, instructions.
pub type Size = (usize, usize, usize);

/// The size of a program.
pub fn size(program: &Program) -> Size {
    let f = features(program);
    (f.threads, f.memory_events, f.instructions)
}

/// All sizes up to `most`, least first.
pub fn sizes(most: Size) -> impl Iterator<Item = Size> + use<> {
    let (t, e, i) = most;
    (1..=t).flat_map(move |t| (t..=e).flat_map(move |e| (1..=i).map(move |i| (t, e, i))))
}

/// All programs of the bound, least size first.
pub fn programs(bound: &Bound) -> impl Iterator<Item = Program> + use<> {
    let all = Enumeration::new(bound);
    sizes((bound.threads, bound.memory_events, bound.instructions)).flat_map(move |size| all.of_size(size))
}

/// The programs of a bound, one size class at a time.
#[derive(Clone, Debug)]
pub struct Enumeration {
    bound: Rc<Bound>,
    tokens: Vec<Token>,
}

impl Enumeration {
    /// The enumeration of a bound. It lists no program before `of_size` is called.
    pub fn new(bound: &Bound) -> Self {
        Enumeration { bound: Rc::new(bound.clone()), tokens: tokens(bound) }
    }

    /// All programs of one size, each once; none if the size exceeds the bound. Memory grows with the number of thread
    /// bodies of that size and of programs found.
    pub fn of_size(&self, (t, e, i): Size) -> impl Iterator<Item = Program> + use<> {
        let bound = Rc::clone(&self.bound);
        let mut seen: BTreeSet<[u8; 16]> = BTreeSet::new();
        let mut splits = Vec::new();
        if t <= bound.threads && e <= bound.memory_events && i <= bound.instructions {
            split(t, (e, i), &mut Vec::new(), &mut splits);
        }
        let columns = Rc::new(columns(&self.tokens, &splits));
        splits.retain(|split| split.iter().all(|cost| columns.contains_key(cost)));
        let places = places(&bound.alphabet.places, t);
        let choices = splits.into_iter().flat_map(move |split| Odometer::new(Rc::clone(&columns), split));
        choices
            .filter(|c| communicates(c))
            .flat_map(move |c| places.clone().into_iter().map(move |p| (c.clone(), p)))
            .filter_map(move |(columns, places)| {
                let (program, _) = normal(&build(&columns, &places, &bound));
                let hash = blake3::hash(text::print(&program).as_bytes());
                let mut key = [0u8; 16];
                key.copy_from_slice(&hash.as_bytes()[..16]);
                seen.insert(key).then_some(program)
            })
    }
}

type Column = Rc<[Token]>;
type Columns = BTreeMap<(usize, usize), Vec<Column>>;

/// All thread bodies whose cost (memory events, instructions) occurs in a split.
fn columns(tokens: &[Token], splits: &[Vec<(usize, usize)>]) -> Columns {
    let needed: BTreeSet<(usize, usize)> = splits.iter().flatten().copied().collect();
    let most = needed.iter().fold((0, 0), |m, c| (m.0.max(c.0), m.1.max(c.1)));
    let mut all = Columns::new();
    let mut stack: Vec<(Vec<Token>, (usize, usize))> = vec![(Vec::new(), (0, 0))];
    while let Some((column, cost)) = stack.pop() {
        for &token in tokens {
            let (events, instructions) = token.cost();
            let next = (cost.0 + events, cost.1 + instructions);
            if next.0 > most.0 || next.1 > most.1 || !token.fits(&column) {
                continue;
            }
            let mut longer = column.clone();
            longer.push(token);
            if needed.contains(&next) && token.may_end() {
                all.entry(next).or_default().push(longer.clone().into());
            }
            stack.push((longer, next));
        }
    }
    all
}

/// All ways to split a size over `t` columns, in non-increasing order. A column has at least one event and instruction.
fn split(t: usize, rest: (usize, usize), path: &mut Vec<(usize, usize)>, out: &mut Vec<Vec<(usize, usize)>>) {
    if t == 0 {
        if rest == (0, 0) {
            out.push(path.clone());
        }
        return;
    }
    // Each column after this one needs an event and an instruction.
    let others = t - 1;
    for e in 1..=rest.0.saturating_sub(others) {
        for i in 1..=rest.1.saturating_sub(others) {
            if path.last().is_some_and(|last| (e, i) > *last) {
                continue;
            }
            path.push((e, i));
            split(others, (rest.0 - e, rest.1 - i), path, out);
            path.pop();
        }
    }
}

/// Iterates over the choices of columns for one split. Columns of equal cost have non-increasing indices.
struct Odometer {
    columns: Rc<Columns>,
    split: Vec<(usize, usize)>,
    digits: Option<Vec<usize>>,
}

impl Odometer {
    fn new(columns: Rc<Columns>, split: Vec<(usize, usize)>) -> Self {
        let digits = Some(vec![0; split.len()]);
        Odometer { columns, split, digits }
    }
}

impl Iterator for Odometer {
    type Item = Vec<Column>;

    fn next(&mut self) -> Option<Vec<Column>> {
        let digits = self.digits.as_mut()?;
        let lists: Vec<&Vec<Column>> = self.split.iter().filter_map(|s| self.columns.get(s)).collect();
        let item = digits.iter().zip(&lists).map(|(&d, list)| Rc::clone(&list[d])).collect();
        let mut k = digits.len();
        loop {
            if k == 0 {
                self.digits = None;
                break;
            }
            k -= 1;
            let cap =
                if k > 0 && self.split[k] == self.split[k - 1] { digits[k - 1] + 1 } else { lists[k].len() };
            if digits[k] + 1 < cap {
                digits[k] += 1;
                break;
            }
            digits[k] = 0;
        }
        Some(item)
    }
}

/// Whether every location has a conflict, location numbers have no gaps, and shared locations connect all threads.
fn communicates(columns: &[Column]) -> bool {
    let mut uses: BTreeMap<usize, (usize, bool, usize)> = BTreeMap::new();
    for (t, column) in columns.iter().enumerate() {
        for (l, write) in column.iter().filter_map(|t| t.access()) {
            let entry = uses.entry(l).or_default();
            *entry = (entry.0 + 1, entry.1 || write, entry.2 | 1 << t);
        }
    }
    if uses.keys().next_back().is_some_and(|last| last + 1 != uses.len())
        || uses.values().any(|u| u.0 < 2 || !u.1)
    {
        return false;
    }
    let mut reached = 1usize;
    loop {
        let next = uses.values().filter(|u| u.2 & reached != 0).fold(reached, |all, u| all | u.2);
        if next == reached {
            return reached + 1 == 1 << columns.len();
        }
        reached = next;
    }
}

/// All ways to place `threads` threads. The first is at the origin.
fn places(near: &[Near], threads: usize) -> Vec<Vec<Placement>> {
    let mask = |n: u16| u32::from(near.contains(&Near::Warp)) << n.min(31);
    let zero = Placement::default();
    let mut all = vec![vec![Placement { mask: mask(0), ..zero }]];
    for n in 1..threads {
        let id = u16::try_from(n).expect("a bound has fewer than 256 threads");
        let mut longer = Vec::new();
        for places in &all {
            for near in near {
                let place = match near {
                    Near::Warp => Placement { mask: mask(id), ..zero },
                    Near::Cta => Placement { warp: id, ..zero },
                    Near::Cluster => Placement { cta: id, ..zero },
                    Near::Gpu => Placement { cluster: id, cta: id, ..zero },
                    Near::Sys => Placement { gpu: id, ..zero },
                };
                let mut next = places.clone();
                next.push(place);
                longer.push(next);
            }
        }
        all = longer;
    }
    all
}

//! Cuts a pair of programs, tile blocks and their compiled form, down to a few threads and locations.
//!
//! A *cell* is a range of bytes that some access of either side treats as one. The cut keeps some cells, and some threads
//! of the compiled program. Of the tile blocks it keeps every instruction, with its elements on kept cells. The small
//! programs say the same about kept cells as the large ones, for reasons that are checked, not assumed.
//!
//! *Source: no outcome is lost.* Every write of a kept cell is in the small program, with the same value: if the value or
//! the mask of a kept element depends on another element, the cell of that element is kept too. Take an execution of the
//! large program. Its events on kept cells, with their relations, are an execution of the small program. It is consistent
//! if the large one is, because the axioms require relations to be acyclic, and fewer events make no cycle. So no allowed
//! outcome is called forbidden. Each removed cell has a kept image that the same instructions of the same blocks access,
//! under masks computed alike, with data flow from and to the images of the same cells. So its races are those of its
//! image.
//!
//! *Compiled: no outcome is added.* A map (`mirror`) takes each removed thread to a kept thread of its CTA with the same
//! code, except for offsets and numbers that decide nothing. It takes each removed cell to a kept cell, and kept threads
//! and cells to themselves.
//!
//! - The accesses of a thread to a cell match those of its image to the image of the cell, in the same order: same kind,
//!   order, width and predicate, between the same two instructions that synchronise or branch.
//! - If a thread moves data from one cell to another, its image moves data between the images of the cells.
//! - The writes of a cell map onto all writes of its image. Atomics, and the stores of one thread, map one to one.
//!
//! Take an execution of the small program, and let each removed thread do what its image does. Reads read from the copies
//! of the writes that their images read from. Copies of writes have the coherence order of their images; the copies of one
//! write are adjacent, the kept one last. Values that decide something are equal to those of the image, others are
//! whatever results. The map takes reads-from, coherence, from-reads, dependencies, scopes, barriers, and program order on
//! one cell or across synchronisation into those of the small execution. It preserves warps if warps synchronise. No axiom
//! of PTX uses any other program order. So a cycle in the large execution gives one in the small execution, and the large
//! program allows what the small one allows.
//!
//! Of each kind of cell, two that different threads access are kept, if there are such, so that threads that interact
//! still do. Of many threads that store the same to a kept cell (a tile with fewer elements than threads), the first and
//! the last are kept. If that is too much, one of each is kept.
//!
//! Threads that only read, without barrier and branch, need no image: they can run last. Masks of `bar.warp.sync` are cut
//! to the kept lanes. Barriers with a count, votes and addresses from memory are refused.

mod cells;
mod cut;
mod flow;
mod mirror;

use crate::Done;
use crate::Refusal;
use cells::{Cells, Does, Touch, number};
use flow::{Flows, class, flows, needed};
use mirror::Mirror;
use moire_program::ir::{LoadOrder, Op, Program, StoreOrder, Thread};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Most compiled threads left when two of each kind are kept.
const FEW_THREADS: usize = 10;
/// Most cells left when two of each kind are kept.
const FEW_CELLS: usize = 24;
/// Most compiled threads left.
const THREADS: usize = 48;
/// Most cells left.
const CELLS: usize = 128;

/// A program and its compiled form, on the same objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The source: each thread is a tile block.
    pub source: Program,
    /// The compiled form: each thread is a thread of a CTA.
    pub compiled: Program,
}

/// Cuts both programs down to threads and locations that represent all others, as the header of this file explains.
///
/// # Errors
/// An instruction is not handled, or too much would be left.
pub fn slice(pair: &Pair) -> Done<Pair> {
    let view = View::new(pair)?;
    match view.cut(2, FEW_THREADS, FEW_CELLS) {
        Err(Refusal::Bounded(_)) => view.cut(1, THREADS, CELLS),
        done => done,
    }
}

/// Cuts as [`slice()`] does, but keeps one of each kind. Interactions between threads of one kind are lost; nothing false
/// is added.
///
/// # Errors
/// The errors of [`slice()`].
pub fn slice_least(pair: &Pair) -> Done<Pair> {
    View::new(pair)?.cut(1, THREADS, CELLS)
}

/// A pair with the facts that are computed once.
struct View<'p> {
    pair: &'p Pair,
    cells: Cells,
    /// The flows of each tile block.
    tiles: Vec<Flows>,
    /// The flows of each compiled thread.
    threads: Vec<Flows>,
    /// For each compiled thread, a hash of its code.
    classes: Vec<u64>,
    /// The cells of each compiled thread.
    reach: Vec<Reach>,
    /// Cells whose content decides something.
    looked: BTreeSet<usize>,
    /// For each cell, a hash that is equal for cells that are touched alike.
    signs: Vec<u64>,
}

/// The cells of a thread, sorted and without duplicates.
struct Reach {
    touched: Vec<usize>,
    written: Vec<usize>,
    updated: Vec<usize>,
}

impl Reach {
    fn of(touches: &[Touch]) -> Reach {
        let those = |wanted: &dyn Fn(Does) -> bool| {
            let all: BTreeSet<usize> = touches.iter().filter(|t| wanted(t.does)).map(|t| t.cell).collect();
            all.into_iter().collect()
        };
        Reach {
            touched: those(&|_| true),
            written: those(&|does| does != Does::Read),
            updated: those(&|does| does == Does::Update),
        }
    }
}

impl<'p> View<'p> {
    fn new(pair: &'p Pair) -> Done<Self> {
        let cells = Cells::new(&pair.source, &pair.compiled)?;
        let tiles = flows(&pair.source, &cells.source);
        let threads = flows(&pair.compiled, &cells.compiled);
        let looked = looked(&tiles, &threads);
        let each = pair.compiled.threads.iter().zip(&cells.compiled);
        let classes: Vec<u64> = each.map(|(thread, touches)| class(thread, touches, &looked)).collect();
        let signs = signs(pair, &cells, &classes, &looked);
        let reach = cells.compiled.iter().map(|touches| Reach::of(touches)).collect();
        Ok(View { pair, cells, tiles, threads, classes, reach, looked, signs })
    }

    /// Whether two compiled threads of one CTA have the same code.
    fn alike(&self, a: usize, b: usize) -> bool {
        let threads = &self.pair.compiled.threads;
        threads[a].place.same_cta(&threads[b].place) && self.classes[a] == self.classes[b]
    }

    fn cut(&self, most: usize, threads: usize, cells: usize) -> Done<Pair> {
        let mut cut = Cut::new(self, most, (threads, cells));
        loop {
            cut.close()?;
            if !cut.grow() {
                break;
            }
        }
        Ok(Pair {
            source: cut::source(&self.pair.source, &self.cells, &cut.kept),
            compiled: cut::compiled(&self.pair.compiled, &self.cells, &cut.threads, &cut.kept)?,
        })
    }
}

/// Cells whose content decides something, or flows into such a cell.
fn looked(tiles: &[Flows], threads: &[Flows]) -> BTreeSet<usize> {
    let all = || tiles.iter().chain(threads);
    let mut out: BTreeSet<usize> = all().flat_map(|f| f.looked.iter().copied()).collect();
    loop {
        let before = out.len();
        let more: Vec<usize> = all()
            .flat_map(|f| &f.edges)
            .filter(|(_, to, _)| out.contains(to))
            .map(|(from, ..)| *from)
            .collect();
        out.extend(more);
        if out.len() == before {
            return out;
        }
    }
}

/// For each cell, a hash of the accesses on both sides.
fn signs(pair: &Pair, cells: &Cells, classes: &[u64], looked: &BTreeSet<usize>) -> Vec<u64> {
    let mut all: Vec<Vec<(u8, u64, u64, Option<i128>)>> = vec![Vec::new(); cells.ranges.len()];
    let mut add = |side: u8, place: u64, touches: &[Touch]| {
        for t in touches {
            let value = t.value.filter(|_| looked.contains(&t.cell));
            all[t.cell].push((side, place, t.group, value));
        }
    };
    for (block, touches) in (0u64..).zip(&cells.source) {
        add(0, block, touches);
    }
    for ((thread, class), touches) in pair.compiled.threads.iter().zip(classes).zip(&cells.compiled) {
        let p = thread.place;
        add(1, number(&(p.gpu, p.grid, p.cluster, p.cta, class)), touches);
    }
    let sign = |(touches, (_, from, to)): (Vec<_>, &(_, u32, u32))| {
        let mut touches = touches;
        touches.sort_unstable();
        number(&(touches, to - from))
    };
    all.into_iter().zip(&cells.ranges).map(sign).collect()
}

/// For each cell, the compiled threads that write it. Of several threads of a CTA with the same code that only store, the
/// same values from the same cells, the first is included, and the last too if `most` is two.
fn writers(view: &View<'_>, most: usize) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut alike: BTreeMap<(usize, u64), Vec<usize>> = BTreeMap::new();
    for (thread, touches) in view.cells.compiled.iter().enumerate() {
        let mut stories: BTreeMap<usize, Vec<(Does, u64, Option<i128>)>> = BTreeMap::new();
        for t in touches {
            stories.entry(t.cell).or_default().push((t.does, t.group, t.value));
        }
        for (cell, story) in stories {
            let own = story.iter().any(|(does, ..)| *does == Does::Update).then_some(thread);
            if story.iter().all(|(does, ..)| *does == Does::Read) {
                continue;
            }
            let flows = view.threads.get(thread).map(|f| &f.edges);
            let fed: Vec<_> = flows.into_iter().flatten().filter(|(_, to, _)| *to == cell).collect();
            let p = view.pair.compiled.threads[thread].place;
            let kind = number(&(p.gpu, p.grid, p.cluster, p.cta, view.classes[thread], story, fed, own));
            alike.entry((cell, kind)).or_default().push(thread);
        }
    }
    let mut out: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for ((cell, _), threads) in alike {
        let ends = threads.first().into_iter().chain(threads.last().filter(|_| most > 1));
        out.entry(cell).or_default().extend(ends);
    }
    out
}

/// The threads and cells kept so far.
struct Cut<'v> {
    view: &'v View<'v>,
    kept: BTreeSet<usize>,
    threads: BTreeSet<usize>,
    /// The result of `writers`.
    writers: BTreeMap<usize, BTreeSet<usize>>,
    /// Most threads and cells that may be kept.
    room: (usize, usize),
}

impl<'v> Cut<'v> {
    /// Starts with the first cell of each kind, and if `most` is two also the last, unless the same threads touch both.
    fn new(view: &'v View<'v>, most: usize, room: (usize, usize)) -> Self {
        let mut users: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); view.signs.len()];
        for (thread, touches) in view.cells.compiled.iter().enumerate() {
            for t in touches {
                users[t.cell].insert(thread);
            }
        }
        let writers = writers(view, most);
        let mut alike: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for (cell, sign) in view.signs.iter().enumerate() {
            alike.entry(*sign).and_modify(|ends| ends.1 = cell).or_insert((cell, cell));
        }
        let mut kept = BTreeSet::new();
        for (first, last) in alike.into_values() {
            kept.insert(first);
            if most > 1 && (users[first] != users[last] || users[first].is_empty()) {
                kept.insert(last);
            }
        }
        Cut { view, kept, threads: BTreeSet::new(), writers, room }
    }

    /// Keeps everything that kept threads and cells depend on.
    fn close(&mut self) -> Done<()> {
        loop {
            let before = (self.threads.len(), self.kept.len());
            if before.0 > self.room.0 || before.1 > self.room.1 {
                let (threads, cells) = self.room;
                let text = format!("more than {threads} threads or {cells} locations would be left");
                return Err(Refusal::Bounded(text));
            }
            let writers = self.kept.iter().filter_map(|c| self.writers.get(c)).flatten();
            self.threads.extend(writers);
            self.represent();
            let (pair, cells) = (self.view.pair, &self.view.cells);
            let mut more = BTreeSet::new();
            for (thread, touches) in pair.source.threads.iter().zip(&cells.source) {
                self.wanted(thread, touches, &mut more);
                self.emptied(touches, &mut more);
            }
            for t in &self.threads {
                self.wanted(&pair.compiled.threads[*t], &cells.compiled[*t], &mut more);
                self.vectors(*t, &mut more);
            }
            self.kept.extend(more);
            if before == (self.threads.len(), self.kept.len()) {
                return Ok(());
            }
        }
    }

    /// Keeps one thread of each kind in a CTA, the one that adds the fewest cells, unless it is passive.
    fn represent(&mut self) {
        let threads = &self.view.pair.compiled.threads;
        let kind = |t: usize| {
            let p = threads[t].place;
            (p.gpu, p.grid, p.cluster, p.cta, self.view.classes[t])
        };
        let there: BTreeSet<_> = self.threads.iter().map(|t| kind(*t)).collect();
        let brings = |t: usize| {
            let cells: BTreeSet<usize> = self.view.cells.compiled[t].iter().map(|t| t.cell).collect();
            cells.difference(&self.kept).count()
        };
        let mut best: BTreeMap<_, (usize, usize)> = BTreeMap::new();
        for t in (0..threads.len()).rev().filter(|t| !passive(&threads[*t]) && !there.contains(&kind(*t))) {
            let this = (brings(t), t);
            best.entry(kind(t)).and_modify(|b| *b = if this.0 < b.0 { this } else { *b }).or_insert(this);
        }
        self.threads.extend(best.into_values().map(|b| b.1));
    }

    /// Adds cells that are read into needed registers.
    fn wanted(&self, thread: &Thread, touches: &[Touch], more: &mut BTreeSet<usize>) {
        let needed = needed(thread, touches, &self.kept);
        let read = touches.iter().filter(|t| t.dst.is_some_and(|d| needed.contains(&d)));
        more.extend(read.map(|t| t.cell));
    }

    /// Adds one cell for each instruction that would have none.
    fn emptied(&self, touches: &[Touch], more: &mut BTreeSet<usize>) {
        let mut first: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        for t in touches {
            let entry = first.entry(t.at).or_insert(Some(t.cell));
            if self.kept.contains(&t.cell) {
                *entry = None;
            }
        }
        more.extend(first.into_values().flatten());
    }

    /// Adds all cells of stronger vector accesses, because only weak and relaxed vectors may be split.
    fn vectors(&self, thread: usize, more: &mut BTreeSet<usize>) {
        let body = &self.view.pair.compiled.threads[thread].body;
        let loads = |op: &Op| {
            matches!(op, Op::Load { order, dst, .. }
                if dst.len() > 1 && !matches!(order, LoadOrder::Weak | LoadOrder::Relaxed(_)))
        };
        let stores = |op: &Op| {
            matches!(op, Op::Store { order, src, .. }
                if src.len() > 1 && !matches!(order, StoreOrder::Weak | StoreOrder::Relaxed(_)))
        };
        let whole = |t: &&Touch| body.get(t.at).is_some_and(|i| loads(&i.op) || stores(&i.op));
        let together: Vec<&Touch> = self.view.cells.compiled[thread].iter().filter(whole).collect();
        let some: BTreeSet<usize> =
            together.iter().filter(|t| self.kept.contains(&t.cell)).map(|t| t.at).collect();
        more.extend(together.iter().filter(|t| some.contains(&t.at)).map(|t| t.cell));
    }

    /// Checks the cut and keeps what has no image. Returns whether anything was added.
    fn grow(&mut self) -> bool {
        let view = self.view;
        let bodies = &view.pair.compiled.threads;
        let mut mirror = Mirror::new(view, &self.kept);
        let order =
            self.threads.iter().copied().chain((0..bodies.len()).filter(|t| !self.threads.contains(t)));
        let lost = order.into_iter().find(|t| {
            if self.threads.contains(t) {
                return !mirror.stands(*t, *t, true);
            }
            // Neighbours first: if code counts from both ends, each end is represented by its own.
            let mut near: Vec<usize> = self.threads.iter().copied().filter(|o| view.alike(*o, *t)).collect();
            near.sort_by_key(|o| o.abs_diff(*t));
            // First a thread that represents no other writer, then one that does.
            let mut found = |shared: bool| near.iter().any(|o| mirror.stands(*t, *o, shared));
            !passive(&bodies[*t]) && !found(false) && !found(true)
        });
        // If another removed thread represents the lost one, it is kept instead. Otherwise the lost one and its cells are.
        let goes = |t: &usize| !self.threads.contains(t);
        let others = || (0..bodies.len()).filter(|o| goes(o) && Some(*o) != lost);
        let stand_in = |t: usize| others().find(|o| view.alike(*o, t) && mirror.stands(t, *o, false));
        let found = lost.filter(goes).and_then(stand_in);
        let mut cells = match (lost, found) {
            (Some(t), None) => view.cells.compiled[t].iter().map(|t| t.cell).collect(),
            (Some(_), Some(_)) => BTreeSet::new(),
            (None, _) => mirror.unlike(),
        };
        if lost.is_none() && cells.is_empty() {
            cells = self.sources(&mirror.image);
        }
        let before = (self.threads.len(), self.kept.len());
        self.threads.extend(found.or(lost));
        self.kept.extend(cells);
        before != (self.threads.len(), self.kept.len())
    }

    /// Removed cells of tile blocks whose data flow differs from that of their images.
    fn sources(&self, found: &BTreeMap<usize, usize>) -> BTreeSet<usize> {
        let (mut image, mut cells) = (found.clone(), BTreeSet::new());
        for cell in (0..self.view.signs.len()).filter(|c| !self.kept.contains(c)) {
            // Only tile blocks or passive threads touch this cell.
            if let Entry::Vacant(free) = image.entry(cell) {
                let same = |k: &&usize| self.view.signs[**k] == self.view.signs[cell];
                match self.kept.iter().find(same) {
                    Some(k) => drop(free.insert(*k)),
                    None => drop(cells.insert(cell)),
                }
            }
        }
        let of = |c: usize| image.get(&c).copied().unwrap_or(c);
        for flows in &self.view.tiles {
            for (from, to, way) in &flows.edges {
                if !flows.edges.contains(&(of(*from), of(*to), *way)) {
                    cells.extend([*from, *to].into_iter().filter(|c| !self.kept.contains(c)));
                    return cells;
                }
            }
        }
        cells
    }
}

/// Whether a thread is passive: it only reads, and neither waits nor branches.
fn passive(thread: &Thread) -> bool {
    let quiet = |op: &Op| {
        matches!(op, Op::Load { .. } | Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. })
    };
    thread.body.iter().all(|i| quiet(&i.op))
}

//! Going on from a graph to a larger one: what is new is carried through the expressions, and nothing else is looked at.
//!
//! Everything evaluated while a graph grows is monotone ([`crate::plan`]), so that each register only gains pairs. A
//! register keeps its *delta*, the pairs gained since the last time everything was settled; an operation whose operands
//! have none is skipped, and every other one computes what its operands' deltas add. What a row was before it grew goes
//! onto a *trail*, so that a graph is left by taking the trail back to where it was entered ([`Point`]): exploring costs
//! no copies, and a step costs what it changes.

use super::compute::{Op, Op3};
use super::{CHOSEN, CO, Inst, Machine, ZERO};
use crate::bits::{self, Row};
use crate::inputs::Inputs;
use crate::node::CheckId;
use crate::syntax::Property;
use crate::vocabulary::rels;

/// Trail entries from here on are rows of `writers`.
const WRITERS: u32 = 1 << 31;

/// What has grown, and how to take it back.
#[derive(Clone, Debug, Default)]
pub(super) struct Change<const W: usize> {
    /// Like the values: per register and row, what is new. Empty where nothing is touched.
    delta: Vec<Row<W>>,
    /// Per register: the rows with something new.
    dirty: Vec<Row<W>>,
    /// Registers with a dirty row.
    touched: Vec<u32>,
    /// Position and earlier content of rows that grew, oldest first.
    trail: Vec<(u32, Row<W>)>,
    /// Writes and reads of the graph that is loaded.
    writers: Vec<Row<W>>,
    reads: Vec<(u16, u16, u16)>,
    /// Per relation of the engine's choices: the rows that grow.
    gained: Vec<Row<W>>,
    /// Reads whose `fr` is settled.
    derived: usize,
    new_writers: bool,
}

/// A graph to go back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    trail: usize,
    reads: usize,
}

impl Point {
    /// Whether more was done to get here than to get to `other`, which lies on the way.
    pub(crate) fn is_behind(self, other: Point) -> bool {
        self.trail > other.trail || self.reads > other.reads
    }
}

impl<const W: usize> Machine<W> {
    /// Starts from the empty graph, in a universe just prepared; the registers hold what follows from nothing.
    pub(crate) fn begin(&mut self, cells: usize) {
        let rows = self.registers as usize * self.n;
        let change = &mut self.change;
        bits::room(&mut change.delta, rows);
        change.dirty.clear();
        change.dirty.resize(self.registers as usize, bits::empty());
        change.trail.clear();
        change.writers.clear();
        change.writers.resize(cells, bits::empty());
        change.reads.clear();
        change.gained.clear();
        change.gained.resize(self.inputs.len(), bits::empty());
        (change.derived, change.new_writers) = (0, false);
    }

    /// The graph that is loaded, to come back to.
    pub(crate) fn point(&self) -> Point {
        Point { trail: self.change.trail.len(), reads: self.change.reads.len() }
    }

    /// Goes back to an earlier graph.
    pub(crate) fn back(&mut self, to: Point) {
        self.settled();
        while self.change.trail.len() > to.trail {
            let Some((at, row)) = self.change.trail.pop() else { return };
            if at >= WRITERS {
                self.change.writers[(at - WRITERS) as usize] = row;
            } else {
                self.values[at as usize] = row;
            }
        }
        self.change.reads.truncate(to.reads);
        self.change.derived = self.change.reads.len();
    }

    /// Forgets what is new.
    pub(crate) fn settled(&mut self) {
        let n = self.n;
        let change = &mut self.change;
        while let Some(register) = change.touched.pop() {
            let at = register as usize * n;
            for row in bits::iter(&change.dirty[register as usize]) {
                change.delta[at + row] = bits::empty();
            }
            change.dirty[register as usize] = bits::empty();
        }
        change.derived = change.reads.len();
        change.new_writers = false;
    }

    /// Rows of a register with something new.
    #[inline]
    fn dirty(&self, register: u32) -> Row<W> {
        self.change.dirty[register as usize]
    }

    #[inline]
    fn value(&self, register: u32, row: usize) -> Row<W> {
        self.values[register as usize * self.n + row]
    }

    #[inline]
    fn delta(&self, register: u32, row: usize) -> Row<W> {
        self.change.delta[register as usize * self.n + row]
    }

    /// Adds pairs to a row; those that are there already change nothing.
    #[inline]
    fn grow(&mut self, register: u32, row: usize, pairs: &Row<W>) {
        let at = register as usize * self.n + row;
        let old = self.values[at];
        let new = bits::minus(pairs, &old);
        if bits::is_empty(&new) {
            return;
        }
        #[expect(clippy::cast_possible_truncation, reason = "registers times events stay far below")]
        self.change.trail.push((at as u32, old));
        bits::or(&mut self.values[at], &new);
        bits::or(&mut self.change.delta[at], &new);
        let dirty = &mut self.change.dirty[register as usize];
        if bits::is_empty(dirty) {
            self.change.touched.push(register);
        }
        bits::set(dirty, row);
    }

    /// Puts `a -> b` into a register that holds a closed relation; whether that makes a cycle.
    pub(crate) fn insert(&mut self, register: u32, a: usize, b: usize) -> bool {
        let after = self.value(register, b);
        if !bits::has(&self.value(register, a), b) {
            let mut after = after;
            bits::set(&mut after, b);
            for i in 0..self.n {
                if i == a || bits::has(&self.value(register, i), a) {
                    self.grow(register, i, &after);
                }
            }
        }
        a == b || bits::has(&after, a)
    }

    /// Takes over what a larger graph has chosen; `None` if it is no larger one than that which is loaded, otherwise
    /// whether a coherence choice makes a cycle.
    pub(crate) fn load(&mut self, inputs: &Inputs<W>) -> Option<bool> {
        let everyone = bits::first::<W>(self.n);
        let known = self.change.reads.len();
        let extends = inputs.cells.reads.len() >= known
            && inputs.cells.reads[..known] == self.change.reads[..]
            && inputs.cells.writers.len() == self.change.writers.len();
        if !extends {
            return None;
        }
        // Nothing is taken over before all is known to have grown.
        let writers = inputs.cells.writers != self.change.writers;
        let removed = |(now, was): (&Row<W>, &Row<W>)| !bits::is_empty(&bits::minus(was, now));
        if writers && inputs.cells.writers.iter().zip(&self.change.writers).any(removed) {
            return None;
        }
        let chosen = gained(self.rows(CHOSEN), &inputs.rels[rels::CO], &everyone)?;
        for i in 0..self.inputs.len() {
            let (relation, register) = self.inputs[i];
            self.change.gained[i] = gained(self.rows(register), &inputs.rels[relation], &everyone)?;
        }
        for cell in (0..inputs.cells.writers.len()).filter(|_| writers) {
            let (now, was) = (inputs.cells.writers[cell], self.change.writers[cell]);
            if now != was {
                let cell_number = u32::try_from(cell).expect("a graph has less than 2^31 cells");
                let at = WRITERS | cell_number;
                self.change.trail.push((at, was));
                self.change.writers[cell] = now;
                self.change.new_writers = true;
            }
        }
        self.change.reads.extend_from_slice(&inputs.cells.reads[known..]);
        for i in 0..self.inputs.len() {
            let (relation, register) = self.inputs[i];
            for row in bits::iter(&self.change.gained[i]) {
                self.grow(register, row, &bits::and(&inputs.rels[relation][row], &everyone));
            }
        }
        let mut cycle = false;
        for row in bits::iter(&chosen) {
            let new =
                bits::minus(&bits::and(&inputs.rels[rels::CO][row], &everyone), &self.value(CHOSEN, row));
            self.grow(CHOSEN, row, &new);
            for to in bits::iter(&new) {
                cycle |= self.insert(CO, row, to);
            }
        }
        Some(cycle)
    }

    /// What a graph has in common with the one that is loaded, as far as [`Self::load`] looks at it.
    pub(crate) fn common(&self, inputs: &Inputs<W>, out: &mut Inputs<W>) {
        let both = |(a, b): (&Row<W>, &Row<W>)| bits::and(a, b);
        let pairs = inputs.cells.reads.iter().zip(&self.change.reads);
        let alike = pairs.take_while(|(a, b)| a == b).count();
        out.n = inputs.n;
        out.cells.reads.clear();
        out.cells.reads.extend_from_slice(&inputs.cells.reads[..alike]);
        out.cells.writers.clear();
        out.cells.writers.extend(inputs.cells.writers.iter().zip(&self.change.writers).map(both));
        let loaded = self.inputs.iter().map(|(relation, register)| (*relation, *register));
        for (relation, register) in loaded.chain([(rels::CO, CHOSEN)]) {
            let rows = inputs.rels[relation].iter().zip(self.rows(register)).map(both);
            out.rels[relation].iter_mut().zip(rows).for_each(|(to, row)| *to = row);
        }
    }

    /// `fr` and `torn` from what is loaded and the present `co`, cell by cell.
    pub(crate) fn derive(&mut self, (fr, torn): (u32, u32)) {
        if !self.uses_fr && !self.uses_torn {
            return;
        }
        let all = self.change.new_writers || !bits::is_empty(&self.dirty(CO));
        let start = if all { 0 } else { self.change.derived };
        let (mut seen, mut several) = (bits::empty::<W>(), false);
        for i in start..self.change.reads.len() {
            let (read, cell, source) = self.change.reads[i];
            let later = bits::and(&self.value(CO, source as usize), &self.change.writers[cell as usize]);
            self.grow(fr, read as usize, &later);
        }
        if !self.uses_torn {
            return;
        }
        for (read, ..) in &self.change.reads {
            several |= bits::has(&seen, *read as usize);
            bits::set(&mut seen, *read as usize);
        }
        if several && (all || start < self.change.reads.len()) {
            self.tear(torn);
        }
    }

    /// A read and a write of which it saw one cell, while in another cell it saw something older.
    fn tear(&mut self, torn: u32) {
        for i in 0..self.change.reads.len() {
            let (read, _, source) = self.change.reads[i];
            for j in 0..self.change.reads.len() {
                let (other, second, older) = self.change.reads[j];
                let source = source as usize;
                let shared = other == read && bits::has(&self.change.writers[second as usize], source);
                if shared && bits::has(&self.value(CO, older as usize), source) {
                    self.grow(torn, read as usize, &single(source));
                }
            }
        }
    }

    /// Rows of a register that gained something, with what is wanted there and is not in `order`.
    pub(crate) fn wanted(&self, register: u32, order: u32, all: bool) -> Vec<(usize, Row<W>)> {
        let rows = if all { bits::first::<W>(self.n) } else { self.dirty(register) };
        if bits::is_empty(&rows) {
            return Vec::new();
        }
        let missing = |row: usize| (row, bits::minus(&self.value(register, row), &self.value(order, row)));
        bits::iter(&rows).map(missing).filter(|(_, row)| !bits::is_empty(row)).collect()
    }

    /// Carries what is new through one instruction; the check that fails, if it is one.
    #[inline]
    pub(crate) fn advance(&mut self, inst: &Inst) -> Option<CheckId> {
        match *inst {
            Inst::Compute { op, .. } => {
                let (a, b) = (self.dirty(op.a), self.dirty(op.b));
                let mask = op.c != ZERO && !bits::is_empty(&self.dirty(op.c));
                if mask || !bits::is_empty(&a) || !bits::is_empty(&b) {
                    self.extend(op, &a, &b);
                }
                None
            }
            Inst::Solve(group) => {
                self.solve_again(group as usize);
                None
            }
            Inst::Check { id, property, at, .. } => {
                let dirty = self.dirty(at);
                (!bits::is_empty(&dirty) && self.breaks(property, at, &dirty)).then_some(id)
            }
            Inst::Crossing { id, a, b } => self.crosses_anew(a, b).then_some(id),
        }
    }

    /// Whether what is new breaks a property that held.
    fn breaks(&self, property: Property, at: u32, dirty: &Row<W>) -> bool {
        match property {
            Property::Empty => true,
            Property::Irreflexive => bits::iter(dirty).any(|i| bits::has(&self.delta(at, i), i)),
            Property::Acyclic => bits::iter(dirty).any(|i| {
                // A new cycle goes through a new pair: is there a way back?
                let mut reached = self.delta(at, i);
                let mut left = reached;
                while let Some(next) = bits::lowest(&left) {
                    bits::clear(&mut left, next);
                    let new = bits::minus(&self.value(at, next), &reached);
                    bits::or(&mut reached, &new);
                    bits::or(&mut left, &new);
                    if bits::has(&reached, i) {
                        return true;
                    }
                }
                bits::has(&reached, i)
            }),
        }
    }

    fn crosses_anew(&self, a: u32, b: u32) -> bool {
        let (first, second) = (self.dirty(a), self.dirty(b));
        bits::iter(&first).any(|x| bits::iter(&self.delta(a, x)).any(|y| bits::has(&self.value(b, y), x)))
            || bits::iter(&second)
                .any(|y| bits::iter(&self.delta(b, y)).any(|x| bits::has(&self.value(a, x), y)))
    }

    /// What the deltas of the operands add to the result.
    fn extend(&mut self, op: Op3, new_a: &Row<W>, new_b: &Row<W>) {
        let Op3 { op: kind, out, a, b, .. } = op;
        match kind {
            Op::Union => {
                self.grow_by(out, a, new_a);
                self.grow_by(out, b, new_b);
            }
            Op::Inter => {
                for i in bits::iter(new_a) {
                    self.grow(out, i, &bits::and(&self.delta(a, i), &self.value(b, i)));
                }
                for i in bits::iter(new_b) {
                    self.grow(out, i, &bits::and(&self.value(a, i), &self.delta(b, i)));
                }
            }
            Op::Diff => {
                for i in bits::iter(new_a) {
                    self.grow(out, i, &bits::minus(&self.delta(a, i), &self.value(b, i)));
                }
            }
            Op::Seq | Op::SeqUnder => self.compose(op, new_a, new_b),
            Op::Inverse => {
                for i in bits::iter(new_a) {
                    let back = single(i);
                    for j in bits::iter(&self.delta(a, i)) {
                        self.grow(out, j, &back);
                    }
                }
            }
            Op::Plus | Op::Star => self.close_over(out, a, new_a),
            Op::PlusOver => self.close_over(out, b, new_b),
            Op::Opt => self.grow_by(out, a, new_a),
            Op::Rows | Op::Columns | Op::Cross | Op::Lift | Op::Domain | Op::Range => {
                self.restrict(op, new_a, new_b);
            }
            Op::Complement => unreachable!("what shrinks is judged at leaves"),
        }
    }

    /// All that is new in one register is new in another.
    fn grow_by(&mut self, out: u32, from: u32, rows: &Row<W>) {
        for i in bits::iter(rows) {
            self.grow(out, i, &self.delta(from, i));
        }
    }

    /// `a ; b`, perhaps under a mask.
    fn compose(&mut self, Op3 { op, out, a, b, c }: Op3, new_a: &Row<W>, new_b: &Row<W>) {
        let under = matches!(op, Op::SeqUnder);
        let masked = empty_unless(under, || self.dirty(c));
        let some = bits::is_empty(new_b) && bits::is_empty(&masked);
        let rows = if some { *new_a } else { bits::first::<W>(self.n) };
        for i in bits::iter(&rows) {
            let row = self.value(a, i);
            let mask = if under { self.value(c, i) } else { [u64::MAX; W] };
            if bits::is_empty(&row) || bits::is_empty(&mask) {
                continue;
            }
            let more = if bits::has(&masked, i) {
                self.through(&row, b)
            } else {
                let mut more = empty_unless(bits::has(new_a, i), || self.through(&self.delta(a, i), b));
                let via = bits::and(&row, new_b);
                if !bits::is_empty(&via) {
                    bits::or(&mut more, &self.through_new(&via, b));
                }
                more
            };
            self.grow(out, i, &bits::and(&more, &mask));
        }
    }

    /// Between sets and relations: a set is row 0.
    fn restrict(&mut self, Op3 { op, out, a, b, .. }: Op3, new_a: &Row<W>, new_b: &Row<W>) {
        match op {
            Op::Rows => {
                let rows = self.value(a, 0);
                for i in bits::iter(new_b).filter(|i| bits::has(&rows, *i)) {
                    self.grow(out, i, &self.delta(b, i));
                }
                for i in bits::iter(&empty_unless(bits::has(new_a, 0), || self.delta(a, 0))) {
                    self.grow(out, i, &self.value(b, i));
                }
            }
            Op::Columns => {
                let columns = self.value(b, 0);
                for i in bits::iter(new_a) {
                    self.grow(out, i, &bits::and(&self.delta(a, i), &columns));
                }
                let more = empty_unless(bits::has(new_b, 0), || self.delta(b, 0));
                for i in (0..self.n).filter(|_| !bits::is_empty(&more)) {
                    self.grow(out, i, &bits::and(&self.value(a, i), &more));
                }
            }
            Op::Cross => {
                let (rows, columns) = (self.value(a, 0), self.value(b, 0));
                for i in bits::iter(&rows) {
                    self.grow(out, i, &columns);
                }
            }
            Op::Lift => {
                for i in bits::iter(&self.delta(a, 0)) {
                    self.grow(out, i, &single(i));
                }
            }
            Op::Domain => self.grow(out, 0, new_a),
            Op::Range => {
                for i in bits::iter(new_a) {
                    self.grow(out, 0, &self.delta(a, i));
                }
            }
            _ => unreachable!("`extend` does the others"),
        }
    }

    /// Inserts the new pairs of `from` into the closed relation `out`.
    fn close_over(&mut self, out: u32, from: u32, rows: &Row<W>) {
        for i in bits::iter(rows) {
            for j in bits::iter(&self.delta(from, i)) {
                self.insert(out, i, j);
            }
        }
    }

    /// All that some row among these leads to.
    #[inline]
    fn through(&self, rows: &Row<W>, relation: u32) -> Row<W> {
        let mut reached = bits::empty();
        for j in bits::iter(rows) {
            bits::or(&mut reached, &self.value(relation, j));
        }
        reached
    }

    #[inline]
    fn through_new(&self, rows: &Row<W>, relation: u32) -> Row<W> {
        let mut reached = bits::empty();
        for j in bits::iter(rows) {
            bits::or(&mut reached, &self.delta(relation, j));
        }
        reached
    }

    /// A recursive group is solved from nothing when something it uses is new.
    fn solve_again(&mut self, group: usize) {
        let uses = |inst: &Inst| match *inst {
            Inst::Compute { op, .. } => [op.a, op.b, op.c],
            _ => [ZERO; 3],
        };
        let clean = |r: u32| bits::is_empty(&self.dirty(r));
        let solved = &self.groups[group];
        let bodies = solved.pairs.iter().map(|p| p.1);
        if solved.insts.iter().flat_map(uses).chain(bodies).all(clean) {
            return;
        }
        let made = |inst: &Inst| match *inst {
            Inst::Compute { op, .. } => op.out,
            _ => ZERO,
        };
        let registers: Vec<u32> =
            solved.insts.iter().map(made).chain(solved.pairs.iter().map(|p| p.0)).collect();
        let before: Vec<Row<W>> = registers.iter().flat_map(|r| self.rows(*r).iter().copied()).collect();
        self.solve(group);
        for (k, register) in registers.iter().enumerate() {
            for row in 0..self.n {
                let at = *register as usize * self.n + row;
                let now = std::mem::replace(&mut self.values[at], before[k * self.n + row]);
                self.grow(*register, row, &now);
            }
        }
    }
}

/// The rows that have more now; `None` if some have less.
#[inline]
fn gained<const W: usize>(was: &[Row<W>], now: &[Row<W>], everyone: &Row<W>) -> Option<Row<W>> {
    // Most relations are as they were, and that is soon seen.
    let mut other = bits::empty::<W>();
    for (was, now) in was.iter().zip(now) {
        for w in 0..W {
            other[w] |= was[w] ^ (now[w] & everyone[w]);
        }
    }
    let (mut lost, mut rows) = (bits::empty(), bits::empty());
    if bits::is_empty(&other) {
        return Some(rows);
    }
    for (i, (was, now)) in was.iter().zip(now).enumerate() {
        let now = bits::and(now, everyone);
        bits::or(&mut lost, &bits::minus(was, &now));
        if *was != now {
            bits::set(&mut rows, i);
        }
    }
    bits::is_empty(&lost).then_some(rows)
}

fn single<const W: usize>(event: usize) -> Row<W> {
    let mut row = bits::empty();
    bits::set(&mut row, event);
    row
}

#[inline]
fn empty_unless<const W: usize>(some: bool, row: impl FnOnce() -> Row<W>) -> Row<W> {
    if some { row() } else { bits::empty() }
}

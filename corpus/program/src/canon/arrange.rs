//! Builds the program that a thread order determines: everything else is numbered by first use.
//!
//! Contract: the result has the meaning of the source. Objects, names and registers that no body and no condition mentions
//! are left out, and so is whether the text says that all CTAs are one cluster.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{condition, names};
use crate::ir::{
    AsyncCopy, Commit, CtaGroup, Guard, Label, Object, ObjectId, Op, Operand, Placement, Program, Proxy, Reg,
    RegDecl, RegInit, Scope, Symbol, SymbolId, Tcgen05, Thread,
};
use crate::registers;

/// `program` with its threads in `order` (a subset of them, for colouring); `values` allows renaming values.
pub(super) fn arrange(program: &Program, order: &[usize], values: bool) -> Program {
    let state = RefCell::new(State::new(program, values));
    let mut threads = Vec::with_capacity(order.len());
    for (n, &t) in order.iter().enumerate() {
        let mut thread = body(&program.threads[t], &state);
        thread.name = format!("P{n}");
        threads.push(thread);
    }
    let mut state = state.into_inner();
    let complete = order.len() == program.threads.len();
    let mut rename = condition::Rename::new(program, order, &mut state);
    let conditions = if complete { rename.conditions() } else { Vec::new() };
    let filter = if complete { rename.filter() } else { None };
    for (n, &t) in order.iter().enumerate() {
        threads[n].regs = state.registers(&program.threads[t], t);
    }
    places(program, order, &mut threads);
    let (objects, symbols) = state.memory();
    let (launched, one_cluster) = (program.launched, false);
    let mut result =
        Program { name: String::new(), objects, symbols, threads, launched, one_cluster, filter, conditions };
    state.fix_operands(&mut result);
    result
}

/// The numbers assigned so far. Symbols are numbered by class (object, virtual address, proxy) in order of first use;
/// their final position in the table is known only at the end.
pub(super) struct State<'p> {
    program: &'p Program,
    values: Option<BTreeMap<i128, i128>>,
    objects: Vec<ObjectId>,
    /// One symbol of each class, in order of first use.
    classes: Vec<SymbolId>,
    regs: BTreeMap<usize, Vec<Reg>>,
    thread: usize,
}

impl<'p> State<'p> {
    fn new(program: &'p Program, values: bool) -> Self {
        let values = values.then(|| BTreeMap::from([(0, 0)]));
        State { program, values, objects: Vec::new(), classes: Vec::new(), regs: BTreeMap::new(), thread: 0 }
    }

    fn object(&mut self, object: ObjectId) {
        if !self.objects.contains(&object) {
            self.objects.push(object);
        }
    }

    /// The class of a symbol: a number that `fix_operands` replaces by the final index.
    pub(super) fn symbol(&mut self, id: SymbolId) -> SymbolId {
        let symbol = &self.program.symbols[id.index()];
        self.object(symbol.object);
        symbol.multimem.iter().for_each(|o| self.object(*o));
        let same = |other: &SymbolId| {
            let o = &self.program.symbols[other.index()];
            (o.object, o.virt, o.proxy, &o.multimem)
                == (symbol.object, symbol.virt, symbol.proxy, &symbol.multimem)
        };
        let at = self.classes.iter().position(same).unwrap_or_else(|| {
            self.classes.push(id);
            self.classes.len() - 1
        });
        SymbolId::at(at)
    }

    /// The class through which conditions read an object: the first of the object.
    pub(super) fn content(&mut self, id: SymbolId) -> SymbolId {
        let symbol = &self.program.symbols[id.index()];
        let first = self.classes.iter().position(|c| {
            let c = &self.program.symbols[c.index()];
            c.object == symbol.object && c.multimem.is_empty()
        });
        match first {
            Some(at) if symbol.multimem.is_empty() => SymbolId::at(at),
            _ => self.symbol(id),
        }
    }

    pub(super) fn reg(&mut self, thread: usize, reg: Reg) -> Reg {
        let regs = self.regs.entry(thread).or_default();
        let at = regs.iter().position(|r| *r == reg).unwrap_or_else(|| {
            regs.push(reg);
            regs.len() - 1
        });
        Reg::at(at)
    }

    fn use_reg(&mut self, reg: Reg) -> Reg {
        let thread = self.thread;
        let known = self.regs.get(&thread).is_some_and(|r| r.contains(&reg));
        if let (false, RegInit::Address(symbol)) =
            (known, &self.program.threads[thread].regs[reg.index()].init)
        {
            self.symbol(*symbol);
        }
        self.reg(thread, reg)
    }

    pub(super) fn value(&mut self, value: i128) -> i128 {
        let Some(values) = &mut self.values else { return value };
        let next = i128::try_from(values.len()).expect("a length fits 128 bits");
        *values.entry(value).or_insert(next)
    }

    fn registers(&mut self, thread: &Thread, index: usize) -> Vec<RegDecl> {
        let used = self.regs.get(&index).cloned().unwrap_or_default();
        let mut decls = Vec::with_capacity(used.len());
        for (n, reg) in used.iter().enumerate() {
            let init = match &thread.regs[reg.index()].init {
                RegInit::Value(v) => RegInit::Value(*v),
                RegInit::Address(s) => RegInit::Address(self.symbol(*s)),
                RegInit::Lane => RegInit::Lane,
            };
            decls.push(RegDecl { name: format!("r{n}"), init });
        }
        decls
    }

    /// The final tables: for each object its defining symbol, then the others in order of first use.
    fn memory(&self) -> (Vec<Object>, Vec<Symbol>) {
        let mut objects = Vec::new();
        let mut symbols: Vec<Symbol> = Vec::new();
        for (n, id) in self.objects.iter().enumerate() {
            objects.push(Object { name: names::location(n), ..self.program.objects[id.index()].clone() });
        }
        symbols.extend(self.table().into_iter().map(|(_, symbol)| symbol));
        for symbol in &mut symbols {
            symbol.object = self.renumber(symbol.object);
            symbol.multimem = symbol.multimem.iter().map(|o| self.renumber(*o)).collect();
        }
        // `virt` still has its old value. The first generic symbol of the new table with that value replaces it.
        let old: Vec<(SymbolId, Proxy)> = symbols.iter().map(|s| (s.virt, s.proxy)).collect();
        for symbol in &mut symbols {
            let at = old.iter().position(|(virt, proxy)| *virt == symbol.virt && *proxy == Proxy::Generic);
            symbol.virt = SymbolId::at(at.expect("the table has the generic name of every alias"));
        }
        let mut counts: BTreeMap<(ObjectId, Proxy), usize> = BTreeMap::new();
        for (n, symbol) in symbols.iter_mut().enumerate() {
            let object = &objects[symbol.object.index()].name;
            let defining = symbol.virt.index() == n && !counts.contains_key(&(symbol.object, Proxy::Generic));
            let count = counts.entry((symbol.object, symbol.proxy)).or_default();
            symbol.name =
                if defining { object.clone() } else { names::symbol(object, symbol.proxy, (*count).max(1)) };
            *count += 1;
        }
        (objects, symbols)
    }

    /// Symbols of all objects in final order. Symbols that name several objects come last, after all of these objects.
    fn table(&self) -> Vec<(Option<usize>, Symbol)> {
        let mut all: Vec<_> = self.objects.iter().flat_map(|o| self.table_of(*o)).collect();
        all.sort_by_key(|(_, s)| !s.multimem.is_empty());
        all
    }

    /// Symbols of an object in final order, each with its class; `None` if only another symbol refers to it.
    fn table_of(&self, object: ObjectId) -> Vec<(Option<usize>, Symbol)> {
        let mut table: Vec<(Option<usize>, Symbol)> = Vec::new();
        let mine =
            self.classes.iter().enumerate().filter(|(_, c)| self.program.symbols[c.index()].object == object);
        for (class, id) in mine {
            let symbol = self.program.symbols[id.index()].clone();
            let generic =
                |s: &Symbol| s.virt == symbol.virt && s.proxy == Proxy::Generic && s.multimem.is_empty();
            if symbol.proxy != Proxy::Generic || !symbol.multimem.is_empty() {
                if !table.iter().any(|(_, s)| generic(s)) && symbol.multimem.is_empty() {
                    table.push((None, self.program.symbols[symbol.virt.index()].clone()));
                }
                table.push((Some(class), symbol));
            } else if let Some(at) = table.iter().position(|(_, s)| generic(s)) {
                table[at].0 = Some(class);
            } else {
                table.push((Some(class), symbol));
            }
        }
        if !table.iter().any(|(_, s)| s.proxy == Proxy::Generic && s.multimem.is_empty()) {
            let defining =
                self.program.symbols.iter().find(|s| s.object == object && s.proxy == Proxy::Generic);
            table.extend(defining.map(|s| (None, s.clone())));
        }
        table.sort_by_key(|(_, s)| !s.multimem.is_empty());
        table
    }

    fn renumber(&self, object: ObjectId) -> ObjectId {
        let at = self.objects.iter().position(|o| *o == object);
        ObjectId::at(at.expect("objects of arranged symbols are collected before"))
    }

    /// Replaces class numbers by final symbol indices.
    fn fix_operands(&self, result: &mut Program) {
        let flat: Vec<Option<usize>> = self.table().into_iter().map(|(class, _)| class).collect();
        let index = |class: SymbolId| {
            let at = flat.iter().position(|c| *c == Some(class.index()));
            SymbolId::at(at.expect("every class of an operand is in the table"))
        };
        for thread in &mut result.threads {
            for instr in &mut thread.body {
                registers::rewrite(&mut instr.op, &mut |r| r, &mut |operand| match operand {
                    Operand::Address(class) => Operand::Address(index(class)),
                    other => other,
                });
            }
            for reg in &mut thread.regs {
                if let RegInit::Address(class) = &mut reg.init {
                    *class = index(*class);
                }
            }
        }
        condition::map_symbols(result, &index);
    }
}

fn body(thread: &Thread, state: &RefCell<State<'_>>) -> Thread {
    let program = state.borrow().program;
    let index = program.threads.iter().position(|t| std::ptr::eq(t, thread)).unwrap_or(0);
    state.borrow_mut().thread = index;
    let mut result = Thread { regs: Vec::new(), ..thread.clone() };
    for instr in &mut result.body {
        instr.line = 0;
        if let Some(guard) = &mut instr.guard {
            *guard = Guard { reg: state.borrow_mut().use_reg(guard.reg), ..*guard };
        }
        let data = !matches!(instr.op, Op::Bar { .. } | Op::WarpSync { .. });
        let mut reg = |r: Reg| state.borrow_mut().use_reg(r);
        let mut operand = |o: Operand| match o {
            Operand::Reg(r) => Operand::Reg(state.borrow_mut().use_reg(r)),
            Operand::Address(s) => Operand::Address(state.borrow_mut().symbol(s)),
            Operand::Imm(v) if data => Operand::Imm(state.borrow_mut().value(v)),
            imm => imm,
        };
        registers::rewrite(&mut instr.op, &mut reg, &mut operand);
    }
    let mut targets: Vec<usize> = result
        .body
        .iter()
        .filter_map(|i| if let Op::Bra { target } = i.op { Some(target) } else { None })
        .collect();
    targets.sort_unstable();
    targets.dedup();
    result.labels =
        targets.into_iter().enumerate().map(|(n, at)| Label { name: format!("L{n}"), at }).collect();
    result
}

/// Position of a CTA among those of its cluster.
fn rank(program: &Program, place: &Placement) -> u16 {
    let all = program.threads.iter().map(|t| t.place).filter(|p| p.includes(Scope::Cluster, place));
    let mut ctas: Vec<u16> = all.map(|p| p.cta).collect();
    ctas.sort_unstable();
    ctas.dedup();
    ctas.iter().position(|c| *c == place.cta).and_then(|r| u16::try_from(r).ok()).unwrap_or(0)
}

/// Whether an instruction refers to CTAs of its cluster by rank: by an address, a mask or a pair.
fn asks_ranks(op: &Op) -> bool {
    matches!(op, Op::Mapa { .. } | Op::Tcgen05(Tcgen05::Commit(Commit { multicast: Some(_), .. })))
        || matches!(op, Op::AsyncCopy(AsyncCopy::Bulk(copy)) if copy.multicast.is_some() || copy.group.is_some())
        || op.cta_group() == Some(CtaGroup::Two)
}

/// Whether an instruction reaches only the lanes of tensor memory that belong to its warp's number modulo 4.
fn asks_quarter(op: &Op) -> bool {
    matches!(op, Op::Tcgen05(Tcgen05::Load(_) | Tcgen05::Store(_)))
}

/// The new number of a warp: its position in `mine`, the warps of its CTA seen so far. With `quarters` it keeps its number
/// modulo 4.
fn warp_number(mine: &mut Vec<u16>, warp: u16, quarters: bool) -> u16 {
    if !mine.contains(&warp) {
        mine.push(warp);
    }
    let step = if quarters { 4 } else { 1 };
    let same = mine.iter().filter(|w| *w % step == warp % step);
    let at = same.take_while(|w| **w != warp).count();
    u16::try_from(at).expect("a program has less than 2^14 warps") * step
        + if quarters { warp % step } else { 0 }
}

/// Renumbers places level by level in thread order. Grids keep their order within a stream, because it has a meaning. CTAs
/// keep their order in a cluster if the program refers to ranks. Warps keep their number modulo 4 if one of them reads or
/// writes tensor memory. Lanes keep their numbers.
fn places(program: &Program, order: &[usize], threads: &mut [Thread]) {
    type Key = [u16; 6];
    fn number(seen: &mut Vec<Key>, key: Key) -> u16 {
        let at = seen.iter().position(|k| *k == key).unwrap_or_else(|| {
            seen.push(key);
            seen.len() - 1
        });
        u16::try_from(at).expect("a program has less than 2^16 threads")
    }
    let quarters = program.threads.iter().flat_map(|t| &t.body).any(|i| asks_quarter(&i.op));
    let ranked = program.threads.iter().flat_map(|t| &t.body).any(|i| asks_ranks(&i.op));
    let mut seen: [Vec<Key>; 5] = Default::default();
    let mut warps: BTreeMap<Key, Vec<u16>> = BTreeMap::new();
    for (n, &t) in order.iter().enumerate() {
        let p = program.threads[t].place;
        if p.host {
            threads[n].place = Placement { host: true, ..Placement::default() };
            continue;
        }
        let mut grids: Vec<u16> = program
            .threads
            .iter()
            .map(|o| o.place)
            .filter(|o| !o.host && (o.gpu, o.stream) == (p.gpu, p.stream))
            .map(|o| o.grid)
            .collect();
        grids.sort_unstable();
        grids.dedup();
        let grid = grids.iter().position(|g| *g == p.grid).and_then(|g| u16::try_from(g).ok()).unwrap_or(0);
        let cta = [p.gpu, p.stream, p.grid, p.cluster, p.cta, 0];
        let cta_number = if ranked { rank(program, &p) } else { number(&mut seen[3], cta) };
        let warp = warp_number(warps.entry(cta).or_default(), p.warp, quarters);
        threads[n].place = Placement {
            host: false,
            gpu: number(&mut seen[0], [p.gpu, 0, 0, 0, 0, 0]),
            stream: number(&mut seen[1], [p.gpu, p.stream, 0, 0, 0, 0]),
            grid,
            cluster: number(&mut seen[2], [p.gpu, p.stream, p.grid, p.cluster, 0, 0]),
            cta: cta_number,
            warp,
            mask: p.mask,
            joined: p.joined,
        };
    }
}

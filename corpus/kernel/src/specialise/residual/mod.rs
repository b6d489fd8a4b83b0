//! Makes the residual program from the items of the warps.
//!
//! Footprints become places in named objects, lane masks become predicates on `%laneid`, jumps become branches.

mod agree;
pub(crate) mod apart;
mod boxes;
mod layout;
mod maps;
mod marks;
pub(super) mod tidy;

use super::item::{Item, Late, Manner, Placed, Trace};
use super::lanes::{self, Strand};
use super::launch::Here;
use super::plan::PERIODS;
use super::queue::{self, Grid};
use super::touch::{Kind, Mem, Touch};
use crate::Refusal;
use layout::Layout;
use moire_program::edit::retain;
use moire_program::ir::*;
use moire_program::limits::{INSTRUCTIONS, REGISTERS};
use moire_program::{barrier_op, jump_op, multimem_op, register_op};
use std::collections::{BTreeMap, BTreeSet};

/// The scope in which stores of agreed numbers are relaxed, so that they do not race with each other. What they do race with
/// are `marks`.
pub(super) const AGREED: Scope = Scope::Cta;

/// What data has in place of its numbers, which are not followed: no number that a kernel is likely to compare with.
pub(super) fn strange(ty: Ty) -> i128 {
    let bits = (8 * ty.bytes()).min(64);
    i128::from(0x9e37_79b9_7f4a_7c15_u64 >> (64 - bits.max(1)))
}

/// What all warps have left, ready to become programs.
pub(crate) struct Residue {
    /// By warp.
    pub(crate) items: Vec<Vec<Placed>>,
    late: Vec<Vec<Late>>,
    /// Registers of the items, by warp.
    counts: Vec<usize>,
}

/// Gives agreed words their copies and boxes their sizes, and drops what no one can notice.
pub(crate) fn residue(places: &[Here], mut traces: Vec<Trace>) -> Result<Residue, Refusal> {
    let late = traces.iter_mut().map(|t| std::mem::take(&mut t.late)).collect();
    let mut counts: Vec<usize> = traces.iter().map(|t| t.regs).collect();
    let mut items: Vec<Vec<Placed>> = traces.into_iter().map(|t| t.items).collect();
    agree::split(&mut items, &mut counts)?;
    boxes::measure(places, &mut items)?;
    maps::drop_constant_maps(&mut items);
    Ok(Residue { items, late, counts })
}

/// How the kernels of a program call things, in the order of their grids.
pub(crate) struct Names<'a> {
    pub(crate) grids: &'a [Grid<'a>],
}

impl Names<'_> {
    /// The memory behind a parameter.
    fn param(&self, memory: u16) -> String {
        match queue::owner(self.grids, memory) {
            Some((grid, n)) if grid > 0 => format!("grid{grid}_param{n}"),
            _ => format!("param{memory}"),
        }
    }

    /// The variable at an offset of shared memory, and its start.
    fn shared(&self, mem: Mem, at: u32) -> (String, u32) {
        self.grids[mem.grid()].kernel.map().named(at)
    }

    /// The thread of a warp; `many` if a grid has several CTAs.
    fn warp(&self, here: &Here, many: bool) -> String {
        let grid = if self.grids.len() > 1 { format!("grid{}_", here.grid) } else { String::new() };
        let cta = if many { format!("cta{}_", here.in_grid()) } else { String::new() };
        format!("{grid}{cta}warp{}", here.warp)
    }
}

/// The program of the `chosen` warps, by position in `places`.
pub(crate) fn program(
    names: &Names<'_>,
    places: &[Here],
    residue: &Residue,
    chosen: &[usize],
) -> Result<Program, Refusal> {
    let items: Vec<&[Placed]> = chosen.iter().map(|w| residue.items[*w].as_slice()).collect();
    let warps = Layout::new(names, &items)?;
    let of = |w: &usize| (&places[*w], residue.items[*w].as_slice(), residue.late[*w].as_slice());
    let each: Vec<(&Here, &[Placed], &[Late])> = chosen.iter().map(of).collect();
    let mut strands = lanes::strands(&each, &|touch| !warps.contested(touch).is_empty())?;
    let ctas: Vec<u32> = strands.iter().map(|s| places[chosen[s.warp]].cta).collect();
    let marked = marks::mark(&mut strands, &ctas);
    let parted = marked || strands.len() > items.len();
    let items: Vec<&[Placed]> = strands.iter().map(|s| s.items.as_slice()).collect();
    let mut layout = if parted { Layout::new(names, &items)? } else { warps };
    make_room(&mut layout, &items)?;
    let mut program = Program {
        name: names.grids[0].kernel.name.chars().take(100).collect(),
        objects: layout.objects.clone(),
        symbols: Vec::new(),
        threads: Vec::new(),
        launched: true,
        one_cluster: false,
        filter: None,
        conditions: Vec::new(),
    };
    for n in (0u16..).take(program.objects.len()) {
        let (object, virt) = (ObjectId(n), SymbolId(n));
        let name = plain_name(&program.objects[object.index()].name);
        program.symbols.push(Symbol { name, object, virt, proxy: Proxy::Generic, multimem: vec![] });
    }
    for (object, symbol) in program.objects.iter_mut().zip(&program.symbols) {
        object.name.clone_from(&symbol.name);
    }
    let many = places.iter().any(|p| p.in_grid() > 0);
    for strand in &strands {
        let warp = chosen[strand.warp];
        let (here, regs) = (&places[warp], residue.counts[warp]);
        let name = names.warp(here, many) + &strand.suffix(here.lanes);
        program.threads.push(thread(name, here, strand, regs, &layout)?);
    }
    program.threads.extend(chooser(&layout, &items));
    let starts: Vec<Thread> = (1..names.grids.len()).filter_map(|n| start(names, n, &program)).collect();
    program.threads.extend(starts);
    Ok(program)
}

/// A thread that shows when a grid starts, if none of these threads does: one that only waits for the grids ahead, as others of
/// the grid do, or could; or an empty one of a grid of which no thread is here.
fn start(names: &Names<'_>, grid: usize, program: &Program) -> Option<Thread> {
    let wait = || Op::Control(Control::WaitDependencies);
    let number = u16::try_from(grid).ok()?;
    let line = queue::waits(names.grids[grid].kernel);
    let own = || program.threads.iter().filter(|t| t.place.grid == number);
    let waits = own().flat_map(|t| &t.body).any(|i| i.op == wait());
    let around = |after: bool| program.threads.iter().any(|t| (t.place.grid >= number) == after);
    if line.is_some() != own().next().is_some() || waits || !around(true) || !around(false) {
        return None;
    }
    let place = Placement { grid: number, cluster: u16::MAX, cta: u16::MAX, ..Placement::default() };
    let body = line.into_iter().map(|line| Instr { line, ..Instr::new(wait()) }).collect();
    let name = format!("grid{grid}_start");
    Some(Thread { name, place, regs: vec![], labels: vec![], body })
}

/// The name of the thread that sets choices.
pub const CHOOSER: &str = "choices";

/// A thread of a stream of its own that sets every choice, in any order with the reads of the warps.
fn chooser(layout: &Layout, items: &[&[Placed]]) -> Option<Thread> {
    let touches = items.iter().copied().flatten().flat_map(|placed| match &placed.item {
        Item::Op { touches, .. } => touches.as_slice(),
        _ => &[],
    });
    let places: BTreeSet<(ObjectId, u32, u32)> =
        touches.filter(|t| matches!(t.mem, Mem::Choice(..))).flat_map(|t| layout.find(t)).collect();
    let set = |(object, at, _): (ObjectId, u32, u32)| {
        let offset = i32::try_from(at).ok()?;
        let addr = Address { base: Operand::Address(SymbolId(object.0)), offset };
        let (order, proxy, space) = (StoreOrder::Relaxed(Scope::Sys), Proxy::Generic, Space::Global);
        Some(Instr::new(Op::Store { order, proxy, space, ty: Ty::U(32), addr, src: vec![Operand::Imm(1)] }))
    };
    let body: Vec<Instr> = places.into_iter().filter_map(set).collect();
    let place = Placement { stream: 1, ..Placement::default() };
    let name = CHOOSER.to_owned();
    (!body.is_empty()).then_some(Thread { name, place, regs: vec![], labels: vec![], body })
}

/// The contested places that a `cp.async` reads: memory, object, byte.
fn small_sources(layout: &Layout, from: &[Touch]) -> Vec<(Mem, ObjectId, u32)> {
    let of = |t: &Touch| layout.contested(t).into_iter().map(|(object, at, _)| (t.mem, object, at)).collect();
    from.iter().flat_map(|t: &Touch| -> Vec<_> { of(t) }).collect()
}

/// Makes destinations for copies that only read. A `cp.async` needs them if its source has more places than its
/// destination.
fn make_room(layout: &mut Layout, items: &[&[Placed]]) -> Result<(), Refusal> {
    let spare = |placed: &Placed| {
        let Item::Op { op, touches } = &placed.item else { return 0 };
        if !matches!(**op, Op::AsyncCopy(AsyncCopy::Small(_))) {
            return 0;
        }
        let sources = small_sources(layout, touches.get(1..).unwrap_or_default()).len();
        sources.saturating_sub(touches.first().map_or(0, |to| layout.classes(to, false).len()))
    };
    let spare = items.iter().copied().flatten().map(spare).sum();
    layout.make_room(spare)
}

/// The name without characters that native text does not allow.
fn plain_name(name: &str) -> String {
    let safe: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(80).collect();
    if safe.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') { safe } else { format!("v{safe}") }
}

/// A thread under construction.
struct Maker<'l> {
    here: &'l Here,
    layout: &'l Layout,
    thread: Thread,
    lane: Option<Reg>,
    masks: BTreeMap<u32, Reg>,
    /// The registers with addresses in other CTAs, by object and rank.
    remote: BTreeMap<(ObjectId, u32), Reg>,
    sink: Option<Reg>,
    /// Instructions that run before all others.
    first: Vec<Instr>,
    jumps: Vec<(usize, u32)>,
    labels: BTreeMap<u32, usize>,
}

fn thread(
    name: String,
    here: &Here,
    strand: &Strand,
    regs: usize,
    layout: &Layout,
) -> Result<Thread, Refusal> {
    let many = |_| Refusal::Bounded("too many warps".to_owned());
    let short = |n: u32| u16::try_from(n).map_err(many);
    let place = Placement {
        cluster: short(here.cluster)?,
        grid: short(here.grid)?,
        cta: short(here.in_grid())?,
        warp: short(here.warp)?,
        mask: strand.lanes,
        joined: strand.lanes.count_ones() > 1,
        ..Placement::default()
    };
    let decl = |n: usize| RegDecl { name: format!("r{n}"), init: RegInit::Value(0) };
    let regs = (0..regs).map(decl).collect();
    let thread = Thread { name, place, regs, labels: vec![], body: vec![] };
    let mut m = Maker {
        here,
        layout,
        thread,
        lane: None,
        masks: BTreeMap::new(),
        remote: BTreeMap::new(),
        sink: None,
        first: Vec::new(),
        jumps: Vec::new(),
        labels: BTreeMap::new(),
    };
    for placed in &strand.items {
        m.item(placed)?;
    }
    m.finish()
}

impl Maker<'_> {
    fn reg(&mut self, name: String, init: RegInit) -> Result<Reg, Refusal> {
        let number = u16::try_from(self.thread.regs.len()).map_err(|_| large())?;
        self.thread.regs.push(RegDecl { name, init });
        Ok(Reg(number))
    }

    fn before(&mut self, op: Op) {
        self.first.push(Instr::new(op));
    }

    /// A predicate that is true in the lanes of the mask.
    fn mask(&mut self, mask: u32) -> Result<Reg, Refusal> {
        if let Some(reg) = self.masks.get(&mask) {
            return Ok(*reg);
        }
        let lane = match self.lane {
            Some(lane) => lane,
            None => self.reg("lane".into(), RegInit::Lane)?,
        };
        self.lane = Some(lane);
        let ty = Ty::U(32);
        let reg = self.reg(format!("in{mask:x}"), RegInit::Value(0))?;
        if mask.count_ones() == 1 {
            let b = Operand::Imm(i128::from(mask.trailing_zeros()));
            self.before(Op::Setp { op: CmpOp::Eq, ty, dst: reg, a: Operand::Reg(lane), b });
        } else {
            let bits = self.reg(format!("bits{mask:x}"), RegInit::Value(0))?;
            let all = Operand::Imm(i128::from(mask));
            let (one, own) = (Operand::Imm(1), Operand::Reg(bits));
            self.before(Op::Mov { ty, dst: bits, src: all });
            self.before(Op::Alu { op: AluOp::Shr, ty, dst: bits, a: own, b: Operand::Reg(lane) });
            self.before(Op::Alu { op: AluOp::And, ty: Ty::B(32), dst: bits, a: own, b: one });
            self.before(Op::Setp { op: CmpOp::Ne, ty, dst: reg, a: own, b: Operand::Imm(0) });
        }
        self.masks.insert(mask, reg);
        Ok(reg)
    }

    fn push(&mut self, guard: Option<Guard>, op: Op, line: u32) {
        self.thread.body.push(Instr { guard, op, line, column: 0 });
    }

    fn jump(&mut self, guard: Option<Guard>, to: u32, line: u32) {
        self.jumps.push((self.thread.body.len(), to));
        self.push(guard, Op::Bra { target: 0 }, line);
    }

    fn item(&mut self, placed: &Placed) -> Result<(), Refusal> {
        let line = placed.line;
        let reg = placed.mask.map(|m| self.mask(m)).transpose()?;
        let guard = reg.map(|reg| Guard { reg, negated: false });
        match &placed.item {
            Item::Label(label) => drop(self.labels.insert(*label, self.thread.body.len())),
            Item::Jump(to) => self.jump(None, *to, line),
            Item::Branch { reg, to } => self.jump(Some(Guard { reg: *reg, negated: false }), *to, line),
            Item::Others { mask, to } => {
                let reg = self.mask(*mask)?;
                self.jump(Some(Guard { reg, negated: true }), *to, line);
            }
            Item::Met(lanes) => {
                let (dst, pred, mask) = (None, self.sink()?, Operand::Imm(i128::from(*lanes)));
                self.push(guard, Op::Control(Control::Elect { dst, pred, mask }), line);
            }
            Item::Open { .. } => {
                let trips = Trips::Free { name: PERIODS.to_owned(), least: 0, less: 0 };
                self.push(guard, Op::Control(Control::Repeat(trips)), line);
            }
            Item::Close { .. } => self.push(guard, Op::Control(Control::EndRepeat), line),
            Item::Exit => self.push(guard, Op::Exit, line),
            Item::Differ(touch) => {
                // An address before the start of every object, so the exploration abstains.
                let address = Address { offset: i32::MIN, ..self.whole(touch, line)?.0 };
                let (order, proxy, ty) = (LoadOrder::Weak, Proxy::Generic, Ty::U(8));
                let dst = vec![self.sink()?];
                let space = Space::SharedCta;
                self.push(guard, Op::Load { order, proxy, space, ty, dst, addr: address }, line);
            }
            Item::Data { write, manner, touch } => {
                for place in self.layout.contested(touch) {
                    let op = self.data(*write, manner, touch.mem, place)?;
                    self.push(guard, op, line);
                }
            }
            Item::Op { op, touches } => {
                if matches!(**op, Op::AsyncCopy(AsyncCopy::Small(_))) {
                    return self.small(guard, touches, line);
                }
                self.operation(guard, op, touches, line)?;
            }
        }
        Ok(())
    }

    /// Emits an instruction. A product of which a matrix lies in several places is emitted once for each of them: together these
    /// read what it reads, write what it writes, and are ordered as it is.
    fn operation(
        &mut self,
        guard: Option<Guard>,
        op: &Op,
        touches: &[Touch],
        line: u32,
    ) -> Result<(), Refusal> {
        let places: Vec<Vec<(Address, u32)>> =
            touches.iter().map(|t| self.places(t, line)).collect::<Result<_, _>>()?;
        for part in 0..places.iter().map(Vec::len).max().unwrap_or(0).max(1) {
            let mut op = op.clone();
            addresses(&mut op, &mut |address, bytes| {
                let Operand::Imm(n) = address.base else { return };
                let Some(places) = usize::try_from(n).ok().and_then(|n| places.get(n)) else { return };
                let Some((found, length)) = places.get(part).or(places.last()) else { return };
                *address = *found;
                bytes.into_iter().for_each(|b| *b = *length);
            });
            self.push(guard, op, line);
        }
        Ok(())
    }

    /// The places of a touch: one, or several of a product.
    fn places(&mut self, touch: &Touch, line: u32) -> Result<Vec<(Address, u32)>, Refusal> {
        if touch.kind != Kind::Matrix {
            return Ok(vec![self.whole(touch, line)?]);
        }
        let found = self.layout.find(touch);
        found.iter().map(|(object, at, bytes)| Ok((self.address(touch.mem, *object, *at)?, *bytes))).collect()
    }

    /// An access of data; one byte represents its class. A word that keeps its size is accessed as one, so that accesses of
    /// one size in the kernel do not differ in size here.
    fn data(
        &mut self,
        write: bool,
        manner: &Manner,
        mem: Mem,
        (object, at, length): (ObjectId, u32, u32),
    ) -> Result<Op, Refusal> {
        let addr = self.address(mem, object, at)?;
        let space = match mem.cta() {
            Some(cta) if cta == self.here.cta => Space::SharedCta,
            Some(_) => Space::SharedCluster,
            None => Space::Global,
        };
        let bits = match length {
            2 if at % 2 == 0 => 16,
            4 if at % 4 == 0 => 32,
            8 if at % 8 == 0 => 64,
            _ => 8,
        };
        let proxy = if *manner == Manner::Broken { Proxy::Texture } else { Proxy::Generic };
        let ty = Ty::U(bits);
        let strong = match manner {
            Manner::Weak | Manner::Broken | Manner::Same(_) => None,
            Manner::Relaxed(scope) => Some(*scope),
            Manner::Agreed(_) | Manner::Parted { .. } => Some(AGREED),
        };
        if write {
            let order = strong.map_or(StoreOrder::Weak, StoreOrder::Relaxed);
            let number = if bits >= 32 { strange(ty) } else { 0 };
            return Ok(Op::Store { order, proxy, space, ty, addr, src: vec![Operand::Imm(number)] });
        }
        let order = strong.map_or(LoadOrder::Weak, LoadOrder::Relaxed);
        Ok(Op::Load { order, proxy, space, ty, dst: vec![self.sink()?], addr })
    }

    /// Emits a `cp.async` of several lanes: one copy for each place of its destination. Each also reads one contested place
    /// of the source while there are any.
    fn small(&mut self, guard: Option<Guard>, touches: &[Touch], line: u32) -> Result<(), Refusal> {
        let Some((to, from)) = touches.split_first() else { return Ok(()) };
        let targets = self.layout.classes(to, false);
        let sources = small_sources(self.layout, from);
        for n in 0..targets.len().max(sources.len()) {
            let found = targets.get(n).copied();
            let (object, at, length) = found.map_or_else(|| self.layout.aside(), Ok)?;
            // The static rules require four aligned bytes; some places are smaller.
            let bytes = if length >= 4 && at % 4 == 0 { 4 } else { 1 };
            let dst = self.address(to.mem, object, at)?;
            let (src, read) = match sources.get(n) {
                Some((mem, object, at)) => (self.address(*mem, *object, *at)?, 1),
                None => (Address { base: Operand::Imm(0), offset: 0 }, 0),
            };
            let part = SmallPart::Bytes(Operand::Imm(read));
            let copy = SmallCopy { all_levels: true, dst, src, bytes, part };
            self.push(guard, Op::AsyncCopy(AsyncCopy::Small(copy)), line);
        }
        Ok(())
    }

    /// A register that is never read.
    fn sink(&mut self) -> Result<Reg, Refusal> {
        let sink = match self.sink {
            Some(sink) => sink,
            None => self.reg("data".into(), RegInit::Value(0))?,
        };
        self.sink = Some(sink);
        Ok(sink)
    }

    fn address(&mut self, mem: Mem, object: ObjectId, at: u32) -> Result<Address, Refusal> {
        let offset = i32::try_from(at).map_err(|_| Refusal::Bounded("an object too large".into()))?;
        let base = Operand::Address(SymbolId(object.0));
        let Some(cta) = mem.cta() else { return Ok(Address { base, offset }) };
        if cta == self.here.cta {
            return Ok(Address { base, offset });
        }
        let rank = (0u32..).zip(&self.here.peers).find(|(_, peer)| **peer == cta).map(|(rank, _)| rank);
        let rank = rank.ok_or_else(|| Refusal::about("shared memory of a CTA outside the cluster"))?;
        let reg = match self.remote.get(&(object, rank)) {
            Some(reg) => *reg,
            None => {
                let reg = self.reg(format!("at{}_{rank}", object.0), RegInit::Value(0))?;
                let rank_operand = Operand::Imm(i128::from(rank));
                self.before(Op::Mapa {
                    ty: Ty::U(32),
                    shared: true,
                    dst: reg,
                    src: base,
                    rank: rank_operand,
                });
                self.remote.insert((object, rank), reg);
                reg
            }
        };
        Ok(Address { base: Operand::Reg(reg), offset })
    }

    /// The place of a touch; refused if the layout has split it.
    fn whole(&mut self, touch: &Touch, line: u32) -> Result<(Address, u32), Refusal> {
        let found = self.layout.find(touch);
        match found.as_slice() {
            [(object, at, bytes)] => Ok((self.address(touch.mem, *object, *at)?, *bytes)),
            [(object, at, _), ..] if touch.kind.fixed() => Ok((self.address(touch.mem, *object, *at)?, 0)),
            _ => {
                let what =
                    "a copy or a matrix that overlaps others so that no order of bytes keeps all of them whole".to_owned();
                Err(Refusal::Abstained { what, line })
            }
        }
    }

    fn finish(mut self) -> Result<Thread, Refusal> {
        let shift = self.first.len();
        for (at, label) in &self.jumps {
            if let Op::Bra { target } = &mut self.thread.body[*at].op {
                let place = self.labels.get(label).ok_or_else(|| Refusal::about("a jump to nowhere"))?;
                *target = place + shift;
            }
        }
        let mut body = self.first;
        body.append(&mut self.thread.body);
        self.thread.body = body;
        straighten(&mut self.thread);
        if self.thread.body.len() > INSTRUCTIONS || self.thread.regs.len() > REGISTERS {
            return Err(large());
        }
        Ok(self.thread)
    }
}

fn large() -> Refusal {
    Refusal::Bounded(format!("a warp with more than {INSTRUCTIONS} instructions or {REGISTERS} registers"))
}

/// Drops jumps to the next instruction and unreachable instructions, and makes labels for jump targets.
fn straighten(thread: &mut Thread) {
    loop {
        let count = thread.body.len();
        let mut reached = vec![false; count + 1];
        let mut stack = vec![0];
        while let Some(at) = stack.pop() {
            if at > count || std::mem::replace(&mut reached[at], true) || at == count {
                continue;
            }
            let instr = &thread.body[at];
            let behind = instr.guard.map(|_| at + 1);
            match instr.op.goes() {
                Goes::To(target) => stack.extend(behind.into_iter().chain([target.min(count)])),
                Goes::End => stack.extend(behind),
                Goes::On | Goes::Opens | Goes::Closes => stack.push(at + 1),
            }
        }
        let keep =
            |at: usize| reached[at] && !matches!(thread.body[at].op, Op::Bra { target } if target == at + 1);
        let keep: Vec<bool> = (0..count).map(keep).collect();
        if keep.iter().all(|k| *k) {
            break;
        }
        retain(thread, &keep);
    }
    let targets: BTreeSet<usize> = thread
        .body
        .iter()
        .filter_map(|i| if let Op::Bra { target } = i.op { Some(target) } else { None })
        .collect();
    thread.labels =
        targets.into_iter().enumerate().map(|(n, at)| Label { name: format!("L{n}"), at }).collect();
}

/// Visits every memory address in an instruction, with its length if it has one.
fn addresses(op: &mut Op, see: &mut dyn FnMut(&mut Address, Option<&mut u32>)) {
    let matrix = |d: &mut Descriptor, see: &mut dyn FnMut(&mut Address, Option<&mut u32>)| {
        if let Descriptor::Range { addr, bytes } = d {
            see(addr, Some(bytes));
        }
    };
    match op {
        Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Rmw { addr, .. } => see(addr, None),
        Op::Mbarrier(m) => see(&mut m.addr, None),
        Op::Tcgen05(Tcgen05::Alloc { dst, .. }) => see(dst, None),
        Op::Tcgen05(Tcgen05::Commit(commit)) => see(&mut commit.addr, None),
        Op::Tcgen05(Tcgen05::Copy { src, .. }) => matrix(src, see),
        Op::Wgmma(Wgmma::Product(product)) => {
            if let WgmmaFactor::Shared(a) = &mut product.a {
                matrix(a, see);
            }
            matrix(&mut product.b, see);
        }
        Op::Tcgen05(Tcgen05::Mma(mma)) => {
            if let Factor::Shared(a) = &mut mma.a {
                matrix(a, see);
            }
            matrix(&mut mma.b, see);
        }
        Op::AsyncCopy(AsyncCopy::Arrive { addr, .. }) => see(addr, None),
        Op::ProxyOrder(
            ProxyOrder::TensormapAcquire { addr, .. } | ProxyOrder::ReplaceTensormap { addr, .. },
        ) => see(addr, None),
        Op::ProxyOrder(ProxyOrder::CopyTensormap { dst, src, .. }) => {
            see(dst, None);
            see(src, None);
        }
        Op::Control(Control::TryCancel { addr, mbarrier, .. }) => {
            see(addr, None);
            see(mbarrier, None);
        }
        Op::AsyncCopy(AsyncCopy::Remote(write)) => {
            see(&mut write.addr, None);
            if let RemoteOrder::Mbarrier(addr) = &mut write.order {
                see(addr, None);
            }
        }
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) => {
            for end in [&mut copy.dst, &mut copy.src] {
                match end {
                    BulkEnd::Bytes { addr, .. } => see(addr, None),
                    BulkEnd::Tensor(tensor) => {
                        tensor.map.iter_mut().for_each(|map| see(map, None));
                        if let Some(tile) = &mut tensor.tile {
                            see(&mut tile.addr, Some(&mut tile.bytes));
                        }
                    }
                }
            }
            if let BulkDone::Mbarrier(addr) = &mut copy.done {
                see(addr, None);
            }
        }
        // Addresses of tensor memory are numbers here, and multimem is refused.
        Op::Tcgen05(Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } | Tcgen05::Shift { .. }) => {}
        Op::Tcgen05(Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::WaitLoad | Tcgen05::WaitStore) => {}
        Op::Tcgen05(Tcgen05::FenceBefore | Tcgen05::FenceAfter) => {}
        multimem_op!() => {}
        // A `cp.async` is written by itself, and a prefetch left out.
        Op::AsyncCopy(AsyncCopy::Small(_) | AsyncCopy::Prefetch(_)) => {}
        Op::AsyncCopy(AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll) => {}
        Op::AsyncCopy(AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. }) => {}
        Op::Wgmma(_) | Op::ProxyOrder(_) | Op::Control(_) | Op::Tile(_) | register_op!() => {}
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | jump_op!() | barrier_op!() => {}
        Op::Book(_) => {}
    }
}

//! Memory as the enumerator sees it: instances of objects, virtual ranges, and cells.
//!
//! A `.shared` object exists once for each CTA with a thread, any other object once. A *cell* is a longest run of
//! bytes of one instance that no access splits; where some address is computed, every byte is a cell of its own.
//! (PTX ISA 9.2, 8.2 and 8.3.)

use moire_program::ir::{
    Address, AsyncCopy, BulkEnd, Control, Instr, ObjectId, Op, Operand, Program, ProxyOrder, RANGE_PIECE,
    RegInit, Scope, Space, SymbolId, Tcgen05, Thread, Tile, TileOp, Ty,
};
use moire_program::{barrier_op, jump_op, multimem_op, register_op, unit_op};
use std::collections::BTreeSet;

/// Most cells of a program.
const CELLS_MAX: usize = 1 << 16;

/// One copy of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instance {
    pub(super) object: ObjectId,
    /// For `.shared`: the first thread of the CTA it belongs to.
    pub(super) cta: Option<usize>,
}

/// A resolved access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Range {
    /// Index into [`Memory::instances`].
    pub(super) instance: usize,
    /// Virtual identity.
    pub(super) virt: SymbolId,
    pub(super) offset: u32,
    pub(super) bytes: u32,
}

impl Range {
    /// Whether the physical bytes meet.
    pub(super) fn meets(&self, other: &Range) -> bool {
        self.instance == other.instance
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }

    /// Whether the virtual ranges meet.
    pub(super) fn meets_virtually(&self, other: &Range) -> bool {
        self.virt == other.virt && self.meets(other)
    }
}

/// A run of bytes of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) instance: usize,
    pub(super) first: u32,
    pub(super) bytes: u32,
}

/// The static picture of a program's memory.
pub(super) struct Memory<'p> {
    program: &'p Program,
    pub(super) instances: Vec<Instance>,
    pub(super) cells: Vec<Cell>,
    /// First thread of each thread's CTA.
    pub(super) cta: Vec<usize>,
    /// By instance: its cells with their initial content.
    pub(super) starts: Vec<Vec<(usize, u128)>>,
}

impl<'p> Memory<'p> {
    /// `None`: there are more cells than [`CELLS_MAX`].
    pub(super) fn new(program: &'p Program) -> Option<Self> {
        let threads = &program.threads;
        let cta: Vec<usize> = (0..threads.len())
            .map(|t| (0..t).find(|s| threads[*s].place.same_cta(&threads[t].place)).unwrap_or(t))
            .collect();
        let mut instances = Vec::new();
        for (i, object) in program.objects.iter().enumerate() {
            let object_id = ObjectId::at(i);
            if object.space == Space::SharedCta {
                let owners: BTreeSet<usize> = cta.iter().copied().collect();
                instances.extend(owners.into_iter().map(|t| Instance { object: object_id, cta: Some(t) }));
            } else {
                instances.push(Instance { object: object_id, cta: None });
            }
        }
        let starts = vec![Vec::new(); instances.len()];
        let mut memory = Memory { program, instances, cells: Vec::new(), cta, starts };
        memory.cells = memory.cut()?;
        for (cell, part) in memory.cells.iter().enumerate() {
            let start = memory.initial(cell);
            memory.starts[part.instance].push((cell, start));
        }
        Some(memory)
    }

    /// Initial content of a cell.
    pub(super) fn initial(&self, cell: usize) -> u128 {
        let Cell { instance, first, bytes } = self.cells[cell];
        self.program.objects[self.instances[instance].object.index()].init.value(first, bytes)
    }

    /// The copy of an object that a thread means by name.
    pub(super) fn instance(&self, object: ObjectId, thread: usize) -> Option<usize> {
        let of = |i: &Instance| i.object == object && i.cta.is_none_or(|t| t == self.cta[thread]);
        self.instances.iter().position(of)
    }

    /// A number for the virtual address of a symbol: the same for all threads that name the same bytes by it.
    pub(super) fn base(&self, symbol: SymbolId, thread: usize) -> u128 {
        let symbol = &self.program.symbols[symbol.index()];
        let instance = self.instance(symbol.object, thread).unwrap_or(0);
        self.base_of(symbol.virt, instance)
    }

    fn base_of(&self, virt: SymbolId, instance: usize) -> u128 {
        let number = 1 + virt.index() * self.instances.len() + instance;
        (number as u128) << 32
    }

    /// The address, in the CTA of a rank of the thread's cluster, that corresponds to `address` here (`mapa`).
    pub(super) fn mapped(&self, address: u128, rank: u128, thread: usize) -> Option<u128> {
        let here = self.resolve(address, 0)?;
        let object = self.instances[here.instance].object;
        let place = |t: usize| &self.program.threads[t].place;
        let near = |i: &&Instance| {
            let owner = i.cta.filter(|t| place(*t).includes(Scope::Cluster, place(thread)));
            i.object == object && owner.is_some()
        };
        let number = |i: &Instance| i.cta.map(|t| place(t).cta);
        let mut ctas: Vec<Instance> = self.instances.iter().filter(near).copied().collect();
        ctas.sort_by_key(number);
        let wanted = *ctas.get(usize::try_from(rank).ok()?)?;
        let instance = self.instances.iter().position(|i| *i == wanted)?;
        Some(self.base_of(here.virt, instance) + u128::from(here.offset))
    }

    /// The bytes behind a virtual address, if there are any.
    pub(super) fn resolve(&self, address: u128, bytes: u32) -> Option<Range> {
        for (i, symbol) in self.program.symbols.iter().enumerate() {
            if symbol.virt.index() != i {
                continue;
            }
            for (instance, place) in self.instances.iter().enumerate() {
                let size = self.program.objects[place.object.index()].bytes;
                let base = self.base_of(symbol.virt, instance);
                if place.object == symbol.object
                    && address >= base
                    && address + u128::from(bytes) <= base + u128::from(size)
                {
                    let offset = u32::try_from(address - base).unwrap_or(u32::MAX);
                    return Some(Range { instance, virt: symbol.virt, offset, bytes });
                }
            }
        }
        None
    }

    /// The bytes a symbol and an offset name in one thread, if they exist.
    pub(super) fn named(
        &self,
        symbol: SymbolId,
        object: ObjectId,
        thread: usize,
        offset: i64,
        bytes: u32,
    ) -> Option<Range> {
        let instance = self.instance(object, thread)?;
        let offset = u32::try_from(offset).ok()?;
        let size = self.program.objects[object.index()].bytes;
        let virt = self.program.symbols[symbol.index()].virt;
        (offset.checked_add(bytes)? <= size).then_some(Range { instance, virt, offset, bytes })
    }

    /// Cells that make up a range exactly; `None` when the range splits one.
    pub(super) fn cells_of(&self, range: &Range) -> Option<Vec<usize>> {
        let end = range.offset + range.bytes;
        let touched =
            |c: &Cell| c.instance == range.instance && c.first < end && range.offset < c.first + c.bytes;
        let cells: Vec<usize> = (0..self.cells.len()).filter(|i| touched(&self.cells[*i])).collect();
        let whole = cells.iter().all(|i| {
            let cell = &self.cells[*i];
            range.offset <= cell.first && cell.first + cell.bytes <= end
        });
        whole.then_some(cells)
    }

    /// Cuts at both ends of every access. If addresses are computed, cuts also at every multiple of the least size of such
    /// an access; all of them are aligned to it.
    fn cut(&self) -> Option<Vec<Cell>> {
        let objects = &self.program.objects;
        let size = |i: &Instance| objects[i.object.index()].bytes;
        let mut cuts: Vec<BTreeSet<u32>> =
            self.instances.iter().map(|i| BTreeSet::from([0, size(i)])).collect();
        let mut computed = BTreeSet::new();
        for thread in &self.program.threads {
            for instr in &thread.body {
                let one = footprint(&instr.op);
                let many = stretches(&instr.op);
                if many.is_none() {
                    computed.insert(16);
                }
                let many = many.into_iter().flatten().map(|(address, bytes)| (address, 1, bytes));
                for (address, pieces, bytes) in one.into_iter().chain(many).chain(tile(&instr.op)) {
                    let Some(s) = constant_base(thread, address) else {
                        computed.insert(bytes.min(16));
                        continue;
                    };
                    let symbol = &self.program.symbols[s.index()];
                    let reached: Vec<ObjectId> =
                        std::iter::once(symbol.object).chain(symbol.multimem.iter().copied()).collect();
                    for (i, instance) in
                        self.instances.iter().enumerate().filter(|(_, i)| reached.contains(&i.object))
                    {
                        for piece in 0..pieces {
                            let first = i64::from(address.offset) + i64::from(piece) * i64::from(bytes);
                            let end = first + i64::from(bytes);
                            if first >= 0 && end <= i64::from(size(instance)) {
                                cuts[i].extend([first, end].map(|o| u32::try_from(o).unwrap_or(0)));
                            }
                        }
                    }
                }
            }
        }
        let mut cells = Vec::new();
        for (instance, mut cuts) in cuts.into_iter().enumerate() {
            if let Some(step) = computed.first() {
                let bytes = size(&self.instances[instance]);
                if cells.len() + (bytes / step) as usize > CELLS_MAX {
                    return None;
                }
                cuts.extend((0..bytes).step_by(*step as usize));
            }
            let ends: Vec<u32> = cuts.into_iter().collect();
            cells.extend(ends.windows(2).map(|w| Cell { instance, first: w[0], bytes: w[1] - w[0] }));
        }
        (cells.len() <= CELLS_MAX).then_some(cells)
    }
}

/// The symbol an access always goes through.
fn constant_base(thread: &Thread, address: Address) -> Option<SymbolId> {
    match address.base {
        Operand::Address(s) => Some(s),
        Operand::Imm(_) => None,
        Operand::Reg(r) => {
            let changes = thread.body.iter().any(|i| super::operands::written(&i.op).contains(&r));
            if let Some(mapped) = mapped_once(thread, r) {
                return Some(mapped);
            }
            match thread.regs[r.index()].init {
                RegInit::Address(s) if !changes => Some(s),
                _ => None,
            }
        }
    }
}

/// The symbol of a register whose one and unconditional definition maps its address to some CTA.
fn mapped_once(thread: &Thread, reg: moire_program::ir::Reg) -> Option<SymbolId> {
    let defining: Vec<_> =
        thread.body.iter().filter(|i| super::operands::written(&i.op).contains(&reg)).collect();
    let [Instr { guard: None, op: Op::Mapa { src: Operand::Address(symbol), .. }, .. }] = &defining[..]
    else {
        return None;
    };
    Some(*symbol)
}

/// The same as [`footprint`] for each element of a tile.
fn tile(op: &Op) -> Vec<(Address, u32, u32)> {
    let Op::Tile(TileOp::Access(access)) = op else { return Vec::new() };
    access.elements.iter().map(|e| (e.addr, 1, access.ty.bytes())).collect()
}

/// Address, number of scalar pieces and bytes of each, of a memory instruction.
fn footprint(op: &Op) -> Option<(Address, u32, u32)> {
    let pieces = |ty: Ty, elements: usize, single: bool| {
        let elements = u32::try_from(elements).unwrap_or(u32::MAX);
        match ty.bytes() {
            16 if !single => (2 * elements, 8),
            bytes if ty.packed() => (2 * elements, bytes / 2),
            bytes => (elements, bytes),
        }
    };
    let (addr, (count, bytes)) = match op {
        Op::Tcgen05(Tcgen05::Alloc { dst, .. }) => (dst, (1, 4)),
        Op::Load { ty, dst, addr, .. } => (addr, pieces(*ty, dst.len(), false)),
        Op::Store { ty, src, addr, .. } => (addr, pieces(*ty, src.len(), false)),
        Op::Rmw { ty, addr, .. } => (addr, pieces(*ty, 1, true)),
        Op::MultimemLoad { ty, addr, .. }
        | Op::MultimemStore { ty, addr, .. }
        | Op::MultimemRed { ty, addr, .. } => (addr, (1, ty.bytes())),
        register_op!() => return None,
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => return None,
        barrier_op!() | unit_op!() | Op::ProxyOrder(_) | Op::Tile(_) => return None,
        Op::Control(_) | jump_op!() => return None,
        Op::Book(book) => {
            let (_, addr, bytes) = book.range()?;
            return Some((addr, bytes / RANGE_PIECE, RANGE_PIECE));
        }
    };
    Some((*addr, count, bytes))
}

/// Memory an asynchronous instruction writes, by address and size; `None` when the text does not say how much.
fn stretches(op: &Op) -> Option<Vec<(Address, u32)>> {
    let fixed = |o: Operand| match o {
        Operand::Imm(n) => u32::try_from(n).ok(),
        _ => None,
    };
    match op {
        Op::AsyncCopy(AsyncCopy::Small(c)) => Some(vec![(c.dst, c.bytes.into())]),
        Op::AsyncCopy(AsyncCopy::Bulk(c)) => {
            let tiles: Vec<Tile> = [&c.dst, &c.src].into_iter().filter_map(tile_of).collect();
            let size = match c.bytes {
                Some(o) => fixed(o)?,
                None => tiles.first()?.bytes,
            };
            match &c.dst {
                BulkEnd::Bytes { addr, .. } => Some(vec![(*addr, size)]),
                BulkEnd::Tensor(t) => Some(t.tile.map(|t| (t.addr, t.bytes)).into_iter().collect()),
            }
        }
        Op::AsyncCopy(AsyncCopy::Remote(w)) => {
            let mut out = Vec::new();
            for i in 0..w.src.len() {
                let offset = i32::try_from(i).ok()?.checked_mul(i32::try_from(w.ty.bytes()).ok()?)?;
                out.push((
                    Address { base: w.addr.base, offset: w.addr.offset.checked_add(offset)? },
                    w.ty.bytes(),
                ));
            }
            Some(out)
        }
        Op::Control(Control::TryCancel { addr, .. }) => Some(vec![(*addr, 16)]),
        Op::ProxyOrder(
            ProxyOrder::CopyTensormap { dst: addr, .. } | ProxyOrder::ReplaceTensormap { addr, .. },
        ) => Some(vec![(*addr, 128)]),
        Op::AsyncCopy(AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll) => Some(vec![]),
        Op::AsyncCopy(AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. }) => Some(vec![]),
        Op::AsyncCopy(AsyncCopy::Arrive { .. } | AsyncCopy::Prefetch(_)) => Some(vec![]),
        register_op!() | Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Tile(_) => Some(vec![]),
        multimem_op!() => Some(vec![]),
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => Some(vec![]),
        barrier_op!() | Op::Tcgen05(_) | Op::Wgmma(_) | Op::ProxyOrder(_) | Op::Control(_) => Some(vec![]),
        jump_op!() => Some(vec![]),
        Op::Book(_) => Some(vec![]),
    }
}

/// Bytes a side of a copy stands for, where the text says.
pub(super) fn tile_of(end: &BulkEnd) -> Option<Tile> {
    match end {
        BulkEnd::Tensor(t) => t.tile,
        BulkEnd::Bytes { .. } => None,
    }
}

//! Memory as the explorer sees it: instances cut into cells, and the virtual addresses that reach them.
//!
//! A *cell* is a byte range no access splits, so that `rf` can be chosen per cell. Cells end where accesses to static
//! addresses start and end. If the program computes addresses, every instance is also cut at multiples of the least
//! size of an access to a computed address.
//!
//! Accesses through computed addresses are aligned to their size. A cell has one writer at a time: two writes that both
//! cover it never tear inside it.

use super::footprint::{base_symbol, copied, memory_operand, tile_operands};
use super::ids::{CellId, Id, InstanceId, Table};
use moire_execution::leaf::{Instance, instances, observed_registers};
use moire_program::ir::{Op, Program, Reg, Scope, Space, SymbolId, ThreadId, Value};
use std::collections::BTreeSet;
use std::ops::Range;

/// Distance between the bases of two virtual ranges; larger than any object.
pub(crate) const STRIDE: u64 = 1 << 32;

/// Alignment of bulk copies in bytes, of their start and of their end.
const COPY_GRAIN: u32 = 16;

/// A resolved access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Position in [`Layout::instances`].
    pub(crate) instance: InstanceId,
    /// Virtual identity of the address.
    pub(crate) virt: SymbolId,
    /// First byte.
    pub(crate) offset: u32,
    /// Length.
    pub(crate) bytes: u32,
    /// First cell.
    pub(crate) cell: CellId,
    /// Number of cells.
    pub(crate) cells: u16,
}

impl Access {
    /// The positions of its cells.
    pub(crate) fn positions(&self) -> Range<usize> {
        let first = self.cell.index();
        first..first + usize::from(self.cells)
    }

    /// Its cells.
    pub(crate) fn each_cell(&self) -> impl Iterator<Item = CellId> + use<> {
        self.positions().map(CellId::at)
    }

    /// The cell of a slot: cells of an access count from its first.
    pub(crate) fn cell_at(&self, slot: usize) -> CellId {
        debug_assert!(slot < usize::from(self.cells), "an access has so many cells");
        CellId::at(self.cell.index() + slot)
    }

    /// The slot of a cell.
    pub(crate) fn slot_of(&self, cell: CellId) -> usize {
        debug_assert!(self.covers(cell), "a slot is that of an own cell");
        cell.index() - self.cell.index()
    }

    /// Whether a cell is one of its own.
    pub(crate) fn covers(&self, cell: CellId) -> bool {
        self.positions().contains(&cell.index())
    }

    /// Whether the two share a byte of memory.
    pub(crate) fn overlaps(&self, other: &Access) -> bool {
        self.instance == other.instance
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }

    /// Whether both are the same bytes of memory.
    pub(crate) fn same_range(&self, other: &Access) -> bool {
        (self.instance, self.offset, self.bytes) == (other.instance, other.offset, other.bytes)
    }
}

/// A byte range of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) instance: InstanceId,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The memory of one program.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) instances: Table<InstanceId, Instance>,
    pub(crate) cells: Table<CellId, Cell>,
    /// For each instance the positions of its cells.
    ranges: Table<InstanceId, Range<usize>>,
    /// What an outcome has of the registers.
    pub(crate) observed: Vec<(ThreadId, Reg)>,
}

impl Layout {
    /// Cuts the memory of `program`; `None` when there are more cells or instances than 16 bits can number.
    pub(crate) fn new(program: &Program) -> Option<Layout> {
        let all = instances(program);
        u16::try_from(all.len()).ok()?;
        let (footprints, computed) = footprints(program);
        let (mut cells, mut ranges) = (Vec::new(), Table::default());
        for (i, instance) in all.iter().enumerate() {
            let bytes = program.objects[instance.object.index()].bytes;
            let mut cuts: BTreeSet<u32> = BTreeSet::from([0, bytes]);
            if let Some(step) = computed.map(|step| step.max(1)) {
                // Refuses before making the cuts, whose number depends on the declared size and not on the accesses.
                u16::try_from(cells.len() + (bytes / step) as usize).ok()?;
                cuts.extend((0..bytes).step_by(step as usize));
            }
            for (object, offset, length) in &footprints {
                if *object == instance.object && offset.saturating_add(*length) <= bytes {
                    cuts.extend([*offset, offset + length]);
                }
            }
            let cuts: Vec<u32> = cuts.into_iter().collect();
            debug_assert!(
                cuts.first() == Some(&0) && cuts.last() == Some(&bytes),
                "cells cover all of an instance"
            );
            let (instance, first) = (InstanceId::at(i), cells.len());
            cells.extend(cuts.windows(2).map(|w| Cell { instance, offset: w[0], bytes: w[1] - w[0] }));
            ranges.push(first..cells.len());
        }
        u16::try_from(cells.len()).ok()?;
        let (instances, cells) = (all.into_iter().collect(), cells.into_iter().collect());
        Some(Layout { instances, cells, ranges, observed: observed_registers(program) })
    }

    /// The instance of a symbol for a thread: its own CTA's copy of shared objects.
    pub(crate) fn instance(
        &self,
        program: &Program,
        symbol: SymbolId,
        thread: ThreadId,
    ) -> Option<InstanceId> {
        let object = program.symbols[symbol.index()].object;
        let place = |t: ThreadId| &program.threads[t.index()].place;
        let here =
            |i: &Instance| i.object == object && i.owner.is_none_or(|o| place(o).same_cta(place(thread)));
        self.instances.entries().find(|(_, i)| here(i)).map(|(id, _)| id)
    }

    /// The number that represents the address of `symbol` in `thread`.
    pub(crate) fn address(&self, program: &Program, symbol: SymbolId, thread: ThreadId) -> Value {
        let instance = self.instance(program, symbol, thread).map_or(0, |i| u64::from(i.number()));
        let virt = u64::from(program.symbols[symbol.index()].virt.0);
        Value::from((1 + virt * self.instances.len() as u64 + instance) * STRIDE)
    }

    /// The address of one location behind a multimem name: its virtual identity with the instance of `home`.
    pub(crate) fn multimem_address(
        &self,
        program: &Program,
        name: SymbolId,
        home: SymbolId,
        thread: ThreadId,
    ) -> Option<Value> {
        let instance = u64::from(self.instance(program, home, thread)?.number());
        let virt = u64::from(program.symbols[name.index()].virt.0);
        Some(Value::from((1 + virt * self.instances.len() as u64 + instance) * STRIDE))
    }

    /// The access at an address; `None` if it lies in no object, or does not start and end where cells do.
    pub(crate) fn resolve(&self, program: &Program, address: Value, bytes: u32) -> Option<Access> {
        let (virt, instance, offset) = self.parts(address)?;
        let object = self.instances[instance].object;
        let symbol = program.symbols.get(virt.index())?;
        let size = program.objects[object.index()].bytes;
        let named = symbol.object == object || symbol.multimem.contains(&object);
        if !named || offset.checked_add(bytes)? > size {
            return None;
        }
        let first = self.cells_of(instance).find(|c| self.cells[*c].offset == offset)?;
        let ends = |c: &CellId| self.cells[*c].offset + self.cells[*c].bytes == offset + bytes;
        let last = self.cells_of(instance).find(ends)?;
        let cells = (last.number() + 1).checked_sub(first.number())?;
        Some(Access { instance, virt, offset, bytes, cell: first, cells })
    }

    /// The bytes at an address, without their cells.
    pub(crate) fn locate(&self, program: &Program, address: Value, bytes: u32) -> Option<Access> {
        let (virt, instance, offset) = self.parts(address)?;
        let object = self.instances[instance].object;
        let symbol = program.symbols.get(virt.index()).filter(|s| s.object == object)?;
        let fits = offset.checked_add(bytes)? <= program.objects[object.index()].bytes;
        fits.then_some(Access { instance, virt: symbol.virt, offset, bytes, cell: CellId::at(0), cells: 0 })
    }

    /// The address of the same bytes in another CTA: that of a rank of the cluster of `thread` (`mapa`).
    pub(crate) fn mapped(
        &self,
        program: &Program,
        address: Value,
        rank: Value,
        thread: ThreadId,
    ) -> Option<Value> {
        let here = self.locate(program, address, 0)?;
        let object = self.instances[here.instance].object;
        let place = |t: ThreadId| &program.threads[t.index()].place;
        let of = |i: &Instance| i.owner.filter(|o| place(*o).includes(Scope::Cluster, place(thread)));
        let mut ctas: Vec<(u16, InstanceId)> = Vec::new();
        for (n, instance) in self.instances.entries().filter(|(_, i)| i.object == object) {
            ctas.extend(of(instance).map(|o| (place(o).cta, n)));
        }
        ctas.sort_unstable();
        let (_, instance) = *ctas.get(usize::try_from(rank).ok()?)?;
        let virt = u64::from(here.virt.0);
        let base = (1 + virt * self.instances.len() as u64 + u64::from(instance.number())) * STRIDE;
        Some(Value::from(base + u64::from(here.offset)))
    }

    /// All cells of an instance.
    pub(crate) fn cells_of(&self, instance: InstanceId) -> impl Iterator<Item = CellId> + use<> {
        self.ranges[instance].clone().map(CellId::at)
    }

    /// All bytes of an instance, as its initial write covers them; they have no virtual identity.
    pub(crate) fn whole(&self, program: &Program, instance: InstanceId) -> Access {
        let bytes = program.objects[self.instances[instance].object.index()].bytes;
        let Range { start, end } = self.ranges[instance];
        let cells = u16::try_from(end - start).expect("a layout has fewer than 65536 cells");
        Access { instance, virt: SymbolId(u16::MAX), offset: 0, bytes, cell: CellId::at(start), cells }
    }

    /// The parts of an address: virtual identity, instance and offset; `None` if no object has the address.
    fn parts(&self, address: Value) -> Option<(SymbolId, InstanceId, u32)> {
        let address = u64::try_from(address).ok()?;
        let base = (address / STRIDE).checked_sub(1)?;
        // A program may have no memory at all.
        let count = self.instances.len() as u64;
        let virt = SymbolId(u16::try_from(base.checked_div(count)?).ok()?);
        let instance = InstanceId::at(usize::try_from(base.checked_rem(count)?).ok()?);
        Some((virt, instance, u32::try_from(address % STRIDE).ok()?))
    }
}

/// Static footprints (object, offset, bytes), and the least size of an access to a computed address, if there is one.
/// Such accesses are aligned to their size (PTX ISA 9.2, 6.4.1), so they start and end at multiples of the least size.
fn footprints(program: &Program) -> (Vec<(moire_program::ir::ObjectId, u32, u32)>, Option<u32>) {
    let (mut out, mut computed) = (Vec::new(), None);
    for thread in &program.threads {
        for instr in &thread.body {
            let Some(later) = copied(&instr.op) else {
                computed = Some(computed.map_or(COPY_GRAIN, |least: u32| least.min(COPY_GRAIN)));
                continue;
            };
            for (address, bytes) in later {
                match base_symbol(thread, &address).zip(u32::try_from(address.offset).ok()) {
                    Some((symbol, offset)) => {
                        out.push((program.symbols[symbol.index()].object, offset, bytes))
                    }
                    None => {
                        let grain = bytes.min(COPY_GRAIN);
                        computed = Some(computed.map_or(grain, |least: u32| least.min(grain)));
                    }
                }
            }
            for (address, bytes) in tile_operands(&instr.op) {
                match base_symbol(thread, address) {
                    Some(symbol) => {
                        let object = program.symbols[symbol.index()].object;
                        out.extend(u32::try_from(address.offset).ok().map(|offset| (object, offset, bytes)));
                    }
                    None => computed = Some(computed.map_or(bytes, |least: u32| least.min(bytes))),
                }
            }
            let Some((address, bytes, count, _)) = memory_operand(&instr.op) else { continue };
            let bytes = if bytes == 16 && !matches!(instr.op, Op::Rmw { .. }) { 8 } else { bytes };
            let count = count * if memory_operand(&instr.op).is_some_and(|m| m.1 != bytes) { 2 } else { 1 };
            let Some(symbol) = base_symbol(thread, &address) else {
                computed = Some(computed.map_or(bytes, |least: u32| least.min(bytes)));
                continue;
            };
            let symbol = &program.symbols[symbol.index()];
            for element in 0..count {
                let offset = i64::from(address.offset) + element as i64 * i64::from(bytes);
                if let Ok(offset) = u32::try_from(offset) {
                    out.push((symbol.object, offset, bytes));
                    out.extend(symbol.multimem.iter().map(|o| (*o, offset, bytes)));
                }
            }
        }
    }
    (out, computed)
}

/// Whether the state space qualifier allows the object.
pub(crate) fn space_admits(qualifier: Space, object: Space) -> bool {
    match qualifier {
        Space::Generic => true,
        Space::Global => object != Space::SharedCta,
        Space::Tensor => object == Space::Tensor,
        Space::SharedCta | Space::SharedCluster => object == Space::SharedCta,
    }
}

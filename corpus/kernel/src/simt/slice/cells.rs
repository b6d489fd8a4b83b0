//! Divides memory into cells, ranges of bytes that some access treats as one, and describes each access by its cells.

use super::flow::{makers, recipe};
use crate::Done;
use crate::Refusal;
use moire_program::ir::{
    Address, BarKind, LoadOrder, Op, Operand, Program, Reg, Space, StoreOrder, Thread, TileKind, TileOp,
};
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op, unit_op};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most instructions of a compiled thread that is cut.
const INSTRUCTIONS: usize = 768;

/// How many steps back the computation of a mask is followed.
const DEPTH: usize = 6;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Does {
    Read,
    Write,
    Update,
}

/// One element of a memory instruction of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    /// The index of the instruction.
    pub(super) at: usize,
    /// The index of the element in the instruction.
    pub(super) element: usize,
    pub(super) cell: usize,
    pub(super) does: Does,
    /// Equal for accesses that may represent each other: see the header of [`super`].
    pub(super) group: u64,
    /// The number it writes, if that is a constant.
    pub(super) value: Option<i128>,
    /// The register it reads into.
    pub(super) dst: Option<Reg>,
}

/// An object, and the CTA that owns it if it is shared memory.
type Key = (u16, Option<u16>);

/// All cells of a pair.
pub(super) struct Cells {
    /// The accesses of each tile block.
    pub(super) source: Vec<Vec<Touch>>,
    /// The accesses of each compiled thread.
    pub(super) compiled: Vec<Vec<Touch>>,
    /// Object, first byte and end of each cell.
    pub(super) ranges: Vec<(Key, u32, u32)>,
}

type Raw = (Touch, Key, u32, u32);

pub(super) fn number(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl Cells {
    pub(super) fn new(source: &Program, compiled: &Program) -> Done<Cells> {
        let tiles: Vec<Vec<Raw>> = source.threads.iter().map(|t| tile(source, t)).collect::<Done<_>>()?;
        let threads: Vec<Vec<Raw>> =
            compiled.threads.iter().map(|t| simt(compiled, t)).collect::<Done<_>>()?;
        let all = tiles.iter().chain(&threads).flatten();
        let mut spans: Vec<(Key, u32, u32)> = all.map(|(_, key, from, to)| (*key, *from, *to)).collect();
        spans.sort_unstable();
        let mut ranges: Vec<(Key, u32, u32)> = Vec::new();
        for (key, from, to) in spans {
            match ranges.last_mut() {
                Some(last) if last.0 == key && from < last.2 => last.2 = last.2.max(to),
                _ => ranges.push((key, from, to)),
            }
        }
        let placed = |all: Vec<Vec<Raw>>| -> Vec<Vec<Touch>> {
            let cell =
                |key: Key, from: u32| ranges.partition_point(|r| (r.0, r.1) <= (key, from)).saturating_sub(1);
            let one =
                |raw: Vec<Raw>| raw.into_iter().map(|(t, key, from, _)| Touch { cell: cell(key, from), ..t });
            all.into_iter().map(|raw| one(raw).collect()).collect()
        };
        Ok(Cells { source: placed(tiles), compiled: placed(threads), ranges })
    }
}

fn place(program: &Program, thread: &Thread, addr: Address, bytes: u32) -> Done<(Key, u32, u32)> {
    let Operand::Address(symbol) = addr.base else {
        return Err(Refusal::about("an address that depends on memory"));
    };
    let symbol =
        program.symbols.get(symbol.index()).ok_or_else(|| Refusal::about("an address without a name"))?;
    let object = program.objects.get(symbol.object.index());
    let shared = object.is_some_and(|o| o.space != Space::Global);
    let from = u32::try_from(addr.offset).map_err(|_| Refusal::about("an address before its object"))?;
    if object.is_none_or(|o| from.saturating_add(bytes) > o.bytes) {
        return Err(Refusal::about("an address behind its object"));
    }
    Ok(((symbol.object.0, shared.then_some(thread.place.cta)), from, from + bytes))
}

fn touch(at: usize, element: usize, does: Does, group: u64) -> Touch {
    Touch { at, element, cell: 0, does, group, value: None, dst: None }
}

/// The accesses of a tile block. Elements of one instruction with masks computed alike are in one group.
fn tile(program: &Program, thread: &Thread) -> Done<Vec<Raw>> {
    let (mut out, makers) = (Vec::new(), makers(thread));
    for (at, instr) in thread.body.iter().enumerate() {
        let Op::Tile(TileOp::Access(access)) = &instr.op else {
            let quiet = matches!(
                instr.op,
                Op::Mov { .. }
                    | Op::Alu { .. }
                    | Op::Setp { .. }
                    | Op::Selp { .. }
                    | Op::Bra { .. }
                    | Op::Exit
            );
            if quiet || matches!(instr.op, Op::Tile(TileOp::Token(_))) {
                continue;
            }
            return Err(Refusal::about("this instruction of a tile block"));
        };
        let does = match access.kind {
            TileKind::Load(_) => Does::Read,
            TileKind::Store(_) => Does::Write,
            TileKind::Rmw { .. } => Does::Update,
        };
        for (i, e) in access.elements.iter().enumerate() {
            let (key, from, to) = place(program, thread, e.addr, access.ty.bytes())?;
            let group = number(&(at, e.mask.map(|m| recipe(thread, &makers, m, DEPTH))));
            let value = if let (Some(Operand::Imm(v)), Does::Write) = (e.a, does) { Some(v) } else { None };
            out.push((Touch { value, dst: e.dst, ..touch(at, i, does, group) }, key, from, to));
        }
    }
    Ok(out)
}

/// The accesses of a compiled thread. Weak and relaxed accesses are in one group if they have the same kind, order, space,
/// width and guard and no wall lies between them.
fn simt(program: &Program, thread: &Thread) -> Done<Vec<Raw>> {
    if thread.body.len() > INSTRUCTIONS {
        return Err(Refusal::Bounded(format!(
            "a thread of more than {INSTRUCTIONS} instructions is not cut"
        )));
    }
    let jumped: Vec<usize> = thread
        .body
        .iter()
        .filter_map(|i| if let Op::Bra { target } = i.op { Some(target) } else { None })
        .collect();
    let (mut out, mut window) = (Vec::new(), 0usize);
    for (at, instr) in thread.body.iter().enumerate() {
        window += usize::from(jumped.contains(&at));
        let wall = wall(&instr.op)?;
        window += usize::from(wall);
        let guard = instr.guard;
        match &instr.op {
            Op::Load { order, space, ty, dst, addr, .. } => {
                let group =
                    number(&(window, Does::Read, order, space, ty, guard.map(|g| (g.reg, g.negated))));
                for (i, d) in dst.iter().enumerate() {
                    let (key, from, to) = place(program, thread, behind(*addr, i, ty.bytes())?, ty.bytes())?;
                    out.push((Touch { dst: Some(*d), ..touch(at, i, Does::Read, group) }, key, from, to));
                }
            }
            Op::Store { order, space, ty, addr, src, .. } => {
                let group =
                    number(&(window, Does::Write, order, space, ty, guard.map(|g| (g.reg, g.negated))));
                for (i, s) in src.iter().enumerate() {
                    let (key, from, to) = place(program, thread, behind(*addr, i, ty.bytes())?, ty.bytes())?;
                    let value = if let Operand::Imm(v) = s { Some(*v) } else { None };
                    out.push((Touch { value, ..touch(at, i, Does::Write, group) }, key, from, to));
                }
            }
            Op::Rmw { dst, addr, ty, .. } => {
                let (key, from, to) = place(program, thread, *addr, ty.bytes())?;
                out.push((Touch { dst: *dst, ..touch(at, 0, Does::Update, number(&window)) }, key, from, to));
            }
            // These access nothing, or [`wall`] refuses them.
            register_op!() | fence_op!() | barrier_op!() => {}
            multimem_op!() | Op::Mbarrier(_) => {}
            unit_op!() | Op::Tile(_) | Op::Control(_) | jump_op!() => {}
            Op::Book(_) => {}
        }
        window += usize::from(wall);
    }
    Ok(out)
}

/// The address of an element of a vector.
pub(super) fn behind(addr: Address, element: usize, bytes: u32) -> Done<Address> {
    let more = u32::try_from(element).ok().and_then(|e| i32::try_from(e.checked_mul(bytes)?).ok());
    let offset = more
        .and_then(|m| addr.offset.checked_add(m))
        .ok_or_else(|| Refusal::about("an address far behind its object"))?;
    Ok(Address { offset, ..addr })
}

/// Whether an instruction is a wall: accesses on its two sides may not represent each other.
fn wall(op: &Op) -> Done<bool> {
    Ok(match op {
        Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } => false,
        Op::Load { order, .. } => !matches!(order, LoadOrder::Weak | LoadOrder::Relaxed(_)),
        Op::Store { order, .. } => !matches!(order, StoreOrder::Weak | StoreOrder::Relaxed(_)),
        Op::Rmw { .. } | Op::Fence { .. } | Op::ProxyFence(_) | jump_op!() => true,
        Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { mask: Operand::Imm(_) } => true,
        Op::Bar { kind: BarKind::Sync, id: Operand::Imm(_), count: None, .. } => true,
        Op::Bar { .. } => {
            return Err(Refusal::about("a barrier that not all threads of the CTA take part in alike"));
        }
        Op::WarpSync { .. } | Op::Mapa { .. } | Op::MbarrierInitFence | Op::Mbarrier(_) => {
            return refused(op);
        }
        multimem_op!() | Op::ProxyOrder(_) => {
            return refused(op);
        }
        unit_op!() | Op::Tile(_) | Op::Control(_) => {
            return refused(op);
        }
        Op::Book(_) => return refused(op),
    })
}

fn refused(op: &Op) -> Done<bool> {
    Err(Refusal::about(op.extended().unwrap_or("this instruction of a compiled thread")))
}

//! Footprints of instructions from the text alone: the bytes that an instruction accesses, as far as its operands say.

use super::operands::defines;
use moire_program::ir::*;
use moire_program::{barrier_op, jump_op, multimem_op, register_op, unit_op};

/// The bytes that an asynchronous copy, or a similar instruction, writes; `None` if the text does not say.
pub(crate) fn copied(op: &Op) -> Option<Vec<(Address, u32)>> {
    let sized = |o: &Operand| if let Operand::Imm(n) = o { u32::try_from(*n).ok() } else { None };
    Some(match op {
        Op::AsyncCopy(AsyncCopy::Small(copy)) => vec![(copy.dst, u32::from(copy.bytes))],
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) => {
            let bytes = match (&copy.bytes, box_of(&copy.src).or(box_of(&copy.dst))) {
                (Some(bytes), _) => sized(bytes)?,
                (None, Some(tile)) => tile.bytes,
                (None, None) => return None,
            };
            match &copy.dst {
                BulkEnd::Bytes { addr, .. } => vec![(*addr, bytes)],
                BulkEnd::Tensor(tensor) => tensor.tile.iter().map(|t| (t.addr, t.bytes)).collect(),
            }
        }
        Op::AsyncCopy(AsyncCopy::Remote(write)) => {
            let size = write.ty.bytes();
            let elements = 0..u32::try_from(write.src.len()).ok()?;
            let at = |i: u32| i32::try_from(i * size).ok().and_then(|o| write.addr.offset.checked_add(o));
            elements.filter_map(|i| Some((Address { offset: at(i)?, ..write.addr }, size))).collect()
        }
        Op::Control(Control::TryCancel { addr, .. }) => vec![(*addr, CANCEL_BYTES)],
        Op::ProxyOrder(ProxyOrder::CopyTensormap { dst, .. }) => vec![(*dst, TENSORMAP_BYTES)],
        Op::ProxyOrder(ProxyOrder::ReplaceTensormap { addr, .. }) => vec![(*addr, TENSORMAP_BYTES)],
        Op::AsyncCopy(AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll) => vec![],
        Op::AsyncCopy(AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } | AsyncCopy::Prefetch(_)) => vec![],
        Op::AsyncCopy(AsyncCopy::Arrive { .. }) | Op::ProxyOrder(_) | Op::Control(_) => vec![],
        register_op!() | Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Tile(_) => vec![],
        multimem_op!() => vec![],
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => vec![],
        barrier_op!() | Op::Tcgen05(_) | Op::Wgmma(_) | jump_op!() => vec![],
        Op::Book(_) => vec![],
    })
}

/// Whether an instruction may also write memory of CTAs that its addresses do not name.
pub(crate) fn spreads(op: &Op) -> bool {
    matches!(op, Op::AsyncCopy(AsyncCopy::Bulk(copy)) if copy.multicast.is_some())
        || matches!(op, Op::Control(Control::TryCancel { multicast: true, .. }))
}

pub(crate) fn box_of(end: &BulkEnd) -> Option<Tile> {
    if let BulkEnd::Tensor(tensor) = end { tensor.tile } else { None }
}

/// Number of bytes that `try_cancel` writes.
pub(crate) const CANCEL_BYTES: u32 = 16;

/// Address, element size and element count of a memory instruction, and whether it may write.
pub(crate) fn memory_operand(op: &Op) -> Option<(Address, u32, usize, bool)> {
    let element = |ty: &Ty| if ty.packed() { (ty.bytes() / 2, 2) } else { (ty.bytes(), 1) };
    match op {
        Op::Tcgen05(Tcgen05::Alloc { dst, .. }) => Some((*dst, 4, 1, true)),
        Op::Load { ty, dst, addr, .. } => Some((*addr, element(ty).0, dst.len() * element(ty).1, false)),
        Op::Store { ty, src, addr, .. } => Some((*addr, element(ty).0, src.len() * element(ty).1, true)),
        Op::Rmw { ty, addr, .. } => Some((*addr, element(ty).0, element(ty).1, true)),
        Op::MultimemLoad { ty, addr, .. } => Some((*addr, ty.bytes(), 1, false)),
        Op::MultimemStore { ty, addr, .. } | Op::MultimemRed { ty, addr, .. } => {
            Some((*addr, ty.bytes(), 1, true))
        }
        register_op!() => None,
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => None,
        barrier_op!() | unit_op!() | Op::ProxyOrder(_) | Op::Tile(_) | Op::Control(_) | jump_op!() => None,
        Op::Book(book) => {
            let (_, addr, bytes) = book.range()?;
            Some((addr, RANGE_PIECE, (bytes / RANGE_PIECE) as usize, true))
        }
    }
}

/// Address and size of each element of a tile.
pub(crate) fn tile_operands(op: &Op) -> impl Iterator<Item = (&Address, u32)> {
    let access = if let Op::Tile(TileOp::Access(access)) = op { Some(access) } else { None };
    access.into_iter().flat_map(|a| a.elements.iter().map(|e| (&e.addr, a.ty.bytes())))
}

/// The symbol that an address uses in every execution, if there is one.
pub(crate) fn base_symbol(thread: &Thread, address: &Address) -> Option<SymbolId> {
    match address.base {
        Operand::Address(s) => Some(s),
        Operand::Reg(r) if !is_written(thread, r) => match thread.regs[r.index()].init {
            RegInit::Address(s) => Some(s),
            RegInit::Value(_) | RegInit::Lane => None,
        },
        Operand::Reg(r) => mapped_symbol(thread, r),
        Operand::Imm(_) => None,
    }
}

fn is_written(thread: &Thread, reg: Reg) -> bool {
    thread.body.iter().any(|i| defines(&i.op).contains(&reg))
}

/// The symbol whose address a register holds, mapped to some CTA; `None` if the register may hold anything else.
fn mapped_symbol(thread: &Thread, reg: Reg) -> Option<SymbolId> {
    let mut writers = thread.body.iter().filter(|i| defines(&i.op).contains(&reg));
    let Some(Instr { guard: None, op: Op::Mapa { src: Operand::Address(symbol), .. }, .. }) = writers.next()
    else {
        return None;
    };
    writers.next().is_none().then_some(*symbol)
}

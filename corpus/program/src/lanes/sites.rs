//! The accesses to memory of an instruction, as far as lanes of one part may conflict there.

use super::part::{SomeLanes, State};
use super::releases::{Quiet, quiet};
use super::value::{Known, Val};
use crate::ir::*;

/// Bytes of a tensor map.
const TENSORMAP: u32 = 128;

/// One access of one instruction.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Position of the instruction.
    pub(super) pc: usize,
    /// First byte, in each lane.
    pub(super) at: Val,
    /// How many; none if that is not known.
    pub(super) bytes: Option<u32>,
    pub(super) writes: bool,
    /// Two strong accesses do not race.
    pub(super) strong: bool,
    pub(super) quiet: Option<Quiet>,
}

/// What an instruction of a part accesses.
pub(super) fn sites(part: &SomeLanes<'_>, state: &State, pc: usize) -> Vec<Site> {
    let mut out = Vec::new();
    let (op, bytes) = (&part.code().body[pc].op, |o: Operand| size(&part.operand(state, o)));
    let mut plain = |addr: &Address, bytes, writes| {
        let (at, quiet) = (part.address(state, addr), None);
        out.push(Site { pc, at, bytes, writes, strong: false, quiet });
    };
    match op {
        Op::Load { ty, dst, addr, .. } => plain(addr, vector(*ty, dst.len()), false),
        Op::Store { ty, src, addr, .. } => plain(addr, vector(*ty, src.len()), true),
        Op::Rmw { ty, addr, .. } | Op::MultimemRed { ty, addr, .. } => plain(addr, Some(ty.bytes()), true),
        Op::MultimemLoad { ty, addr, .. } => plain(addr, Some(ty.bytes()), false),
        Op::MultimemStore { ty, addr, .. } => plain(addr, Some(ty.bytes()), true),
        Op::Mbarrier(Mbarrier { addr, .. }) => plain(addr, Some(MBARRIER_BYTES), true),
        Op::AsyncCopy(AsyncCopy::Small(copy)) => {
            plain(&copy.src, Some(copy.bytes.into()), false);
            plain(&copy.dst, Some(copy.bytes.into()), true);
        }
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) => {
            for (end, writes) in [(&copy.src, false), (&copy.dst, true)] {
                match end {
                    BulkEnd::Bytes { addr, .. } => {
                        plain(addr, copy.bytes.and_then(bytes).or_else(|| boxed(copy)), writes)
                    }
                    BulkEnd::Tensor(tensor) => {
                        tensor.map.iter().for_each(|map| plain(map, Some(TENSORMAP), false));
                        tensor.tile.iter().for_each(|tile| plain(&tile.addr, Some(tile.bytes), writes));
                    }
                }
            }
        }
        Op::AsyncCopy(AsyncCopy::Remote(write)) => {
            plain(&write.addr, vector(write.ty, write.src.len()), true)
        }
        // Tensor memory is no part of this: its cells are told apart by lane.
        Op::Tcgen05(_) | Op::Wgmma(_) => op.matrices().into_iter().for_each(|d| matrix(d, &mut plain)),
        Op::AsyncCopy(_) | Op::ProxyOrder(_) | Op::Tile(_) | Op::Control(_) | register_op!() => {}
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | jump_op!() | barrier_op!() => {}
        Op::Book(_) => {}
    }
    let strong = op.access().is_some_and(Access::is_strong);
    let quiet = quiet(part, state, op);
    out.iter_mut().for_each(|site| (site.strong, site.quiet) = (strong, quiet));
    out
}

fn vector(ty: Ty, elements: usize) -> Option<u32> {
    u32::try_from(elements).ok().and_then(|n| n.checked_mul(ty.bytes()))
}

fn size(value: &Val) -> Option<u32> {
    value.one().filter(|k| k.base.is_none()).and_then(|k| u32::try_from(k.number).ok())
}

/// The bytes of the box at the other end of a copy.
fn boxed(copy: &BulkCopy) -> Option<u32> {
    [&copy.src, &copy.dst].into_iter().find_map(|end| match end {
        BulkEnd::Tensor(TensorBox { tile: Some(tile), .. }) => Some(tile.bytes),
        _ => None,
    })
}

/// The bytes of a matrix; a packed descriptor hides them.
fn matrix(matrix: &Descriptor, plain: &mut impl FnMut(&Address, Option<u32>, bool)) {
    match matrix {
        Descriptor::Range { addr, bytes } => plain(addr, Some(*bytes), false),
        Descriptor::Packed(base) => plain(&Address { base: *base, offset: 0 }, None, false),
    }
}

/// Whether lane `i` of a part at one site and lane `j` at another touch a common byte. None if that is not known.
pub(super) fn overlap(program: &Program, (a, i): (&Site, usize), (b, j): (&Site, usize)) -> Option<bool> {
    let (Val::Known(x), Val::Known(y)) = (&a.at, &b.at) else { return None };
    let (Some((p, here)), Some((q, there))) = (x[i].base, y[j].base) else { return None };
    let symbol = |s: SymbolId| &program.symbols[s.index()];
    if !symbol(p).multimem.is_empty() || !symbol(q).multimem.is_empty() {
        return None;
    }
    if symbol(p).object != symbol(q).object || (here.is_some() && there.is_some() && here != there) {
        return Some(false);
    }
    let (m, n) = (a.bytes?, b.bytes?);
    let close = at(x[i]) < at(y[j]) + i128::from(n) && at(y[j]) < at(x[i]) + i128::from(m);
    if close && here != there { None } else { Some(close) }
}

/// The offset of an address, which has 64 bits.
fn at(known: Known) -> i128 {
    let number = i128::try_from(known.number & Value::from(u64::MAX)).unwrap_or(i128::MAX);
    if number >> 63 == 1 { number - (1 << 64) } else { number }
}

//! State spaces of the addresses of tensor-core instructions and asynchronous copies, and which of their operands are
//! notations of our own.

use super::report::Report;
use crate::ir::*;

/// The `state-space` and `absolute-address` rules for these instructions.
pub(super) fn check(report: &mut Report<'_>, thread: &Thread, instr: &Instr) {
    for (space, address) in places(&instr.op) {
        super::operands::address(report, thread, instr, space, address);
    }
    if let Op::Tcgen05(Tcgen05::Dealloc { addr: addr @ Operand::Address(_), .. }) = &instr.op {
        let address = Address { base: *addr, offset: 0 };
        super::operands::address(report, thread, instr, Space::Tensor, address);
    }
}

/// Each address with the space it must be in; generic if none is given.
fn places(op: &Op) -> Vec<(Space, Address)> {
    let mut out: Vec<(Space, Address)> = op.matrices().into_iter().filter_map(matrix).collect();
    match op {
        Op::Tcgen05(op) => out.extend(tcgen05(op)),
        Op::AsyncCopy(op) => out.extend(copy(op)),
        Op::ProxyOrder(order) => out.extend(fence(order)),
        Op::Control(Control::TryCancel { space, addr, mbarrier, .. }) => {
            out.extend([(*space, *addr), (Space::Generic, *mbarrier)]);
        }
        Op::Control(Control::Elect { .. } | Control::Collective(_) | Control::Ignored(_)) => {}
        Op::Control(Control::QueryCancel { .. } | Control::Repeat(_) | Control::EndRepeat) => {}
        Op::Control(Control::LaunchDependents | Control::WaitDependencies) | Op::Wgmma(_) => {}
        // Their addresses are checked with their other operands.
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Mapa { .. } => {}
        multimem_op!() | Op::Tile(_) => {}
        Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } => {}
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | jump_op!() | barrier_op!() => {}
        Op::Book(_) => {}
    }
    out
}

fn fence(order: &ProxyOrder) -> Vec<(Space, Address)> {
    match order {
        ProxyOrder::TensormapAcquire { addr, .. } => vec![(Space::Generic, *addr)],
        ProxyOrder::CopyTensormap { dst, src, .. } => vec![(Space::Global, *dst), (Space::SharedCta, *src)],
        ProxyOrder::ReplaceTensormap { space, addr, .. } => vec![(*space, *addr)],
        ProxyOrder::AsyncSpace(_) | ProxyOrder::AsyncRestricted { .. } => Vec::new(),
        ProxyOrder::Restricted { .. } | ProxyOrder::TensormapRelease { .. } => Vec::new(),
        ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. } => Vec::new(),
    }
}

fn matrix(descriptor: &Descriptor) -> Option<(Space, Address)> {
    match descriptor {
        Descriptor::Range { addr, .. } => Some((Space::SharedCta, *addr)),
        Descriptor::Packed(_) => None,
    }
}

fn tcgen05(op: &Tcgen05) -> Vec<(Space, Address)> {
    let tensor = |addr: &Address| (Space::Tensor, *addr);
    match op {
        Tcgen05::Alloc { space, dst, .. } => vec![(*space, *dst)],
        Tcgen05::Commit(commit) => vec![(commit.space, commit.addr)],
        Tcgen05::Load(load) => vec![tensor(&load.addr)],
        Tcgen05::Store(store) => vec![tensor(&store.addr)],
        Tcgen05::Shift { addr, .. } => vec![tensor(addr)],
        Tcgen05::Copy { dst, .. } => vec![tensor(dst)],
        Tcgen05::Mma(mma) => {
            let mut all = vec![tensor(&mma.d)];
            if let Factor::Tensor(a) = &mma.a {
                all.push(tensor(a));
            }
            all.extend(mma.metadata.iter().map(tensor));
            all.extend(mma.scales.iter().flat_map(|s| [tensor(&s.a), tensor(&s.b)]));
            all
        }
        // The address that a deallocation names is a value.
        Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => Vec::new(),
        Tcgen05::WaitLoad | Tcgen05::WaitStore | Tcgen05::FenceBefore | Tcgen05::FenceAfter => Vec::new(),
    }
}

fn copy(op: &AsyncCopy) -> Vec<(Space, Address)> {
    match op {
        AsyncCopy::Small(copy) => vec![(Space::SharedCta, copy.dst), (Space::Global, copy.src)],
        AsyncCopy::Arrive { space, addr, .. } => vec![(*space, *addr)],
        AsyncCopy::Bulk(copy) => {
            let mut all: Vec<_> = op.ends().into_iter().flat_map(end).collect();
            if let BulkDone::Mbarrier(addr) = copy.done {
                all.push((Space::Generic, addr));
            }
            all
        }
        AsyncCopy::Prefetch(prefetch) => end(&prefetch.src),
        AsyncCopy::Remote(write) => {
            let mut all = vec![(write.space, write.addr)];
            if let RemoteOrder::Mbarrier(addr) = write.order {
                all.push((Space::Generic, addr));
            }
            all
        }
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => Vec::new(),
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => Vec::new(),
    }
}

/// Tensor maps and the tensors they describe are in global memory.
fn end(end: &BulkEnd) -> Vec<(Space, Address)> {
    match end {
        BulkEnd::Bytes { space, addr } => vec![(*space, *addr)],
        BulkEnd::Tensor(tensor) => {
            let tile = tensor.tile.map(|t| t.addr);
            tensor.map.into_iter().chain(tile).map(|addr| (Space::Global, addr)).collect()
        }
    }
}

/// The reason why an operand is a notation of our own, if one is.
pub(super) fn notation(op: &Op) -> Option<&'static str> {
    let named = places(op)
        .iter()
        .any(|(space, addr)| *space == Space::Tensor && matches!(addr.base, Operand::Address(_)));
    if named {
        return Some("names of tensor memory stand for addresses that an allocation gives");
    }
    let shape = matches!(
        op,
        Op::Tcgen05(Tcgen05::Mma(mma)) if matches!(mma.shape, ProductShape::Tile { .. })
    );
    let tile = |end: &BulkEnd| matches!(end, BulkEnd::Tensor(t) if t.tile.is_some());
    let boxed = matches!(op, Op::AsyncCopy(copy) if copy.ends().into_iter().any(tile));
    if shape || boxed || op.matrices().into_iter().any(|m| matrix(m).is_some()) {
        return Some("desc, idesc and tile stand for packed descriptors");
    }
    let predicate = matches!(
        op,
        Op::AsyncCopy(AsyncCopy::Small(SmallCopy { part: SmallPart::IgnoredWhen(g), .. })) if !g.negated
    );
    predicate.then_some("the predicate of cp.async is marked; PTX recognises it by its declaration")
}

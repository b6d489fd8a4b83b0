//! Widths of the registers of tensor-core instructions, asynchronous copies and launch control.
//!
//! Source: the assembler's answers. Addresses in shared memory and in the generic window may have 32 or 64 bits.

use crate::ir::*;

/// The width that stands for a predicate. Predicates are a register class of their own.
pub(super) const PREDICATE: u32 = 1;

type Widths = Vec<(Operand, u32)>;

/// The operands of a tensor-core, copy or control instruction and their widths in bits.
pub(super) fn extended(op: &Op) -> Widths {
    let mut out = Vec::new();
    match op {
        Op::Tcgen05(op) => tcgen05(op, &mut out),
        Op::AsyncCopy(op) => copy(op, &mut out),
        Op::Wgmma(Wgmma::Product(product)) => wgmma(product, &mut out),
        Op::ProxyOrder(ProxyOrder::ReplaceTensormap { ty, value, .. }) => out.push((*value, ty.bytes() * 8)),
        Op::Control(op) => control(op, &mut out),
        register_op!() => {}
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Tile(_) | jump_op!() => {}
        multimem_op!() => {}
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => {}
        barrier_op!() | Op::Wgmma(_) | Op::ProxyOrder(_) => {}
        Op::Book(_) => {}
    }
    out
}

fn tcgen05(op: &Tcgen05, out: &mut Widths) {
    match op {
        Tcgen05::Alloc { columns, .. } => out.push((*columns, 32)),
        Tcgen05::Dealloc { addr, columns, .. } => out.extend([(*addr, 32), (*columns, 32)]),
        Tcgen05::Load(load) => {
            out.push((load.addr.base, 32));
            let reduced = load.reduce.map(|r| r.dst);
            out.extend(load.dst.iter().chain(&reduced).map(|r| (Operand::Reg(*r), 32)));
        }
        Tcgen05::Store(store) => {
            out.push((store.addr.base, 32));
            out.extend(store.src.iter().map(|r| (Operand::Reg(*r), 32)));
        }
        Tcgen05::Copy { dst, src, .. } => {
            out.push((dst.base, 32));
            matrix(src, out);
        }
        Tcgen05::Shift { addr, .. } => out.push((addr.base, 32)),
        Tcgen05::Mma(product) => mma(product, out),
        Tcgen05::Commit(commit) => multicast(commit.multicast, out),
        Tcgen05::Relinquish { .. } | Tcgen05::WaitLoad | Tcgen05::WaitStore => {}
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => {}
    }
}

fn matrix(descriptor: &Descriptor, out: &mut Widths) {
    if let Descriptor::Packed(operand) = descriptor {
        out.push((*operand, 64));
    }
}

fn multicast(mask: Option<Multicast>, out: &mut Widths) {
    out.extend(mask.map(|m| (m.mask, if m.wide { 32 } else { 16 })));
}

fn enable(input: EnableInput, out: &mut Widths) {
    if let EnableInput::When(guard) = input {
        out.push((Operand::Reg(guard.reg), PREDICATE));
    }
}

fn mma(product: &Mma, out: &mut Widths) {
    out.push((product.d.base, 32));
    match &product.a {
        Factor::Shared(descriptor) => matrix(descriptor, out),
        Factor::Tensor(addr) => out.push((addr.base, 32)),
    }
    matrix(&product.b, out);
    let scales = product.scales.iter().flat_map(|s| [s.a, s.b]);
    out.extend(product.metadata.into_iter().chain(scales).map(|a| (a.base, 32)));
    if let ProductShape::Packed(operand) = product.shape {
        out.push((operand, 32));
    }
    out.extend(product.lanes_off.iter().map(|r| (Operand::Reg(*r), 32)));
    enable(product.input, out);
    out.extend(product.zero_columns.map(|o| (o, 64)));
}

fn copy(op: &AsyncCopy, out: &mut Widths) {
    match op {
        AsyncCopy::Small(copy) => match copy.part {
            SmallPart::All => {}
            SmallPart::Bytes(bytes) => out.push((bytes, 32)),
            SmallPart::IgnoredWhen(guard) => out.push((Operand::Reg(guard.reg), PREDICATE)),
        },
        AsyncCopy::Bulk(copy) => {
            end(&copy.dst, out);
            end(&copy.src, out);
            out.extend(copy.bytes.iter().chain(copy.ignored.iter().flatten()).map(|o| (*o, 32)));
            multicast(copy.multicast, out);
            out.extend(copy.byte_mask.map(|o| (o, 16)));
        }
        AsyncCopy::Prefetch(prefetch) => {
            end(&prefetch.src, out);
            out.extend(prefetch.bytes.map(|o| (o, 32)));
        }
        AsyncCopy::Remote(write) => out.extend(write.src.iter().map(|o| (*o, write.ty.bytes() * 8))),
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll | AsyncCopy::Arrive { .. } => {}
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => {}
    }
}

fn end(end: &BulkEnd, out: &mut Widths) {
    if let BulkEnd::Tensor(tensor) = end {
        out.extend(tensor.coordinates.iter().map(|o| (*o, 32)));
        out.extend(tensor.offsets.iter().map(|o| (*o, 16)));
    }
}

fn wgmma(product: &WgmmaProduct, out: &mut Widths) {
    out.extend(product.d.iter().map(|r| (Operand::Reg(*r), 32)));
    match &product.a {
        WgmmaFactor::Shared(descriptor) => matrix(descriptor, out),
        WgmmaFactor::Registers(regs) => out.extend(regs.iter().map(|r| (Operand::Reg(*r), 32))),
    }
    matrix(&product.b, out);
    enable(product.input, out);
}

fn collective(c: &Collective, out: &mut Widths) {
    let (dst, src) = match c.form {
        Exchange::Vote(Vote::Ballot) => (32, PREDICATE),
        Exchange::Vote(_) => (PREDICATE, PREDICATE),
        _ => (32, 32),
    };
    out.extend([(Operand::Reg(c.dst), dst), (c.src, src), (c.from[0], 32), (c.from[1], 32), (c.mask, 32)]);
    out.extend(c.pred.map(|p| (Operand::Reg(p), PREDICATE)));
}

fn control(op: &Control, out: &mut Widths) {
    match op {
        Control::Elect { dst, pred, mask } => {
            out.extend(dst.map(|d| (Operand::Reg(d), 32)));
            out.extend([(Operand::Reg(*pred), PREDICATE), (*mask, 32)]);
        }
        Control::Collective(c) => collective(c, out),
        Control::QueryCancel { ask, dst, src } => {
            let bits = if *ask == CancelQuery::IsCanceled { PREDICATE } else { 32 };
            out.extend(dst.iter().flatten().map(|d| (Operand::Reg(*d), bits)));
            out.push((*src, 128));
        }
        Control::Ignored(Ignored::Nanosleep(time)) => out.push((*time, 32)),
        Control::Ignored(_) | Control::LaunchDependents | Control::WaitDependencies => {}
        Control::Repeat(_) | Control::EndRepeat => {}
        Control::TryCancel { .. } => {}
    }
}

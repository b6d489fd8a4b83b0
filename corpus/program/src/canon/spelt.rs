//! The spellings of memory, and of tensor-core, copy, fence, tile and control instructions: mnemonic and modifiers, as the
//! encoding holds them.
//!
//! Contract: registers and operands are left blank. The encoding holds them apart, as it does for any other instruction.

use crate::canon::spell::{Spell, record};
use crate::ir::*;
use crate::spells;

impl Spell for Reg {
    fn spell(&self, out: &mut String) {
        out.push_str("Reg(0)");
    }
}

impl Spell for Operand {
    fn spell(&self, out: &mut String) {
        out.push_str("Imm(0)");
    }
}

impl Spell for Content {
    fn spell(&self, out: &mut String) {
        let blocks: Vec<_> = self.blocks().map(|(number, bytes)| (number, *bytes)).collect();
        record(out, "Content", &[("blocks", &blocks)]);
    }
}

spells! {
    Address { Address { base, offset } => "Address" { "base": base, "offset": offset } }
    Guard { Guard { reg, negated } => "Guard" { "reg": reg, "negated": negated } }
    Space {
        Space::Generic => "Generic" (),
        Space::Global => "Global" (),
        Space::SharedCta => "SharedCta" (),
        Space::SharedCluster => "SharedCluster" (),
        Space::Tensor => "Tensor" (),
    }
    Scope {
        Scope::Cta => "Cta" (),
        Scope::Cluster => "Cluster" (),
        Scope::Gpu => "Gpu" (),
        Scope::Sys => "Sys" (),
    }
    Ty {
        Ty::Pred => "Pred" (),
        Ty::B(bits) => "B" (bits),
        Ty::U(bits) => "U" (bits),
        Ty::S(bits) => "S" (bits),
        Ty::F(bits) => "F" (bits),
        Ty::F16x2 => "F16x2" (),
        Ty::Bf16x2 => "Bf16x2" (),
    }
    LoadOrder {
        LoadOrder::Weak => "Weak" (),
        LoadOrder::Relaxed(scope) => "Relaxed" (scope),
        LoadOrder::Acquire(scope) => "Acquire" (scope),
        LoadOrder::Volatile => "Volatile" (),
        LoadOrder::MmioRelaxed => "MmioRelaxed" (),
        LoadOrder::MmioAcquire => "MmioAcquire" (),
        LoadOrder::SeqCst(scope) => "SeqCst" (scope),
    }
    StoreOrder {
        StoreOrder::Weak => "Weak" (),
        StoreOrder::Relaxed(scope) => "Relaxed" (scope),
        StoreOrder::Release(scope) => "Release" (scope),
        StoreOrder::Volatile => "Volatile" (),
        StoreOrder::MmioRelaxed => "MmioRelaxed" (),
        StoreOrder::MmioRelease => "MmioRelease" (),
        StoreOrder::SeqCst(scope) => "SeqCst" (scope),
    }
    RmwOrder {
        RmwOrder::Relaxed => "Relaxed" (),
        RmwOrder::Acquire => "Acquire" (),
        RmwOrder::Release => "Release" (),
        RmwOrder::AcqRel => "AcqRel" (),
        RmwOrder::SeqCst => "SeqCst" (),
    }
    AtomOp {
        AtomOp::Add => "Add" (),
        AtomOp::Sub => "Sub" (),
        AtomOp::And => "And" (),
        AtomOp::Or => "Or" (),
        AtomOp::Xor => "Xor" (),
        AtomOp::Min => "Min" (),
        AtomOp::Max => "Max" (),
        AtomOp::Inc => "Inc" (),
        AtomOp::Dec => "Dec" (),
        AtomOp::Exch => "Exch" (),
        AtomOp::Cas => "Cas" (),
    }
    Descriptor {
        Descriptor::Packed(operand) => "Packed" (operand),
        Descriptor::Range { addr, bytes } => "Range" { "addr": addr, "bytes": bytes },
    }
    EnableInput {
        EnableInput::Always(on) => "Always" (on),
        EnableInput::When(guard) => "When" (guard),
    }
    Multicast { Multicast { wide, mask } => "Multicast" { "wide": wide, "mask": mask } }
}

// `tcgen05.*`
spells! {
    Tcgen05 {
        Tcgen05::Alloc { exclusive, group, space, dst, columns } => "Alloc" {
            "exclusive": exclusive, "group": group, "space": space, "dst": dst, "columns": columns,
        },
        Tcgen05::Dealloc { exclusive, group, addr, columns } => "Dealloc" {
            "exclusive": exclusive, "group": group, "addr": addr, "columns": columns,
        },
        Tcgen05::Relinquish { group } => "Relinquish" { "group": group },
        Tcgen05::Load(load) => "Load" (load),
        Tcgen05::Store(store) => "Store" (store),
        Tcgen05::WaitLoad => "WaitLoad" (),
        Tcgen05::WaitStore => "WaitStore" (),
        Tcgen05::Copy { group, shape, widen, dst, src } => "Copy" {
            "group": group, "shape": shape, "widen": widen, "dst": dst, "src": src,
        },
        Tcgen05::Shift { group, addr } => "Shift" { "group": group, "addr": addr },
        Tcgen05::Mma(mma) => "Mma" (mma),
        Tcgen05::Commit(commit) => "Commit" (commit),
        Tcgen05::FenceBefore => "FenceBefore" (),
        Tcgen05::FenceAfter => "FenceAfter" (),
    }
    CtaGroup {
        CtaGroup::One => "One" (),
        CtaGroup::Two => "Two" (),
    }
    MoveShape {
        MoveShape::L32x32b => "L32x32b" (),
        MoveShape::L16x64b => "L16x64b" (),
        MoveShape::L16x128b => "L16x128b" (),
        MoveShape::L16x256b => "L16x256b" (),
        MoveShape::L16x32bx2 => "L16x32bx2" (),
    }
    TensorLoad {
        TensorLoad { shape, times, pack, dst, reduce, addr, split } => "TensorLoad" {
            "shape": shape, "times": times, "pack": pack, "dst": dst, "reduce": reduce, "addr": addr, "split": split,
        },
    }
    TensorReduction {
        TensorReduction { max, abs, nan, ty, dst } => "TensorReduction" {
            "max": max, "abs": abs, "nan": nan, "ty": ty, "dst": dst,
        },
    }
    TensorStore {
        TensorStore { shape, times, unpack, addr, split, src } => "TensorStore" {
            "shape": shape, "times": times, "unpack": unpack, "addr": addr, "split": split, "src": src,
        },
    }
    CopyShape {
        CopyShape::S128x256b => "S128x256b" (),
        CopyShape::S4x256b => "S4x256b" (),
        CopyShape::S128x128b => "S128x128b" (),
        CopyShape::S64x128bPairs02And13 => "S64x128bPairs02And13" (),
        CopyShape::S64x128bPairs01And23 => "S64x128bPairs01And23" (),
        CopyShape::S32x128bAllWarps => "S32x128bAllWarps" (),
    }
    Widening {
        Widening::Six => "Six" (),
        Widening::Four => "Four" (),
    }
    Commit {
        Commit { group, reads_only, space, addr, multicast } => "Commit" {
            "group": group, "reads_only": reads_only, "space": space, "addr": addr, "multicast": multicast,
        },
    }
    Mma {
        Mma {
            group, kind, stationary, ashift, collector_a, collector_b, d, a, b, metadata, shape, scales, lanes_off, input,
            scale_input, zero_columns,
        } => "Mma" {
            "group": group, "kind": kind, "stationary": stationary, "ashift": ashift, "collector_a": collector_a,
            "collector_b": collector_b, "d": d, "a": a, "b": b, "metadata": metadata, "shape": shape, "scales": scales,
            "lanes_off": lanes_off, "input": input, "scale_input": scale_input, "zero_columns": zero_columns,
        },
    }
    Factor {
        Factor::Shared(matrix) => "Shared" (matrix),
        Factor::Tensor(addr) => "Tensor" (addr),
    }
    MmaKind {
        MmaKind::F16 => "F16" (),
        MmaKind::Tf32 => "Tf32" (),
        MmaKind::F8f6f4 => "F8f6f4" (),
        MmaKind::I8 => "I8" (),
        MmaKind::Ti16 => "Ti16" (),
        MmaKind::Mxf8f6f4 => "Mxf8f6f4" (),
        MmaKind::Mxf4 => "Mxf4" (),
        MmaKind::Mxf4nvf4 => "Mxf4nvf4" (),
    }
    CollectorUse {
        CollectorUse::Fill => "Fill" (),
        CollectorUse::Use => "Use" (),
        CollectorUse::LastUse => "LastUse" (),
        CollectorUse::Discard => "Discard" (),
    }
    CollectorB { CollectorB { buffer, usage } => "CollectorB" { "buffer": buffer, "usage": usage } }
    BlockScale { BlockScale { size, a, b } => "BlockScale" { "size": size, "a": a, "b": b } }
    ScaleSize {
        ScaleSize::Default => "Default" (),
        ScaleSize::Block16 => "Block16" (),
        ScaleSize::Block32 => "Block32" (),
        ScaleSize::Times1 => "Times1" (),
        ScaleSize::Times2 => "Times2" (),
        ScaleSize::Times4 => "Times4" (),
    }
    ProductShape {
        ProductShape::Packed(operand) => "Packed" (operand),
        ProductShape::Tile { m, n } => "Tile" { "m": m, "n": n },
    }
}

// `cp.async*`, `st.async`, `red.async`
spells! {
    AsyncCopy {
        AsyncCopy::Small(copy) => "Small" (copy),
        AsyncCopy::Commit => "Commit" (),
        AsyncCopy::Wait(groups) => "Wait" (groups),
        AsyncCopy::WaitAll => "WaitAll" (),
        AsyncCopy::Arrive { noinc, space, addr } => "Arrive" { "noinc": noinc, "space": space, "addr": addr },
        AsyncCopy::Bulk(copy) => "Bulk" (copy),
        AsyncCopy::Prefetch(prefetch) => "Prefetch" (prefetch),
        AsyncCopy::BulkCommit => "BulkCommit" (),
        AsyncCopy::BulkWait { groups, reads_only } => "BulkWait" { "groups": groups, "reads_only": reads_only },
        AsyncCopy::Remote(write) => "Remote" (write),
    }
    SmallCopy {
        SmallCopy { all_levels, dst, src, bytes, part } => "SmallCopy" {
            "all_levels": all_levels, "dst": dst, "src": src, "bytes": bytes, "part": part,
        },
    }
    SmallPart {
        SmallPart::All => "All" (),
        SmallPart::Bytes(operand) => "Bytes" (operand),
        SmallPart::IgnoredWhen(guard) => "IgnoredWhen" (guard),
    }
    BulkEnd {
        BulkEnd::Bytes { space, addr } => "Bytes" { "space": space, "addr": addr },
        BulkEnd::Tensor(tensor) => "Tensor" (tensor),
    }
    TensorBox {
        TensorBox { map, tile, dims, mode, coordinates, offsets } => "TensorBox" {
            "map": map, "tile": tile, "dims": dims, "mode": mode, "coordinates": coordinates, "offsets": offsets,
        },
    }
    Tile { Tile { addr, bytes } => "Tile" { "addr": addr, "bytes": bytes } }
    TileMode {
        TileMode::Tile => "Tile" (),
        TileMode::Gather4 => "Gather4" (),
        TileMode::Scatter4 => "Scatter4" (),
        TileMode::Im2col => "Im2col" (),
        TileMode::Im2colW => "Im2colW" (),
        TileMode::Im2colW128 => "Im2colW128" (),
        TileMode::Im2colNoOffsets => "Im2colNoOffsets" (),
    }
    BulkDone {
        BulkDone::Mbarrier(addr) => "Mbarrier" (addr),
        BulkDone::Group => "Group" (),
    }
    BulkCopy {
        BulkCopy { dst, src, bytes, reduce, done, multicast, group, relaxed, byte_mask, ignored } => "BulkCopy" {
            "dst": dst, "src": src, "bytes": bytes, "reduce": reduce, "done": done, "multicast": multicast,
            "group": group, "relaxed": relaxed, "byte_mask": byte_mask, "ignored": ignored,
        },
    }
    BulkPrefetch { BulkPrefetch { src, bytes } => "BulkPrefetch" { "src": src, "bytes": bytes } }
    RemoteWrite {
        RemoteWrite { op, space, ty, addr, src, order } => "RemoteWrite" {
            "op": op, "space": space, "ty": ty, "addr": addr, "src": src, "order": order,
        },
    }
    RemoteOrder {
        RemoteOrder::Mbarrier(addr) => "Mbarrier" (addr),
        RemoteOrder::Release(scope) => "Release" (scope),
        RemoteOrder::MmioRelease => "MmioRelease" (),
    }
}

// `wgmma.*`
spells! {
    Wgmma {
        Wgmma::Fence => "Fence" (),
        Wgmma::Commit => "Commit" (),
        Wgmma::Wait(groups) => "Wait" (groups),
        Wgmma::Product(product) => "Product" (product),
    }
    WgmmaType {
        WgmmaType::F16 => "F16" (),
        WgmmaType::Bf16 => "Bf16" (),
        WgmmaType::Tf32 => "Tf32" (),
        WgmmaType::F32 => "F32" (),
        WgmmaType::E4m3 => "E4m3" (),
        WgmmaType::E5m2 => "E5m2" (),
        WgmmaType::S8 => "S8" (),
        WgmmaType::U8 => "U8" (),
        WgmmaType::B1 => "B1" (),
        WgmmaType::S32 => "S32" (),
    }
    WgmmaFactor {
        WgmmaFactor::Shared(matrix) => "Shared" (matrix),
        WgmmaFactor::Registers(all) => "Registers" (all),
    }
    WgmmaProduct {
        WgmmaProduct { n, k, types, d, a, b, input, immediates } => "WgmmaProduct" {
            "n": n, "k": k, "types": types, "d": d, "a": a, "b": b, "input": input, "immediates": immediates,
        },
    }
}

// Fences of the async and tensormap proxies, `tensormap.*`
spells! {
    ProxyOrder {
        ProxyOrder::AsyncSpace(space) => "AsyncSpace" (space),
        ProxyOrder::AsyncRestricted { side, restrict, scope } => "AsyncRestricted" {
            "side": side, "restrict": restrict, "scope": scope,
        },
        ProxyOrder::Restricted { side, restrict } => "Restricted" { "side": side, "restrict": restrict },
        ProxyOrder::TensormapRelease { scope } => "TensormapRelease" { "scope": scope },
        ProxyOrder::TensormapAcquire { scope, addr } => "TensormapAcquire" { "scope": scope, "addr": addr },
        ProxyOrder::AliasOneSided(side) => "AliasOneSided" (side),
        ProxyOrder::Fabric { side, from_fabric } => "Fabric" { "side": side, "from_fabric": from_fabric },
        ProxyOrder::CopyTensormap { scope, dst, src } => "CopyTensormap" { "scope": scope, "dst": dst, "src": src },
        ProxyOrder::ReplaceTensormap { field, space, ty, addr, ordinal, value } => "ReplaceTensormap" {
            "field": field, "space": space, "ty": ty, "addr": addr, "ordinal": ordinal, "value": value,
        },
    }
    Side {
        Side::Acquire => "Acquire" (),
        Side::Release => "Release" (),
    }
    Restrict {
        Restrict::SharedCta => "SharedCta" (),
        Restrict::SharedCluster => "SharedCluster" (),
        Restrict::SharedClusterRead => "SharedClusterRead" (),
    }
    TensormapField {
        TensormapField::GlobalAddress => "GlobalAddress" (),
        TensormapField::Rank => "Rank" (),
        TensormapField::BoxDim => "BoxDim" (),
        TensormapField::GlobalDim => "GlobalDim" (),
        TensormapField::GlobalStride => "GlobalStride" (),
        TensormapField::ElementStride => "ElementStride" (),
        TensormapField::ElementType => "ElementType" (),
        TensormapField::Interleave => "Interleave" (),
        TensormapField::Swizzle => "Swizzle" (),
        TensormapField::SwizzleAtomicity => "SwizzleAtomicity" (),
        TensormapField::Fill => "Fill" (),
    }
}

// Instructions of a tile block
spells! {
    TileOp {
        TileOp::Access(access) => "Access" (access),
        TileOp::Token(token) => "Token" (token),
    }
    TileAccess {
        TileAccess { kind, ty, elements, after, token } => "TileAccess" {
            "kind": kind, "ty": ty, "elements": elements, "after": after, "token": token,
        },
    }
    TileKind {
        TileKind::Load(order) => "Load" (order),
        TileKind::Store(order) => "Store" (order),
        TileKind::Rmw { op, order, scope } => "Rmw" { "op": op, "order": order, "scope": scope },
    }
    TileElement {
        TileElement { addr, mask, dst, a, b } => "TileElement" {
            "addr": addr, "mask": mask, "dst": dst, "a": a, "b": b,
        },
    }
    TileToken {
        TileToken::Join { dst, from } => "Join" { "dst": dst, "from": from },
        TileToken::Choose { dst, when, yes, no } => "Choose" { "dst": dst, "when": when, "yes": yes, "no": no },
    }
}

// `elect`, launch control, loops, instructions without a meaning here
spells! {
    Control {
        Control::Elect { dst, pred, mask } => "Elect" { "dst": dst, "pred": pred, "mask": mask },
        Control::Collective(what) => "Collective" (what),
        Control::LaunchDependents => "LaunchDependents" (),
        Control::WaitDependencies => "WaitDependencies" (),
        Control::TryCancel { multicast, space, addr, mbarrier } => "TryCancel" {
            "multicast": multicast, "space": space, "addr": addr, "mbarrier": mbarrier,
        },
        Control::QueryCancel { ask, dst, src } => "QueryCancel" { "ask": ask, "dst": dst, "src": src },
        Control::Repeat(trips) => "Repeat" (trips),
        Control::EndRepeat => "EndRepeat" (),
        Control::Ignored(what) => "Ignored" (what),
    }
    Collective {
        Collective { form, dst, pred, src, negated, from: [by, clamp], mask } => "Collective" {
            "form": form, "dst": dst, "pred": pred, "src": src, "negated": negated, "by": by, "clamp": clamp,
            "mask": mask,
        },
    }
    Exchange {
        Exchange::Vote(vote) => "Vote" (vote),
        Exchange::Shuffle(way) => "Shuffle" (way),
        Exchange::MatchAny => "MatchAny" (),
        Exchange::MatchAll => "MatchAll" (),
        Exchange::Reduce(op, ty) => "Reduce" (op, ty),
    }
    Vote {
        Vote::All => "All" (),
        Vote::Any => "Any" (),
        Vote::Uni => "Uni" (),
        Vote::Ballot => "Ballot" (),
    }
    Shuffle {
        Shuffle::Up => "Up" (),
        Shuffle::Down => "Down" (),
        Shuffle::Butterfly => "Butterfly" (),
        Shuffle::Index => "Index" (),
    }
    Trips {
        Trips::Number(n) => "Number" (n),
        Trips::Free { name, least } => "Free" { "name": name, "least": least },
    }
    CancelQuery {
        CancelQuery::IsCanceled => "IsCanceled" (),
        CancelQuery::FirstCta => "FirstCta" (),
        CancelQuery::FirstCtaAxis(axis) => "FirstCtaAxis" (axis),
    }
    Ignored {
        Ignored::SetMaxRegisters { inc, count } => "SetMaxRegisters" { "inc": inc, "count": count },
        Ignored::Nanosleep(time) => "Nanosleep" (time),
        Ignored::PerformanceEvent(n) => "PerformanceEvent" (n),
        Ignored::Prefetch(addr) => "Prefetch" (addr),
        Ignored::PrefetchTensormap(addr) => "PrefetchTensormap" (addr),
    }
}

//! The pass that simplifies tensor-core instructions and asynchronous copies: fewer registers and bytes, fewer modifiers.
//!
//! Contract: the reader accepts each new instruction, and simpler instructions have less weight. The predicate decides
//! whether the program still shows its finding.

use super::passes::places;
use crate::ir::*;

type Candidates<'p> = Box<dyn Iterator<Item = Program> + 'p>;

/// The distance of an instruction from the plainest of its kind.
pub(super) fn copy_weight(copy: &AsyncCopy) -> usize {
    match copy {
        AsyncCopy::Bulk(copy) => {
            let tensor = |e: &BulkEnd| 20 * usize::from(matches!(e, BulkEnd::Tensor(_)));
            let extras = [
                copy.multicast.is_some(),
                copy.group.is_some(),
                copy.relaxed.is_some(),
                copy.byte_mask.is_some(),
                copy.ignored.is_some(),
                copy.reduce.is_some(),
            ];
            tensor(&copy.dst) + tensor(&copy.src) + 10 * count(&extras)
        }
        AsyncCopy::Small(copy) => 10 * usize::from(copy.part != SmallPart::All),
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll | AsyncCopy::Arrive { .. } => 0,
        AsyncCopy::Prefetch(_) | AsyncCopy::Remote(_) => 0,
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => 0,
    }
}

fn count(flags: &[bool]) -> usize {
    flags.iter().filter(|f| **f).count()
}

fn bytes(descriptor: &Descriptor) -> usize {
    match descriptor {
        Descriptor::Packed(_) => 0,
        Descriptor::Range { bytes, .. } => usize::try_from(bytes.ilog2()).unwrap_or(0),
    }
}

/// The distance of an instruction from the plainest of its kind.
pub(super) fn tcgen05_weight(op: &Tcgen05) -> usize {
    50 * usize::from(op.group() == Some(CtaGroup::Two)) + modifiers(op)
}

fn modifiers(op: &Tcgen05) -> usize {
    match op {
        Tcgen05::Alloc { exclusive, .. } | Tcgen05::Dealloc { exclusive, .. } => 10 * usize::from(*exclusive),
        Tcgen05::Load(load) => {
            let far = load.shape != MoveShape::L32x32b;
            10 * load.dst.len() + 10 * count(&[load.pack, load.reduce.is_some(), far])
        }
        Tcgen05::Store(store) => {
            10 * store.src.len() + 10 * count(&[store.unpack, store.shape != MoveShape::L32x32b])
        }
        Tcgen05::Copy { widen, src, .. } => 10 * usize::from(widen.is_some()) + bytes(src),
        Tcgen05::Mma(mma) => {
            let extras = [
                mma.stationary,
                mma.ashift,
                mma.collector_a.is_some(),
                mma.collector_b.is_some(),
                mma.metadata.is_some(),
                mma.scales.is_some(),
                !mma.lanes_off.is_empty(),
                mma.scale_input.is_some(),
                mma.zero_columns.is_some(),
                mma.kind != MmaKind::F16,
                matches!(mma.input, EnableInput::When(_)),
            ];
            let a = if let Factor::Shared(a) = &mma.a { bytes(a) } else { 0 };
            10 * count(&extras) + a + bytes(&mma.b)
        }
        Tcgen05::Commit(commit) => 10 * count(&[commit.multicast.is_some(), commit.reads_only]),
        Tcgen05::Relinquish { .. } | Tcgen05::Shift { .. } | Tcgen05::WaitLoad | Tcgen05::WaitStore => 0,
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => 0,
    }
}

/// Changes all CTA groups of the program to single CTAs at once, then simplifies each instruction.
pub(super) fn plain_tensor(program: &Program) -> Candidates<'_> {
    let mut single = program.clone();
    let mut changed = false;
    for instr in single.threads.iter_mut().flat_map(|t| &mut t.body) {
        changed |= to_single(&mut instr.op);
    }
    let each = places(program).flat_map(move |(t, at)| {
        simpler(&program.threads[t].body[at].op).into_iter().map(move |op| {
            let mut next = program.clone();
            next.threads[t].body[at].op = op;
            next
        })
    });
    Box::new(changed.then_some(single).into_iter().chain(each))
}

/// Changes `.cta_group::2` to `.cta_group::1`, and drops operands that only pairs have.
fn to_single(op: &mut Op) -> bool {
    let Op::Tcgen05(op) = op else { return false };
    let group = match op {
        Tcgen05::Alloc { group, .. }
        | Tcgen05::Dealloc { group, .. }
        | Tcgen05::Relinquish { group }
        | Tcgen05::Copy { group, .. }
        | Tcgen05::Shift { group, .. } => group,
        Tcgen05::Commit(commit) => &mut commit.group,
        Tcgen05::Mma(mma) => {
            mma.lanes_off.truncate(4);
            if let ProductShape::Tile { m, .. } = &mut mma.shape {
                *m = (*m).min(128);
            }
            &mut mma.group
        }
        Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::WaitLoad | Tcgen05::WaitStore => return false,
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => return false,
    };
    std::mem::replace(group, CtaGroup::One) == CtaGroup::Two
}

fn simpler(op: &Op) -> Vec<Op> {
    match op {
        Op::Tcgen05(op) => simpler_tcgen05(op),
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) => bulk(copy),
        Op::AsyncCopy(AsyncCopy::Small(copy)) => {
            let whole = SmallCopy { part: SmallPart::All, ..*copy };
            Vec::from_iter((whole != *copy).then_some(Op::AsyncCopy(AsyncCopy::Small(whole))))
        }
        Op::AsyncCopy(AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll) => Vec::new(),
        Op::AsyncCopy(AsyncCopy::Arrive { .. } | AsyncCopy::Prefetch(_) | AsyncCopy::Remote(_)) => Vec::new(),
        Op::AsyncCopy(AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. }) => Vec::new(),
        register_op!() => Vec::new(),
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => Vec::new(),
        multimem_op!() | fence_op!() | barrier_op!() => Vec::new(),
        Op::Wgmma(_) | Op::Tile(_) | Op::Control(_) | jump_op!() => Vec::new(),
        Op::Book(_) => Vec::new(),
    }
}

fn simpler_tcgen05(op: &Tcgen05) -> Vec<Op> {
    match op {
        Tcgen05::Load(load) => loads(load),
        Tcgen05::Store(store) => stores(store),
        Tcgen05::Mma(mma) => products(mma),
        Tcgen05::Copy { group, shape, widen, dst, src } => {
            let with = |widen: Option<Widening>, src: Descriptor| {
                Op::Tcgen05(Tcgen05::Copy { group: *group, shape: *shape, widen, dst: *dst, src })
            };
            let plain = widen.is_some().then(|| with(None, *src));
            plain.into_iter().chain(halved(src).map(|src| with(*widen, src))).collect()
        }
        Tcgen05::Commit(commit) => {
            let one = Commit { multicast: None, ..commit.clone() };
            let whole = Commit { reads_only: false, ..commit.clone() };
            [one, whole]
                .into_iter()
                .filter(|c| c != commit)
                .map(|c| Op::Tcgen05(Tcgen05::Commit(c)))
                .collect()
        }
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => Vec::new(),
        Tcgen05::Shift { .. } | Tcgen05::WaitLoad | Tcgen05::WaitStore => Vec::new(),
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => Vec::new(),
    }
}

fn halved(descriptor: &Descriptor) -> Option<Descriptor> {
    match descriptor {
        Descriptor::Range { addr, bytes } if *bytes > 1 => {
            Some(Descriptor::Range { addr: *addr, bytes: bytes / 2 })
        }
        _ => None,
    }
}

fn loads(load: &TensorLoad) -> Vec<Op> {
    let mut all = Vec::new();
    let mut plain =
        TensorLoad { shape: MoveShape::L32x32b, split: None, pack: false, reduce: None, ..load.clone() };
    plain.times = u8::try_from(plain.dst.len()).unwrap_or(1).max(1);
    if plain.dst.len() > 1 {
        let mut short = plain.clone();
        short.dst.truncate(load.dst.len() / 2);
        short.times = u8::try_from(short.dst.len()).unwrap_or(1);
        all.push(short);
    }
    all.push(plain);
    all.into_iter().filter(|l| l != load).map(|l| Op::Tcgen05(Tcgen05::Load(l))).collect()
}

fn stores(store: &TensorStore) -> Vec<Op> {
    let mut all = Vec::new();
    let mut plain = TensorStore { shape: MoveShape::L32x32b, split: None, unpack: false, ..store.clone() };
    plain.times = u8::try_from(plain.src.len()).unwrap_or(1).max(1);
    if plain.src.len() > 1 {
        let mut short = plain.clone();
        short.src.truncate(store.src.len() / 2);
        short.times = u8::try_from(short.src.len()).unwrap_or(1);
        all.push(short);
    }
    all.push(plain);
    all.into_iter().filter(|s| s != store).map(|s| Op::Tcgen05(Tcgen05::Store(s))).collect()
}

fn products(mma: &Mma) -> Vec<Op> {
    let plain = Mma {
        kind: MmaKind::F16,
        stationary: false,
        ashift: false,
        collector_a: None,
        collector_b: None,
        metadata: None,
        scales: None,
        lanes_off: Vec::new(),
        scale_input: None,
        zero_columns: None,
        ..mma.clone()
    };
    let mut all = vec![
        plain,
        Mma { ashift: false, collector_a: None, collector_b: None, ..mma.clone() },
        Mma { lanes_off: Vec::new(), scale_input: None, zero_columns: None, ..mma.clone() },
        Mma { metadata: None, ..mma.clone() },
        Mma { input: EnableInput::Always(true), ..mma.clone() },
        Mma { input: EnableInput::Always(false), ..mma.clone() },
    ];
    if let Factor::Shared(a) = &mma.a {
        all.extend(halved(a).map(|a| Mma { a: Factor::Shared(a), ..mma.clone() }));
    }
    all.extend(halved(&mma.b).map(|b| Mma { b, ..mma.clone() }));
    all.into_iter().filter(|m| m != mma).map(|m| Op::Tcgen05(Tcgen05::Mma(Box::new(m)))).collect()
}

fn bulk(copy: &BulkCopy) -> Vec<Op> {
    let mut all = vec![
        BulkCopy {
            multicast: None,
            group: None,
            relaxed: None,
            byte_mask: None,
            ignored: None,
            ..copy.clone()
        },
        BulkCopy { multicast: None, ..copy.clone() },
        BulkCopy { group: None, ..copy.clone() },
        BulkCopy { relaxed: None, byte_mask: None, ignored: None, ..copy.clone() },
    ];
    // A box with its own `tile(..)` becomes the bytes of that tile.
    let flat = |end: &BulkEnd| match end {
        BulkEnd::Tensor(TensorBox { tile: Some(tile), .. }) => {
            let end = BulkEnd::Bytes { space: Space::Global, addr: tile.addr };
            Some((end, Some(Operand::Imm(i128::from(tile.bytes)))))
        }
        _ => None,
    };
    if copy.reduce.is_none() {
        all.extend(flat(&copy.src).map(|(src, bytes)| BulkCopy { src, bytes, group: None, ..copy.clone() }));
        all.extend(flat(&copy.dst).map(|(dst, bytes)| BulkCopy { dst, bytes, ..copy.clone() }));
    }
    all.into_iter().filter(|c| c != copy).map(|c| Op::AsyncCopy(AsyncCopy::Bulk(Box::new(c)))).collect()
}

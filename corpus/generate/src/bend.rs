//! Changes one qualifier of one instruction, whether or not the result is PTX. The static rules and the assembler must
//! give the same verdict on the result.
//!
//! Contract: a pure function of program and number. It returns nothing if no text of the changed program can be read.

use arbitrary::Unstructured;
use moire_program::ir::*;
use moire_program::text::{Format, parse, print};
use moire_program::{fence_op, jump_op, multimem_op};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Bytes from which one change is drawn. It needs only a few.
const BYTES: usize = 64;

/// `program` with one instruction changed, printed and read back.
pub fn bend(program: &Program, number: u64) -> Option<Program> {
    let mut bytes = [0; BYTES];
    ChaCha8Rng::seed_from_u64(number).fill_bytes(&mut bytes);
    let mut bent = program.clone();
    let mut u = Unstructured::new(&bytes);
    change(&mut bent, &mut u).ok()?;
    let read = parse(&print(&bent), Format::Native).ok()?;
    (read != *program).then_some(read)
}

fn change(program: &mut Program, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut all: Vec<&mut Instr> = program.threads.iter_mut().flat_map(|t| &mut t.body).collect();
    let at = u.choose_index(all.len())?;
    match &mut all[at].op {
        Op::Mov { ty, .. } | Op::Alu { ty, .. } | Op::Setp { ty, .. } | Op::Selp { ty, .. } => {
            *ty = *u.choose(&TYPES)?;
        }
        Op::Load { order, space, ty, dst, .. } => match u.int_in_range(0..=3)? {
            0 => *ty = *u.choose(&TYPES)?,
            1 => *space = *u.choose(&SPACES)?,
            2 => *order = *u.choose(&LOADS)?,
            _ => vector(dst, u)?,
        },
        Op::Store { order, space, ty, src, .. } => match u.int_in_range(0..=3)? {
            0 => *ty = *u.choose(&TYPES)?,
            1 => *space = *u.choose(&SPACES)?,
            2 => *order = *u.choose(&STORES)?,
            _ => vector(src, u)?,
        },
        Op::Rmw { red, order, space, op, ty, dst, b, .. } => match u.int_in_range(0..=4)? {
            0 => *ty = *u.choose(&TYPES)?,
            1 => *space = *u.choose(&SPACES)?,
            2 => *order = *u.choose(&UPDATES)?,
            3 if b.is_none() => *op = *u.choose(&OPERATIONS)?,
            _ if dst.is_none() => *red = true,
            _ => *ty = *u.choose(&TYPES)?,
        },
        Op::Bar { id, instance: None, .. } => *id = Operand::Imm(u.int_in_range(14..=18)?),
        // The numbers of the Dat3M dialect have no bound.
        Op::Bar { instance: Some(_), .. } => {}
        Op::Mbarrier(m) => m.space = *u.choose(&SPACES)?,
        Op::Tcgen05(op) => tensor(op, u)?,
        Op::AsyncCopy(AsyncCopy::Small(copy)) => copy.bytes = *u.choose(&[2, 4, 8, 16, 32])?,
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) => bulk(copy, u)?,
        // What these say is bent in no way yet.
        Op::AsyncCopy(_) | Op::Wgmma(_) | Op::Tile(_) | Op::Control(_) | Op::Mapa { .. } => {}
        multimem_op!() | fence_op!() => {}
        Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } | jump_op!() => {}
        Op::Book(_) => {}
    }
    Ok(())
}

fn vector<T: Copy>(all: &mut Vec<T>, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let wanted = *u.choose(&[1, 2, 4, 8])?;
    all.resize(wanted, all[0]);
    Ok(())
}

fn tensor(op: &mut Tcgen05, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let other = |group: &mut CtaGroup| {
        *group = if *group == CtaGroup::One { CtaGroup::Two } else { CtaGroup::One };
    };
    match op {
        Tcgen05::Alloc { exclusive, group, space, columns, .. } => match u.int_in_range(0..=3)? {
            0 => *exclusive = !*exclusive,
            1 => other(group),
            2 => *space = *u.choose(&SPACES)?,
            _ => *columns = Operand::Imm(*u.choose(&COLUMNS)?),
        },
        Tcgen05::Dealloc { columns, .. } => *columns = Operand::Imm(*u.choose(&COLUMNS)?),
        Tcgen05::Relinquish { group } | Tcgen05::Shift { group, .. } => other(group),
        Tcgen05::Load(load) => match u.int_in_range(0..=2)? {
            0 => load.shape = *u.choose(&SHAPES)?,
            1 => load.times = 1 << u.int_in_range(0..=7)?,
            _ => load.pack = !load.pack,
        },
        Tcgen05::Store(store) => match u.int_in_range(0..=1)? {
            0 => store.shape = *u.choose(&SHAPES)?,
            _ => store.times = 1 << u.int_in_range(0..=7)?,
        },
        Tcgen05::Copy { group, .. } => other(group),
        Tcgen05::Mma(mma) => match u.int_in_range(0..=4)? {
            0 => mma.kind = *u.choose(&KINDS)?,
            1 => mma.stationary = !mma.stationary,
            2 => mma.ashift = !mma.ashift,
            3 => mma.scale_input = Some(u.int_in_range(0..=17)?),
            _ => other(&mut mma.group),
        },
        Tcgen05::Commit(commit) => match u.int_in_range(0..=2)? {
            0 => commit.space = *u.choose(&SPACES)?,
            1 => commit.reads_only = !commit.reads_only,
            _ => other(&mut commit.group),
        },
        Tcgen05::WaitLoad | Tcgen05::WaitStore | Tcgen05::FenceBefore | Tcgen05::FenceAfter => {}
    }
    Ok(())
}

fn bulk(copy: &mut BulkCopy, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    match u.int_in_range(0..=3)? {
        0 => copy.bytes = copy.bytes.map(|_| Operand::Imm(24)),
        1 => copy.group = Some(CtaGroup::Two),
        2 => copy.done = BulkDone::Group,
        _ => {
            if let BulkEnd::Bytes { space, .. } = &mut copy.dst {
                *space = *u.choose(&SPACES)?;
            }
        }
    }
    Ok(())
}

const TYPES: [Ty; 15] = [
    Ty::Pred,
    Ty::B(8),
    Ty::B(16),
    Ty::B(32),
    Ty::B(64),
    Ty::B(128),
    Ty::U(16),
    Ty::U(32),
    Ty::U(64),
    Ty::S(32),
    Ty::S(64),
    Ty::F(16),
    Ty::F(32),
    Ty::F(64),
    Ty::F16x2,
];
const SPACES: [Space; 4] = [Space::Generic, Space::Global, Space::SharedCta, Space::SharedCluster];
const LOADS: [LoadOrder; 6] = [
    LoadOrder::Weak,
    LoadOrder::Relaxed(Scope::Cta),
    LoadOrder::Acquire(Scope::Gpu),
    LoadOrder::Volatile,
    LoadOrder::MmioRelaxed,
    LoadOrder::MmioAcquire,
];
const STORES: [StoreOrder; 6] = [
    StoreOrder::Weak,
    StoreOrder::Relaxed(Scope::Cluster),
    StoreOrder::Release(Scope::Sys),
    StoreOrder::Volatile,
    StoreOrder::MmioRelaxed,
    StoreOrder::MmioRelease,
];
const UPDATES: [RmwOrder; 4] = [RmwOrder::Relaxed, RmwOrder::Acquire, RmwOrder::Release, RmwOrder::AcqRel];
const OPERATIONS: [AtomOp; 9] = [
    AtomOp::Add,
    AtomOp::And,
    AtomOp::Or,
    AtomOp::Xor,
    AtomOp::Min,
    AtomOp::Max,
    AtomOp::Inc,
    AtomOp::Dec,
    AtomOp::Exch,
];
const COLUMNS: [i128; 7] = [0, 16, 32, 96, 512, 576, 1024];
const SHAPES: [MoveShape; 4] =
    [MoveShape::L32x32b, MoveShape::L16x64b, MoveShape::L16x128b, MoveShape::L16x256b];
const KINDS: [MmaKind; 8] = [
    MmaKind::F16,
    MmaKind::Tf32,
    MmaKind::F8f6f4,
    MmaKind::I8,
    MmaKind::Ti16,
    MmaKind::Mxf8f6f4,
    MmaKind::Mxf4,
    MmaKind::Mxf4nvf4,
];

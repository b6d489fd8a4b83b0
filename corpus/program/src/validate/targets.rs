//! Computes the architectures that have every instruction of a program, according to the assembler.
//!
//! Only tensor-core instructions, asynchronous copies, one-sided fences, launch control, 256-bit accesses and what the book tells are checked;
//! all other instructions are assumed to exist everywhere. Source: `tests/data/targets.csv`, `.version 9.5`.

use super::report::Report;
use crate::ir::*;

/// An architecture as `-arch` names it: `a` has all its features, `f` only those its family shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are those of the architectures")]
pub enum Target {
    Sm90a,
    Sm100a,
    Sm100f,
    Sm103a,
    Sm107a,
    Sm110a,
    Sm120a,
}

use Target::*;

impl Target {
    /// All architectures in the recorded answers.
    pub const ALL: [Target; 7] = [Sm90a, Sm100a, Sm100f, Sm103a, Sm107a, Sm110a, Sm120a];

    /// The assembler's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Sm90a => "sm_90a",
            Sm100a => "sm_100a",
            Sm100f => "sm_100f",
            Sm103a => "sm_103a",
            Sm107a => "sm_107a",
            Sm110a => "sm_110a",
            Sm120a => "sm_120a",
        }
    }

    /// Its number: 90 for `sm_90a`.
    fn sm(self) -> u16 {
        match self {
            Sm90a => 90,
            Sm100a | Sm100f => 100,
            Sm103a => 103,
            Sm107a => 107,
            Sm110a => 110,
            Sm120a => 120,
        }
    }
}

const BLACKWELL: &[Target] = &[Sm100a, Sm100f, Sm103a, Sm107a, Sm110a];
const NOT_90: &[Target] = &[Sm100a, Sm100f, Sm103a, Sm107a, Sm110a, Sm120a];
const NOT_120: &[Target] = &[Sm90a, Sm100a, Sm100f, Sm103a, Sm107a, Sm110a];
const NO_FAMILY: &[Target] = &[Sm100a, Sm103a, Sm107a, Sm110a];
const ONLY_107: &[Target] = &[Sm107a];
const INTEGER: &[Target] = &[Sm100a, Sm110a];

/// Architectures that have every instruction of `program`.
pub fn targets(program: &Program) -> Vec<Target> {
    let ops = || program.threads.iter().flat_map(|t| &t.body).map(|i| &i.op);
    Target::ALL.into_iter().filter(|t| ops().all(|op| has(*t, op))).collect()
}

pub(super) fn check(report: &mut Report<'_>) {
    let program = report.program;
    let mut left = Target::ALL.to_vec();
    for thread in &program.threads {
        for instr in &thread.body {
            left.retain(|t| has(*t, &instr.op));
            if left.is_empty() {
                let what = "no architecture has this instruction and all before it";
                report.at("target", thread, instr, what, None);
                return;
            }
        }
    }
}

/// Whether an architecture has an instruction.
fn has(target: Target, op: &Op) -> bool {
    let told = if let Op::Book(book) = op { book.instr().on(target.sm()) } else { true };
    told && features(op).iter().all(|all| all.contains(&target))
}

/// For each feature of an instruction, the architectures that have it.
fn features(op: &Op) -> Vec<&'static [Target]> {
    match op {
        Op::Tcgen05(op) => tcgen05(op),
        Op::Wgmma(_) => vec![&[Sm90a]],
        Op::Load { proxy: Proxy::Generic, ty, dst, .. } if wide(*ty, dst.len()) => vec![NOT_90],
        Op::Store { proxy: Proxy::Generic, ty, src, .. } if wide(*ty, src.len()) => vec![NOT_90],
        Op::AsyncCopy(copy) => of_copy(copy),
        Op::ProxyOrder(ProxyOrder::ReplaceTensormap { field: TensormapField::SwizzleAtomicity, .. })
        | Op::ProxyOrder(ProxyOrder::Fabric { .. })
        | Op::Control(Control::TryCancel { .. } | Control::QueryCancel { .. }) => vec![NOT_90],
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => Vec::new(),
        multimem_op!() | register_op!() | fence_op!() | barrier_op!() => Vec::new(),
        Op::Tile(_) | Op::Control(_) | jump_op!() => Vec::new(),
        Op::Book(_) => Vec::new(),
    }
}

fn of_copy(copy: &AsyncCopy) -> Vec<&'static [Target]> {
    match copy {
        AsyncCopy::Bulk(copy) => bulk(copy),
        AsyncCopy::Prefetch(prefetch) => Vec::from_iter(mode(&prefetch.src, true)),
        AsyncCopy::Remote(write) => match write.order {
            RemoteOrder::Mbarrier(_) => Vec::new(),
            RemoteOrder::Release(_) | RemoteOrder::MmioRelease => vec![NOT_90],
        },
        AsyncCopy::Small(_) | AsyncCopy::Arrive { .. } => Vec::new(),
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => Vec::new(),
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => Vec::new(),
    }
}

/// An access of more than 128 bits.
fn wide(ty: Ty, elements: usize) -> bool {
    u64::from(ty.bytes()) * elements as u64 > 16
}

fn tcgen05(op: &Tcgen05) -> Vec<&'static [Target]> {
    let mut all = vec![BLACKWELL];
    match op {
        Tcgen05::Load(load) if load.reduce.is_some() => all.push(&[Sm103a, Sm107a, Sm110a]),
        Tcgen05::Shift { .. } => all.push(NO_FAMILY),
        Tcgen05::Commit(commit) if commit.reads_only || commit.multicast.is_some_and(|m| m.wide) => {
            all.push(ONLY_107);
        }
        Tcgen05::Mma(mma) => product(mma, &mut all),
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => {}
        Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::WaitLoad | Tcgen05::WaitStore => {}
        Tcgen05::Copy { .. } | Tcgen05::Commit(_) => {}
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => {}
    }
    all
}

fn product(mma: &Mma, all: &mut Vec<&'static [Target]>) {
    match mma.kind {
        MmaKind::I8 => all.push(INTEGER),
        MmaKind::Ti16 => all.push(ONLY_107),
        MmaKind::Mxf4 | MmaKind::Mxf4nvf4 if mma.metadata.is_some() => all.push(NO_FAMILY),
        _ => {}
    }
    let spelled =
        |s: &BlockScale| matches!(s.size, ScaleSize::Times1 | ScaleSize::Times2 | ScaleSize::Times4);
    if mma.scales.as_ref().is_some_and(spelled) {
        all.push(NO_FAMILY);
    }
    if mma.collector_b.is_some_and(|b| b.buffer.is_none()) {
        all.push(ONLY_107);
    }
    if mma.scale_input.is_some() && mma.kind != MmaKind::I8 {
        all.push(&[Sm100a, Sm100f, Sm103a, Sm107a]);
    }
}

fn bulk(copy: &BulkCopy) -> Vec<&'static [Target]> {
    let mut all = Vec::new();
    if copy.multicast.is_some_and(|m| m.wide) {
        all.push(ONLY_107);
    }
    if copy.group.is_some() {
        all.push(BLACKWELL);
    }
    if copy.byte_mask.is_some() {
        all.push(NOT_90);
    }
    let cluster = matches!(copy.dst, BulkEnd::Bytes { space: Space::SharedCluster, .. });
    let global = matches!(copy.src, BulkEnd::Bytes { space: Space::Global, .. });
    if cluster && global && copy.relaxed.is_some() {
        all.push(NOT_120);
    }
    all.extend(mode(&copy.dst, cluster));
    all.extend(mode(&copy.src, cluster));
    all
}

fn mode(end: &BulkEnd, cluster: bool) -> Option<&'static [Target]> {
    let BulkEnd::Tensor(tensor) = end else { return None };
    match tensor.mode {
        TileMode::Tile | TileMode::Im2col | TileMode::Im2colNoOffsets => None,
        TileMode::Im2colW128 | TileMode::Scatter4 => Some(BLACKWELL),
        TileMode::Gather4 | TileMode::Im2colW => Some(if cluster { BLACKWELL } else { NOT_90 }),
    }
}

//! Rules for forms that the assembler does not have: types, vectors, operations, orders. All are `PtxasEqual`.

use super::report::Report;
use crate::ir::*;
use crate::text::type_name;

const INTEGERS: [Ty; 6] = [Ty::U(16), Ty::U(32), Ty::U(64), Ty::S(16), Ty::S(32), Ty::S(64)];
const BITS: [Ty; 3] = [Ty::B(16), Ty::B(32), Ty::B(64)];
const FLOATS: [Ty; 5] = [Ty::F(16), Ty::F(32), Ty::F(64), Ty::F16x2, Ty::Bf16x2];

pub(super) fn check(report: &mut Report<'_>, thread: &Thread, instr: &Instr) {
    let wrong = match &instr.op {
        Op::Load { order, space, ty, dst, .. } => {
            let mmio = matches!(order, LoadOrder::MmioRelaxed | LoadOrder::MmioAcquire);
            access(*ty, dst.len(), *space, mmio)
        }
        Op::Store { order, space, ty, src, .. } => {
            let mmio = matches!(order, StoreOrder::MmioRelaxed | StoreOrder::MmioRelease);
            access(*ty, src.len(), *space, mmio)
        }
        Op::Rmw { red, order, op, ty, .. } => update(*red, *order, *op, *ty),
        Op::MultimemLoad { order, op, ty, .. } => {
            let plain = matches!(order, LoadOrder::Weak | LoadOrder::Relaxed(_) | LoadOrder::Acquire(_));
            multimem(plain, multimem_types(*op, true), *ty)
        }
        Op::MultimemRed { order, op, ty, .. } => {
            let plain = matches!(order, RmwOrder::Relaxed | RmwOrder::Release);
            multimem(plain, multimem_types(*op, false), *ty)
        }
        Op::MultimemStore { order, ty, .. } => {
            let plain = matches!(order, StoreOrder::Weak | StoreOrder::Relaxed(_) | StoreOrder::Release(_));
            multimem(plain, &MULTIMEM_STORE, *ty)
        }
        Op::Alu { op, ty, .. } => arithmetic(alu_type(*op, *ty)),
        Op::Setp { op, ty, .. } => {
            let ordered = INTEGERS.contains(ty) || FLOATS.contains(ty);
            arithmetic(ordered || (matches!(op, CmpOp::Eq | CmpOp::Ne) && BITS.contains(ty)))
        }
        Op::Mov { ty, .. } => arithmetic(matches!(ty, Ty::Pred | Ty::B(128)) || selectable(*ty)),
        Op::Selp { ty, .. } => arithmetic(selectable(*ty)),
        Op::Bar { kind, id, count, .. } => barrier(*kind, *id, *count),
        Op::ProxyFence(kinds) => {
            let known = [ProxyFence::Alias, ProxyFence::Of(Proxy::Async)].map(|kind| [kind]);
            let known = known.iter().any(|known| kinds.as_slice() == known);
            (!known).then(|| ("proxy-fence", "there is no such fence".to_owned(), None))
        }
        // All that the reader can read of these is a form.
        Op::Fence { .. } | Op::Mbarrier(_) | Op::MbarrierInitFence | Op::Mapa { .. } => None,
        Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } | jump_op!() => None,
        // Other rules look at these.
        unit_op!() | Op::ProxyOrder(_) | Op::Tile(_) | Op::Control(_) => None,
        // The reader of the book has looked at its form.
        Op::Book(_) => None,
    };
    if let Some((id, what, hint)) = wrong {
        report.at(id, thread, instr, &what, hint);
    }
}

type Wrong = Option<(&'static str, String, Option<String>)>;

fn access(ty: Ty, count: usize, space: Space, mmio: bool) -> Wrong {
    let known = match ty {
        Ty::B(_) | Ty::U(_) | Ty::S(_) => true,
        Ty::F(bits) => bits != 16,
        Ty::Pred | Ty::F16x2 | Ty::Bf16x2 => false,
    };
    if !known {
        let hint = format!("use .b{}", ty.bytes() * 8);
        return Some(("access-type", "this type cannot be loaded or stored".into(), Some(hint)));
    }
    let shared = matches!(space, Space::SharedCta | Space::SharedCluster);
    if mmio && (shared || count > 1) {
        let what = if shared { "mmio cannot access shared memory" } else { "mmio moves one value" };
        return Some(("mmio-form", what.into(), None));
    }
    let bits = u64::from(ty.bytes()) * 8 * count as u64;
    let wide = bits == 256 && matches!(ty.bytes(), 4 | 8) && !shared;
    (bits > 128 && !wide).then(|| {
        let what = format!("{bits} bits are too many");
        ("vector-width", what, Some("at most 128 bits, in .global memory 256 of .b32 or .b64".into()))
    })
}

/// The types for which `atom` has an operation, and `red` too if it has the operation.
fn update_types(op: AtomOp) -> &'static [Ty] {
    match op {
        AtomOp::Add => {
            &[Ty::U(32), Ty::U(64), Ty::S(32), Ty::F(16), Ty::F(32), Ty::F(64), Ty::F16x2, Ty::Bf16x2]
        }
        AtomOp::And | AtomOp::Or | AtomOp::Xor => &[Ty::B(32), Ty::B(64)],
        AtomOp::Min | AtomOp::Max => &[Ty::U(32), Ty::U(64), Ty::S(32), Ty::S(64)],
        AtomOp::Inc | AtomOp::Dec => &[Ty::U(32)],
        AtomOp::Exch => &[Ty::B(32), Ty::B(64), Ty::B(128)],
        AtomOp::Cas => &[Ty::B(16), Ty::B(32), Ty::B(64), Ty::B(128)],
        AtomOp::Sub => &[],
    }
}

const MULTIMEM_STORE: [Ty; 10] = [
    Ty::B(32),
    Ty::B(64),
    Ty::U(32),
    Ty::U(64),
    Ty::S(32),
    Ty::S(64),
    Ty::F(32),
    Ty::F(64),
    Ty::F16x2,
    Ty::Bf16x2,
];

fn multimem_types(op: AtomOp, load: bool) -> &'static [Ty] {
    match op {
        AtomOp::Add => &[Ty::U(32), Ty::U(64), Ty::S(32), Ty::F(32), Ty::F(64), Ty::F16x2, Ty::Bf16x2],
        AtomOp::And | AtomOp::Or | AtomOp::Xor => &[Ty::B(32), Ty::B(64)],
        AtomOp::Min | AtomOp::Max if load => {
            &[Ty::U(32), Ty::U(64), Ty::S(32), Ty::S(64), Ty::F16x2, Ty::Bf16x2]
        }
        AtomOp::Min | AtomOp::Max => &[Ty::U(32), Ty::U(64), Ty::S(32), Ty::S(64)],
        AtomOp::Inc | AtomOp::Dec | AtomOp::Exch | AtomOp::Cas | AtomOp::Sub => &[],
    }
}

/// A hint that lists the types, such as `it exists for .u32 .u64`.
fn listed(types: &[Ty]) -> Option<String> {
    let names: Vec<String> = types.iter().map(|t| type_name(*t)).collect();
    (!names.is_empty()).then(|| format!("it exists for {}", names.join(" ")))
}

fn update(red: bool, order: RmwOrder, op: AtomOp, ty: Ty) -> Wrong {
    if red && matches!(op, AtomOp::Exch | AtomOp::Cas) {
        return Some(("red-form", "red has no such operation".into(), Some("use atom".into())));
    }
    if red && !matches!(order, RmwOrder::Relaxed | RmwOrder::Release) {
        return Some((
            "red-form",
            "red is relaxed or release".into(),
            Some("use atom for an acquire".into()),
        ));
    }
    let types = update_types(op);
    (!types.contains(&ty))
        .then(|| ("update-type", "this operation does not exist for this type".into(), listed(types)))
}

fn multimem(order: bool, types: &[Ty], ty: Ty) -> Wrong {
    if !order {
        return Some(("multimem-form", "this order does not exist for multimem".into(), None));
    }
    (!types.contains(&ty))
        .then(|| ("multimem-form", "this instruction does not exist for this type".into(), listed(types)))
}

fn arithmetic(known: bool) -> Wrong {
    (!known).then(|| ("arithmetic-type", "this instruction does not exist for this type".into(), None))
}

fn alu_type(op: AluOp, ty: Ty) -> bool {
    let integer = INTEGERS.contains(&ty);
    match op {
        AluOp::Add | AluOp::Sub | AluOp::Min | AluOp::Max => integer || FLOATS.contains(&ty),
        AluOp::Mul | AluOp::Div | AluOp::Rem => integer,
        AluOp::And | AluOp::Or | AluOp::Xor => ty == Ty::Pred || BITS.contains(&ty),
        AluOp::Shl => BITS.contains(&ty),
        AluOp::Shr => integer || BITS.contains(&ty),
    }
}

fn selectable(ty: Ty) -> bool {
    INTEGERS.contains(&ty) || BITS.contains(&ty) || matches!(ty, Ty::F(32 | 64))
}

fn barrier(kind: BarKind, id: Operand, count: Option<Operand>) -> Wrong {
    if let Operand::Imm(n) = id
        && !(0..16).contains(&n)
    {
        return Some(("barrier-number", format!("there is no barrier {n}"), Some("use 0 to 15".into())));
    }
    let none = matches!(count, None | Some(Operand::Imm(0)));
    (kind == BarKind::Arrive && none).then(|| {
        let hint = "say how many threads meet, as in `bar.arrive 1, 64`".to_owned();
        ("arrive-count", "an arrival needs the number of threads".into(), Some(hint))
    })
}

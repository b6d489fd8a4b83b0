//! Read-modify-writes, and loads of all locations behind a multimem name: two events for each piece, and the value that
//! is written (PTX ISA 9.2, 9.7.13.5 atom, 9.7.13.7 red, 9.7.9.14 multimem).

use super::access;
use super::event::Kind;
use super::event::Mate;
use super::event::deps::Deps;
use super::event::labels::load_labels;
use super::machine::Machine;
use super::trace::{RegState, TraceEnd, View};

use moire_execution::leaf::{arithmetic, sign_extend, truncate};
use moire_program::ir::*;

/// A `red` as other modules need it.
#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
pub(crate) fn reduce<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    labels: (u128, u128),
    scope: Scope,
    (op, ty, space): (AtomOp, Ty, Space),
    addr: &Address,
    a: Operand,
) -> Result<(), TraceEnd> {
    let update = Update { labels, scope, space, op, ty, a, b: None };
    let base = m.address(addr);
    self::update(m, instr, pc, &update, base, None)
}

pub(crate) fn update<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    u: &Update,
    base: RegState,
    dst: Option<Reg>,
) -> Result<(), TraceEnd> {
    let pieces = if u.ty.packed() { 2 } else { 1 };
    let bytes = u.ty.bytes() / pieces;
    let (a, b) = (m.operand(u.a), u.b.map(|b| m.operand(b)));
    let mut state = RegState { value: Some(0), deps: Deps::NONE };
    for piece in 0..pieces {
        let shift = 8 * bytes * piece;
        let part =
            |s: RegState| RegState { value: s.value.map(|v| truncate(v >> shift, 8 * bytes)), deps: s.deps };
        let access = m.access(instr, u.space, base, piece * bytes, bytes)?;
        let mut read = m.blank(instr, pc, Kind::Read, u.labels.0, Some(u.scope));
        read.needs.addr = base.deps;
        read.access = access;
        let old = access.and_then(|_| m.view.read(read.index));
        let veiled = access.is_some() && old.is_none() && m.view.unknown(read.index);
        if veiled && u.op == AtomOp::Cas {
            let what = "a compare-and-swap on copied or computed data";
            return Err(TraceEnd::Unsupported(what.into(), instr.line));
        }
        let seen = if veiled { Deps::UNKNOWN } else { Deps::NONE };
        state.value = state.value.zip(old).map(|(all, v)| all | v << shift);
        state.deps = state.deps.with(Deps::of(read.index).with(seen));
        let index = read.index;
        m.events.push(access.is_some().then_some(read));
        let written = if a.deps.unknown() || (veiled && u.op != AtomOp::Exch) {
            Written::Value(0)
        } else {
            written(m, u, old, part(a), b.map(part), bytes)
        };
        let mut write = m.blank(instr, pc, Kind::Write, u.labels.1, Some(u.scope));
        write.access = access;
        write.needs.addr = base.deps;
        write.mate = Some(Mate { read: index, uses_value: u.op != AtomOp::Exch });
        write.needs.data = a.deps.with(b.map_or(Deps::NONE, |b| b.deps));
        if u.op != AtomOp::Exch {
            write.needs.data = write.needs.data.with(Deps::of(index).with(seen));
        }
        let exists = match written {
            Written::Nothing => false,
            Written::Pending => u.op != AtomOp::Cas || m.front.cas_writes_back,
            Written::Value(v) => {
                write.value = Some(v);
                true
            }
        };
        match written {
            Written::Nothing => m.events.push(None),
            _ => m.write(write, exists),
        }
    }
    if let Some(dst) = dst {
        if matches!(u.ty, Ty::S(_)) {
            #[expect(clippy::cast_sign_loss, reason = "a bit pattern is stored")]
            let extend = |v| truncate(sign_extend(v, u.ty.bytes() * 8) as Value, 64);
            state.value = state.value.map(extend);
        }
        m.regs[dst.index()] = state;
    }
    Ok(())
}

pub(crate) fn written<V: View>(
    m: &Machine<'_, V>,
    u: &Update,
    old: Option<Value>,
    a: RegState,
    b: Option<RegState>,
    bytes: u32,
) -> Written {
    if u.op == AtomOp::Exch {
        return a.value.map_or(Written::Pending, Written::Value);
    }
    let (Some(old), Some(a)) = (old, a.value) else { return Written::Pending };
    if u.op == AtomOp::Cas {
        if old != truncate(a, bytes * 8) {
            return if m.front.cas_writes_back { Written::Value(old) } else { Written::Nothing };
        }
        return b.and_then(|b| b.value).map_or(Written::Pending, Written::Value);
    }
    Written::Value(modify(u.op, u.ty, bytes * 8, old, a))
}

#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
pub(crate) fn multimem_load<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    order: LoadOrder,
    op: AtomOp,
    ty: Ty,
    dst: Reg,
    addr: &Address,
) -> Result<(), TraceEnd> {
    let (labels, scope) = load_labels(order, Proxy::Generic);
    let mut total: Option<RegState> = None;
    for base in access::multimem(m, addr, instr)? {
        let mut event = m.blank(instr, pc, Kind::Read, labels, scope);
        event.access = m.access(instr, Space::Generic, base, 0, ty.bytes())?;
        let mut one = RegState { value: m.view.read(event.index), deps: Deps::of(event.index) };
        if m.view.unknown(event.index) {
            one.deps = one.deps.with(Deps::UNKNOWN);
        }
        m.events.push(Some(event));
        total = Some(match total {
            None => one,
            Some(sum) => RegState {
                value: sum.value.zip(one.value).map(|(a, b)| modify(op, ty, ty.bytes() * 8, a, b)),
                deps: sum.deps.with(one.deps),
            },
        });
    }
    m.regs[dst.index()] = total.unwrap_or_default();
    Ok(())
}

/// The operands of one.
pub(crate) struct Update {
    pub(crate) labels: (u128, u128),
    pub(crate) scope: Scope,
    pub(crate) space: Space,
    pub(crate) op: AtomOp,
    pub(crate) ty: Ty,
    pub(crate) a: Operand,
    pub(crate) b: Option<Operand>,
}

/// What a read-modify-write leaves.
pub(crate) enum Written {
    Nothing,
    Pending,
    Value(Value),
}

/// What `atom` leaves in memory (PTX ISA 9.2, atom); `cas` and `exch` are handled by the caller.
fn modify(op: AtomOp, ty: Ty, bits: u32, old: Value, a: Value) -> Value {
    let (old, a) = (truncate(old, bits), truncate(a, bits));
    let alu = |alu: AluOp| arithmetic(alu, ty, old, a);
    let result = match op {
        AtomOp::Add => old.wrapping_add(a),
        AtomOp::Sub => old.wrapping_sub(a),
        AtomOp::And => old & a,
        AtomOp::Or => old | a,
        AtomOp::Xor => old ^ a,
        AtomOp::Min => alu(AluOp::Min),
        AtomOp::Max => alu(AluOp::Max),
        AtomOp::Inc => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
        AtomOp::Exch | AtomOp::Cas => a,
    };
    truncate(result, bits)
}

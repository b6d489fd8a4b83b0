//! Interpreting accesses to memory: addresses, loads and stores as events, one for each memory operation.
//!
//! A vector, a packed type and, unless the model says otherwise (`wide-accesses`), a 128-bit value is several memory operations (PTX ISA 9.2,
//! 8.2.2 and 8.2.4); a `multimem` name stands for one location in each memory behind it. An address that is pending leaves its event in place, unresolved.

use super::event::Kind;
use super::event::deps::Deps;
use super::event::labels::{labels, store_labels};
use super::machine::Machine;
use super::num::extended;
use super::trace::{RegState, TraceEnd, View};

use moire_cat::vocabulary::sets;
use moire_execution::leaf::truncate;
use moire_program::ir::*;

/// One address for each location behind a multimem name.
pub(crate) fn multimem<V: View>(
    m: &Machine<'_, V>,
    addr: &Address,
    instr: &Instr,
) -> Result<Vec<RegState>, TraceEnd> {
    let wrong = || TraceEnd::Unsupported("a multimem address that is not a multimem name".into(), instr.line);
    let Operand::Address(symbol) = addr.base else { return Err(wrong()) };
    let named = &m.program.symbols[symbol.index()];
    let mut out = Vec::new();
    for object in std::iter::once(named.object).chain(named.multimem.iter().copied()) {
        let home = m.program.symbols.iter().position(|s| s.object == object).ok_or_else(wrong)?;
        let home = SymbolId(u16::try_from(home).map_err(|_| wrong())?);
        let value = m.layout.multimem_address(m.program, symbol, home, m.thread);
        #[expect(clippy::cast_sign_loss, reason = "offsets wrap like addresses do")]
        let value = value.map(|v| v.wrapping_add(i128::from(addr.offset) as Value)).ok_or_else(wrong)?;
        out.push(RegState { value: Some(value), deps: Deps::NONE });
    }
    Ok(out)
}

#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
pub(crate) fn load<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    (labels, scope): (u128, Option<Scope>),
    space: Space,
    ty: Ty,
    dst: &[Reg],
    addr: &Address,
) -> Result<(), TraceEnd> {
    let base = m.address(addr);
    let pieces = pieces(m, ty);
    let bytes = ty.bytes() / pieces;
    for (i, r) in dst.iter().enumerate() {
        let mut state = RegState { value: Some(0), deps: Deps::NONE };
        for piece in 0..pieces {
            let offset = (u32::try_from(i).expect("a vector has few elements") * pieces + piece) * bytes;
            let mut event = m.blank(instr, pc, Kind::Read, labels, scope);
            event.needs.addr = base.deps;
            event.access = m.access(instr, space, base, offset, bytes)?;
            let value = event.access.and_then(|_| m.view.loaded(event.index, pc));
            state.value = state.value.zip(value).map(|(all, v)| all | v << (8 * bytes * piece));
            state.deps = state.deps.with(Deps::of(event.index));
            if value.is_none() && m.view.unknown(event.index) {
                state.deps = state.deps.with(Deps::UNKNOWN);
            }
            let known = event.access.is_some();
            m.events.push(known.then_some(event));
        }
        state.value = state.value.map(|v| extended(ty, v));
        m.regs[r.index()] = state;
    }
    Ok(())
}

/// Memory operations one value of a type takes.
fn pieces<V: View>(m: &Machine<'_, V>, ty: Ty) -> u32 {
    let wide = ty.bytes() == 16 && !m.front.wide_whole;
    if ty.packed() || wide { 2 } else { 1 }
}

#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
pub(crate) fn store<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    labels: (u128, Option<Scope>),
    space: Space,
    ty: Ty,
    src: &[Operand],
    addr: &Address,
) -> Result<(), TraceEnd> {
    let base = m.address(addr);
    let pieces = pieces(m, ty);
    let bytes = ty.bytes() / pieces;
    for (i, s) in src.iter().enumerate() {
        for piece in 0..pieces {
            let offset = (u32::try_from(i).expect("a vector has few elements") * pieces + piece) * bytes;
            element_of(m, instr, pc, labels, space, base, offset, bytes, *s, 8 * bytes * piece)?;
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
pub(crate) fn element<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    labels: (u128, Option<Scope>),
    space: Space,
    base: RegState,
    offset: u32,
    bytes: u32,
    src: Operand,
) -> Result<(), TraceEnd> {
    element_of(m, instr, pc, labels, space, base, offset, bytes, src, 0)
}

#[expect(clippy::too_many_arguments, reason = "the operands of one instruction")]
fn element_of<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    (labels, scope): (u128, Option<Scope>),
    space: Space,
    base: RegState,
    offset: u32,
    bytes: u32,
    src: Operand,
    shift: u32,
) -> Result<(), TraceEnd> {
    let source = m.operand(src);
    let mut event = m.blank(instr, pc, Kind::Write, labels, scope);
    event.needs.addr = base.deps;
    event.needs.data = source.deps;
    event.access = m.access(instr, space, base, offset, bytes)?;
    event.value = source.value.map(|v| truncate(v >> shift, bytes * 8));
    if source.deps.unknown() {
        event.value = Some(0);
    }
    m.write(event, true);
    Ok(())
}

/// The address of an allocation, stored by the instruction that made it.
pub(crate) fn address_out<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    dst: &Address,
    address: Value,
) -> Result<(), TraceEnd> {
    let (store, scope) = store_labels(StoreOrder::Weak, Proxy::Generic);
    let (labels, base) = ((store | labels(&[sets::TC_SLOT]), scope), m.address(dst));
    let address = Operand::Imm(i128::try_from(address).unwrap_or(0));
    element(m, instr, pc, labels, Space::SharedCta, base, 0, 4, address)
}

//! Interpreting accesses to memory: addresses, loads and stores as events, one for each memory operation.
//!
//! A vector, a packed type and, unless switch Q2 says otherwise, a 128-bit value is several memory operations (PTX ISA 9.2,
//! 8.2.2 and 8.2.4); a `multimem` name stands for one location in each memory behind it. An address that is pending leaves its event in place, unresolved.

use crate::event::*;
use crate::interp::{Machine, RegState, TraceEnd, View};
use crate::leaf::truncate;
use crate::memory::space_admits;
use crate::tested::extended;
use crate::unknown::{mark, marked};
use moire_cat::vocabulary::sets;
use moire_program::ir::*;

impl<V: View> Machine<'_, V> {
    pub(crate) fn address(&self, addr: &Address) -> RegState {
        let base = self.operand(addr.base);
        #[allow(clippy::cast_sign_loss, reason = "offsets wrap like addresses do")]
        let offset = i128::from(addr.offset) as Value;
        RegState { value: base.value.map(|v| truncate(v.wrapping_add(offset), 64)), deps: base.deps }
    }

    /// One address for each location behind a multimem name.
    pub(crate) fn multimem(&self, addr: &Address, instr: &Instr) -> Result<Vec<RegState>, TraceEnd> {
        let wrong =
            || TraceEnd::Unsupported("a multimem address that is not a multimem name".into(), instr.line);
        let Operand::Address(symbol) = addr.base else { return Err(wrong()) };
        let named = &self.program.symbols[symbol.index()];
        let mut out = Vec::new();
        for object in std::iter::once(named.object).chain(named.multimem.iter().copied()) {
            let home = self.program.symbols.iter().position(|s| s.object == object).ok_or_else(wrong)?;
            let home = SymbolId(u16::try_from(home).map_err(|_| wrong())?);
            let value = self.layout.multimem_address(self.program, symbol, home, self.thread);
            #[allow(clippy::cast_sign_loss, reason = "offsets wrap like addresses do")]
            let value = value.map(|v| v.wrapping_add(i128::from(addr.offset) as Value)).ok_or_else(wrong)?;
            out.push(RegState { value: Some(value), deps: [0; 4] });
        }
        Ok(out)
    }

    /// Resolves `base + offset`; `Ok(None)` while pending.
    pub(crate) fn access(
        &mut self,
        instr: &Instr,
        space: Space,
        base: RegState,
        offset: u32,
        bytes: u32,
    ) -> Result<Option<crate::memory::Access>, TraceEnd> {
        let Some(value) = base.value else { return Ok(None) };
        let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
        let access = self.layout.resolve(self.program, value.wrapping_add(Value::from(offset)), bytes);
        let access = access.ok_or_else(|| wild("an address outside every object, or not aligned"))?;
        let object = self.layout.instances[access.instance as usize].object;
        if !space_admits(space, self.program.objects[object.index()].space) {
            return Err(wild("an address outside the state space of the access"));
        }
        Ok(Some(access))
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of one instruction")]
    pub(crate) fn load(
        &mut self,
        instr: &Instr,
        pc: usize,
        (labels, scope): (u128, Option<Scope>),
        space: Space,
        ty: Ty,
        dst: &[Reg],
        addr: &Address,
    ) -> Result<(), TraceEnd> {
        let base = self.address(addr);
        let pieces = self.pieces(ty);
        let bytes = ty.bytes() / pieces;
        for (i, r) in dst.iter().enumerate() {
            let mut state = RegState { value: Some(0), deps: [0; 4] };
            for piece in 0..pieces {
                let offset = (u32::try_from(i).unwrap_or(u32::MAX) * pieces + piece) * bytes;
                let mut event = self.blank(instr, pc, Kind::Read, labels, scope);
                event.addr = base.deps;
                event.access = self.access(instr, space, base, offset, bytes)?;
                let value = event.access.and_then(|_| self.view.loaded(event.index, pc));
                state.value = state.value.zip(value).map(|(all, v)| all | v << (8 * bytes * piece));
                state.deps = join(state.deps, dep(event.index));
                if value.is_none() && self.view.unknown(event.index) {
                    state.deps = join(state.deps, mark());
                }
                let known = event.access.is_some();
                self.events.push(known.then_some(event));
            }
            state.value = state.value.map(|v| extended(ty, v));
            self.regs[r.index()] = state;
        }
        Ok(())
    }

    /// Memory operations one value of a type takes.
    fn pieces(&self, ty: Ty) -> u32 {
        let wide = ty.bytes() == 16 && !self.front.wide_whole;
        if ty.packed() || wide { 2 } else { 1 }
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of one instruction")]
    pub(crate) fn store(
        &mut self,
        instr: &Instr,
        pc: usize,
        labels: (u128, Option<Scope>),
        space: Space,
        ty: Ty,
        src: &[Operand],
        addr: &Address,
    ) -> Result<(), TraceEnd> {
        let base = self.address(addr);
        let pieces = self.pieces(ty);
        let bytes = ty.bytes() / pieces;
        for (i, s) in src.iter().enumerate() {
            for piece in 0..pieces {
                let offset = (u32::try_from(i).unwrap_or(u32::MAX) * pieces + piece) * bytes;
                self.element_of(instr, pc, labels, space, base, offset, bytes, *s, 8 * bytes * piece)?;
            }
        }
        Ok(())
    }

    /// Emits a write; one whose address is pending, or of which it is not known whether it `exists`, may still come.
    pub(crate) fn write(&mut self, event: Emitted, exists: bool) {
        if exists && event.access.is_some() {
            self.events.push(Some(event));
        } else {
            self.unsure.push(event);
            self.events.push(None);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of one instruction")]
    pub(crate) fn element(
        &mut self,
        instr: &Instr,
        pc: usize,
        labels: (u128, Option<Scope>),
        space: Space,
        base: RegState,
        offset: u32,
        bytes: u32,
        src: Operand,
    ) -> Result<(), TraceEnd> {
        self.element_of(instr, pc, labels, space, base, offset, bytes, src, 0)
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of one instruction")]
    fn element_of(
        &mut self,
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
        let source = self.operand(src);
        let mut event = self.blank(instr, pc, Kind::Write, labels, scope);
        event.addr = base.deps;
        event.data = source.deps;
        event.access = self.access(instr, space, base, offset, bytes)?;
        event.value = source.value.map(|v| truncate(v >> shift, bytes * 8));
        if marked(&source.deps) {
            event.value = Some(0);
        }
        self.write(event, true);
        Ok(())
    }

    /// The address of an allocation, stored by the instruction that made it.
    pub(crate) fn address_out(
        &mut self,
        instr: &Instr,
        pc: usize,
        dst: &Address,
        address: Value,
    ) -> Result<(), TraceEnd> {
        let (store, scope) = store_labels(StoreOrder::Weak, Proxy::Generic);
        let (labels, base) = ((store | labels(&[sets::TC_SLOT]), scope), self.address(dst));
        let address = Operand::Imm(i128::try_from(address).unwrap_or(0));
        self.element(instr, pc, labels, Space::SharedCta, base, 0, 4, address)
    }
}

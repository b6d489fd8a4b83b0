//! Instructions that litmus texts have too, with their operands filled in.

use super::access::{Access, Place};
use super::heap::{RANK_SHIFT, SHARED_WINDOW};
use super::layout::{Kind, Mem, Touch};
use super::run::{Item, State, Step, Stored, Warp};
use super::value::{Base, Lanes, Val, Why};
use super::{Refusal, heap::Content};
use moire_program::ir::*;

/// An instruction under construction: an address in `op` that is the number `n` is that of `touches[n]`.
#[derive(Default)]
pub(super) struct Made {
    pub(super) touches: Vec<Touch>,
}

impl Made {
    pub(super) fn touch(&mut self, touch: Touch) -> Address {
        self.touches.push(touch);
        Address { base: Operand::Imm(self.touches.len() as i128 - 1), offset: 0 }
    }
}

impl Warp<'_> {
    pub(super) fn core(&mut self, state: &mut State, op: &Op, mask: u32) -> Result<Step, Refusal> {
        match op {
            Op::Load { order, space, ty, dst, addr, .. } => {
                let address = self.address(state, addr);
                let access =
                    Access { space: *space, ty: *ty, count: dst.len(), strong: *order != LoadOrder::Weak };
                if access.strong {
                    return self.strong_load(state, op, dst, &address, mask);
                }
                self.load(state, &access, dst, &address, mask)
            }
            Op::Store { order, space, ty, addr, src, .. } => {
                let address = self.address(state, addr);
                let values: Vec<Val> = src.iter().map(|s| self.value(state, *s)).collect();
                if *order != StoreOrder::Weak {
                    return self.strong_store(state, op, &values, &address, mask);
                }
                let access = Access { space: *space, ty: *ty, count: src.len(), strong: false };
                self.store(state, &access, &values, &address, mask)?;
                Ok(Step::Next)
            }
            Op::Rmw { .. } => self.update(state, op, mask),
            Op::Mapa { shared, dst, src, rank, .. } => {
                let value = self.mapped(state, *shared, *src, *rank);
                self.set(state, *dst, value, mask);
                Ok(Step::Next)
            }
            Op::Control(control) => self.control(state, control, mask),
            Op::Mbarrier(m) => self.mbarrier(state, m, mask),
            Op::Tcgen05(t) => self.tensor(state, t, mask),
            Op::AsyncCopy(c) => self.copy(state, c, mask),
            Op::Bar { kind, id, count, instance } => {
                let id = self.number(state, *id, mask, "the number of a barrier")?;
                let count =
                    count.map(|c| self.number(state, c, mask, "the count of a barrier")).transpose()?;
                self.bar(state, Op::Bar { kind: *kind, id, count, instance: *instance }, mask)
            }
            Op::WarpSync { mask: lanes } => {
                let lanes = self.number(state, *lanes, mask, "the mask of bar.warp.sync")?;
                self.leave(state, mask, Op::WarpSync { mask: lanes }, Made::default())
            }
            Op::ProxyOrder(
                order @ (ProxyOrder::TensormapAcquire { .. }
                | ProxyOrder::TensormapRelease { .. }
                | ProxyOrder::CopyTensormap { .. }
                | ProxyOrder::ReplaceTensormap { .. }),
            ) => self.tensormap(state, order, mask),
            Op::ProxyOrder(order @ ProxyOrder::Fabric { .. }) => {
                let text = format!("{} is ignored: nothing is seen to go through that proxy", order.name());
                self.note(self.line(state), text);
                Ok(Step::Next)
            }
            Op::ProxyOrder(order @ ProxyOrder::AliasOneSided(_)) => {
                // Less order than there is: what is clean without it is clean.
                let text = format!("{} is ignored: it is taken to order nothing", order.name());
                self.note(self.line(state), text);
                Ok(Step::Next)
            }
            Op::Wgmma(w) => self.warpgroup(state, w, mask),
            Op::MultimemLoad { .. } | Op::MultimemStore { .. } | Op::MultimemRed { .. } => self
                .abstain(state, "`multimem`: which memories are behind its address, the module does not say"),
            op => self.leave(state, mask, op.clone(), Made::default()),
        }
    }

    /// `mapa`
    fn mapped(&self, state: &State, shared: bool, src: Operand, rank: Operand) -> Val {
        let low = (1 << RANK_SHIFT) - 1;
        let low = if shared { low } else { SHARED_WINDOW | low };
        match (self.value(state, src), self.value(state, rank)) {
            (Val::Known(s), Val::Known(r)) => Val::Known(s.zip(&r, |s, r| s & low | r << RANK_SHIFT)),
            _ => Val::Unknown(Why::Computed(self.line(state))),
        }
    }

    pub(super) fn leave(&mut self, state: &State, mask: u32, op: Op, made: Made) -> Result<Step, Refusal> {
        self.emit(state, mask, Item::Op { op: Box::new(op), touches: made.touches })?;
        Ok(Step::Next)
    }

    pub(super) fn value(&self, state: &State, operand: Operand) -> Val {
        match operand {
            Operand::Reg(r) => state.env[r.index()].clone(),
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an immediate is a bit pattern"
            )]
            Operand::Imm(v) => Val::same(v as u64),
            Operand::Address(s) => self.symbol(s.0),
        }
    }

    pub(super) fn address(&self, state: &State, addr: &Address) -> Val {
        self.value(state, addr.base).add(&Lanes::Same(i64::from(addr.offset).cast_unsigned()))
    }

    /// A number that all lanes agree on.
    pub(super) fn number(
        &self,
        state: &State,
        operand: Operand,
        mask: u32,
        what: &str,
    ) -> Result<Operand, Refusal> {
        let value = self.value(state, operand);
        match value.known().and_then(|l| l.one(mask)) {
            Some(v) => Ok(Operand::Imm(i128::from(v & 0xffff_ffff))),
            None => self.abstain(state, format!("{what} that depends on {}", self.reason(&value))),
        }
    }

    /// A value as an operand of what is left, if all lanes agree on it.
    pub(super) fn operand_of(&self, value: &Val, mask: u32) -> Option<Operand> {
        match value {
            Val::Known(l) => l.one(mask).map(|v| Operand::Imm(i128::from(v))),
            Val::Based(Base::Register(r), l) if l.one(mask) == Some(0) => Some(Operand::Reg(Reg(*r))),
            _ => None,
        }
    }

    /// Shared memory at an address all lanes agree on.
    pub(super) fn shared(
        &self,
        state: &State,
        space: Space,
        address: &Val,
        bytes: u32,
        mask: u32,
        kind: Kind,
    ) -> Result<Touch, Refusal> {
        match self.place(state, space, address, mask)? {
            Place::In(mem @ Mem::Shared(_), at) => match at.one(mask) {
                Some(at) => Ok(Touch::one(mem, at, bytes, kind)),
                None => self.abstain(state, "an address that differs from lane to lane"),
            },
            _ => self.abstain(state, "an address outside shared memory"),
        }
    }

    fn strong_load(
        &mut self,
        state: &mut State,
        op: &Op,
        dst: &[Reg],
        address: &Val,
        mask: u32,
    ) -> Result<Step, Refusal> {
        let Op::Load { order, space, ty, .. } = op else { return Ok(Step::Next) };
        let touch =
            self.word(state, *space, address, ty.bytes() * u32::try_from(dst.len()).unwrap_or(1), mask)?;
        let regs: Vec<Reg> = (0..dst.len()).map(|i| self.slot(state, i)).collect();
        let mut made = Made::default();
        let word = touch.clone();
        let addr = made.touch(touch);
        let new = Op::Load {
            order: *order,
            proxy: Proxy::Generic,
            space: *space,
            ty: *ty,
            dst: regs.clone(),
            addr,
        };
        self.leave(state, mask, new, made)?;
        for (n, (r, slot)) in dst.iter().zip(regs).enumerate() {
            let value = self.held(state, &word, n, ty.bytes(), slot);
            self.set(state, *r, value, mask);
        }
        Ok(Step::Next)
    }

    /// The value that an ordered or atomic access finds in element `n`: known to the exploration, unless data is stored there.
    fn held(&self, state: &State, word: &Touch, n: usize, bytes: u32, slot: Reg) -> Val {
        let at = word.ranges.first().map_or(0, |r| r.0) + u64::from(bytes) * n as u64;
        let data = match word.mem {
            Mem::Shared(cta) => {
                let found = self.heap.contents(cta, u32::try_from(at).unwrap_or(u32::MAX), bytes);
                found.contains(&Content::Opaque)
            }
            _ => false,
        };
        if data {
            return Val::Unknown(Why::Loaded(self.line(state)));
        }
        Val::Based(Base::Register(slot.0), Lanes::Same(0))
    }

    /// Memory at an address all lanes agree on; what is stored there is kept from now on.
    fn word(
        &mut self,
        state: &State,
        space: Space,
        address: &Val,
        bytes: u32,
        mask: u32,
    ) -> Result<Touch, Refusal> {
        match self.place(state, space, address, mask)? {
            Place::In(mem, at) => match at.one(mask) {
                Some(at) => {
                    let end = at.saturating_add(u64::from(bytes));
                    let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                    match mem {
                        Mem::Shared(cta) => drop(self.out.wanted.insert((cta, short(at), short(end)))),
                        _ => drop(self.out.asked.insert((mem, at, end))),
                    }
                    Ok(Touch::one(mem, at, bytes, Kind::Word))
                }
                None => self.abstain(state, "an ordered access whose address differs from lane to lane"),
            },
            Place::Private => self.abstain(state, "an ordered access of private memory"),
        }
    }

    fn strong_store(
        &mut self,
        state: &State,
        op: &Op,
        values: &[Val],
        address: &Val,
        mask: u32,
    ) -> Result<Step, Refusal> {
        let Op::Store { order, space, ty, .. } = op else { return Ok(Step::Next) };
        let touch =
            self.word(state, *space, address, ty.bytes() * u32::try_from(values.len()).unwrap_or(1), mask)?;
        self.holds(state, &touch, ty.bytes());
        let mut src = Vec::new();
        for value in values {
            match self.operand_of(value, mask) {
                Some(o) => src.push(o),
                None => return self.abstain(state, format!("an ordered store of {}", self.reason(value))),
            }
        }
        let mut made = Made::default();
        let addr = made.touch(touch);
        self.leave(
            state,
            mask,
            Op::Store { order: *order, proxy: Proxy::Generic, space: *space, ty: *ty, addr, src },
            made,
        )
    }

    /// The exploration knows what these elements hold from here on.
    fn holds(&mut self, state: &State, word: &Touch, bytes: u32) {
        let (Mem::Shared(cta), Some((start, end))) = (word.mem, word.ranges.first()) else { return };
        let line = self.line(state);
        for at in (*start..*end).step_by(bytes.max(1) as usize) {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            self.out.stores.push(Stored { cta, at, bytes, content: Content::Held, line });
        }
    }

    fn update(&mut self, state: &mut State, op: &Op, mask: u32) -> Result<Step, Refusal> {
        let Op::Rmw { red, order, scope, space, op: how, ty, dst, addr, a, b, .. } = op else {
            return Ok(Step::Next);
        };
        let address = self.address(state, addr);
        let touch = self.word(state, *space, &address, ty.bytes(), mask)?;
        let mut given = |o: Operand| {
            let value = self.value(state, o);
            self.operand_of(&value, mask).map_or_else(
                || self.abstain(state, format!("an atomic operation with {}", self.reason(&value))),
                Ok,
            )
        };
        let a = given(*a)?;
        let b = b.map(&mut given).transpose()?;
        let slot = dst.map(|_| self.slot(state, 0));
        self.holds(state, &touch, ty.bytes());
        let mut made = Made::default();
        let word = touch.clone();
        let addr = made.touch(touch);
        let new = Op::Rmw {
            red: *red,
            order: *order,
            scope: *scope,
            proxy: Proxy::Generic,
            space: *space,
            op: *how,
            ty: *ty,
            dst: slot,
            addr,
            a,
            b,
        };
        self.leave(state, mask, new, made)?;
        if let (Some(dst), Some(slot)) = (dst, slot) {
            let value = self.held(state, &word, 0, ty.bytes(), slot);
            self.set(state, *dst, value, mask);
        }
        Ok(Step::Next)
    }

    fn mbarrier(&mut self, state: &mut State, m: &Mbarrier, mask: u32) -> Result<Step, Refusal> {
        let address = self.address(state, &m.addr);
        let touch = self.shared(state, m.space, &address, MBARRIER_BYTES, mask, Kind::Barrier)?;
        let mut new = m.clone();
        let mut made = Made::default();
        new.addr = made.touch(touch);
        let mut failed = None;
        new.map_operands(&mut |o| {
            let value = self.value(state, o);
            match self.operand_of(&value, mask) {
                Some(Operand::Imm(v)) => Operand::Imm(v & 0xffff_ffff),
                Some(reg) => reg,
                None => {
                    failed = Some(value);
                    Operand::Imm(0)
                }
            }
        });
        if let MbarrierOp::Wait(wait) = &mut new.op {
            wait.hint = None;
        }
        if let Some(value) = failed {
            return self
                .abstain(state, format!("an mbarrier operand that depends on {}", self.reason(&value)));
        }
        match (&m.op, m.dst()) {
            (MbarrierOp::Wait(_), Some(dst)) => {
                let q = self.slot(state, 0);
                new.dst_mut().into_iter().for_each(|d| *d = q);
                self.leave(state, mask, Op::Mbarrier(new), made)?;
                Ok(self.both(state, q, &[dst], mask))
            }
            (_, Some(dst)) if self.flow.matters.get(dst.index()) == Some(&true) => {
                let slot = self.slot(state, 0);
                new.dst_mut().into_iter().for_each(|d| *d = slot);
                self.leave(state, mask, Op::Mbarrier(new), made)?;
                self.set(state, dst, Val::Based(Base::Register(slot.0), Lanes::Same(0)), mask);
                Ok(Step::Next)
            }
            _ => {
                // A state nobody asks for is none.
                if let MbarrierOp::Arrive(arrive) = &mut new.op {
                    arrive.dst = None;
                }
                self.leave(state, mask, Op::Mbarrier(new), made)
            }
        }
    }
}

//! Ordinary loads and stores: words that decide something are kept as they are, all other data as the bytes it touches.

use super::Refusal;
use super::heap::{Content, LOCALS, PARAMS, RANK_SHIFT, SHARED_WINDOW};
use super::layout::{Kind, Mem, Touch};
use super::run::{Item, State, Step, Stored, Warp};
use super::value::{Base, Lanes, Val, Why, lanes};
use moire_program::ir::*;

/// Form of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) space: Space,
    pub(super) ty: Ty,
    /// Elements.
    pub(super) count: usize,
    /// Has an order or is volatile.
    pub(super) strong: bool,
}

impl Access {
    fn bytes(&self) -> u32 {
        self.ty.bytes() * u32::try_from(self.count).unwrap_or(1)
    }
}

/// Where lanes point to.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Memory others see, and the offset there.
    In(Mem, Lanes),
    /// Parameters and local memory: nobody else sees them.
    Private,
}

/// Values a word may have for which the run goes on one by one.
const WAYS: usize = 16;

impl Warp<'_> {
    /// The CTA of a rank.
    fn peer(&self, rank: u64) -> Option<u32> {
        usize::try_from(rank).ok().and_then(|r| self.here.peers.get(r)).copied()
    }

    /// What an address is in a state space.
    pub(super) fn place(
        &self,
        state: &State,
        space: Space,
        address: &Val,
        mask: u32,
    ) -> Result<Place, Refusal> {
        let known = match address {
            Val::Known(l) => l,
            Val::Based(Base::Param(n), l) if space != Space::SharedCta => {
                return Ok(Place::In(Mem::Param(*n), l.clone()));
            }
            Val::Based(Base::Variable(n), l) if space != Space::SharedCta => {
                return Ok(Place::In(Mem::Variable(*n), l.clone()));
            }
            other => {
                return self.abstain(state, format!("an address that depends on {}", self.reason(other)));
            }
        };
        let first = known.get(mask.trailing_zeros() as usize % 32);
        let mut offset = known.clone();
        match space {
            Space::Generic | Space::Global if (PARAMS..LOCALS * 2).contains(&first) => {
                return Ok(Place::Private);
            }
            Space::Generic if first >= SHARED_WINDOW => offset = known.map(|v| v.wrapping_sub(SHARED_WINDOW)),
            Space::SharedCta | Space::SharedCluster => {}
            _ => return Ok(Place::In(Mem::Absolute, offset)),
        }
        let rank = offset.map(|v| v >> RANK_SHIFT).one(mask);
        let cta = rank.and_then(|r| self.peer(r));
        let Some(cta) = cta else {
            return self.abstain(state, "an address of shared memory outside the cluster");
        };
        if space == Space::SharedCta && cta != self.here.cta {
            return self.abstain(state, "an address of another CTA in an access of .shared::cta");
        }
        Ok(Place::In(Mem::Shared(cta), offset.map(|v| v & ((1 << RANK_SHIFT) - 1))))
    }

    pub(super) fn load(
        &mut self,
        state: &mut State,
        access: &Access,
        dst: &[Reg],
        address: &Val,
        mask: u32,
    ) -> Result<Step, Refusal> {
        let line = self.line(state);
        let unknown = Val::Unknown(Why::Loaded(line));
        let Place::In(mem, at) = self.place(state, access.space, address, mask)? else {
            dst.iter().for_each(|r| self.set(state, *r, unknown.clone(), mask));
            return Ok(Step::Next);
        };
        let decides = dst.iter().any(|r| self.flow.matters.get(r.index()) == Some(&true));
        if decides
            && let (Mem::Shared(cta), Some(one)) = (mem, at.one(mask))
            && let Some(step) = self.load_word(state, access, dst, (cta, one), mask)?
        {
            return Ok(step);
        }
        self.data(state, false, false, mem, &at, access.bytes(), mask)?;
        dst.iter().for_each(|r| self.set(state, *r, unknown.clone(), mask));
        Ok(Step::Next)
    }

    /// Words that decide something: one way a value. None when they may hold anything.
    fn load_word(
        &mut self,
        state: &mut State,
        access: &Access,
        dst: &[Reg],
        (cta, at): (u32, u64),
        mask: u32,
    ) -> Result<Option<Step>, Refusal> {
        let line = self.line(state);
        let bytes = access.ty.bytes();
        let mut ways = vec![(None, state.clone())];
        for (i, reg) in dst.iter().enumerate() {
            if self.flow.matters.get(reg.index()) != Some(&true) {
                continue;
            }
            let start =
                u32::try_from(at).unwrap_or(u32::MAX).saturating_add(bytes * u32::try_from(i).unwrap_or(0));
            self.out.wanted.insert((cta, start, start.saturating_add(bytes)));
            let contents = self.heap.contents(cta, start, bytes);
            if contents.is_empty() {
                self.out.starved = self.out.starved.or(Some(line));
                return Ok(Some(Step::End));
            }
            // Whether it is what the allocation wrote, and not data of another time, the exploration sees.
            let allocated = contents.contains(&Content::Allocation);
            let contents = if allocated { [Content::Allocation].into() } else { contents };
            if contents.contains(&Content::Opaque)
                || contents.contains(&Content::Held)
                || contents.len() > WAYS
                || ways.len() > 1
            {
                return Ok(None);
            }
            let word = self.slot(state, 2 * i);
            let touch = Touch::one(Mem::Shared(cta), u64::from(start), bytes, Kind::Word);
            let space = if cta == self.here.cta { Space::SharedCta } else { Space::SharedCluster };
            let addr = Address { base: Operand::Imm(0), offset: 0 };
            let ty = Ty::B(u8::try_from(8 * bytes).unwrap_or(32));
            let order = LoadOrder::Weak;
            let op = Op::Load { order, proxy: Proxy::Generic, space, ty, dst: vec![word], addr };
            self.emit(state, mask, Item::Op { op: Box::new(op), touches: vec![touch] })?;
            ways = self.choose(state, ways, *reg, word, ty, &contents, mask)?;
        }
        match ways.pop() {
            Some((_, last)) if ways.is_empty() => {
                *state = last;
                Ok(Some(Step::Next))
            }
            Some(last) => {
                ways.push(last);
                Ok(Some(Step::Ways(ways)))
            }
            None => Ok(None),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one choice")]
    fn choose(
        &mut self,
        state: &State,
        ways: Vec<(Option<Reg>, State)>,
        reg: Reg,
        word: Reg,
        ty: Ty,
        contents: &std::collections::BTreeSet<Content>,
        mask: u32,
    ) -> Result<Vec<(Option<Reg>, State)>, Refusal> {
        let mut out = Vec::new();
        let Some((_, base)) = ways.into_iter().next() else { return Ok(out) };
        let last = contents.len() - 1;
        for (n, content) in contents.iter().enumerate() {
            let mut next = base.clone();
            let value = match content {
                Content::Known(v) => Val::same(*v),
                _ => Val::Based(Base::Register(word.0), Lanes::Same(0)),
            };
            self.set(&mut next, reg, value, mask);
            let mut test = None;
            if n < last
                && let Content::Known(v) = content
            {
                let q = self.slot(state, 1_000 + n);
                let op = Op::Setp {
                    op: CmpOp::Eq,
                    ty,
                    dst: q,
                    a: Operand::Reg(word),
                    b: Operand::Imm(i128::from(*v)),
                };
                self.emit(state, mask, Item::Op { op: Box::new(op), touches: vec![] })?;
                test = Some(q);
            }
            out.push((test, next));
        }
        Ok(out)
    }

    pub(super) fn store(
        &mut self,
        state: &State,
        access: &Access,
        values: &[Val],
        address: &Val,
        mask: u32,
    ) -> Result<(), Refusal> {
        let Place::In(mem, at) = self.place(state, access.space, address, mask)? else { return Ok(()) };
        if access.strong {
            return self.abstain(state, "a store with this combination of qualifiers");
        }
        let line = self.line(state);
        if !matches!(mem, Mem::Shared(_)) && lanes(mask).any(|l| self.asked(mem, at.get(l), access.bytes())) {
            return self.store_asked(state, access, values, (mem, &at), mask);
        }
        let (Mem::Shared(cta), Some(one)) = (mem, at.one(mask)) else {
            return self.data(state, true, false, mem, &at, access.bytes(), mask);
        };
        let bytes = access.ty.bytes();
        let mut relaxed = false;
        let mut words = Vec::new();
        for (i, value) in (0u32..).zip(values) {
            let start = u32::try_from(one).unwrap_or(u32::MAX).saturating_add(bytes * i);
            let content = match value {
                Val::Known(l) if bytes <= 8 => l.one(mask).map_or(Content::Opaque, Content::Known),
                _ => Content::Opaque,
            };
            let stored = Stored { cta, at: start, bytes, content, line };
            relaxed |= self.heap.repeated(&stored, self.out.warp);
            self.out.stores.push(stored);
            words.push((start, content));
        }
        if relaxed {
            self.note(line, "several warps store one value here: not counted as a race among them");
        }
        if !words.iter().any(|w| self.heap.wanted(cta, w.0, bytes)) {
            let touch = Touch::one(mem, one, access.bytes(), Kind::Data);
            return self.emit(state, mask, Item::Data { write: true, relaxed, touch });
        }
        for (start, content) in words {
            let kind = if relaxed { Kind::Agreed } else { Kind::Word };
            let touch = Touch::one(mem, u64::from(start), bytes, kind);
            let value = match content {
                Content::Known(v) => i128::from(v),
                _ => 0,
            };
            let space = if cta == self.here.cta { Space::SharedCta } else { Space::SharedCluster };
            let order = if relaxed { StoreOrder::Relaxed(Scope::Cta) } else { StoreOrder::Weak };
            let addr = Address { base: Operand::Imm(0), offset: 0 };
            let ty = Ty::B(u8::try_from(8 * bytes).unwrap_or(32));
            let src = vec![Operand::Imm(value)];
            let op = Op::Store { order, proxy: Proxy::Generic, space, ty, addr, src };
            self.emit(state, mask, Item::Op { op: Box::new(op), touches: vec![touch] })?;
        }
        Ok(())
    }

    fn asked(&self, mem: Mem, at: u64, bytes: u32) -> bool {
        self.heap.asked(mem, at, at.saturating_add(u64::from(bytes)))
    }

    /// A store to a word of global memory that some ordered access looks at.
    fn store_asked(
        &mut self,
        state: &State,
        access: &Access,
        values: &[Val],
        (mem, at): (Mem, &Lanes),
        mask: u32,
    ) -> Result<(), Refusal> {
        let src: Option<Vec<Operand>> = values.iter().map(|v| self.operand_of(v, mask)).collect();
        let (Some(one), Some(src)) = (at.one(mask), src) else {
            let what = "a store of data, or of several lanes, to a word that is loaded with an order";
            return self.abstain(state, what);
        };
        let touch = Touch::one(mem, one, access.bytes(), Kind::Word);
        let addr = Address { base: Operand::Imm(0), offset: 0 };
        let (order, proxy, space, ty) = (StoreOrder::Weak, Proxy::Generic, Space::Global, access.ty);
        let op = Op::Store { order, proxy, space, ty, addr, src };
        self.emit(state, mask, Item::Op { op: Box::new(op), touches: vec![touch] })
    }

    /// The bytes all lanes of the mask touch.
    #[allow(clippy::too_many_arguments, reason = "the parts of one access")]
    fn data(
        &mut self,
        state: &State,
        write: bool,
        relaxed: bool,
        mem: Mem,
        at: &Lanes,
        bytes: u32,
        mask: u32,
    ) -> Result<(), Refusal> {
        let ranges: Vec<(u64, u64)> =
            lanes(mask).map(|l| (at.get(l), at.get(l).saturating_add(u64::from(bytes)))).collect();
        self.touched(state, write, relaxed, mem, &ranges, mask)
    }

    /// Data of these bytes is read or written; joined with what this warp touches just before.
    pub(super) fn touched(
        &mut self,
        state: &State,
        write: bool,
        relaxed: bool,
        mem: Mem,
        ranges: &[(u64, u64)],
        mask: u32,
    ) -> Result<(), Refusal> {
        let mut touch = Touch { mem, ranges: ranges.to_vec(), kind: Kind::Data };
        touch.join();
        if write && let Mem::Shared(cta) = mem {
            let line = self.line(state);
            for (start, end) in &touch.ranges {
                let at = u32::try_from(*start).unwrap_or(u32::MAX);
                let bytes = u32::try_from(end - start).unwrap_or(u32::MAX);
                self.out.stores.push(Stored { cta, at, bytes, content: Content::Opaque, line });
            }
        }
        self.emit(state, mask, Item::Data { write, relaxed, touch })
    }

    /// A matrix of eight rows that warps move between shared memory and registers.
    pub(super) fn matrix(
        &mut self,
        state: &mut State,
        statement: &crate::ptx::Statement,
        words: &[&str],
        plain: &crate::ptx::Plain,
    ) -> Result<Step, Refusal> {
        use crate::ptx::Arg;
        let mask = self.guarded(state, statement)?;
        if mask == 0 {
            return Ok(Step::Next);
        }
        let load = words[0] == "ldmatrix";
        let address = plain.args.iter().find(|a| matches!(a, Arg::Address(..))).map(|a| self.arg(state, a));
        let Some(address) = address else { return Ok(Step::Next) };
        let count = if words.contains(&"x4") {
            4
        } else if words.contains(&"x2") {
            2
        } else {
            1
        };
        // Row r of matrix m is where lane 8 m + r points.
        let rows = if count == 4 { u32::MAX } else { (1 << (8 * count)) - 1 };
        let space =
            if words.iter().any(|w| w.starts_with("shared")) { Space::SharedCta } else { Space::Generic };
        if let Place::In(mem, at) = self.place(state, space, &address, mask)? {
            self.data(state, !load, false, mem, &at, 16, mask & rows)?;
        }
        if load {
            let (written, _) = super::flow::effects(statement);
            let line = statement.line;
            written.iter().for_each(|r| self.set(state, *r, Val::Unknown(Why::Loaded(line)), mask));
        }
        Ok(Step::Next)
    }
}

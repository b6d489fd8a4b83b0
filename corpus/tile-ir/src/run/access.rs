//! Runs memory operations and token operations of a tile block.
//!
//! There is only one grid, so `gdc_wait_tko` has no earlier grid to wait for, and `gdc_launch_dependents_tko` has no
//! later grid to start. No memory has two addresses, so `memory_fence_alias_tko` has nothing to order. All three only
//! pass on their token. An access to multicast memory accesses each replica, unordered like all elements of an
//! instruction; values loaded from the replicas are reduced afterwards.

use super::value::{Held, Lane, register_type};
use super::view::{Spots, padding, tile_at};
use super::{ACCESSES, Block, Done, packed};
use crate::{
    Access, AtomicMode, Elem, Instr, IntegerOp, Op, Order, Overflow, Place, Reduction, Scalar, Scope, Sign,
    Value,
};
use moire_program::Refusal;
use moire_program::ir::{
    Address, AluOp, AtomOp, LoadOrder, Op as Code, Operand, Reg, RmwOrder, Scope as Reach, StoreOrder,
    TileAccess, TileElement, TileKind, TileOp, TileToken, Ty,
};

fn reach(scope: Scope) -> Reach {
    match scope {
        Scope::TileBlock => Reach::Cta,
        Scope::Device => Reach::Gpu,
        Scope::System => Reach::Sys,
    }
}

fn load_order(access: Access) -> Option<LoadOrder> {
    match (access.order, access.scope.map(reach)) {
        (Order::Weak, None) => Some(LoadOrder::Weak),
        (Order::Relaxed, Some(s)) => Some(LoadOrder::Relaxed(s)),
        (Order::Acquire, Some(s)) => Some(LoadOrder::Acquire(s)),
        _ => None,
    }
}

fn store_order(access: Access) -> Option<StoreOrder> {
    match (access.order, access.scope.map(reach)) {
        (Order::Weak, None) => Some(StoreOrder::Weak),
        (Order::Relaxed, Some(s)) => Some(StoreOrder::Relaxed(s)),
        (Order::Release, Some(s)) => Some(StoreOrder::Release(s)),
        _ => None,
    }
}

fn rmw_order(order: Order) -> Option<RmwOrder> {
    match order {
        Order::Weak => None,
        Order::Relaxed => Some(RmwOrder::Relaxed),
        Order::Acquire => Some(RmwOrder::Acquire),
        Order::Release => Some(RmwOrder::Release),
        Order::AcqRel => Some(RmwOrder::AcqRel),
    }
}

/// The operation of an atomic and the signedness of its operands.
fn operation(mode: AtomicMode) -> (AtomOp, Sign) {
    match mode {
        AtomicMode::And => (AtomOp::And, Sign::Unsigned),
        AtomicMode::Or => (AtomOp::Or, Sign::Unsigned),
        AtomicMode::Xor => (AtomOp::Xor, Sign::Unsigned),
        AtomicMode::Add | AtomicMode::AddF => (AtomOp::Add, Sign::Unsigned),
        AtomicMode::Max => (AtomOp::Max, Sign::Signed),
        AtomicMode::Min => (AtomOp::Min, Sign::Signed),
        AtomicMode::UMax => (AtomOp::Max, Sign::Unsigned),
        AtomicMode::UMin => (AtomOp::Min, Sign::Unsigned),
        AtomicMode::Xchg => (AtomOp::Exch, Sign::Unsigned),
    }
}

/// The access to each element and the signedness of its values.
type Does = (TileKind, Sign);

/// The operands of one memory instruction.
struct Operands {
    /// The addresses of each element: none outside the tensor, several in multicast memory.
    places: Vec<Vec<Address>>,
    /// The element type.
    elem: Scalar,
    a: Option<Value>,
    b: Option<Value>,
    /// Of each element, whether it is accessed.
    masks: Option<Vec<Lane>>,
    token: Option<Value>,
    /// The value that a load gives for an element outside the tensor.
    outside: Lane,
    /// The reduction of the values read from several replicas.
    reduced: Option<IntegerOp>,
    /// The elements that share a byte; then there is a place for each byte.
    pairs: Option<Vec<[usize; 2]>>,
}

/// The operation of a reduction on each replica, and on the values read from all of them.
fn reduction(reduction: Reduction) -> (AtomicMode, IntegerOp) {
    match reduction {
        Reduction::Add => (AtomicMode::Add, IntegerOp::Add(Overflow::Wraps)),
        Reduction::Min => (AtomicMode::Min, IntegerOp::Min(Sign::Signed)),
        Reduction::Max => (AtomicMode::Max, IntegerOp::Max(Sign::Signed)),
        Reduction::And => (AtomicMode::And, IntegerOp::And),
        Reduction::Or => (AtomicMode::Or, IntegerOp::Or),
        Reduction::Xor => (AtomicMode::Xor, IntegerOp::Xor),
        Reduction::UMin => (AtomicMode::UMin, IntegerOp::Min(Sign::Unsigned)),
        Reduction::UMax => (AtomicMode::UMax, IntegerOp::Max(Sign::Unsigned)),
    }
}

impl Block<'_, '_> {
    pub(super) fn token_of(&self, value: Value) -> Done<Reg> {
        match self.held(value)? {
            Held::Token(reg) => Ok(*reg),
            Held::Tile(_) | Held::Tensor(_) => self.refuse("a tile or a view as a token"),
        }
    }

    /// Makes a new token that joins others.
    pub(super) fn join(&mut self, from: Vec<Reg>) -> Done<Reg> {
        let dst = self.fresh("t")?;
        self.push(Code::Tile(TileOp::Token(TileToken::Join { dst, from })))?;
        Ok(dst)
    }

    /// Runs a memory or token operation. Returns whether it was one.
    pub(super) fn memory(&mut self, instr: &Instr) -> Done<bool> {
        let from = match &instr.op {
            Op::MakeToken => Vec::new(),
            Op::JoinTokens(from) => from.clone(),
            Op::AliasFence { token } => vec![*token],
            Op::GdcWait { token } | Op::GdcLaunch { token } => token.iter().copied().collect(),
            access_op!() => {
                let Some((kind, operands)) = self.accessed(&instr.op)? else { return Ok(false) };
                self.touch(instr, kind, &operands)?;
                return Ok(true);
            }
            plain_op!() | block_op!() | end_op!() => return Ok(false),
        };
        let from = from.into_iter().map(|t| self.token_of(t)).collect::<Done<Vec<Reg>>>()?;
        let token = self.join(from)?;
        self.define(instr, 0, Held::Token(token));
        Ok(true)
    }

    /// The access of a memory operation and its operands; `None` for other operations.
    fn accessed(&mut self, op: &Op) -> Done<Option<(Does, Operands)>> {
        Ok(Some(match op {
            Op::LoadPtr { pointers, access, mask, padding, token, .. } => {
                (self.load(*access)?, self.through(*pointers, [*padding, None], *mask, *token)?)
            }
            Op::LoadView { place, access, token, .. } => {
                let outside = padding(self, place)?;
                (self.load(*access)?, Operands { outside, ..self.at(place, None, *token)? })
            }
            Op::MultimemLoadReduce { place, reduction: how, access, token } => {
                let (outside, reduced) = (padding(self, place)?, Some(reduction(*how).1));
                let operands = Operands { outside, reduced, ..self.at(place, None, *token)? };
                self.reducible(*how, operands.elem)?;
                (self.load(*access)?, operands)
            }
            Op::StorePtr { pointers, value, access, mask, token, .. } => {
                (self.store(*access)?, self.through(*pointers, [Some(*value), None], *mask, *token)?)
            }
            Op::StoreView { place, value, access, token, .. }
            | Op::MultimemStore { place, value, access, token } => {
                (self.store(*access)?, self.at(place, Some(*value), *token)?)
            }
            Op::AtomicRmw { pointers, mode, value, order, scope, mask, token } => {
                let does = self.update(*mode, *order, *scope)?;
                (does, self.through(*pointers, [Some(*value), None], *mask, *token)?)
            }
            Op::AtomicRedView { place, mode, value, order, scope, token } => {
                (self.update(*mode, *order, *scope)?, self.at(place, Some(*value), *token)?)
            }
            Op::MultimemReduce { place, reduction: how, value, order, scope, token } => {
                let does = self.update(reduction(*how).0, *order, *scope)?;
                let operands = self.at(place, Some(*value), *token)?;
                self.reducible(*how, operands.elem)?;
                (does, operands)
            }
            Op::AtomicCas { pointers, compare, value, order, scope, mask, token } => {
                let Some(order) = rmw_order(*order) else { return self.refuse("this atomic") };
                let kind = TileKind::Rmw { op: AtomOp::Cas, order, scope: reach(*scope) };
                let operands = self.through(*pointers, [Some(*compare), Some(*value)], *mask, *token)?;
                ((kind, Sign::Unsigned), operands)
            }
            plain_op!() | token_op!() | block_op!() | end_op!() => return Ok(None),
        }))
    }

    /// Floats can be added, as bits.
    fn reducible(&self, how: Reduction, elem: Scalar) -> Done<()> {
        if elem.integer() || how == Reduction::Add {
            return Ok(());
        }
        self.refuse("a minimum or maximum of floats")
    }

    fn load(&self, access: Access) -> Done<Does> {
        match load_order(access) {
            Some(order) => Ok((TileKind::Load(order), Sign::Unsigned)),
            None => self.refuse("this order of a load"),
        }
    }

    fn store(&self, access: Access) -> Done<Does> {
        match store_order(access) {
            Some(order) => Ok((TileKind::Store(order), Sign::Unsigned)),
            None => self.refuse("this order of a store"),
        }
    }

    fn update(&self, mode: AtomicMode, order: Order, scope: Scope) -> Done<Does> {
        let Some(order) = rmw_order(order) else { return self.refuse("this atomic") };
        let (op, sign) = operation(mode);
        Ok((TileKind::Rmw { op, order, scope: reach(scope) }, sign))
    }

    /// The operands of an access through pointers.
    fn through(
        &self,
        pointers: Value,
        [a, b]: [Option<Value>; 2],
        mask: Option<Value>,
        token: Option<Value>,
    ) -> Done<Operands> {
        let Elem::Pointer { to: elem, multicast: false } = self.type_of(pointers)?.elem else {
            return self.refuse("an access through these pointers");
        };
        let place = |lane: Lane| match lane {
            Lane::Pointer(addr) => Ok(vec![addr]),
            Lane::Number(_) | Lane::Nothing => self.refuse("a number as a pointer"),
        };
        let places = self.lanes(pointers)?.into_iter().map(place).collect::<Done<_>>()?;
        let masks = mask.map(|mask| self.lanes(mask)).transpose()?;
        Ok(Operands { places, elem, a, b, masks, token, outside: Lane::Nothing, reduced: None, pairs: None })
    }

    /// The operands of an access to a tile of a view.
    fn at(&mut self, place: &Place, a: Option<Value>, token: Option<Value>) -> Done<Operands> {
        let Spots { all, elem, pairs } = tile_at(self, place)?;
        let inside = |reg: Option<Reg>| reg.map_or(Lane::known(1), |reg| Lane::Number(Operand::Reg(reg)));
        let masks = Some(all.iter().map(|spot| inside(spot.mask)).collect());
        let places = all.into_iter().map(|spot| spot.places).collect();
        let (b, outside, reduced) = (None, Lane::Nothing, None);
        Ok(Operands { places, elem, a, b, masks, token, outside, reduced, pairs })
    }

    /// Floats that are added are bits of that width, as in PTX. The answer of `moire check` says so.
    fn element_type(operands: &Operands, (kind, sign): Does) -> Ty {
        let bits = register_type(operands.elem, sign);
        let computes = match kind {
            TileKind::Rmw { op, .. } => op != AtomOp::Exch,
            TileKind::Load(_) => operands.reduced.is_some(),
            TileKind::Store(_) => false,
        };
        if computes && !operands.elem.integer() {
            Ty::F(u8::try_from(8 * bits.bytes()).unwrap_or(u8::MAX))
        } else {
            bits
        }
    }

    /// The values that an access takes: elements, or bytes of packed ones.
    fn taken(&mut self, operands: &Operands, value: Option<Value>) -> Done<Option<Vec<Lane>>> {
        let Some(value) = value else { return Ok(None) };
        let lanes = self.lanes(value)?;
        match &operands.pairs {
            Some(pairs) => packed::bytes(self, &lanes, pairs).map(Some),
            None => Ok(Some(lanes)),
        }
    }

    /// The elements that a load gives, of what it read.
    fn given(&mut self, operands: &Operands, read: Vec<Lane>) -> Done<Vec<Lane>> {
        match &operands.pairs {
            Some(pairs) => packed::elements(self, &read, pairs),
            None if operands.elem == Scalar::I1 => {
                read.into_iter().map(|lane| packed::bit(self, lane)).collect()
            }
            None => Ok(read),
        }
    }

    fn touch(&mut self, instr: &Instr, (kind, sign): Does, operands: &Operands) -> Done<()> {
        let ty = Self::element_type(operands, (kind, sign));
        let (a, b) = (self.taken(operands, operands.a)?, self.taken(operands, operands.b)?);
        // A reduction into a view returns no values.
        let reads = !matches!(kind, TileKind::Store(_)) && instr.results.len() > 1;
        let (mut elements, mut read) = (Vec::new(), Vec::new());
        for (i, places) in operands.places.iter().enumerate() {
            if places.is_empty() {
                read.extend(reads.then(|| vec![operands.outside]));
                continue;
            }
            let pick = |block: &Self, of: &Option<Vec<Lane>>| {
                of.as_ref().and_then(|l| l.get(i)).map(|l| block.number(*l)).transpose()
            };
            let (a, b) = (pick(self, &a)?, pick(self, &b)?);
            let own = operands.masks.as_ref().and_then(|m| m.get(i)).copied();
            let off = own.and_then(Lane::bits) == Some(0);
            let loads = matches!(kind, TileKind::Load(_));
            if off {
                let left = a.filter(|_| loads).map_or(Lane::Nothing, Lane::Number);
                read.extend(reads.then(|| vec![left]));
                continue;
            }
            let (mask, known) = (self.masked(own)?, own.is_none_or(|l| l.bits().is_some()));
            let outside = if let Lane::Number(value) = operands.outside { Some(value) } else { None };
            // Values read in the arm that is not taken are not used, so any padding will do.
            let a = match (loads, known) {
                (true, true) => a.or(Some(Operand::Imm(0))),
                (true, false) => a.or(outside),
                (false, _) => a,
            };
            let mut all = Vec::new();
            for addr in places {
                self.reaches(addr.base, addr.offset, operands.elem.bytes())?;
                let dst = if reads { Some(self.fresh("r")?) } else { None };
                let seen = if loads || known { dst } else { None };
                all.extend(dst.map(|_| seen.map_or(Lane::Nothing, |r| Lane::Number(Operand::Reg(r)))));
                elements.push(TileElement { addr: *addr, mask, dst: seen, a, b });
            }
            read.extend(reads.then_some(all));
        }
        self.accesses += elements.len();
        if self.accesses > ACCESSES {
            return Err(Refusal::Bounded(format!(
                "a tile block that accesses more than {ACCESSES} elements"
            )));
        }
        let after = operands.token.map(|t| self.token_of(t)).transpose()?;
        let token = self.fresh("t")?;
        let access = TileAccess { kind, ty, elements, after, token: Some(token) };
        self.push(Code::Tile(TileOp::Access(Box::new(access))))?;
        if reads {
            let one = |all: Vec<Lane>| self.reduce(operands, &all);
            let read = read.into_iter().map(one).collect::<Done<Vec<Lane>>>()?;
            let read = self.given(operands, read)?;
            self.define(instr, 0, Held::Tile(read));
        }
        self.define(instr, usize::from(reads), Held::Token(token));
        Ok(())
    }

    /// Combines the values read of one element from all its addresses.
    fn reduce(&mut self, operands: &Operands, all: &[Lane]) -> Done<Lane> {
        let (Some(first), rest) = (all.first().copied(), all.get(1..).unwrap_or_default()) else {
            return self.refuse("an element that lies nowhere");
        };
        match operands.reduced {
            Some(op) => rest.iter().try_fold(first, |sum, lane| self.integer(op, operands.elem, sum, *lane)),
            None => Ok(first),
        }
    }

    /// The mask of an element combined with that of the enclosing arm.
    fn masked(&mut self, own: Option<Lane>) -> Done<Option<Reg>> {
        match own.filter(|lane| lane.bits().is_none()) {
            None => Ok(self.mask),
            Some(lane) => {
                let own = self.number(lane)?;
                self.both(own).map(Some)
            }
        }
    }

    /// A condition combined with the mask of the enclosing arm.
    pub(super) fn both(&mut self, condition: Operand) -> Done<Reg> {
        match (self.mask, condition) {
            (None, Operand::Reg(reg)) => Ok(reg),
            (mask, condition) => {
                let (dst, ty) = (self.fresh("p")?, Ty::U(8));
                let a = mask.map_or(Operand::Imm(1), Operand::Reg);
                self.push(Code::Alu { op: AluOp::And, ty, dst, a, b: condition })?;
                Ok(dst)
            }
        }
    }

    /// Records how far the memory behind a parameter is accessed.
    pub(super) fn reaches(&mut self, base: Operand, offset: i32, bytes: u32) -> Done<()> {
        let Operand::Address(symbol) = base else { return Ok(()) };
        let start = u32::try_from(offset).or_else(|_| self.refuse("an address before a parameter"))?;
        if let Some(end) = self.shared.ends.get_mut(symbol.index()) {
            *end = start.saturating_add(bytes).max(*end);
        }
        Ok(())
    }

    pub(super) fn define(&mut self, instr: &Instr, result: usize, held: Held) {
        if let Some(value) = instr.results.get(result) {
            self.values.insert(*value, held);
        }
    }
}

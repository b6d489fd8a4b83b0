//! Memory operations and tokens of a tile block.

use super::value::{Held, Lane, register_type};
use super::{ACCESSES, Block, Done, TileRefusal};
use crate::ir::{
    AluOp, AtomOp, LoadOrder, Op as Code, Operand, Reg, RmwOrder, Scope as Reach, StoreOrder, TileAccess,
    TileElement, TileKind, TileOp, TileToken, Ty,
};
use crate::tile::{Access, AtomicMode, Elem, Instr, Op, Order, Scalar, Scope, Sign, Value};

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

/// What an atomic does, and how it reads its operands.
fn mode(mode: AtomicMode) -> Option<(AtomOp, Sign)> {
    Some(match mode {
        AtomicMode::And => (AtomOp::And, Sign::Unsigned),
        AtomicMode::Or => (AtomOp::Or, Sign::Unsigned),
        AtomicMode::Xor => (AtomOp::Xor, Sign::Unsigned),
        AtomicMode::Add => (AtomOp::Add, Sign::Unsigned),
        AtomicMode::Max => (AtomOp::Max, Sign::Signed),
        AtomicMode::Min => (AtomOp::Min, Sign::Signed),
        AtomicMode::UMax => (AtomOp::Max, Sign::Unsigned),
        AtomicMode::UMin => (AtomOp::Min, Sign::Unsigned),
        AtomicMode::Xchg => (AtomOp::Exch, Sign::Unsigned),
        AtomicMode::AddF => return None,
    })
}

/// Operands of one instruction.
struct Operands {
    pointers: Value,
    a: Option<Value>,
    b: Option<Value>,
    mask: Option<Value>,
    token: Option<Value>,
}

impl Block<'_, '_> {
    pub(super) fn token_of(&self, value: Value) -> Done<Reg> {
        match self.held(value)? {
            Held::Token(reg) => Ok(*reg),
            Held::Tile(_) => self.refuse("a tile as a token"),
        }
    }

    /// A new token that stands for others.
    pub(super) fn join(&mut self, from: Vec<Reg>) -> Done<Reg> {
        let dst = self.fresh("t")?;
        self.push(Code::Tile(TileOp::Token(TileToken::Join { dst, from })))?;
        Ok(dst)
    }

    /// Memory operations and tokens; whether it was one.
    pub(super) fn memory(&mut self, instr: &Instr) -> Done<bool> {
        match &instr.op {
            Op::MakeToken => {
                let token = self.join(Vec::new())?;
                self.define(instr, 0, Held::Token(token));
            }
            Op::JoinTokens(from) => {
                let from = from.iter().map(|t| self.token_of(*t)).collect::<Done<Vec<Reg>>>()?;
                let token = self.join(from)?;
                self.define(instr, 0, Held::Token(token));
            }
            Op::LoadPtr { pointers, access, mask, padding, token, .. } => {
                let Some(order) = load_order(*access) else { return self.refuse("this order of a load") };
                let (pointers, mask, token) = (*pointers, *mask, *token);
                let operands = Operands { pointers, a: *padding, b: None, mask, token };
                self.touch(instr, (TileKind::Load(order), Sign::Unsigned), &operands)?;
            }
            Op::StorePtr { pointers, value, access, mask, token, .. } => {
                let Some(order) = store_order(*access) else { return self.refuse("this order of a store") };
                let (pointers, mask, token) = (*pointers, *mask, *token);
                let operands = Operands { pointers, a: Some(*value), b: None, mask, token };
                self.touch(instr, (TileKind::Store(order), Sign::Unsigned), &operands)?;
            }
            Op::AtomicRmw { pointers, mode: m, value, order, scope, mask, token } => {
                let (Some((op, sign)), Some(order)) = (mode(*m), rmw_order(*order)) else {
                    return self.refuse("this atomic");
                };
                let kind = TileKind::Rmw { op, order, scope: reach(*scope) };
                let (pointers, mask, token) = (*pointers, *mask, *token);
                self.touch(
                    instr,
                    (kind, sign),
                    &Operands { pointers, a: Some(*value), b: None, mask, token },
                )?;
            }
            Op::AtomicCas { pointers, compare, value, order, scope, mask, token } => {
                let Some(order) = rmw_order(*order) else { return self.refuse("this atomic") };
                let kind = TileKind::Rmw { op: AtomOp::Cas, order, scope: reach(*scope) };
                let (pointers, mask, token) = (*pointers, *mask, *token);
                let operands = Operands { pointers, a: Some(*compare), b: Some(*value), mask, token };
                self.touch(instr, (kind, Sign::Unsigned), &operands)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn element_type(&self, pointers: Value, kind: TileKind, sign: Sign) -> Done<(Ty, Scalar)> {
        let Elem::Pointer { to, multicast: false } = self.type_of(pointers)?.elem else {
            return self.refuse("an access through these pointers");
        };
        let exchanges = matches!(kind, TileKind::Rmw { op: AtomOp::Exch, .. });
        match kind {
            _ if to.bits() < 8 => self.refuse("an access to less than a byte"),
            TileKind::Rmw { .. } if !to.integer() && !exchanges => self.refuse("an atomic on floats"),
            _ => Ok((register_type(to, sign), to)),
        }
    }

    fn touch(&mut self, instr: &Instr, (kind, sign): (TileKind, Sign), operands: &Operands) -> Done<()> {
        let (ty, to) = self.element_type(operands.pointers, kind, sign)?;
        let pointers = self.lanes(operands.pointers)?;
        let lanes = |block: &Self, value: Option<Value>| value.map(|v| block.lanes(v)).transpose();
        let (a, b) = (lanes(self, operands.a)?, lanes(self, operands.b)?);
        let masks = lanes(self, operands.mask)?;
        let reads = !matches!(kind, TileKind::Store(_));
        let (mut elements, mut read) = (Vec::new(), Vec::new());
        for (i, pointer) in pointers.iter().enumerate() {
            let Lane::Pointer(addr) = *pointer else { return self.refuse("a number as a pointer") };
            let pick = |block: &Self, of: &Option<Vec<Lane>>| {
                of.as_ref().and_then(|l| l.get(i)).map(|l| block.number(*l)).transpose()
            };
            let (a, b) = (pick(self, &a)?, pick(self, &b)?);
            let own = masks.as_ref().and_then(|m| m.get(i)).copied();
            let off = own.and_then(Lane::bits) == Some(0);
            let loads = matches!(kind, TileKind::Load(_));
            if off {
                let left = a.filter(|_| loads).map_or(Lane::Nothing, Lane::Number);
                read.extend(reads.then_some(left));
                continue;
            }
            let (mask, known) = (self.masked(own)?, own.is_none_or(|l| l.bits().is_some()));
            self.reaches(addr.base, addr.offset, to.bytes())?;
            // What an arm reads that is not run nobody sees.
            let a = if loads && known { a.or(Some(Operand::Imm(0))) } else { a };
            let dst = if reads { Some(self.fresh("r")?) } else { None };
            let seen = if loads || known { dst } else { None };
            read.extend(dst.map(|_| seen.map_or(Lane::Nothing, |r| Lane::Number(Operand::Reg(r)))));
            elements.push(TileElement { addr, mask, dst: seen, a, b });
        }
        self.accesses += elements.len();
        if self.accesses > ACCESSES {
            return Err(TileRefusal::Bounded(format!(
                "a tile block that accesses more than {ACCESSES} elements"
            )));
        }
        let after = operands.token.map(|t| self.token_of(t)).transpose()?;
        let token = self.fresh("t")?;
        let access = TileAccess { kind, ty, elements, after, token: Some(token) };
        self.push(Code::Tile(TileOp::Access(Box::new(access))))?;
        if reads {
            self.define(instr, 0, Held::Tile(read));
        }
        self.define(instr, usize::from(reads), Held::Token(token));
        Ok(())
    }

    /// The mask of the operation together with that of the arm it stands in.
    fn masked(&mut self, own: Option<Lane>) -> Done<Option<Reg>> {
        match own.filter(|lane| lane.bits().is_none()) {
            None => Ok(self.mask),
            Some(lane) => {
                let own = self.number(lane)?;
                self.both(own).map(Some)
            }
        }
    }

    /// A condition, inside the arm that is run.
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

    /// Notes how far a parameter is touched.
    fn reaches(&mut self, base: Operand, offset: i32, bytes: u32) -> Done<()> {
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

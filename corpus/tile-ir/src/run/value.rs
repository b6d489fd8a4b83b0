//! Values of a tile block, element by element, and arithmetic on them. An element is a known number, a register or an
//! address.

use super::view::Tensor;
use super::{Block, Done, ELEMENTS};
use crate::{Constant, Convert, Elem, IntegerOp, Op, Predicate, Scalar, Sign, Tile, Type, Value};
use moire_program::Refusal;
use moire_program::ir::{Address, AluOp, CmpOp, Op as Code, Operand, Reg, SymbolId, Ty};

/// A value of the module while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The elements of a tile in row-major order.
    Tile(Vec<Lane>),
    /// The register of a token.
    Token(Reg),
    /// A tensor in memory, or a view of it; the type says how the view cuts it into tiles.
    Tensor(Tensor),
}

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// A number: known, as unsigned bits, or in a register.
    Number(Operand),
    /// An address.
    Pointer(Address),
    /// The unspecified value of an element that was masked off or lies outside its tensor.
    Nothing,
}

impl Held {
    /// The address in a pointer parameter.
    pub(super) fn parameter(n: u16) -> Held {
        Held::Tile(vec![Lane::Pointer(Address { base: Operand::Address(SymbolId(n)), offset: 0 })])
    }

    /// One number.
    pub(super) fn number(value: u128) -> Held {
        Held::Tile(vec![Lane::known(value)])
    }
}

impl Lane {
    pub(super) fn known(value: u128) -> Lane {
        Lane::Number(Operand::Imm(i128::try_from(value).expect("an element has at most 64 bits")))
    }

    /// The bits of a known number.
    pub(super) fn bits(self) -> Option<u128> {
        match self {
            Lane::Number(Operand::Imm(value)) => u128::try_from(value).ok(),
            Lane::Number(_) | Lane::Pointer(_) | Lane::Nothing => None,
        }
    }
}

fn low(value: u128, bits: u32) -> u128 {
    value & (u128::MAX >> (128 - bits.clamp(1, 128)))
}

fn signed(value: u128, bits: u32) -> i128 {
    let shift = 128 - bits.clamp(1, 128);
    #[expect(clippy::cast_possible_wrap, reason = "a bit pattern is read as a number")]
    let wide = (value << shift) as i128;
    wide >> shift
}

#[expect(clippy::cast_sign_loss, reason = "a bit pattern is wanted")]
fn pattern(value: i128, bits: u32) -> u128 {
    low(value as u128, bits)
}

/// The number of elements of a tile type that [`Block::type_of`] returned.
fn count(tile: &Tile) -> usize {
    usize::try_from(tile.elements()).expect("a tile that is run has few elements")
}

/// The type of an element in a register.
pub(super) fn register_type(scalar: Scalar, sign: Sign) -> Ty {
    let bits = u8::try_from(scalar.bits().max(8)).expect("a scalar has at most 64 bits");
    if sign == Sign::Signed && scalar.bits() >= 8 { Ty::S(bits) } else { Ty::U(bits) }
}

/// Arithmetic on known numbers; `None` if the specification leaves the result undefined.
fn fold(op: IntegerOp, bits: u32, a: u128, b: u128) -> Option<u128> {
    let (x, y) = (signed(a, bits), signed(b, bits));
    let shift = u32::try_from(b).ok().filter(|s| *s < bits);
    Some(match op {
        IntegerOp::Add(_) => low(a.wrapping_add(b), bits),
        IntegerOp::Sub(_) => low(a.wrapping_sub(b), bits),
        IntegerOp::Mul(_) => low(a.wrapping_mul(b), bits),
        IntegerOp::And => a & b,
        IntegerOp::Or => a | b,
        IntegerOp::Xor => a ^ b,
        IntegerOp::Max(Sign::Unsigned) => a.max(b),
        IntegerOp::Max(Sign::Signed) => pattern(x.max(y), bits),
        IntegerOp::Min(Sign::Unsigned) => a.min(b),
        IntegerOp::Min(Sign::Signed) => pattern(x.min(y), bits),
        IntegerOp::Shl(_) => low(a << shift?, bits),
        IntegerOp::Shr(Sign::Unsigned) => a >> shift?,
        IntegerOp::Shr(Sign::Signed) => pattern(x >> shift?, bits),
        IntegerOp::Rem(Sign::Unsigned) => a.checked_rem(b)?,
        IntegerOp::Rem(Sign::Signed) => pattern(x.checked_rem(y)?, bits),
    })
}

fn register_op(op: IntegerOp) -> Option<(AluOp, Sign)> {
    Some(match op {
        IntegerOp::Add(_) => (AluOp::Add, Sign::Unsigned),
        IntegerOp::Sub(_) => (AluOp::Sub, Sign::Unsigned),
        IntegerOp::Mul(_) => (AluOp::Mul, Sign::Unsigned),
        IntegerOp::And => (AluOp::And, Sign::Unsigned),
        IntegerOp::Or => (AluOp::Or, Sign::Unsigned),
        IntegerOp::Xor => (AluOp::Xor, Sign::Unsigned),
        IntegerOp::Max(Sign::Unsigned) => (AluOp::Max, Sign::Unsigned),
        IntegerOp::Min(Sign::Unsigned) => (AluOp::Min, Sign::Unsigned),
        // Shifts and remainders may be undefined; signed extrema would put sign-extended values into registers.
        _ => return None,
    })
}

fn compare(predicate: Predicate) -> CmpOp {
    match predicate {
        Predicate::Equal => CmpOp::Eq,
        Predicate::NotEqual => CmpOp::Ne,
        Predicate::Less => CmpOp::Lt,
        Predicate::LessEqual => CmpOp::Le,
        Predicate::Greater => CmpOp::Gt,
        Predicate::GreaterEqual => CmpOp::Ge,
    }
}

impl Block<'_, '_> {
    pub(super) fn type_of(&self, value: Value) -> Done<Tile> {
        match self.shared.function.ty(value) {
            Some(Type::Tile(tile)) if tile.elements() <= ELEMENTS => Ok(tile.clone()),
            Some(Type::Tile(_)) => Err(Refusal::Bounded(format!("a tile of more than {ELEMENTS} elements"))),
            _ => self.refuse("a value that is no tile"),
        }
    }

    pub(super) fn scalar(&self, value: Value) -> Done<Scalar> {
        match self.type_of(value)?.elem {
            Elem::Scalar(scalar) => Ok(scalar),
            Elem::Pointer { .. } => self.refuse("arithmetic on pointers"),
        }
    }

    pub(super) fn held(&self, value: Value) -> Done<&Held> {
        match self.values.get(&value) {
            Some(held) => Ok(held),
            None => self.refuse("a value without a definition"),
        }
    }

    pub(super) fn lanes(&self, value: Value) -> Done<Vec<Lane>> {
        match self.held(value)? {
            Held::Tile(lanes) => Ok(lanes.clone()),
            Held::Token(_) | Held::Tensor(_) => self.refuse("a token or a view as a tile"),
        }
    }

    pub(super) fn number(&self, lane: Lane) -> Done<Operand> {
        match lane {
            Lane::Number(operand) => Ok(operand),
            Lane::Pointer(_) => self.refuse("a pointer as a number"),
            Lane::Nothing => self.refuse("the unspecified value of a masked-off element"),
        }
    }

    fn integers(&self, scalar: Scalar) -> Done<u32> {
        if scalar.integer() { Ok(scalar.bits()) } else { self.refuse("arithmetic on floats") }
    }

    /// Runs an operation on tiles without memory accesses or control flow; `None` for other operations.
    pub(super) fn pure(&mut self, op: &Op, result: Value) -> Done<Option<Vec<Lane>>> {
        let lanes = match op {
            Op::Constant(constant) => self.constant(constant, result)?,
            Op::Iota => {
                let tile = self.type_of(result)?;
                (0..tile.elements()).map(|i| Lane::known(u128::from(i))).collect()
            }
            Op::Convert { to: Convert::Reshape | Convert::PtrToPtr, value } => self.lanes(*value)?,
            Op::Convert { to: Convert::Broadcast, value } => self.broadcast(*value, result)?,
            Op::Convert { to: Convert::Bitcast, value } => {
                let (from, to) = (self.type_of(*value)?, self.type_of(result)?);
                match (from.elem, to.elem) {
                    (Elem::Scalar(a), Elem::Scalar(b)) if a.bits() == b.bits() => self.lanes(*value)?,
                    _ => return self.refuse("this bitcast"),
                }
            }
            Op::Assume { value, .. } => self.lanes(*value)?,
            Op::Extend { sign, value } => self.resize(*value, result, *sign)?,
            Op::Truncate { value, .. } => self.resize(*value, result, Sign::Unsigned)?,
            Op::Offset { pointer, offset } => self.offset(*pointer, *offset)?,
            Op::Integer { op, a, b } => {
                let scalar = self.scalar(*a)?;
                self.integers(scalar)?;
                self.zip(*a, *b, &mut |block, x, y| block.integer(*op, scalar, x, y))?
            }
            Op::Negate { overflow, value } => {
                let scalar = self.scalar(*value)?;
                self.integers(scalar)?;
                let (minus, zero) = (IntegerOp::Sub(*overflow), Lane::known(0));
                let lanes = self.lanes(*value)?.into_iter();
                lanes.map(|lane| self.integer(minus, scalar, zero, lane)).collect::<Done<_>>()?
            }
            Op::Compare { predicate, sign, a, b } => {
                let scalar = self.scalar(*a)?;
                self.integers(scalar)?;
                let wanted = (compare(*predicate), *sign);
                self.zip(*a, *b, &mut |block, x, y| block.compare(wanted, scalar, x, y))?
            }
            Op::Select { condition, a, b } => self.select(*condition, *a, *b, result)?,
            // Others run these, or nobody does.
            Op::TileBlockId | Op::NumTileBlocks | Op::TensorView { .. } => return Ok(None),
            Op::PartitionView { .. } | Op::StridedView { .. } | Op::GatherView { .. } => return Ok(None),
            Op::Float { .. } | token_op!() | access_op!() | block_op!() | end_op!() => return Ok(None),
        };
        Ok(Some(lanes))
    }

    fn zip(
        &mut self,
        a: Value,
        b: Value,
        with: &mut dyn FnMut(&mut Self, Lane, Lane) -> Done<Lane>,
    ) -> Done<Vec<Lane>> {
        let (a, b) = (self.lanes(a)?, self.lanes(b)?);
        a.into_iter().zip(b).map(|(x, y)| with(self, x, y)).collect()
    }

    fn constant(&self, constant: &Constant, result: Value) -> Done<Vec<Lane>> {
        let count = count(&self.type_of(result)?);
        let mut lanes: Vec<Lane> = constant.bits.iter().map(|b| Lane::known(u128::from(*b))).collect();
        if let [one] = lanes[..] {
            lanes = vec![one; count];
        }
        if lanes.len() == count { Ok(lanes) } else { self.refuse("this constant") }
    }

    fn broadcast(&self, value: Value, result: Value) -> Done<Vec<Lane>> {
        let (from, to, lanes) = (self.type_of(value)?, self.type_of(result)?, self.lanes(value)?);
        let count = count(&to);
        let source = |mut at: usize| {
            let (mut index, mut step) = (0, 1);
            for (have, want) in from.shape.iter().zip(&to.shape).rev() {
                let (have, want) = (*have as usize, (*want as usize).max(1));
                index += at % want % have.max(1) * step;
                (at, step) = (at / want, step * have);
            }
            index
        };
        if from.shape.len() != to.shape.len() {
            return self.refuse("a broadcast that changes the rank");
        }
        Ok((0..count).filter_map(|at| lanes.get(source(at)).copied()).collect())
    }

    fn resize(&mut self, value: Value, result: Value, sign: Sign) -> Done<Vec<Lane>> {
        let (from, to) = (self.scalar(value)?.bits(), self.scalar(result)?.bits());
        let lanes = self.lanes(value)?;
        let resized = lanes.into_iter().map(|lane| match (lane.bits(), sign) {
            (Some(bits), Sign::Signed) => Ok(Lane::known(pattern(signed(bits, from), to))),
            (Some(bits), Sign::Unsigned) => Ok(Lane::known(low(bits, to))),
            (None, Sign::Unsigned) if to >= from => Ok(lane),
            (None, Sign::Signed) if from == 1 => self.refuse("a sign extension of a comparison"),
            (None, _) => self.refuse("an extension or truncation of a value from memory"),
        });
        resized.collect()
    }

    fn offset(&mut self, pointer: Value, offset: Value) -> Done<Vec<Lane>> {
        let Elem::Pointer { to, .. } = self.type_of(pointer)?.elem else {
            return self.refuse("this offset");
        };
        if to.stored_bits() < 8 {
            return self.refuse("an offset of a pointer to half bytes");
        }
        let bits = self.scalar(offset)?.bits();
        self.zip(pointer, offset, &mut |block, pointer, by| {
            let Lane::Pointer(address) = pointer else { return block.refuse("a number as a pointer") };
            match by.bits() {
                Some(by) => {
                    let bytes = signed(by, bits) * i128::from(to.bytes());
                    let offset = i32::try_from(i128::from(address.offset) + bytes);
                    let offset = offset.or_else(|_| block.refuse("an offset this large"))?;
                    Ok(Lane::Pointer(Address { offset, ..address }))
                }
                None => block.moved(address, (by, bits), to.bytes()),
            }
        })
    }

    /// Moves an address by a signed number of elements, of so many bits, in a register.
    fn moved(&mut self, address: Address, (by, bits): (Lane, u32), bytes: u32) -> Done<Lane> {
        let (mut count, wide) = (self.number(by)?, Ty::U(64));
        if bits < 64 {
            let up = Operand::Imm(i128::from(64 - bits));
            for (op, ty) in [(AluOp::Shl, wide), (AluOp::Shr, Ty::S(64))] {
                let dst = self.fresh("n")?;
                self.push(Code::Alu { op, ty, dst, a: count, b: up })?;
                count = Operand::Reg(dst);
            }
        }
        let (step, dst) = (self.fresh("i")?, self.fresh("a")?);
        let size = Operand::Imm(i128::from(bytes));
        self.push(Code::Alu { op: AluOp::Mul, ty: wide, dst: step, a: count, b: size })?;
        self.push(Code::Alu { op: AluOp::Add, ty: wide, dst, a: address.base, b: Operand::Reg(step) })?;
        Ok(Lane::Pointer(Address { base: Operand::Reg(dst), ..address }))
    }

    pub(super) fn integer(&mut self, op: IntegerOp, scalar: Scalar, a: Lane, b: Lane) -> Done<Lane> {
        if let (Some(x), Some(y)) = (a.bits(), b.bits()) {
            return match fold(op, scalar.bits(), x, y) {
                Some(value) => Ok(Lane::known(value)),
                None => self.refuse("undefined arithmetic"),
            };
        }
        let Some((alu, sign)) = register_op(op) else {
            return self.refuse(&format!("{} of a value from memory", op.word()));
        };
        let logical = matches!(op, IntegerOp::And | IntegerOp::Or | IntegerOp::Xor);
        if scalar.bits() < 8 && !logical {
            return self.refuse(&format!("{} of a bit from memory", op.word()));
        }
        let (a, b, dst) = (self.number(a)?, self.number(b)?, self.fresh("v")?);
        self.push(Code::Alu { op: alu, ty: register_type(scalar, sign), dst, a, b })?;
        Ok(Lane::Number(Operand::Reg(dst)))
    }

    fn compare(&mut self, (op, sign): (CmpOp, Sign), scalar: Scalar, a: Lane, b: Lane) -> Done<Lane> {
        if let (Some(x), Some(y)) = (a.bits(), b.bits()) {
            let number = |v: u128| match sign {
                Sign::Signed => signed(v, scalar.bits()),
                Sign::Unsigned => i128::try_from(v).expect("an element has at most 64 bits"),
            };
            let (x, y) = (number(x), number(y));
            let holds = match op {
                CmpOp::Eq => x == y,
                CmpOp::Ne => x != y,
                CmpOp::Lt => x < y,
                CmpOp::Le => x <= y,
                CmpOp::Gt => x > y,
                CmpOp::Ge => x >= y,
            };
            return Ok(Lane::known(u128::from(holds)));
        }
        if scalar.bits() < 8 && sign == Sign::Signed && !matches!(op, CmpOp::Eq | CmpOp::Ne) {
            return self.refuse("a signed comparison of a bit from memory");
        }
        let (a, b, dst) = (self.number(a)?, self.number(b)?, self.fresh("p")?);
        self.push(Code::Setp { op, ty: register_type(scalar, sign), dst, a, b })?;
        Ok(Lane::Number(Operand::Reg(dst)))
    }

    fn select(&mut self, condition: Value, a: Value, b: Value, result: Value) -> Done<Vec<Lane>> {
        let elem = self.type_of(result)?.elem;
        let (mut conditions, a, b) = (self.lanes(condition)?, self.lanes(a)?, self.lanes(b)?);
        if let [one] = conditions[..] {
            conditions = vec![one; a.len()];
        }
        let all = conditions.into_iter().zip(a.into_iter().zip(b));
        all.map(|(when, (a, b))| self.either(elem, when, a, b)).collect()
    }

    /// Selects one of two elements.
    pub(super) fn either(&mut self, elem: Elem, when: Lane, a: Lane, b: Lane) -> Done<Lane> {
        match (when, elem) {
            _ if a == b => Ok(a),
            (when, _) if when.bits().is_some() => Ok(if when.bits() == Some(0) { b } else { a }),
            (Lane::Number(Operand::Reg(p)), Elem::Scalar(scalar)) => {
                let (a, b, dst) = (self.number(a)?, self.number(b)?, self.fresh("v")?);
                self.push(Code::Selp { ty: register_type(scalar, Sign::Unsigned), dst, a, b, p })?;
                Ok(Lane::Number(Operand::Reg(dst)))
            }
            _ => self.refuse("a pointer chosen by a value from memory"),
        }
    }
}

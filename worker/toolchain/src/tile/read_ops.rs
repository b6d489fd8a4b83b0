//! Operations read from the bytecode; the counterpart of the writer, part by part.

use super::Bytecode;
use super::bytes::{Cursor, Taken};
use super::codes::{attribute, op};
use super::hints::read_hints;
use super::numbering::Numbering;
use super::types::value_type;
use moire_tile_ir::{
    Access, Assumption, Block, CONSTANT_ELEMENTS, Constant, Convert, Elem, FloatOp, Function, Hints, Instr,
    IntegerOp, NESTING, OPS, Op, Order, Overflow, Predicate, Rounding, Scalar, Scope, Sign, Tile, Type,
    VALUES, Value,
};

/// Reads the body of one function.
pub(super) struct Body<'a> {
    function: Function,
    pub(super) c: Cursor<'a>,
    pub(super) version: Bytecode,
    tables: &'a Numbering,
    /// Our value for each number that can be used here.
    scope: Vec<Value>,
    ops: usize,
    depth: usize,
}

impl<'a> Body<'a> {
    pub(super) fn new(function: Function, c: Cursor<'a>, version: Bytecode, tables: &'a Numbering) -> Self {
        let scope = function.body.params.clone();
        Body { function, c, version, tables, scope, ops: 0, depth: 0 }
    }

    pub(super) fn read(mut self) -> Taken<Function> {
        let mut ops = Vec::new();
        while self.c.left() > 0 {
            ops.push(self.instr()?);
        }
        self.function.body.ops = ops;
        Ok(self.function)
    }

    fn fresh(&mut self, ty: Type) -> Taken<Value> {
        if self.function.types.len() >= VALUES {
            return self.c.error(format!("a function may have at most {VALUES} values"));
        }
        let value = self.function.fresh(ty);
        self.scope.push(value);
        Ok(value)
    }

    fn instr(&mut self) -> Taken<Instr> {
        self.ops += 1;
        if self.ops > OPS {
            return self.c.error(format!("a function may have at most {OPS} operations"));
        }
        let (op, types) = self.operation()?;
        let results = types.into_iter().map(|ty| self.fresh(ty)).collect::<Taken<Vec<_>>>()?;
        Ok(Instr { op, results, line: 0, column: 0 })
    }

    pub(super) fn value(&mut self) -> Taken<Value> {
        let start = self.c;
        let id = self.c.varint()?;
        let found = usize::try_from(id).ok().and_then(|i| self.scope.get(i)).copied();
        found.map_or_else(|| start.error(format!("value {id} is not defined here")), Ok)
    }

    fn some(&mut self, n: usize) -> Taken<Vec<Value>> {
        (0..n).map(|_| self.value()).collect()
    }

    pub(super) fn counted(&mut self) -> Taken<Vec<Value>> {
        let n = self.c.count()?;
        self.some(n)
    }

    pub(super) fn given(&mut self, there: bool) -> Taken<Option<Value>> {
        if there { self.value().map(Some) } else { Ok(None) }
    }

    fn ty(&mut self) -> Taken<Type> {
        value_type(&mut self.c, &self.tables.types)
    }

    pub(super) fn types(&mut self, n: usize) -> Taken<Vec<Type>> {
        (0..n).map(|_| self.ty()).collect()
    }

    pub(super) fn counted_types(&mut self) -> Taken<Vec<Type>> {
        let n = self.c.count()?;
        self.types(n)
    }

    /// One of a vocabulary.
    pub(super) fn word<T>(&mut self, what: &str, of: fn(u8) -> Option<T>) -> Taken<T> {
        let start = self.c;
        let code = self.c.byte()?;
        of(code).map_or_else(|| start.error(format!("{code} is no {what}")), Ok)
    }

    /// `N` bits.
    pub(super) fn flags<const N: usize>(&mut self) -> Taken<[bool; N]> {
        let start = self.c;
        let bits = self.c.varint()?;
        if bits >> N != 0 {
            return start.error(format!("flags {bits} of an operation are not known here"));
        }
        Ok(std::array::from_fn(|i| bits >> i & 1 == 1))
    }

    pub(super) fn order(&mut self) -> Taken<Order> {
        self.word("memory ordering", Order::from_code)
    }

    pub(super) fn scope(&mut self) -> Taken<Scope> {
        self.word("memory scope", Scope::from_code)
    }

    pub(super) fn access(&mut self, scoped: bool) -> Taken<Access> {
        let order = self.order()?;
        let scope = if scoped { Some(self.scope()?) } else { None };
        Ok(Access { order, scope })
    }

    pub(super) fn hints(&mut self, there: bool) -> Taken<Hints> {
        if there { read_hints(&mut self.c, self.tables) } else { Ok(Hints::new()) }
    }

    fn sign(&mut self) -> Taken<Sign> {
        self.word("signedness", Sign::from_code)
    }

    fn overflow(&mut self) -> Taken<Overflow> {
        self.word("promise about overflow", Overflow::from_code)
    }

    fn operation(&mut self) -> Taken<(Op, Vec<Type>)> {
        let start = self.c;
        let code = self.c.varint()?;
        match code {
            op::CONSTANT => {
                let ty = self.ty()?;
                Ok((Op::Constant(self.constant(&ty)?), vec![ty]))
            }
            op::IOTA => Ok((Op::Iota, self.types(1)?)),
            op::TILE_BLOCK_ID => Ok((Op::TileBlockId, self.types(3)?)),
            op::NUM_TILE_BLOCKS => Ok((Op::NumTileBlocks, self.types(3)?)),
            op::RESHAPE => self.convert(Convert::Reshape),
            op::BROADCAST => self.convert(Convert::Broadcast),
            op::BITCAST => self.convert(Convert::Bitcast),
            op::PTR_TO_PTR => self.convert(Convert::PtrToPtr),
            op::ADDF => self.float(FloatOp::Add),
            op::SUBF => self.float(FloatOp::Sub),
            op::MULF => self.float(FloatOp::Mul),
            op::ADDI
            | op::SUBI
            | op::MULI
            | op::SHLI
            | op::MAXI
            | op::MINI
            | op::SHRI
            | op::REMI
            | op::ANDI
            | op::ORI
            | op::XORI => self.integer(code),
            op::EXTI | op::TRUNCI | op::OFFSET | op::CMPI | op::SELECT | op::ASSUME => self.arithmetic(code),
            op::TENSOR_VIEW | op::PARTITION_VIEW | op::STRIDED_VIEW => self.view(code),
            op::MAKE_TOKEN | op::JOIN_TOKENS | op::ALIAS_FENCE | op::GDC_WAIT | op::GDC_LAUNCH => {
                self.token(code)
            }
            op::LOAD_PTR | op::STORE_PTR | op::ATOMIC_RMW | op::ATOMIC_CAS => self.through_pointers(code),
            op::LOAD_VIEW | op::STORE_VIEW | op::ATOMIC_RED_VIEW => self.through_view(code),
            op::MULTIMEM_LOAD_REDUCE | op::MULTIMEM_REDUCE | op::MULTIMEM_STORE => self.multimem(code),
            op::IF | op::FOR | op::LOOP => self.structured(code),
            op::YIELD | op::CONTINUE | op::BREAK | op::RETURN => {
                let counted = self.c;
                if self.c.count()? != 0 {
                    return counted.error("what ends a block has no results".to_owned());
                }
                let values = self.counted()?;
                let op = match code {
                    op::YIELD => Op::Yield(values),
                    op::CONTINUE => Op::Continue(values),
                    op::BREAK => Op::Break(values),
                    _ => Op::Return(values),
                };
                Ok((op, Vec::new()))
            }
            other => start.error(format!("operation {other} is not known here")),
        }
    }

    fn convert(&mut self, to: Convert) -> Taken<(Op, Vec<Type>)> {
        let types = self.types(1)?;
        Ok((Op::Convert { to, value: self.value()? }, types))
    }

    fn float(&mut self, op: FloatOp) -> Taken<(Op, Vec<Type>)> {
        let types = self.types(1)?;
        let [flush] = self.flags()?;
        let rounding = self.word("rounding", Rounding::from_code)?;
        let (a, b) = (self.value()?, self.value()?);
        Ok((Op::Float { op, rounding, flush, a, b }, types))
    }

    fn integer(&mut self, code: u64) -> Taken<(Op, Vec<Type>)> {
        let types = self.types(1)?;
        let op = match code {
            op::ADDI => IntegerOp::Add(self.overflow()?),
            op::SUBI => IntegerOp::Sub(self.overflow()?),
            op::MULI => IntegerOp::Mul(self.overflow()?),
            op::SHLI => IntegerOp::Shl(self.overflow()?),
            op::MAXI => IntegerOp::Max(self.sign()?),
            op::MINI => IntegerOp::Min(self.sign()?),
            op::SHRI => IntegerOp::Shr(self.sign()?),
            op::REMI => IntegerOp::Rem(self.sign()?),
            op::ANDI => IntegerOp::And,
            op::ORI => IntegerOp::Or,
            _ => IntegerOp::Xor,
        };
        let (a, b) = (self.value()?, self.value()?);
        Ok((Op::Integer { op, a, b }, types))
    }

    fn arithmetic(&mut self, code: u64) -> Taken<(Op, Vec<Type>)> {
        let types = self.types(1)?;
        let op = match code {
            op::EXTI => {
                let sign = self.sign()?;
                Op::Extend { sign, value: self.value()? }
            }
            op::TRUNCI => {
                let overflow = self.overflow()?;
                Op::Truncate { overflow, value: self.value()? }
            }
            op::OFFSET => Op::Offset { pointer: self.value()?, offset: self.value()? },
            op::CMPI => {
                let predicate = self.word("comparison", Predicate::from_code)?;
                let sign = self.sign()?;
                Op::Compare { predicate, sign, a: self.value()?, b: self.value()? }
            }
            op::SELECT => Op::Select { condition: self.value()?, a: self.value()?, b: self.value()? },
            _ => {
                let that = self.assumption()?;
                Op::Assume { that, value: self.value()? }
            }
        };
        Ok((op, types))
    }

    fn assumption(&mut self) -> Taken<Assumption> {
        let start = self.c;
        match self.c.byte()? {
            attribute::DIV_BY => {
                let divisor = self.c.varint()?;
                let every = match self.c.byte()? {
                    0 => None,
                    3 => Some((self.c.signed()?, self.c.signed()?)),
                    _ => return start.error("a run needs its length and its dimension"),
                };
                Ok(Assumption::DivBy { divisor, every })
            }
            attribute::BOUNDED => {
                let flags = self.c.byte()?;
                if flags > 3 {
                    return start.error(format!("flags {flags} of an interval are not known here"));
                }
                let low = if flags & 1 != 0 { Some(self.c.signed()?) } else { None };
                let high = if flags & 2 != 0 { Some(self.c.signed()?) } else { None };
                Ok(Assumption::Bounded { low, high })
            }
            other => start.error(format!("an assumption with tag {other} is not known here")),
        }
    }

    /// One element, or as many as the type has.
    fn constant(&mut self, ty: &Type) -> Taken<Constant> {
        let start = self.c;
        let id = self.c.varint()?;
        let Some(bytes) = usize::try_from(id).ok().and_then(|i| self.tables.constants.get(i)) else {
            return start.error(format!("constant {id} is not there"));
        };
        let Type::Tile(tile @ Tile { elem: Elem::Scalar(elem), .. }) = ty else {
            return start.error(format!("`{ty}` is no type of a constant"));
        };
        if bytes.len() > CONSTANT_ELEMENTS * 8 {
            return start.error(format!("a constant may have at most {CONSTANT_ELEMENTS} elements"));
        }
        let wrong = || start.error(format!("{} bytes are no constant of type `{ty}`", bytes.len()));
        if *elem == Scalar::I1 {
            return match (bytes.as_slice(), tile.elements()) {
                ([0], _) => Ok(Constant { bits: vec![0] }),
                ([0xff], _) => Ok(Constant { bits: vec![1] }),
                (all, n) if n.div_ceil(8) == all.len() as u64 => {
                    let Ok(n) = usize::try_from(n) else { return wrong() };
                    let bits = (0..n).map(|i| u64::from(all[i / 8] >> (i % 8) & 1)).collect();
                    Ok(Constant { bits })
                }
                _ => wrong(),
            };
        }
        let size = elem.bytes() as usize;
        let n = bytes.len() / size;
        if !bytes.len().is_multiple_of(size) || n == 0 || n != 1 && tile.elements() != n as u64 {
            return wrong();
        }
        let bits = |element: &[u8]| element.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)) & elem.mask();
        Ok(Constant { bits: bytes.chunks(size).map(bits).collect() })
    }

    fn view(&mut self, code: u64) -> Taken<(Op, Vec<Type>)> {
        if code == op::TENSOR_VIEW {
            let types = self.counted_types()?;
            let base = self.value()?;
            let shape = self.counted()?;
            return Ok((Op::TensorView { base, shape, strides: self.counted()? }, types));
        }
        let start = self.c;
        let types = self.types(1)?;
        if !matches!(&types[..], [Type::View(v)] if v.steps.is_some() == (code == op::STRIDED_VIEW)) {
            return start.error("the operation makes another kind of view");
        }
        Ok((Op::MakeView { tensor: self.value()? }, types))
    }

    fn token(&mut self, code: u64) -> Taken<(Op, Vec<Type>)> {
        if code == op::JOIN_TOKENS {
            let types = self.counted_types()?;
            return Ok((Op::JoinTokens(self.counted()?), types));
        }
        let types = self.types(1)?;
        let op = match code {
            op::MAKE_TOKEN => Op::MakeToken,
            op::ALIAS_FENCE => Op::AliasFence { token: self.value()? },
            _ => {
                let start = self.c;
                let token = match self.counted()?.as_slice() {
                    [] => None,
                    [one] => Some(*one),
                    _ => return start.error("at most one token is waited for"),
                };
                if code == op::GDC_WAIT { Op::GdcWait { token } } else { Op::GdcLaunch { token } }
            }
        };
        Ok((op, types))
    }

    fn structured(&mut self, code: u64) -> Taken<(Op, Vec<Type>)> {
        let types = self.counted_types()?;
        let op = match code {
            op::IF => {
                let condition = self.value()?;
                self.regions(2)?;
                let start = self.c;
                let Some(then) = self.block()? else { return start.error("an `if` does something") };
                Op::If { condition, then, otherwise: self.block()? }
            }
            op::FOR => {
                let unsigned = if self.version >= Bytecode::V13_2 { self.flags::<1>()?[0] } else { false };
                let start = self.c;
                let operands = self.counted()?;
                let [low, high, step, inits @ ..] = operands.as_slice() else {
                    return start.error("a `for` has two bounds and a step");
                };
                let (bounds, inits) = ([*low, *high, *step], inits.to_vec());
                self.regions(1)?;
                let Some(body) = self.block()? else { return start.error("a `for` has a body") };
                Op::For { unsigned, bounds, inits, body }
            }
            _ => {
                let inits = self.counted()?;
                self.regions(1)?;
                let start = self.c;
                let Some(body) = self.block()? else { return start.error("a `loop` has a body") };
                Op::Loop { inits, body }
            }
        };
        Ok((op, types))
    }

    fn regions(&mut self, want: u64) -> Taken<()> {
        let start = self.c;
        match self.c.varint()? {
            n if n == want => Ok(()),
            n => start.error(format!("{want} regions are expected, not {n}")),
        }
    }

    /// A region of one block, or of none.
    fn block(&mut self) -> Taken<Option<Block>> {
        let start = self.c;
        match self.c.varint()? {
            0 => return Ok(None),
            1 => {}
            n => return start.error(format!("a region of {n} blocks")),
        }
        self.depth += 1;
        if self.depth > NESTING {
            return start.error(format!("blocks may be nested at most {NESTING} deep"));
        }
        let before = self.scope.len();
        let types = self.counted_types()?;
        let params = types.into_iter().map(|ty| self.fresh(ty)).collect::<Taken<Vec<_>>>()?;
        let n = self.c.count()?;
        let ops = (0..n).map(|_| self.instr()).collect::<Taken<Vec<_>>>()?;
        self.scope.truncate(before);
        self.depth -= 1;
        Ok(Some(Block { params, ops }))
    }
}

//! Operations in the bytecode: opcode, types of results, flags, attributes, operands, blocks, each where it has any.

use super::Bytecode;
use super::bytes::{count, signed, varint};
use super::codes::{attribute, op};
use super::error::WriteError;
use super::hints::write_hints;
use super::numbering::{Item, Tables};
use moire_tile_ir::{
    Access, Assumption, Block, Constant, Convert, Elem, FloatOp, Function, Hints, Instr, IntegerOp, Op,
    Place, Scalar, Tile, Type, Value,
};
use moire_tile_ir::{access_op, block_op, end_op, plain_op, token_op};

/// Writes the body of one function.
pub(super) struct Ops<'a> {
    function: &'a Function,
    tables: &'a mut Tables,
    /// Numbers of values, which differ from ours: those of a block are used again after it.
    ids: Vec<Option<u64>>,
    next: u64,
    out: Vec<u8>,
}

type Written = Result<(), WriteError>;

impl<'a> Ops<'a> {
    pub(super) fn new(function: &'a Function, tables: &'a mut Tables) -> Self {
        Ops { function, tables, ids: vec![None; function.types.len()], next: 0, out: Vec::new() }
    }

    pub(super) fn body(mut self) -> Result<Vec<u8>, WriteError> {
        let function = self.function;
        self.define(&function.body.params)?;
        function.body.ops.iter().try_for_each(|instr| self.instr(instr))?;
        Ok(self.out)
    }

    fn malformed<T>(&self, why: &'static str) -> Result<T, WriteError> {
        Err(WriteError::Malformed(self.function.name.clone(), why))
    }

    fn needs(&self, what: &'static str, least: Bytecode) -> Written {
        let version = self.tables.version;
        if version >= least { Ok(()) } else { Err(WriteError::Version { what, least, version }) }
    }

    fn define(&mut self, values: &[Value]) -> Written {
        for value in values {
            let next = self.next;
            match self.ids.get_mut(value.index()) {
                Some(id) => *id = Some(next),
                None => return self.malformed("a result is no value of it"),
            }
            self.next += 1;
        }
        Ok(())
    }

    fn value(&mut self, value: Value) -> Written {
        match self.ids.get(value.index()).copied().flatten() {
            Some(id) => varint(&mut self.out, id),
            None => return self.malformed("a value is used where it is not defined"),
        }
        Ok(())
    }

    fn values(&mut self, values: &[Value]) -> Written {
        values.iter().try_for_each(|v| self.value(*v))
    }

    /// How many, and which.
    fn counted(&mut self, values: &[Value]) -> Written {
        count(&mut self.out, values.len());
        self.values(values)
    }

    fn given(&mut self, values: &[Option<Value>]) -> Written {
        values.iter().flatten().try_for_each(|v| self.value(*v))
    }

    fn code(&mut self, code: u64) {
        varint(&mut self.out, code);
    }

    /// Types of values, one after the other.
    fn types(&mut self, values: &[Value]) -> Written {
        for value in values {
            let Some(ty) = self.function.ty(*value) else {
                return self.malformed("a result is no value of it");
            };
            let id = self.tables.types.number(Item::of(ty));
            varint(&mut self.out, id);
        }
        Ok(())
    }

    /// How many, and their types.
    fn counted_types(&mut self, values: &[Value]) -> Written {
        count(&mut self.out, values.len());
        self.types(values)
    }

    /// Bits, lowest first.
    fn flags(&mut self, set: &[bool]) {
        let bits = set.iter().rev().fold(0, |n, bit| n << 1 | u64::from(*bit));
        varint(&mut self.out, bits);
    }

    fn access(&mut self, access: &Access) {
        self.out.push(access.order.code());
        self.out.extend(access.scope.map(|s| s.code()));
    }

    fn hints(&mut self, hints: &Hints) {
        if !hints.is_empty() {
            write_hints(self.tables, &mut self.out, hints);
        }
    }

    /// Promises about the indices: only from a version on.
    fn inbounds(&mut self, place: &Place, least: Bytecode) -> Written {
        if self.tables.version < least {
            let promised = place.inbounds.contains(&true);
            return if promised { self.needs("`inbounds`", least) } else { Ok(()) };
        }
        count(&mut self.out, place.inbounds.len());
        self.out.extend(place.inbounds.iter().map(|b| u8::from(*b)));
        Ok(())
    }

    fn instr(&mut self, instr: &Instr) -> Written {
        let results = &instr.results;
        match &instr.op {
            Op::If { .. } | Op::For { .. } | Op::Loop { .. } => return self.structured(instr),
            Op::Yield(values) => self.end(op::YIELD, values)?,
            Op::Continue(values) => self.end(op::CONTINUE, values)?,
            Op::Break(values) => self.end(op::BREAK, values)?,
            Op::Return(values) => self.end(op::RETURN, values)?,
            Op::LoadPtr { .. } | Op::StorePtr { .. } | Op::AtomicRmw { .. } | Op::AtomicCas { .. } => {
                self.through_pointers(&instr.op, results)?;
            }
            Op::LoadView { .. } | Op::StoreView { .. } | Op::AtomicRedView { .. } => {
                self.through_view(&instr.op, results)?;
            }
            Op::MultimemLoadReduce { .. } | Op::MultimemReduce { .. } | Op::MultimemStore { .. } => {
                self.needs("multimem", Bytecode::V13_5)?;
                self.multimem(&instr.op, results)?;
            }
            plain_op!() => self.plain(&instr.op, results)?,
            token_op!() => self.tokens(&instr.op, results)?,
        }
        self.define(results)
    }

    fn end(&mut self, code: u64, values: &[Value]) -> Written {
        self.code(code);
        self.counted_types(&[])?;
        self.counted(values)
    }

    fn plain(&mut self, what: &Op, results: &[Value]) -> Written {
        match what {
            Op::Constant(constant) => {
                let bytes = self.elements(constant, results)?;
                self.head(op::CONSTANT, results)?;
                let id = self.tables.constants.id(bytes);
                self.code(id);
                Ok(())
            }
            Op::Iota => self.head(op::IOTA, results),
            Op::Convert { to, value } => {
                let code = match to {
                    Convert::Reshape => op::RESHAPE,
                    Convert::Broadcast => op::BROADCAST,
                    Convert::Bitcast => op::BITCAST,
                    Convert::PtrToPtr => op::PTR_TO_PTR,
                };
                self.simple(code, results, &[], &[*value])
            }
            Op::Extend { sign, value } => self.simple(op::EXTI, results, &[sign.code()], &[*value]),
            Op::Truncate { overflow, value } => {
                self.simple(op::TRUNCI, results, &[overflow.code()], &[*value])
            }
            Op::Offset { pointer, offset } => self.simple(op::OFFSET, results, &[], &[*pointer, *offset]),
            Op::Integer { op, a, b } => {
                let (code, attribute) = integer(*op);
                self.simple(code, results, attribute.as_slice(), &[*a, *b])
            }
            Op::Float { op: float, rounding, flush, a, b } => {
                let code = match float {
                    FloatOp::Add => op::ADDF,
                    FloatOp::Sub => op::SUBF,
                    FloatOp::Mul => op::MULF,
                };
                self.simple(code, results, &[u8::from(*flush), rounding.code()], &[*a, *b])
            }
            Op::Compare { predicate, sign, a, b } => {
                self.simple(op::CMPI, results, &[predicate.code(), sign.code()], &[*a, *b])
            }
            Op::Select { condition, a, b } => self.simple(op::SELECT, results, &[], &[*condition, *a, *b]),
            Op::Assume { that, value } => {
                self.head(op::ASSUME, results)?;
                self.assumption(that);
                self.value(*value)
            }
            Op::TileBlockId => self.head(op::TILE_BLOCK_ID, results),
            Op::NumTileBlocks => self.head(op::NUM_TILE_BLOCKS, results),
            Op::TensorView { base, shape, strides } => {
                self.code(op::TENSOR_VIEW);
                self.counted_types(results)?;
                self.value(*base)?;
                self.counted(shape)?;
                self.counted(strides)
            }
            Op::MakeView { tensor } => {
                let ty = results.first().and_then(|r| self.function.ty(*r));
                let strided = matches!(ty, Some(Type::View(view)) if view.steps.is_some());
                let code = if strided { op::STRIDED_VIEW } else { op::PARTITION_VIEW };
                self.simple(code, results, &[], &[*tensor])
            }
            token_op!() | access_op!() | block_op!() | end_op!() => self.elsewhere(),
        }
    }

    fn elsewhere(&self) -> Written {
        self.malformed("an operation cannot stand here")
    }

    fn tokens(&mut self, what: &Op, results: &[Value]) -> Written {
        match what {
            Op::MakeToken => self.head(op::MAKE_TOKEN, results),
            Op::JoinTokens(tokens) => {
                self.code(op::JOIN_TOKENS);
                self.counted_types(results)?;
                self.counted(tokens)
            }
            Op::AliasFence { token } => {
                self.needs("`memory_fence_alias_tko`", Bytecode::V13_4)?;
                self.simple(op::ALIAS_FENCE, results, &[], &[*token])
            }
            Op::GdcWait { token } | Op::GdcLaunch { token } => {
                self.needs("grid dependencies", Bytecode::V13_4)?;
                let wait = matches!(what, Op::GdcWait { .. });
                self.head(if wait { op::GDC_WAIT } else { op::GDC_LAUNCH }, results)?;
                self.counted(&token.iter().copied().collect::<Vec<_>>())
            }
            plain_op!() | access_op!() | block_op!() | end_op!() => self.elsewhere(),
        }
    }

    fn head(&mut self, code: u64, results: &[Value]) -> Written {
        self.code(code);
        self.types(results)
    }

    fn simple(&mut self, code: u64, results: &[Value], attributes: &[u8], operands: &[Value]) -> Written {
        self.head(code, results)?;
        self.out.extend(attributes);
        self.values(operands)
    }

    fn assumption(&mut self, that: &Assumption) {
        match that {
            Assumption::DivBy { divisor, every } => {
                self.out.push(attribute::DIV_BY);
                varint(&mut self.out, *divisor);
                self.out.push(if every.is_some() { 3 } else { 0 });
                if let Some((every, along)) = every {
                    signed(&mut self.out, *every);
                    signed(&mut self.out, *along);
                }
            }
            Assumption::Bounded { low, high } => {
                self.out.push(attribute::BOUNDED);
                self.out.push(u8::from(low.is_some()) | u8::from(high.is_some()) << 1);
                for bound in [low, high].into_iter().flatten() {
                    signed(&mut self.out, *bound);
                }
            }
        }
    }

    /// Elements as in memory; one stands for all, bits of `i1` are packed.
    fn elements(&self, constant: &Constant, results: &[Value]) -> Result<Vec<u8>, WriteError> {
        let tile = results.first().and_then(|r| self.function.tile(*r));
        let Some(Tile { elem: Elem::Scalar(elem), .. }) = tile else {
            return self.malformed("a constant is not made of numbers");
        };
        if *elem == Scalar::I1 {
            return Ok(match constant.bits.as_slice() {
                [one] => vec![if *one == 0 { 0 } else { 0xff }],
                all => {
                    all.chunks(8).map(|c| c.iter().rev().fold(0, |n, b| n << 1 | u8::from(*b != 0))).collect()
                }
            });
        }
        let bytes = elem.bytes() as usize;
        Ok(constant.bits.iter().flat_map(|b| b.to_le_bytes().into_iter().take(bytes)).collect())
    }

    fn through_pointers(&mut self, what: &Op, results: &[Value]) -> Written {
        match what {
            Op::LoadPtr { pointers, access, hints, mask, padding, token } => {
                self.head(op::LOAD_PTR, results)?;
                let last = [mask.is_some(), padding.is_some(), token.is_some()];
                self.flags(&[access.scope.is_some(), !hints.is_empty(), last[0], last[1], last[2]]);
                self.access(access);
                self.hints(hints);
                self.value(*pointers)?;
                self.given(&[*mask, *padding, *token])
            }
            Op::StorePtr { pointers, value, access, hints, mask, token } => {
                self.head(op::STORE_PTR, results)?;
                self.flags(&[access.scope.is_some(), !hints.is_empty(), mask.is_some(), token.is_some()]);
                self.access(access);
                self.hints(hints);
                self.values(&[*pointers, *value])?;
                self.given(&[*mask, *token])
            }
            Op::AtomicRmw { pointers, mode, value, order, scope, mask, token } => {
                self.head(op::ATOMIC_RMW, results)?;
                self.flags(&[mask.is_some(), token.is_some()]);
                self.out.extend([order.code(), scope.code(), mode.code()]);
                self.values(&[*pointers, *value])?;
                self.given(&[*mask, *token])
            }
            Op::AtomicCas { pointers, compare, value, order, scope, mask, token } => {
                self.head(op::ATOMIC_CAS, results)?;
                self.flags(&[mask.is_some(), token.is_some()]);
                self.out.extend([order.code(), scope.code()]);
                self.values(&[*pointers, *compare, *value])?;
                self.given(&[*mask, *token])
            }
            Op::LoadView { .. } | Op::StoreView { .. } | Op::AtomicRedView { .. } => self.elsewhere(),
            Op::MultimemLoadReduce { .. } | Op::MultimemReduce { .. } | Op::MultimemStore { .. } => {
                self.elsewhere()
            }
            plain_op!() | token_op!() | block_op!() | end_op!() => self.elsewhere(),
        }
    }

    fn through_view(&mut self, what: &Op, results: &[Value]) -> Written {
        match what {
            Op::LoadView { place, access, hints, token } => {
                self.code(op::LOAD_VIEW);
                self.counted_types(results)?;
                self.flags(&[access.scope.is_some(), !hints.is_empty(), token.is_some()]);
                self.access(access);
                self.hints(hints);
                self.inbounds(place, Bytecode::V13_4)?;
                self.value(place.view)?;
                self.counted(&place.index)?;
                self.given(&[*token])
            }
            Op::StoreView { place, value, access, hints, token } => {
                self.code(op::STORE_VIEW);
                self.counted_types(results)?;
                self.flags(&[access.scope.is_some(), !hints.is_empty(), token.is_some()]);
                self.access(access);
                self.hints(hints);
                self.inbounds(place, Bytecode::V13_4)?;
                self.values(&[*value, place.view])?;
                self.counted(&place.index)?;
                self.given(&[*token])
            }
            Op::AtomicRedView { place, mode, value, order, scope, token } => {
                self.needs("`atomic_red_view_tko`", Bytecode::V13_3)?;
                self.code(op::ATOMIC_RED_VIEW);
                self.counted_types(results)?;
                self.flags(&[token.is_some()]);
                self.out.extend([order.code(), scope.code(), mode.code()]);
                self.inbounds(place, Bytecode::V13_5)?;
                self.value(place.view)?;
                self.counted(&place.index)?;
                self.value(*value)?;
                self.given(&[*token])
            }
            Op::LoadPtr { .. } | Op::StorePtr { .. } | Op::AtomicRmw { .. } | Op::AtomicCas { .. } => {
                self.elsewhere()
            }
            Op::MultimemLoadReduce { .. } | Op::MultimemReduce { .. } | Op::MultimemStore { .. } => {
                self.elsewhere()
            }
            plain_op!() | token_op!() | block_op!() | end_op!() => self.elsewhere(),
        }
    }

    fn multimem(&mut self, what: &Op, results: &[Value]) -> Written {
        let (place, value, token) =
            if let Op::MultimemReduce { place, value, token, reduction, order, scope } = what {
                self.code(op::MULTIMEM_REDUCE);
                self.counted_types(results)?;
                self.flags(&[token.is_some()]);
                self.out.extend([order.code(), scope.code(), reduction.code()]);
                (place, Some(*value), token)
            } else if let Op::MultimemLoadReduce { place, token, reduction, access } = what {
                self.code(op::MULTIMEM_LOAD_REDUCE);
                self.counted_types(results)?;
                self.flags(&[access.scope.is_some(), token.is_some()]);
                self.access(access);
                self.out.push(reduction.code());
                (place, None, token)
            } else if let Op::MultimemStore { place, value, token, access } = what {
                self.code(op::MULTIMEM_STORE);
                self.counted_types(results)?;
                self.flags(&[access.scope.is_some(), token.is_some()]);
                self.access(access);
                (place, Some(*value), token)
            } else {
                return self.elsewhere();
            };
        self.inbounds(place, Bytecode::V13_5)?;
        self.value(place.view)?;
        self.given(&[value])?;
        self.counted(&place.index)?;
        self.given(&[*token])
    }

    fn structured(&mut self, instr: &Instr) -> Written {
        match &instr.op {
            Op::If { condition, then, otherwise } => {
                self.code(op::IF);
                self.counted_types(&instr.results)?;
                self.value(*condition)?;
                count(&mut self.out, 2);
                self.block(Some(then))?;
                self.block(otherwise.as_ref())?;
            }
            Op::For { unsigned, bounds, inits, body } => {
                self.code(op::FOR);
                self.counted_types(&instr.results)?;
                if self.tables.version >= Bytecode::V13_2 {
                    self.flags(&[*unsigned]);
                } else if *unsigned {
                    self.needs("`for unsigned`", Bytecode::V13_2)?;
                }
                self.counted(&[bounds.as_slice(), inits].concat())?;
                count(&mut self.out, 1);
                self.block(Some(body))?;
            }
            Op::Loop { inits, body } => {
                self.code(op::LOOP);
                self.counted_types(&instr.results)?;
                self.counted(inits)?;
                count(&mut self.out, 1);
                self.block(Some(body))?;
            }
            plain_op!() | token_op!() | access_op!() | end_op!() => return self.elsewhere(),
        }
        self.define(&instr.results)
    }

    /// A region of one block, or of none.
    fn block(&mut self, block: Option<&Block>) -> Written {
        let Some(block) = block else {
            count(&mut self.out, 0);
            return Ok(());
        };
        count(&mut self.out, 1);
        let before = self.next;
        self.counted_types(&block.params)?;
        self.define(&block.params)?;
        count(&mut self.out, block.ops.len());
        block.ops.iter().try_for_each(|instr| self.instr(instr))?;
        self.next = before;
        Ok(())
    }
}

/// Opcode and attribute.
fn integer(what: IntegerOp) -> (u64, Option<u8>) {
    match what {
        IntegerOp::Add(o) => (op::ADDI, Some(o.code())),
        IntegerOp::Sub(o) => (op::SUBI, Some(o.code())),
        IntegerOp::Mul(o) => (op::MULI, Some(o.code())),
        IntegerOp::Shl(o) => (op::SHLI, Some(o.code())),
        IntegerOp::Max(s) => (op::MAXI, Some(s.code())),
        IntegerOp::Min(s) => (op::MINI, Some(s.code())),
        IntegerOp::Shr(s) => (op::SHRI, Some(s.code())),
        IntegerOp::Rem(s) => (op::REMI, Some(s.code())),
        IntegerOp::And => (op::ANDI, None),
        IntegerOp::Or => (op::ORI, None),
        IntegerOp::Xor => (op::XORI, None),
    }
}

//! Reads operations; the counterpart of the writer.

use super::Bytecode;
use super::body::Layout;
use super::bytes::{Cursor, Taken};
use super::codes::attribute;
use super::hints::read_hints;
use super::numbering::Numbering;
use super::types::value_type;
use crate::book::{Form, Gives, Text};
use crate::field::{FieldMut, Named};
use crate::words::Word;
use crate::{
    Assumption, Block, CONSTANT_ELEMENTS, Constant, Elem, Function, Instr, NESTING, OPS, Op, Scalar, Scope,
    Tile, Type, VALUES, Value,
};

/// Reads the body of one function.
pub(super) struct Body<'a> {
    function: Function,
    c: Cursor<'a>,
    version: Bytecode,
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

    fn value(&mut self) -> Taken<Value> {
        let start = self.c;
        let id = self.c.varint()?;
        let found = usize::try_from(id).ok().and_then(|i| self.scope.get(i)).copied();
        found.map_or_else(|| start.error(format!("value {id} is not defined here")), Ok)
    }

    fn ty(&mut self) -> Taken<Type> {
        value_type(&mut self.c, &self.tables.types)
    }

    fn types(&mut self, n: usize) -> Taken<Vec<Type>> {
        (0..n).map(|_| self.ty()).collect()
    }

    fn counted_types(&mut self) -> Taken<Vec<Type>> {
        let n = self.c.count()?;
        self.types(n)
    }

    fn operation(&mut self) -> Taken<(Op, Vec<Type>)> {
        let start = self.c;
        let code = self.c.varint()?;
        let Some(form) = Form::of_code(code) else {
            return start.error(format!("operation {code} is not known here"));
        };
        let mut op = (form.blank)();
        let layout = Layout::of(&op.fields());
        let types = self.results(form, &layout)?;
        let bits = self.bits(&layout, &op)?;
        let mut fields = op.fields_mut();
        let present = |i: usize| bits[i].unwrap_or(true);
        for (i, named) in fields.iter_mut().enumerate() {
            if named.since <= self.version {
                self.attribute(&mut named.field, present(i), &types)?;
            }
        }
        self.operands(&layout, &mut fields, present)?;
        if layout.blocks > 0 {
            self.regions(layout.blocks)?;
            fields.iter_mut().try_for_each(|named| self.region(&mut named.field))?;
        }
        self.promise_nothing(&mut fields);
        Ok((op, types))
    }

    fn results(&mut self, form: &Form, layout: &Layout) -> Taken<Vec<Type>> {
        let start = self.c;
        let count = if layout.counted_results { self.c.count()? } else { form.gives.len() };
        if matches!(form.text, Text::Pieces(_)) && count != form.gives.len() {
            return start.error(format!("`{}` has {} results, not {count}", form.word, form.gives.len()));
        }
        let types = self.types(count)?;
        let views = [Gives::Partition, Gives::Strided];
        if form.gives.iter().zip(&types).any(|(gives, ty)| views.contains(gives) && !gives.fits(ty)) {
            return start.error(format!("`{}` makes another kind of view", form.word));
        }
        Ok(types)
    }

    /// For each field that may be missing whether it is there.
    fn bits(&mut self, layout: &Layout, op: &Op) -> Taken<Vec<Option<bool>>> {
        let fields = op.fields();
        let mut out: Vec<Option<bool>> = fields.iter().map(|named| layout.bit(named, self.version)).collect();
        let several = out.iter().flatten().count();
        if several == 0 {
            return Ok(out);
        }
        let start = self.c;
        let mut bits = self.c.varint()?;
        if bits >> several != 0 {
            return start.error(format!("flags {bits} of an operation are not known here"));
        }
        for bit in out.iter_mut().flatten() {
            *bit = bits & 1 == 1;
            bits >>= 1;
        }
        Ok(out)
    }

    fn attribute(&mut self, field: &mut FieldMut<'_>, present: bool, types: &[Type]) -> Taken<()> {
        match field {
            FieldMut::Word(word) => self.word(*word)?,
            FieldMut::Scope(scope) if present => self.word(scope.insert(Scope::default()))?,
            FieldMut::Flag(flag) => **flag = present,
            FieldMut::Hints(hints) if present => **hints = read_hints(&mut self.c, self.tables)?,
            FieldMut::Inbounds(all) => {
                let n = self.c.count()?;
                **all = self.c.take(n)?.iter().map(|b| *b != 0).collect();
            }
            FieldMut::Constant(constant) => **constant = self.constant(&types[0])?,
            FieldMut::Assumption(that) => **that = self.assumption()?,
            FieldMut::Scope(_) | FieldMut::Hints(_) => {}
            FieldMut::Operand(_) | FieldMut::Optional(_) | FieldMut::Operands(_) => {}
            FieldMut::Block(_) | FieldMut::OptionalBlock(_) => {}
        }
        Ok(())
    }

    fn word(&mut self, word: &mut dyn Word) -> Taken<()> {
        let start = self.c;
        let number = self.c.byte()?;
        if word.become_number(number) {
            return Ok(());
        }
        start.error(format!("{number} is no {}", word.vocabulary().what))
    }

    /// The operands. Where all are counted together, the one group of any length has what the others leave.
    fn operands(
        &mut self,
        layout: &Layout,
        fields: &mut [Named<FieldMut<'_>>],
        present: impl Fn(usize) -> bool,
    ) -> Taken<()> {
        let start = self.c;
        let all = if layout.counted_operands { Some(self.c.count()?) } else { None };
        let fixed = fields.iter().filter(|named| matches!(named.field, FieldMut::Operand(_))).count();
        let left = match all.map(|all| all.checked_sub(fixed)) {
            Some(None) => return start.error(format!("at least {fixed} operands are needed")),
            Some(left) => left,
            None => None,
        };
        for (i, named) in fields.iter_mut().enumerate() {
            match &mut named.field {
                FieldMut::Operand(value) => **value = self.value()?,
                FieldMut::Optional(value) => {
                    let there = left.unwrap_or(usize::from(present(i)));
                    if there > 1 {
                        return start.error(format!("at most one `{}` is taken", named.name));
                    }
                    **value = if there == 1 { Some(self.value()?) } else { None };
                }
                FieldMut::Operands(values) => {
                    let n = left.map_or_else(|| self.c.count(), Ok)?;
                    **values = (0..n).map(|_| self.value()).collect::<Taken<_>>()?;
                }
                FieldMut::Word(_) | FieldMut::Scope(_) | FieldMut::Flag(_) | FieldMut::Hints(_) => {}
                FieldMut::Inbounds(_) | FieldMut::Constant(_) | FieldMut::Assumption(_) => {}
                FieldMut::Block(_) | FieldMut::OptionalBlock(_) => {}
            }
        }
        Ok(())
    }

    fn region(&mut self, field: &mut FieldMut<'_>) -> Taken<()> {
        let start = self.c;
        match field {
            FieldMut::Block(block) => match self.block()? {
                Some(read) => **block = read,
                None => return start.error("a block is missing"),
            },
            FieldMut::OptionalBlock(block) => **block = self.block()?,
            FieldMut::Word(_) | FieldMut::Scope(_) | FieldMut::Flag(_) | FieldMut::Hints(_) => {}
            FieldMut::Inbounds(_) | FieldMut::Constant(_) | FieldMut::Assumption(_) => {}
            FieldMut::Operand(_) | FieldMut::Optional(_) | FieldMut::Operands(_) => {}
        }
        Ok(())
    }

    /// In versions without promises about indices, there is none.
    fn promise_nothing(&self, fields: &mut [Named<FieldMut<'_>>]) {
        let version = self.version;
        let count = |named: &Named<FieldMut<'_>>| match &named.field {
            FieldMut::Operands(values) if named.name == "place.index" => Some(values.len()),
            _ => None,
        };
        let Some(count) = fields.iter().find_map(count) else { return };
        for named in fields.iter_mut().filter(|named| named.since > version) {
            if let FieldMut::Inbounds(all) = &mut named.field {
                **all = vec![false; count];
            }
        }
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

    fn regions(&mut self, want: usize) -> Taken<()> {
        let start = self.c;
        match self.c.varint()? {
            n if n == want as u64 => Ok(()),
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

//! Writes operations.

use super::Bytecode;
use super::body::Layout;
use super::bytes::{count, signed, varint};
use super::codes::attribute;
use super::error::WriteError;
use super::hints::write_hints;
use super::numbering::{Item, Tables};
use crate::field::{Field, Named};
use crate::{Assumption, Block, Constant, Elem, Function, Instr, Scalar, Tile, Value};

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

    fn instr(&mut self, instr: &Instr) -> Written {
        let (form, fields) = (instr.op.form(), instr.op.fields());
        let layout = Layout::of(&fields);
        self.needs(form.word, form.since)?;
        varint(&mut self.out, form.code);
        if layout.counted_results {
            count(&mut self.out, instr.results.len());
        }
        self.types(&instr.results)?;
        let version = self.tables.version;
        let bits: Vec<bool> = fields.iter().filter_map(|named| layout.bit(named, version)).collect();
        if !bits.is_empty() {
            varint(&mut self.out, bits.iter().rev().fold(0, |n, bit| n << 1 | u64::from(*bit)));
        }
        fields.iter().try_for_each(|named| self.attribute(named, &instr.results))?;
        self.operands(&layout, &fields)?;
        if layout.blocks > 0 {
            count(&mut self.out, layout.blocks);
            fields.iter().try_for_each(|named| self.region(named.field))?;
        }
        self.define(&instr.results)
    }

    /// An attribute. One that the version lacks must say nothing.
    fn attribute(&mut self, named: &Named<Field<'_>>, results: &[Value]) -> Written {
        if named.since > self.tables.version {
            let said = matches!(named.field, Field::Flag(true))
                || matches!(named.field, Field::Word(word) if word.number() != 0)
                || matches!(named.field, Field::Inbounds(all) if all.contains(&true));
            return if said { self.needs(named.name, named.since) } else { Ok(()) };
        }
        match named.field {
            Field::Word(word) => self.out.push(word.number()),
            Field::Scope(scope) => self.out.extend(scope.map(|s| s.code())),
            Field::Hints(hints) if hints.is_empty() => {}
            Field::Hints(hints) => write_hints(self.tables, &mut self.out, hints),
            Field::Inbounds(all) => {
                count(&mut self.out, all.len());
                self.out.extend(all.iter().map(|b| u8::from(*b)));
            }
            Field::Constant(constant) => {
                let bytes = self.elements(constant, results)?;
                let id = self.tables.constants.id(bytes);
                varint(&mut self.out, id);
            }
            Field::Assumption(that) => self.assumption(that),
            Field::Flag(_) | Field::Operand(_) | Field::Optional(_) | Field::Operands(_) => {}
            Field::Block(_) | Field::OptionalBlock(_) => {}
        }
        Ok(())
    }

    fn operands(&mut self, layout: &Layout, fields: &[Named<Field<'_>>]) -> Written {
        if layout.counted_operands {
            count(&mut self.out, fields.iter().map(|named| named.field.values().len()).sum());
        }
        for named in fields {
            let values = named.field.values();
            if matches!(named.field, Field::Operands(_)) && !layout.counted_operands {
                count(&mut self.out, values.len());
            }
            values.iter().try_for_each(|v| self.value(*v))?;
        }
        Ok(())
    }

    fn region(&mut self, field: Field<'_>) -> Written {
        match field {
            Field::Block(block) => self.block(Some(block)),
            Field::OptionalBlock(block) => self.block(block.as_ref()),
            Field::Word(_) | Field::Scope(_) | Field::Flag(_) | Field::Hints(_) | Field::Inbounds(_) => {
                Ok(())
            }
            Field::Constant(_) | Field::Assumption(_) => Ok(()),
            Field::Operand(_) | Field::Optional(_) | Field::Operands(_) => Ok(()),
        }
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

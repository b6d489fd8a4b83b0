//! Operations with blocks, and those that end one.

use super::{Read, Reader, because};
use crate::{Op, Reason, Scalar, Type, Value};
use moire_program::text::scan::Parsed;

/// Words of this file.
pub(super) const WORDS: &[&str] = &[
    "if",
    "for",
    "loop",
    "yield",
    "continue",
    "break",
    "return",
    "get_tile_block_id",
    "get_num_tile_blocks",
];

impl<'a> Reader<'a> {
    /// The operation `word`, whose word was read; nothing where it is not of this file.
    pub(super) fn control(&mut self, word: &str) -> Parsed<Option<Read>> {
        Ok(Some(match word {
            "if" => self.branch()?,
            "for" => self.counted()?,
            "loop" => self.endless()?,
            "yield" => (Op::Yield(self.ends()?), Vec::new()),
            "continue" => (Op::Continue(self.ends()?), Vec::new()),
            "break" => (Op::Break(self.ends()?), Vec::new()),
            "return" => (Op::Return(self.ends()?), Vec::new()),
            "get_tile_block_id" => {
                let ty = self.coordinate()?;
                (Op::TileBlockId, vec![ty.clone(), ty.clone(), ty])
            }
            "get_num_tile_blocks" => {
                let ty = self.coordinate()?;
                (Op::NumTileBlocks, vec![ty.clone(), ty.clone(), ty])
            }
            _ => return Ok(None),
        }))
    }

    fn coordinate(&mut self) -> Parsed<Type> {
        self.scan.expect(":")?;
        let at = self.scan.at;
        let ty = self.ty()?;
        if ty == Type::scalar(Scalar::I32) {
            return Ok(ty);
        }
        let message = format!("a coordinate has type `tile<i32>`, not `{ty}`");
        Err(because(Reason::ValueType, self.scan.error_at(at, message, None)))
    }

    /// `%a, %b : T, U`, or nothing.
    fn ends(&mut self) -> Parsed<Vec<Value>> {
        if !self.scan.peek("%") {
            return Ok(Vec::new());
        }
        // A block that ends with nothing may be followed by no value: `}` comes next.
        let values = self.values()?;
        self.scan.expect(":")?;
        let at = self.scan.at;
        let types = self.types()?;
        if types.len() != values.len() {
            let message = format!("{} values have {} types", values.len(), types.len());
            return Err(because(Reason::ValueType, self.scan.error_at(at, message, None)));
        }
        self.agree(at, &values, &types)?;
        Ok(values)
    }

    /// `%c -> (T, U) { .. } else { .. }`
    fn branch(&mut self) -> Parsed<Read> {
        let condition = self.value()?;
        let types = if self.scan.take("->") { self.type_list()? } else { Vec::new() };
        let then = self.inner(Vec::new(), Op::Yield)?;
        let otherwise =
            if self.scan.keyword("else") { Some(self.inner(Vec::new(), Op::Yield)?) } else { None };
        Ok((Op::If { condition, then, otherwise }, types))
    }

    /// `iter_values(%a = %x, ..)`
    fn carried(&mut self) -> Parsed<(Vec<&'a str>, Vec<Value>)> {
        let (mut names, mut inits) = (Vec::new(), Vec::new());
        if self.scan.keyword("iter_values") {
            self.scan.expect("(")?;
            loop {
                names.push(self.value_name()?);
                self.scan.expect("=")?;
                inits.push(self.value()?);
                if !self.scan.take(",") {
                    break;
                }
            }
            self.scan.expect(")")?;
        }
        Ok((names, inits))
    }

    /// Types of what is carried, stated `what`.
    fn carry(&mut self, at: usize, inits: &[Value], stated: &[Type]) -> Parsed<()> {
        if stated.len() != inits.len() {
            let message = format!("{} values are carried, {} types stated", inits.len(), stated.len());
            return Err(because(Reason::Results, self.scan.error_at(at, message, None)));
        }
        self.agree(at, inits, stated)
    }

    /// `%i in (%lo to %hi, step %st) : T iter_values(%a = %x) -> (U) { .. }`
    fn counted(&mut self) -> Parsed<Read> {
        let unsigned = self.scan.keyword("unsigned");
        let counter = self.value_name()?;
        self.keyword("in")?;
        self.scan.expect("(")?;
        let low = self.value()?;
        self.keyword("to")?;
        let high = self.value()?;
        self.scan.expect(",")?;
        self.keyword("step")?;
        let step = self.value()?;
        self.scan.expect(")")?;
        self.scan.expect(":")?;
        let at = self.scan.at;
        let ty = self.ty()?;
        let bounds = [low, high, step];
        self.agree(at, &bounds, &[ty.clone(), ty.clone(), ty.clone()])?;
        let (names, inits) = self.carried()?;
        let at = self.scan.at;
        let types = if self.scan.take("->") { self.type_list()? } else { Vec::new() };
        self.carry(at, &inits, &types)?;
        let params =
            std::iter::once((counter, ty)).chain(names.into_iter().zip(types.iter().cloned())).collect();
        let body = self.inner(params, Op::Continue)?;
        Ok((Op::For { unsigned, bounds, inits, body }, types))
    }

    /// `iter_values(%a = %x) : T -> U { .. }`
    fn endless(&mut self) -> Parsed<Read> {
        let (names, inits) = self.carried()?;
        let at = self.scan.at;
        let mut types = if self.scan.take(":") { self.types()? } else { Vec::new() };
        let mut carried = Vec::new();
        if !inits.is_empty() {
            carried = types;
            types = if self.scan.take("->") { self.types()? } else { Vec::new() };
        }
        self.carry(at, &inits, &carried)?;
        let body = self.inner(names.into_iter().zip(carried).collect(), Op::Continue)?;
        Ok((Op::Loop { inits, body }, types))
    }
}

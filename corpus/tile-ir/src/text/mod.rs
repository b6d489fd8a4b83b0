//! Tile IR text: the form that NVIDIA's disassembler prints and its tests are written in.
//!
//! Contract: whole modules, `cuda_tile.module @m { .. }`, or functions without that frame; the generic form of view
//! accesses too. Every value gets the type its definition says, and where an operation states types they must be
//! those. What cannot be read is refused with a place, a [`Reason`] and where possible a hint. [`print()`] gives the same
//! form with names of its own; reading that gives the same module. Source: syntax chapter of the Tile IR specification
//! (which calls the text unstable) and the published disassembler's output.

mod arith;
mod control;
mod generic;
mod literal;
mod memory;
mod parallel;
mod print;
mod types;

pub use print::{print, print_function};

use crate::{Block, FUNCTIONS, Function, Instr, Module, NESTING, OPS, Op, Reason, Type, VALUES, Value};
use moire_program::limits::{MANGLED_BYTES, TEXT_BYTES};
use moire_program::text::ParseError;
use moire_program::text::scan::{Comments, Parsed, Scan, closest};
use std::collections::HashMap;

/// Reads a module.
///
/// # Errors
/// The first thing that cannot be read; its `rule` is the name of a [`Reason`].
pub fn parse(source: &str) -> Result<Module, ParseError> {
    if source.len() > TEXT_BYTES {
        let message = format!("a module may have at most {TEXT_BYTES} bytes");
        return Err(because(Reason::Limit, ParseError::at(source, 0, message, None)));
    }
    let mut scan = Scan::new(source, Comments::Slashes);
    scan.longest = MANGLED_BYTES;
    Reader::new(scan).module().map_err(|e| match e.0.rule {
        Some(_) => e,
        None => because(Reason::Syntax, e),
    })
}

fn because(reason: Reason, mut error: ParseError) -> ParseError {
    error.0.rule = Some(reason.name());
    error
}

/// State of the function that is being read.
struct Reader<'a> {
    scan: Scan<'a>,
    function: Function,
    /// Values by name; a group of results has one name.
    names: HashMap<&'a str, Vec<Value>>,
    /// Names in the order of their definition, so that a block can take its own away.
    defined: Vec<&'a str>,
    depth: usize,
    ops: usize,
}

/// An operation with the types of its results.
type Read = (Op, Vec<Type>);

impl<'a> Reader<'a> {
    fn new(scan: Scan<'a>) -> Self {
        let function = Function::entry("", Vec::new());
        Reader { scan, function, names: HashMap::new(), defined: Vec::new(), depth: 0, ops: 0 }
    }

    fn module(mut self) -> Parsed<Module> {
        let mut module = Module::default();
        let framed = self.word("cuda_tile.module");
        if framed {
            module.name = self.symbol()?.to_owned();
            self.scan.expect("{")?;
        }
        while !(self.scan.done() || framed && self.scan.peek("}")) {
            if module.functions.len() == FUNCTIONS {
                return Err(
                    self.fault(Reason::Limit, format!("a module may have at most {FUNCTIONS} functions"))
                );
            }
            let function = self.function()?;
            if module.functions.iter().any(|f| f.name == function.name) {
                return Err(self.fault(Reason::Name, format!("`@{}` is defined twice", function.name)));
            }
            module.functions.push(function);
        }
        if framed {
            self.scan.expect("}")?;
        }
        if !self.scan.done() {
            return Err(self.scan.expected("the end of the text"));
        }
        Ok(module)
    }

    fn function(&mut self) -> Parsed<Function> {
        let entry = self.word("entry");
        if !entry && !self.word("testing$func") {
            return Err(self.scan.expected("`entry @name(..)`"));
        }
        let name = self.symbol()?;
        self.function = Function::entry(name, Vec::new());
        self.function.entry = entry;
        (self.names, self.ops) = (HashMap::new(), 0);
        self.defined.clear();
        self.scan.expect("(")?;
        let mut params = Vec::new();
        while !self.scan.take(")") {
            if !params.is_empty() {
                self.scan.expect(",")?;
            }
            let name = self.value_name()?;
            self.scan.expect(":")?;
            let ty = self.ty()?;
            let value = self.fresh(ty)?;
            self.define(name, vec![value])?;
            params.push(value);
        }
        if self.scan.take("->") {
            self.function.results = self.type_list()?;
        }
        if self.scan.keyword("optimization_hints") {
            self.scan.expect("=")?;
            self.function.hints = self.hints()?;
        }
        self.function.body = self.block(params, Op::Return)?;
        Ok(std::mem::replace(&mut self.function, Function::entry("", Vec::new())))
    }

    /// `{ .. }`; a block that does not end with a terminator ends with `last` of nothing.
    fn block(&mut self, params: Vec<Value>, last: fn(Vec<Value>) -> Op) -> Parsed<Block> {
        self.scan.expect("{")?;
        self.depth += 1;
        if self.depth > NESTING {
            return Err(self.fault(Reason::Limit, format!("blocks may be nested at most {NESTING} deep")));
        }
        let mut block = Block { params, ops: Vec::new() };
        while !self.scan.take("}") {
            if block.ops.last().is_some_and(|i| i.op.ends_block()) {
                return Err(self.scan.expected("`}`: the operation before ends the block"));
            }
            self.ops += 1;
            if self.ops > OPS {
                return Err(
                    self.fault(Reason::Limit, format!("a function may have at most {OPS} operations"))
                );
            }
            let instr = self.instr()?;
            block.ops.push(instr);
        }
        if !block.ops.last().is_some_and(|i| i.op.ends_block()) {
            block.ops.push(Instr { op: last(Vec::new()), results: Vec::new(), line: 0, column: 0 });
        }
        self.depth -= 1;
        Ok(block)
    }

    /// A block whose names nobody outside sees; `params` are its named parameters.
    fn inner(&mut self, params: Vec<(&'a str, Type)>, last: fn(Vec<Value>) -> Op) -> Parsed<Block> {
        let before = self.defined.len();
        let mut values = Vec::new();
        for (name, ty) in params {
            let value = self.fresh(ty)?;
            self.define(name, vec![value])?;
            values.push(value);
        }
        let block = self.block(values, last)?;
        for name in self.defined.split_off(before) {
            self.names.remove(name);
        }
        Ok(block)
    }

    fn instr(&mut self) -> Parsed<Instr> {
        let mut groups: Vec<(&'a str, usize)> = Vec::new();
        if self.scan.peek("%") {
            loop {
                let name = self.value_name()?;
                let many = if self.scan.source[self.scan.at..].starts_with(':') {
                    self.scan.expect(":")?;
                    self.digits()?
                } else {
                    1
                };
                groups.push((name, usize::try_from(many).unwrap_or(usize::MAX)));
                if !self.scan.take(",") {
                    break;
                }
            }
            self.scan.expect("=")?;
        }
        let spot = self.scan.spot();
        let at = self.scan.at;
        let (op, types) = self.operation()?;
        let mut results = Vec::new();
        for ty in types {
            results.push(self.fresh(ty)?);
        }
        let named = groups.iter().fold(0usize, |n, (_, many)| n.saturating_add(*many));
        if named != results.len() && named != 0 {
            let message = format!("{named} results are named, the operation has {}", results.len());
            return Err(because(Reason::Results, self.scan.error_at(at, message, None)));
        }
        let mut rest = results.iter().copied();
        for (name, many) in groups {
            self.define(name, rest.by_ref().take(many).collect())?;
        }
        Ok(Instr { op, results, line: spot.line, column: spot.column })
    }

    fn operation(&mut self) -> Parsed<Read> {
        if self.scan.peek("\"") {
            return self.generic();
        }
        let at = self.scan.at;
        let full = self.scan.word("an operation", ".")?;
        let word = full.strip_prefix("cuda_tile.").unwrap_or(full);
        if let Some(read) = self.arithmetic(word)? {
            return Ok(read);
        }
        if let Some(read) = self.memory(word)? {
            return Ok(read);
        }
        if let Some(read) = self.parallel(word)? {
            return Ok(read);
        }
        if let Some(read) = self.control(word)? {
            return Ok(read);
        }
        let known: Vec<&str> = [arith::WORDS, memory::WORDS, parallel::WORDS, control::WORDS]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let hint = closest(word, &known).map(|k| format!("did you mean `{k}`?"));
        Err(because(
            Reason::Operation,
            self.scan.error_at(at, format!("`{word}` is no operation known here"), hint),
        ))
    }

    /// Takes `what`, whose characters may include dots, where it stands as a whole word.
    fn word(&mut self, what: &str) -> bool {
        let (before, found) = (self.scan.at, self.scan.word("", ".").unwrap_or_default());
        let hit = found.strip_prefix("cuda_tile.").unwrap_or(found) == what || found == what;
        if !hit {
            self.scan.at = before;
        }
        hit
    }

    /// `@name`
    fn symbol(&mut self) -> Parsed<&'a str> {
        self.scan.expect("@")?;
        self.scan.word("a name", ".-")
    }

    /// `%name`; the name may hold a sign, as that of a negative constant does.
    fn value_name(&mut self) -> Parsed<&'a str> {
        if !self.scan.peek("%") {
            return Err(self.wants_value());
        }
        let rest = self.scan.rest();
        let inside = |(i, c): (usize, char)| match c {
            '-' => !rest[i + 2..].starts_with('>'),
            c => c.is_ascii_alphanumeric() || "_$.".contains(c),
        };
        let length = 1 + rest[1..].char_indices().find(|c| !inside(*c)).map_or(rest.len() - 1, |(i, _)| i);
        if length < 2 {
            return Err(self.fault(Reason::Syntax, "a value is `%` and a name".into()));
        }
        if length > self.scan.longest {
            return Err(
                self.fault(Reason::Limit, format!("a name may have at most {} bytes", self.scan.longest))
            );
        }
        self.scan.at += length;
        Ok(&rest[..length])
    }

    fn wants_value(&mut self) -> ParseError {
        let error = self.scan.expected("a value such as `%0`");
        because(Reason::Value, error)
    }

    /// A value that is defined.
    fn value(&mut self) -> Parsed<Value> {
        let name = self.value_name()?;
        let at = self.scan.at;
        let which = if self.scan.source[at..].starts_with('#') {
            self.scan.expect("#")?;
            self.digits()?
        } else {
            0
        };
        let found = self.names.get(name).and_then(|g| g.get(usize::try_from(which).ok()?)).copied();
        found.ok_or_else(|| {
            let message = format!("`{name}` is not defined here");
            because(Reason::Name, self.scan.error_at(at - name.len(), message, None))
        })
    }

    /// Values with commas between; at least one.
    fn values(&mut self) -> Parsed<Vec<Value>> {
        let mut out = vec![self.value()?];
        while self.scan.take(",") {
            out.push(self.value()?);
        }
        Ok(out)
    }

    fn fresh(&mut self, ty: Type) -> Parsed<Value> {
        if self.function.types.len() == VALUES {
            return Err(self.fault(Reason::Limit, format!("a function may have at most {VALUES} values")));
        }
        Ok(self.function.fresh(ty))
    }

    fn define(&mut self, name: &'a str, values: Vec<Value>) -> Parsed<()> {
        if self.names.insert(name, values).is_some() {
            return Err(self.fault(Reason::Name, format!("`{name}` is defined twice")));
        }
        self.defined.push(name);
        Ok(())
    }

    /// The type of a value of this function.
    fn of(&self, value: Value) -> &Type {
        &self.function.types[value.index()]
    }

    /// Each value has the type stated for it.
    fn agree(&self, at: usize, values: &[Value], stated: &[Type]) -> Parsed<()> {
        for (value, stated) in values.iter().zip(stated) {
            let ty = self.of(*value);
            if ty != stated {
                let message = format!("a value of type `{ty}` is said to have type `{stated}`");
                return Err(because(Reason::ValueType, self.scan.error_at(at, message, None)));
            }
        }
        Ok(())
    }

    /// An error here.
    fn fault(&mut self, reason: Reason, message: String) -> ParseError {
        because(reason, self.scan.error(message, None))
    }

    /// One of a vocabulary, or an error that names what it is of.
    fn one_of<T>(&mut self, what: &str, words: &[&'static str], read: fn(&str) -> Option<T>) -> Parsed<T> {
        let at = self.scan.at;
        let word = self.scan.word(what, "")?;
        read(word).ok_or_else(|| {
            let hint = closest(word, words).map(|k| format!("did you mean `{k}`?"));
            let message = format!("`{word}` is no {what}, which is one of {}", words.join(", "));
            because(Reason::Word, self.scan.error_at(at, message, hint))
        })
    }

    /// A natural number.
    fn digits(&mut self) -> Parsed<u64> {
        let rest = self.scan.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..length].parse().map_err(|_| self.scan.expected("a number that fits 64 bits"))?;
        self.scan.at += length;
        Ok(number)
    }
}

//! Prints Tile IR in the form of NVIDIA's disassembler, with numbered values.

use super::literal::element;
use crate::book::{Piece, States, Text};
use crate::field::{Field, Named};
use crate::words::{Stated, Vocabulary, Word};
use crate::{
    Assumption, Block, Constant, Elem, Function, Hint, Hints, Instr, Module, Op, Scalar, Type, Value,
};
use std::fmt::Write;

/// The text of a module, without a frame if it has no name. Reading it gives the module again, if the text form can
/// express each operation.
pub fn print(module: &Module) -> String {
    let framed = !module.name.is_empty();
    let mut out = String::new();
    if framed {
        let _ = writeln!(out, "cuda_tile.module @{} {{", module.name);
    }
    for function in &module.functions {
        Printer { function, out: &mut out, indent: usize::from(framed) }.function();
    }
    if framed {
        out.push_str("}\n");
    }
    out
}

/// The text of one function, without a frame.
pub fn print_function(function: &Function) -> String {
    let mut out = String::new();
    Printer { function, out: &mut out, indent: 0 }.function();
    out
}

struct Printer<'a> {
    function: &'a Function,
    out: &'a mut String,
    indent: usize,
}

/// Joins the parts with `, `.
fn commas<T>(list: &[T], each: impl Fn(&T) -> String) -> String {
    list.iter().map(each).collect::<Vec<_>>().join(", ")
}

fn hints_text(hints: &Hints) -> String {
    let each = |(arch, all): &(String, Vec<(String, Hint)>)| {
        let all = commas(all, |(name, hint)| match hint {
            Hint::Number(n) => format!("{name} = {n}"),
            Hint::Flag(flag) => format!("{name} = {flag}"),
        });
        format!("{arch} = {{{all}}}")
    };
    format!("<{}>", commas(hints, each))
}

/// A word as its operations state it, after a blank.
fn stated(word: &dyn Word) -> String {
    let Vocabulary { words, stated, .. } = word.vocabulary();
    let number = usize::from(word.number());
    match stated {
        Stated::Bare => format!(" {}", words[number]),
        Stated::Named(_) | Stated::Attribute(..) if number == 0 => String::new(),
        Stated::Named(name) => format!(" {name}<{}>", words[number]),
        Stated::Attribute(name, kind) => format!(" attributes {{{name} = #{kind}<{}>}}", words[number]),
    }
}

/// The values of the fields with this name.
fn values(fields: &[Named<Field<'_>>], name: &str) -> Vec<Value> {
    fields.iter().filter(|n| n.name == name).flat_map(|n| n.field.values()).copied().collect()
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 2 * self.indent);
    }

    fn function(&mut self) {
        let function = self.function;
        let params = commas(&function.body.params, |p| format!("{}: {}", self.name(*p), self.ty(*p)));
        let kind = if function.entry { "entry" } else { "testing$func" };
        let mut head = format!("{kind} @{}({params})", function.name);
        if !function.results.is_empty() {
            let _ = write!(head, " -> ({})", commas(&function.results, Type::to_string));
        }
        if !function.hints.is_empty() {
            let _ = write!(head, " optimization_hints={}", hints_text(&function.hints));
        }
        self.line(&format!("{head} {{"));
        self.body(&function.body, None);
        self.line("}");
    }

    /// Prints the operations of a block, except a terminator equal to `silent`.
    fn body(&mut self, block: &Block, silent: Option<&Op>) {
        self.indent += 1;
        block.ops.iter().filter(|i| Some(&i.op) != silent).for_each(|instr| self.instr(instr));
        self.indent -= 1;
    }

    fn instr(&mut self, instr: &Instr) {
        let mut head = String::new();
        if !instr.results.is_empty() {
            head = format!("{} = ", self.list(&instr.results));
        }
        let text = self.operation(&instr.op, &instr.results);
        if instr.op.blocks().is_empty() {
            return self.line(&format!("{head}{text}"));
        }
        let branch = matches!(instr.op, Op::If { .. });
        let silent = if branch { Op::Yield(Vec::new()) } else { Op::Continue(Vec::new()) };
        self.line(&format!("{head}{text} {{"));
        for (i, block) in instr.op.blocks().into_iter().enumerate() {
            if i > 0 {
                self.line("} else {");
            }
            self.body(block, Some(&silent));
        }
        self.line("}");
    }

    fn name(&self, value: Value) -> String {
        let (index, params) = (value.index(), self.function.body.params.len());
        if index < params { format!("%arg{index}") } else { format!("%{}", index - params) }
    }

    fn list(&self, values: &[Value]) -> String {
        commas(values, |v| self.name(*v))
    }

    fn ty(&self, value: Value) -> String {
        self.function.ty(value).map_or_else(|| "unknown".to_owned(), Type::to_string)
    }

    fn types(&self, values: &[Value]) -> String {
        commas(values, |v| self.ty(*v))
    }

    fn result(&self, results: &[Value], i: usize) -> String {
        results.get(i).map_or_else(|| "unknown".to_owned(), |r| self.ty(*r))
    }

    /// The text of an operation, up to its first block.
    fn operation(&self, op: &Op, results: &[Value]) -> String {
        let form = op.form();
        let rest = match form.text {
            Text::Pieces(pieces) => {
                let fields = op.fields();
                pieces.iter().map(|piece| self.piece(piece, &fields, results)).collect()
            }
            Text::Constant | Text::TensorView | Text::If | Text::For | Text::Loop => self.own(op, results),
        };
        format!("{}{rest}", form.word)
    }

    fn piece(&self, piece: &Piece, fields: &[Named<Field<'_>>], results: &[Value]) -> String {
        let values = |name: &str| values(fields, name);
        let given = |name: &str, before: &str| {
            values(name).first().map_or_else(String::new, |v| format!("{before}{}", self.name(*v)))
        };
        match piece {
            Piece::Its(name) => {
                fields.iter().filter(|n| n.name == *name).map(|n| self.field(n.field)).collect()
            }
            Piece::Flag(name, word) => {
                let set = |n: &Named<Field<'_>>| n.name == *name && matches!(n.field, Field::Flag(true));
                if fields.iter().any(set) { format!(" {word}") } else { String::new() }
            }
            Piece::Comma => ",".to_owned(),
            Piece::More(name) => given(name, ", "),
            Piece::Token(name, equals) => given(name, &format!(" token{equals}")),
            Piece::Index(name) => format!("[{}]", self.list(&values(name))),
            Piece::Typed(name) => match values(name).as_slice() {
                [] => String::new(),
                all => format!(" {} : {}", self.list(all), self.types(all)),
            },
            Piece::Types(states) => {
                let stated = states.iter().flat_map(|state| self.states(state, fields, results));
                format!(" : {}", stated.collect::<Vec<_>>().join(", "))
            }
            Piece::Arrow => {
                let gives = (0..results.len().max(1)).map(|i| self.result(results, i));
                format!(" -> {}", gives.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// A field in the syntax of its kind, after a blank.
    fn field(&self, field: Field<'_>) -> String {
        match field {
            Field::Word(word) => stated(word),
            Field::Scope(scope) => scope.as_ref().map_or_else(String::new, |scope| stated(scope)),
            Field::Hints(hints) if hints.is_empty() => String::new(),
            Field::Hints(hints) => format!(" optimization_hints = {}", hints_text(hints)),
            Field::Inbounds(all) if !all.contains(&true) => String::new(),
            Field::Inbounds(all) => format!(" inbounds = [{}]", commas(all, bool::to_string)),
            Field::Assumption(that) => format!(" {}", assumption(that)),
            Field::Operand(value) => format!(" {}", self.name(*value)),
            Field::Operands(values) => format!(" {}", self.list(values)),
            Field::Flag(_) | Field::Optional(_) | Field::Constant(_) => String::new(),
            Field::Block(_) | Field::OptionalBlock(_) => String::new(),
        }
    }

    fn states(&self, states: &States, fields: &[Named<Field<'_>>], results: &[Value]) -> Vec<String> {
        match states {
            States::Each(name) => values(fields, name).iter().map(|v| self.ty(*v)).collect(),
            States::One(names) => {
                names.iter().flat_map(|n| values(fields, n)).take(1).map(|v| self.ty(v)).collect()
            }
            States::Result(_) => vec![self.result(results, 0)],
            States::Indices(name) => {
                let types: Vec<String> = values(fields, name).iter().map(|v| self.ty(*v)).collect();
                let alike = types.windows(2).all(|pair| pair[0] == pair[1]);
                if alike { types.into_iter().take(1).collect() } else { types }
            }
            States::Waits(name) => values(fields, name).iter().map(|_| "token".to_owned()).collect(),
        }
    }

    /// What has a syntax of its own.
    fn own(&self, op: &Op, results: &[Value]) -> String {
        if let Op::Constant(constant) = op {
            self.constant(constant, results)
        } else if let Op::TensorView { base, shape, strides } = op {
            self.tensor_view(*base, shape, strides, results)
        } else {
            self.control(op, results)
        }
    }

    fn constant(&self, constant: &Constant, results: &[Value]) -> String {
        let tile = results.first().and_then(|r| self.function.tile(*r));
        let elem = match tile.map(|t| t.elem) {
            Some(Elem::Scalar(elem)) => elem,
            _ => Scalar::I32,
        };
        let shape = tile.map_or(&[][..], |t| &t.shape);
        let text = match constant.bits.as_slice() {
            [one] => element(*one, elem),
            all => nested(all, shape, elem),
        };
        format!(" <{elem}: {text}> : {}", self.result(results, 0))
    }

    fn tensor_view(&self, base: Value, shape: &[Value], strides: &[Value], results: &[Value]) -> String {
        let Some(Type::Tensor(view)) = results.first().and_then(|r| self.function.ty(*r)) else {
            return format!(" {}", self.name(base));
        };
        let fill = |known: &[Option<u64>], values: &[Value]| {
            let mut values = values.iter();
            let mut dynamic = || values.next().map_or_else(|| "?".to_owned(), |v| self.name(*v));
            let each: Vec<String> =
                known.iter().map(|d| d.map_or_else(&mut dynamic, |n| n.to_string())).collect();
            each.join(", ")
        };
        let mut stated = Vec::new();
        if view.multicast {
            stated.push(self.ty(base));
        }
        stated.extend(shape.iter().chain(strides).next().map(|v| self.ty(*v)));
        let stated = if stated.is_empty() { String::new() } else { format!("{} -> ", stated.join(", ")) };
        let (list, steps) = (fill(&view.shape, shape), fill(&view.strides, strides));
        format!(" {}, shape = [{list}], strides = [{steps}] : {stated}{view}", self.name(base))
    }

    fn carried(&self, params: &[Value], inits: &[Value]) -> String {
        let pairs: Vec<(&Value, &Value)> = params.iter().zip(inits).collect();
        format!(
            " iter_values({})",
            commas(&pairs, |(p, i)| format!("{} = {}", self.name(**p), self.name(**i)))
        )
    }

    fn control(&self, op: &Op, results: &[Value]) -> String {
        match op {
            Op::If { condition, .. } if results.is_empty() => format!(" {}", self.name(*condition)),
            Op::If { condition, .. } => format!(" {} -> ({})", self.name(*condition), self.types(results)),
            Op::For { unsigned, bounds: [low, high, step], inits, body } => {
                let word = if *unsigned { " unsigned" } else { "" };
                let counter = body.params.first().map_or_else(String::new, |p| self.name(*p));
                let (from, to, by) = (self.name(*low), self.name(*high), self.name(*step));
                let mut text = format!("{word} {counter} in ({from} to {to}, step {by}) : {}", self.ty(*low));
                if !inits.is_empty() {
                    text += &self.carried(body.params.get(1..).unwrap_or_default(), inits);
                    let _ = write!(text, " -> ({})", self.types(results));
                }
                text
            }
            Op::Loop { inits, body } => {
                let mut text = String::new();
                if !inits.is_empty() {
                    text += &self.carried(&body.params, inits);
                    let _ = write!(text, " : {}", self.types(inits));
                }
                match (inits.is_empty(), results.is_empty()) {
                    (_, true) => {}
                    (true, false) => text += &format!(" : {}", self.types(results)),
                    (false, false) => text += &format!(" -> {}", self.types(results)),
                }
                text
            }
            plain_op!() | token_op!() | access_op!() | end_op!() => String::new(),
        }
    }
}

fn assumption(that: &Assumption) -> String {
    let bound = |b: &Option<i64>| b.map_or_else(|| "?".to_owned(), |b| b.to_string());
    match that {
        Assumption::DivBy { divisor, every: None } => format!("div_by<{divisor}>"),
        Assumption::DivBy { divisor, every: Some((every, along)) } => {
            format!("div_by<{divisor}, every {every} along {along}>")
        }
        Assumption::Bounded { low, high } => format!("bounded<{}, {}>", bound(low), bound(high)),
    }
}

/// `[[1, 2], [3, 4]]`; a flat list if the number of elements does not match the shape.
fn nested(bits: &[u64], shape: &[u32], elem: Scalar) -> String {
    let each = |part: &[u64]| format!("[{}]", commas(part, |b| element(*b, elem)));
    let Some((first, rest)) = shape.split_first() else { return each(bits) };
    let (count, inside) = (*first as usize, rest.iter().fold(1usize, |n, d| n.saturating_mul(*d as usize)));
    if rest.is_empty() || count.checked_mul(inside) != Some(bits.len()) || inside == 0 {
        return each(bits);
    }
    let parts: Vec<String> = bits.chunks(inside).map(|part| nested(part, rest, elem)).collect();
    format!("[{}]", parts.join(", "))
}

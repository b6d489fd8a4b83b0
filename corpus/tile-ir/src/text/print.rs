//! Prints Tile IR in the form of NVIDIA's disassembler, with numbered values.

use super::literal::element;
use crate::{
    Access, Assumption, Block, Constant, Elem, Function, Hint, Hints, Instr, IntegerOp, Module, Op, Overflow,
    Place, Reduction, Rounding, Scalar, Sign, Type, Value,
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

fn overflow(overflow: Overflow) -> String {
    match overflow {
        Overflow::Wraps => String::new(),
        other => format!(" overflow<{}>", other.word()),
    }
}

fn access(access: &Access) -> String {
    match access.scope {
        Some(scope) => format!("{} {}", access.order.word(), scope.word()),
        None => access.order.word().to_owned(),
    }
}

fn reduction(reduction: Reduction) -> String {
    match reduction {
        Reduction::Add => String::new(),
        other => format!(" attributes {{reduction = #cuda_tile.multimem_reduction_kind<{}>}}", other.word()),
    }
}

fn inbounds(place: &Place) -> String {
    if place.inbounds.iter().any(|b| *b) {
        format!(" inbounds = [{}]", commas(&place.inbounds, bool::to_string))
    } else {
        String::new()
    }
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

    /// `word %a, %b : T, U`, or only the word if there are no values.
    fn typed(&self, word: &str, values: &[Value]) -> String {
        if values.is_empty() {
            return word.to_owned();
        }
        format!("{word} {} : {}", self.list(values), self.types(values))
    }

    fn result(&self, results: &[Value], i: usize) -> String {
        results.get(i).map_or_else(|| "unknown".to_owned(), |r| self.ty(*r))
    }

    /// `token=%t`, with `blanks` around the sign in view accesses.
    fn token(&self, token: Option<Value>, blanks: bool) -> String {
        let between = if blanks { " = " } else { "=" };
        token.map_or_else(String::new, |t| format!(" token{between}{}", self.name(t)))
    }

    fn operation(&self, op: &Op, results: &[Value]) -> String {
        let ty = self.result(results, 0);
        match op {
            Op::Constant(constant) => self.constant(constant, results),
            Op::Iota => format!("iota : {ty}"),
            Op::Convert { to, value } => {
                format!("{} {} : {} -> {ty}", to.word(), self.name(*value), self.ty(*value))
            }
            Op::Extend { sign, value } => {
                format!("exti {} {} : {} -> {ty}", self.name(*value), sign.word(), self.ty(*value))
            }
            Op::Truncate { overflow: o, value } => {
                format!("trunci {}{} : {} -> {ty}", self.name(*value), overflow(*o), self.ty(*value))
            }
            Op::Offset { pointer, offset } => {
                format!("offset {} -> {ty}", self.typed("", &[*pointer, *offset]).trim_start())
            }
            Op::Integer { op, a, b } => format!("{} : {ty}", self.integer(*op, *a, *b)),
            Op::Float { op, rounding, flush, a, b } => {
                let rounding = match rounding {
                    Rounding::NearestEven => String::new(),
                    other => format!(" rounding<{}>", other.word()),
                };
                let flush = if *flush { " flush_to_zero" } else { "" };
                format!("{} {}{rounding}{flush} : {ty}", op.word(), self.list(&[*a, *b]))
            }
            Op::Compare { predicate, sign, a, b } => {
                let (list, sign) = (self.list(&[*a, *b]), sign.word());
                format!("cmpi {} {list}, {sign} : {} -> {ty}", predicate.word(), self.ty(*a))
            }
            Op::Select { condition, a, b } => {
                format!("select {} : {}, {ty}", self.list(&[*condition, *a, *b]), self.ty(*condition))
            }
            Op::Assume { that, value } => {
                format!("assume {}, {} : {ty}", assumption(that), self.name(*value))
            }
            Op::TileBlockId => format!("get_tile_block_id : {ty}"),
            Op::NumTileBlocks => format!("get_num_tile_blocks : {ty}"),
            Op::TensorView { base, shape, strides } => self.tensor_view(*base, shape, strides, results),
            Op::MakeView { tensor } => {
                let view = results.first().and_then(|r| self.function.ty(*r));
                let strided = matches!(view, Some(Type::View(v)) if v.steps.is_some());
                let word = if strided { "make_strided_view" } else { "make_partition_view" };
                format!("{word} {} : {ty}", self.name(*tensor))
            }
            Op::MakeToken => "make_token : token".to_owned(),
            Op::JoinTokens(tokens) => format!("join_tokens {} : token", self.list(tokens)),
            access_op!() | Op::AliasFence { .. } | Op::GdcWait { .. } | Op::GdcLaunch { .. } => {
                self.memory(op, &ty).unwrap_or_default()
            }
            block_op!() | end_op!() => self.control(op, results),
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
        format!("constant <{elem}: {text}> : {}", self.result(results, 0))
    }

    fn integer(&self, op: IntegerOp, a: Value, b: Value) -> String {
        let sign = |s: Sign| format!(" {}", s.word());
        let flags = match op {
            IntegerOp::Add(o) | IntegerOp::Sub(o) | IntegerOp::Mul(o) | IntegerOp::Shl(o) => overflow(o),
            IntegerOp::Max(s) | IntegerOp::Min(s) | IntegerOp::Shr(s) | IntegerOp::Rem(s) => sign(s),
            IntegerOp::And | IntegerOp::Or | IntegerOp::Xor => String::new(),
        };
        format!("{} {}{flags}", op.word(), self.list(&[a, b]))
    }

    fn tensor_view(&self, base: Value, shape: &[Value], strides: &[Value], results: &[Value]) -> String {
        let Some(Type::Tensor(view)) = results.first().and_then(|r| self.function.ty(*r)) else {
            return format!("make_tensor_view {}", self.name(base));
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
        format!(
            "make_tensor_view {}, shape = [{list}], strides = [{steps}] : {stated}{view}",
            self.name(base)
        )
    }

    fn place(&self, place: &Place) -> String {
        format!("{}[{}]", self.name(place.view), self.list(&place.index))
    }

    /// The types of the indices; a single one if all are equal.
    fn index_types(&self, place: &Place) -> String {
        let types: Vec<String> = place.index.iter().map(|i| self.ty(*i)).collect();
        match types.first() {
            None => String::new(),
            Some(first) if types.iter().all(|t| t == first) => format!(", {first}"),
            Some(_) => format!(", {}", types.join(", ")),
        }
    }

    fn given(&self, hints: &Hints) -> String {
        if hints.is_empty() { String::new() } else { format!(" optimization_hints = {}", hints_text(hints)) }
    }

    /// The text of a memory operation; `ty` is the type of its first result.
    fn memory(&self, op: &Op, ty: &str) -> Option<String> {
        let several = |first: &[Value], rest: &[&Option<Value>]| -> Vec<Value> {
            first.iter().copied().chain(rest.iter().filter_map(|v| **v)).collect()
        };
        Some(match op {
            Op::LoadPtr { pointers, access: a, hints, mask, padding, token } => {
                let all = several(&[*pointers], &[mask, padding]);
                let (list, types, token) = (self.list(&all), self.types(&all), self.token(*token, false));
                format!(
                    "load_ptr_tko {} {list}{token}{} : {types} -> {ty}, token",
                    access(a),
                    self.given(hints)
                )
            }
            Op::StorePtr { pointers, value, access: a, hints, mask, token } => {
                let all = several(&[*pointers, *value], &[mask]);
                let (list, types, token) = (self.list(&all), self.types(&all), self.token(*token, false));
                format!("store_ptr_tko {} {list}{token}{} : {types} -> token", access(a), self.given(hints))
            }
            Op::AtomicRmw { pointers, mode, value, order, scope, mask, token } => {
                let all = several(&[*pointers, *value], &[mask]);
                let (rest, token) = (self.list(&all[1..]), self.token(*token, false));
                let (how, pointers) = (format!("{} {}", order.word(), scope.word()), self.name(*pointers));
                let types = self.types(&all);
                format!(
                    "atomic_rmw_tko {how} {pointers}, {}, {rest}{token} : {types} -> {ty}, token",
                    mode.word()
                )
            }
            Op::AtomicCas { pointers, compare, value, order, scope, mask, token } => {
                let all = several(&[*pointers, *compare, *value], &[mask]);
                let stated = several(&[*pointers, *value], &[mask]);
                let (list, types, token) = (self.list(&all), self.types(&stated), self.token(*token, false));
                format!(
                    "atomic_cas_tko {} {} {list}{token} : {types} -> {ty}, token",
                    order.word(),
                    scope.word()
                )
            }
            Op::LoadView { .. } | Op::StoreView { .. } | Op::AtomicRedView { .. } => {
                self.view_access(op, ty)?
            }
            Op::MultimemLoadReduce { .. } | Op::MultimemReduce { .. } | Op::MultimemStore { .. } => {
                self.view_access(op, ty)?
            }
            token_op!() => self.view_access(op, ty)?,
            plain_op!() | block_op!() | end_op!() => return None,
        })
    }

    fn view_access(&self, op: &Op, ty: &str) -> Option<String> {
        let after = |place: &Place| format!("{}{}", self.ty(place.view), self.index_types(place));
        // Multimem operations also state the type of their token.
        let waits = |token: &Option<Value>| if token.is_some() { ", token" } else { "" };
        Some(match op {
            Op::LoadView { place, access: a, hints, token } => {
                let (token, given, at) = (self.token(*token, true), self.given(hints), self.place(place));
                let (head, types) = (format!("load_view_tko {} {at}{token}{given}", access(a)), after(place));
                format!("{head}{} : {types} -> {ty}, token", inbounds(place))
            }
            Op::StoreView { place, value, access: a, hints, token } => {
                let (token, given, at) = (self.token(*token, true), self.given(hints), self.place(place));
                let head = format!("store_view_tko {} {}, {at}{token}{given}", access(a), self.name(*value));
                format!("{head}{} : {}, {} -> token", inbounds(place), self.ty(*value), after(place))
            }
            Op::AtomicRedView { place, mode, value, order, scope, token } => {
                let how = format!("{} {} {}", order.word(), scope.word(), self.place(place));
                let what = format!("{}, {}{}", mode.word(), self.name(*value), self.token(*token, true));
                let types = format!("{}, {}", self.ty(*value), after(place));
                format!("atomic_red_view_tko {how}, {what}{} : {types} -> token", inbounds(place))
            }
            Op::MultimemLoadReduce { place, reduction: r, access: a, token } => {
                let what = format!("{}{}{}", self.token(*token, true), inbounds(place), reduction(*r));
                let (at, types) = (self.place(place), format!("{}{}", after(place), waits(token)));
                format!("multimem_load_reduce_view_tko {} {at}{what} : {types} -> {ty}, token", access(a))
            }
            Op::MultimemReduce { place, reduction: r, value, order, scope, token } => {
                let what = format!("{}{}{}", self.token(*token, true), inbounds(place), reduction(*r));
                let how = format!("{} {}", order.word(), scope.word());
                format!("multimem_reduce_view_tko {how} {}{what}{}", self.view_and_value(place, *value), {
                    let types =
                        format!("{}, {}{}", self.ty(place.view), self.ty(*value), self.index_types(place));
                    format!(" : {types}{} -> token", waits(token))
                })
            }
            Op::MultimemStore { place, value, access: a, token } => {
                let what = format!("{}{}", self.token(*token, true), inbounds(place));
                let types =
                    format!("{}, {}{}", self.ty(place.view), self.ty(*value), self.index_types(place));
                let at = self.view_and_value(place, *value);
                format!("multimem_store_view_tko {} {at}{what} : {types}{} -> token", access(a), waits(token))
            }
            Op::AliasFence { token } => format!("memory_fence_alias_tko {}", self.name(*token)),
            Op::GdcWait { token } => format!("gdc_wait_tko{} -> token", self.token(*token, true)),
            Op::GdcLaunch { token } => {
                format!("gdc_launch_dependents_tko{} -> token", self.token(*token, true))
            }
            Op::LoadPtr { .. } | Op::StorePtr { .. } | Op::AtomicRmw { .. } | Op::AtomicCas { .. } => {
                return None;
            }
            Op::MakeToken | Op::JoinTokens(_) | plain_op!() | block_op!() | end_op!() => return None,
        })
    }

    /// `%view, %value[%i]`
    fn view_and_value(&self, place: &Place, value: Value) -> String {
        format!("{}, {}[{}]", self.name(place.view), self.name(value), self.list(&place.index))
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
            Op::If { condition, .. } if results.is_empty() => format!("if {}", self.name(*condition)),
            Op::If { condition, .. } => format!("if {} -> ({})", self.name(*condition), self.types(results)),
            Op::For { unsigned, bounds: [low, high, step], inits, body } => {
                let word = if *unsigned { "for unsigned" } else { "for" };
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
                let mut text = "loop".to_owned();
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
            Op::Yield(values) => self.typed("yield", values),
            Op::Continue(values) => self.typed("continue", values),
            Op::Break(values) => self.typed("break", values),
            Op::Return(values) => self.typed("return", values),
            plain_op!() | token_op!() | access_op!() => String::new(),
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

//! Prints a program as native litmus text. Reading it back gives the same program.

mod access;
mod control;
mod copy;
mod instruction;
mod mbarrier;
mod operands;
mod proxy;
mod tensor;
mod tile;
mod words;

pub use instruction::instruction;

pub(super) use words::{ALU_OPS, ATOM_OPS, CMP_OPS};

use crate::ir::*;
use std::fmt::Write;

/// The native text of `program`.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    let name = program.name.replace(['"', '\n'], "'");
    let _ = writeln!(out, "moire \"{name}\"\n");
    if program.launched {
        out.push_str(".launch;\n");
    }
    for (i, symbol) in program.symbols.iter().enumerate() {
        declaration(&mut out, program, i, symbol);
    }
    for thread in &program.threads {
        print_thread(&mut out, program, thread);
    }
    if let Some(filter) = &program.filter {
        let _ = writeln!(out, "\nfilter {}", expression(program, filter, true));
    }
    for condition in &program.conditions {
        let quantifier = match condition.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::ForAll => "forall",
        };
        let name = if condition.name.is_empty() { String::new() } else { format!(" as {}", condition.name) };
        let _ = writeln!(out, "\n{quantifier} {}{name}", expression(program, &condition.expr, true));
    }
    out
}

fn declaration(out: &mut String, program: &Program, i: usize, symbol: &Symbol) {
    let object = &program.objects[symbol.object.index()];
    let base = |virt: SymbolId| &program.symbols[virt.index()].name;
    if object.space == Space::Tensor {
        let _ = writeln!(out, ".tmem {}[{}];", symbol.name, object.bytes / 4);
        return;
    }
    if symbol.name == object.name
        && symbol.proxy == Proxy::Generic
        && symbol.virt.index() == i
        && symbol.multimem.is_empty()
    {
        let space = if object.space == Space::SharedCta { ".shared" } else { ".global" };
        let zero = object.init.is_zero();
        if matches!(object.bytes, 1 | 2 | 4 | 8) {
            let value = object.init.value(0, object.bytes);
            let init = if zero { String::new() } else { format!(" = {value}") };
            let _ = writeln!(out, "{space} .b{} {}{init};", object.bytes * 8, symbol.name);
        } else {
            let bytes = object.init.bytes(object.init.used());
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            let init = if zero { String::new() } else { format!(" = {{{}}}", bytes.join(", ")) };
            let _ = writeln!(out, "{space} .b8 {}[{}]{init};", symbol.name, object.bytes);
        }
    } else if !symbol.multimem.is_empty() {
        let names: Vec<&str> = std::iter::once(&symbol.object)
            .chain(&symbol.multimem)
            .map(|o| program.objects[o.index()].name.as_str())
            .collect();
        let _ = writeln!(out, ".multimem {} = {};", symbol.name, names.join(", "));
    } else {
        let (word, of) = match symbol.proxy {
            Proxy::Texture => (".texture", base(symbol.virt)),
            Proxy::Surface => (".surface", base(symbol.virt)),
            Proxy::Constant => (".constant", base(symbol.virt)),
            _ => (".alias", &object.name),
        };
        let _ = writeln!(out, "{word} {} = {of};", symbol.name);
    }
}

fn print_thread(out: &mut String, program: &Program, thread: &Thread) {
    let _ = writeln!(out, "\n{} ({}) {{", word(&thread.name), placement(&thread.place, program.one_cluster));
    if !thread.regs.is_empty() {
        let one = |r: &RegDecl| match &r.init {
            RegInit::Value(0) => r.name.clone(),
            RegInit::Value(v) => format!("{} = {v}", r.name),
            RegInit::Address(s) => format!("{} = {}", r.name, program.symbols[s.index()].name),
            RegInit::Lane => format!("{} = %laneid", r.name),
        };
        let regs: Vec<String> = thread.regs.iter().map(one).collect();
        let _ = writeln!(out, "  .reg {};", regs.join(", "));
    }
    let mut labels: Vec<&Label> = thread.labels.iter().collect();
    labels.sort_by_key(|l| l.at);
    let mut labels = labels.into_iter().peekable();
    for pc in 0..=thread.body.len() {
        while let Some(label) = labels.next_if(|l| l.at == pc) {
            let _ = writeln!(out, "{}:", label.name);
        }
        if let Some(instr) = thread.body.get(pc) {
            let braces = matches!(instr.op, Op::Control(Control::Repeat(_) | Control::EndRepeat));
            let end = if braces { "" } else { ";" };
            let _ = writeln!(out, "  {}{end}", instruction(program, thread, instr));
        }
    }
    out.push_str("}\n");
}

/// The placement of a thread; with `clusters` also that it is in cluster 0.
fn placement(place: &Placement, clusters: bool) -> String {
    if place.host {
        return "host".into();
    }
    let mut parts = vec![format!("gpu {}", place.gpu)];
    for (word, value) in [("stream", place.stream), ("grid", place.grid), ("cluster", place.cluster)] {
        if value != 0 || (clusters && word == "cluster") {
            parts.push(format!("{word} {value}"));
        }
    }
    parts.push(format!("cta {}", place.cta));
    if place.warp != 0 {
        parts.push(format!("warp {}", place.warp));
    }
    parts.extend(lanes(place));
    parts.join(", ")
}

/// `lane 3`, `lanes 0,2-5`, `lanes 1-31 joined`
fn lanes(place: &Placement) -> Option<String> {
    let joined = if place.joined { " joined" } else { "" };
    place.lane().map(|_| lanes_words(place) + joined)
}

/// `lane 3`, `lanes 0,2-5`
pub(crate) fn lanes_words(place: &Placement) -> String {
    if !place.several() {
        return format!("lane {}", place.lane().unwrap_or(0));
    }
    let mut left = place.mask;
    let mut ranges = Vec::new();
    while left != 0 {
        let (from, more) = (left.trailing_zeros(), (left >> left.trailing_zeros()).trailing_ones() - 1);
        ranges.push(if more == 0 { format!("{from}") } else { format!("{from}-{}", from + more) });
        left &= u32::MAX.checked_shl(from + more + 1).unwrap_or(0);
    }
    format!("lanes {}", ranges.join(","))
}

/// The name of a thread as one word: that of a part of a warp has blanks.
fn word(name: &str) -> String {
    name.replace([' ', '-', ','], "_")
}

/// The text of a condition; an outermost one is always in parentheses.
fn expression(program: &Program, expr: &Expr, outer: bool) -> String {
    let join = |es: &[Expr], word: &str| {
        let all: Vec<String> = es.iter().map(|e| expression(program, e, false)).collect();
        format!("({})", all.join(word))
    };
    let text = match expr {
        Expr::Bool(b) => b.to_string(),
        Expr::Not(e) => return format!("not {}", expression(program, e, true)),
        Expr::And(es) => return join(es, " /\\ "),
        Expr::Or(es) => return join(es, " \\/ "),
        Expr::Cmp(op, a, b) => {
            let op = match op {
                CmpOp::Eq => "==",
                CmpOp::Ne => "!=",
                CmpOp::Lt => "<",
                CmpOp::Le => "<=",
                CmpOp::Gt => ">",
                CmpOp::Ge => ">=",
            };
            format!("{} {op} {}", term_text(program, *a), term_text(program, *b))
        }
    };
    if outer { format!("({text})") } else { text }
}

/// A leaf of a condition.
pub(crate) fn term_text(program: &Program, term: Term) -> String {
    match term {
        Term::Const(c) => c.to_string(),
        Term::Reg(t, r) => {
            let thread = &program.threads[t.index()];
            format!("{}:{}", word(&thread.name), thread.regs[r.index()].name)
        }
        Term::Mem { symbol, offset, bytes, thread } => {
            let name = &program.symbols[symbol.index()].name;
            let owner =
                thread.map_or(String::new(), |t| format!("{}:", word(&program.threads[t.index()].name)));
            let offset = if offset == 0 { String::new() } else { format!("+{offset}") };
            format!("[{owner}{name}{offset}].b{}", u32::from(bytes) * 8)
        }
    }
}

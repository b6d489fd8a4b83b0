//! Prints source programs as Triton kernels: each thread is a program instance of two warps.
//!
//! The parameters are those of [`crate::llvm`]. Triton has read-modify-writes with an order and a scope, and accesses with neither. So
//! an atomic load is an `atomic_add` of 0, of which Triton makes a load, and an atomic store an `atomic_xchg`. What is scalar the
//! first thread of an instance does. A store to an object that its thread accesses nowhere else is the store of one element of a
//! tile, which a thread of the other warp has. The compiler has to keep it in its place by a barrier.
//!
//! For what Triton has no words the kernel has an assertion that fails, with the name of it.

use crate::slots::{Slots, kernel_name};
use crate::syntax::{Access, Order, Source, Space, Step, Thread, Value};
use moire_program::ir::{AtomOp, Scope};
use std::fmt::Write;

const HEAD: &str = "import triton\nimport triton.language as tl\n";
/// The threads of an instance, and the one that has the element of a tile.
const THREADS: (u32, u32) = (64, 33);

/// One module with the kernels of all these programs. Program `n` has the number `first + n`.
pub fn module(programs: &[&Source], first: usize) -> String {
    let (mut out, mut kernels) = (HEAD.to_owned(), String::new());
    for (n, source) in programs.iter().enumerate() {
        for (t, thread) in source.threads.iter().enumerate() {
            kernel(&mut out, &mut kernels, (source, thread), (first + n, t));
        }
    }
    out + "\n\nKERNELS = [\n" + &kernels + "]\n"
}

fn kernel(
    out: &mut String,
    kernels: &mut String,
    (source, thread): (&Source, &Thread),
    (n, t): (usize, usize),
) {
    let slots = Slots::of(source);
    let object = |o: &usize| (format!("x{o}"), source.objects[*o].bits);
    let result = |(t, r): &(usize, usize)| (format!("o{t}_{r}"), source.threads[*t].registers[*r].bits);
    let parameters: Vec<(String, u8)> =
        slots.objects.iter().map(object).chain(slots.results.iter().map(result)).collect();
    let (name, names) = (kernel_name(n, t), parameters.iter().map(|p| p.0.as_str()).collect::<Vec<_>>());
    let types: Vec<String> =
        parameters.iter().map(|(name, bits)| format!("\"{name}\": \"*u{bits}\"")).collect();
    let _ = writeln!(kernels, "    (\"{name}\", {{{}}}),", types.join(", "));
    let (all, other) = THREADS;
    let _ = writeln!(out, "\n\n@triton.jit\ndef {name}({}):", names.join(", "));
    let _ = writeln!(out, "    other = tl.arange(0, {all}) == {other}");
    if shares(source) {
        let _ = writeln!(out, "    {}", refused("two threads of one CTA"));
    }
    for (r, register) in thread.registers.iter().enumerate() {
        let _ = writeln!(out, "    r{r} = {}", number(0, register.bits));
    }
    Printer { source, thread }.steps(out, &thread.body, 1);
    for r in 0..thread.registers.len() {
        let _ = writeln!(out, "    tl.store(o{t}_{r}, r{r})");
    }
}

/// Whether two threads are in one CTA: instances are CTAs of their own.
fn shares(source: &Source) -> bool {
    let place = |t: usize| &source.threads[t].place;
    (0..source.threads.len()).any(|t| (0..t).any(|s| place(s).same_cta(place(t))))
}

fn refused(what: &str) -> String {
    format!("tl.static_assert(False, \"Triton has no {what}\")")
}

fn number(n: u64, bits: u8) -> String {
    format!("tl.full([], {n}, tl.uint{bits})")
}

struct Printer<'s> {
    source: &'s Source,
    thread: &'s Thread,
}

impl Printer<'_> {
    fn steps(&self, out: &mut String, all: &[Step], depth: usize) {
        for step in all {
            let indent = "    ".repeat(depth);
            if let Step::If { register, equals, then } = step {
                let _ = writeln!(out, "{indent}if r{register} == {equals}:");
                self.steps(out, then, depth + 1);
            } else {
                let line = self.step(step).unwrap_or_else(refused);
                let _ = writeln!(out, "{indent}{line}");
            }
        }
    }

    /// A step, or what Triton has no words for.
    fn step(&self, step: &Step) -> Result<String, &'static str> {
        let object = step.object().map(|o| (o, &self.source.objects[o]));
        let Some((o, of)) = object else { return Err("fence") };
        match (of.space, of.bits) {
            (Space::Shared, _) => return Err("shared variable"),
            (_, 32 | 64) => {}
            _ => return Err("atomic of this width"),
        }
        let value = |value: Value| match value {
            Value::Number(n) => number(n, of.bits),
            Value::Register(r) => format!("r{r}"),
        };
        Ok(match step {
            Step::Load { dst, access: Access::Plain, .. } => format!("r{dst} = tl.load(x{o})"),
            Step::Load { dst, access: Access::Atomic { order, scope, .. }, .. } => {
                format!("r{dst} = tl.atomic_add(x{o}, {}{})", number(0, of.bits), how(*order, *scope)?)
            }
            Step::Store { value: v, access, .. } => {
                let (name, how) = match access {
                    Access::Plain => ("store", String::new()),
                    Access::Atomic { order, scope, .. } => ("atomic_xchg", how(*order, *scope)?),
                };
                format!("tl.{name}({}, {}{how})", self.place(o), self.tile(o, &value(*v)))
            }
            Step::Update(u) => {
                let dst = u.dst.map_or(String::new(), |d| format!("r{d} = "));
                let (op, how) = (update(u.op), how(u.order, u.scope)?);
                format!("{dst}tl.atomic_{op}(x{o}, {}{how})", value(u.value))
            }
            Step::Cas(c) => {
                let how = how(both(c.success, c.failure), c.scope)?;
                let (old, new) = (number(c.expected, of.bits), value(c.desired));
                format!("r{} = tl.atomic_cas(x{o}, {old}, {new}{how})", c.dst)
            }
            Step::Fence { .. } | Step::If { .. } => return Err("fence"),
        })
    }

    /// Whether the thread accesses an object once.
    fn is_alone(&self, object: usize) -> bool {
        self.thread.steps().iter().filter(|step| step.object() == Some(object)).count() == 1
    }

    fn place(&self, object: usize) -> String {
        let tile = format!("x{object} + tl.zeros([{}], tl.int32)", THREADS.0);
        if self.is_alone(object) { tile } else { format!("x{object}") }
    }

    /// A value that is stored, and for which elements of a tile.
    fn tile(&self, object: usize, value: &str) -> String {
        if self.is_alone(object) { format!("{value}, mask=other") } else { value.to_owned() }
    }
}

/// The order and the scope of an update.
fn how(order: Order, scope: Scope) -> Result<String, &'static str> {
    let sem = match order {
        Order::SeqCst => return Err("seq_cst"),
        other => other.word(),
    };
    let scope = match scope {
        Scope::Cta => "cta",
        Scope::Cluster => return Err("scope of a cluster"),
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    };
    Ok(format!(", sem=\"{sem}\", scope=\"{scope}\""))
}

/// The one order of a compare-exchange.
fn both(success: Order, failure: Order) -> Order {
    match (success, failure) {
        (Order::SeqCst, _) | (_, Order::SeqCst) => Order::SeqCst,
        (Order::Release, Order::Acquire) => Order::AcqRel,
        (Order::Relaxed, Order::Acquire) => Order::Acquire,
        (success, _) => success,
    }
}

fn update(op: AtomOp) -> &'static str {
    if op == AtomOp::Exch { "xchg" } else { crate::cuda::update(op) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    #[test]
    fn a_store_alone_is_an_element_of_a_tile_and_what_has_no_words_is_named() {
        let text = "source \"x\"\n.global .b32 x, y;\n.global .b64 z;\n\
            P0 (cluster 0, cta 0) { store.relaxed.gpu x, 1; r0 = cas.release.acquire.sys y, 0, 1; if r0 == 1 { store.plain y, r0; } fence.acquire.gpu; }\n\
            P1 (cluster 1, cta 1) { r0 = load.acquire.cta z; store.seq_cst.gpu x, 1; exch.relaxed.cluster y, 1; }\n";
        let module = module(&[&parse(text).expect("reads")], 2);
        for line in [
            "def moire_2_0_(x0, x1, x2, o0_0, o1_0):",
            "    tl.atomic_xchg(x0 + tl.zeros([64], tl.int32), tl.full([], 1, tl.uint32), mask=other, sem=\"relaxed\", scope=\"gpu\")",
            "    r0 = tl.atomic_cas(x1, tl.full([], 0, tl.uint32), tl.full([], 1, tl.uint32), sem=\"acq_rel\", scope=\"sys\")",
            "        tl.store(x1, r0)",
            "    tl.static_assert(False, \"Triton has no fence\")",
            "    r0 = tl.atomic_add(x2, tl.full([], 0, tl.uint64), sem=\"acquire\", scope=\"cta\")",
            "    tl.static_assert(False, \"Triton has no seq_cst\")",
            "    tl.static_assert(False, \"Triton has no scope of a cluster\")",
            "    (\"moire_2_1_\", {\"x0\": \"*u32\", \"x1\": \"*u32\", \"x2\": \"*u64\", \"o0_0\": \"*u32\", \"o1_0\": \"*u64\"}),",
        ] {
            assert!(module.lines().any(|l| l == line), "{line}\n{module}");
        }
        let shared = text.replace("cluster 1, cta 1", "cluster 0, cta 0");
        let shared = super::module(&[&parse(&shared).expect("reads")], 0);
        assert!(shared.contains("two threads of one CTA") && !module.contains("of one CTA"));
    }
}

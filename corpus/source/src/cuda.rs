//! Prints source programs as CUDA C++ with the built-in `__nv_atomic_*` functions, which need no header: each thread is a
//! kernel. The parameters are those of [`crate::llvm`].
//!
//! A volatile access that is relaxed and of system scope is printed as a volatile access, which is what CUDA defines it to
//! be. Every other mark of volatile is dropped. The address of a shared object is given to an empty `asm`: the other kernels of the
//! program stand for other threads of the CTA, and a compiler that sees one of them must not take the object for its own. Each kernel stands on a line of its own, so that a compiler's message names
//! the kernel.

use crate::slots::{Slots, kernel_name};
use crate::syntax::{Access, Order, Source, Space, Step, Value};
use moire_program::ir::{AtomOp, Scope};
use std::fmt::Write;

/// One translation unit with the kernels of all these programs. Program `n` has the number `first + n`.
pub fn unit(programs: &[&Source], first: usize) -> String {
    let mut out = String::new();
    for (n, source) in programs.iter().enumerate() {
        for t in 0..source.threads.len() {
            kernel(&mut out, source, first + n, t);
        }
    }
    out
}

fn kernel(out: &mut String, source: &Source, program: usize, thread: usize) {
    let Some(code) = source.threads.get(thread) else { return };
    let slots = Slots::of(source);
    let object = |o: &usize| format!("{}* x{o}", ty(source.objects[*o].bits));
    let result = |(t, r): &(usize, usize)| format!("{}* o{t}_{r}", ty(source.threads[*t].registers[*r].bits));
    let parameters: Vec<String> =
        slots.objects.iter().map(object).chain(slots.results.iter().map(result)).collect();
    let name = kernel_name(program, thread);
    let _ = write!(out, "extern \"C\" __global__ void {name}({}) {{", parameters.join(", "));
    for (o, object) in source.objects.iter().enumerate().filter(|(_, o)| o.space == Space::Shared) {
        let _ = write!(
            out,
            " __shared__ {} moire_s{program}_{o}; {0}* x{o} = &moire_s{program}_{o}; asm volatile(\"\" :: \"l\"(x{o}) : \"memory\");",
            ty(object.bits)
        );
    }
    for (r, register) in code.registers.iter().enumerate() {
        let _ = write!(out, " {} r{r} = 0;", ty(register.bits));
    }
    Printer { source }.steps(out, &code.body);
    for r in 0..code.registers.len() {
        let _ = write!(out, " *o{thread}_{r} = r{r};");
    }
    out.push_str(" }\n");
}

fn ty(bits: u8) -> &'static str {
    match bits {
        8 => "unsigned char",
        16 => "unsigned short",
        32 => "unsigned int",
        64 => "unsigned long long",
        _ => "unsigned __int128",
    }
}

struct Printer<'s> {
    source: &'s Source,
}

impl Printer<'_> {
    fn steps(&self, out: &mut String, all: &[Step]) {
        for step in all {
            if let Step::If { register, equals, then } = step {
                let _ = write!(out, " if (r{register} == {equals}u) {{");
                self.steps(out, then);
                out.push_str(" }");
            } else {
                out.push_str(&self.step(step));
            }
        }
    }

    fn step(&self, step: &Step) -> String {
        let width = |object: &usize| self.source.objects.get(*object).map_or(32, |o| o.bits);
        match step {
            Step::Load { dst, object, access } => match access {
                Access::Plain => format!(" r{dst} = *x{object};"),
                access if legacy(*access, width(object)) => {
                    format!(" r{dst} = *(volatile {}*)x{object};", ty(width(object)))
                }
                access => format!(" __nv_atomic_load(x{object}, &r{dst}, {});", how(*access)),
            },
            Step::Store { object, value, access } => {
                let (ty, value) = (ty(width(object)), self.value(*value));
                match access {
                    Access::Plain => format!(" *x{object} = {value};"),
                    access if legacy(*access, width(object)) => {
                        format!(" *(volatile {ty}*)x{object} = {value};")
                    }
                    access => {
                        let how = how(*access);
                        format!(" {{ {ty} w = {value}; __nv_atomic_store(x{object}, &w, {how}); }}")
                    }
                }
            }
            Step::Update(u) => {
                let (ty, value, object) = (ty(width(&u.object)), self.value(u.value), u.object);
                let how = format!("{}, {}", order(u.order), scope(u.scope));
                if u.op == AtomOp::Exch {
                    let old = u.dst.map_or("old".to_owned(), |d| format!("r{d}"));
                    let declared = if u.dst.is_none() { format!("{ty} old; ") } else { String::new() };
                    return format!(
                        " {{ {ty} w = {value}; {declared}__nv_atomic_exchange(x{object}, &w, &{old}, {how}); }}"
                    );
                }
                let dst = u.dst.map_or(String::new(), |d| format!("r{d} = "));
                format!(" {dst}__nv_atomic_fetch_{}(x{object}, ({ty}){value}, {how});", update(u.op))
            }
            Step::Cas(c) => {
                let (ty, desired, object) = (ty(width(&c.object)), self.value(c.desired), c.object);
                let orders = format!("{}, {}, {}", order(c.success), order(c.failure), scope(c.scope));
                format!(
                    " {{ {ty} w = {desired}; r{dst} = {}; \
                     __nv_atomic_compare_exchange(x{object}, &r{dst}, &w, false, {orders}); }}",
                    c.expected,
                    dst = c.dst,
                )
            }
            Step::Fence { order: o, scope: s } => {
                format!(" __nv_atomic_thread_fence({}, {});", order(*o), scope(*s))
            }
            Step::If { .. } => String::new(),
        }
    }

    fn value(&self, value: Value) -> String {
        match value {
            Value::Number(n) if n > u64::from(u32::MAX) => format!("{n}ull"),
            Value::Number(n) => format!("{n}u"),
            Value::Register(r) => format!("r{r}"),
        }
    }
}

/// Whether an access is printed as a volatile one.
fn legacy(access: Access, bits: u8) -> bool {
    matches!(access, Access::Atomic { order: Order::Relaxed, scope: Scope::Sys, volatile: true })
        && bits <= 64
}

fn how(access: Access) -> String {
    match access {
        Access::Plain => String::new(),
        Access::Atomic { order: o, scope: s, .. } => format!("{}, {}", order(o), scope(s)),
    }
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Relaxed => "__NV_ATOMIC_RELAXED",
        Order::Acquire => "__NV_ATOMIC_ACQUIRE",
        Order::Release => "__NV_ATOMIC_RELEASE",
        Order::AcqRel => "__NV_ATOMIC_ACQ_REL",
        Order::SeqCst => "__NV_ATOMIC_SEQ_CST",
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "__NV_THREAD_SCOPE_BLOCK",
        Scope::Cluster => "__NV_THREAD_SCOPE_CLUSTER",
        Scope::Gpu => "__NV_THREAD_SCOPE_DEVICE",
        Scope::Sys => "__NV_THREAD_SCOPE_SYSTEM",
    }
}

/// The name of an update that is no exchange.
pub(crate) fn update(op: AtomOp) -> &'static str {
    match op {
        AtomOp::And => "and",
        AtomOp::Or => "or",
        AtomOp::Xor => "xor",
        AtomOp::Min => "min",
        AtomOp::Max => "max",
        _ => "add",
    }
}

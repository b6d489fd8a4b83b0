//! The rules that a source program obeys. A program that breaks none can be lowered and printed for every compiler.

use crate::limits::{CONDITION_NODES, NAME_BYTES, NESTING, OBJECTS, PLACE, REGISTERS, STEPS, THREADS};
use crate::syntax::{Access, Expr, Order, Source, Space, Step, Term, Thread, Value};
use crate::walk;
use moire_program::ir::{AtomOp, Placement};
use std::collections::BTreeSet;

/// Widths of objects in bits.
pub const WIDTHS: [u8; 5] = [8, 16, 32, 64, 128];

/// Names that mean something else to a printer or to the lowering.
const RESERVED: [&str; 7] = ["if", "fence", "store", "load", "cas", "source", "exists"];

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", place(*thread))]
pub struct Fault {
    /// The thread at fault, by position; `None` if the fault is about the whole program.
    pub thread: Option<usize>,
    /// The rule in words, lower case and without a full stop.
    pub what: String,
}

fn place(thread: Option<usize>) -> String {
    thread.map_or(String::new(), |t| format!("P{t}: "))
}

/// All broken rules.
pub fn faults(source: &Source) -> Vec<Fault> {
    let mut out = Vec::new();
    let mut say = |thread: Option<usize>, what: String| out.push(Fault { thread, what });
    if source.threads.is_empty() || source.threads.len() > THREADS {
        say(None, format!("a source program has 1 to {THREADS} threads"));
    }
    objects(source, &mut |what| say(None, what));
    let steps: usize = source.threads.iter().map(|t| walk::count(&t.body)).sum();
    if steps > STEPS {
        say(None, format!("a source program has at most {STEPS} steps"));
    }
    for (t, thread) in source.threads.iter().enumerate() {
        threads(source, thread, &mut |what| say(Some(t), what));
    }
    if let Some(condition) = &source.condition {
        let mut nodes = 0;
        expression(source, &condition.expr, &mut nodes, &mut |what| say(None, what));
    }
    out
}

fn objects(source: &Source, say: &mut dyn FnMut(String)) {
    if source.objects.len() > OBJECTS {
        say(format!("a source program has at most {OBJECTS} objects"));
    }
    let mut names = BTreeSet::new();
    for object in &source.objects {
        name(&object.name, &mut names, say);
        if !WIDTHS.contains(&object.bits) {
            say(format!("`{}` has a width of {} bits; it is 8, 16, 32, 64 or 128", object.name, object.bits));
        }
        if !fits(object.init, object.bits) {
            say(format!("{} does not fit the {} bits of `{}`", object.init, object.bits, object.name));
        }
        if object.space == Space::Shared && object.init != 0 {
            say(format!("`{}` is in shared memory, which has no initial value but 0", object.name));
        }
    }
}

fn name<'s>(name: &'s str, seen: &mut BTreeSet<&'s str>, say: &mut dyn FnMut(String)) {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts || !name.chars().all(letter) || name.len() > NAME_BYTES || RESERVED.contains(&name) {
        say(format!("`{name}` is no name: lower case letters, digits and _, at most {NAME_BYTES} bytes"));
    }
    if !seen.insert(name) {
        say(format!("`{name}` is declared twice"));
    }
}

fn fits(n: u64, bits: u8) -> bool {
    bits >= 64 || n >> bits == 0
}

fn threads(source: &Source, thread: &Thread, say: &mut dyn FnMut(String)) {
    let Placement { gpu, cluster, cta, .. } = thread.place;
    if (Placement { gpu, cluster, cta, ..Placement::default() }) != thread.place
        || gpu.max(cluster).max(cta) > PLACE
    {
        say(format!("a place is a gpu, a cluster and a cta, each numbered 0 to {PLACE}"));
    }
    if thread.registers.len() > REGISTERS {
        say(format!("a thread has at most {REGISTERS} registers"));
    }
    let mut names = BTreeSet::new();
    thread.registers.iter().for_each(|r| name(&r.name, &mut names, say));
    let mut written = vec![false; thread.registers.len()];
    block(source, thread, &thread.body, 0, &mut written, say);
    if written.contains(&false) {
        say("a register that no step writes".to_owned());
    }
}

fn block(
    source: &Source,
    thread: &Thread,
    steps: &[Step],
    depth: usize,
    written: &mut [bool],
    say: &mut dyn FnMut(String),
) {
    if depth > NESTING {
        say(format!("`if` may be nested {NESTING} deep"));
        return;
    }
    for each in steps {
        if let Some(read) = walk::reads(each)
            && !written.get(read).copied().unwrap_or(false)
        {
            say("a register is read that no earlier step writes".to_owned());
        }
        step(source, thread, each, say);
        if let Some(slot) = each.dst().and_then(|d| written.get_mut(d)) {
            *slot = true;
        }
        if let Step::If { register, equals, then } = each {
            if thread.registers.get(*register).is_some_and(|r| !fits(*equals, r.bits)) {
                say(format!("{equals} does not fit the register it is compared with"));
            }
            block(source, thread, then, depth + 1, written, say);
        }
    }
}

fn step(source: &Source, thread: &Thread, step: &Step, say: &mut dyn FnMut(String)) {
    if let Step::Fence { order: Order::Relaxed, .. } = step {
        say("a fence is not relaxed".to_owned());
    }
    let Some(at) = step.object() else { return };
    let Some(object) = source.objects.get(at) else {
        say("a step names no object".to_owned());
        return;
    };
    let same = |r: usize| thread.registers.get(r).is_some_and(|r| r.bits == object.bits);
    if step.dst().is_some_and(|d| !same(d)) {
        say(format!("a register has another width than `{}`, from which it is loaded", object.name));
    }
    let mut value = |v: Value| match v {
        Value::Number(n) if !fits(n, object.bits) => {
            say(format!("{n} does not fit the {} bits of `{}`", object.bits, object.name));
        }
        Value::Register(r) if !same(r) => {
            say(format!("a register has another width than `{}`, to which it is stored", object.name));
        }
        _ => {}
    };
    match step {
        Step::Load { access: Access::Atomic { order, .. }, .. } => {
            if matches!(order, Order::Release | Order::AcqRel) {
                say(format!("a load is not {}", order.word()));
            }
        }
        Step::Store { value: v, access, .. } => {
            value(*v);
            if let Access::Atomic { order: order @ (Order::Acquire | Order::AcqRel), .. } = access {
                say(format!("a store is not {}", order.word()));
            }
        }
        Step::Update(u) => {
            value(u.value);
            if object.bits == 128 && u.op != AtomOp::Exch {
                say("of 128 bits only loads, stores and exchanges are atomic".to_owned());
            }
            if matches!(u.op, AtomOp::Sub | AtomOp::Inc | AtomOp::Dec | AtomOp::Cas) {
                say("an update is add, and, or, xor, min, max or exch".to_owned());
            }
        }
        Step::Cas(c) => {
            value(c.desired);
            value(Value::Number(c.expected));
            if matches!(c.failure, Order::Release | Order::AcqRel) {
                say(format!("a failed compare-exchange is not {}", c.failure.word()));
            }
        }
        Step::Load { .. } | Step::Fence { .. } | Step::If { .. } => {}
    }
}

fn expression(source: &Source, expr: &Expr, nodes: &mut usize, say: &mut dyn FnMut(String)) {
    *nodes += 1;
    if *nodes > CONDITION_NODES {
        return;
    }
    match expr {
        Expr::Is(Term::Register(t, r), n) => match source.threads.get(*t).and_then(|t| t.registers.get(*r)) {
            None => say("the condition names no register".to_owned()),
            Some(register) if !fits(*n, register.bits) => {
                say(format!("{n} does not fit the {} bits of `{}`", register.bits, register.name));
            }
            Some(_) => {}
        },
        Expr::Is(Term::Object(o), n) => match source.objects.get(*o) {
            None => say("the condition names no object".to_owned()),
            Some(object) if object.space == Space::Shared => {
                say(format!("`{}` is in shared memory: each CTA has its own", object.name));
            }
            Some(object) if !fits(*n, object.bits) => {
                say(format!("{n} does not fit the {} bits of `{}`", object.bits, object.name));
            }
            Some(_) => {}
        },
        Expr::Not(one) => expression(source, one, nodes, say),
        Expr::And(all) | Expr::Or(all) => {
            if all.is_empty() {
                say("an empty conjunction or disjunction".to_owned());
            }
            all.iter().for_each(|e| expression(source, e, nodes, say));
        }
    }
}

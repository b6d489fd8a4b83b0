//! Prints source programs.

use super::read::{SCOPES, SPACES, UPDATES};
use crate::syntax::{Access, Expr, Source, Space, Step, Term, Thread, Value};
use moire_program::ir::{AtomOp, Quantifier, Scope};
use std::fmt::Write;

/// The text of a program.
pub fn print(source: &Source) -> String {
    let title: String = source.name.chars().filter(|c| !c.is_control() && *c != '"').collect();
    let mut out = format!("source \"{title}\"\n");
    for object in &source.objects {
        let space = space(object.space);
        let init = if object.init == 0 { String::new() } else { format!(" = {}", object.init) };
        let _ = writeln!(out, "{space} .b{} {}{init};", object.bits, object.name);
    }
    for (t, thread) in source.threads.iter().enumerate() {
        let p = &thread.place;
        let _ = writeln!(out, "P{t} (gpu {}, cluster {}, cta {}) {{", p.gpu, p.cluster, p.cta);
        steps(&mut out, source, thread, &thread.body, 1);
        out.push_str("}\n");
    }
    if let Some(condition) = &source.condition {
        let word = match condition.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::ForAll => "forall",
        };
        let _ = writeln!(out, "{word} ({})", expression(source, &condition.expr, true));
    }
    out
}

fn steps(out: &mut String, source: &Source, thread: &Thread, all: &[Step], depth: usize) {
    for step in all {
        let indent = "  ".repeat(depth);
        if let Step::If { register, equals, then } = step {
            let _ = writeln!(out, "{indent}if {} == {equals} {{", register_name(thread, *register));
            steps(out, source, thread, then, depth + 1);
            let _ = writeln!(out, "{indent}}}");
        } else {
            let _ = writeln!(out, "{indent}{};", line(source, thread, step));
        }
    }
}

/// A step that is no `if`, without its semicolon.
pub(crate) fn line(source: &Source, thread: &Thread, step: &Step) -> String {
    let object = |o: usize| source.objects.get(o).map_or("?", |o| o.name.as_str());
    let value = |v: Value| match v {
        Value::Number(n) => n.to_string(),
        Value::Register(r) => register_name(thread, r).to_owned(),
    };
    match step {
        Step::Load { dst, object: o, access: a } => {
            format!("{} = load{} {}", register_name(thread, *dst), access(*a), object(*o))
        }
        Step::Store { object: o, value: v, access: a } => {
            format!("store{} {}, {}", access(*a), object(*o), value(*v))
        }
        Step::Update(u) => {
            let dst = u.dst.map_or(String::new(), |d| format!("{} = ", register_name(thread, d)));
            let (order, scope) = (u.order.word(), scope(u.scope));
            format!("{dst}{}.{order}.{scope} {}, {}", update(u.op), object(u.object), value(u.value))
        }
        Step::Cas(c) => {
            let orders = format!("{}.{}.{}", c.success.word(), c.failure.word(), scope(c.scope));
            let (dst, desired) = (register_name(thread, c.dst), value(c.desired));
            format!("{dst} = cas.{orders} {}, {}, {desired}", object(c.object), c.expected)
        }
        Step::Fence { order, scope: s } => format!("fence.{}.{}", order.word(), scope(*s)),
        Step::If { .. } => String::new(),
    }
}

fn register_name(thread: &Thread, register: usize) -> &str {
    thread.registers.get(register).map_or("?", |r| r.name.as_str())
}

fn access(access: Access) -> String {
    match access {
        Access::Plain => ".plain".to_owned(),
        Access::Atomic { order, scope: s, volatile } => {
            let volatile = if volatile { ".volatile" } else { "" };
            format!("{volatile}.{}.{}", order.word(), scope(s))
        }
    }
}

/// The name of a space.
pub(crate) fn space(space: Space) -> &'static str {
    SPACES.iter().find(|(_, s)| *s == space).map_or("", |(name, _)| name)
}

/// The name of a scope.
pub(crate) fn scope(scope: Scope) -> &'static str {
    SCOPES.iter().find(|(_, s)| *s == scope).map_or("", |(name, _)| name)
}

/// The name of an update.
pub(crate) fn update(op: AtomOp) -> &'static str {
    UPDATES.iter().find(|(_, o)| *o == op).map_or("", |(name, _)| name)
}

fn expression(source: &Source, expr: &Expr, outermost: bool) -> String {
    let joined = |all: &[Expr], by: &str| {
        let all: Vec<String> = all.iter().map(|e| expression(source, e, false)).collect();
        let text = all.join(by);
        if outermost { text } else { format!("({text})") }
    };
    match expr {
        Expr::Is(Term::Register(t, r), n) => {
            let name = source.threads.get(*t).map_or("?", |thread| register_name(thread, *r));
            format!("P{t}:{name} == {n}")
        }
        Expr::Is(Term::Object(o), n) => {
            format!("[{}] == {n}", source.objects.get(*o).map_or("?", |o| o.name.as_str()))
        }
        Expr::Not(one) => format!("~({})", expression(source, one, true)),
        Expr::And(all) => joined(all, " /\\ "),
        Expr::Or(all) => joined(all, " \\/ "),
    }
}

//! Arranges conditions for a thread order: renames terms, sorts operands, drops names.

use super::arrange::State;
use crate::ir::{CmpOp, Condition, Expr, Program, SymbolId, Term, ThreadId};

/// Renames the conditions of a program after its bodies have been numbered.
pub(super) struct Rename<'a, 'p> {
    program: &'p Program,
    order: &'a [usize],
    state: &'a mut State<'p>,
}

impl<'a, 'p> Rename<'a, 'p> {
    pub(super) fn new(program: &'p Program, order: &'a [usize], state: &'a mut State<'p>) -> Self {
        Rename { program, order, state }
    }

    pub(super) fn conditions(&mut self) -> Vec<Condition> {
        let program = self.program;
        let mut all: Vec<Condition> = program
            .conditions
            .iter()
            .map(|c| Condition { name: String::new(), quantifier: c.quantifier, expr: self.expr(&c.expr) })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    pub(super) fn filter(&mut self) -> Option<Expr> {
        let program = self.program;
        program.filter.as_ref().map(|f| self.expr(f))
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        match expr {
            Expr::Bool(b) => Expr::Bool(*b),
            Expr::Not(inner) => Expr::Not(Box::new(self.expr(inner))),
            Expr::And(all) => {
                let mut flat = Vec::new();
                for e in all {
                    match self.expr(e) {
                        Expr::And(inner) => flat.extend(inner),
                        other => flat.push(other),
                    }
                }
                tidy(flat, Expr::And)
            }
            Expr::Or(all) => {
                let mut flat = Vec::new();
                for e in all {
                    match self.expr(e) {
                        Expr::Or(inner) => flat.extend(inner),
                        other => flat.push(other),
                    }
                }
                tidy(flat, Expr::Or)
            }
            Expr::Cmp(op, a, b) => {
                let (op, a, b) = if matches!(a, Term::Const(_)) { (mirror(*op), b, a) } else { (*op, a, b) };
                Expr::Cmp(op, self.term(a), self.term(b))
            }
        }
    }

    fn term(&mut self, term: &Term) -> Term {
        match *term {
            Term::Reg(thread, reg) => {
                let reg = self.state.reg(thread.index(), reg);
                Term::Reg(self.thread(thread), reg)
            }
            Term::Mem { symbol, offset, bytes, thread } => {
                let symbol = self.state.content(symbol);
                Term::Mem { symbol, offset, bytes, thread: thread.map(|t| self.representative(t)) }
            }
            Term::Const(n) => {
                let value = self.state.value(i128::from(n));
                Term::Const(i64::try_from(value).unwrap_or(n))
            }
        }
    }

    fn thread(&self, thread: ThreadId) -> ThreadId {
        let at = self.order.iter().position(|&t| t == thread.index());
        ThreadId::at(at.expect("an order has every thread of its program"))
    }

    /// The first thread of the CTA of `thread`.
    fn representative(&self, thread: ThreadId) -> ThreadId {
        let place = self.program.threads[thread.index()].place;
        let first = self.order.iter().position(|&t| self.program.threads[t].place.same_cta(&place));
        first.and_then(|a| u16::try_from(a).ok()).map_or_else(|| self.thread(thread), ThreadId)
    }
}

fn tidy(mut all: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    all.sort();
    all.dedup();
    if all.len() == 1 { all.remove(0) } else { join(all) }
}

fn mirror(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::Le => CmpOp::Ge,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::Ge => CmpOp::Le,
        same => same,
    }
}

/// Applies `index` to every symbol in the conditions and the filter.
pub(super) fn map_symbols(program: &mut Program, index: &dyn Fn(SymbolId) -> SymbolId) {
    for condition in &mut program.conditions {
        map_expr(&mut condition.expr, index);
    }
    if let Some(filter) = &mut program.filter {
        map_expr(filter, index);
    }
}

fn map_expr(expr: &mut Expr, index: &dyn Fn(SymbolId) -> SymbolId) {
    match expr {
        Expr::Bool(_) => {}
        Expr::Not(inner) => map_expr(inner, index),
        Expr::And(all) | Expr::Or(all) => all.iter_mut().for_each(|e| map_expr(e, index)),
        Expr::Cmp(_, a, b) => {
            for term in [a, b] {
                if let Term::Mem { symbol, .. } = term {
                    *symbol = index(*symbol);
                }
            }
        }
    }
}

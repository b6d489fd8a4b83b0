//! The passes that remove parts of a program (threads, instructions, conditions, locations, dependencies), and the table
//! of all passes.

use super::{Pass, tensor, weaken};
use crate::edit::retarget;
use crate::ir::{
    Address, AluOp, AtomOp, Condition, Expr, Guard, LoadOrder, Op, Operand, Program, Reg, RmwOrder,
    StoreOrder, SymbolId, Term, ThreadId, Ty,
};
use crate::registers;

type Candidates<'p> = Box<dyn Iterator<Item = Program> + 'p>;

pub(super) const ALL: &[Pass] = &[
    Pass { name: "drop-thread", candidates: drop_thread },
    Pass { name: "drop-instructions", candidates: drop_instructions },
    Pass { name: "drop-instruction", candidates: drop_instruction },
    Pass { name: "drop-conjunct", candidates: drop_conjunct },
    Pass { name: "drop-condition", candidates: drop_condition },
    Pass { name: "merge-locations", candidates: merge_locations },
    Pass { name: "drop-guard", candidates: drop_guard },
    Pass { name: "drop-dependency", candidates: drop_dependency },
    Pass { name: "split-rmw", candidates: split_rmw },
    Pass { name: "drop-alias", candidates: drop_alias },
    Pass { name: "simplify-places", candidates: weaken::simplify_places },
    Pass { name: "weaken-order", candidates: weaken::weaken_order },
    Pass { name: "move-scope", candidates: weaken::move_scope },
    Pass { name: "shrink-vector", candidates: weaken::shrink_vector },
    Pass { name: "shrink-type", candidates: weaken::shrink_type },
    Pass { name: "plain-tensor", candidates: tensor::plain_tensor },
    Pass { name: "plain-constants", candidates: weaken::plain_constants },
    Pass { name: "plain-space", candidates: weaken::plain_space },
    Pass { name: "shrink-object", candidates: weaken::shrink_object },
    Pass { name: "swap-instructions", candidates: swap_instructions },
];

fn drop_thread(program: &Program) -> Candidates<'_> {
    Box::new(
        (0..program.threads.len()).filter(|_| program.threads.len() > 1).map(|t| without_thread(program, t)),
    )
}

pub(super) fn without_thread(program: &Program, t: usize) -> Program {
    let mut next = program.clone();
    next.threads.remove(t);
    let keep = |id: ThreadId| match id.index().cmp(&t) {
        std::cmp::Ordering::Less => Some(id),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(ThreadId(id.0 - 1)),
    };
    retain_terms(&mut next, &|term| match term {
        Term::Reg(id, reg) => keep(id).map(|id| Term::Reg(id, reg)),
        Term::Mem { symbol, offset, bytes, thread: Some(id) } => {
            keep(id).map(|id| Term::Mem { symbol, offset, bytes, thread: Some(id) })
        }
        other => Some(other),
    });
    next
}

/// Maps the terms of all conditions. A comparison with a term that `map` drops is removed.
fn retain_terms(program: &mut Program, map: &dyn Fn(Term) -> Option<Term>) {
    fn go(expr: &Expr, map: &dyn Fn(Term) -> Option<Term>) -> Option<Expr> {
        let list = |all: &[Expr]| all.iter().filter_map(|e| go(e, map)).collect::<Vec<_>>();
        Some(match expr {
            Expr::Bool(b) => Expr::Bool(*b),
            Expr::Not(inner) => Expr::Not(Box::new(go(inner, map)?)),
            Expr::And(all) => Some(list(all)).filter(|l| !l.is_empty()).map(Expr::And)?,
            Expr::Or(all) => Some(list(all)).filter(|l| !l.is_empty()).map(Expr::Or)?,
            Expr::Cmp(op, a, b) => Expr::Cmp(*op, map(*a)?, map(*b)?),
        })
    }
    for condition in &mut program.conditions {
        condition.expr = go(&condition.expr, map).unwrap_or(Expr::Bool(true));
    }
    program.filter = program.filter.as_ref().and_then(|f| go(f, map));
}

fn drop_instruction(program: &Program) -> Candidates<'_> {
    Box::new(places(program).map(|(t, at)| without(program, t, at, at + 1)))
}

/// Drops runs of eight to two instructions, long runs first: this removes a loop or a dependency as a whole.
fn drop_instructions(program: &Program) -> Candidates<'_> {
    Box::new((2..=8usize).rev().flat_map(move |n| {
        places(program)
            .filter(move |&(t, at)| at + n <= program.threads[t].body.len())
            .map(move |(t, at)| without(program, t, at, at + n))
    }))
}

/// Thread and index of every instruction.
pub(super) fn places(program: &Program) -> impl Iterator<Item = (usize, usize)> + '_ {
    program.threads.iter().enumerate().flat_map(|(t, thread)| (0..thread.body.len()).map(move |at| (t, at)))
}

pub(crate) fn without(program: &Program, t: usize, from: usize, to: usize) -> Program {
    let mut next = program.clone();
    let thread = &mut next.threads[t];
    thread.body.drain(from..to);
    retarget(thread, |at| if at >= to { at - (to - from) } else { at.min(from) });
    next
}

fn drop_condition(program: &Program) -> Candidates<'_> {
    let each = (0..program.conditions.len()).map(|c| {
        let mut next = program.clone();
        next.conditions.remove(c);
        next
    });
    let filter = program.filter.iter().map(|_| Program { filter: None, ..program.clone() });
    let resident = program.launched.then(|| Program { launched: false, ..program.clone() });
    Box::new(each.chain(filter).chain(resident))
}

fn drop_conjunct(program: &Program) -> Candidates<'_> {
    Box::new(program.conditions.iter().enumerate().flat_map(move |(c, condition)| {
        let count = match &condition.expr {
            Expr::And(all) | Expr::Or(all) if all.len() > 1 => all.len(),
            _ => 0,
        };
        (0..count).map(move |k| {
            let mut next = program.clone();
            let Condition { expr: Expr::And(all) | Expr::Or(all), .. } = &mut next.conditions[c] else {
                return next;
            };
            all.remove(k);
            next
        })
    }))
}

/// Redirects all uses of one location's name to another location of the same space and size.
fn merge_locations(program: &Program) -> Candidates<'_> {
    let pairs = (0..program.symbols.len()).flat_map(move |a| (0..a).map(move |b| (a, b)));
    Box::new(pairs.filter_map(move |(a, b)| {
        let (x, y) = (&program.symbols[a], &program.symbols[b]);
        let (ox, oy) = (&program.objects[x.object.index()], &program.objects[y.object.index()]);
        let alike =
            x.object != y.object && (ox.space, ox.bytes) == (oy.space, oy.bytes) && x.proxy == y.proxy;
        alike.then(|| redirect(program, a, b))
    }))
}

fn drop_alias(program: &Program) -> Candidates<'_> {
    let pairs = (0..program.symbols.len()).flat_map(move |a| (0..program.symbols.len()).map(move |b| (a, b)));
    Box::new(pairs.filter_map(move |(a, b)| {
        let (x, y) = (&program.symbols[a], &program.symbols[b]);
        let alike = a != b && x.object == y.object && x.proxy == y.proxy && x.multimem == y.multimem;
        alike.then(|| redirect(program, a, b))
    }))
}

fn redirect(program: &Program, from: usize, to: usize) -> Program {
    let mut next = program.clone();
    let Ok(target) = u16::try_from(to).map(SymbolId) else { return next };
    let map = |s: SymbolId| if s.index() == from { target } else { s };
    for thread in &mut next.threads {
        for instr in &mut thread.body {
            registers::rewrite(&mut instr.op, &mut |r| r, &mut |o| match o {
                Operand::Address(s) => Operand::Address(map(s)),
                other => other,
            });
        }
        for reg in &mut thread.regs {
            if let crate::ir::RegInit::Address(s) = &mut reg.init {
                *s = map(*s);
            }
        }
    }
    retain_terms(&mut next, &|term| {
        Some(match term {
            Term::Mem { symbol, offset, bytes, thread } => {
                Term::Mem { symbol: map(symbol), offset, bytes, thread }
            }
            other => other,
        })
    });
    next
}

fn drop_guard(program: &Program) -> Candidates<'_> {
    Box::new(
        places(program)
            .filter(|&(t, at)| {
                let instr = &program.threads[t].body[at];
                // An unguarded backward branch never ends.
                instr.guard.is_some() && !matches!(instr.op, Op::Bra { target } if target <= at)
            })
            .map(|(t, at)| {
                let mut next = program.clone();
                next.threads[t].body[at].guard = None::<Guard>;
                next
            }),
    )
}

/// Replaces registers: in an address by the symbol, in a stored value by the constant 1, in a sum by 0.
fn drop_dependency(program: &Program) -> Candidates<'_> {
    Box::new(places(program).flat_map(move |(t, at)| {
        let thread = &program.threads[t];
        let mut found = Vec::new();
        let base_symbol = |reg: Reg| {
            thread.body[..at].iter().rev().find_map(|i| {
                let Op::Mov { dst, src: Operand::Address(symbol), .. } = &i.op else { return None };
                (*dst == reg).then_some(*symbol)
            })
        };
        if let Some((_, Address { base: Operand::Reg(reg), .. })) = thread.body[at].op.place() {
            found.extend(base_symbol(reg).map(|s| (reg, Operand::Address(s))));
        }
        if let Op::Alu { op: AluOp::Add, a: Operand::Reg(r), .. } = &thread.body[at].op {
            found.push((*r, Operand::Imm(0)));
        }
        // An integer is no float, and no pair of halves that an update adds.
        let float = |ty: &Ty| matches!(ty, Ty::F(_));
        if let Op::Store { src, ty, .. } = &thread.body[at].op
            && !float(ty)
        {
            found
                .extend(src.iter().filter_map(|s| {
                    if let Operand::Reg(r) = s { Some((*r, Operand::Imm(1))) } else { None }
                }));
        }
        if let Op::Rmw { a: Operand::Reg(r), ty, .. } | Op::Rmw { b: Some(Operand::Reg(r)), ty, .. } =
            &thread.body[at].op
            && !float(ty)
            && !ty.packed()
        {
            found.push((*r, Operand::Imm(1)));
        }
        found.into_iter().map(move |(reg, by)| {
            let mut next = program.clone();
            registers::rewrite(&mut next.threads[t].body[at].op, &mut |r| r, &mut |o| {
                if o == Operand::Reg(reg) { by } else { o }
            });
            next
        })
    }))
}

/// Replaces an RMW by a load or a store, and a `red` by a store.
fn split_rmw(program: &Program) -> Candidates<'_> {
    Box::new(places(program).flat_map(move |(t, at)| {
        let mut halves = Vec::new();
        if let Op::Rmw { order, scope, proxy, space, op, ty, dst, addr, a, b, .. } =
            &program.threads[t].body[at].op
        {
            // Loads and stores have no halves.
            let ty = if *ty == Ty::F(16) { Ty::B(16) } else { *ty };
            let (acquires, releases) = match order {
                RmwOrder::Relaxed => (false, false),
                RmwOrder::Acquire => (true, false),
                RmwOrder::Release => (false, true),
                RmwOrder::AcqRel | RmwOrder::SeqCst => (true, true),
            };
            if let Some(dst) = dst {
                let order = if acquires { LoadOrder::Acquire(*scope) } else { LoadOrder::Relaxed(*scope) };
                halves.push(Op::Load {
                    order,
                    proxy: *proxy,
                    space: *space,
                    ty,
                    dst: vec![*dst],
                    addr: *addr,
                });
            }
            let order = if releases { StoreOrder::Release(*scope) } else { StoreOrder::Relaxed(*scope) };
            let src = vec![if *op == AtomOp::Cas { b.unwrap_or(*a) } else { *a }];
            halves.push(Op::Store { order, proxy: *proxy, space: *space, ty, addr: *addr, src });
        }
        halves.into_iter().map(move |op| {
            let mut next = program.clone();
            next.threads[t].body[at].op = op;
            next
        })
    }))
}

/// Swaps neighbours. The size order then brings independent instructions into one order.
fn swap_instructions(program: &Program) -> Candidates<'_> {
    Box::new(places(program).filter_map(move |(t, at)| {
        let thread = &program.threads[t];
        let second = thread.body.get(at + 1)?;
        let jumps = |op: &Op| matches!(op, Op::Bra { .. } | Op::Exit);
        let target = thread.body.iter().any(|i| matches!(i.op, Op::Bra { target } if target == at + 1));
        if target || jumps(&thread.body[at].op) || jumps(&second.op) {
            return None;
        }
        let mut next = program.clone();
        next.threads[t].body.swap(at, at + 1);
        Some(next)
    }))
}

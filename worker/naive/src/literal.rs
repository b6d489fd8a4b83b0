//! Lanes taken literally: a thread of several lanes that are not joined is so many threads that run one body, each with its own
//! lane number and registers. Conditions on its registers are about its first lane.

use moire_program::ir::{Expr, Program, Term, Thread, ThreadId};

/// The program with a thread for each such lane, in the order of threads, then lanes.
pub(super) fn literal(program: &Program) -> Program {
    let mut out = Program { threads: Vec::new(), ..program.clone() };
    let mut first = Vec::new();
    for thread in &program.threads {
        first.push(ThreadId::at(out.threads.len()));
        out.threads.extend(of(thread));
    }
    let conditions = out.conditions.iter_mut().map(|c| &mut c.expr);
    conditions.chain(&mut out.filter).for_each(|e| moved(e, &first));
    out
}

fn of(thread: &Thread) -> Vec<Thread> {
    if thread.place.joined || thread.place.mask.count_ones() < 2 {
        return vec![thread.clone()];
    }
    let lanes = (0..32u32).filter(|lane| thread.place.mask >> lane & 1 == 1);
    let one = |lane: u32| {
        let mut own = Thread { name: format!("{}/{lane}", thread.name), ..thread.clone() };
        own.place.mask = 1 << lane;
        own
    };
    lanes.map(one).collect()
}

fn moved(expr: &mut Expr, first: &[ThreadId]) {
    match expr {
        Expr::Bool(_) => {}
        Expr::Not(inner) => moved(inner, first),
        Expr::And(all) | Expr::Or(all) => all.iter_mut().for_each(|e| moved(e, first)),
        Expr::Cmp(_, a, b) => {
            for term in [a, b] {
                if let Term::Reg(t, _) | Term::Mem { thread: Some(t), .. } = term {
                    *t = first[t.index()];
                }
            }
        }
    }
}

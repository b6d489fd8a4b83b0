//! The passes that simplify instructions without removing them: orders, scopes, places, vectors, types and constants; and
//! the weight of a program.
//!
//! Contract: the weight of an instruction is its distance from the plainest of its kind, so these steps can make a program
//! smaller. The plainest scope is `.gpu`, PTX's default.

use super::passes::places;
use crate::ir::{
    FenceOrder, LoadOrder, Mbarrier, MbarrierOp, Op, Operand, Order, Placement, Program, Proxy, RmwOrder,
    Scope, Space, StoreOrder, Ty,
};

type Candidates<'p> = Box<dyn Iterator<Item = Program> + 'p>;

/// The weight of a program: of its instructions, their guards, names and conditions.
pub(super) fn weight(program: &Program) -> usize {
    let instrs = program.threads.iter().flat_map(|t| &t.body);
    let ops = instrs.map(|i| op_weight(&i.op) + usize::from(i.guard.is_some()));
    ops.sum::<usize>() + program.symbols.len() + program.conditions.len()
}

fn scope_weight(scope: Scope) -> usize {
    match scope {
        Scope::Gpu => 0,
        Scope::Sys => 1,
        Scope::Cta => 2,
        Scope::Cluster => 3,
    }
}

fn ty_weight(ty: Ty) -> usize {
    match ty {
        Ty::U(32) | Ty::B(32) => 0,
        Ty::U(64) | Ty::B(64) => 1,
        _ => 2,
    }
}

fn load_weight(order: LoadOrder) -> usize {
    match order {
        LoadOrder::Weak => 0,
        LoadOrder::Relaxed(s) => 10 + scope_weight(s),
        LoadOrder::Acquire(s) => 20 + scope_weight(s),
        LoadOrder::Volatile => 30,
        LoadOrder::MmioRelaxed => 40,
        LoadOrder::MmioAcquire => 50,
        LoadOrder::SeqCst(s) => 60 + scope_weight(s),
    }
}

fn store_weight(order: StoreOrder) -> usize {
    match order {
        StoreOrder::Weak => 0,
        StoreOrder::Relaxed(s) => 10 + scope_weight(s),
        StoreOrder::Release(s) => 20 + scope_weight(s),
        StoreOrder::Volatile => 30,
        StoreOrder::MmioRelaxed => 40,
        StoreOrder::MmioRelease => 50,
        StoreOrder::SeqCst(s) => 60 + scope_weight(s),
    }
}

fn update_weight(order: RmwOrder, scope: Scope) -> usize {
    let order = match order {
        RmwOrder::Relaxed => 10,
        RmwOrder::Acquire | RmwOrder::Release => 20,
        RmwOrder::AcqRel => 30,
        RmwOrder::SeqCst => 40,
    };
    order + scope_weight(scope)
}

fn fence_weight(order: FenceOrder, scope: Scope) -> usize {
    let order = match order {
        FenceOrder::Acquire | FenceOrder::Release => 10,
        FenceOrder::AcqRel => 20,
        FenceOrder::Sc => 30,
    };
    order + scope_weight(scope)
}

fn mbarrier_weight(m: &Mbarrier) -> usize {
    let of = |relaxed: bool, scope: Scope| 10 * usize::from(!relaxed) + scope_weight(scope);
    match &m.op {
        MbarrierOp::Arrive(arrive) => of(arrive.relaxed, arrive.scope),
        MbarrierOp::Wait(wait) => of(wait.relaxed, wait.scope),
        MbarrierOp::ExpectTx { scope, .. } | MbarrierOp::CompleteTx { scope, .. } => scope_weight(*scope),
        MbarrierOp::Init { .. } | MbarrierOp::Inval => 0,
    }
}

fn op_weight(op: &Op) -> usize {
    let access = |proxy: Proxy, space: Space, ty: Ty, elements: usize| {
        let proxy = if proxy == Proxy::Generic { 0 } else { 100 };
        proxy + usize::from(space != Space::Global) + ty_weight(ty) + 10 * elements
    };
    match op {
        Op::Load { order, proxy, space, ty, dst, .. } => {
            load_weight(*order) + access(*proxy, *space, *ty, dst.len())
        }
        Op::Store { order, proxy, space, ty, src, .. } => {
            store_weight(*order) + access(*proxy, *space, *ty, src.len())
        }
        Op::Rmw { order, scope, proxy, space, ty, .. } => {
            update_weight(*order, *scope) + access(*proxy, *space, *ty, 0)
        }
        Op::MultimemLoad { order, ty, .. } => load_weight(*order) + ty_weight(*ty),
        Op::MultimemStore { order, ty, .. } => store_weight(*order) + ty_weight(*ty),
        Op::MultimemRed { order, scope, ty, .. } => update_weight(*order, *scope) + ty_weight(*ty),
        Op::Fence { order, scope } => fence_weight(*order, *scope),
        Op::ProxyFence(kinds) => 10 * kinds.len(),
        Op::Mbarrier(m) => mbarrier_weight(m),
        Op::ClusterArrive { relaxed } => 10 * usize::from(!relaxed),
        Op::Tcgen05(op) => super::tensor::tcgen05_weight(op),
        Op::AsyncCopy(copy) => super::tensor::copy_weight(copy),
        register_op!() => 0,
        Op::MbarrierInitFence | Op::ProxyOrder(_) | Op::Wgmma(_) | Op::Tile(_) | Op::Control(_) => 0,
        Op::Bar { .. } | Op::ClusterWait | Op::WarpSync { .. } | jump_op!() => 0,
        Op::Book(_) => 0,
    }
}

/// Replaces each operation by each of `by(op)`, one at a time.
fn replace<'p>(program: &'p Program, by: fn(&Op) -> Vec<Op>) -> Candidates<'p> {
    Box::new(places(program).flat_map(move |(t, at)| {
        by(&program.threads[t].body[at].op).into_iter().map(move |op| {
            let mut next = program.clone();
            next.threads[t].body[at].op = op;
            next
        })
    }))
}

/// Orders of each kind, the plainest first.
pub(super) fn weaken_order(program: &Program) -> Candidates<'_> {
    replace(program, |op| {
        let mut own = op.clone();
        let scope = own.scope_mut().map_or(Scope::Sys, |s| *s);
        let form = |n: usize| {
            let mut next = op.clone();
            let found = match next.order_mut()? {
                Order::Load(order) => {
                    let all = [LoadOrder::Weak, LoadOrder::Relaxed(scope), LoadOrder::Acquire(scope)];
                    all.get(n).map(|to| *order = *to)
                }
                Order::Store(order) => {
                    let all = [StoreOrder::Weak, StoreOrder::Relaxed(scope), StoreOrder::Release(scope)];
                    all.get(n).map(|to| *order = *to)
                }
                Order::Update(order) => {
                    let all = [RmwOrder::Relaxed, RmwOrder::Acquire, RmwOrder::Release, RmwOrder::AcqRel];
                    all.get(n).map(|to| *order = *to)
                }
                Order::Reduction(order) => {
                    [RmwOrder::Relaxed, RmwOrder::Release].get(n).map(|to| *order = *to)
                }
                Order::Fence(order) => {
                    let all = [FenceOrder::Acquire, FenceOrder::Release, FenceOrder::AcqRel];
                    all.get(n).map(|to| *order = *to)
                }
                Order::Flag(flag) => (n == 0).then(|| *flag = true),
            };
            found.map(|()| next)
        };
        (0..).map_while(form).collect()
    })
}

/// Changes all scopes of the program at once, then each scope alone. Changing one alone often changes the bug.
pub(super) fn move_scope(program: &Program) -> Candidates<'_> {
    const SCOPES: [Scope; 3] = [Scope::Gpu, Scope::Sys, Scope::Cta];
    let all = SCOPES.into_iter().map(|scope| {
        let mut next = program.clone();
        for instr in next.threads.iter_mut().flat_map(|t| &mut t.body) {
            instr.op.at_scope(scope).into_iter().for_each(|op| instr.op = op);
        }
        next
    });
    let each = replace(program, |op| SCOPES.into_iter().filter_map(|scope| op.at_scope(scope)).collect());
    Box::new(all.chain(each))
}

/// Places all threads in one CTA, one cluster or one GPU; then moves each thread nearer to each other thread.
pub(super) fn simplify_places(program: &Program) -> Candidates<'_> {
    let near = |n: usize, level: usize| {
        let n = u16::try_from(n).expect("a program has few threads");
        let zero = Placement::default();
        match level {
            0 => Placement { warp: n, ..zero },
            1 => Placement { cta: n, ..zero },
            _ => Placement { cluster: n, cta: n, ..zero },
        }
    };
    let all = (0..3usize).map(move |level| {
        let mut next = program.clone();
        next.threads.iter_mut().enumerate().for_each(|(n, t)| t.place = near(n, level));
        next.one_cluster &= level < 2;
        next
    });
    let pairs = (0..program.threads.len()).flat_map(move |a| (0..program.threads.len()).map(move |b| (a, b)));
    let joined = pairs.filter(|(a, b)| a != b).flat_map(move |(a, b)| {
        let (from, to) = (program.threads[a].place, program.threads[b].place);
        // Takes over the whole place of the other thread, or all but the CTA, or all but CTA and cluster.
        [to, Placement { cta: from.cta, ..to }, Placement { cta: from.cta, cluster: from.cluster, ..to }].map(
            |place| {
                let mut next = program.clone();
                next.threads[a].place =
                    Placement { warp: place.warp.saturating_add(1), mask: 0, joined: false, ..place };
                next
            },
        )
    });
    Box::new(all.chain(joined))
}

pub(super) fn shrink_vector(program: &Program) -> Candidates<'_> {
    replace(program, |op| {
        let mut next = op.clone();
        if let Op::Load { dst, .. } = &mut next {
            dst.truncate((dst.len() / 2).max(1));
        } else if let Op::Store { src, .. } = &mut next {
            src.truncate((src.len() / 2).max(1));
        } else if let Op::ProxyFence(kinds) = &mut next {
            kinds.truncate(1);
        }
        Vec::from_iter((next != *op).then_some(next))
    })
}

/// Changes the whole program to 32-bit words. Changing one access alone would only mix sizes.
pub(super) fn shrink_type(program: &Program) -> Candidates<'_> {
    let addresses = program
        .threads
        .iter()
        .flat_map(|t| &t.body)
        .any(|i| matches!(i.op, Op::Mov { src: Operand::Address(_), .. }));
    let mut next = program.clone();
    for instr in next.threads.iter_mut().flat_map(|t| &mut t.body) {
        if let Op::Load { ty, .. }
        | Op::Store { ty, .. }
        | Op::Rmw { ty, .. }
        | Op::Alu { ty, .. }
        | Op::Setp { ty, .. } = &mut instr.op
        {
            *ty = match *ty {
                Ty::U(_) => Ty::U(32),
                Ty::S(_) => Ty::S(32),
                Ty::B(_) => Ty::B(32),
                other => other,
            };
        }
    }
    for condition in &mut next.conditions {
        shrink_terms(&mut condition.expr);
    }
    // Addresses need 64 bits, and each object must hold a 32-bit word.
    let fits = next.objects.iter().all(|o| o.bytes >= 4);
    Box::new((!addresses && fits && next != *program).then_some(next).into_iter())
}

fn shrink_terms(expr: &mut crate::ir::Expr) {
    use crate::ir::{Expr, Term};
    match expr {
        Expr::Bool(_) => {}
        Expr::Not(inner) => shrink_terms(inner),
        Expr::And(all) | Expr::Or(all) => all.iter_mut().for_each(shrink_terms),
        Expr::Cmp(_, a, b) => {
            for term in [a, b] {
                if let Term::Mem { bytes, .. } = term {
                    *bytes = (*bytes).min(4);
                }
            }
        }
    }
}

/// Replaces stored constants by 0, or by 1.
pub(super) fn plain_constants(program: &Program) -> Candidates<'_> {
    replace(program, |op| {
        let mut all = Vec::new();
        for value in [0i128, 1] {
            let mut next = op.clone();
            if let Op::Store { src, .. } = &mut next {
                src.iter_mut()
                    .filter(|s| matches!(s, Operand::Imm(_)))
                    .for_each(|s| *s = Operand::Imm(value));
            } else if let Op::Rmw { a: Operand::Imm(a), .. } = &mut next {
                *a = value;
            }
            if next != *op {
                all.push(next);
            }
        }
        all
    })
}

/// Replaces generic accesses by `.global` ones, if all objects are global.
pub(super) fn plain_space(program: &Program) -> Candidates<'_> {
    let global = program.objects.iter().all(|o| o.space == Space::Global);
    let all = replace(program, |op| {
        let mut next = op.clone();
        if let Op::Load { space: space @ Space::Generic, proxy: Proxy::Generic, .. }
        | Op::Store { space: space @ Space::Generic, proxy: Proxy::Generic, .. }
        | Op::Rmw { space: space @ Space::Generic, proxy: Proxy::Generic, .. } = &mut next
        {
            *space = Space::Global;
        }
        Vec::from_iter((next != *op).then_some(next))
    });
    Box::new(all.filter(move |_| global))
}

/// Halves an object if no access reaches its second half. All addresses must be symbols.
pub(super) fn shrink_object(program: &Program) -> Candidates<'_> {
    let accesses = crate::features::accesses(program);
    // `accesses` leaves asynchronous instructions out.
    let plain = accesses.iter().all(|a| a.symbol.is_some())
        && program.symbols.iter().all(|s| s.multimem.is_empty())
        && program.threads.iter().flat_map(|t| &t.body).all(|i| i.op.extended().is_none());
    // Conditions of generated programs read at most the first 8 bytes. If there are conditions, those bytes stay.
    let judged = !program.conditions.is_empty() || program.filter.is_some();
    Box::new((0..program.objects.len()).filter_map(move |o| {
        let object = &program.objects[o];
        let reach = accesses.iter().filter(|a| {
            a.symbol.and_then(|s| program.symbols.get(s.index())).is_some_and(|s| s.object.index() == o)
        });
        let end = reach.map(|a| a.range.1).max().unwrap_or(1);
        let half = object.bytes / 2;
        if !plain || half == 0 || end > i64::from(half) || (judged && half < 8) {
            return None;
        }
        let mut next = program.clone();
        next.objects[o].bytes = half;
        next.objects[o].init.truncate(half);
        Some(next)
    }))
}

//! Smaller programs: candidates for a reduction, each one step simpler in one place.
//!
//! [`weight`] orders programs. Every candidate is valid and weighs less, so a reduction ends.

use crate::syntax::{Access, Order, Source, Space, Step, Update, Value};
use crate::validate::faults;
use crate::walk;
use moire_program::ir::{AtomOp, Placement, Scope};

/// All smaller programs, the boldest changes first.
pub fn smaller(source: &Source) -> impl Iterator<Item = Source> + use<> {
    let now = weight(source);
    let mut all = Vec::new();
    all.extend((0..source.threads.len()).filter_map(|t| without_thread(source, t)));
    all.extend(steps(source, &mut |_| vec![None]));
    all.extend(steps(source, &mut |step| match step {
        Step::If { then, .. } => vec![Some(then.clone())],
        _ => Vec::new(),
    }));
    all.extend(steps(source, &mut |step| simpler(step).into_iter().map(|s| Some(vec![s])).collect()));
    all.extend(objects(source));
    all.extend(places(source));
    if source.condition.is_some() {
        all.push(Source { condition: None, ..source.clone() });
    }
    all.into_iter().map(tidy).filter(move |s| weight(s) < now && faults(s).is_empty())
}

/// The size of a program, by what a reader has to understand: steps first, then orders, scopes, widths and places.
pub fn weight(source: &Source) -> u64 {
    let mut out = 0;
    for thread in &source.threads {
        out += 1 << 16;
        walk::each(&thread.body, &mut |step| out += (1 << 12) + step_weight(step));
        let p = &thread.place;
        out += u64::from(p.gpu) * 9 + u64::from(p.cluster) * 3 + u64::from(p.cta);
    }
    for object in &source.objects {
        out += 256 + u64::from(object.bits != 32) * (8 + u64::from(object.bits / 8));
        out += u64::from(object.space != Space::Global) * 16 + u64::from(object.init != 0);
    }
    let registers: usize = source.threads.iter().map(|t| t.registers.len()).sum();
    out + registers as u64 + u64::from(source.condition.is_some())
}

fn step_weight(step: &Step) -> u64 {
    let number = |v: Value| match v {
        Value::Number(n) => 64 - u64::from(n.leading_zeros()),
        Value::Register(_) => 66,
    };
    match step {
        Step::Load { access, .. } => access_weight(*access),
        Step::Store { access, value, .. } => access_weight(*access) + number(*value),
        Step::Update(u) => {
            let exchange = u64::from(u.op != AtomOp::Exch);
            300 + order_weight(u.order) + scope_weight(u.scope) + number(u.value) + exchange
        }
        Step::Cas(c) => {
            let orders = order_weight(c.success) + order_weight(c.failure);
            600 + orders + scope_weight(c.scope) + number(c.desired) + number(Value::Number(c.expected))
        }
        Step::Fence { order, scope } => order_weight(*order) + scope_weight(*scope),
        Step::If { equals, .. } => 200 + number(Value::Number(*equals)),
    }
}

fn access_weight(access: Access) -> u64 {
    match access {
        Access::Plain => 0,
        Access::Atomic { order, scope, volatile } => {
            8 + order_weight(order) + scope_weight(scope) + u64::from(volatile) * 4
        }
    }
}

fn order_weight(order: Order) -> u64 {
    match order {
        Order::Relaxed => 0,
        Order::Acquire | Order::Release => 16,
        Order::AcqRel => 32,
        Order::SeqCst => 48,
    }
}

/// The usual scope is that of one GPU.
fn scope_weight(scope: Scope) -> u64 {
    match scope {
        Scope::Gpu => 0,
        Scope::Sys => 1,
        Scope::Cta => 2,
        Scope::Cluster => 3,
    }
}

fn without_thread(source: &Source, t: usize) -> Option<Source> {
    (source.threads.len() > 1).then(|| {
        let mut next = source.clone();
        next.threads.remove(t);
        // The condition names threads by position.
        next.condition = None;
        next
    })
}

/// For each step, the programs in which `to` replaces it; `None` stands for nothing in its place.
fn steps(source: &Source, to: &mut dyn FnMut(&Step) -> Vec<Option<Vec<Step>>>) -> Vec<Source> {
    let mut out = Vec::new();
    for t in 0..source.threads.len() {
        for n in 0..walk::count(&source.threads[t].body) {
            let mut found = None;
            let mut at = 0;
            walk::each(&source.threads[t].body, &mut |step| {
                if at == n {
                    found = Some(step);
                }
                at += 1;
            });
            let Some(step) = found else { continue };
            for new in to(step) {
                let mut next = source.clone();
                replace(&mut next.threads[t].body, &mut n.clone(), &new.unwrap_or_default());
                out.push(next);
            }
        }
    }
    out
}

/// Replaces step number `n`, counted as [`walk::each`] does; returns whether it was here.
fn replace(steps: &mut Vec<Step>, n: &mut usize, by: &[Step]) -> bool {
    let mut at = 0;
    while at < steps.len() {
        if *n == 0 {
            steps.splice(at..=at, by.iter().cloned());
            return true;
        }
        *n -= 1;
        if let Step::If { then, .. } = &mut steps[at]
            && replace(then, n, by)
        {
            return true;
        }
        at += 1;
    }
    false
}

/// The next simpler steps in the place of a step.
fn simpler(step: &Step) -> Vec<Step> {
    let mut out = Vec::new();
    let mut with = |change: &mut dyn FnMut(&mut Step)| {
        let mut next = step.clone();
        change(&mut next);
        out.push(next);
    };
    for order in [Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel] {
        with(&mut |s| set_order(s, order));
        with(&mut |s| {
            if let Step::Cas(c) = s {
                c.failure = order;
            }
        });
    }
    for scope in [Scope::Gpu, Scope::Sys, Scope::Cta] {
        with(&mut |s| set_scope(s, scope));
    }
    with(&mut |s| {
        if let Step::Load { access: Access::Atomic { volatile, .. }, .. }
        | Step::Store { access: Access::Atomic { volatile, .. }, .. } = s
        {
            *volatile = false;
        }
    });
    with(&mut |s| {
        if let Step::Load { access, .. } | Step::Store { access, .. } = s {
            *access = Access::Plain;
        }
    });
    for n in [0, 1, 2] {
        with(&mut |s| match s {
            Step::Store { value, .. } => *value = Value::Number(n),
            Step::Update(u) => u.value = Value::Number(n),
            Step::Cas(c) => c.desired = Value::Number(n),
            _ => {}
        });
        with(&mut |s| {
            if let Step::Cas(c) = s {
                c.expected = n;
            }
        });
    }
    out.extend(parts(step));
    out.retain(|s| s != step);
    out
}

fn set_order(step: &mut Step, to: Order) {
    match step {
        Step::Load { access: Access::Atomic { order, .. }, .. }
        | Step::Store { access: Access::Atomic { order, .. }, .. }
        | Step::Fence { order, .. } => *order = to,
        Step::Update(u) => u.order = to,
        Step::Cas(c) => c.success = to,
        _ => {}
    }
}

fn set_scope(step: &mut Step, to: Scope) {
    match step {
        Step::Load { access: Access::Atomic { scope, .. }, .. }
        | Step::Store { access: Access::Atomic { scope, .. }, .. }
        | Step::Fence { scope, .. } => *scope = to,
        Step::Update(u) => u.scope = to,
        Step::Cas(c) => c.scope = to,
        _ => {}
    }
}

/// A read-modify-write as its load, its store, or an exchange.
fn parts(step: &Step) -> Vec<Step> {
    let (dst, object, value, order, scope) = match step {
        Step::Update(u) => (u.dst, u.object, u.value, u.order, u.scope),
        Step::Cas(c) => (Some(c.dst), c.object, c.desired, c.success, c.scope),
        _ => return Vec::new(),
    };
    let reads = if order == Order::SeqCst {
        order
    } else if order.acquires() {
        Order::Acquire
    } else {
        Order::Relaxed
    };
    let writes = if order == Order::SeqCst {
        order
    } else if order.releases() {
        Order::Release
    } else {
        Order::Relaxed
    };
    let atomic = |order| Access::Atomic { order, scope, volatile: false };
    let mut out = Vec::new();
    out.extend(dst.map(|dst| Step::Load { dst, object, access: atomic(reads) }));
    out.push(Step::Store { object, value, access: atomic(writes) });
    out.push(Step::Update(Update { dst, op: AtomOp::Exch, object, value, order, scope }));
    out
}

/// Objects of the usual width and space, without an initial value.
fn objects(source: &Source) -> Vec<Source> {
    let mut out = Vec::new();
    for o in 0..source.objects.len() {
        let mut wider = source.clone();
        widen(&mut wider, o);
        out.push(wider);
        for change in [|o: &mut crate::Object| o.space = Space::Global, |o: &mut crate::Object| o.init = 0] {
            let mut next = source.clone();
            change(&mut next.objects[o]);
            out.push(next);
        }
    }
    out
}

/// Gives an object, the registers loaded from it, and everything these are stored to, 32 bits.
fn widen(source: &mut Source, object: usize) {
    let bits = source.objects[object].bits;
    for o in &mut source.objects {
        if o.bits == bits {
            o.bits = 32;
        }
    }
    for register in source.threads.iter_mut().flat_map(|t| &mut t.registers) {
        if register.bits == bits {
            register.bits = 32;
        }
    }
}

/// Threads in other places: all on one GPU, all in one cluster, a CTA each.
fn places(source: &Source) -> Vec<Source> {
    let changes: [fn(usize, Placement) -> Placement; 4] = [
        |_, p| Placement { gpu: 0, ..p },
        |_, p| Placement { cluster: 0, ..p },
        |_, p| Placement { cta: 0, ..p },
        |t, _| Placement { cta: u16::try_from(t).unwrap_or(0), ..Placement::default() },
    ];
    let one = |change: &fn(usize, Placement) -> Placement| {
        let mut next = source.clone();
        for (t, thread) in next.threads.iter_mut().enumerate() {
            thread.place = change(t, thread.place);
        }
        next
    };
    changes.iter().map(one).collect()
}

/// Drops registers that nothing writes, reads of them, and objects that nothing accesses. A condition that names something
/// that is gone goes too.
fn tidy(mut source: Source) -> Source {
    let mut gone = false;
    for t in 0..source.threads.len() {
        gone |= registers(&mut source, t);
    }
    let used = walk::accessed(&source);
    if used.contains(&false) {
        gone |= source.condition.is_some();
        let position = |o: usize| used.iter().take(o).filter(|u| **u).count();
        for thread in &mut source.threads {
            walk::each_mut(&mut thread.body, &mut |step| walk::rename_object(step, &position));
        }
        let mut keep = used.iter();
        source.objects.retain(|_| keep.next().copied().unwrap_or(false));
    }
    if gone {
        source.condition = None;
    }
    source
}

/// Drops the registers of a thread that nothing writes. A value that was such a register becomes 0.
fn registers(source: &mut Source, t: usize) -> bool {
    let thread = &mut source.threads[t];
    let mut written = vec![false; thread.registers.len()];
    walk::each(&thread.body, &mut |step| {
        if let Some(slot) = step.dst().and_then(|d| written.get_mut(d)) {
            *slot = true;
        }
    });
    if !written.contains(&false) {
        return false;
    }
    walk::each_mut(&mut thread.body, &mut |step| {
        let dead = walk::reads(step).is_some_and(|r| !written.get(r).copied().unwrap_or(false));
        match step {
            Step::Store { value, .. } if dead => *value = Value::Number(0),
            Step::Update(u) if dead => u.value = Value::Number(0),
            Step::Cas(c) if dead => c.desired = Value::Number(0),
            _ => {}
        }
    });
    let position = |r: usize| written.iter().take(r).filter(|w| **w).count();
    walk::each_mut(&mut thread.body, &mut |step| {
        // An `if` on a dead register keeps a number that validation refuses.
        let dead =
            matches!(step, Step::If { register, .. } if !written.get(*register).copied().unwrap_or(false));
        if dead {
            if let Step::If { register, .. } = step {
                *register = usize::MAX;
            }
        } else {
            walk::rename_register(step, &position);
        }
    });
    let mut keep = written.iter();
    thread.registers.retain(|_| keep.next().copied().unwrap_or(false));
    true
}

//! Forms: what a compiler selects instructions for, without the program around it.
//!
//! A form is a program of one step: an operation with its orders and its scope, on an object with its width and space. Values,
//! names and places are always the same, but for a zero, which optimisers know. A compiler that refuses a form refuses every
//! program with it, so it need be asked about each form once. [`settled`] gives a program that the compiler takes and that is
//! as much like the drawn one as it can be: an access becomes a read-modify-write of the same order, of a load then a
//! compare-exchange, then a relaxed access; a fence becomes `acq_rel`, then nothing; last of all each object gets the usual width.

use crate::syntax::{Access, Exchange, Object, Order, Register, Source, Space, Step, Thread, Update, Value};
use crate::text::print::{line, space};
use crate::walk;
use moire_program::ir::{AtomOp, Placement, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// The width in bits that every compiler takes.
const USUAL_BITS: u8 = 32;

/// One-step programs by what they are called, such as `r = load.acquire.gpu x` of `.global .b32`.
pub type Forms = BTreeMap<String, Source>;

/// The forms of a program.
pub fn forms(source: &Source) -> Forms {
    let mut out = Forms::new();
    for thread in &source.threads {
        walk::each(&thread.body, &mut |step| out.extend(form(source, step)));
    }
    out
}

/// The form of a step; `None` for an `if`.
fn form(source: &Source, step: &Step) -> Option<(String, Source)> {
    let mut step = step.clone();
    match &mut step {
        Step::Load { .. } | Step::Fence { .. } => {}
        Step::Store { value, .. } => *value = Value::Number(1),
        // `opt` makes a load of an update that changes nothing.
        Step::Update(Update { value: Value::Number(0), .. }) => {}
        Step::Update(update) => update.value = Value::Number(1),
        Step::Cas(cas) => (cas.expected, cas.desired) = (0, Value::Number(1)),
        Step::If { .. } => return None,
    }
    let of = step.object().and_then(|o| source.objects.get(o));
    let objects: Vec<Object> =
        of.map(|o| Object { name: "x".to_owned(), init: 0, ..o.clone() }).into_iter().collect();
    let bits = objects.first().map_or(USUAL_BITS, |o| o.bits);
    let registers = step.dst().map(|_| Register { name: "r".to_owned(), bits }).into_iter().collect();
    walk::rename_object(&mut step, &|_| 0);
    walk::rename_register(&mut step, &|_| 0);
    let thread = Thread { place: Placement::default(), registers, body: vec![step.clone()] };
    let mut alone = Source { name: String::new(), objects, threads: Vec::new(), condition: None };
    let what = line(&alone, &thread, &step);
    alone.threads.push(thread);
    let name =
        alone.objects.first().map_or(what.clone(), |o| format!("{what} of {} .b{}", space(o.space), o.bits));
    Some((name, alone))
}

/// The forms that every compiler takes if it takes this one: it has the usual scope, space and width, but for at most one of
/// them.
pub fn plainer(form_of: &Source) -> Forms {
    let mut out = Forms::new();
    for keeps in ["", "scope", "space", "width"] {
        out.extend(usual(form_of, keeps));
    }
    out.retain(|_, one| one != form_of);
    out
}

/// The forms that stand in its place where it is refused, one after the other ([`settled`]).
pub fn stand_ins(form_of: &Source) -> Forms {
    let step = |source: &Source| source.threads.first()?.body.first().cloned();
    let next = |(_, source): &(String, Source)| form(source, &weaker(source, &step(source)?)?);
    let first = step(form_of).and_then(|step| form(form_of, &weaker(form_of, &step)?));
    std::iter::successors(first, next).collect()
}

/// The form of a one-step program with the usual scope, space and width, but for the one that it keeps.
fn usual(form_of: &Source, keeps: &str) -> Option<(String, Source)> {
    let mut source = form_of.clone();
    for object in &mut source.objects {
        object.space = if keeps == "space" { object.space } else { Space::Global };
        object.bits = if keeps == "width" { object.bits } else { USUAL_BITS };
    }
    let mut step = source.threads.first()?.body.first()?.clone();
    match &mut step {
        Step::Load { access: Access::Atomic { scope, .. }, .. }
        | Step::Store { access: Access::Atomic { scope, .. }, .. }
        | Step::Fence { scope, .. }
        | Step::Update(Update { scope, .. })
        | Step::Cas(Exchange { scope, .. })
            if keeps != "scope" =>
        {
            *scope = Scope::Gpu;
        }
        Step::Load { .. } | Step::Store { .. } | Step::Fence { .. } => {}
        Step::Update(_) | Step::Cas(_) | Step::If { .. } => {}
    }
    form(&source, &step)
}

/// The programs without forms that are refused. `refused` says which of some forms are; it is asked about those of all
/// programs together, because to ask costs more than a form does.
///
/// Where nothing helps a program is returned as far as it was changed; the compiler refuses it.
pub fn settled(drawn: &[Source], refused: &mut dyn FnMut(&Forms) -> BTreeSet<String>) -> Vec<Source> {
    let mut now = drawn.to_vec();
    let mut open: Vec<usize> = (0..now.len()).collect();
    while !open.is_empty() {
        let bad = refused(&open.iter().flat_map(|n| forms(&now[*n])).collect());
        open.retain(|n| moved(&mut now[*n], &drawn[*n], &bad));
    }
    now
}

/// Takes a program one step away from forms that are refused. False if it has none, or nothing helps.
fn moved(now: &mut Source, drawn: &Source, bad: &BTreeSet<String>) -> bool {
    if forms(now).keys().all(|name| !bad.contains(name)) {
        return false;
    }
    let before = now.clone();
    for thread in 0..now.threads.len() {
        let mut body = std::mem::take(&mut now.threads[thread].body);
        weaken(&before, &mut body, bad);
        now.threads[thread].body = body;
    }
    if *now != before {
        return true;
    }
    if now.objects.iter().all(|o| o.bits == USUAL_BITS) {
        return false;
    }
    now.clone_from(drawn);
    now.objects.iter_mut().for_each(|o| o.bits = USUAL_BITS);
    now.threads.iter_mut().flat_map(|t| &mut t.registers).for_each(|r| r.bits = USUAL_BITS);
    true
}

/// Puts the next weaker step in the place of each refused one. A fence that has none goes.
fn weaken(source: &Source, steps: &mut Vec<Step>, bad: &BTreeSet<String>) {
    let refused = |step: &Step| form(source, step).is_some_and(|(name, _)| bad.contains(&name));
    steps.retain_mut(|step| {
        if let Step::If { then, .. } = step {
            weaken(source, then, bad);
        } else if refused(step) {
            match weaker(source, step) {
                Some(other) => *step = other,
                None => return !matches!(step, Step::Fence { .. }),
            }
        }
        true
    });
}

/// A step like this one that more compilers take. Each chain of them ends.
fn weaker(source: &Source, step: &Step) -> Option<Step> {
    let wide = step.object().and_then(|o| source.objects.get(o)).is_some_and(|o| o.bits > 64);
    match step {
        Step::Load { dst, object, access } => {
            let (access, update) = other(*access)?;
            let update = update.filter(|_| !wide).map(|(order, scope)| {
                let (dst, value) = (Some(*dst), Value::Number(0));
                Step::Update(Update { dst, op: AtomOp::Add, object: *object, value, order, scope })
            });
            Some(update.unwrap_or(Step::Load { dst: *dst, object: *object, access }))
        }
        Step::Store { object, value, access } => {
            let (access, update) = other(*access)?;
            let update = update.map(|(order, scope)| {
                let (dst, op) = (None, AtomOp::Exch);
                Step::Update(Update { dst, op, object: *object, value: *value, order, scope })
            });
            Some(update.unwrap_or(Step::Store { object: *object, value: *value, access }))
        }
        Step::Update(u) => {
            let relaxed = Access::Atomic { order: Order::Relaxed, scope: u.scope, volatile: false };
            match (u.order, u.op, u.dst) {
                (Order::Relaxed, AtomOp::Exch, None) => {
                    Some(Step::Store { object: u.object, value: u.value, access: relaxed })
                }
                (Order::Relaxed, AtomOp::Add, Some(dst)) if u.value == Value::Number(0) => {
                    Some(Step::Load { dst, object: u.object, access: relaxed })
                }
                (order, AtomOp::Add, Some(dst)) if u.value == Value::Number(0) => {
                    let (desired, failure) = (Value::Number(0), Order::Relaxed);
                    let (object, scope) = (u.object, u.scope);
                    let cas = Exchange { dst, object, expected: 0, desired, success: order, failure, scope };
                    Some(Step::Cas(cas))
                }
                (Order::Relaxed, AtomOp::Exch | AtomOp::Add, _) => None,
                (Order::Relaxed, ..) => Some(Step::Update(Update { op: AtomOp::Add, ..u.clone() })),
                (Order::SeqCst, ..) => Some(Step::Update(Update { order: Order::AcqRel, ..u.clone() })),
                _ => Some(Step::Update(Update { order: Order::Relaxed, ..u.clone() })),
            }
        }
        Step::Cas(c) if c.expected == 0 && c.desired == Value::Number(0) && !wide => {
            let access = Access::Atomic { order: Order::Relaxed, scope: c.scope, volatile: false };
            Some(Step::Load { dst: c.dst, object: c.object, access })
        }
        // Both orders of a compare-exchange of 128 bits must read alike.
        Step::Cas(_) if wide => None,
        Step::Cas(c) if c.failure != Order::Relaxed => {
            let mut out = c.clone();
            out.failure = Order::Relaxed;
            Some(Step::Cas(out))
        }
        Step::Cas(c) if c.success != Order::Relaxed => {
            let mut out = c.clone();
            out.success = Order::Relaxed;
            Some(Step::Cas(out))
        }
        Step::Fence { order, scope } if *order != Order::AcqRel => {
            Some(Step::Fence { order: Order::AcqRel, scope: *scope })
        }
        Step::Cas(_) | Step::Fence { .. } | Step::If { .. } => None,
    }
}

/// Another access, and the order and scope of a read-modify-write that comes before it.
fn other(access: Access) -> Option<(Access, Option<(Order, Scope)>)> {
    match access {
        Access::Atomic { order, scope, volatile: true } => {
            Some((Access::Atomic { order, scope, volatile: false }, None))
        }
        Access::Atomic { order, scope, .. } if order != Order::Relaxed => {
            let relaxed = Access::Atomic { order: Order::Relaxed, scope, volatile: false };
            Some((relaxed, Some((order, scope))))
        }
        Access::Plain | Access::Atomic { .. } => None,
    }
}

//! Walks over the steps of a program, nested ones included.

use crate::syntax::{Source, Step, Value};

/// Calls `see` with each step, an `if` before its arm.
pub(crate) fn each<'s>(steps: &'s [Step], see: &mut dyn FnMut(&'s Step)) {
    for step in steps {
        see(step);
        if let Step::If { then, .. } = step {
            each(then, see);
        }
    }
}

/// Calls `see` with each step, an `if` before its arm.
pub(crate) fn each_mut(steps: &mut [Step], see: &mut dyn FnMut(&mut Step)) {
    for step in steps {
        see(step);
        if let Step::If { then, .. } = step {
            each_mut(then, see);
        }
    }
}

/// The number of steps.
pub(crate) fn count(steps: &[Step]) -> usize {
    let mut n = 0;
    each(steps, &mut |_| n += 1);
    n
}

/// The number of lines on which steps are printed: an `if` has one more for its end.
pub(crate) fn lines(steps: &[Step]) -> usize {
    let mut n = 0;
    each(steps, &mut |step| n += if matches!(step, Step::If { .. }) { 2 } else { 1 });
    n
}

/// The registers that a step reads.
pub(crate) fn reads(step: &Step) -> Option<usize> {
    let of = |value: &Value| match value {
        Value::Register(r) => Some(*r),
        Value::Number(_) => None,
    };
    match step {
        Step::Store { value, .. } => of(value),
        Step::Update(u) => of(&u.value),
        Step::Cas(c) => of(&c.desired),
        Step::If { register, .. } => Some(*register),
        Step::Load { .. } | Step::Fence { .. } => None,
    }
}

/// Renames the objects of a step.
pub(crate) fn rename_object(step: &mut Step, to: &dyn Fn(usize) -> usize) {
    match step {
        Step::Load { object, .. } | Step::Store { object, .. } => *object = to(*object),
        Step::Update(u) => u.object = to(u.object),
        Step::Cas(c) => c.object = to(c.object),
        Step::Fence { .. } | Step::If { .. } => {}
    }
}

/// Renames the registers of a step.
pub(crate) fn rename_register(step: &mut Step, to: &dyn Fn(usize) -> usize) {
    let value = |v: &mut Value| {
        if let Value::Register(r) = v {
            *r = to(*r);
        }
    };
    match step {
        Step::Load { dst, .. } => *dst = to(*dst),
        Step::Store { value: v, .. } => value(v),
        Step::Update(u) => {
            value(&mut u.value);
            u.dst = u.dst.map(to);
        }
        Step::Cas(c) => {
            value(&mut c.desired);
            c.dst = to(c.dst);
        }
        Step::If { register, .. } => *register = to(*register),
        Step::Fence { .. } => {}
    }
}

/// The objects that steps access, by position.
pub(crate) fn accessed(source: &Source) -> Vec<bool> {
    let mut seen = vec![false; source.objects.len()];
    for thread in &source.threads {
        each(&thread.body, &mut |step| {
            if let Some(slot) = step.object().and_then(|o| seen.get_mut(o)) {
                *slot = true;
            }
        });
    }
    seen
}

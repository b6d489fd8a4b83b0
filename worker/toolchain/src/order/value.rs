//! Values of registers along one path, as far as they name memory or decide branches.
//!
//! A value is a number, a place in memory that has a name, or something else, which has an identity: equal operations on
//! equal values give equal values. The results of memory instructions are all different.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most registers of one result.
const MAX_PARTS: usize = 128;

/// What a value is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Base {
    /// Nothing: a number.
    Number,
    /// A name of global memory, or a parameter.
    Name(u64),
    /// The shared memory of the CTA in machine code, which has no names there.
    Window,
    /// Anything else.
    Other(u64),
}

/// A value: what it is counted from, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Value {
    pub(super) base: Base,
    pub(super) add: i64,
}

impl Value {
    pub(super) const fn number(add: i64) -> Value {
        Value { base: Base::Number, add }
    }

    pub(super) fn name(name: &str) -> Value {
        Value { base: Base::Name(hash(&name)), add: 0 }
    }

    /// The value of an operation on values.
    pub(super) fn of(word: &str, from: &[Value]) -> Value {
        Value { base: Base::Other(hash(&(word, from))), add: 0 }
    }

    /// The sum, where at most one of both is no number. Sums have 32 bits in machine code.
    pub(super) fn plus(self, other: Value) -> Value {
        let add = low(self.add.wrapping_add(other.add));
        match (self.base, other.base) {
            (base, Base::Number) | (Base::Number, base) => Value { base, add },
            _ => Value::of("plus", &[self.min(other), self.max(other)]),
        }
    }

    pub(super) fn is_number(self) -> Option<i64> {
        (self.base == Base::Number).then_some(self.add)
    }

    /// The place that the value names.
    pub(super) fn place(self) -> Option<Value> {
        matches!(self.base, Base::Name(_) | Base::Window).then_some(self)
    }

    /// A part of a value of several registers, from 0.
    pub(super) fn part(self, n: usize) -> Value {
        if n == 0 { self } else { Value { base: Base::Other(hash(&(self, n))), add: 0 } }
    }

    /// The negation of a truth value: [`State::truth`] counts from a condition.
    pub(super) fn not(self) -> Value {
        Value { add: i64::from(self.add == 0), ..self }
    }
}

/// The lower 32 bits, with their sign.
fn low(number: i64) -> i64 {
    number << 32 >> 32
}

fn hash<T: Hash>(what: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// What is known at a point of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    registers: BTreeMap<String, Value>,
    /// Conditions that are decided on this path.
    decided: BTreeMap<Base, bool>,
    /// Conditions that say that a value is a number.
    numbers: BTreeMap<Base, Value>,
    /// Values that are numbers on this path, because a condition says so.
    pub(super) settled: BTreeSet<Value>,
    /// Values that were used.
    used: BTreeSet<Value>,
    noted: BTreeSet<Value>,
    count: u64,
}

impl State {
    /// A value that is equal to no other.
    pub(super) fn fresh(&mut self) -> Value {
        self.count += 1;
        Value::of("fresh", &[Value::number(self.count as i64)])
    }

    /// Whether the path has noted that value before; it is noted.
    pub(super) fn is_again(&mut self, value: Value) -> bool {
        !self.noted.insert(value)
    }

    /// Whether a value, or a part of it, was used.
    pub(super) fn is_used(&self, value: Value) -> bool {
        (0..MAX_PARTS).any(|n| self.used.contains(&value.part(n)))
    }

    pub(super) fn set(&mut self, register: &str, value: Value) {
        self.registers.insert(register.to_owned(), value);
    }

    /// The value of a register; one that was never written has a value of its own.
    pub(super) fn get(&mut self, register: &str) -> Value {
        let value = self.registers.get(register).copied().unwrap_or_else(|| Value::of(register, &[]));
        self.used.insert(value);
        value
    }

    /// Whether a truth value holds, if that is decided. Number 0 is false; another base with 1 is the negation of it with 0.
    pub(super) fn truth(&self, value: Value) -> Option<bool> {
        match value.base {
            Base::Number => Some(value.add != 0),
            base => self.decided.get(&base).map(|holds| *holds == (value.add == 0)),
        }
    }

    pub(super) fn decide(&mut self, value: Value, holds: bool) {
        let holds = holds == (value.add == 0);
        self.decided.insert(value.base, holds);
        if let Some(number) = self.numbers.get(&value.base).filter(|_| holds) {
            self.settled.insert(*number);
        }
    }

    /// Whether two values are equal: a truth value.
    pub(super) fn equal(&mut self, a: Value, b: Value) -> Value {
        if a.base == b.base && a.add == b.add {
            return Value::number(1);
        }
        // Sums have 32 bits, numbers may have 64.
        if a.base == b.base && low(a.add) != low(b.add) {
            return Value::number(0);
        }
        let (low, high) = (a.min(b), a.max(b));
        let equal = Value::of("eq", &[low, high]);
        if low.is_number().is_some() {
            self.numbers.insert(equal.base, high);
        }
        equal
    }
}

//! Edits of functions: substitution of values, removal of dead operations, dense renumbering.
//!
//! Contract: [`Function::tidy`] changes no memory operation and no order between them, and numbers values in the order
//! of the text, as a reader does. A valid function stays valid.

use super::{Block, Function, Instr, Op, Type, Value};
use std::collections::{BTreeMap, BTreeSet};

impl Block {
    /// Visits all operations; those of inner blocks follow the operation that contains them.
    pub fn walk<'b>(&'b self, each: &mut dyn FnMut(&'b Instr)) {
        for instr in &self.ops {
            each(instr);
            instr.op.blocks().into_iter().for_each(|block| block.walk(each));
        }
    }

    /// Visits the same operations, mutable.
    pub fn walk_mut(&mut self, each: &mut dyn FnMut(&mut Instr)) {
        for instr in &mut self.ops {
            each(instr);
            instr.op.blocks_mut().into_iter().for_each(|block| block.walk_mut(each));
        }
    }

    /// The values of a final `yield` or `continue`.
    fn last_mut(&mut self) -> Option<&mut Vec<Value>> {
        let (Op::Yield(list) | Op::Continue(list)) = &mut self.ops.last_mut()?.op else { return None };
        Some(list)
    }
}

impl Function {
    /// Replaces each use of the first value of a pair by the second. The replacement may itself be replaced by another pair.
    pub fn substitute(&mut self, pairs: &[(Value, Value)]) {
        let map: BTreeMap<Value, Value> = pairs.iter().copied().collect();
        let resolve = |mut value: Value| {
            for _ in 0..=map.len() {
                match map.get(&value) {
                    Some(next) => value = *next,
                    None => break,
                }
            }
            value
        };
        self.body.walk_mut(&mut |instr| {
            instr.op.operands_mut().into_iter().for_each(|value| *value = resolve(*value));
        });
    }

    /// All values that are operands.
    fn used(&self) -> BTreeSet<Value> {
        let mut used = BTreeSet::new();
        self.body.walk(&mut |instr| used.extend(instr.op.operands()));
        used
    }

    /// Removes dead operations, then renumbers values.
    pub fn tidy(&mut self) {
        loop {
            let mut pairs = Vec::new();
            let types = &self.types;
            let ty = |v: &Value| types.get(v.index());
            self.body.walk(&mut |instr| pairs.extend(same(instr, &ty)));
            pairs.retain(|(a, b)| a != b);
            let used = self.used();
            let before = pairs.iter().any(|(a, _)| used.contains(a));
            self.substitute(&pairs);
            let used = self.used();
            let mut changed = before;
            sweep(&mut self.body, &used, &mut changed);
            if !changed {
                break;
            }
        }
        self.renumber();
    }

    /// The positions of the unused parameters of a kernel.
    pub fn unused_params(&self) -> Vec<usize> {
        let used = self.used();
        let of = self.body.params.iter().enumerate();
        of.filter(|(_, p)| !used.contains(p)).map(|(n, _)| n).collect()
    }

    /// Numbers values in the order of the text and drops the types of values without definition.
    pub fn renumber(&mut self) {
        let mut numbers =
            Renumber { old: std::mem::take(&mut self.types), types: Vec::new(), map: BTreeMap::new() };
        numbers.define(&mut self.body.params);
        numbers.block(&mut self.body);
        self.types = numbers.types;
    }
}

/// The result of an operation paired with the operand that it always equals, if there is one.
fn same<'t>(instr: &Instr, ty: &dyn Fn(&Value) -> Option<&'t Type>) -> Option<(Value, Value)> {
    let result = *instr.results.first()?;
    if let Op::Convert { value, .. } = &instr.op {
        return (ty(value) == ty(&result)).then_some((result, *value));
    }
    let Op::JoinTokens(list) = &instr.op else { return None };
    let first = *list.first()?;
    list.iter().all(|t| *t == first).then_some((result, first))
}

/// Removes unused pure operations, empty `if` and `for`, and unused results of both.
fn sweep(block: &mut Block, used: &BTreeSet<Value>, changed: &mut bool) {
    let needed = |instr: &Instr| {
        let silent =
            |b: &Block| matches!(b.ops.as_slice(), [one] if matches!(one.op, Op::Yield(_) | Op::Continue(_)));
        let empty =
            matches!(instr.op, Op::If { .. } | Op::For { .. }) && instr.op.blocks().into_iter().all(silent);
        !(instr.op.pure() || empty) || instr.results.iter().any(|r| used.contains(r))
    };
    let before = block.ops.len();
    block.ops.retain(needed);
    *changed |= block.ops.len() != before;
    for instr in &mut block.ops {
        let Instr { op, results, .. } = instr;
        match op {
            Op::If { then, otherwise, .. } => {
                for k in (0..results.len()).rev().filter(|k| !used.contains(&results[*k])).collect::<Vec<_>>()
                {
                    let arms = [Some(&mut *then), otherwise.as_mut()];
                    let mut lists: Vec<&mut Vec<Value>> =
                        arms.into_iter().flatten().filter_map(Block::last_mut).collect();
                    if lists.iter().all(|l| k < l.len()) && lists.len() == 2 {
                        for list in &mut lists {
                            list.remove(k);
                        }
                        results.remove(k);
                        *changed = true;
                    }
                }
                if otherwise.as_ref().is_some_and(|b| b.ops.len() == 1) && results.is_empty() {
                    let ends = otherwise.as_ref().and_then(|b| b.ops.first()).map(|i| &i.op);
                    if matches!(ends, Some(Op::Yield(_))) {
                        *otherwise = None;
                        *changed = true;
                    }
                }
            }
            Op::For { inits, body, .. } => {
                let free = |k: &usize| {
                    let inner = body.params.get(k + 1);
                    !used.contains(&results[*k]) && inner.is_some_and(|p| !used.contains(p))
                };
                let free: Vec<usize> = (0..results.len()).rev().filter(free).collect();
                let plain = !continues(body, false);
                for k in free.into_iter().filter(|_| plain) {
                    if let Some(list) = body.last_mut().filter(|l| k < l.len()) {
                        list.remove(k);
                        body.params.remove(k + 1);
                        inits.remove(k);
                        results.remove(k);
                        *changed = true;
                    }
                }
            }
            Op::Loop { .. } | plain_op!() | token_op!() | access_op!() | end_op!() => {}
        }
        instr.op.blocks_mut().into_iter().for_each(|inner| sweep(inner, used, changed));
    }
}

/// Whether an `if` of the block contains `continue`, `break` or `return`; with `inside`, also the block itself.
pub(crate) fn continues(block: &Block, inside: bool) -> bool {
    block.ops.iter().any(|instr| match &instr.op {
        Op::Continue(_) | Op::Break(_) | Op::Return(_) => inside,
        Op::If { .. } => instr.op.blocks().into_iter().any(|b| continues(b, true)),
        Op::Yield(_) | Op::For { .. } | Op::Loop { .. } => false,
        plain_op!() | token_op!() | access_op!() => false,
    })
}

struct Renumber {
    old: Vec<Type>,
    types: Vec<Type>,
    map: BTreeMap<Value, Value>,
}

impl Renumber {
    fn define(&mut self, values: &mut [Value]) {
        for value in values {
            let number = Value::at(self.types.len());
            self.types.push(self.old.get(value.index()).cloned().unwrap_or(Type::Token));
            self.map.insert(*value, number);
            *value = number;
        }
    }

    fn block(&mut self, block: &mut Block) {
        for instr in &mut block.ops {
            for value in instr.op.operands_mut() {
                // A value without definition stays undefined.
                *value = self.map.get(value).copied().unwrap_or(Value(u32::MAX));
            }
            for inner in instr.op.blocks_mut() {
                self.define(&mut inner.params);
                self.block(inner);
            }
            self.define(&mut instr.results);
        }
    }
}

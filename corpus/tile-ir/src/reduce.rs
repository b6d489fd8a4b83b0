//! Reduction of Tile IR kernels, step by step: fewer tile blocks, memory operations, token edges, operations, elements.
//!
//! Contract: every candidate passes the verifier and is smaller in [`size`], so reduction terminates. Candidates come in
//! a fixed order, large cuts first. Results of a removed operation are replaced: a token by the token that the operation
//! waited for or by a new one, a number by a constant.

use crate::run::TileLaunch;
use crate::{
    Access, Block, Constant, Elem, Function, Instr, Module, Op, Order, Scalar, Scope, Tile, Type, Value,
    continues, verify,
};

/// A size, compared in this order: tile blocks, memory operations, token operands and masks, operations, parameters,
/// accessed elements, strength of orders and scopes, constants.
pub type TileSize = [u128; 8];

/// The size of a launch and of the first function of its module.
pub fn size(module: &Module, launch: &TileLaunch) -> TileSize {
    let blocks = launch.grid.iter().map(|n| u128::from(*n)).product();
    let mut size = [blocks, 0, 0, 0, 0, 0, 0, 0];
    let Some(function) = module.functions.first() else { return size };
    size[4] = function.body.params.len() as u128;
    let mut fresh = Vec::new();
    function.body.walk(&mut |i| {
        if i.op == Op::MakeToken {
            fresh.extend(&i.results);
        }
    });
    let token = |v: &Value| matches!(function.ty(*v), Some(Type::Token));
    function.body.walk(&mut |instr| {
        let op = &instr.op;
        let operands = op.operands();
        let edges = operands.iter().filter(|v| token(v));
        size[2] += edges.map(|v| if fresh.contains(v) { 1 } else { 2 }).sum::<u128>();
        size[2] += u128::from(op.masked());
        size[3] += if matches!(op, Op::Constant(_) | Op::MakeToken) { 1 } else { 2 };
        if op.memory() {
            size[1] += 1;
            size[5] += match op.target().and_then(|target| function.ty(target)) {
                Some(Type::Tile(tile)) => u128::from(tile.elements()),
                // A view counts one more than pointers to the same elements.
                Some(Type::View(view)) => 1 + u128::from(view.loaded().elements()),
                _ => 1,
            };
            size[6] += strength(op);
        }
        if let Op::Constant(constant) = op {
            size[7] +=
                constant.bits.iter().map(|b| u128::from(*b)).sum::<u128>() + constant.bits.len() as u128;
        }
    });
    size
}

fn strength(op: &Op) -> u128 {
    let Some(Access { order, scope }) = op.access() else { return 0 };
    let scope = scope.map_or(0, |s| 1 + u128::from(s.code()));
    let order = if order == Order::Release { Order::Acquire } else { order };
    10 * u128::from(order.code()) + scope
}

/// One reduction step. The first number is the position of an operation in the order of `Block::walk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shrink {
    /// Removes one tile block.
    Blocks,
    /// Removes an operation with blocks or a memory operation; its numeric results become this constant.
    Remove(usize, u64),
    /// Replaces an `if` by one of its arms.
    Keep(usize, usize),
    /// Replaces a loop by one iteration of its body.
    Once(usize),
    /// Gives all tiles one dimension.
    Flat,
    /// Halves all extents of this length.
    Halve(u32),
    /// Turns tiles of one dimension and one element into scalars.
    Scalars,
    Unmask(usize),
    Untoken(usize),
    /// Removes one token of a join.
    Unjoin(usize, usize),
    /// Makes a `yield` or `continue` pass a new token.
    Ungive(usize, usize),
    /// Replaces the result by an operand.
    Operand(usize, usize),
    /// Replaces the result by a constant.
    Known(usize, u64),
    Weaker(usize, Order),
    Device(usize),
    Parameter(usize),
    Constant(usize, u64),
}

/// Candidates that are one step smaller than the first function of the module, large cuts first.
pub fn tile_smaller(draw: &(Module, TileLaunch)) -> impl Iterator<Item = (Module, TileLaunch)> {
    let (module, launch) = draw.clone();
    let steps = module.functions.first().map(steps).unwrap_or_default();
    let before = size(&module, &launch);
    steps.into_iter().filter_map(move |step| {
        let (mut module, mut launch) = (module.clone(), launch.clone());
        let function = module.functions.first_mut()?;
        take(step, function, &mut launch)?;
        function.tidy();
        (size(&module, &launch) < before && verify(&module).is_empty()).then_some((module, launch))
    })
}

/// Takes candidates for which `still` holds until there is none left or `tries` were tested.
pub fn tile_minimise(
    draw: &(Module, TileLaunch),
    tries: usize,
    mut still: impl FnMut(&(Module, TileLaunch)) -> bool,
) -> (Module, TileLaunch) {
    let (mut least, mut tried) = (draw.clone(), 0);
    'again: while tried < tries {
        let current = least.clone();
        for candidate in tile_smaller(&current).take(tries - tried) {
            tried += 1;
            if still(&candidate) {
                least = candidate;
                continue 'again;
            }
        }
        break;
    }
    least
}

/// All steps that might apply; `take` decides whether one does.
fn steps(function: &Function) -> Vec<Shrink> {
    let mut ops = Vec::new();
    function.body.walk(&mut |instr| ops.push(&instr.op));
    let mut steps = vec![Shrink::Blocks];
    let each = |of: &dyn Fn(usize, &Op) -> Vec<Shrink>| -> Vec<Shrink> {
        ops.iter().enumerate().flat_map(|(at, op)| of(at, op)).collect()
    };
    steps.extend(each(&|at, op| match op {
        Op::If { .. } => vec![Shrink::Remove(at, 0), Shrink::Keep(at, 0), Shrink::Keep(at, 1)],
        Op::For { .. } | Op::Loop { .. } => vec![Shrink::Remove(at, 0), Shrink::Once(at)],
        plain_op!() | token_op!() | access_op!() | end_op!() => Vec::new(),
    }));
    steps.extend(each(&|at, op| {
        if op.memory() { vec![Shrink::Remove(at, 0), Shrink::Remove(at, 1)] } else { Vec::new() }
    }));
    steps.push(Shrink::Flat);
    let mut extents: Vec<u32> =
        function.types.iter().filter_map(Type::tile).flat_map(|t| t.shape.clone()).collect();
    extents.sort_unstable();
    extents.dedup();
    steps.extend(extents.iter().rev().filter(|e| **e > 1).map(|e| Shrink::Halve(*e)));
    steps.push(Shrink::Scalars);
    steps.extend(each(&|at, op| if op.masked() { vec![Shrink::Unmask(at)] } else { Vec::new() }));
    steps.extend(each(&|at, op| match op {
        Op::JoinTokens(list) => (0..list.len()).map(|k| Shrink::Unjoin(at, k)).collect(),
        Op::Yield(list) | Op::Continue(list) => (0..list.len()).map(|k| Shrink::Ungive(at, k)).collect(),
        access_op!() => op.token().map(|_| Shrink::Untoken(at)).into_iter().collect(),
        Op::Break(_) | Op::Return(_) | Op::MakeToken | Op::AliasFence { .. } => Vec::new(),
        Op::GdcWait { .. } | Op::GdcLaunch { .. } | plain_op!() | block_op!() => Vec::new(),
    }));
    steps.extend(each(&|at, op| {
        if !op.pure() || matches!(op, Op::Constant(_) | Op::MakeToken | Op::JoinTokens(_)) {
            return Vec::new();
        }
        let operands = (0..op.operands().len()).map(|k| Shrink::Operand(at, k));
        operands.chain([Shrink::Known(at, 0), Shrink::Known(at, 1)]).collect()
    }));
    steps.extend(each(&|at, op| if op.memory() { weaker(at) } else { Vec::new() }));
    steps.extend(function.unused_params().into_iter().map(Shrink::Parameter));
    steps.extend(each(&|at, op| {
        let Op::Constant(c) = op else { return Vec::new() };
        [0, 1, 2].into_iter().filter(|v| c.bits != [*v]).map(|v| Shrink::Constant(at, v)).collect()
    }));
    steps
}

fn weaker(at: usize) -> Vec<Shrink> {
    let orders = [Order::Relaxed, Order::Acquire, Order::Release];
    orders.into_iter().map(|o| Shrink::Weaker(at, o)).chain([Shrink::Device(at)]).collect()
}

/// The place of an operation, with what a step may change.
struct Site<'f> {
    ops: &'f mut Vec<Instr>,
    at: usize,
    types: &'f mut Vec<Type>,
    pairs: Vec<(Value, Value)>,
}

/// Runs `change` on operation number `left` in the order of `Block::walk`. Gives the substitutions it asked for.
fn find(
    block: &mut Block,
    left: &mut usize,
    types: &mut Vec<Type>,
    change: &mut dyn FnMut(&mut Site<'_>) -> Option<()>,
) -> Option<Option<Vec<(Value, Value)>>> {
    for at in 0..block.ops.len() {
        if *left == 0 {
            let mut site = Site { ops: &mut block.ops, at, types, pairs: Vec::new() };
            let done = change(&mut site);
            return Some(done.map(|()| site.pairs));
        }
        *left -= 1;
        for inner in block.ops[at].op.blocks_mut() {
            if let Some(found) = find(inner, left, types, change) {
                return Some(found);
            }
        }
    }
    None
}

fn at(
    function: &mut Function,
    mut number: usize,
    change: &mut dyn FnMut(&mut Site<'_>) -> Option<()>,
) -> Option<()> {
    let Function { body, types, .. } = function;
    let pairs = find(body, &mut number, types, change)??;
    function.substitute(&pairs);
    Some(())
}

fn take(step: Shrink, function: &mut Function, launch: &mut TileLaunch) -> Option<()> {
    match step {
        Shrink::Blocks => {
            let most = launch.grid.iter_mut().max()?;
            *most = most.checked_sub(1).filter(|n| *n > 0)?;
            Some(())
        }
        Shrink::Remove(n, value) => at(function, n, &mut |site| site.remove(value)),
        Shrink::Keep(n, arm) => at(function, n, &mut |site| site.keep(arm)),
        Shrink::Once(n) => at(function, n, &mut |site| site.once()),
        Shrink::Unmask(n) => at(function, n, &mut |site| site.ops[site.at].op.unmask().then_some(())),
        Shrink::Untoken(n) => at(function, n, &mut |site| site.ops[site.at].op.untoken().then_some(())),
        Shrink::Unjoin(n, k) => at(function, n, &mut |site| site.unjoin(k)),
        Shrink::Ungive(n, k) => at(function, n, &mut |site| site.ungive(k)),
        Shrink::Operand(n, k) => at(function, n, &mut |site| site.operand(k)),
        Shrink::Known(n, value) => at(function, n, &mut |site| site.known(value)),
        Shrink::Weaker(n, order) => {
            at(function, n, &mut |site| weaken(&mut site.ops[site.at].op, Some(order)))
        }
        Shrink::Device(n) => at(function, n, &mut |site| weaken(&mut site.ops[site.at].op, None)),
        Shrink::Constant(n, value) => at(function, n, &mut |site| {
            let Op::Constant(constant) = &mut site.ops[site.at].op else { return None };
            constant.bits = vec![value];
            Some(())
        }),
        Shrink::Flat => reshape(function, &|shape| {
            if shape.len() > 1 { vec![shape.iter().product()] } else { shape.to_vec() }
        }),
        Shrink::Halve(extent) => halve(function, extent),
        Shrink::Scalars => reshape(function, &|shape| if shape == [1] { Vec::new() } else { shape.to_vec() }),
        Shrink::Parameter(n) => drop_parameter(function, launch, n),
    }
}

impl Site<'_> {
    fn instr(&mut self) -> &mut Instr {
        &mut self.ops[self.at]
    }

    fn constant(&self, result: Value, value: u64) -> Option<Instr> {
        let Type::Tile(Tile { elem: Elem::Scalar(scalar), .. }) = self.types.get(result.index())? else {
            return None;
        };
        let op = Op::Constant(Constant { bits: vec![value & scalar.mask()] });
        Some(Instr { op, results: vec![result], line: 0, column: 0 })
    }

    fn remove(&mut self, value: u64) -> Option<()> {
        let Instr { op, results, .. } = self.instr().clone();
        let mut instead = Vec::new();
        for result in results {
            match (self.types.get(result.index())?, op.token()) {
                (Type::Token, Some(token)) => self.pairs.push((result, token)),
                (Type::Token, None) => {
                    instead.push(Instr { op: Op::MakeToken, results: vec![result], line: 0, column: 0 });
                }
                _ => instead.push(self.constant(result, value)?),
            }
        }
        self.ops.splice(self.at..=self.at, instead);
        Some(())
    }

    fn keep(&mut self, arm: usize) -> Option<()> {
        let Instr { op: Op::If { then, otherwise, .. }, results, .. } = self.instr().clone() else {
            return None;
        };
        let kept = if arm == 0 { then } else { otherwise? };
        self.inline(kept, &results)
    }

    /// Replaces an operation by the contents of one of its blocks.
    fn inline(&mut self, mut block: Block, results: &[Value]) -> Option<()> {
        let (Op::Yield(ends) | Op::Continue(ends)) = block.ops.pop()?.op else { return None };
        self.pairs.extend(results.iter().copied().zip(ends));
        self.ops.splice(self.at..=self.at, block.ops);
        Some(())
    }

    fn once(&mut self) -> Option<()> {
        let Instr { op, results, .. } = self.instr().clone();
        if let Op::For { bounds, inits, body, .. } = op {
            if continues(&body, false) {
                return None;
            }
            let first = std::iter::once(bounds[0]).chain(inits);
            self.pairs.extend(body.params.iter().copied().zip(first));
            return self.inline(body, &results);
        }
        let Op::Loop { inits, mut body } = op else { return None };
        // For a loop that only waits: the operations of one iteration, without the final `if` that leaves the loop.
        body.ops.pop()?;
        let Op::If { then, .. } = body.ops.pop()?.op else { return None };
        let [Instr { op: Op::Break(ends), .. }] = then.ops.as_slice() else { return None };
        if continues(&body, true) {
            return None;
        }
        self.pairs.extend(body.params.iter().copied().zip(inits));
        self.pairs.extend(results.into_iter().zip(ends.iter().copied()));
        self.ops.splice(self.at..=self.at, body.ops);
        Some(())
    }

    fn unjoin(&mut self, k: usize) -> Option<()> {
        let Instr { op: Op::JoinTokens(list), results, .. } = self.instr() else { return None };
        list.remove(k);
        if let ([one], [result]) = (list.as_slice(), results.as_slice()) {
            let pair = (*result, *one);
            self.pairs.push(pair);
            self.ops.remove(self.at);
        }
        Some(())
    }

    fn ungive(&mut self, k: usize) -> Option<()> {
        let (Op::Yield(list) | Op::Continue(list)) = &self.ops[self.at].op else { return None };
        let given = *list.get(k)?;
        if self.types.get(given.index()) != Some(&Type::Token) {
            return None;
        }
        let token = Value(u32::try_from(self.types.len()).ok()?);
        self.types.push(Type::Token);
        let (Op::Yield(list) | Op::Continue(list)) = &mut self.instr().op else { return None };
        list[k] = token;
        self.ops.insert(self.at, Instr { op: Op::MakeToken, results: vec![token], line: 0, column: 0 });
        Some(())
    }

    fn operand(&mut self, k: usize) -> Option<()> {
        let Instr { op, results, .. } = &self.ops[self.at];
        let (result, operand) = (*results.first()?, *op.operands().get(k)?);
        if self.types.get(result.index()) != self.types.get(operand.index()) {
            return None;
        }
        self.pairs.push((result, operand));
        self.ops.remove(self.at);
        Some(())
    }

    fn known(&mut self, value: u64) -> Option<()> {
        let Instr { results, .. } = &self.ops[self.at];
        let [result] = results[..] else { return None };
        let bit = self.types.get(result.index())?.tile()?.elem == Elem::Scalar(Scalar::I1);
        if value > 0 && !bit {
            return None;
        }
        self.ops[self.at] = self.constant(result, value)?;
        Some(())
    }
}

/// Gives a strong access the order `to`, or narrows its scope to the device if `to` is `None`.
fn weaken(op: &mut Op, to: Option<Order>) -> Option<()> {
    let Access { order, scope } = op.access()?;
    if to.is_some() && order == Order::Weak {
        return None;
    }
    let scope = if to.is_some() { scope } else { scope.map(|scope| Scope::Device.min(scope)) };
    op.set_access(Access { order: to.unwrap_or(order), scope });
    Some(())
}

/// Gives all tiles and views other shapes. An `iota` that becomes a scalar is the constant 0.
fn reshape(function: &mut Function, shape: &dyn Fn(&[u32]) -> Vec<u32>) -> Option<()> {
    let mut changed = false;
    for ty in &mut function.types {
        let extents = match ty {
            Type::Tile(tile) => &mut tile.shape,
            Type::View(view) => &mut view.tile,
            _ => continue,
        };
        let new = shape(extents);
        changed |= new != *extents;
        *extents = new;
    }
    let types = &function.types;
    function.body.walk_mut(&mut |instr| {
        let scalar =
            |v: &Value| types.get(v.index()).and_then(Type::tile).is_some_and(|t| t.shape.is_empty());
        if instr.op == Op::Iota && instr.results.iter().all(scalar) {
            instr.op = Op::Constant(Constant { bits: vec![0] });
        }
    });
    changed.then_some(())
}

fn halve(function: &mut Function, extent: u32) -> Option<()> {
    let half = extent / 2;
    reshape(function, &|shape| match shape {
        [first, rest @ ..] if !rest.is_empty() && shape.iter().product::<u32>() == extent => {
            std::iter::once(first / 2).chain(rest.iter().copied()).collect()
        }
        _ => shape.iter().map(|e| if *e == extent { half } else { *e }).collect(),
    })?;
    let types = &function.types;
    function.body.walk_mut(&mut |instr| {
        let Op::Constant(constant) = &mut instr.op else { return };
        let tile = instr.results.first().and_then(|v| types.get(v.index())).and_then(Type::tile);
        let count = tile.map_or(1, Tile::elements);
        if constant.bits.len() > 1 {
            constant.bits.truncate(usize::try_from(count).unwrap_or(1));
        }
        // The last index of a reversed or rotated range.
        if let ([bits], true) = (constant.bits.as_mut_slice(), count == u64::from(half))
            && *bits == u64::from(extent - 1)
        {
            *bits = u64::from(half.max(1) - 1);
        }
    });
    Some(())
}

fn drop_parameter(function: &mut Function, launch: &mut TileLaunch, n: usize) -> Option<()> {
    if n >= function.body.params.len() {
        return None;
    }
    function.body.params.remove(n);
    let moved =
        |position: u16| (usize::from(position) != n).then(|| position - u16::from(usize::from(position) > n));
    launch.params = launch.params.iter().filter_map(|(p, v)| Some((moved(*p)?, *v))).collect();
    launch.bytes = launch.bytes.iter().filter_map(|(p, v)| Some((moved(*p)?, *v))).collect();
    Some(())
}

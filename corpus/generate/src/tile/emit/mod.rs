//! Turns a plan into a module: operations in the order in which their values are numbered.
//!
//! If a plan needs something that does not exist (a value to compare, a token), that part is left out. Each load's result
//! is stored to a place of its own, behind the last parameters.

mod parts;
mod views;

use super::plan::{Access, BlockStep, HALF, Kind, Mapping, Mask, Plan, Role, Shown, touched};
use moire_tile_ir::{
    Access as Strength, Block, Constant, Convert, Elem, Function, Hints, Instr, IntegerOp, Module, Op, Order,
    Predicate, Scalar, Sign, Tile, Type, Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// Most elements of results that one block stores in a kernel whose blocks run the same code.
const SHOWN: u32 = 4_096;

/// A value that was read.
#[derive(Clone, Copy)]
struct Read {
    value: Value,
    elem: Scalar,
    width: u32,
}

/// Values in scope.
#[derive(Clone, Default)]
struct Seen {
    tokens: Vec<Value>,
    reads: Vec<Read>,
    /// For each private parameter, the token of its last access.
    chains: BTreeMap<usize, Value>,
}

/// A number that is known now, or a value computed by the kernel.
#[derive(Clone, Copy)]
enum Number {
    Known(u32),
    Computed(Value),
}

struct Emit<'p> {
    plan: &'p Plan,
    function: Function,
    open: Vec<Block>,
    seen: Seen,
    /// The number of the block, and its value if known.
    block: Value,
    known: Option<u32>,
    /// By type: the parameter for results, and how many of its elements are used.
    shown: BTreeMap<Scalar, (Value, u32)>,
    /// Counter and number of iterations of the surrounding loop.
    turn: Option<(Value, u32)>,
    /// The private parameters whose tokens that loop carries, and whether it carries the last token.
    carried: (BTreeSet<usize>, bool),
}

/// The kernel of a plan.
pub(super) fn module(plan: &Plan) -> Module {
    let elems: BTreeSet<Scalar> = plan.params.iter().map(|p| p.elem).chain([Scalar::I32]).collect();
    let inputs = plan.params.iter().map(|p| p.elem);
    let types = inputs.chain(elems.iter().copied()).map(Type::pointer).collect();
    let function = Function::entry("k", types);
    let outs = function.body.params.iter().skip(plan.params.len());
    let shown = elems.iter().zip(outs).map(|(e, v)| (*e, (*v, 0))).collect();
    let open = vec![Block::default()];
    let (seen, block) = (Seen::default(), Value(0));
    let mut emit = Emit {
        plan,
        function,
        open,
        seen,
        block,
        known: None,
        shown,
        turn: None,
        carried: Default::default(),
    };
    emit.kernel();
    let ops = emit.open.pop().map(|b| b.ops).unwrap_or_default();
    emit.function.body.ops = ops;
    // Remove unused parameters.
    for unused in emit.function.unused_params().into_iter().rev() {
        emit.function.body.params.remove(unused);
    }
    emit.function.renumber();
    Module { name: "drawn".to_owned(), functions: vec![emit.function] }
}

fn row(elem: Elem, width: u32) -> Type {
    Type::Tile(Tile { elem, shape: if width == 0 { Vec::new() } else { vec![width] } })
}

fn numbers(elem: Scalar, width: u32) -> Type {
    row(Elem::Scalar(elem), width)
}

impl Emit<'_> {
    fn many(&mut self, op: Op, types: Vec<Type>) -> Vec<Value> {
        let results: Vec<Value> = types.into_iter().map(|ty| self.function.fresh(ty)).collect();
        let instr = Instr { op, results: results.clone(), line: 0, column: 0 };
        if let Some(block) = self.open.last_mut() {
            block.ops.push(instr);
        }
        results
    }

    fn op(&mut self, op: Op, ty: Type) -> Value {
        self.many(op, vec![ty]).first().copied().unwrap_or(self.block)
    }

    /// Emits the operations of `fill` into a new block, whose values go out of scope at its end.
    fn inside<T>(&mut self, params: Vec<Value>, fill: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        let before = self.seen.clone();
        self.open.push(Block { params, ops: Vec::new() });
        let result = fill(self);
        self.seen = before;
        (self.open.pop().unwrap_or_default(), result)
    }

    fn constant(&mut self, elem: Scalar, width: u32, value: u64) -> Value {
        let bits = vec![value & elem.mask()];
        self.op(Op::Constant(Constant { bits }), numbers(elem, width))
    }

    fn integer(&mut self, op: IntegerOp, a: Value, b: Value) -> Value {
        let ty = self.function.ty(a).cloned().unwrap_or(Type::Token);
        self.op(Op::Integer { op, a, b }, ty)
    }

    fn compare(&mut self, predicate: Predicate, read: Read, with: u64) -> Value {
        let b = self.constant(read.elem, read.width, with);
        // A bit is 0 or 1.
        let sign = if read.elem == Scalar::I1 { Sign::Unsigned } else { Sign::Signed };
        let op = Op::Compare { predicate, sign, a: read.value, b };
        self.op(op, numbers(Scalar::I1, read.width))
    }

    /// Repeats a scalar in all elements of a tile.
    fn splat(&mut self, value: Value, elem: Elem, width: u32) -> Value {
        if width == 0 {
            return value;
        }
        let one = self.op(Op::Convert { to: Convert::Reshape, value }, row(elem, 1));
        self.op(Op::Convert { to: Convert::Broadcast, value: one }, row(elem, width))
    }

    fn kernel(&mut self) {
        let three = vec![Type::scalar(Scalar::I32); 3];
        self.block = self.many(Op::TileBlockId, three)[0];
        if self.plan.uniform() {
            self.steps(&self.plan.bodies[0]);
        } else if self.plan.nested {
            self.nested(0);
        } else {
            for number in 0..self.plan.blocks {
                let is = self.is_block(number);
                let (then, ()) = self.arm(|emit| emit.body(number));
                self.many(Op::If { condition: is, then, otherwise: None }, Vec::new());
            }
        }
        self.many(Op::Return(Vec::new()), Vec::new());
    }

    fn is_block(&mut self, number: u32) -> Value {
        let block = Read { value: self.block, elem: Scalar::I32, width: 0 };
        self.compare(Predicate::Equal, block, u64::from(number))
    }

    fn body(&mut self, number: u32) {
        let plan = self.plan;
        self.known = Some(number);
        if let Some(steps) = plan.bodies.get(number as usize) {
            self.steps(steps);
        }
        self.known = None;
    }

    fn nested(&mut self, number: u32) {
        if number + 1 >= self.plan.blocks {
            return self.body(number);
        }
        let is = self.is_block(number);
        let (then, ()) = self.arm(|emit| emit.body(number));
        let (otherwise, ()) = self.arm(|emit| emit.nested(number + 1));
        self.many(Op::If { condition: is, then, otherwise: Some(otherwise) }, Vec::new());
    }

    /// An arm that yields nothing.
    fn arm(&mut self, fill: impl FnOnce(&mut Self)) -> (Block, ()) {
        self.inside(Vec::new(), |emit| {
            fill(emit);
            emit.many(Op::Yield(Vec::new()), Vec::new());
        })
    }

    fn steps(&mut self, steps: &[BlockStep]) {
        for step in steps {
            match step {
                BlockStep::Access(access) => self.access(access),
                BlockStep::If { .. } => self.choice(step),
                BlockStep::For { turns, body, carries } => self.repeat(*turns, body, *carries),
                BlockStep::Spin(access, value) => self.spin(access, *value),
                BlockStep::Tries(access, value) => self.tries(access, *value),
                BlockStep::Skip { with, twice } => self.skip(*with, *twice),
                BlockStep::Show(which) => {
                    if let Some(read) = self.seen.reads.iter().rev().nth(usize::from(*which)).copied() {
                        self.show(read, Shown::Plain);
                    }
                }
                BlockStep::Fresh => {
                    let token = self.op(Op::MakeToken, Type::Token);
                    self.seen.tokens.push(token);
                }
            }
        }
    }

    fn access(&mut self, access: &Access) {
        let place = &access.place;
        let elem = self.plan.params.get(place.param).map_or(Scalar::I32, |p| p.elem);
        let width = place.width;
        let value = match access.kind {
            Kind::Load(_) => None,
            Kind::Store(source) | Kind::Rmw(_, source, _) | Kind::Cas(_, source, _) => {
                Some(self.source(source, elem, width))
            }
        };
        let compared = match access.kind {
            Kind::Cas(with, ..) => Some(self.constant(elem, width, with)),
            _ => None,
        };
        let base = self.function.body.params.get(place.param).copied().unwrap_or(self.block);
        if access.through_view() {
            return self.view_access(access, elem, base, value);
        }
        let mask = self.mask(access.mask, width);
        let first = self.first(place);
        let pointers = self.pointers(base, elem, first, width, place.mapping);
        let padding = match (mask, access.kind) {
            (Some(_), Kind::Load(_)) => Some(self.constant(elem, width, 9)),
            _ => None,
        };
        let token = self.token(access);
        let square = place.square && width >= 8;
        let mut shaped = |value: Option<Value>| match value {
            Some(value) if square => Some(self.squared(value, width)),
            other => other,
        };
        let (value, compared) = (shaped(value), shaped(compared));
        let (mask_used, padding) = (shaped(mask), shaped(padding));
        let pointers = shaped(Some(pointers)).unwrap_or(pointers);
        let op = operation(access, pointers, [value, compared], [mask_used, padding, token]);
        if !access.reads() {
            let token = self.op(op, Type::Token);
            return self.leaves(access, token);
        }
        let ty = Type::Tile(Tile { elem: Elem::Scalar(elem), shape: shape(width, square) });
        let results = self.many(op, vec![ty, Type::Token]);
        let [mut value, token] = results[..] else { return };
        self.leaves(access, token);
        if square {
            value = self.op(Op::Convert { to: Convert::Reshape, value }, numbers(elem, width));
        }
        if let (Some(mask), Kind::Rmw(..) | Kind::Cas(..)) = (mask, access.kind) {
            // The result of an atomic is unspecified in elements that are masked off.
            if matches!(access.mask, Mask::Read(..)) {
                return;
            }
            let other = self.constant(elem, width, 9);
            value = self.op(Op::Select { condition: mask, a: value, b: other }, numbers(elem, width));
        }
        self.read(access, Read { value, elem, width });
    }

    /// Records a value that was read, and stores it as a result.
    fn read(&mut self, access: &Access, read: Read) {
        self.seen.reads.push(read);
        if let Kind::Load(shown) | Kind::Rmw(_, _, shown) | Kind::Cas(_, _, shown) = access.kind {
            self.show(read, shown);
        }
    }

    fn squared(&mut self, value: Value, width: u32) -> Value {
        let Some(tile) = self.function.tile(value).cloned() else { return value };
        let ty = Type::Tile(Tile { elem: tile.elem, shape: shape(width, true) });
        self.op(Op::Convert { to: Convert::Reshape, value }, ty)
    }

    /// Stores a value that was read as a result.
    fn show(&mut self, read: Read, shown: Shown) {
        let Read { value, elem, width } = read;
        let wide = |emit: &mut Self, value, to: u32| {
            if to == width { value } else { emit.splat(value, Elem::Scalar(elem), to) }
        };
        let (value, width) = match shown {
            Shown::Plain => (value, width),
            Shown::Later => return,
            Shown::Spread(to) => (wide(self, value, to), to),
            Shown::Combined(how, with, to) => {
                let value = wide(self, value, to);
                (self.combined(value, how, with, elem, to), to)
            }
            Shown::Chosen(with, to) => {
                let value = wide(self, value, to);
                let read = Read { value, elem, width: to };
                let condition = self.compare(Predicate::Equal, read, with);
                let (a, b) = (self.constant(elem, to, 7), self.constant(elem, to, 8));
                (self.op(Op::Select { condition, a, b }, numbers(elem, to)), to)
            }
        };
        if elem == HALF {
            return self.show_halves(value, width);
        }
        if let Some(pointers) = self.own_place(elem, width) {
            self.store(pointers, value);
        }
    }

    fn store(&mut self, pointers: Value, value: Value) {
        let access = Strength { order: Order::Weak, scope: None };
        let (hints, mask, token) = (Hints::new(), None, None);
        self.op(Op::StorePtr { pointers, value, access, hints, mask, token }, Type::Token);
    }

    /// Reserves elements for a result and returns the base of their memory and the number of the first.
    fn reserved(&mut self, elem: Scalar, width: u32) -> Option<(Value, u32)> {
        let turns = self.turn.map_or(1, |(_, turns)| turns);
        let (base, used) = *self.shown.get(&elem)?;
        let (each, limit) = (width.max(1), if self.plan.uniform() { SHOWN } else { 2 * SHOWN });
        if used + each * turns > limit || (elem.bits() > 32 && used + each * turns > limit / 2) {
            return None;
        }
        self.shown.insert(elem, (base, used + each * turns));
        Some((base, used))
    }

    /// Reserves elements for a result and returns pointers to them.
    fn own_place(&mut self, elem: Scalar, width: u32) -> Option<Value> {
        let (base, used) = self.reserved(elem, width)?;
        let each = width.max(1);
        let mut first = Number::Known(used);
        if let Some((counter, _)) = self.turn {
            first = self.add(first, counter, each);
        }
        if self.plan.uniform() {
            let apart = if elem.bits() > 32 { SHOWN / 2 } else { SHOWN };
            first = self.add(first, self.block, apart);
        }
        Some(self.pointers(base, elem, first, width, Mapping::InOrder))
    }

    fn choice(&mut self, step: &BlockStep) {
        let BlockStep::If { read, predicate, with, then, otherwise, yields, marks } = step else { return };
        let scalars = self.seen.reads.iter().rev().filter(|r| r.width == 0);
        let Some(of) = scalars.copied().nth(usize::from(*read)) else {
            return self.steps(then);
        };
        let condition = self.compare(*predicate, of, *with);
        let none = Vec::new();
        let second = otherwise.as_ref().unwrap_or(&none);
        let mut chained = touched(then, &self.plan.params, Role::Private);
        chained.extend(touched(second, &self.plan.params, Role::Private));
        let mark = marks.and_then(|width| {
            let (base, used) = self.shown.get(&Scalar::I32).copied()?;
            (self.turn.is_none() && !self.plan.uniform() && used + 256 <= 2 * SHOWN).then(|| {
                self.shown.insert(Scalar::I32, (base, used + width.max(1)));
                (base, used, width)
            })
        });
        let then = self.yielding(then, mark.map(|m| (m, 7)), &chained, *yields);
        let results = usize::from(*yields) + chained.len();
        let wanted = otherwise.is_some() || results > 0;
        let otherwise = wanted.then(|| self.yielding(second, mark.map(|m| (m, 8)), &chained, *yields));
        let tokens = self.many(Op::If { condition, then, otherwise }, vec![Type::Token; results]);
        let (own, chains) = tokens.split_at(usize::from(*yields));
        self.seen.tokens.extend(own);
        self.seen.chains.extend(chained.into_iter().zip(chains.iter().copied()));
    }

    /// Emits an arm that yields its last token if `yields`, and the tokens of private parameters.
    fn yielding(
        &mut self,
        steps: &[BlockStep],
        mark: Option<((Value, u32, u32), u64)>,
        chained: &BTreeSet<usize>,
        yields: bool,
    ) -> Block {
        let (block, ()) = self.inside(Vec::new(), |emit| {
            if let Some(((base, first, width), value)) = mark {
                let value = emit.constant(Scalar::I32, width, value);
                let first = Number::Known(first);
                let pointers = emit.pointers(base, Scalar::I32, first, width, Mapping::InOrder);
                emit.store(pointers, value);
            }
            emit.steps(steps);
            let tokens = emit.ends(chained, yields);
            emit.many(Op::Yield(tokens), Vec::new());
        });
        block
    }

    /// The last token if `last`, and the tokens of private parameters.
    fn ends(&mut self, chained: &BTreeSet<usize>, last: bool) -> Vec<Value> {
        let mut tokens = Vec::new();
        if last {
            let token = self.seen.tokens.last().copied();
            tokens.push(token.unwrap_or_else(|| self.op(Op::MakeToken, Type::Token)));
        }
        for param in chained {
            let token = self.seen.chains.get(param).copied();
            tokens.push(token.unwrap_or_else(|| self.op(Op::MakeToken, Type::Token)));
        }
        tokens
    }

    fn repeat(&mut self, turns: u32, steps: &[BlockStep], carries: bool) {
        if self.turn.is_some() {
            return self.steps(steps);
        }
        let chained = touched(steps, &self.plan.params, Role::Private);
        let bounds = [0, turns, 1].map(|n| self.constant(Scalar::I32, 0, u64::from(n)));
        let inits = self.ends(&chained, carries);
        let counter = self.function.fresh(Type::scalar(Scalar::I32));
        let carried: Vec<Value> = inits.iter().map(|_| self.function.fresh(Type::Token)).collect();
        let params = std::iter::once(counter).chain(carried.iter().copied()).collect();
        let (body, ()) = self.inside(params, |emit| {
            emit.turn = Some((counter, turns));
            emit.carried = (chained.clone(), carries);
            let (own, chains) = carried.split_at(usize::from(carries));
            emit.seen.tokens.extend(own);
            emit.seen.chains.extend(chained.iter().copied().zip(chains.iter().copied()));
            emit.steps(steps);
            let ends = emit.ends(&chained, carries);
            emit.many(Op::Continue(ends), Vec::new());
        });
        self.turn = None;
        let types = vec![Type::Token; inits.len()];
        let results = self.many(Op::For { unsigned: false, bounds, inits, body }, types);
        let (own, chains) = results.split_at(usize::from(carries));
        self.seen.tokens.extend(own);
        self.seen.chains.extend(chained.into_iter().zip(chains.iter().copied()));
    }

    /// A `continue` where the last scalar read has this value; if `twice`, it is compared again inside.
    fn skip(&mut self, with: u64, twice: bool) {
        let Some(of) = self.seen.reads.iter().rev().find(|r| r.width == 0).copied() else { return };
        let condition = self.compare(Predicate::Equal, of, with);
        let (then, ()) = self.inside(Vec::new(), |emit| {
            if !twice {
                return emit.skips();
            }
            let condition = emit.compare(Predicate::NotEqual, of, with + 1);
            let (then, ()) = emit.inside(Vec::new(), Self::skips);
            emit.many(Op::If { condition, then, otherwise: None }, Vec::new());
            emit.many(Op::Yield(Vec::new()), Vec::new());
        });
        self.many(Op::If { condition, then, otherwise: None }, Vec::new());
    }

    fn skips(&mut self) {
        let (chained, last) = self.carried.clone();
        let ends = self.ends(&chained, last);
        self.many(Op::Continue(ends), Vec::new());
    }

    /// A loop of at most two turns, whose results are what its load reads and the token of that load.
    fn tries(&mut self, access: &Access, value: u64) {
        let elem = self.plan.params.get(access.place.param).map_or(Scalar::I32, |p| p.elem);
        let outer = self.token(access);
        let base = self.function.body.params.get(access.place.param).copied().unwrap_or(self.block);
        let init = self.constant(Scalar::I32, 0, 0);
        let turn = self.function.fresh(Type::scalar(Scalar::I32));
        let (body, ()) = self.inside(vec![turn], |emit| {
            let first = emit.first(&access.place);
            let pointers = emit.pointers(base, elem, first, 0, Mapping::InOrder);
            let op = operation(access, pointers, [None, None], [None, None, outer]);
            let results = emit.many(op, vec![numbers(elem, 0), Type::Token]);
            let [read, token] = results[..] else { return };
            let leave = |emit: &mut Self| drop(emit.many(Op::Break(vec![read, token]), Vec::new()));
            let condition = emit.compare(Predicate::Equal, Read { value: read, elem, width: 0 }, value);
            let counter = Read { value: turn, elem: Scalar::I32, width: 0 };
            let (then, ()) = emit.inside(Vec::new(), |emit| {
                let condition = emit.compare(Predicate::Equal, counter, 0);
                let (then, ()) = emit.inside(Vec::new(), leave);
                emit.many(Op::If { condition, then, otherwise: None }, Vec::new());
                emit.many(Op::Yield(Vec::new()), Vec::new());
            });
            emit.many(Op::If { condition, then, otherwise: None }, Vec::new());
            let condition = emit.compare(Predicate::Equal, counter, 1);
            let (then, ()) = emit.inside(Vec::new(), leave);
            emit.many(Op::If { condition, then, otherwise: None }, Vec::new());
            let one = emit.constant(Scalar::I32, 0, 1);
            let next = emit.integer(IntegerOp::Add(moire_tile_ir::Overflow::Wraps), turn, one);
            emit.many(Op::Continue(vec![next]), Vec::new());
        });
        let op = Op::Loop { inits: vec![init], body };
        let results = self.many(op, vec![numbers(elem, 0), Type::Token]);
        let [value, token] = results[..] else { return };
        self.leaves(access, token);
        self.read(access, Read { value, elem, width: 0 });
    }

    fn spin(&mut self, access: &Access, value: u64) {
        let elem = self.plan.params.get(access.place.param).map_or(Scalar::I32, |p| p.elem);
        let outer = self.token(access);
        let base = self.function.body.params.get(access.place.param).copied().unwrap_or(self.block);
        let (body, ()) = self.inside(Vec::new(), |emit| {
            let first = emit.first(&access.place);
            let pointers = emit.pointers(base, elem, first, 0, Mapping::InOrder);
            let op = operation(access, pointers, [None, None], [None, None, outer]);
            let results = emit.many(op, vec![numbers(elem, 0), Type::Token]);
            let [read, token] = results[..] else { return };
            let condition = emit.compare(Predicate::Equal, Read { value: read, elem, width: 0 }, value);
            let (then, ()) = emit.inside(Vec::new(), |emit| {
                emit.many(Op::Break(vec![token]), Vec::new());
            });
            emit.many(Op::If { condition, then, otherwise: None }, Vec::new());
            emit.many(Op::Continue(Vec::new()), Vec::new());
        });
        let token = self.op(Op::Loop { inits: Vec::new(), body }, Type::Token);
        self.seen.tokens.push(token);
    }
}

fn shape(width: u32, square: bool) -> Vec<u32> {
    match (width, square) {
        (0, _) => Vec::new(),
        (_, true) => vec![width / 4, 4],
        _ => vec![width],
    }
}

/// The memory operation itself.
fn operation(
    access: &Access,
    pointers: Value,
    [value, compare]: [Option<Value>; 2],
    [mask, padding, token]: [Option<Value>; 3],
) -> Op {
    let strength = Strength { order: access.order, scope: access.scope };
    let scope = access.scope.unwrap_or(moire_tile_ir::Scope::Device);
    let (order, hints) = (access.order, Hints::new());
    let value = value.unwrap_or(pointers);
    match access.kind {
        Kind::Load(_) => Op::LoadPtr { pointers, access: strength, hints, mask, padding, token },
        Kind::Store(_) => Op::StorePtr { pointers, value, access: strength, hints, mask, token },
        Kind::Rmw(mode, ..) => Op::AtomicRmw { pointers, mode, value, order, scope, mask, token },
        Kind::Cas(..) => {
            let compare = compare.unwrap_or(pointers);
            Op::AtomicCas { pointers, compare, value, order, scope, mask, token }
        }
    }
}

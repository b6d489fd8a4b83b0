//! Small random programs of tile blocks: overlapping tiles, masks, all orders and scopes; tokens that are passed on,
//! missing, joined, or chosen by a condition.

use crate::numbers::Choose;
use crate::stream::{Family, WORDED};
use moire_program::ir::*;
use moire_tile_ir::lowering::{Lowering, lower};

/// The families of the stream.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "blocks", share: 3, worded: WORDED, draw: |u| Some(blocks(u)) },
    Family { name: "beside", share: 1, worded: WORDED, draw: |u| beside(u) },
];

/// Draws a program of tile blocks alone.
pub fn blocks(draw: &mut dyn Choose) -> Program {
    let count = draw.pick(&[1, 2, 2, 2, 2, 3]);
    let mut budget = draw.pick(&[5, 6, 7, 8]);
    let sizes = draw.pick(&[0, 0, 0, 15]);
    let threads = (0..count).map(|n| {
        let mut block = Block::new(draw, n, sizes);
        let most = if count == 3 { 2 } else { 4 };
        for _ in 0..=block.d.below(most) {
            if budget > 0 {
                block.piece(&mut budget);
            }
        }
        block.thread
    });
    let threads: Vec<Thread> = threads.collect();
    let object = |name: &str, bytes: u32| Object {
        name: name.to_owned(),
        space: Space::Global,
        bytes,
        init: Content::default(),
    };
    let symbol = |name: &str, object: u16, virt: u16| Symbol {
        name: name.to_owned(),
        object: ObjectId(object),
        virt: SymbolId(virt),
        proxy: Proxy::Generic,
        multimem: Vec::new(),
    };
    Program {
        name: "blocks".to_owned(),
        objects: vec![object("x", 8), object("y", 4)],
        symbols: vec![symbol("x", 0, 0), symbol("y", 1, 1), symbol("also", 0, 2)],
        threads,
        launched: false,
        one_cluster: false,
        filter: None,
        conditions: Vec::new(),
    }
}

/// Draws a program and lowers some of its tile blocks to PTX threads, in every fourth all of them. The second name of a
/// location gets the same address, because the model has no aliases in such programs. `None` if a tile block cannot be
/// lowered.
pub fn beside(draw: &mut dyn Choose) -> Option<Program> {
    let mut program = beside_with_alias(draw)?;
    program.symbols.iter_mut().skip(2).for_each(|s| s.virt = SymbolId(0));
    Some(program)
}

/// The same, but the second name of a location remains an alias.
pub fn beside_with_alias(draw: &mut dyn Choose) -> Option<Program> {
    let mut program = blocks(draw);
    let one = Lowering { threads: 1, turns: false, weakened: None };
    let plain = lower(&program, &one).ok()?;
    let all = draw.chance(25);
    for (thread, lowered) in program.threads.iter_mut().zip(plain.threads) {
        if all || draw.chance(50) {
            *thread = lowered;
        }
    }
    Some(program)
}

struct Block<'d> {
    d: &'d mut dyn Choose,
    thread: Thread,
    /// Registers with numbers, conditions and tokens so far.
    values: Vec<Reg>,
    conditions: Vec<Reg>,
    tokens: Vec<Reg>,
    /// Percentage of accesses with two bytes.
    narrow: usize,
}

impl<'d> Block<'d> {
    fn new(d: &'d mut dyn Choose, number: u16, narrow: usize) -> Self {
        let gpu = u16::from(number == 1 && d.chance(10));
        let place = Placement { gpu, cluster: number, cta: number, ..Placement::default() };
        let (regs, labels, body) = (Vec::new(), Vec::new(), Vec::new());
        let thread = Thread { name: format!("B{number}"), place, regs, labels, body };
        Block { d, thread, values: Vec::new(), conditions: Vec::new(), tokens: Vec::new(), narrow }
    }

    fn fresh(&mut self, kind: &str) -> Reg {
        let number = self.thread.regs.len();
        self.thread.regs.push(RegDecl { name: format!("{kind}{number}"), init: RegInit::Value(0) });
        Reg::at(number)
    }

    fn push(&mut self, op: Op) {
        self.thread.body.push(Instr::new(op));
    }

    fn one_of(&mut self, from: &[Reg]) -> Option<Reg> {
        if from.is_empty() { None } else { Some(self.d.pick(from)) }
    }

    fn value(&mut self) -> Operand {
        let number = Operand::Imm(self.d.pick(&[1, 2, 1]));
        let values = self.values.clone();
        if self.d.chance(35) { self.one_of(&values).map_or(number, Operand::Reg) } else { number }
    }

    fn piece(&mut self, budget: &mut usize) {
        if self.d.chance(30) && !self.values.is_empty() {
            self.condition();
        }
        if self.d.chance(35) && !self.tokens.is_empty() {
            self.token();
        }
        let skipped = if self.d.chance(6) { self.conditions.last().copied() } else { None };
        let at = self.thread.body.len();
        self.access(budget);
        if let Some(reg) = skipped {
            let behind = self.thread.body.len() + 1;
            let mut branch = Instr::new(Op::Bra { target: behind });
            branch.guard = Some(Guard { reg, negated: self.d.chance(50) });
            self.thread.body.insert(at, branch);
            self.thread.labels.push(Label { name: format!("L{behind}"), at: behind });
        }
    }

    fn condition(&mut self) {
        let values = self.values.clone();
        let Some(read) = self.one_of(&values) else { return };
        let (dst, op) = (self.fresh("p"), self.d.pick(&[CmpOp::Eq, CmpOp::Ne]));
        let b = Operand::Imm(self.d.pick(&[0, 1, 2]));
        self.push(Op::Setp { op, ty: Ty::U(32), dst, a: Operand::Reg(read), b });
        self.conditions.push(dst);
    }

    fn token(&mut self) {
        let (tokens, conditions) = (self.tokens.clone(), self.conditions.clone());
        let first = self.one_of(&tokens);
        let second = self.one_of(&tokens);
        let dst = self.fresh("t");
        let when = if self.d.chance(60) { self.one_of(&conditions) } else { None };
        let token = match (when, first, second) {
            (Some(when), Some(yes), Some(no)) => TileToken::Choose { dst, when, yes, no },
            _ => TileToken::Join { dst, from: first.into_iter().chain(second).collect() },
        };
        self.push(Op::Tile(TileOp::Token(token)));
        self.tokens.push(dst);
    }

    fn kind(&mut self) -> TileKind {
        let scope = self.d.pick(&[Scope::Gpu, Scope::Gpu, Scope::Gpu, Scope::Sys, Scope::Cta]);
        let load = [LoadOrder::Weak, LoadOrder::Relaxed(scope), LoadOrder::Acquire(scope)];
        let store = [StoreOrder::Weak, StoreOrder::Relaxed(scope), StoreOrder::Release(scope)];
        match self.d.below(10) {
            0..4 => TileKind::Load(self.d.pick(&load)),
            4..8 => TileKind::Store(self.d.pick(&store)),
            _ => {
                let op = self.d.pick(&[AtomOp::Add, AtomOp::Exch, AtomOp::Cas, AtomOp::Max]);
                let order = [RmwOrder::Relaxed, RmwOrder::Acquire, RmwOrder::Release, RmwOrder::AcqRel];
                TileKind::Rmw { op, order: self.d.pick(&order), scope }
            }
        }
    }

    fn access(&mut self, budget: &mut usize) {
        let kind = self.kind();
        let ty = if self.d.chance(self.narrow) { Ty::U(16) } else { Ty::U(32) };
        let cost = if matches!(kind, TileKind::Rmw { .. }) { 2 } else { 1 };
        let count = self.d.pick(&[1, 1, 1, 2, 2, 3]).min((*budget / cost).max(1));
        *budget = budget.saturating_sub(count * cost);
        let elements: Vec<TileElement> = (0..count).map(|_| self.element(kind)).collect();
        let tokens = self.tokens.clone();
        let last = self.tokens.last().copied();
        let after = match self.d.below(10) {
            0..5 => last,
            5..7 => self.one_of(&tokens),
            _ => None,
        };
        let token = if self.d.chance(85) { Some(self.fresh("t")) } else { None };
        self.values.extend(elements.iter().filter_map(|e| e.dst));
        self.tokens.extend(token);
        self.push(Op::Tile(TileOp::Access(Box::new(TileAccess { kind, ty, elements, after, token }))));
    }

    fn element(&mut self, kind: TileKind) -> TileElement {
        let conditions = self.conditions.clone();
        let mask = if self.d.chance(40) { self.one_of(&conditions) } else { None };
        let off = if self.d.chance(4) { Some(self.fresh("off")) } else { None };
        let reads = !matches!(kind, TileKind::Store(_));
        let returns = matches!(kind, TileKind::Load(_)) || (mask.is_none() && off.is_none());
        let dst = if reads && returns && self.d.chance(90) { Some(self.fresh("r")) } else { None };
        let b = if matches!(kind, TileKind::Rmw { op: AtomOp::Cas, .. }) { Some(self.value()) } else { None };
        TileElement { addr: self.address(), mask: off.or(mask), dst, a: Some(self.compared(b)), b }
    }

    /// Draws the value that a compare-and-swap compares with: mostly 0, which memory often holds.
    fn compared(&mut self, b: Option<Operand>) -> Operand {
        if b.is_some() && self.d.chance(60) { Operand::Imm(0) } else { self.value() }
    }

    fn address(&mut self) -> Address {
        let at = |symbol: u16, offset: i32| Address { base: Operand::Address(SymbolId(symbol)), offset };
        let values = self.values.clone();
        match (self.d.below(20), self.one_of(&values)) {
            (0, Some(read)) => {
                let (bit, step, place) = (self.fresh("i"), self.fresh("i"), self.fresh("a"));
                let (two, wide) = (Ty::U(32), Ty::U(64));
                self.push(Op::Alu {
                    op: AluOp::And,
                    ty: two,
                    dst: bit,
                    a: Operand::Reg(read),
                    b: Operand::Imm(1),
                });
                self.push(Op::Alu {
                    op: AluOp::Mul,
                    ty: two,
                    dst: step,
                    a: Operand::Reg(bit),
                    b: Operand::Imm(4),
                });
                let (a, b) = (Operand::Address(SymbolId(0)), Operand::Reg(step));
                self.push(Op::Alu { op: AluOp::Add, ty: wide, dst: place, a, b });
                Address { base: Operand::Reg(place), offset: 0 }
            }
            (1, _) => at(2, 0),
            (2..5, _) => at(0, 4),
            (5..12, _) => at(1, 0),
            _ => at(0, 0),
        }
    }
}

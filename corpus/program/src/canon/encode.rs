//! Encodes a program as bytes: the total order that defines the least program, and a key for sets of programs.
//!
//! Contract: injective up to names and lines; equal bytes mean equal programs. Not a storage format.

use super::spell::{Spell, tuple};
use super::tags::Tag;
use crate::ir::{
    BarKind, Book, Condition, Expr, Guard, LoadOrder, MbarrierOp, Op, Operand, Part, Parts, Placement,
    Program, ProxyFence, RegInit, Scope, StoreOrder, Term, Ty,
};

/// The encoding of `program` without names.
pub fn bytes(program: &Program) -> Vec<u8> {
    let mut w = Writer(Vec::with_capacity(256));
    w.len(program.threads.len());
    for thread in &program.threads {
        w.len(thread.body.len());
    }
    for thread in &program.threads {
        for instr in &thread.body {
            w.guard(instr.guard);
            w.op(&instr.op);
        }
        for reg in &thread.regs {
            match &reg.init {
                RegInit::Value(0) => w.0.push(0),
                RegInit::Value(v) => w.tagged(1, &v.to_be_bytes()),
                RegInit::Address(s) => w.tagged(2, &s.0.to_be_bytes()),
                RegInit::Lane => w.tagged(3, &[]),
            }
        }
        w.place(&thread.place);
    }
    for object in &program.objects {
        w.0.push(object.space.tag());
        w.0.extend(object.bytes.to_be_bytes());
        if !object.init.is_zero() {
            // Encodings compare as the byte lists do: of two contents, the one whose first block comes earlier is greater.
            w.0.extend(object.bytes.to_be_bytes());
            for (block, bytes) in object.init.blocks() {
                w.0.extend((!block).to_be_bytes());
                w.0.extend(bytes);
            }
            w.0.extend(0u32.to_be_bytes());
        }
    }
    for symbol in &program.symbols {
        w.0.extend(symbol.object.0.to_be_bytes());
        w.0.extend(symbol.virt.0.to_be_bytes());
        w.0.push(symbol.proxy.tag());
        w.len(symbol.multimem.len());
        symbol.multimem.iter().for_each(|o| w.0.extend(o.0.to_be_bytes()));
    }
    w.len(program.conditions.len());
    program.conditions.iter().for_each(|c| w.condition(c));
    if let Some(filter) = &program.filter {
        w.expr(filter);
    }
    w.0.push(u8::from(program.launched));
    w.0
}

/// Bytes of an expression, for sorting.
pub(super) fn expr_bytes(expr: &Expr) -> Vec<u8> {
    let mut w = Writer(Vec::new());
    w.expr(expr);
    w.0
}

/// Bytes of a condition, for sorting.
pub(super) fn condition_bytes(condition: &Condition) -> Vec<u8> {
    let mut w = Writer(Vec::new());
    w.condition(condition);
    w.0
}

struct Writer(Vec<u8>);

impl Writer {
    fn len(&mut self, n: usize) {
        self.0.extend(u32::try_from(n).expect("lengths of a program are below 2^32").to_be_bytes());
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.0.push(tag);
        self.0.extend(bytes);
    }

    fn guard(&mut self, guard: Option<Guard>) {
        match guard {
            None => self.0.push(0),
            Some(g) => self.tagged(1 + u8::from(g.negated), &g.reg.0.to_be_bytes()),
        }
    }

    fn place(&mut self, p: &Placement) {
        self.0.push(u8::from(p.host));
        for n in [p.gpu, p.stream, p.grid, p.cluster, p.cta, p.warp] {
            self.0.extend(n.to_be_bytes());
        }
        let (first, more) = (p.lane().unwrap_or(0), p.mask.count_ones().saturating_sub(1));
        let range = u32::MAX >> 31u32.saturating_sub(more) << first == p.mask;
        match u8::try_from(more) {
            Ok(more) if range && !p.joined => self.0.extend([1, first, more]),
            _ if p.mask == 0 => self.0.extend([0, 0, 0]),
            _ => self.tagged(2 + u8::from(p.joined), &p.mask.to_be_bytes()),
        }
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Imm(n) => self.tagged(0, &n.to_be_bytes()),
            Operand::Reg(r) => self.tagged(1, &r.0.to_be_bytes()),
            Operand::Address(s) => self.tagged(2, &s.0.to_be_bytes()),
        }
    }

    fn ty(&mut self, ty: Ty) {
        let (tag, width) = match ty {
            Ty::Pred => (0, 1),
            Ty::B(n) => (1, n),
            Ty::U(n) => (2, n),
            Ty::S(n) => (3, n),
            Ty::F(n) => (4, n),
            Ty::F16x2 => (5, 32),
            Ty::Bf16x2 => (6, 32),
        };
        self.tagged(tag, &[width]);
    }

    fn load_order(&mut self, order: LoadOrder) {
        let (tag, scope) = match order {
            LoadOrder::Weak => (0, Scope::Cta),
            LoadOrder::Relaxed(s) => (1, s),
            LoadOrder::Acquire(s) => (2, s),
            LoadOrder::Volatile => (3, Scope::Sys),
            LoadOrder::MmioRelaxed => (4, Scope::Sys),
            LoadOrder::MmioAcquire => (5, Scope::Sys),
            LoadOrder::SeqCst(s) => (6, s),
        };
        self.tagged(tag, &[scope.tag()]);
    }

    fn store_order(&mut self, order: StoreOrder) {
        let (tag, scope) = match order {
            StoreOrder::Weak => (0, Scope::Cta),
            StoreOrder::Relaxed(s) => (1, s),
            StoreOrder::Release(s) => (2, s),
            StoreOrder::Volatile => (3, Scope::Sys),
            StoreOrder::MmioRelaxed => (4, Scope::Sys),
            StoreOrder::MmioRelease => (5, Scope::Sys),
            StoreOrder::SeqCst(s) => (6, s),
        };
        self.tagged(tag, &[scope.tag()]);
    }

    fn op(&mut self, op: &Op) {
        self.header(op);
        let mut regs = Vec::new();
        op.registers(&mut |reg, write| {
            if write {
                regs.push(reg);
            }
        });
        regs.iter().for_each(|r| self.0.extend(r.0.to_be_bytes()));
        self.operands(op);
    }

    /// Mnemonic and modifiers. The last tag is 23: an instruction of today has that of its entry in the book.
    fn header(&mut self, op: &Op) {
        match op {
            Op::Load { order, proxy, space, ty, dst, .. } => {
                self.tagged(1, &[proxy.tag(), space.tag()]);
                self.load_order(*order);
                self.ty(*ty);
                self.len(dst.len());
            }
            Op::Store { order, proxy, space, ty, src, .. } => {
                self.tagged(2, &[proxy.tag(), space.tag()]);
                self.store_order(*order);
                self.ty(*ty);
                self.len(src.len());
            }
            Op::Rmw { red, order, scope, proxy, space, op, ty, dst, b, .. } => {
                let flags = [*red, dst.is_some(), b.is_some()].map(u8::from);
                self.tagged(3, &flags);
                let words = [order.tag(), scope.tag(), proxy.tag(), space.tag(), op.tag()];
                self.0.extend(words);
                self.ty(*ty);
            }
            Op::Fence { order, scope } => self.tagged(4, &[order.tag(), scope.tag()]),
            Op::ProxyFence(kinds) => self.proxy_fence(kinds),
            Op::Mov { ty, .. } => self.typed(6, &[], *ty),
            Op::Alu { op, ty, .. } => self.typed(7, &[op.tag()], *ty),
            Op::Setp { op, ty, .. } => self.typed(8, &[op.tag()], *ty),
            Op::Selp { ty, p, .. } => self.typed(9, &p.0.to_be_bytes(), *ty),
            Op::Bra { target } => {
                self.0.push(10);
                self.len(*target);
            }
            Op::Bar { kind, count, instance, .. } => self.bar(*kind, count.is_some(), *instance),
            Op::ClusterArrive { relaxed } => self.tagged(12, &[u8::from(*relaxed)]),
            Op::ClusterWait => self.0.push(13),
            Op::WarpSync { .. } => self.0.push(14),
            Op::MultimemLoad { order, op, ty, .. } => {
                self.tagged(15, &[op.tag()]);
                self.load_order(*order);
                self.ty(*ty);
            }
            Op::MultimemStore { order, ty, .. } => {
                self.0.push(16);
                self.store_order(*order);
                self.ty(*ty);
            }
            Op::MultimemRed { order, scope, op, ty, .. } => {
                self.typed(17, &[order.tag(), scope.tag(), op.tag()], *ty);
            }
            Op::Exit => self.0.push(18),
            Op::Mbarrier(m) => {
                self.tagged(19, &[m.space.tag()]);
                self.mbarrier(&m.op);
            }
            Op::MbarrierInitFence => self.0.push(20),
            Op::Mapa { ty, shared, .. } => self.typed(21, &[u8::from(*shared)], *ty),
            Op::Tcgen05(family) => self.extended("Tcgen05", family),
            Op::AsyncCopy(family) => self.extended("AsyncCopy", family),
            Op::Wgmma(family) => self.extended("Wgmma", family),
            Op::ProxyOrder(family) => self.extended("ProxyOrder", family),
            Op::Tile(family) => self.extended("Tile", family),
            Op::Control(family) => self.extended("Control", family),
            Op::Book(book) => self.book(book),
        }
    }

    fn book(&mut self, book: &Book) {
        let bytes = book.canon();
        self.0.push(23);
        self.len(bytes.len());
        self.0.extend(bytes);
    }

    fn typed(&mut self, tag: u8, bytes: &[u8], ty: Ty) {
        self.tagged(tag, bytes);
        self.ty(ty);
    }

    fn proxy_fence(&mut self, kinds: &[ProxyFence]) {
        self.0.push(5);
        self.len(kinds.len());
        for kind in kinds {
            match kind {
                ProxyFence::Alias => self.0.push(0),
                ProxyFence::Of(proxy) => self.tagged(1, &[proxy.tag()]),
            }
        }
    }

    fn bar(&mut self, kind: BarKind, counted: bool, instance: Option<u32>) {
        self.tagged(11, &[u8::from(counted)]);
        match kind {
            BarKind::Sync => self.0.push(0),
            BarKind::Arrive => self.0.push(1),
            BarKind::Red { op, pred, .. } => {
                self.tagged(2, &[op.tag()]);
                self.guard(Some(pred));
            }
        }
        self.0.extend(instance.map_or(0, |n| u64::from(n) + 1).to_be_bytes());
    }

    /// Modifiers of tensor-core, copy, fence, tile and control instructions: their spelling. Of the parts only registers that
    /// cannot be anything else are here, the others follow as for any other instruction.
    fn extended(&mut self, word: &str, family: &(impl Spell + Parts)) {
        let mut text = String::new();
        tuple(&mut text, word, &[family]);
        self.0.push(22);
        self.len(text.len());
        self.0.extend(text.as_bytes());
        family.each(&mut |part| {
            if let Part::Read(reg, _) = part {
                self.0.extend(reg.0.to_be_bytes());
            }
        });
    }

    fn mbarrier(&mut self, op: &MbarrierOp) {
        match op {
            MbarrierOp::Init { .. } => self.0.push(0),
            MbarrierOp::Inval => self.0.push(1),
            MbarrierOp::Arrive(a) => {
                let flags =
                    [a.drop, a.no_complete, a.relaxed, a.dst.is_some(), a.count.is_some(), a.tx.is_some()];
                self.tagged(2, &flags.map(u8::from));
                self.0.push(a.scope.tag());
            }
            MbarrierOp::ExpectTx { scope, .. } => self.tagged(3, &[scope.tag()]),
            MbarrierOp::CompleteTx { scope, .. } => self.tagged(4, &[scope.tag()]),
            MbarrierOp::Wait(w) => {
                let flags = [w.suspends, w.relaxed, w.parity, w.hint.is_some()];
                self.tagged(5, &flags.map(u8::from));
                self.0.push(w.scope.tag());
            }
        }
    }

    /// Source operands. The base of a plain access's address comes first, followed by the offset.
    fn operands(&mut self, op: &Op) {
        let mut offset = op.place().map(|(_, address)| address.offset);
        for source in op.sources() {
            self.operand(&source);
            self.0.extend(offset.take().into_iter().flat_map(i32::to_be_bytes));
        }
    }

    fn condition(&mut self, condition: &Condition) {
        self.0.push(condition.quantifier.tag());
        self.expr(&condition.expr);
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Bool(b) => self.tagged(0, &[u8::from(*b)]),
            Expr::Not(inner) => {
                self.0.push(1);
                self.expr(inner);
            }
            Expr::And(all) | Expr::Or(all) => {
                self.0.push(if matches!(expr, Expr::And(_)) { 2 } else { 3 });
                self.len(all.len());
                all.iter().for_each(|e| self.expr(e));
            }
            Expr::Cmp(op, a, b) => {
                self.tagged(4, &[op.tag()]);
                self.term(a);
                self.term(b);
            }
        }
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Reg(t, r) => {
                self.tagged(0, &t.0.to_be_bytes());
                self.0.extend(r.0.to_be_bytes());
            }
            Term::Mem { symbol, offset, bytes, thread } => {
                self.tagged(1, &symbol.0.to_be_bytes());
                self.0.extend(offset.to_be_bytes());
                self.0.push(*bytes);
                self.0.extend(thread.map_or(0, |t| u32::from(t.0) + 1).to_be_bytes());
            }
            Term::Const(n) => self.tagged(2, &n.to_be_bytes()),
        }
    }
}

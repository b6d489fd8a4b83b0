//! Lowers one tile block to the threads of a CTA.

use super::planted::Weakening;
use super::{Done, Lowering, SLOT, choice, fresh, not_lowered};
use moire_program::ir::{
    Address, AluOp, AtomOp, BarKind, CmpOp, Guard, Instr, Label, LoadOrder, Op, Operand, Proxy, Reg, RegDecl,
    RmwOrder, Scope, Space, StoreOrder, SymbolId, Thread, TileAccess, TileElement, TileKind, TileOp,
    TileToken, Ty,
};
use std::collections::{BTreeMap, BTreeSet};

/// A set of threads of a CTA, one bit for each.
type Threads = u32;

/// The number of barriers before the latest accesses that a token stands for, and the threads that made these accesses.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    barriers: u32,
    threads: Threads,
}

impl Since {
    fn with(self, other: Since) -> Since {
        match self.barriers.cmp(&other.barriers) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Equal => Since { threads: self.threads | other.threads, ..self },
        }
    }
}

/// A tile block while it is lowered.
pub(super) struct Block<'h> {
    how: &'h Lowering,
    source: Thread,
    regs: Vec<RegDecl>,
    bodies: Vec<Vec<Instr>>,
    /// For each thread, the registers whose values it needs.
    needs: Vec<BTreeSet<Reg>>,
    /// The accesses that each token stands for; used only if the tile block has no branches.
    tokens: BTreeMap<Reg, Since>,
    loops: bool,
    barriers: u32,
    /// Threads that accessed memory since the last barrier.
    active: Threads,
    handed: SymbolId,
    slots: u32,
    line: u32,
}

/// The destination and the sources of arithmetic, or `None` for other instructions.
fn arithmetic(op: &Op) -> Option<(Reg, Vec<Operand>)> {
    if let Op::Mov { dst, src, .. } = op {
        Some((*dst, vec![*src]))
    } else if let Op::Alu { dst, a, b, .. } | Op::Setp { dst, a, b, .. } = op {
        Some((*dst, vec![*a, *b]))
    } else if let Op::Selp { dst, a, b, p, .. } = op {
        Some((*dst, vec![*a, *b, Operand::Reg(*p)]))
    } else {
        None
    }
}

fn releases(kind: TileKind) -> bool {
    match kind {
        TileKind::Load(_) => false,
        TileKind::Store(order) => matches!(order, StoreOrder::Release(_)),
        TileKind::Rmw { order, .. } => matches!(order, RmwOrder::Release | RmwOrder::AcqRel),
    }
}

fn acquires(kind: TileKind) -> bool {
    match kind {
        TileKind::Load(order) => matches!(order, LoadOrder::Acquire(_)),
        TileKind::Store(_) => false,
        TileKind::Rmw { order, .. } => matches!(order, RmwOrder::Acquire | RmwOrder::AcqRel),
    }
}

impl<'h> Block<'h> {
    /// Lowers a tile block to its threads, and counts the values handed over.
    pub(super) fn lowered(source: &Thread, how: &'h Lowering, handed: SymbolId) -> Done<(Vec<Thread>, u32)> {
        let keeps = how.weakened != Some(Weakening::NoChoice);
        let source = if keeps { choice::resolved(source)? } else { source.clone() };
        let count = usize::from(how.threads);
        let mut block = Block {
            how,
            regs: source.regs.clone(),
            bodies: vec![Vec::new(); count],
            needs: Vec::new(),
            tokens: BTreeMap::new(),
            loops: !source.labels.is_empty(),
            source,
            barriers: 0,
            active: 0,
            handed,
            slots: 0,
            line: 0,
        };
        block.needs = (0..count).map(|j| block.needed(j)).collect();
        let starts = block.run()?;
        block.finish(&starts)
    }

    fn weak(&self, weakening: Weakening) -> bool {
        self.how.weakened == Some(weakening)
    }

    fn refuse<T>(&self, what: &str) -> Done<T> {
        Err(not_lowered(what, self.line))
    }

    /// The threads that access an element of memory instruction number `number`.
    fn owners(&self, number: usize, access: &TileAccess, element: usize) -> Threads {
        let loads = matches!(access.kind, TileKind::Load(_));
        if self.weak(Weakening::EachReads) && loads && access.elements.len() == 1 {
            return Threads::MAX >> (32 - u32::from(self.how.threads));
        }
        if self.weak(Weakening::FirstOnly) && element > 0 && !loads {
            return 0;
        }
        let first = if self.how.turns { number } else { 0 };
        1 << ((first + element) % usize::from(self.how.threads))
    }

    /// The value that an element stores, adds or compares with.
    fn operand(&self, access: &TileAccess, element: usize) -> Option<Operand> {
        let stores = matches!(access.kind, TileKind::Store(_));
        let from = if self.weak(Weakening::Shuffled) && stores { element + 1 } else { element };
        access.elements.get(from % access.elements.len().max(1)).and_then(|e| e.a)
    }

    /// The registers that a thread needs: those of its elements and of branches, and all registers they are computed from.
    fn needed(&self, thread: usize) -> BTreeSet<Reg> {
        let (mut todo, mut number) = (Vec::new(), 0);
        let mut made: BTreeMap<Reg, Vec<&Instr>> = BTreeMap::new();
        for instr in &self.source.body {
            if let Some((dst, _)) = arithmetic(&instr.op) {
                made.entry(dst).or_default().push(instr);
            } else {
                todo.extend(instr.guard.map(|g| g.reg));
            }
            let Op::Tile(TileOp::Access(access)) = &instr.op else { continue };
            for (i, element) in access.elements.iter().enumerate() {
                if self.owners(number, access, i) >> thread & 1 == 1 {
                    let sources = [Some(element.addr.base), self.operand(access, i), element.b];
                    todo.extend(sources.iter().flatten().filter_map(|o| register(*o)));
                    todo.extend(element.mask);
                }
            }
            number += 1;
        }
        let mut needs = BTreeSet::new();
        while let Some(reg) = todo.pop() {
            if needs.insert(reg) {
                for instr in made.get(&reg).into_iter().flatten() {
                    let sources = arithmetic(&instr.op).map(|(_, s)| s).unwrap_or_default();
                    todo.extend(sources.into_iter().filter_map(register).chain(instr.guard.map(|g| g.reg)));
                }
            }
        }
        needs
    }

    /// Lowers all instructions. Returns where each one starts in each thread.
    fn run(&mut self) -> Done<Vec<Vec<usize>>> {
        let body = self.source.body.clone();
        let labels: BTreeSet<usize> = self.source.labels.iter().map(|l| l.at).collect();
        let mut starts = Vec::new();
        let mut number = 0;
        for (at, instr) in body.iter().enumerate() {
            self.line = instr.line;
            starts.push(self.bodies.iter().map(Vec::len).collect());
            if labels.contains(&at) {
                self.active = Threads::MAX;
            }
            if let Op::Tile(op) = &instr.op {
                if instr.guard.is_some() {
                    return self.refuse("a predicated access of a tile");
                }
                match op {
                    TileOp::Access(access) => {
                        self.access(access, number)?;
                        number += 1;
                    }
                    TileOp::Token(token) => self.token(token),
                }
            } else if matches!(instr.op, Op::Bra { .. } | Op::Exit) {
                self.bodies.iter_mut().for_each(|b| b.push(instr.clone()));
            } else if let Some((dst, _)) = arithmetic(&instr.op) {
                for (body, needs) in self.bodies.iter_mut().zip(&self.needs) {
                    body.extend(needs.contains(&dst).then(|| instr.clone()));
                }
            } else {
                return self.refuse("a thread that is no tile block");
            }
        }
        starts.push(self.bodies.iter().map(Vec::len).collect());
        Ok(starts)
    }

    fn finish(self, starts: &[Vec<usize>]) -> Done<(Vec<Thread>, u32)> {
        let moved = |at: usize, thread: usize| {
            let place = starts.get(at).and_then(|s| s.get(thread)).copied();
            place.ok_or_else(|| not_lowered("a branch to nowhere", 0))
        };
        let mut threads = Vec::new();
        for (j, mut body) in self.bodies.into_iter().enumerate() {
            if body.len() > moire_program::limits::INSTRUCTIONS {
                return Err(not_lowered("a tile block with so many instructions", 0));
            }
            for instr in &mut body {
                if let Op::Bra { target } = &mut instr.op {
                    *target = moved(*target, j)?;
                }
            }
            let mut place = self.source.place;
            place.warp = u16::try_from(j).map_err(|_| not_lowered("a tile block of so many threads", 0))?;
            let label = |l: &Label| Ok(Label { at: moved(l.at, j)?, ..l.clone() });
            threads.push(Thread {
                name: format!("{}t{j}", self.source.name),
                place,
                regs: self.regs.clone(),
                labels: self.source.labels.iter().map(label).collect::<Done<Vec<Label>>>()?,
                body,
            });
        }
        Ok((threads, self.slots))
    }

    fn push(&mut self, thread: usize, guard: Option<Guard>, op: Op) {
        let line = self.line;
        self.bodies[thread].push(Instr { guard, line, ..Instr::new(op) });
    }

    /// Adds a barrier of all threads of the CTA.
    fn barrier(&mut self) {
        if self.how.threads == 1 {
            return;
        }
        for j in 0..self.bodies.len() {
            let bar = Op::Bar { kind: BarKind::Sync, id: Operand::Imm(0), count: None, instance: None };
            self.push(j, None, bar);
        }
        self.barriers += 1;
        self.active = 0;
    }

    fn token(&mut self, token: &TileToken) {
        let of = |t: &Reg| self.tokens.get(t).copied().unwrap_or_default();
        let (dst, since) = match token {
            TileToken::Join { dst, from } => (dst, from.iter().map(of).fold(Since::default(), Since::with)),
            TileToken::Choose { dst, yes, no, .. } => (dst, of(yes).with(of(no))),
        };
        self.tokens.insert(*dst, since);
    }

    /// Adds a barrier if the token of the access waits for accesses of other threads.
    fn wait(&mut self, access: &TileAccess, here: Threads) {
        let Some(token) = access.after else { return };
        let since = self.tokens.get(&token).copied().unwrap_or_default();
        let before = if self.loops {
            self.active
        } else if since.barriers == self.barriers {
            since.threads
        } else {
            0
        };
        let crosses = (0..u32::from(self.how.threads)).any(|i| before >> i & 1 == 1 && here & !(1 << i) != 0);
        let left_out =
            self.weak(Weakening::NoBarrier) || self.weak(Weakening::ReleasesAhead) && releases(access.kind);
        if crosses && !left_out {
            self.barrier();
        }
    }

    fn access(&mut self, access: &TileAccess, number: usize) -> Done<()> {
        let owners: Vec<Threads> =
            (0..access.elements.len()).map(|i| self.owners(number, access, i)).collect();
        let here = owners.iter().fold(0, |all, o| all | o);
        self.wait(access, here);
        for (i, element) in access.elements.iter().enumerate() {
            for j in (0..self.bodies.len()).filter(|j| owners[i] >> j & 1 == 1) {
                self.element(j, access, element, self.operand(access, i))?;
            }
        }
        self.active |= here;
        if let Some(token) = access.token {
            let waited = access.after.and_then(|t| self.tokens.get(&t).copied()).unwrap_or_default();
            let alone = self.weak(Weakening::AcquiresAlone) && acquires(access.kind);
            let own = Since { barriers: self.barriers, threads: if alone { 0 } else { here } };
            self.tokens.insert(token, waited.with(own));
        }
        self.hand_over(access, &owners)
    }

    /// Hands values that were read to the threads that need them and did not read them.
    fn hand_over(&mut self, access: &TileAccess, owners: &[Threads]) -> Done<()> {
        let mut given: Vec<(Reg, Address, Vec<usize>)> = Vec::new();
        for (element, owner) in access.elements.iter().zip(owners) {
            let Some(dst) = element.dst else { continue };
            let wants = |j: &usize| owner >> j & 1 == 0 && self.needs[*j].contains(&dst);
            let takers: Vec<usize> = (0..self.bodies.len()).filter(wants).collect();
            if takers.is_empty() || *owner == 0 {
                continue;
            }
            let offset = i32::try_from(self.slots * SLOT).or_else(|_| self.refuse("so many values"))?;
            self.slots += 1;
            let addr = Address { base: Operand::Address(self.handed), offset };
            let kept = store(StoreOrder::Weak, access.ty, addr, Operand::Reg(dst), Space::SharedCta);
            self.push(owner.trailing_zeros() as usize, None, kept);
            given.push((dst, addr, takers));
        }
        if given.is_empty() {
            return Ok(());
        }
        if !self.weak(Weakening::HastyHandover) {
            self.barrier();
        }
        for (dst, addr, takers) in given {
            for j in takers {
                self.push(j, None, load(LoadOrder::Weak, access.ty, addr, dst, Space::SharedCta));
            }
        }
        if self.loops {
            self.barrier();
        }
        Ok(())
    }

    fn scope(&self, scope: Scope) -> Scope {
        if self.weak(Weakening::NarrowScope) { Scope::Cta } else { scope }
    }

    fn load_order(&self, order: LoadOrder) -> Done<LoadOrder> {
        Ok(match order {
            LoadOrder::Relaxed(_) | LoadOrder::Acquire(_) if self.weak(Weakening::WeakAccess) => {
                LoadOrder::Weak
            }
            LoadOrder::Acquire(s) if self.weak(Weakening::RelaxedAcquire) => {
                LoadOrder::Relaxed(self.scope(s))
            }
            LoadOrder::Weak => LoadOrder::Weak,
            LoadOrder::Relaxed(s) => LoadOrder::Relaxed(self.scope(s)),
            LoadOrder::Acquire(s) => LoadOrder::Acquire(self.scope(s)),
            _ => return self.refuse("this order of a load"),
        })
    }

    fn store_order(&self, order: StoreOrder) -> Done<StoreOrder> {
        Ok(match order {
            StoreOrder::Relaxed(_) | StoreOrder::Release(_) if self.weak(Weakening::WeakAccess) => {
                StoreOrder::Weak
            }
            StoreOrder::Release(s) if self.weak(Weakening::RelaxedRelease) => {
                StoreOrder::Relaxed(self.scope(s))
            }
            StoreOrder::Weak => StoreOrder::Weak,
            StoreOrder::Relaxed(s) => StoreOrder::Relaxed(self.scope(s)),
            StoreOrder::Release(s) => StoreOrder::Release(self.scope(s)),
            _ => return self.refuse("this order of a store"),
        })
    }

    fn rmw_order(&self, order: RmwOrder) -> RmwOrder {
        let acquires = matches!(order, RmwOrder::Acquire | RmwOrder::AcqRel);
        let releases = matches!(order, RmwOrder::Release | RmwOrder::AcqRel);
        let acquires = acquires && !self.weak(Weakening::RelaxedAcquire);
        let releases = releases && !self.weak(Weakening::RelaxedRelease);
        match (acquires, releases) {
            (false, false) => RmwOrder::Relaxed,
            (true, false) => RmwOrder::Acquire,
            (false, true) => RmwOrder::Release,
            (true, true) => RmwOrder::AcqRel,
        }
    }

    fn element(
        &mut self,
        j: usize,
        access: &TileAccess,
        element: &TileElement,
        a: Option<Operand>,
    ) -> Done<()> {
        let masked = element.mask.filter(|_| !self.weak(Weakening::NoMasks));
        let guard = masked.map(|reg| Guard { reg, negated: false });
        let (ty, addr, zero) = (access.ty, element.addr, Operand::Imm(0));
        let a = a.unwrap_or(zero);
        if let TileKind::Store(order) = access.kind {
            let order = self.store_order(order)?;
            self.push(j, guard, store(order, ty, addr, a, Space::Global));
            return Ok(());
        }
        // A masked-off element has its padding as value, so the value depends on the mask.
        let direct = element.dst.filter(|_| guard.is_none());
        let seen = match direct {
            Some(dst) => dst,
            None => fresh(&mut self.regs, "w")?,
        };
        let left = match access.kind {
            TileKind::Load(order) => {
                let order = self.load_order(order)?;
                self.push(j, guard, load(order, ty, addr, seen, Space::Global));
                a
            }
            TileKind::Store(_) | TileKind::Rmw { .. } => {
                self.update(j, guard, access, (addr, seen, a, element.b))?;
                zero
            }
        };
        if let (Some(p), Some(dst)) = (masked, element.dst) {
            self.push(j, None, Op::Selp { ty, dst, a: Operand::Reg(seen), b: left, p });
        }
        Ok(())
    }

    fn update(
        &mut self,
        j: usize,
        guard: Option<Guard>,
        access: &TileAccess,
        (addr, dst, a, b): (Address, Reg, Operand, Option<Operand>),
    ) -> Done<()> {
        let TileKind::Rmw { op, order, scope } = access.kind else { return Ok(()) };
        let (order, scope, ty) = (self.rmw_order(order), self.scope(scope), access.ty);
        if self.weak(Weakening::SplitAtomic) {
            return self.split(j, guard, access, (addr, dst, a, b));
        }
        let (op, a, b) = match b {
            Some(b) if self.weak(Weakening::AlwaysSwaps) => (AtomOp::Exch, b, None),
            b => (op, a, b),
        };
        let (proxy, space, dst, red) = (Proxy::Generic, Space::Global, Some(dst), false);
        self.push(j, guard, Op::Rmw { red, order, scope, proxy, space, op, ty, dst, addr, a, b });
        Ok(())
    }

    /// Lowers an atomic to a load and a store (a planted bug).
    fn split(
        &mut self,
        j: usize,
        guard: Option<Guard>,
        access: &TileAccess,
        (addr, dst, a, b): (Address, Reg, Operand, Option<Operand>),
    ) -> Done<()> {
        let TileKind::Rmw { op, scope, .. } = access.kind else { return Ok(()) };
        let ty = access.ty;
        self.push(j, guard, load(LoadOrder::Relaxed(scope), ty, addr, dst, Space::Global));
        let (new, old) = (fresh(&mut self.regs, "w")?, Operand::Reg(dst));
        let alu = match op {
            AtomOp::Add => AluOp::Add,
            AtomOp::And => AluOp::And,
            AtomOp::Or => AluOp::Or,
            AtomOp::Xor => AluOp::Xor,
            AtomOp::Min => AluOp::Min,
            AtomOp::Max => AluOp::Max,
            AtomOp::Cas => {
                let same = fresh(&mut self.regs, "w")?;
                self.push(j, None, Op::Setp { op: CmpOp::Eq, ty, dst: same, a: old, b: a });
                let b = b.unwrap_or(old);
                self.push(j, None, Op::Selp { ty, dst: new, a: b, b: old, p: same });
                self.push(
                    j,
                    guard,
                    store(StoreOrder::Relaxed(scope), ty, addr, Operand::Reg(new), Space::Global),
                );
                return Ok(());
            }
            _ => {
                self.push(j, guard, store(StoreOrder::Relaxed(scope), ty, addr, a, Space::Global));
                return Ok(());
            }
        };
        self.push(j, None, Op::Alu { op: alu, ty, dst: new, a: old, b: a });
        self.push(j, guard, store(StoreOrder::Relaxed(scope), ty, addr, Operand::Reg(new), Space::Global));
        Ok(())
    }
}

fn register(operand: Operand) -> Option<Reg> {
    match operand {
        Operand::Reg(reg) => Some(reg),
        Operand::Imm(_) | Operand::Address(_) => None,
    }
}

fn load(order: LoadOrder, ty: Ty, addr: Address, dst: Reg, space: Space) -> Op {
    Op::Load { order, proxy: Proxy::Generic, space, ty, dst: vec![dst], addr }
}

fn store(order: StoreOrder, ty: Ty, addr: Address, src: Operand, space: Space) -> Op {
    Op::Store { order, proxy: Proxy::Generic, space, ty, addr, src: vec![src] }
}

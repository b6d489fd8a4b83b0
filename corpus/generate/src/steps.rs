//! The steps of a random thread: their kinds, how they are drawn, and the instructions they become.
//!
//! Contract: a step emits instructions that exist in PTX (types of `atom` and `red`: PTX ISA 9.2, 9.7.13.6-7), reads
//! only registers written before, and counts at least its own accesses in the draft's load.

use arbitrary::{Result, Unstructured};

use super::config::Knobs;
use super::random::{Draft, percent};
use moire_program::features::Load;
use moire_program::ir::{
    Address, AluOp, AtomOp, BarKind, CmpOp, FenceOrder, Guard, LoadOrder, Op, Operand, Proxy, ProxyFence,
    Reg, RmwOrder, Scope, Space, StoreOrder, Ty,
};

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Load,
    Store,
    Rmw,
    Fence,
    Proxy,
    Await,
    CasLoop,
}

impl Deed {
    pub(super) fn draw(u: &mut Unstructured<'_>, knobs: &Knobs) -> Result<Deed> {
        if percent(u, knobs.fence_percent)? {
            return Ok(Deed::Fence);
        }
        if percent(u, knobs.await_percent)? {
            return Ok(if u.ratio(1u8, 5u8)? { Deed::CasLoop } else { Deed::Await });
        }
        if percent(u, knobs.proxy_percent)? {
            return Ok(Deed::Proxy);
        }
        if percent(u, knobs.rmw_percent)? {
            return Ok(Deed::Rmw);
        }
        Ok(if u.arbitrary()? { Deed::Load } else { Deed::Store })
    }
}

/// How an access depends on an earlier read.
struct Dependence {
    guard: Option<Guard>,
    /// Index of a branch whose target is patched to the instruction after the access.
    skip: Option<usize>,
    /// Register that replaces the symbol as the base of the address.
    base: Option<Reg>,
    /// Value to store.
    data: Option<Reg>,
}

impl Draft<'_> {
    pub(super) fn emit(&mut self, u: &mut Unstructured<'_>, thread: usize, step: Deed) -> Result<()> {
        match step {
            Deed::Load => self.emit_load(u, thread),
            Deed::Store => self.emit_store(u, thread),
            Deed::Rmw => self.emit_rmw(u, thread),
            Deed::Fence => {
                let order = *u.choose(&[
                    FenceOrder::Acquire,
                    FenceOrder::Release,
                    FenceOrder::AcqRel,
                    FenceOrder::AcqRel,
                    FenceOrder::Sc,
                ])?;
                let scope = scope(u)?;
                self.build.push(self.threads[thread].id, Op::Fence { order, scope });
                Ok(())
            }
            Deed::Proxy => self.emit_proxy(u, thread),
            Deed::Await => self.emit_await(u, thread),
            Deed::CasLoop => self.emit_cas_loop(u, thread),
        }
    }

    fn emit_load(&mut self, u: &mut Unstructured<'_>, thread: usize) -> Result<()> {
        let vector = self.knobs.vectors && u.ratio(1u8, 4u8)?;
        let extra = Load { reads: if vector { 2 } else { 1 }, writes: 0 };
        let Some(location) = self.location(u, thread, extra)? else { return Ok(()) };
        let how = self.dependence(u, thread, location, false)?;
        let id = self.threads[thread].id;
        let (ty, offset) = self.shape(u, vector)?;
        let addr = based(self.address(location, offset), how.base);
        let dst: Vec<Reg> = (0..extra.reads).map(|_| self.build.reg(id)).collect();
        let order = if vector { LoadOrder::Weak } else { load_order(u, self.knobs)? };
        let space = self.space(u, location)?;
        self.build.push_guarded(
            id,
            how.guard,
            Op::Load { order, proxy: Proxy::Generic, space, ty, dst: dst.clone(), addr },
        );
        self.threads[thread].loaded.extend(dst);
        self.close(thread, &how);
        Ok(())
    }

    fn emit_store(&mut self, u: &mut Unstructured<'_>, thread: usize) -> Result<()> {
        let vector = self.knobs.vectors && u.ratio(1u8, 4u8)?;
        let extra = Load { reads: 0, writes: if vector { 2 } else { 1 } };
        let Some(location) = self.location(u, thread, extra)? else { return Ok(()) };
        let how = self.dependence(u, thread, location, true)?;
        let id = self.threads[thread].id;
        let (ty, offset) = self.shape(u, vector)?;
        let addr = based(self.address(location, offset), how.base);
        let mut src = Vec::new();
        for _ in 0..extra.writes {
            src.push(match how.data {
                Some(reg) => Operand::Reg(reg),
                None => self.fresh(location),
            });
        }
        let order = if vector { StoreOrder::Weak } else { store_order(u, self.knobs)? };
        let space = self.space(u, location)?;
        self.build.push_guarded(
            id,
            how.guard,
            Op::Store { order, proxy: Proxy::Generic, space, ty, addr, src },
        );
        self.close(thread, &how);
        Ok(())
    }

    fn emit_rmw(&mut self, u: &mut Unstructured<'_>, thread: usize) -> Result<()> {
        let extra = Load { reads: 1, writes: 1 };
        let Some(location) = self.location(u, thread, extra)? else { return Ok(()) };
        let how = self.dependence(u, thread, location, true)?;
        let id = self.threads[thread].id;
        let offset = self.word_offset(u)?;
        let addr = based(self.address(location, offset), how.base);
        let bits = self.bits();
        let all = [
            AtomOp::Add,
            AtomOp::Add,
            AtomOp::Exch,
            AtomOp::Exch,
            AtomOp::Cas,
            AtomOp::Cas,
            AtomOp::And,
            AtomOp::Or,
            AtomOp::Xor,
            AtomOp::Min,
            AtomOp::Max,
            AtomOp::Inc,
            AtomOp::Dec,
        ];
        let known = if bits == 64 { &all[..11] } else { &all[..] };
        let op = *u.choose(known)?;
        let red = !matches!(op, AtomOp::Exch | AtomOp::Cas) && u.ratio(1u8, 3u8)?;
        let order = rmw_order(u, self.knobs, red)?;
        let scope = scope(u)?;
        let operand = match how.data {
            Some(reg) => Operand::Reg(reg),
            None => self.fresh(location),
        };
        let (a, b) = if op == AtomOp::Cas {
            (Operand::Imm(i128::from(u.int_in_range(0..=1u8)?)), Some(operand))
        } else {
            (operand, None)
        };
        let dst = if red { None } else { Some(self.build.reg(id)) };
        let space = self.space(u, location)?;
        let ty = rmw_type(op, bits);
        self.build.push_guarded(
            id,
            how.guard,
            Op::Rmw { red, order, scope, proxy: Proxy::Generic, space, op, ty, dst, addr, a, b },
        );
        self.threads[thread].loaded.extend(dst);
        self.close(thread, &how);
        Ok(())
    }

    /// An access through another name of the location, or a proxy fence.
    fn emit_proxy(&mut self, u: &mut Unstructured<'_>, thread: usize) -> Result<()> {
        let id = self.threads[thread].id;
        let proxy = *u.choose(&[
            Proxy::Generic,
            Proxy::Generic,
            Proxy::Texture,
            Proxy::Surface,
            Proxy::Surface,
            Proxy::Constant,
        ])?;
        if u.ratio(1u8, 3u8)? {
            let kind = if proxy == Proxy::Generic { ProxyFence::Alias } else { ProxyFence::Of(proxy) };
            self.build.push(id, Op::ProxyFence(vec![kind]));
            return Ok(());
        }
        let store = matches!(proxy, Proxy::Generic | Proxy::Surface) && u.arbitrary()?;
        let extra = if store { Load { reads: 0, writes: 1 } } else { Load { reads: 1, writes: 0 } };
        let Some(location) = self.location(u, thread, extra)? else { return Ok(()) };
        if self.locations[location].space != Space::Global || self.threads[thread].place.host {
            return Ok(());
        }
        let name = self.build.name_through(self.locations[location].symbol, proxy);
        let addr = Address { base: Operand::Address(name), offset: 0 };
        let space = if proxy == Proxy::Generic { Space::Global } else { Space::Generic };
        let ty = Ty::U(self.bits());
        if store {
            let order = if proxy == Proxy::Generic { store_order(u, self.knobs)? } else { StoreOrder::Weak };
            let src = vec![self.fresh(location)];
            self.build.push(id, Op::Store { order, proxy, space, ty, addr, src });
        } else {
            let order = if proxy == Proxy::Generic { load_order(u, self.knobs)? } else { LoadOrder::Weak };
            let dst = self.build.reg(id);
            self.build.push(id, Op::Load { order, proxy, space, ty, dst: vec![dst], addr });
            self.threads[thread].loaded.push(dst);
        }
        Ok(())
    }

    /// `L: ld r,[x]; setp p,r,k; @p bra L`
    fn emit_await(&mut self, u: &mut Unstructured<'_>, thread: usize) -> Result<()> {
        let Some(location) = self.location(u, thread, Load { reads: 1, writes: 0 })? else { return Ok(()) };
        let id = self.threads[thread].id;
        let head = self.build.here(id);
        let (dst, p) = (self.build.reg(id), self.build.reg(id));
        let order = load_order(u, self.knobs)?;
        let space = self.space(u, location)?;
        let ty = Ty::U(self.bits());
        let addr = self.address(location, 0);
        self.build.push(id, Op::Load { order, proxy: Proxy::Generic, space, ty, dst: vec![dst], addr });
        let (op, k) = if u.ratio(3u8, 4u8)? { (CmpOp::Eq, 0) } else { (CmpOp::Ne, 1) };
        self.spin(thread, head, Op::Setp { op, ty, dst: p, a: Operand::Reg(dst), b: Operand::Imm(k) }, p);
        self.threads[thread].loaded.push(dst);
        Ok(())
    }

    /// `L: atom.cas r,[x],0,k; setp.ne p,r,0; @p bra L`
    fn emit_cas_loop(&mut self, u: &mut Unstructured<'_>, thread: usize) -> Result<()> {
        let Some(location) = self.location(u, thread, Load { reads: 1, writes: 1 })? else { return Ok(()) };
        let id = self.threads[thread].id;
        let head = self.build.here(id);
        let (dst, p) = (self.build.reg(id), self.build.reg(id));
        let order = rmw_order(u, self.knobs, false)?;
        let scope = scope(u)?;
        let space = self.space(u, location)?;
        let bits = self.bits();
        let addr = self.address(location, 0);
        let b = Some(self.fresh(location));
        self.build.push(
            id,
            Op::Rmw {
                red: false,
                order,
                scope,
                proxy: Proxy::Generic,
                space,
                op: AtomOp::Cas,
                ty: Ty::B(bits),
                dst: Some(dst),
                addr,
                a: Operand::Imm(0),
                b,
            },
        );
        let test =
            Op::Setp { op: CmpOp::Ne, ty: Ty::U(bits), dst: p, a: Operand::Reg(dst), b: Operand::Imm(0) };
        self.spin(thread, head, test, p);
        self.threads[thread].loaded.push(dst);
        Ok(())
    }

    fn spin(&mut self, thread: usize, head: usize, test: Op, p: Reg) {
        let id = self.threads[thread].id;
        self.build.push(id, test);
        self.build.label(id, head);
        self.build.push_guarded(id, Some(Guard { reg: p, negated: false }), Op::Bra { target: head });
    }

    /// Emits the instructions through which the next access depends on an earlier read of the thread.
    fn dependence(
        &mut self,
        u: &mut Unstructured<'_>,
        thread: usize,
        location: usize,
        writes: bool,
    ) -> Result<Dependence> {
        let mut how = Dependence { guard: None, skip: None, base: None, data: None };
        if self.threads[thread].loaded.is_empty() || !percent(u, self.knobs.dependency_percent)? {
            return Ok(how);
        }
        let id = self.threads[thread].id;
        let from = *u.choose(&self.threads[thread].loaded)?;
        let bits = self.bits();
        match u.int_in_range(if writes { 0 } else { 2u8 }..=if self.knobs.wide { 5 } else { 4 })? {
            0 => how.data = Some(from),
            1 => how.data = Some(self.arithmetic(u, thread, from)?),
            2 | 3 => {
                let p = self.build.reg(id);
                let op = *u.choose(&[CmpOp::Eq, CmpOp::Ne])?;
                let b = Operand::Imm(i128::from(u.int_in_range(0..=1u8)?));
                self.build.push(id, Op::Setp { op, ty: Ty::U(bits), dst: p, a: Operand::Reg(from), b });
                how.guard = Some(Guard { reg: p, negated: u.arbitrary()? });
            }
            4 => {
                let p = self.build.reg(id);
                let b = Operand::Imm(i128::from(u.int_in_range(0..=1u8)?));
                self.build
                    .push(id, Op::Setp { op: CmpOp::Eq, ty: Ty::U(bits), dst: p, a: Operand::Reg(from), b });
                let target = self.build.here(id) + 1;
                how.skip = Some(self.build.push_guarded(
                    id,
                    Some(Guard { reg: p, negated: u.arbitrary()? }),
                    Op::Bra { target },
                ));
            }
            _ => {
                let (zero, base) = (self.build.reg(id), self.build.reg(id));
                let a = Operand::Reg(from);
                self.build.push(id, Op::Alu { op: AluOp::Xor, ty: Ty::B(64), dst: zero, a, b: a });
                self.build.push(
                    id,
                    Op::Mov {
                        ty: Ty::U(64),
                        dst: base,
                        src: Operand::Address(self.locations[location].symbol),
                    },
                );
                self.build.push(
                    id,
                    Op::Alu {
                        op: AluOp::Add,
                        ty: Ty::U(64),
                        dst: base,
                        a: Operand::Reg(base),
                        b: Operand::Reg(zero),
                    },
                );
                how.base = Some(base);
            }
        }
        Ok(how)
    }

    /// A value computed from `from`, either truly (`+ 1`) or only syntactically (`^ from`, then `+ 1`).
    fn arithmetic(&mut self, u: &mut Unstructured<'_>, thread: usize, from: Reg) -> Result<Reg> {
        let id = self.threads[thread].id;
        let dst = self.build.reg(id);
        let a = Operand::Reg(from);
        let bits = self.bits();
        if u.arbitrary()? {
            self.build.push(id, Op::Alu { op: AluOp::Add, ty: Ty::U(bits), dst, a, b: Operand::Imm(1) });
        } else {
            self.build.push(id, Op::Alu { op: AluOp::Xor, ty: Ty::B(bits), dst, a, b: a });
            self.build.push(
                id,
                Op::Alu { op: AluOp::Add, ty: Ty::U(bits), dst, a: Operand::Reg(dst), b: Operand::Imm(1) },
            );
        }
        Ok(dst)
    }

    fn close(&mut self, thread: usize, how: &Dependence) {
        if let Some(branch) = how.skip {
            let id = self.threads[thread].id;
            let here = self.build.here(id);
            self.build.patch(id, branch, here);
        }
    }

    /// Plans one barrier: a cluster barrier, or a CTA barrier at which all threads sync, or a counted one at which all but
    /// the first may arrive instead.
    pub(super) fn plan_barriers(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if !percent(u, self.knobs.barrier_percent)? {
            return Ok(());
        }
        let lead = self.threads[0].place;
        let cluster = u.ratio(1u8, 4u8)?;
        let scope = if cluster { Scope::Cluster } else { Scope::Cta };
        let group: Vec<usize> =
            (0..self.threads.len()).filter(|&t| lead.includes(scope, &self.threads[t].place)).collect();
        if group.len() < 2 {
            return Ok(());
        }
        let counted = u.arbitrary::<bool>()?;
        let relaxed = u.ratio(1u8, 3u8)?;
        for (n, &t) in group.iter().enumerate() {
            if cluster {
                self.threads[t].barriers.extend([Op::ClusterArrive { relaxed }, Op::ClusterWait]);
                continue;
            }
            let kind = if counted && n > 0 && u.arbitrary()? { BarKind::Arrive } else { BarKind::Sync };
            let count = counted.then_some(Operand::Imm(group.len() as i128));
            self.threads[t].barriers.push(Op::Bar { kind, id: Operand::Imm(0), count, instance: None });
        }
        Ok(())
    }

    fn bits(&self) -> u8 {
        if self.knobs.wide { 64 } else { 32 }
    }

    /// Type and offset of a plain access.
    fn shape(&self, u: &mut Unstructured<'_>, vector: bool) -> Result<(Ty, i32)> {
        if vector {
            return Ok((Ty::U(self.bits()), 0));
        }
        if self.knobs.mixed_sizes && u.arbitrary()? {
            let bits = *u.choose(&[8u8, 16, 32, 64])?;
            let bits = bits.min(self.bits());
            let slots = 64 / i32::from(bits);
            // Two slots are enough for accesses that overlap and accesses that do not.
            let slot = u.int_in_range(0..=(slots - 1).min(1))?;
            return Ok((Ty::U(bits), slot * i32::from(bits) / 8));
        }
        Ok((Ty::U(self.bits()), self.word_offset(u)?))
    }

    fn space(&self, u: &mut Unstructured<'_>, location: usize) -> Result<Space> {
        Ok(if u.ratio(1u8, 16u8)? { Space::Generic } else { self.locations[location].space })
    }

    fn fresh(&mut self, location: usize) -> Operand {
        let value = self.locations[location].next_value;
        self.locations[location].next_value += 1;
        Operand::Imm(value)
    }
}

fn based(addr: Address, base: Option<Reg>) -> Address {
    Address { base: base.map_or(addr.base, Operand::Reg), ..addr }
}

fn scope(u: &mut Unstructured<'_>) -> Result<Scope> {
    Ok(*u.choose(&[Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Gpu, Scope::Sys, Scope::Sys])?)
}

fn load_order(u: &mut Unstructured<'_>, knobs: &Knobs) -> Result<LoadOrder> {
    if percent(u, knobs.volatile_percent)? {
        return Ok(*u.choose(&[LoadOrder::Volatile, LoadOrder::MmioRelaxed])?);
    }
    if percent(u, knobs.weak_percent)? {
        return Ok(LoadOrder::Weak);
    }
    let scope = scope(u)?;
    Ok(if percent(u, knobs.sync_percent)? { LoadOrder::Acquire(scope) } else { LoadOrder::Relaxed(scope) })
}

fn store_order(u: &mut Unstructured<'_>, knobs: &Knobs) -> Result<StoreOrder> {
    if percent(u, knobs.volatile_percent)? {
        return Ok(*u.choose(&[StoreOrder::Volatile, StoreOrder::MmioRelaxed])?);
    }
    if percent(u, knobs.weak_percent)? {
        return Ok(StoreOrder::Weak);
    }
    let scope = scope(u)?;
    Ok(if percent(u, knobs.sync_percent)? { StoreOrder::Release(scope) } else { StoreOrder::Relaxed(scope) })
}

fn rmw_order(u: &mut Unstructured<'_>, knobs: &Knobs, red: bool) -> Result<RmwOrder> {
    if !percent(u, knobs.sync_percent)? {
        return Ok(RmwOrder::Relaxed);
    }
    if red {
        return Ok(RmwOrder::Release);
    }
    Ok(*u.choose(&[RmwOrder::Acquire, RmwOrder::Release, RmwOrder::AcqRel])?)
}

/// The operand type of `atom`: bits for bitwise operations and swaps, unsigned for arithmetic.
pub(crate) fn rmw_type(op: AtomOp, bits: u8) -> Ty {
    match op {
        AtomOp::And | AtomOp::Or | AtomOp::Xor | AtomOp::Exch | AtomOp::Cas => Ty::B(bits),
        _ => Ty::U(bits),
    }
}

//! Warpgroup products: their reads of shared memory, their groups and their registers (PTX ISA 9.2, 8.9.1.1, 9.7.15).
//!
//! A product reads its matrices through the async proxy. What its thread did before it comes before these reads only if a
//! `wgmma.fence` follows it, so what the last `wgmma.fence` of the thread knew is kept in rows of its own. Groups complete in
//! order, and the wait for a group takes the reads as that for a bulk group does. A later product of one kind is known
//! only where the earlier one is, because its group is no older. So all of them are one record.
//!
//! The registers of a product belong to it until the wait for its group. Program order alone decides this, so it is the
//! same in every run. What others did to a register needs a `wgmma.fence` before a product uses it.

use super::copy::{await_groups, close};
use super::memory::{access, matrix};
use crate::carrier::{Carrier, DEPTH, Group, Own, row};
use crate::engine::{At, Engine};
use crate::finding::{Kind, Stop};
use crate::planted::Planted;
use crate::record::{Access, AccessKind, Via};
use crate::state::State;
use crate::value::Val;
use moire_program::ir::{Op, Reg, Wgmma, WgmmaFactor, WgmmaProduct};
use moire_program::registers::uses;

/// An instruction of the family, once the lanes of the warp have met.
pub(super) fn wgmma(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &Wgmma) -> Result<(), Stop> {
    match op {
        Wgmma::Fence => fence(e, s, at),
        Wgmma::Commit => {
            close(e, s, at, Group::Products)?;
            aged(s, at, |age| (age + 1).min(DEPTH));
        }
        Wgmma::Wait(groups) => {
            await_groups(e, s, at, Group::Products, *groups + 1, false)?;
            s.threads[at.thread].products.flying.retain(|(age, _)| age <= groups);
        }
        Wgmma::Product(product) => return multiply(e, s, at, product),
    }
    Ok(())
}

/// What the thread knows here comes before its products from now on.
fn fence(e: &Engine<'_>, s: &mut State, at: At<'_>) {
    let first = e.carriers.thread(at.thread);
    s.rows.add_row(e.carriers.own(at.thread, Own::Multiplied), first + row::BASE);
    s.rows.add_row(e.carriers.own(at.thread, Own::MultipliedFenced), first + e.carriers.fenced(at.cta));
    let registers = s.threads[at.thread].regs.len();
    s.threads[at.thread].products.ready = Some(vec![true; registers]);
}

fn aged(s: &mut State, at: At<'_>, of: impl Fn(u32) -> u32) {
    let flying = &mut s.threads[at.thread].products.flying;
    *flying = flying.iter().map(|(age, pc)| (of(*age), *pc)).collect();
}

fn multiply(e: &mut Engine<'_>, s: &mut State, at: At<'_>, product: &WgmmaProduct) -> Result<(), Stop> {
    let mut reads = Vec::new();
    let first = if let WgmmaFactor::Shared(a) = &product.a { Some(a) } else { None };
    for descriptor in first.into_iter().chain([&product.b]) {
        let span = matrix(e, s, at, descriptor)?;
        let read = Access { span, writes: false, via: Via::Async, part: AccessKind::Multiplied };
        if !reads.contains(&read) {
            reads.push(read);
        }
    }
    let open = e.carriers.first(Carrier::Copies(at.thread, Group::Products, 0));
    for record in access(e, s, at, &reads)? {
        s.rows.set(open, record);
    }
    let thread = &mut s.threads[at.thread];
    thread.products.flying.insert((0, thread.pc));
    product.d.iter().for_each(|reg| thread.regs[reg.index()] = Val::Unknown);
    Ok(())
}

fn factor(product: &WgmmaProduct) -> &[Reg] {
    match &product.a {
        WgmmaFactor::Registers(regs) => regs,
        WgmmaFactor::Shared(_) => &[],
    }
}

fn product_of(op: &Op) -> Option<&WgmmaProduct> {
    if let Op::Wgmma(Wgmma::Product(product)) = op { Some(product) } else { None }
}

/// Looks at the registers of an instruction that a thread executes now.
pub(super) fn registers(e: &mut Engine<'_>, s: &mut State, at: At<'_>) {
    let products = &mut s.threads[at.thread].products;
    if products.ready.is_none() && products.flying.is_empty() && product_of(&at.instr.op).is_none() {
        return;
    }
    let (mut read, written) = uses(&at.instr.op);
    read.extend(at.instr.guard.map(|g| g.reg));
    let body = &e.program.threads[at.thread].body;
    let flying = || products.flying.iter().filter_map(|(_, pc)| Some((*pc, product_of(&body.get(*pc)?.op)?)));
    let wrong = match product_of(&at.instr.op) {
        Some(own) => {
            let ready = |r: &Reg| products.ready.as_ref().is_some_and(|all| all[r.index()]);
            let fresh = own.d.iter().chain(factor(own)).all(ready);
            let clash = flying().find(|(_, other)| clashes(own, other)).map(|(pc, _)| pc);
            clash.map(Some).or((!fresh).then_some(None))
        }
        None => flying().find(|(_, other)| disturbs((&read, &written), other)).map(|(pc, _)| Some(pc)),
    };
    let theirs = wrong.flatten().and_then(|pc| body.get(pc)).map(|i| i.line);
    if let (Some(ready), false) = (&mut products.ready, matches!(at.instr.op, Op::Wgmma(_))) {
        read.iter().chain(&written).for_each(|r| ready[r.index()] = false);
    }
    if wrong.is_some() && !e.has(Planted::FreeRegisters) {
        report(e, at, theirs);
    }
}

/// Whether a product meets another one that is under way: only its accumulator may be the same.
fn clashes(own: &WgmmaProduct, other: &WgmmaProduct) -> bool {
    let mine = |r: &Reg| own.d.contains(r) || factor(own).contains(r);
    (other.d != own.d && other.d.iter().any(mine))
        || other.d.iter().any(|r| factor(own).contains(r))
        || factor(other).iter().any(|r| own.d.contains(r))
}

/// Whether an instruction touches the accumulator of a product that is under way, or writes its first factor.
fn disturbs((read, written): (&[Reg], &[Reg]), other: &WgmmaProduct) -> bool {
    other.d.iter().any(|r| written.contains(r) || read.contains(r))
        || factor(other).iter().any(|r| written.contains(r))
}

fn report(e: &mut Engine<'_>, at: At<'_>, theirs: Option<u32>) {
    let name = e.thread_name(at.thread);
    let text = match theirs {
        Some(line) => {
            format!("{name} touches registers of the product in line {line}, which may be under way")
        }
        None => format!("{name}: a product uses registers without a wgmma.fence behind what touched them"),
    };
    let theirs = theirs.map(|line| (at.thread, line));
    e.find(Kind::Race, text, theirs.into_iter().chain([at.place()]).collect());
}

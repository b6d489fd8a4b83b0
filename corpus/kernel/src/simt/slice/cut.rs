//! Cuts both programs down to the kept cells and threads.

use super::super::tidy::{retain, tidy};
use super::cells::{Cells, Touch, behind};
use super::flow::needed;
use crate::Done;
use moire_program::edit::retarget;
use moire_program::ir::{Instr, LoadOrder, Op, Operand, Program, Thread, TileKind, TileOp};
use std::collections::BTreeSet;

/// The elements of an instruction that are kept.
fn elements(touches: &[Touch], at: usize, kept: &BTreeSet<usize>) -> BTreeSet<usize> {
    touches.iter().filter(|t| t.at == at && kept.contains(&t.cell)).map(|t| t.element).collect()
}

/// All tile blocks, each instruction with its kept elements. Of several unused reads of one cell under equal masks only
/// one is kept, unless they acquire.
pub(super) fn source(program: &Program, cells: &Cells, kept: &BTreeSet<usize>) -> Program {
    let mut out = program.clone();
    for (thread, touches) in out.threads.iter_mut().zip(&cells.source) {
        let needed = needed(thread, touches, kept);
        for (at, instr) in thread.body.iter_mut().enumerate() {
            let Op::Tile(TileOp::Access(access)) = &mut instr.op else { continue };
            let mut stay = elements(touches, at, kept);
            if matches!(access.kind, TileKind::Load(LoadOrder::Weak | LoadOrder::Relaxed(_))) {
                let here: Vec<&Touch> =
                    touches.iter().filter(|t| t.at == at && stay.contains(&t.element)).collect();
                let looked = |t: &Touch| t.dst.is_some_and(|d| needed.contains(&d));
                let mut seen: BTreeSet<(usize, u64)> =
                    here.iter().filter(|t| looked(t)).map(|t| (t.cell, t.group)).collect();
                for t in here.iter().filter(|t| !looked(t)) {
                    if !seen.insert((t.cell, t.group)) {
                        stay.remove(&t.element);
                    }
                }
            }
            let mut i = 0;
            access.elements.retain(|_| {
                i += 1;
                stay.contains(&(i - 1))
            });
        }
        *thread = tidy(thread.clone());
    }
    out
}

/// The kept threads with their accesses of kept cells.
pub(super) fn compiled(
    program: &Program,
    cells: &Cells,
    threads: &BTreeSet<usize>,
    kept: &BTreeSet<usize>,
) -> Done<Program> {
    let mut out = program.clone();
    out.threads = threads
        .iter()
        .filter_map(|t| Some((program.threads.get(*t)?, cells.compiled.get(*t)?)))
        .map(|(body, touches)| Ok(tidy(thread(body, touches, kept)?)))
        .collect::<Done<_>>()?;
    let places: Vec<_> = out.threads.iter().map(|t| t.place).collect();
    for thread in &mut out.threads {
        let warp = places.iter().filter(|p| p.same_cta(&thread.place) && p.warp == thread.place.warp);
        let lanes = warp.fold(0, |all, p| all | p.lanes());
        for instr in &mut thread.body {
            if let Op::WarpSync { mask: Operand::Imm(mask) } = &mut instr.op {
                *mask &= i128::from(lanes);
            }
        }
    }
    Ok(out)
}

fn thread(thread: &Thread, touches: &[Touch], kept: &BTreeSet<usize>) -> Done<Thread> {
    let mut out = Thread { body: Vec::new(), labels: Vec::new(), ..thread.clone() };
    let mut at_new = Vec::with_capacity(thread.body.len() + 1);
    let mut keep = Vec::new();
    for (at, instr) in thread.body.iter().enumerate() {
        at_new.push(out.body.len());
        let stay = elements(touches, at, kept);
        let parts = split(instr, &stay)?;
        // A placeholder stays until the jumps are corrected.
        keep.extend(if parts.is_empty() { vec![false] } else { vec![true; parts.len()] });
        out.body.extend(if parts.is_empty() { vec![instr.clone()] } else { parts });
    }
    let end = out.body.len();
    at_new.push(end);
    retarget(&mut out, |at| at_new.get(at).copied().unwrap_or(end));
    retain(&mut out, &keep);
    Ok(out)
}

/// The instruction with its kept elements. A vector that loses elements is split.
fn split(instr: &Instr, stay: &BTreeSet<usize>) -> Done<Vec<Instr>> {
    let whole = |count: usize| stay.len() == count;
    let one = |op: Op| Instr { op, ..instr.clone() };
    if let Op::Load { order, proxy, space, ty, dst, addr } = &instr.op
        && !whole(dst.len())
    {
        let part = |i: &usize| {
            let (order, proxy, space, ty) = (*order, *proxy, *space, *ty);
            let addr = behind(*addr, *i, ty.bytes())?;
            Ok(one(Op::Load { order, proxy, space, ty, dst: vec![dst[*i]], addr }))
        };
        return stay.iter().map(part).collect();
    }
    if let Op::Store { order, proxy, space, ty, addr, src } = &instr.op
        && !whole(src.len())
    {
        let part = |i: &usize| {
            let (order, proxy, space, ty) = (*order, *proxy, *space, *ty);
            let addr = behind(*addr, *i, ty.bytes())?;
            Ok(one(Op::Store { order, proxy, space, ty, src: vec![src[*i]], addr }))
        };
        return stay.iter().map(part).collect();
    }
    let goes = matches!(instr.op, Op::Rmw { .. }) && !whole(1);
    Ok(if goes { Vec::new() } else { vec![instr.clone()] })
}

//! Agreed words: if several warps store the same number to a word by the same line, each of them gets a copy of the word.
//!
//! Compilers let all warps of a role store the same state for other warps to branch on. The stores are unordered. A reader
//! sees the same number in each case, but the choice of sources and orders would multiply executions. So each storing
//! warp has a copy of the word:
//!
//! - such a store writes the copy of its warp;
//! - any other store writes all copies;
//! - a load reads all copies, continues with the first, and ends in an abstention if they differ.
//!
//! *Nothing is lost.* Assume that a load is ordered with every store; otherwise it races with the copies, as it did with
//! the word. It reads the number of a latest store before it. That store is the last one to the copy of its warp. So if
//! the copies agree, they hold this number.
//!
//! Two stores of the same number by the same line are not counted as a race. All other pairs of unordered stores were
//! races, and still are: a store to all copies races with the other store in its copy, and two agreed stores of different
//! lines or numbers race on *marks* (`marks`).

use crate::Refusal;
use crate::specialise::item::{Item, Placed};
use crate::specialise::touch::{Mem, Touch};
use moire_program::ir::*;

/// Overlapping agreed words of a CTA, and the warps that have a copy.
struct Region {
    cta: u32,
    start: u64,
    end: u64,
    warps: Vec<usize>,
}

impl Region {
    fn holds(&self, touch: &Touch) -> bool {
        touch.mem == Mem::Shared(self.cta) && touch.ranges.iter().any(|r| r.0 < self.end && self.start < r.1)
    }

    /// The touch in copy `n`; the first one is the word itself.
    fn copy(&self, touch: &Touch, n: u32) -> Touch {
        let mem = match n {
            0 => touch.mem,
            n => Mem::Copy(self.cta, n),
        };
        Touch { mem, ranges: touch.ranges.clone(), kind: touch.kind, by: Vec::new() }
    }
}

/// Gives agreed words their copies in all traces. `regs` counts the registers of each trace.
pub(crate) fn split(traces: &mut [Vec<Placed>], regs: &mut [usize]) -> Result<(), Refusal> {
    for region in regions(traces) {
        for (warp, (trace, regs)) in traces.iter_mut().zip(regs.iter_mut()).enumerate() {
            if trace.iter().any(|p| touches(&p.item).iter().any(|t| region.holds(t))) {
                let old = std::mem::take(trace);
                let mut writer = Agreeing { region: &region, warp, out: Vec::new(), regs, trap: None };
                old.into_iter().try_for_each(|p| writer.item(p))?;
                *trace = writer.finish();
            }
        }
    }
    Ok(())
}

fn touches(item: &Item) -> &[Touch] {
    match item {
        Item::Op { touches, .. } => touches,
        Item::Data { touch, .. } => std::slice::from_ref(touch),
        _ => &[],
    }
}

/// The word of an agreed store, and its bytes.
fn agreed(placed: &Placed) -> Option<(&Touch, (u64, u64))> {
    let is_word = matches!(placed.item, Item::Op { .. });
    placed.agreed().filter(|_| is_word).map(|(touch, store)| (touch, (store.start, store.end)))
}

/// The regions of agreed words, extended by overlapping words. Regions with accesses that are not simple are left out.
fn regions(traces: &[Vec<Placed>]) -> Vec<Region> {
    let mut found: Vec<Region> = Vec::new();
    for (touch, run) in traces.iter().flatten().filter_map(agreed) {
        let Mem::Shared(cta) = touch.mem else { continue };
        let (start, end) = closed(traces, touch.mem, run);
        if !found.iter().any(|r| r.cta == cta && r.start < end && start < r.end) {
            found.push(Region { cta, start, end, warps: Vec::new() });
        }
    }
    for region in &mut found {
        let stores = |p: &Placed| agreed(p).is_some_and(|a| region.holds(a.0));
        let storing = traces.iter().enumerate().filter(|(_, trace)| trace.iter().any(stores));
        region.warps = storing.map(|(warp, _)| warp).collect();
    }
    found.retain(|r| traces.iter().flatten().all(|p| simple(r, p)));
    found
}

/// The run extended by all fixed runs that overlap it.
fn closed(traces: &[Vec<Placed>], mem: Mem, mut run: (u64, u64)) -> (u64, u64) {
    loop {
        let all = traces.iter().flatten().flat_map(|p| touches(&p.item));
        let fixed = all.filter(|t| t.mem == mem && t.kind.fixed()).flat_map(|t| &t.ranges);
        let over = fixed.filter(|r| r.0 < run.1 && run.0 < r.1);
        let grown = over.fold(run, |run, r| (run.0.min(r.0), run.1.max(r.1)));
        if grown == run {
            return run;
        }
        run = grown;
    }
}

/// Whether an item does not touch the region, or is a weak or agreed store, or a weak load of one word by all lanes.
fn simple(region: &Region, placed: &Placed) -> bool {
    if !touches(&placed.item).iter().any(|t| region.holds(t)) {
        return true;
    }
    let Item::Op { op, touches } = &placed.item else { return false };
    let weak = op.access().is_some_and(|access| !access.is_strong());
    let stores = matches!(**op, Op::Store { .. }) && (weak || agreed(placed).is_some());
    let loads = matches!(&**op, Op::Load { dst, .. } if weak && dst.len() == 1 && placed.mask.is_none());
    (stores || loads) && matches!(touches.as_slice(), [t] if t.ranges.len() == 1)
}

struct Agreeing<'r> {
    region: &'r Region,
    warp: usize,
    out: Vec<Placed>,
    regs: &'r mut usize,
    /// The label to which loads that differ branch, with the line and the bytes of the first load.
    trap: Option<(u32, u32, Touch)>,
}

impl Agreeing<'_> {
    /// The number of the next register.
    fn next(&self) -> Result<u16, Refusal> {
        u16::try_from(*self.regs).map_err(|_| Refusal::Bounded("a warp with too many registers".to_owned()))
    }

    fn reg(&mut self) -> Result<Reg, Refusal> {
        let reg = Reg(self.next()?);
        *self.regs += 1;
        Ok(reg)
    }

    fn item(&mut self, placed: Placed) -> Result<(), Refusal> {
        let is_agreed = agreed(&placed).is_some();
        let (line, mask, lanes) = (placed.line, placed.mask, placed.lanes);
        let push = |out: &mut Vec<Placed>, item: Item| out.push(Placed { item, mask, lanes, line });
        let (op, touch) = match &placed.item {
            Item::Op { op, touches } => match touches.as_slice() {
                [touch] if self.region.holds(touch) => (op.as_ref().clone(), touch.clone()),
                _ => {
                    self.out.push(placed);
                    return Ok(());
                }
            },
            _ => {
                self.out.push(placed);
                return Ok(());
            }
        };
        if matches!(op, Op::Store { .. }) {
            let copies = (0u32..).zip(&self.region.warps);
            for (n, _) in copies.filter(|(_, w)| !is_agreed || **w == self.warp) {
                let touches = vec![self.region.copy(&touch, n)];
                push(&mut self.out, Item::Op { op: Box::new(op.clone()), touches });
            }
        } else if matches!(op, Op::Load { .. }) {
            self.load(&op, &touch, &placed)?;
        } else {
            self.out.push(placed);
        }
        Ok(())
    }

    fn load(&mut self, op: &Op, touch: &Touch, placed: &Placed) -> Result<(), Refusal> {
        let Op::Load { order, proxy, space, ty, dst, addr } = op else { return Ok(()) };
        let (line, lanes) = (placed.line, placed.lanes);
        // Labels of the run count up from zero, labels of traps count down. Each trap has its own registers.
        let fresh = u32::MAX - u32::from(self.next()?);
        let label = self.trap.get_or_insert_with(|| (fresh, line, self.region.copy(touch, 0))).0;
        for (n, _) in (0..).zip(&self.region.warps) {
            let into = if n == 0 { dst[0] } else { self.reg()? };
            let op = Op::Load {
                order: *order,
                proxy: *proxy,
                space: *space,
                ty: *ty,
                dst: vec![into],
                addr: *addr,
            };
            let touches = vec![self.region.copy(touch, n)];
            self.out.push(Placed { item: Item::Op { op: Box::new(op), touches }, mask: None, lanes, line });
            if n > 0 {
                let differs = self.reg()?;
                let (a, b) = (Operand::Reg(into), Operand::Reg(dst[0]));
                let op = Op::Setp { op: CmpOp::Ne, ty: *ty, dst: differs, a, b };
                let item = Item::Op { op: Box::new(op), touches: vec![] };
                self.out.push(Placed { item, mask: None, lanes, line });
                let item = Item::Branch { reg: differs, to: label };
                self.out.push(Placed { item, mask: None, lanes, line });
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<Placed> {
        if let Some((label, line, touch)) = self.trap {
            for item in [Item::Exit, Item::Label(label), Item::Differ(touch), Item::Exit] {
                self.out.push(Placed { item, mask: None, lanes: u32::MAX, line });
            }
        }
        self.out
    }
}

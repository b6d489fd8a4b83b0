//! `cp.async`: each lane copies a few bytes, and what all lanes of the warp copy becomes one item.
//!
//! Groups belong to a lane, and the program that is explored has those of the warp. Both are the same where every lane that
//! copies takes part in each commit, wait and arrival behind its copies; other kernels are abstained from.
//! PTX ISA 9.2, 9.7.9.25.

use super::access::Place;
use super::layout::{Kind, Mem, Touch};
use super::run::{Item, Placed, State, Step, Stored, Warp};
use super::value::{Lanes, Val, lanes};
use super::{Refusal, heap::Content};
use moire_program::ir::*;

/// What lanes of a warp did with copies so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Copying {
    /// Lanes that copied.
    copied: u32,
    /// Lanes of all commits so far.
    committed: Option<u32>,
}

impl Warp<'_> {
    /// A commit, a wait or an arrival: of the lanes that copied none may be missing.
    pub(super) fn grouped(&mut self, state: &State, mask: u32, op: &AsyncCopy) -> Result<(), Refusal> {
        let before = self.copying.committed.unwrap_or(mask);
        if matches!(op, AsyncCopy::Commit) {
            self.copying.committed = Some(before | mask);
        }
        let exact = matches!(op, AsyncCopy::Commit | AsyncCopy::Wait(1..)) && before != mask;
        if exact || self.copying.copied & !mask != 0 {
            let what = format!("`{}` by other lanes of the warp than those that copied", op.name());
            return self.abstain(state, what);
        }
        Ok(())
    }

    /// How many bytes each lane reads.
    fn read_by_lane(&self, state: &State, copy: &SmallCopy, mask: u32) -> Result<Lanes, Refusal> {
        let whole = u64::from(copy.bytes);
        let (operand, negated) = match copy.part {
            SmallPart::All => return Ok(Lanes::Same(whole)),
            SmallPart::Bytes(operand) => (operand, false),
            SmallPart::IgnoredWhen(guard) => (Operand::Reg(guard.reg), guard.negated),
        };
        let value = self.value(state, operand);
        let Val::Known(known) = &value else {
            let why = self.reason(&value);
            return self
                .abstain(state, format!("the part of its source `cp.async` reads, which depends on {why}"));
        };
        // PTX tells a size from a predicate by the declaration of the register.
        let predicate = matches!(copy.part, SmallPart::IgnoredWhen(_))
            || matches!(operand, Operand::Reg(r) if self.kernel.types.get(r.index()) == Some(&Ty::Pred));
        if predicate {
            return Ok(known.map(|v| if (v != 0) != negated { 0 } else { whole }));
        }
        if lanes(mask).any(|l| known.get(l) & 0xffff_ffff > whole) {
            return self.abstain(state, "`cp.async` that reads more than it writes");
        }
        Ok(known.map(|v| v & 0xffff_ffff))
    }

    pub(super) fn small(&mut self, state: &State, copy: &SmallCopy, mask: u32) -> Result<Step, Refusal> {
        if self.copying.committed.is_some_and(|c| mask & !c != 0) {
            return self.abstain(state, "`cp.async` by lanes that took no part in an earlier commit");
        }
        self.copying.copied |= mask;
        let read = self.read_by_lane(state, copy, mask)?;
        let (to, from) = (self.address(state, &copy.dst), self.address(state, &copy.src));
        let Place::In(mem, at) = self.place(state, Space::SharedCta, &to, mask)? else {
            return self.abstain(state, "`cp.async` to private memory");
        };
        let whole = Lanes::Same(u64::from(copy.bytes));
        let mut touches = vec![footprint(mem, &at, &whole, mask, true)];
        if read.truth(mask) != 0
            && let Place::In(mem, at) = self.place(state, Space::Global, &from, read.truth(mask))?
        {
            touches.push(footprint(mem, &at, &read, mask, false));
        }
        if let Mem::Shared(cta) = mem {
            let line = self.line(state);
            for (start, end) in &touches[0].ranges {
                let at = u32::try_from(*start).unwrap_or(u32::MAX);
                let bytes = u32::try_from(end - start).unwrap_or(u32::MAX);
                self.out.stores.push(Stored { cta, at, bytes, content: Content::Opaque, line });
            }
        }
        if self.joined(&mut touches, mask) {
            return Ok(Step::Next);
        }
        let op = Op::AsyncCopy(AsyncCopy::Small(*copy));
        self.emit(state, mask, Item::Op { op: Box::new(op), touches })?;
        Ok(Step::Next)
    }

    /// Copies in a row by the same lanes to different bytes are as one.
    fn joined(&mut self, touches: &mut Vec<Touch>, mask: u32) -> bool {
        let alike = self.relative(mask);
        let Some(Placed { item: Item::Op { op, touches: before }, mask: theirs, .. }) =
            self.out.items.last_mut()
        else {
            return false;
        };
        let apart = |a: &Touch, b: &Touch| {
            a.mem == b.mem && a.ranges.iter().all(|x| b.ranges.iter().all(|y| x.1 <= y.0 || y.1 <= x.0))
        };
        let fits = matches!(**op, Op::AsyncCopy(AsyncCopy::Small(_)))
            && *theirs == alike
            && apart(&before[0], &touches[0]);
        if !fits {
            return false;
        }
        for touch in touches.drain(..) {
            match before.iter_mut().find(|t| t.mem == touch.mem && t.kind == touch.kind) {
                Some(same) => {
                    same.ranges.extend(touch.ranges);
                    same.join();
                }
                None => before.push(touch),
            }
        }
        true
    }
}

/// The bytes the lanes of the mask touch, so many each.
fn footprint(mem: Mem, at: &Lanes, bytes: &Lanes, mask: u32, writes: bool) -> Touch {
    let range = |l: usize| (at.get(l), at.get(l).saturating_add(bytes.get(l)));
    let ranges = lanes(mask).map(range).filter(|r| r.0 < r.1).collect();
    let mut touch = Touch { mem, ranges, kind: Kind::Small { writes } };
    touch.join();
    touch
}

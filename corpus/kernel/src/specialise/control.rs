//! Election, launch control, barriers of a CTA that combine predicates, and what is ignored.
//!
//! A cluster that started cannot be cancelled, and a launch of one cluster has no other: there the answer of `try_cancel`
//! is that nothing was cancelled. Of a larger launch, whose other clusters may or may not have started, it is not known.
//! PTX ISA 9.2, 9.7.13.1, 9.7.13.14 and 9.7.13.17.

use super::Refusal;
use super::access::Place;
use super::effect::Made;
use super::heap::Content;
use super::layout::{Kind, Mem, Touch};
use super::run::{Item, State, Step, Stored, Warp};
use super::value::{Base, Lanes, Val, Why};
use moire_program::ir::*;

/// Bytes of the answer of `try_cancel`.
const ANSWER: u32 = 16;

impl Warp<'_> {
    pub(super) fn control(
        &mut self,
        state: &mut State,
        control: &Control,
        mask: u32,
    ) -> Result<Step, Refusal> {
        let line = self.line(state);
        match control {
            Control::Elect { dst, pred, mask: lanes } => {
                let value = self.value(state, *lanes);
                let wanted = value.known().and_then(|l| l.one(mask));
                if wanted.is_none_or(|w| w & 0xffff_ffff != 0xffff_ffff && w != u64::from(mask)) {
                    return self.abstain(state, "elect.sync with a mask that is not full");
                }
                let leader = mask.trailing_zeros();
                self.set(state, *pred, Val::Known(Lanes::from_fn(|l| u64::from(l == leader as usize))), mask);
                if let Some(dst) = dst {
                    self.set(state, *dst, Val::same(u64::from(leader)), mask);
                }
                Ok(Step::Next)
            }
            Control::Ignored(what) => {
                self.note(
                    line,
                    format!("{} is ignored: it has no effect on what other threads see", what.name()),
                );
                Ok(Step::Next)
            }
            Control::LaunchDependents | Control::WaitDependencies => {
                self.note(line, format!("{} is ignored: one grid is judged", control.name()));
                Ok(Step::Next)
            }
            Control::TryCancel { multicast, space, addr, mbarrier } => {
                self.try_cancel(state, (*multicast, *space), (addr, mbarrier), mask)
            }
            Control::QueryCancel { ask, dst, .. } => {
                self.cancelled(state, *ask, dst, mask);
                Ok(Step::Next)
            }
        }
    }

    /// `bar`, `barrier`: with a predicate, the run goes on by what the barrier hands back.
    pub(super) fn bar(&mut self, state: &mut State, op: Op, mask: u32) -> Result<Step, Refusal> {
        let Op::Bar { kind: BarKind::Red { op: how, dst, pred }, id, count, instance } = op else {
            return self.leave(state, mask, op, Made::default());
        };
        let value = &state.env[pred.reg.index()];
        let Val::Known(known) = value else {
            return self
                .abstain(state, format!("bar.red of a predicate that depends on {}", self.reason(value)));
        };
        let truth = if pred.negated { mask & !known.truth(mask) } else { known.truth(mask) };
        let holds = match how {
            BarRed::And => truth == mask,
            BarRed::Or => truth != 0,
            BarRed::Popc if truth == 0 || truth == mask => truth != 0,
            BarRed::Popc => {
                return self
                    .abstain(state, "bar.red.popc of a predicate that differs among the lanes of a warp");
            }
        };
        let (p, q) = (self.slot(state, 1), self.slot(state, 0));
        let (a, b) = (Operand::Imm(i128::from(holds)), Operand::Imm(1));
        let set = Op::Setp { op: CmpOp::Eq, ty: Ty::U(32), dst: p, a, b };
        self.emit(state, mask, Item::Op { op: Box::new(set), touches: vec![] })?;
        let kind = BarKind::Red { op: how, dst: q, pred: Guard { reg: p, negated: false } };
        self.leave(state, mask, Op::Bar { kind, id, count, instance }, Made::default())?;
        if self.flow.matters.get(dst.index()) != Some(&true) {
            return Ok(Step::Next);
        }
        if how != BarRed::Popc {
            return Ok(self.both(state, q, &[dst], mask));
        }
        self.set(state, dst, Val::Based(Base::Register(q.0), Lanes::Same(0)), mask);
        Ok(Step::Next)
    }

    fn try_cancel(
        &mut self,
        state: &State,
        (multicast, space): (bool, Space),
        (addr, mbarrier): (&Address, &Address),
        mask: u32,
    ) -> Result<Step, Refusal> {
        let mut made = Made::default();
        let address = self.address(state, addr);
        let touch = match self.place(state, space, &address, mask)? {
            Place::In(mem @ Mem::Shared(_), at) => {
                at.one(mask).map(|at| Touch::one(mem, at, ANSWER, Kind::Async))
            }
            _ => None,
        };
        let Some(touch) = touch else {
            return self.abstain(state, "an answer of `try_cancel` whose place differs from lane to lane");
        };
        let Mem::Shared(own) = touch.mem else { return Ok(Step::Next) };
        let (at, line) = (u32::try_from(touch.ranges[0].0).unwrap_or(u32::MAX), self.line(state));
        let others = self.here.peers.iter().filter(|p| multicast && **p != own);
        for cta in others.copied().chain([own]) {
            self.out.stores.push(Stored { cta, at, bytes: ANSWER, content: Content::Opaque, line });
        }
        let addr = made.touch(touch);
        let address = self.address(state, mbarrier);
        let barrier = self.shared(state, space, &address, MBARRIER_BYTES, mask, Kind::Barrier)?;
        let mbarrier = made.touch(barrier);
        let op = Control::TryCancel { multicast, space, addr, mbarrier };
        self.leave(state, mask, Op::Control(op), made)
    }

    /// `query_cancel`
    fn cancelled(&mut self, state: &mut State, ask: CancelQuery, dst: &[Option<Reg>], mask: u32) {
        let line = self.line(state);
        let alone = self.launch.grid == self.launch.cluster;
        for reg in dst.iter().flatten() {
            let value = match ask {
                CancelQuery::IsCanceled if alone => Val::same(0),
                _ => Val::Unknown(Why::Computed(line)),
            };
            self.set(state, *reg, value, mask);
        }
        if alone && ask == CancelQuery::IsCanceled {
            self.note(line, "no other cluster is launched: clusterlaunchcontrol finds none to cancel");
        }
    }
}

//! Data nobody resolves: what comes out of tensor memory, and what an asynchronous copy moved.
//!
//! A register that holds such data is marked in its dependencies and has no value; arithmetic hands the mark on, a
//! store writes it to memory, a load of it marks its register. A branch, an address, a count or a question about it is
//! an abstention by name.

use crate::event::{Deps, dep, has_dep};
use crate::flow::{Regs, uses};
use crate::interp::{Machine, RegState, TraceEnd, View};
use crate::leaf::asked;
use moire_cat::vocabulary::sets;
use moire_program::ir::*;

/// In the dependencies of a register or a write: its data is unknown.
pub(crate) const UNKNOWN: u16 = 255;

/// The mark alone.
pub(crate) fn mark() -> Deps {
    dep(UNKNOWN)
}

/// Whether these dependencies carry the mark.
pub(crate) fn marked(deps: &Deps) -> bool {
    has_dep(deps, UNKNOWN)
}

/// Operands of an instruction that are data and nothing else.
fn data(op: &Op) -> &[Operand] {
    match op {
        Op::Store { src, .. } => src,
        Op::Rmw { op, a, .. } if *op != AtomOp::Cas => std::slice::from_ref(a),
        Op::MultimemStore { src, .. } | Op::MultimemRed { src, .. } => std::slice::from_ref(src),
        Op::AsyncCopy(AsyncCopy::Remote(write)) => &write.src,
        Op::Control(Control::QueryCancel { src, .. }) => std::slice::from_ref(src),
        _ => &[],
    }
}

/// Registers an instruction must know: its guard, addresses, counts, what is compared.
pub(crate) fn must_know(instr: &Instr) -> Regs {
    let mut out = uses(instr);
    // Each data operand stands once in the list; a register may be an address as well.
    for operand in data(&instr.op) {
        if let Operand::Reg(data) = operand
            && let Some(at) = out.iter().position(|r| r == data)
        {
            out.remove(at);
        }
    }
    out
}

impl<V: View> Machine<'_, V> {
    /// Stops at an instruction that would have to know unknown data.
    pub(crate) fn known(&self, instr: &Instr) -> Result<(), TraceEnd> {
        let unknown = |state: &RegState| marked(&state.deps);
        if self.regs.iter().any(unknown) && must_know(instr).iter().any(|r| unknown(&self.regs[r.index()])) {
            let what = "an address, a count or a choice that hangs on copied or computed data";
            return Err(TraceEnd::Unsupported(what.into(), instr.line));
        }
        Ok(())
    }

    /// A register that holds unknown data has no value.
    pub(crate) fn veil(&mut self, regs: &[Reg]) {
        for r in regs {
            let state = &mut self.regs[r.index()];
            if marked(&state.deps) {
                state.value = None;
            }
        }
    }

    /// Puts unknown data into registers.
    pub(crate) fn forget(&mut self, regs: impl IntoIterator<Item = Reg>) {
        for r in regs {
            self.regs[r.index()] = RegState { value: None, deps: mark() };
        }
    }

    /// The end of a trace: no branch and no question may hang on unknown data.
    pub(crate) fn resolved(&self, end: TraceEnd) -> TraceEnd {
        let branch = matches!(&end, TraceEnd::Pending(d) if marked(d));
        let held = self.regs.iter().any(|r| marked(&r.deps));
        let mut written = self
            .events
            .iter()
            .flatten()
            .filter(|e| marked(&e.data) && e.labels >> sets::W & 1 == 1)
            .peekable();
        if !branch && !held && written.peek().is_none() {
            return end;
        }
        let asked = asked(self.program);
        let register = end == TraceEnd::Done
            && asked.registers.iter().any(|(t, r)| *t == self.thread && marked(&self.regs[r.index()].deps));
        let object = |i: u16| self.layout.instances[i as usize].object;
        let memory = written.any(|e| e.access.is_some_and(|a| asked.objects.contains(&object(a.instance))));
        if branch || register || memory {
            return TraceEnd::Unsupported("a branch or a question about copied or computed data".into(), 0);
        }
        end
    }
}

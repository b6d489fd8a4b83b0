//! What the rest of a thread's text may do to mbarriers, whichever way it goes.
//!
//! For a thread that cannot be run ahead. Instructions count that can be reached in the text; those that name an mbarrier
//! by its symbol are about that object, in whichever CTA; with a computed address they are about any.

use super::ids::InstanceId;
use super::layout::Layout;
use moire_program::ir::*;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op};
use std::collections::BTreeSet;

/// Instances of objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances {
    any: bool,
    of: BTreeSet<InstanceId>,
}

impl Instances {
    pub(crate) fn has(&self, instance: InstanceId) -> bool {
        self.any || self.of.contains(&instance)
    }

    /// Takes in all instances of what an operand points into.
    fn enter(&mut self, program: &Program, layout: &Layout, operand: Operand) {
        let Operand::Address(symbol) = operand else {
            self.any |= matches!(operand, Operand::Reg(_));
            return;
        };
        let symbol = &program.symbols[symbol.index()];
        self.any |= !symbol.multimem.is_empty();
        let same = |i: &InstanceId| layout.instances[*i].object == symbol.object;
        self.of.extend(layout.instances.ids().filter(same));
    }

    fn join(&mut self, other: &Instances) {
        self.any |= other.any;
        self.of.extend(&other.of);
    }
}

/// Mbarriers that something may happen to.
#[derive(Clone, Debug, Default)]
pub(crate) struct MayArrive {
    /// Arrivals and bytes.
    pub(crate) adds: Instances,
    /// `init` and `inval`.
    pub(crate) ends: Instances,
}

impl MayArrive {
    /// What these instructions may do.
    pub(crate) fn of(program: &Program, layout: &Layout, text: &[Instr]) -> MayArrive {
        let mut out = MayArrive::default();
        for instr in text {
            match &instr.op {
                Op::Mbarrier(m) => match m.op {
                    MbarrierOp::Wait(_) => {}
                    MbarrierOp::Init { .. } | MbarrierOp::Inval => {
                        out.ends.enter(program, layout, m.addr.base)
                    }
                    MbarrierOp::Arrive(_) | MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => {
                        out.adds.enter(program, layout, m.addr.base)
                    }
                },
                // The mbarrier is one of the addresses.
                Op::AsyncCopy(copy) => {
                    copy.sources().into_iter().for_each(|o| out.adds.enter(program, layout, o));
                }
                Op::Control(control) => {
                    control.sources().into_iter().for_each(|o| out.adds.enter(program, layout, o));
                }
                Op::Tcgen05(Tcgen05::Commit(commit)) => out.adds.enter(program, layout, commit.addr.base),
                register_op!() | Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Tile(_) => {}
                multimem_op!() | fence_op!() | barrier_op!() => {}
                Op::Tcgen05(_) | Op::Wgmma(_) | jump_op!() => {}
                Op::Book(_) => {}
            }
        }
        out
    }

    pub(crate) fn join(&mut self, other: &MayArrive) {
        self.adds.join(&other.adds);
        self.ends.join(&other.ends);
    }
}

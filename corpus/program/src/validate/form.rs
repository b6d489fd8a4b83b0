//! The rule for the form of one instruction: what the book refuses, NVIDIA's assembler refuses. An operation is printed, and
//! the book reads it.

use super::notation;
use super::report::Report;
use crate::ir::*;
use crate::text::build::{Builder, ThreadBuilder};
use crate::text::{instruction, native};

/// A program whose names are short words: those of kernels need not be names of litmus texts.
pub(super) struct Forms(Builder);

impl Forms {
    pub(super) fn of(program: &Program) -> Self {
        let mut named = program.clone();
        for (n, symbol) in named.symbols.iter_mut().enumerate() {
            symbol.name = format!("x{n}");
        }
        Forms(Builder::of(named))
    }

    /// Judges a thread.
    pub(super) fn check(&self, report: &mut Report<'_>, thread: &Thread) {
        let mut named = Thread { labels: Vec::new(), body: Vec::new(), ..thread.clone() };
        for (n, reg) in named.regs.iter_mut().enumerate() {
            reg.name = format!("r{n}");
        }
        let mut builder = ThreadBuilder::of(named);
        for instr in &thread.body {
            let Some(op) = judged(&instr.op) else { continue };
            let plain = Instr { guard: None, op, ..*instr };
            let text = instruction(&self.0.program, &builder.thread, &plain);
            if let Err(refused) = native::form(&self.0, &mut builder, &text) {
                report.at("form", thread, instr, &refused.0.message, refused.0.hint.clone());
            }
        }
    }
}

/// The operation as the book judges it; `None` for what PTX does not have.
fn judged(op: &Op) -> Option<Op> {
    match op {
        // The number of a barrier can be judged even if its count cannot: a thread of a text counts as one.
        Op::Bar { kind, id, count: Some(Operand::Imm(n)), instance: None } if n % 32 != 0 => {
            Some(Op::Bar { kind: *kind, id: *id, count: Some(Operand::Imm(32)), instance: None })
        }
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | multimem_op!() | Op::ProxyFence(_) => {
            notation(op).is_none().then(|| op.clone())
        }
        Op::Bar { .. } => notation(op).is_none().then(|| op.clone()),
        Op::Tile(_) | Op::Control(Control::Repeat(_) | Control::EndRepeat) | jump_op!() => None,
        Op::Mbarrier(_) | Op::Control(_) | unit_op!() | register_op!() => Some(op.clone()),
        Op::Fence { .. } | Op::MbarrierInitFence | Op::ProxyOrder(_) => Some(op.clone()),
        Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } | Op::Book(_) => Some(op.clone()),
    }
}

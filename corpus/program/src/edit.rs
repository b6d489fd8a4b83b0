//! Edits of a program: instructions put in, replaced or taken out. The opposite direction of [`crate::mutate`].
//!
//! Contract: every position is one of the program before all edits, so edits of one list do not depend on each other.
//! [`apply`] changes all of them at once. Instructions that are put in have line 0. A branch whose target has an
//! instruction put in front of it jumps behind that instruction if it jumps back, and in front of it otherwise: a loop stays
//! as long as it was, and the end of a branch runs what is put there on both ways.

use crate::ir::{
    Address, Guard, Instr, Label, Mbarrier, MbarrierOp, MbarrierWait, Op, Operand, Program, Reg, RegDecl,
    RegInit, Scope, Space, Thread,
};
use crate::limits::{INSTRUCTIONS, REGISTERS};

/// A wait for a phase of an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitFor {
    /// The mbarrier.
    pub addr: Address,
    /// Parity of the phase that is waited for.
    pub parity: u8,
    /// Scope of the acquire.
    pub scope: Scope,
}

/// Code to put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// One instruction that uses no register of its own.
    Plain(Op),
    /// A loop around `mbarrier.try_wait.parity.acquire`.
    Wait(WaitFor),
}

/// One change of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Puts code in front of the instruction `at`; at the end of the thread if there is none.
    Insert {
        /// Index of the thread.
        thread: usize,
        /// Position in its body.
        at: usize,
        /// The code.
        what: Added,
    },
    /// Replaces what the instruction `at` does. Its guard stays.
    Replace {
        /// Index of the thread.
        thread: usize,
        /// Position in its body.
        at: usize,
        /// What it does now.
        op: Op,
    },
    /// Takes the instruction `at` out.
    Delete {
        /// Index of the thread.
        thread: usize,
        /// Position in its body.
        at: usize,
    },
}

impl Edit {
    /// The index of the thread that it changes.
    pub fn thread(&self) -> usize {
        match self {
            Edit::Insert { thread, .. } | Edit::Replace { thread, .. } | Edit::Delete { thread, .. } => {
                *thread
            }
        }
    }

    /// The position in its thread that it names first.
    pub fn at(&self) -> usize {
        match self {
            Edit::Insert { at, .. } | Edit::Replace { at, .. } | Edit::Delete { at, .. } => *at,
        }
    }
}

/// Gives branches and labels their new places: `to` says where the instruction of an old place stands now.
pub fn retarget(thread: &mut Thread, to: impl Fn(usize) -> usize) {
    for instr in &mut thread.body {
        if let Op::Bra { target } = &mut instr.op {
            *target = to(*target);
        }
    }
    thread.labels.iter_mut().for_each(|label| label.at = to(label.at));
}

/// Takes out the instructions that `keep` says no to. What led to one of them leads to the next that is kept.
pub fn retain(thread: &mut Thread, keep: &[bool]) {
    let mut moved = Vec::with_capacity(keep.len() + 1);
    let mut next = 0;
    for k in keep {
        moved.push(next);
        next += usize::from(*k);
    }
    let mut kept = keep.iter();
    thread.body.retain(|_| kept.next() == Some(&true));
    retarget(thread, |at| moved.get(at).copied().unwrap_or(next));
}

/// Start of the names of labels and registers that edits add.
const FRESH: &str = "mend";

/// The program with all these edits. None if one names a place that is not there, two take out the same instruction, or a
/// thread gets too long.
pub fn apply(program: &Program, edits: &[Edit]) -> Option<Program> {
    let mut out = program.clone();
    for (index, thread) in out.threads.iter_mut().enumerate() {
        let own: Vec<&Edit> = edits.iter().filter(|e| e.thread() == index).collect();
        if !own.is_empty() {
            edit(thread, &own)?;
        }
    }
    edits.iter().all(|e| e.thread() < program.threads.len()).then_some(out)
}

/// The `nth` name that is not taken.
fn fresh(nth: usize, taken: impl Fn(&str) -> bool) -> String {
    let names = (1usize..).map(|n| format!("{FRESH}{n}")).filter(|name| !taken(name));
    names.skip(nth).take(1).collect()
}

/// A body with edits, and where the parts of the old one are in it.
struct Rebuilt {
    body: Vec<Instr>,
    labels: Vec<Label>,
    /// By old position: the new position of the instruction, or of what follows it.
    instr: Vec<usize>,
    /// By old position: the new position of what is put in front of it.
    front: Vec<usize>,
}

fn edit(thread: &mut Thread, edits: &[&Edit]) -> Option<()> {
    let len = thread.body.len();
    let gone = gone(thread, edits)?;
    let dst = Reg::at(thread.regs.len());
    let mut new = Rebuilt { body: Vec::new(), labels: Vec::new(), instr: Vec::new(), front: Vec::new() };
    for at in 0..=len {
        new.front.push(new.body.len());
        for edit in edits {
            if let Edit::Insert { at: here, what, .. } = edit
                && *here == at
            {
                new.add(thread, what, dst);
            }
        }
        new.instr.push(new.body.len());
        if gone.get(at) == Some(&false) {
            let mut instr = thread.body[at].clone();
            let replaced = edits.iter().rev().find_map(|e| match e {
                Edit::Replace { at: here, op, .. } if *here == at => Some(op),
                _ => None,
            });
            replaced.into_iter().for_each(|op| instr.op = op.clone());
            new.body.push(instr);
        }
    }
    let waits = !new.labels.is_empty();
    if new.body.len() > INSTRUCTIONS || thread.regs.len() >= REGISTERS {
        return None;
    }
    new.finish(thread, &gone);
    if waits {
        let name = fresh(0, |name| thread.regs.iter().any(|r| r.name == name));
        thread.regs.push(RegDecl { name, init: RegInit::Value(0) });
    }
    Some(())
}

/// The instructions that are taken out. None if an edit names no place, or two take the same instruction.
fn gone(thread: &Thread, edits: &[&Edit]) -> Option<Vec<bool>> {
    let len = thread.body.len();
    let mut gone = vec![false; len];
    for edit in edits {
        match edit {
            Edit::Insert { at, .. } if *at <= len => {}
            Edit::Replace { at, .. } if *at < len => {}
            Edit::Delete { at, .. } if !std::mem::replace(gone.get_mut(*at)?, true) => {}
            _ => return None,
        }
    }
    Some(gone)
}

/// By position: whether a branch jumps back to it.
fn backward(body: &[Instr]) -> Vec<bool> {
    let mut out = vec![false; body.len() + 1];
    for (pc, instr) in body.iter().enumerate() {
        if let Op::Bra { target } = instr.op
            && target <= pc
        {
            out[target] = true;
        }
    }
    out
}

impl Rebuilt {
    fn add(&mut self, thread: &Thread, what: &Added, dst: Reg) {
        match what {
            Added::Plain(op) => self.body.push(Instr::new(op.clone())),
            Added::Wait(wait) => {
                let start = self.body.len();
                let name = fresh(self.labels.len(), |name| thread.labels.iter().any(|l| l.name == name));
                self.labels.push(Label { name, at: start });
                self.body.push(Instr::new(wait_op(wait, dst)));
                let guard = Some(Guard { reg: dst, negated: true });
                self.body.push(Instr { guard, ..Instr::new(Op::Bra { target: start }) });
            }
        }
    }

    /// Sets the targets of branches and the places of labels, and gives the thread its new body. Targets of added waits
    /// are set already.
    fn finish(mut self, thread: &mut Thread, gone: &[bool]) {
        let back = backward(&thread.body);
        let place = |at: usize| if back[at] { self.instr[at] } else { self.front[at] };
        for (pc, instr) in thread.body.iter().enumerate() {
            if let Op::Bra { target: old } = instr.op
                && !gone[pc]
                && let Op::Bra { target } = &mut self.body[self.instr[pc]].op
            {
                *target = place(old);
            }
        }
        thread.labels.iter_mut().for_each(|l| l.at = place(l.at));
        thread.labels.append(&mut self.labels);
        thread.body = self.body;
    }
}

/// One question of a wait loop.
fn wait_op(wait: &WaitFor, dst: Reg) -> Op {
    let op = MbarrierOp::Wait(MbarrierWait {
        suspends: true,
        relaxed: false,
        scope: wait.scope,
        dst,
        phase: Operand::Imm(i128::from(wait.parity)),
        parity: true,
        hint: None,
    });
    Op::Mbarrier(Mbarrier { op, space: Space::SharedCta, addr: wait.addr })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, parse, print};

    const TEXT: &str = "moire \"t\"\n.shared .b64 b;\n.global .b32 x;\nP0 (gpu 0, cta 0) {\n  st.weak.global.u32 [x], 1;\n\
        L:\n  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  @p bra E;\n  \
        ld.weak.global.u32 r0, [x];\nE:\n  st.weak.global.u32 [x], 2;\n}\n";

    fn edited(edits: &[Edit]) -> Option<String> {
        let program = parse(TEXT, Format::Native).expect("the program is legal");
        let out = apply(&program, edits)?;
        let text = print(&out);
        // Labels are listed in another order.
        assert_eq!(print(&parse(&text, Format::Native).expect("the result is legal")), text);
        Some(text)
    }

    fn put(at: usize) -> Edit {
        Edit::Insert { thread: 0, at, what: Added::Plain(Op::MbarrierInitFence) }
    }

    #[test]
    fn what_is_put_in_front_of_a_loop_stays_outside_and_at_a_join_inside() {
        let text = edited(&[put(1)]).expect("the place is there");
        assert!(text.contains("fence.mbarrier_init.release.cluster;\nL:"), "{text}");
        let text = edited(&[put(5)]).expect("the place is there");
        assert!(text.contains("E:\n  fence.mbarrier_init.release.cluster;"), "{text}");
        assert!(edited(&[put(6)]).expect("the end is a place").contains("[x], 2;\n  fence.mbarrier"));
        assert!(edited(&[put(7)]).is_none());
    }

    #[test]
    fn edits_do_not_depend_on_each_other() {
        let text = edited(&[Edit::Delete { thread: 0, at: 0 }, put(1), Edit::Delete { thread: 0, at: 4 }])
            .expect("the places are there");
        assert!(!text.contains("[x], 1") && !text.contains("r0, [x]"), "{text}");
        assert!(edited(&[Edit::Delete { thread: 0, at: 0 }, Edit::Delete { thread: 0, at: 0 }]).is_none());
    }

    #[test]
    fn an_added_wait_is_a_loop_with_names_of_its_own() {
        let addr = Address { base: Operand::Address(crate::ir::SymbolId(0)), offset: 0 };
        let wait = |at| {
            let what = Added::Wait(WaitFor { addr, parity: 1, scope: Scope::Cta });
            Edit::Insert { thread: 0, at, what }
        };
        let text = edited(&[wait(0), wait(4)]).expect("the places are there");
        assert!(
            text.contains("mend1:") && text.contains("mend2:") && text.contains("@!mend1 bra mend2"),
            "{text}"
        );
    }
}

//! Programs in which a thread asks early whether a phase is over, and waits later only if it was not.
//!
//! Compilers do that: they ask for the next stage before they use this one. A drawn program gets such a question in front of some
//! of its waits. Sometimes the answer is not used as it should be, so that there are mistakes to find.

use moire_generate::numbers::Draw;
use moire_program::edit::retarget;
use moire_program::ir::{
    Guard, Instr, Label, Mbarrier, MbarrierOp, MbarrierWait, Op, Program, Reg, RegDecl, RegInit, Thread,
};

/// Most instructions between a question and its wait.
const BEFORE: usize = 8;

/// The program with questions before some of its waits. `None` if it has no wait in a loop of its own.
pub fn with_peeks(mut program: Program, seed: u64) -> Option<Program> {
    let mut draw = Draw::new(seed);
    let mut any = false;
    for thread in &mut program.threads {
        // The last wait first, so that places stay those of the text.
        for at in (0..thread.body.len()).rev() {
            if waits(thread, at) && draw.chance(60) {
                ask(thread, at, &mut draw);
                any = true;
            }
        }
    }
    any.then_some(program)
}

/// Whether a loop that only waits starts here.
fn waits(thread: &Thread, at: usize) -> bool {
    let Some(wait) = asks(&thread.body[at]) else { return false };
    let again =
        |i: &Instr| i.guard == Some(Guard { reg: wait.dst, negated: true }) && i.op == Op::Bra { target: at };
    thread.body.get(at + 1).is_some_and(again)
}

fn asks(instr: &Instr) -> Option<&MbarrierWait> {
    let Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(wait), .. }) = &instr.op else { return None };
    instr.guard.is_none().then_some(wait)
}

/// Asks up to some instructions before the wait, with no jump in between, and leaves the wait out if the answer was yes.
fn ask(thread: &mut Thread, at: usize, draw: &mut Draw) {
    let lands = |place: usize| thread.labels.iter().any(|l| l.at == place);
    let runs_into =
        |place: usize| place > 0 && !matches!(thread.body[place - 1].op, Op::Bra { .. } | Op::Exit);
    let mut early = at;
    for _ in 0..draw.below(BEFORE) {
        if !runs_into(early) || (early < at && lands(early)) {
            break;
        }
        early -= 1;
    }
    let answer = Reg(u16::try_from(thread.regs.len()).unwrap_or(u16::MAX));
    thread.regs.push(RegDecl { name: format!("peek{}", answer.0), init: RegInit::Value(0) });
    let mut question = thread.body[at].clone();
    if let Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(wait), .. }) = &mut question.op {
        wait.dst = answer;
    }
    // What jumps to the wait from elsewhere waits; what runs into it may leave it out.
    let moved = |old: usize| old + usize::from(old >= early) + usize::from(old >= at);
    let wrong = draw.chance(8);
    let negated = wrong && draw.chance(50);
    retarget(thread, moved);
    let skip = Instr {
        guard: Some(Guard { reg: answer, negated }),
        op: Op::Bra { target: at + 4 },
        ..question.clone()
    };
    if !thread.labels.iter().any(|l| l.at == at + 4) {
        thread.labels.push(Label { name: format!("asked{}", answer.0), at: at + 4 });
    }
    thread.body.insert(at, skip);
    thread.body.insert(early, question);
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_program::text::{Format, parse, print};

    const TEXT: &str = r#"moire "asked"
.shared .b64 m;
a (gpu 0, cta 0) {
  .reg p;
  mbarrier.init.shared::cta.b64 [m], 1;
  mbarrier.arrive.release.cta.shared::cta.b64 _, [m];
L:
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [m], 0;
  @!p bra L;
  exit;
}
"#;

    #[test]
    fn a_question_leaves_its_wait_out() {
        let program = parse(TEXT, Format::Native).expect("the text is valid");
        let asked = (0..40).filter_map(|seed| with_peeks(program.clone(), seed));
        let texts: Vec<String> = asked.map(|p| print(&p)).collect();
        assert!(!texts.is_empty());
        for text in texts {
            let read = parse(&text, Format::Native).expect("a drawn program is valid");
            let body = &read.threads[0].body;
            let exit = body.iter().position(|i| i.op == Op::Exit).expect("the end is there");
            let skips = |i: &&Instr| i.op == Op::Bra { target: exit };
            assert_eq!(body.iter().filter(skips).count(), 1, "{text}");
        }
    }
}

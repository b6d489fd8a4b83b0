//! Who waits for ever, and for what.

use moire_execution::leaf::{ColumnStall, End, Stall, Witness};
use moire_explore::judge::Judgement;
use moire_program::ir::Program;

/// The threads that wait, and what each waits for.
pub(crate) fn who(program: &Program, ends: &[End], judgement: &Judgement) -> String {
    let one = |(t, end): (usize, &End)| {
        let name = &program.threads[t].name;
        if let Some(stall) = judgement.stalls.iter().find(|s| s.thread == t) {
            return Some(format!("{name} waits for {}", lacking(program, stall)));
        }
        if let Some(stall) = judgement.column_stalls.iter().find(|s| s.thread == t) {
            return Some(format!("{name} (line {}) waits for {}", stall.line, columns(stall)));
        }
        match end {
            End::Done => None,
            End::Barrier(i) => {
                Some(format!("{name} waits at a barrier (event {i}) for arrivals that never come"))
            }
            End::Spin(i) => Some(format!("{name} spins (after event {i}) on values that never change")),
        }
    };
    ends.iter().enumerate().filter_map(one).collect::<Vec<_>>().join("; ")
}

/// The line of the first event at which a thread waits; 0 if there is none.
pub(crate) fn line(ends: &[End], witness: &Witness) -> u32 {
    let last = |thread: usize| witness.events.iter().rev().find(|e| e.event.thread as usize == thread);
    let blocked = ends.iter().enumerate().filter(|(_, end)| **end != End::Done);
    blocked.filter_map(|(t, _)| last(t)).map(|e| e.line).next().unwrap_or_default()
}

/// An allocation of tensor memory that never succeeds.
fn columns(stall: &ColumnStall) -> String {
    let ColumnStall { columns, taken, alone, .. } = stall;
    if *alone {
        "the other CTA of the pair, which never comes".to_owned()
    } else {
        format!("{columns} columns of tensor memory, while {taken} are taken and never given back")
    }
}

/// An mbarrier whose phase no arrival completes.
fn lacking(program: &Program, stall: &Stall) -> String {
    let owner = stall.owner.map_or(String::new(), |t| format!("{}:", program.threads[t.index()].name));
    let offset = if stall.offset == 0 { String::new() } else { format!("+{}", stall.offset) };
    let name = format!("[{owner}{}{offset}]", program.objects[stall.object.index()].name);
    if stall.valid {
        let Stall { phase, pending, tx, .. } = stall;
        format!("mbarrier {name}, phase {phase}: pending count {pending}, tx-count {tx}")
    } else {
        format!("{name}, which is no valid mbarrier")
    }
}

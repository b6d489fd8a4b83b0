//! Who waits for ever, at which line, for what, and who is not there.

use moire_execution::leaf::{ColumnStall, End, Stall, Witness, WitnessEvent};
use moire_explore::judge::Judgement;
use moire_program::ir::{Address, Instr, Op, Operand, Program};
use moire_program::text::instruction;
use schemars::JsonSchema;
use serde::Serialize;

/// Most names in a sentence.
const NAMED: usize = 8;

/// A thread that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Waits {
    /// The thread.
    pub thread: String,
    /// Where it waits; 0 if that is not known.
    pub line: u32,
    /// For what: a barrier, an mbarrier with its phase and what it lacks, a value that a loop reads.
    pub at: String,
    /// How the other threads of its CTA ended that do not wait at this line, for a barrier of the CTA.
    pub absent: Vec<String>,
    /// What has to come for it to go on, where that is known.
    pub missing: Option<String>,
}

/// The threads that wait.
pub(crate) fn waits(program: &Program, ends: &[End], judgement: &Judgement, witness: &Witness) -> Vec<Waits> {
    let end = |(t, end): (usize, &End)| {
        let thread = program.threads[t].name.clone();
        let place = place(program, t, end, witness);
        let mut line = place.map_or(0, |i| i.line);
        let mut absent = Vec::new();
        let mut missing = None;
        let at = if let Some(stall) = judgement.stalls.iter().find(|s| s.thread == t) {
            missing = arrivals(program, stall);
            lacking(program, stall)
        } else if let Some(stall) = judgement.column_stalls.iter().find(|s| s.thread == t) {
            line = stall.line;
            columns(stall)
        } else {
            match end {
                End::Done => return None,
                End::Barrier(_) => {
                    absent = others(program, t, ends, (witness, line));
                    place.map_or("arrivals at a barrier that never come".to_owned(), |i| {
                        format!("the barrier `{}`", instruction(program, &program.threads[t], i))
                    })
                }
                End::Spin(_) => value(program, t, place, witness),
            }
        };
        Some(Waits { thread, line, at, absent, missing })
    };
    ends.iter().enumerate().filter_map(end).collect()
}

/// In sentences; threads that wait alike are named together.
pub(crate) fn sentences(waits: &[Waits]) -> String {
    let mut groups: Vec<(&Waits, Vec<&str>)> = Vec::new();
    for one in waits {
        match groups.iter_mut().find(|(w, _)| (w.line, &w.at) == (one.line, &one.at)) {
            Some((_, names)) => names.push(&one.thread),
            None => groups.push((one, vec![&one.thread])),
        }
    }
    let one = |(w, names): &(&Waits, Vec<&str>)| {
        let verb = if names.len() == 1 { "waits" } else { "wait" };
        let line = if w.line > 0 { format!(" at line {}", w.line) } else { String::new() };
        let absent = if w.absent.is_empty() { String::new() } else { format!(" ({})", few(&w.absent, "; ")) };
        format!("{} {verb}{line} for {}{absent}", few(names, ", "), w.at)
    };
    groups.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn few<T: AsRef<str>>(all: &[T], between: &str) -> String {
    let named: Vec<&str> = all.iter().take(NAMED).map(AsRef::as_ref).collect();
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(between) + &more
}

/// The other threads of the CTA that have ended, or wait elsewhere.
fn others(program: &Program, t: usize, ends: &[End], (witness, line): (&Witness, u32)) -> Vec<String> {
    let own = &program.threads[t].place;
    let same = |o: &(usize, &End)| o.0 != t && program.threads[o.0].place.same_cta(own);
    let one = |(o, end): (usize, &End)| {
        let name = &program.threads[o].name;
        match (end, place(program, o, end, witness).map(|i| i.line)) {
            (End::Done, _) => Some(format!("{name} has ended")),
            (End::Barrier(_) | End::Spin(_), Some(l)) if l == line => None,
            (End::Barrier(_) | End::Spin(_), Some(l)) => Some(format!("{name} waits at line {l}")),
            (End::Barrier(_) | End::Spin(_), None) => Some(format!("{name} waits elsewhere")),
        }
    };
    ends.iter().enumerate().filter(same).filter_map(one).collect()
}

/// The event of a thread.
fn event(witness: &Witness, t: usize, index: u16) -> Option<&WitnessEvent> {
    witness.events.iter().find(|e| usize::from(e.event.thread) == t && e.event.index == index && e.line > 0)
}

/// The instruction at which a thread waits: that of its last event, or what the first loop behind its events reads.
fn place<'p>(program: &'p Program, t: usize, end: &End, witness: &Witness) -> Option<&'p Instr> {
    let body = &program.threads.get(t)?.body;
    match end {
        End::Done => None,
        End::Barrier(i) => {
            let line = event(witness, t, *i)?.line;
            let mut here = body.iter().filter(|instr| instr.line == line);
            let (first, more) = (here.next()?, here.next());
            more.is_none().then_some(first)
        }
        End::Spin(before) => {
            let last = before.checked_sub(1).and_then(|i| event(witness, t, i));
            let from = last.map_or(0, |e| body.iter().position(|i| i.line == e.line).unwrap_or(0));
            let back = |(at, i): (usize, &Instr)| {
                let Op::Bra { target } = i.op else { return None };
                (from..=at).contains(&target).then_some(target..at)
            };
            let polled = body.iter().enumerate().find_map(back)?;
            body[polled].iter().find(|i| {
                matches!(i.op, Op::Load { .. } | Op::Rmw { .. } | Op::MultimemLoad { .. } | Op::Mbarrier(_))
            })
        }
    }
}

/// What a loop reads again and again, and its value, where one write is the last.
fn value(program: &Program, t: usize, place: Option<&Instr>, witness: &Witness) -> String {
    let Some(instr) = place else { return "a value that never comes".to_owned() };
    let text = instruction(program, &program.threads[t], instr);
    let read = if let Op::Load { addr, .. } | Op::Rmw { addr, .. } = &instr.op { Some(addr) } else { None };
    let last = read.and_then(|addr| last(program, addr, witness));
    let reads = last.map_or(String::new(), |v| format!(", which reads {v} for ever"));
    format!("another value of `{text}`{reads}")
}

/// The value of the one write to a place that no other one follows.
fn last(program: &Program, addr: &Address, witness: &Witness) -> Option<u64> {
    let Operand::Address(symbol) = addr.base else { return None };
    let name = &program.objects[program.symbols[symbol.index()].object.index()].name;
    let name = if addr.offset == 0 { name.clone() } else { format!("{name}+{}", addr.offset) };
    let write = |e: &WitnessEvent| e.kind == "W" && e.location.as_ref() == Some(&name);
    let writes: Vec<usize> = (0..witness.events.len()).filter(|e| write(&witness.events[*e])).collect();
    let followed = |e: &usize| {
        witness.edges.iter().any(|(kind, from, to)| kind == "co" && from == e && writes.contains(to))
    };
    let mut ends = writes.iter().filter(|e| !followed(e));
    let (one, more) = (ends.next()?, ends.next());
    witness.events[*one].value.filter(|_| more.is_none())
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

fn mbarrier(program: &Program, stall: &Stall) -> String {
    let owner = stall.owner.map_or(String::new(), |t| format!("{}:", program.threads[t.index()].name));
    let offset = if stall.offset == 0 { String::new() } else { format!("+{}", stall.offset) };
    format!("[{owner}{}{offset}]", program.objects[stall.object.index()].name)
}

/// The arrivals and the bytes that a phase lacks.
fn arrivals(program: &Program, stall: &Stall) -> Option<String> {
    let Stall { valid, phase, pending, tx, .. } = stall;
    let of = format!("phase {phase} of mbarrier {}", mbarrier(program, stall));
    let number = |n: u64, one: &str, all: &str| format!("{n} more {}", if n == 1 { one } else { all });
    let arrivals = (*pending > 0).then(|| number(*pending, "arrival", "arrivals"));
    let bytes = (*tx > 0).then(|| number(tx.unsigned_abs(), "byte of a copy", "bytes of copies"));
    let bytes = bytes.or_else(|| {
        (*tx < 0).then(|| format!("an expectation of {} bytes that came unexpected", tx.unsigned_abs()))
    });
    let all: Vec<String> = arrivals.into_iter().chain(bytes).collect();
    (*valid && !all.is_empty()).then(|| format!("{} in {of}", all.join(" and ")))
}

/// An mbarrier whose phase no arrival completes.
fn lacking(program: &Program, stall: &Stall) -> String {
    let name = mbarrier(program, stall);
    if !stall.valid {
        return format!("{name}, which is no valid mbarrier");
    }
    let Stall { phase, pending, tx, .. } = stall;
    format!("mbarrier {name}, phase {phase}: pending count {pending}, tx-count {tx}")
}

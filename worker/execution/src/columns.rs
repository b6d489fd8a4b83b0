//! Columns of tensor memory, for both engines: the addresses that `tcgen05.alloc` returns, which CTAs are a pair, and when
//! the order of allocations is part of an execution. (PTX ISA 9.2, 9.7.16.7; CTA pairs: 9.7.16.5.)
//!
//! The low half of an address is the column. Each allocation of a CTA gets columns of its own, 1,024 apart, and programs
//! compute with these addresses as with real ones. Freed columns are not given out again: an access to memory that was
//! freed is found as an access outside a live allocation.

use moire_program::ir::{Op, Operand, Placement, Program, Scope, TENSOR_COLUMNS, Tcgen05, ThreadId, Value};

/// Distance in columns between two allocations. No allocation is larger.
const STEP: u32 = 1_024;
/// Most allocations of one CTA.
const SLOTS: u32 = 63;

/// The threads of a CTA that have an allocating instruction, in order.
fn allocating(program: &Program, thread: usize) -> Vec<usize> {
    let place = |t: usize| &program.threads[t].place;
    let allocates =
        |t: usize| program.threads[t].body.iter().any(|i| matches!(i.op, Op::Tcgen05(Tcgen05::Alloc { .. })));
    (0..program.threads.len()).filter(|t| place(*t).same_cta(place(thread)) && allocates(*t)).collect()
}

/// The number in its CTA of the `nth` allocation of a thread. `None` if there are too many. Both CTAs of a pair use the
/// same numbers.
pub fn slot(program: &Program, thread: usize, nth: usize, pair: bool) -> Option<u32> {
    let all = allocating(program, thread);
    let rank = all.iter().position(|t| *t == thread)?;
    let number = if pair { nth } else { nth * all.len() + rank };
    u32::try_from(number).ok().filter(|n| *n < SLOTS)
}

/// The address of the first column of an allocation.
pub fn address(slot: u32) -> u32 {
    STEP * (slot + 1)
}

/// The allocation that a column belongs to, and its position in the allocation.
pub fn of_column(column: u32) -> Option<(u32, u32)> {
    Some(((column / STEP).checked_sub(1)?, column % STEP))
}

/// Whether an instruction may ask for this number of columns: a power of two, or with `.exclusive` a multiple of 32.
pub fn countable(columns: Value, exclusive: bool) -> bool {
    let fits = columns.is_multiple_of(32) && columns > 0 && columns <= Value::from(most(exclusive));
    fits && (exclusive || columns.is_power_of_two())
}

/// Most columns of one allocation. sm_107 has columns that only an exclusive allocation can get.
pub fn most(exclusive: bool) -> u32 {
    if exclusive { TENSOR_COLUMNS + 64 } else { TENSOR_COLUMNS }
}

/// Whether allocations of this thread's CTA may have to wait for columns, so that their order matters.
pub fn contended(program: &Program, thread: usize) -> bool {
    let mut total = 0;
    let mut allocations = 0;
    let mut exclusively = false;
    for t in allocating(program, thread) {
        let body = &program.threads[t].body;
        // What is run again lies between a jump back and its target.
        let again =
            |pc: usize| body.iter().skip(pc).any(|i| matches!(i.op, Op::Bra { target } if target <= pc));
        for (pc, instr) in body.iter().enumerate() {
            let Op::Tcgen05(Tcgen05::Alloc { columns, exclusive, .. }) = &instr.op else { continue };
            let Operand::Imm(n) = columns else { return true };
            total += n.clamp(&0, &i128::from(STEP)) * if again(pc) { 4 } else { 1 };
            allocations += 1;
            exclusively |= exclusive;
        }
    }
    total > i128::from(TENSOR_COLUMNS) || (exclusively && allocations > 1)
}

/// The first thread of the CTA of a thread.
pub fn leader(program: &Program, thread: usize) -> usize {
    let place = |t: usize| &program.threads[t].place;
    (0..thread).find(|t| place(*t).same_cta(place(thread))).unwrap_or(thread)
}

/// First thread of each CTA of a thread's cluster, by rank.
pub fn cluster(program: &Program, thread: usize) -> Vec<usize> {
    let place = |t: usize| -> &Placement { &program.threads[t].place };
    let mut ctas: Vec<usize> = (0..program.threads.len())
        .filter(|t| leader(program, *t) == *t && place(*t).includes(Scope::Cluster, place(thread)))
        .collect();
    ctas.sort_by_key(|t| place(*t).cta);
    ctas
}

/// The first thread of the other CTA of the pair, whose rank differs in the last bit.
pub fn peer(program: &Program, thread: usize) -> Option<usize> {
    let ctas = cluster(program, thread);
    let mine = ctas.iter().position(|t| *t == leader(program, thread))?;
    ctas.get(mine ^ 1).copied()
}

/// [`leader`] as an identifier.
pub fn leader_id(program: &Program, thread: usize) -> ThreadId {
    ThreadId::at(leader(program, thread))
}

/// The number of lanes in the CTA of a thread, over all threads of the program.
pub fn cta_lanes(program: &Program, thread: ThreadId) -> u32 {
    let own = &program.threads[thread.index()].place;
    let here = program.threads.iter().filter(|t| t.place.same_cta(own));
    here.map(|t| t.place.lanes().count_ones()).sum()
}

//! An upper bound on the number of executions of a program, from its text alone.

use moire_program::ir::{Access, Address, Op, Operand, Program, Space, Thread, TileKind, TileOp};
use std::collections::BTreeMap;

/// The location of an access: object, CTA if the object is shared memory, offset.
type Place = (u16, u16, i32);

/// The number of accesses of one place.
#[derive(Clone, Copy, Default)]
struct Count {
    reads: u32,
    writes: u32,
}

/// The logarithm to base two of a bound on the number of executions. Each read reads the initial value or one of the
/// writes of its place, and the writes of a place are ordered.
///
/// For an instruction of a tile block with more than `few` elements, only the first and the last element count. A load of
/// one element counts as `scalars` reads. Loops count as if they ran once. Accesses whose address comes from memory do
/// not count.
pub fn log2_executions(program: &Program, few: usize, scalars: u32) -> f64 {
    let mut places: BTreeMap<Place, Count> = BTreeMap::new();
    for thread in &program.threads {
        for instr in &thread.body {
            for (addr, reads, writes) in accesses(&instr.op, few) {
                if let Some(place) = place(program, thread, addr) {
                    let count = places.entry(place).or_default();
                    count.reads += u32::from(reads) * if scalar(&instr.op) { scalars } else { 1 };
                    count.writes += u32::from(writes);
                }
            }
        }
    }
    let one = |c: &Count| {
        let orders: f64 = (2..=c.writes).map(|n| f64::from(n).log2()).sum();
        f64::from(c.reads) * f64::from(c.writes + 1).log2() + orders
    };
    places.values().map(one).sum()
}

/// Whether this is a load of a tile block that reads one element.
fn scalar(op: &Op) -> bool {
    matches!(op, Op::Tile(TileOp::Access(a)) if a.elements.len() == 1 && matches!(a.kind, TileKind::Load(_)))
}

fn accesses(op: &Op, few: usize) -> Vec<(Address, bool, bool)> {
    if let Op::Tile(TileOp::Access(access)) = op {
        let (reads, writes) = match access.kind {
            TileKind::Load(_) => (true, false),
            TileKind::Store(_) => (false, true),
            TileKind::Rmw { .. } => (true, true),
        };
        let all = access.elements.len();
        let kept = access.elements.iter().enumerate().filter(|(i, _)| all <= few || *i == 0 || i + 1 == all);
        return kept.map(|(_, e)| (e.addr, reads, writes)).collect();
    }
    // Mbarriers are refused before.
    let (Some(access), Some((_, addr))) = (op.access(), op.place()) else { return Vec::new() };
    let (reads, writes) = match access {
        Access::Load(_) => (true, false),
        Access::Store(_) => (false, true),
        Access::Update => (true, true),
    };
    vec![(addr, reads, writes)]
}

fn place(program: &Program, thread: &Thread, addr: Address) -> Option<Place> {
    let Operand::Address(symbol) = addr.base else { return None };
    let symbol = program.symbols.get(symbol.index())?;
    let shared = program.objects.get(symbol.object.index())?.space != Space::Global;
    Some((symbol.object.0, if shared { thread.place.cta } else { 0 }, addr.offset))
}

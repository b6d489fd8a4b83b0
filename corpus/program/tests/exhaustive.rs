//! Small programs: none twice, in order of size, and the classics are among them.

use std::collections::BTreeSet;

use moire_program::canon::canonical;
use moire_program::generate::exhaustive::{Alphabet, Bound, Near, programs, size};
use moire_program::ir::{LoadOrder, Scope, StoreOrder};

fn plain() -> Bound {
    let alphabet = Alphabet {
        loads: vec![LoadOrder::Relaxed(Scope::Gpu)],
        stores: vec![StoreOrder::Relaxed(Scope::Gpu)],
        places: vec![Near::Gpu],
        ..Alphabet::default()
    };
    Bound { threads: 2, memory_events: 4, instructions: 4, locations: 2, alphabet }
}

#[test]
fn all_small_programs_come_once_and_in_order() {
    let all: Vec<_> = programs(&plain()).collect();
    let ids: BTreeSet<_> = all.iter().map(|p| canonical(p).id).collect();
    assert_eq!(ids.len(), all.len());
    assert!(all.windows(2).all(|w| size(&w[0]) <= size(&w[1])));
    let mut message_passing = moire_program::generate::shapes::message_passing();
    message_passing.conditions.clear();
    // The shapes use 64-bit words, the enumeration 32-bit ones when no address is computed.
    let four = all.iter().filter(|p| size(p) == (2, 4, 4)).count();
    assert!(four >= 6, "{four}");
}

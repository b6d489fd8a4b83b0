//! The spellings of keys and outcomes, from which digests of reports are computed.

use crate::leaf::{End, EventRef, LeafKey, Outcome};
use moire_program::spells;

spells! {
    EventRef { EventRef { thread, index } => "EventRef" { "thread": thread, "index": index } }
    End {
        End::Done => "Done" (),
        End::Barrier(event) => "Barrier" (event),
        End::Spin(events) => "Spin" (events),
    }
    LeafKey {
        LeafKey { ends, rf, co, phases } => "LeafKey" { "ends": ends, "rf": rf, "co": co, "phases": phases },
    }
    Outcome { Outcome { regs, memory } => "Outcome" { "regs": regs, "memory": memory } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_program::canon::spell::Spell;
    use moire_program::ir::Content;

    #[test]
    fn a_key_and_an_outcome_are_spelled_as_ever() {
        let (a, b) = (EventRef { thread: 0, index: 1 }, EventRef::init());
        let key = LeafKey {
            ends: vec![End::Done, End::Barrier(2), End::Spin(3)],
            rf: vec![(a, 0, 4, 8, b)],
            co: vec![(b, a)],
            phases: vec![(a, 7)],
        };
        let (one, init) = ("EventRef { thread: 0, index: 1 }", "EventRef { thread: 65535, index: 0 }");
        let told = format!(
            "LeafKey {{ ends: [Done, Barrier(2), Spin(3)], rf: [({one}, 0, 4, 8, {init})], co: [({init}, {one})], \
             phases: [({one}, 7)] }}"
        );
        assert_eq!(key.spelling(), told);
        let mut memory = Content::default();
        memory.put(17, 9);
        let outcome = Outcome { regs: vec![5, 0], memory: vec![memory, Content::default()] };
        let blocks = "(1, [0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])";
        let told = format!(
            "Outcome {{ regs: [5, 0], memory: [Content {{ blocks: [{blocks}] }}, Content {{ blocks: [] }}] }}"
        );
        assert_eq!(outcome.spelling(), told);
    }
}

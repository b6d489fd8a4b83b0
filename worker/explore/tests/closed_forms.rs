//! Numbers of executions known in closed form: the families of the exploration literature.

use moire_cat::{Variants, builtin};
use moire_explore::explorer::LeafView;
use moire_explore::families::{FAMILIES, Family, named};
use moire_explore::{LeafKey, Limits, Summary, explore};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

fn program(text: &str) -> Program {
    parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn count(program: &Program, model: &str) -> Summary {
    let model = builtin::load(model, &Variants::new()).expect("loads");
    let mut keys: BTreeSet<LeafKey> = BTreeSet::new();
    let summary = explore(program, &model, &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        assert!(keys.insert(leaf.facts().key), "an execution was visited twice");
        ControlFlow::Continue(())
    });
    summary.expect("supported")
}

fn family(name: &str) -> &'static Family {
    named(name).unwrap_or_else(|| panic!("no family {name}"))
}

#[test]
fn every_family_has_its_number_of_executions() {
    for family in FAMILIES {
        for n in family.least..=family.quick {
            let summary = count(&program(&family.text(n)), "ptx");
            let (name, expected) = (family.name, family.executions(n));
            assert_eq!(
                (summary.complete, summary.blocked, summary.bounded),
                (expected, 0, None),
                "{name}({n})"
            );
        }
    }
}

/// The numbers published for the sizes at which tools are compared: the formulas themselves are right.
#[test]
fn formulas_give_the_published_numbers() {
    let published = [
        ("sb", 14, 16_384),
        ("lb", 14, 16_384),
        ("nw1r", 8, 362_880),
        ("readers", 14, 16_384),
        ("ainc", 8, 40_320),
        ("casrot", 8, 2_048),
        ("lastzero", 12, 15_360),
        ("lastzero", 14, 69_632),
        ("iriw", 3, 4_096),
        ("iriw", 4, 65_536),
        ("mp", 12, 13),
        ("ttas", 4, 576),
        ("ticket", 6, 720),
        ("seqlock", 3, 27),
        ("mpmc", 6, 36),
        ("barrier", 10, 1),
    ];
    for (name, n, expected) in published {
        assert_eq!(family(name).executions(n), expected, "{name}({n})");
    }
}

#[test]
fn the_rings_lose_one_execution_to_sequential_consistency() {
    for name in ["sb", "lb"] {
        for n in 2..=8 {
            assert_eq!(count(&program(&family(name).text(n)), "sc").complete, (1 << n) - 1, "{name}({n})");
        }
    }
}

#[test]
fn a_spin_without_a_writer_hangs() {
    let text = "moire \"stuck\"\n.global .b32 x;\n\
                P0 (gpu 0, cta 0) { L: ld.relaxed.gpu.u32 r, [x]; setp.eq.u32 p, r, 0; @p bra L; }\n";
    let summary = count(&program(text), "ptx");
    assert_eq!((summary.complete, summary.blocked), (0, 1));
}

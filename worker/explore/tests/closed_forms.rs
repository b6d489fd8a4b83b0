//! Numbers of executions known in closed form: the families of the exploration literature.

use moire_cat::{Variants, builtin};
use moire_explore::explorer::LeafView;
use moire_explore::{LeafKey, Limits, Summary, explore};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

fn family(name: &str, threads: &[String]) -> Program {
    let mut text = format!("moire \"{name}\"\n");
    for location in ["x", "y", "z", "w", "a", "b", "c", "d"] {
        text.push_str(&format!(".global .b32 {location};\n"));
    }
    for (i, body) in threads.iter().enumerate() {
        text.push_str(&format!("P{i} (gpu 0, cta {i}) {{ {body} }}\n"));
    }
    parse(&text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"))
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

const NAMES: [&str; 8] = ["x", "y", "z", "w", "a", "b", "c", "d"];

fn ring(n: usize, store_first: bool) -> Program {
    let body = |i: usize| {
        let (mine, next) = (NAMES[i], NAMES[(i + 1) % n]);
        if store_first {
            format!("st.relaxed.gpu.u32 [{mine}], 1; ld.relaxed.gpu.u32 r, [{next}];")
        } else {
            format!("ld.relaxed.gpu.u32 r, [{mine}]; st.relaxed.gpu.u32 [{next}], 1;")
        }
    };
    family("ring", &(0..n).map(body).collect::<Vec<_>>())
}

#[test]
fn store_buffering_ring() {
    for n in 2..=8 {
        assert_eq!(count(&ring(n, true), "ptx").complete, 1 << n);
        assert_eq!(count(&ring(n, true), "sc").complete, (1 << n) - 1);
    }
}

#[test]
fn load_buffering_ring() {
    for n in 2..=8 {
        assert_eq!(count(&ring(n, false), "ptx").complete, 1 << n);
        assert_eq!(count(&ring(n, false), "sc").complete, (1 << n) - 1);
    }
}

#[test]
fn writers_and_one_reader() {
    let factorial = |n: u64| (1..=n).product::<u64>();
    for n in 1..=5 {
        let mut threads: Vec<String> =
            (0..n).map(|i| format!("st.relaxed.gpu.u32 [x], {};", i + 1)).collect();
        threads.push("ld.relaxed.gpu.u32 r, [x];".into());
        assert_eq!(count(&family("nw1r", &threads), "ptx").complete, factorial(n) * (n + 1));
    }
}

#[test]
fn one_writer_and_readers() {
    for n in 1..=8 {
        let mut threads = vec!["st.relaxed.gpu.u32 [x], 1;".to_owned()];
        threads.extend((0..n).map(|_| "ld.relaxed.gpu.u32 r, [x];".to_owned()));
        assert_eq!(count(&family("readers", &threads), "ptx").complete, 1 << n);
    }
}

#[test]
fn increments() {
    for n in 1..=6u64 {
        let threads: Vec<String> = (0..n).map(|_| "atom.relaxed.gpu.add.u32 r, [x], 1;".to_owned()).collect();
        assert_eq!(count(&family("ainc", &threads), "ptx").complete, (1..=n).product::<u64>());
    }
}

#[test]
fn barrier_is_one_execution() {
    let body = |i: usize| {
        format!("st.weak.u32 [{}], 1; bar.sync 0; ld.weak.u32 r, [{}];", NAMES[i], NAMES[(i + 1) % 4])
    };
    let text: String =
        (0..4).fold(String::from("moire \"barrier\"\n"), |t, i| t + &format!(".global .b32 {};\n", NAMES[i]));
    let text = (0..4).fold(text, |t, i| t + &format!("P{i} (gpu 0, cta 0, warp {i}) {{ {} }}\n", body(i)));
    let summary = count(&parse(&text, Format::Native).expect("parses"), "ptx");
    assert_eq!((summary.complete, summary.blocked), (1, 0));
}

#[test]
fn ticket_lock_has_no_blocked_executions() {
    let lock = "atom.relaxed.gpu.add.u32 t, [x], 1; L: ld.acquire.gpu.u32 s, [y]; setp.ne.u32 p, s, t; @p bra L; \
                ld.relaxed.gpu.u32 r, [z]; add.u32 r, r, 1; st.relaxed.gpu.u32 [z], r; add.u32 t, t, 1; st.release.gpu.u32 [y], t;";
    for (n, expected) in [(2, 2), (3, 6)] {
        let summary = count(&family("ticket", &vec![lock.to_owned(); n]), "ptx");
        assert_eq!((summary.complete, summary.blocked), (expected, 0));
    }
}

#[test]
fn a_spin_without_a_writer_hangs() {
    let program = family("stuck", &["L: ld.relaxed.gpu.u32 r, [x]; setp.eq.u32 p, r, 0; @p bra L;".into()]);
    let summary = count(&program, "ptx");
    assert_eq!((summary.complete, summary.blocked), (0, 1));
}

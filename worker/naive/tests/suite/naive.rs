//! Tests of the naive enumerator alone, and of both engines on programs with features that drawn programs rarely have.

use moire_cat::{Model, Variants};
use moire_execution::leaf::LeafKind;
use moire_lab::differential::{Comparison, compare};
use moire_naive::NaiveLimits;
use moire_naive::leaves as naive_leaves;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::path::Path;

const MODELS: [&str; 5] = ["any", "sc", "ptx-6.0", "ptx-7.5", "ptx"];

fn model(name: &str) -> Model {
    moire_models::load(name, &Variants::new()).expect("loads")
}

fn native(text: &str) -> Program {
    let text = format!("moire \"test\"\n{text}\n");
    parse(&text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Makes a program with a CTA for each thread, and 32-bit locations x, y, z.
fn spread(threads: &[&str]) -> Program {
    let mut text = String::from(".global .b32 x;\n.global .b32 y;\n.global .b32 z;\n");
    for (i, body) in threads.iter().enumerate() {
        text.push_str(&format!("P{i} (gpu 0, cta {i}) {{ {body} }}\n"));
    }
    native(&text)
}

/// Counts the complete and blocked executions that the enumerator finds. The explorer must find the same executions.
fn count(program: &Program, name: &str) -> (usize, usize) {
    let (limits, model) = (NaiveLimits::default(), model(name));
    match compare(program, &model, &limits) {
        Comparison::Same { .. } => {}
        other => panic!("{name}: {other:#?}"),
    }
    let (leaves, _) = naive_leaves(program, &model, &limits).expect("within limits");
    let blocked = leaves.values().filter(|f| f.kind == LeafKind::Blocked).count();
    (leaves.len() - blocked, blocked)
}

fn agree(program: &Program) {
    for name in MODELS {
        count(program, name);
    }
}

#[test]
fn closed_forms() {
    let w = |l: &str, v: u32| format!("st.relaxed.gpu.u32 [{l}], {v};");
    let r = |l: &str| format!("ld.relaxed.gpu.u32 r, [{l}];");
    let sb = spread(&[&(w("x", 1) + &r("y")), &(w("y", 1) + &r("x"))]);
    assert_eq!((count(&sb, "ptx"), count(&sb, "sc")), ((4, 0), (3, 0)));
    let lb = spread(&[&(r("x") + &w("y", 1)), &(r("y") + &w("x", 1))]);
    assert_eq!((count(&lb, "ptx"), count(&lb, "sc")), ((4, 0), (3, 0)));
    let add = "atom.relaxed.gpu.add.u32 r, [x], 1;";
    assert_eq!(count(&spread(&[add, add, add]), "ptx"), (6, 0));
    assert_eq!(count(&spread(&[&w("x", 1), &w("x", 2), &w("x", 3), &r("x")]), "ptx"), (24, 0));
}

/// Shapes with executions that published side conditions of revisits lose, and one shape on which published tools
/// differ.
#[test]
fn shapes_that_are_easily_lost() {
    let w = |v: u32| format!("st.relaxed.gpu.u32 [x], {v};");
    let r = |n: u32| format!("ld.relaxed.gpu.u32 r{n}, [x];");
    let u = |n: u32| format!("atom.relaxed.gpu.add.u32 r{n}, [x], 1;");
    assert_eq!(count(&spread(&[&(w(1) + &r(0)), &(u(0) + &u(1))]), "ptx"), (6, 0));
    let dependent = r(0) + &w(1) + &r(1) + "st.relaxed.gpu.u32 [x], r1;";
    assert_eq!(count(&spread(&[&(w(2) + &r(0)), &dependent]), "ptx"), (11, 0));
    let copy = u(0) + &w(3) + "st.relaxed.gpu.u32 [x], r0;";
    assert_eq!(count(&spread(&[&(w(1) + &u(0) + &r(1)), &copy]), "ptx"), (20, 0));
    let peers = spread(&[
        &(r(0) + &w(2)),
        "ld.relaxed.gpu.u32 c, [x]; st.relaxed.gpu.u32 [y], c;",
        "ld.relaxed.gpu.u32 e, [y]; add.u32 f, e, 5; st.relaxed.gpu.u32 [x], f;",
    ]);
    assert_eq!(count(&peers, "ptx"), (15, 0));
}

#[test]
fn chapter_eight() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(folder) = here.ancestors().map(|a| a.join("shared/ptx-lab/chapter8")).find(|p| p.is_dir())
    else {
        eprintln!("skipped: shared/ptx-lab/chapter8 is not beside the checkout");
        return;
    };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let program = parse(&text, Format::Dat3m).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        agree(&program);
        seen += 1;
    }
    assert_eq!(seen, 17);
}

#[test]
fn sizes_and_vectors() {
    let memory = ".global .b64 x;\n.global .b64 y;\n";
    let pair = |a: &str, b: &str| {
        native(&format!("{memory}P0 (gpu 0, cta 0) {{ {a} }}\nP1 (gpu 0, cta 1) {{ {b} }}"))
    };
    agree(&pair(
        "st.relaxed.gpu.v2.u32 [x], {1, 2};",
        "ld.relaxed.gpu.u64 a, [x]; st.relaxed.gpu.u16 [x+2], 7; ld.relaxed.gpu.u32 b, [x];",
    ));
    agree(&pair(
        "st.weak.u64 [x], 4294967297; atom.relaxed.gpu.add.u32 a, [x+4], 1;",
        "ld.acquire.gpu.v2.u32 {b, c}, [x]; st.weak.u8 [x+4], 9;",
    ));
    agree(&pair(
        "atom.relaxed.gpu.exch.b64 a, [x], 5; ld.weak.u32 b, [x];",
        "st.weak.u32 [x+4], 1; st.weak.u32 [x], 2;",
    ));
}

#[test]
fn addresses_in_registers() {
    agree(&native(
        ".global .b64 x;\n.global .b64 p;\n\
         P0 (gpu 0, cta 0) { st.relaxed.gpu.u64 [x], 1; mov.u64 a, x; st.release.gpu.u64 [p], a; }\n\
         P1 (gpu 0, cta 1) { mov.u64 b, x; atom.acquire.gpu.or.b64 q, [p], 0; setp.ne.u64 c, q, 0; @c ld.weak.u64 d, [b]; }",
    ));
}

#[test]
fn barriers() {
    let shared = ".shared .b32 s;\n.global .b32 x;\n";
    let cta = |n: usize, body: &dyn Fn(usize) -> String| {
        let threads: String =
            (0..n).map(|i| format!("P{i} (gpu 0, cta 0, warp {i}) {{ {} }}\n", body(i))).collect();
        native(&format!("{shared}{threads}"))
    };
    agree(&cta(2, &|i| {
        format!("st.weak.u32 [x], {}; bar.sync 0; ld.weak.u32 a, [x]; bar.sync 0; st.weak.u32 [x], 9;", i + 1)
    }));
    agree(&cta(3, &|i| match i {
        0 => "st.shared.u32 [s], 1; bar.arrive 1, 2;".into(),
        1 => "bar.sync 1, 2; ld.shared.u32 a, [s];".into(),
        _ => "bar.sync 1, 2; ld.shared.u32 b, [s];".into(),
    }));
    agree(&cta(2, &|i| {
        format!("ld.weak.u32 a, [x]; setp.eq.u32 p, a, {i}; bar.red.popc.u32 c, 0, p; st.weak.u32 [x], c;")
    }));
    agree(&cta(2, &|i| {
        format!(
            "mov.u32 i, 0; L: bar.sync 0; st.weak.u32 [x], {i}; add.u32 i, i, 1; setp.lt.u32 p, i, 2; @p bra L;"
        )
    }));
    agree(&cta(2, &|i| {
        if i == 0 {
            "ld.weak.u32 a, [x]; setp.eq.u32 p, a, 0; @p exit; bar.sync 0;".into()
        } else {
            "bar.sync 0; st.weak.u32 [x], 1;".into()
        }
    }));
}

#[test]
fn cluster_and_warp_barriers() {
    let body = |i: usize, relaxed: &str| {
        format!(
            "st.weak.u32 [x], {}; barrier.cluster.arrive{relaxed}; barrier.cluster.wait; ld.weak.u32 a, [x];",
            i + 1
        )
    };
    for relaxed in ["", ".relaxed"] {
        let threads: String = (0..2)
            .map(|i| format!("P{i} (gpu 0, cluster 0, cta {i}) {{ {} }}\n", body(i, relaxed)))
            .collect();
        agree(&native(&format!(".global .b32 x;\n{threads}")));
    }
    agree(&native(
        ".global .b32 x;\n\
         P0 (gpu 0, cta 0, warp 0, lane 0) { st.weak.u32 [x], 1; bar.warp.sync 3; }\n\
         P1 (gpu 0, cta 0, warp 0, lane 1) { bar.warp.sync 3; ld.weak.u32 a, [x]; }",
    ));
}

#[test]
fn awaits() {
    let lock = "L: atom.acquire.gpu.cas.b32 a, [x], 0, 1; setp.ne.u32 p, a, 0; @p bra L; \
                ld.weak.u32 b, [y]; add.u32 b, b, 1; st.weak.u32 [y], b; st.release.gpu.u32 [x], 0;";
    let program = spread(&[lock, lock]);
    agree(&program);
    assert_eq!(count(&program, "ptx"), (2, 0));
    let ping = "L: ld.acquire.gpu.u32 a, [x]; setp.ne.u32 p, a, 1; @p bra L; st.release.gpu.u32 [y], 1;";
    let pong = "L: ld.acquire.gpu.u32 a, [y]; setp.ne.u32 p, a, 1; @p bra L; st.release.gpu.u32 [x], 1;";
    assert_eq!(count(&spread(&[ping, pong]), "ptx"), (0, 1));
    let two = "L: ld.relaxed.gpu.u32 a, [x]; ld.relaxed.gpu.u32 b, [y]; setp.ne.u32 p, a, b; @p bra L;";
    agree(&spread(&[two, "st.relaxed.gpu.u32 [x], 1; st.relaxed.gpu.u32 [y], 1;"]));
    agree(&spread(&[
        "L: ld.relaxed.gpu.u32 a, [x]; setp.eq.u32 p, a, 0; @p bra L;",
        "st.weak.u32 [x], 1;",
        "st.weak.u32 [x], 0;",
    ]));
}

#[test]
fn pending_values() {
    agree(&spread(&[
        "atom.relaxed.gpu.cas.b32 a, [x], 0, 1; st.relaxed.gpu.u32 [y], 1;",
        "ld.relaxed.gpu.u32 b, [y]; st.relaxed.gpu.u32 [x], b;",
    ]));
    agree(&spread(&[
        "ld.relaxed.gpu.u32 a, [x]; setp.eq.u32 p, a, 1; selp.u32 b, 1, a, p; st.relaxed.gpu.u32 [y], 1; st.weak.u32 [z], b;",
        "ld.relaxed.gpu.u32 b, [y]; st.relaxed.gpu.u32 [x], b; ld.weak.u32 c, [z];",
    ]));
    agree(&spread(&[
        "ld.relaxed.gpu.u32 a, [x]; setp.eq.u32 p, a, 1; @p mov.u32 a, 3; st.relaxed.gpu.u32 [y], 1;",
        "ld.relaxed.gpu.u32 b, [y]; st.relaxed.gpu.u32 [x], b;",
    ]));
    agree(&spread(&[
        "atom.relaxed.gpu.exch.b32 a, [x], 1; st.relaxed.gpu.u32 [y], a;",
        "atom.relaxed.gpu.exch.b32 b, [y], 2; red.relaxed.gpu.add.u32 [x], b;",
    ]));
}

/// A predicate decides whether a copy reads its source. The copy is issued once it is known, and later instructions of
/// the thread wait for the copy. So the store behind it cannot feed the load that the predicate depends on.
#[test]
fn a_copy_waits_for_its_predicate() {
    let program = native(
        ".global .b32 x;\n.global .b32 y;\n.global .b32 g;\n.shared .b32 s;
        P0 (gpu 0, cta 0) { ld.relaxed.gpu.u32 r, [x]; setp.ne.u32 p, r, 0;
            cp.async.ca.shared::cta.global [s], [g], 4, p; st.relaxed.gpu.u32 [y], 1; }
        P1 (gpu 0, cta 1) { ld.relaxed.gpu.u32 q, [y]; st.relaxed.gpu.u32 [x], q; }",
    );
    assert_eq!(count(&program, "ptx"), (3, 0));
}

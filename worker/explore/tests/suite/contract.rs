//! The contract with models: the explorer relies only on properties that a model licenses.
//!
//! A sample of `moire bench contract`; `MOIRE_CONTRACT=N` multiplies it.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_cat::licence::Kind;
use moire_cat::{Library, Model, Source, Variants};
use moire_generate::numbers::Draw;
use moire_generate::tensor::copies;
use moire_generate::{Profile, Stream};
use moire_lab::differential::campaign::Campaign;
use moire_lab::differential::contract::{Counts, mutants, parts, try_parts};
use moire_lab::differential::{Comparison, compare};
use moire_models::Shipped;
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};

fn shipped(name: &str, settings: &Variants) -> Model {
    moire_models::load(name, settings).unwrap_or_else(|e| panic!("{e}"))
}

fn own(text: &str) -> Model {
    moire_cat::load("own.cat", text, &Shipped, &Variants::new()).unwrap_or_else(|e| panic!("{e}"))
}

/// `ptx` with a line of its text replaced.
fn edited(from: &str, to: &str) -> Model {
    struct Edited<'a>(&'a str, &'a str);
    impl Library for Edited<'_> {
        fn open(&self, file: &Source, path: &str) -> Option<(Source, String)> {
            let (found, text) = Shipped.open(file, path)?;
            Some((found, text.replace(self.0, self.1)))
        }
    }
    let text = moire_models::text("ptx").expect("shipped");
    moire_cat::load("ptx", text, &Edited(from, to), &Variants::new()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn engines_agree_whatever_checks_a_model_lacks() {
    let scale = std::env::var("MOIRE_CONTRACT").map_or(1, |n| n.parse().expect("a number"));
    let all: Vec<Model> = moire_models::names().map(|n| shipped(n, &Variants::new())).collect();
    let flip = |model: &Model, switch: &str, value: &str| {
        let set = Variants::from([(switch.to_owned(), value.to_owned())]);
        shipped(model.name(), &set).called(format!("{} {switch}={value}", model.name()))
    };
    let counts = Counts { shipped: 40 * scale, single: 6 * scale, sets: 20 * scale, drawn: 10 * scale };
    let seed = 19;
    let mutants = mutants(&all, counts, seed, &flip);
    let parts = parts(&mutants, seed);
    let (mut programs, mut executions, mut wrong) = (0, 0, Vec::new());
    try_parts(&mutants, &parts, 0, 2, &mut |at, found| {
        programs += found.programs;
        executions += found.executions;
        let model = mutants[parts[at].mutant].model.name();
        for f in found.failures {
            wrong.push(format!("seed {}, {model}: {:?}\n{}", f.seed, f.difference, print(&f.program)));
        }
    });
    eprintln!("{} models, {programs} programs, {executions} executions", mutants.len());
    assert!(mutants.len() > 200 && programs > 1_000 && executions > 5_000, "the sample is too small");
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether explorer and enumerator differ on some program of a source.
fn is_found(model: &Model, count: u64, source: &(dyn Fn(u64) -> Option<Program> + Sync)) -> bool {
    let models = [model.clone()];
    let campaign = Campaign { models: &models, count, failures: 1, source, ..Campaign::default() };
    let totals = campaign.run(&|_| {});
    eprintln!("{}: {} programs, {} differences", model.name(), totals.programs, totals.failures.len());
    !totals.failures.is_empty()
}

/// A read that its thread uses is placed early where there are barriers. So it stays open for the copy, which comes behind it
/// in causality and may be its source all the same. The model is asked while the copy is known and not placed, because its
/// thread reads something else before.
const HELD: &str = "moire \"held\"
.global .b8 g[16];
.global .b32 out;
.global .b32 y;
.shared .b8 s[16];
.shared .b64 b;
P0 (gpu 0, cta 0, warp 0) {
  mbarrier.init.shared::cta.b64 [b], 1;
  bar.sync 0;
  ld.weak.shared::cta.u8 r, [s];
  st.weak.u32 [out], r;
  bar.arrive 1, 2;
}
P1 (gpu 0, cta 0, warp 1) {
  bar.sync 0;
  bar.sync 1, 2;
  ld.relaxed.gpu.u32 r, [y];
  setp.ne.u32 p, r, 0;
  @p bra END;
  mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
END:
}
P2 (gpu 0, cta 0, warp 2) {
  bar.sync 0;
  st.relaxed.gpu.u32 [y], 1;
}
";

#[test]
fn every_false_licence_is_found() {
    for kind in Kind::ALL {
        let (model, source): (Model, fn(u64) -> Option<Program>) = match kind {
            Kind::LateStores => {
                let mut model = shipped("ptx", &Variants::new());
                for name in ["CausalityRF", "SCPerLocation"] {
                    let at = model.checks().iter().position(|c| c.name == name).unwrap();
                    model = model.without(moire_cat::CheckId(at));
                }
                (model, |seed| {
                    let profile = if seed.is_multiple_of(2) { Profile::Tensor } else { Profile::Core };
                    Some(Stream::new(1, profile).item(seed))
                })
            }
            Kind::LateCopies => (
                edited("licence late-copies = slot-settled", "licence late-copies = core-causality"),
                |seed| {
                    if seed == 0 { parse(HELD, Format::Native).ok() } else { copies(&mut Draw::new(seed)) }
                },
            ),
        };
        assert_eq!(model.licence(kind), None, "{} is false", kind.word());
        assert!(!is_found(&model, 300, &source), "{} is not granted, but the engines differ", kind.word());
        let trusting = model.trusting(kind);
        assert!(
            is_found(&trusting, 3_000, &source),
            "{} is granted falsely, but no program shows it",
            kind.word()
        );
    }
}

fn agrees(program: &str, model: &Model) {
    let program = parse(program, Format::Native).unwrap();
    let limits = Campaign::default().limits;
    let same = compare(&program, model, &limits);
    assert!(matches!(same, Comparison::Same { leaves: 1.., .. }), "{}: {same:?}", model.name());
}

/// A check may fail without a fence and pass with it. So a part of an execution in which the fence is still missing
/// must not be refused.
#[test]
fn a_check_that_later_events_can_satisfy_prunes_nothing() {
    let model = own("let fenced = (_ * _); [MF]; (_ * _)
        acyclic rf | addr | data | ctrl as NoThinAir
        empty ((W \\ IW) * R & rf) \\ fenced as NeedsFence");
    agrees(
        "moire \"t\"\n.global .b32 x;\n.global .b32 y;\n\
         P0 (gpu 0, cta 0) { st.relaxed.sys.u32 [x], 1; }\n\
         P1 (gpu 0, cta 1) { ld.relaxed.sys.u32 %r1, [x]; }\n\
         P2 (gpu 0, cta 2) {\n  ld.relaxed.sys.u32 %r1, [y];\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra END;\n  \
         fence.acq_rel.sys;\nEND:\n}\n\
         P3 (gpu 0, cta 3) { st.relaxed.sys.u32 [y], 1; }\n",
        &model,
    );
}

/// Models that a user may write: with fewer axioms than any shipped model, or with orders that no shipped model
/// demands.
#[test]
fn odd_models_agree() {
    let odd = [
        "let nothing = 0 empty nothing as Nothing",
        "empty rmw & (fr; co) as Atomicity",
        "acyclic po | rf as Order empty (((W * W) & loc) \\ id) \\ (co | co^-1) as Total",
        "acyclic po-loc | rf | co | fr as PerLocation",
        "empty (po & (W * W) & loc) \\ co as Seed irreflexive rf; po as Late",
    ];
    for (n, text) in odd.into_iter().enumerate() {
        let models = [own(text).called(format!("odd {n}"))];
        let campaign = Campaign { models: &models, first_seed: 7, count: 150, ..Campaign::default() };
        let totals = campaign.run(&|_| {});
        let told = totals.failures.first().map(|f| format!("{:?}\n{}", f.difference, print(&f.program)));
        assert!(totals.failures.is_empty() && totals.programs == 150, "{text}: {}", told.unwrap_or_default());
    }
}

/// An element of a load depends on its padding, whether it is masked off or not. Without a check on dependencies a store at
/// an address that was loaded so must still not feed what the padding is computed from.
#[test]
fn padding_that_is_not_needed_orders_too() {
    let mut model = shipped("tile-ir", &Variants::new());
    for name in ["NoThinAir", "CausalityCO", "CausalityRF", "HappensBefore", "Coherence"] {
        let at = model.checks().iter().position(|c| c.name == name).unwrap();
        model = model.without(moire_cat::CheckId(at));
    }
    let program = "moire \"padding\"\n.global .b64 x;\n.global .b32 y;\nB0 (gpu 0, cta 0) {\n  \
        .reg r0, t1, t2, r3, t4, r5, r6, i7, i8, a9, t10, t11;\n  \
        tile.atom.relaxed.sys.max.u32 {[x] -> r0, 1} gives t1;\n  \
        tile.ld.weak.u32 {[y] -> r3, r0} gives t4;\n  and.u32 i7, r3, 1;\n  mul.lo.u32 i8, i7, 4;\n  add.u64 a9, x, i8;\n  \
        tile.atom.release.sys.exch.u32 {[y] -> r5, 2; [a9] -> r6, 1} after t4 gives t10;\n  \
        tile.st.weak.u32 {[x], r6} after t11;\n}\n";
    agrees(program, &model);
}

/// What P0 does behind its branch, and what P1 does with it before it writes what P0 loads.
const BEHIND: [(&str, &str); 9] = [
    ("st.relaxed.gpu.u32 [y], 1;", "ld.relaxed.gpu.u32 r, [y];\nst.relaxed.gpu.u32 [x], r;"),
    (
        "atom.relaxed.gpu.global.exch.b32 r, [y], 1;",
        "atom.relaxed.gpu.global.or.b32 r, [y], 0;\nst.weak.u32 [x], r;",
    ),
    ("bar.sync 0;", "bar.sync 0;\nst.relaxed.gpu.u32 [x], 1;"),
    ("bar.arrive 1, 2;", "bar.sync 1, 2;\nst.relaxed.gpu.u32 [x], 1;"),
    ("barrier.cluster.arrive;", "barrier.cluster.arrive;\nbarrier.cluster.wait;\nst.relaxed.gpu.u32 [x], 1;"),
    ("exit;", "bar.sync 0;\nst.relaxed.gpu.u32 [x], 1;"),
    ("", "bar.sync 0;\nst.relaxed.gpu.u32 [x], 1;"),
    (
        "st.relaxed.gpu.u32 [y], 1;",
        "L1:\nld.relaxed.gpu.u32 r, [y];\nsetp.eq.u32 p, r, 0;\n@p bra L1;\nst.relaxed.gpu.u32 [x], 1;",
    ),
    (
        "mbarrier.arrive.shared::cta.b64 _, [b];",
        "L1:\nmbarrier.test_wait.parity.shared::cta.b64 p, [b], 0;\n@!p bra L1;\nst.relaxed.gpu.u32 [x], 1;",
    ),
];

/// A cycle of dependencies, reads-from and passed barriers is no execution, whatever a model checks; and a branch that skips
/// nothing, or only computes, is a dependency like any other.
#[test]
fn a_branch_that_skips_nothing_is_awaited() {
    let none = |value: &str| {
        let set = [("Q14", value), ("Q17", "A")].map(|(switch, value)| (switch.to_owned(), value.to_owned()));
        let model = shipped("ptx", &Variants::from(set));
        let all = (0..model.checks().len()).rev().map(moire_cat::CheckId);
        all.fold(model, |less, id| less.without(id)).called(format!("ptx Q14={value} without checks"))
    };
    let models = [shipped("any", &Variants::new()), shipped("ptx", &Variants::new()), none("A"), none("B")];
    for (one, other) in BEHIND {
        let start = if one.contains("mbarrier") { "mbarrier.init.shared::cta.b64 [b], 1;\n" } else { "" };
        for skipped in ["", "mov.u32 s, 1;\n"] {
            let program = format!(
                "moire \"t\"\n.global .b32 x;\n.global .b32 y;\n.shared .b64 b;\n\
                 P0 (gpu 0, cta 0, warp 0) {{\n{start}ld.relaxed.gpu.u32 q, [x];\nsetp.eq.u32 p, q, 0;\n\
                 @p bra L0;\n{skipped}L0:\n{one}\n}}\nP1 (gpu 0, cta 0, warp 1) {{\n{other}\n}}\n"
            );
            // Where control dependencies end, the explorer abstains from loops.
            let lasting = if other.contains("bra") { 3 } else { 4 };
            models[..lasting].iter().for_each(|model| agrees(&program, model));
        }
    }
}

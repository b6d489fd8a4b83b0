//! The compiler oracle with NVIDIA's compiler. Its known bugs are found from random kernels and minimised; behaviour
//! that the model allows is not a finding. If `tileiras` is not installed, each test says so and passes.

use crate::outside::skipped;
use moire_generate::Profile;
use moire_tile_ir::run::TileLaunch;
use moire_tile_ir::text::parse;
use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Plan, Source, Verification};
use moire_worker::oracle::{COMPILER, Oracles, TILEIRAS};
use std::path::Path;
use std::sync::Arc;

fn oracles() -> Option<Oracles> {
    let oracles = Oracles::new();
    let here = oracles.capabilities().iter().any(|c| c == TILEIRAS.capability);
    if !here {
        skipped("tileiras");
    }
    here.then_some(oracles)
}

fn run(oracles: &Oracles, source: Source) -> ItemReport {
    let plan = Plan { oracles: vec![COMPILER.name.into()], ..Plan::default() };
    oracles.run(&Item { plan: Arc::new(plan), index: 0, source }, &Cancel::new())
}

/// Counts the memory instructions of a kernel.
fn accesses(text: &str) -> usize {
    let kernel = text.lines().filter(|l| !l.starts_with("//"));
    kernel
        .filter(|l| {
            ["load_ptr", "load_view", "store_ptr", "store_view", "atomic_"].iter().any(|op| l.contains(op))
        })
        .count()
}

#[test]
fn one_read_that_becomes_many_is_found_from_random_kernels() {
    let Some(oracles) = oracles() else { return };
    let drawn = |index| Source::Generated { seed: 2, profile: Profile::TileIr.name().to_owned(), index };
    let reports: Vec<ItemReport> = (0..64).map(|index| run(&oracles, drawn(index))).collect();
    let abstained: Vec<_> = reports.iter().filter(|r| r.engines.is_empty()).map(|r| &r.abstentions).collect();
    assert!(abstained.len() * 3 < reports.len(), "{abstained:?}");
    let claims: Vec<&Claim> =
        reports.iter().flat_map(|r| &r.claims).filter(|c| c.direction == Direction::Subset).collect();
    let first = claims.first().expect("a discrepancy");
    assert_eq!(oracles.verify(first, &Cancel::new()), Verification::Confirmed);
    let small = oracles.minimise(first, Budget { candidates: 2_000 }, &Cancel::new(), &mut |_| {});
    assert!(small.normal && accesses(&small.claim.program) <= 6, "{}", small.claim.program);
    assert!(small.claim.witness.contains("\"outcome\""), "{}", small.claim.witness);
    assert_eq!(oracles.verify(&small.claim, &Cancel::new()), Verification::Confirmed);
    // The text alone is enough to find the claim again.
    let again = run(&oracles, Source::Text(small.claim.program.clone()));
    assert_eq!(again.claims, [small.claim]);
}

#[test]
fn weak_behaviour_that_the_model_allows_is_not_a_bug() {
    let Some(oracles) = oracles() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/tile");
    let mut answered = 0;
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|e| e == "tile") {
            let text = std::fs::read_to_string(&path).expect("readable");
            let text = TileLaunch::row(2).note() + &text;
            let report = run(&oracles, Source::Text(text));
            let wrong: Vec<&Claim> = report.claims.iter().filter(|c| c.direction.is_bug()).collect();
            // The known bug: one read becomes one read of each thread.
            let known = path.file_stem().is_some_and(|name| name == "one_read");
            assert_eq!(!wrong.is_empty(), known, "{}: {wrong:#?}", path.display());
            answered += usize::from(!report.engines.is_empty());
        }
    }
    assert!(answered >= 36, "{answered} answers");
}

/// A masked-off load stands between a load and a store of one place. The compiler loses the order that its token passes
/// on.
const MASKED_OFF: &str = "// tile blocks: 1
entry @masked_off(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %out: tile<ptr<i32>>) {
  %q, %s = load_ptr_tko weak %y : tile<ptr<i32>> -> tile<i32>, token
  %r, %t = load_ptr_tko relaxed device %x token=%s : tile<ptr<i32>> -> tile<i32>, token
  %u = store_ptr_tko weak %out, %r : tile<ptr<i32>>, tile<i32> -> token
  %off = constant <i1: false> : tile<i1>
  %zero = constant <i32: 0> : tile<i32>
  %p, %v = load_ptr_tko relaxed device %x, %off, %zero token=%t : tile<ptr<i32>>, tile<i1>, tile<i32> -> tile<i32>, token
  %one = constant <i32: 1> : tile<i32>
  %w = store_ptr_tko relaxed device %x, %one token=%v : tile<ptr<i32>>, tile<i32> -> token
  return
}
";

#[test]
fn lost_order_through_a_masked_off_load_has_its_own_class() {
    let Some(oracles) = oracles() else { return };
    let report = run(&oracles, Source::Text(MASKED_OFF.into()));
    let causes: Vec<&[Vec<String>]> = report.claims.iter().map(|c| c.axioms.as_slice()).collect();
    assert_eq!(causes, [[vec!["TOK=A".to_owned()]]], "{report:#?}");
}

/// A tile of a view with fewer elements than the CTA has threads. Several threads store each element, so the store of
/// another block can come between.
const STORED_TWICE: &str = "// tile blocks: 2
entry @stored_twice(%x: tile<ptr<i32>>, %out: tile<ptr<i32>>) {
  %zero = constant <i32: 0> : tile<i32>
  %two = constant <i32: 2> : tile<i32>
  %ones = constant <i32: 1> : tile<2xi32>
  %block, %block_y, %block_z = get_tile_block_id : tile<i32>
  %first = cmpi equal %block, %zero, signed : tile<i32> -> tile<i1>
  if %first {
    %tensor = make_tensor_view %x, shape = [2], strides = [1] : tensor_view<2xi32, strides=[1]>
    %view = make_partition_view %tensor : partition_view<tile=(2), tensor_view<2xi32, strides=[1]>>
    %t = store_view_tko relaxed device %ones, %view[%zero] : tile<2xi32>, partition_view<tile=(2), tensor_view<2xi32, strides=[1]>>, tile<i32> -> token
  } else {
    %old, %u = atomic_rmw_tko relaxed device %x, xchg, %two : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    %v = store_ptr_tko weak %out, %old : tile<ptr<i32>>, tile<i32> -> token
  }
  return
}
";

#[test]
fn one_write_that_becomes_many_has_its_own_class() {
    let Some(oracles) = oracles() else { return };
    let report = run(&oracles, Source::Text(STORED_TWICE.into()));
    let causes: Vec<&[Vec<String>]> = report.claims.iter().map(|c| c.axioms.as_slice()).collect();
    assert_eq!(causes, [[vec!["OneWrite".to_owned()]]], "{report:#?}");
}

/// A block waits for a flag that no block sets, and then writes. If the value it read is not used, the wait is dropped.
const WAITS: &str = "// tile blocks: 1
entry @waits(%flag: tile<ptr<i32>>, %out: tile<ptr<i32>>) {
  %one = constant <i32: 1> : tile<i32>
  loop {
    %seen, %t = load_ptr_tko acquire device %flag : tile<ptr<i32>> -> tile<i32>, token
    %set = cmpi equal %seen, %one, signed : tile<i32> -> tile<i1>
    if %set {
      break
    }
    continue
  }
  %u = store_ptr_tko weak %out, %one : tile<ptr<i32>>, tile<i32> -> token
  return
}
";

#[test]
fn a_dropped_wait_is_a_claim_about_progress() {
    let Some(oracles) = oracles() else { return };
    parse(WAITS).unwrap_or_else(|e| panic!("{e}"));
    let report = run(&oracles, Source::Text(WAITS.into()));
    let said: Vec<_> = report.claims.iter().map(|c| (c.direction, c.axioms.as_slice())).collect();
    assert_eq!(said, [(Direction::Progress, &[vec!["endless".to_owned()]][..])], "{report:#?}");
}

/// A compiler that refuses the kernel has not fixed the bug.
#[test]
fn a_claim_about_a_refused_kernel_is_not_refuted() {
    let Some(oracles) = oracles() else { return };
    let mut claim = run(&oracles, Source::Text(WAITS.into())).claims.pop().expect("a claim");
    assert_eq!(oracles.verify(&claim, &Cancel::new()), Verification::Confirmed);
    let side = claim.models.iter_mut().find(|s| s.name == TILEIRAS.capability).expect("a compiler");
    side.variants.insert("target".into(), "sm_1".into());
    let again = oracles.verify(&claim, &Cancel::new());
    assert!(matches!(&again, Verification::Abstained(why) if why.contains("sm_1")), "{again:?}");
}

/// Each lane reads for itself, and lanes that read different values wait for each other at two places.
#[test]
fn a_hang_of_lanes_that_read_different_values_has_the_class_of_the_read() {
    let Some(oracles) = oracles() else { return };
    let text = "// tile blocks: 1\ncuda_tile.module @m {\n  entry @k(%arg0: tile<ptr<i32>>) {\n    %0 = constant <i32: 1> : tile<i32>\n    \
        %1 = store_ptr_tko relaxed device %arg0, %0 : tile<ptr<i32>>, tile<i32> -> token\n    \
        %2, %3 = load_ptr_tko relaxed device %arg0 : tile<ptr<i32>> -> tile<i32>, token\n    %4 = constant <i32: 0> : tile<i32>\n    \
        %5 = cmpi equal %2, %4, signed : tile<i32> -> tile<i1>\n    if %5 {\n      %6 = constant <i32: 0> : tile<i32>\n      \
        %7, %8 = atomic_rmw_tko relaxed device %arg0, umin, %6 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token\n    }\n    return\n  }\n}\n";
    let report = run(&oracles, Source::Text(text.into()));
    let [claim] = report.claims.as_slice() else { panic!("{report:#?}") };
    assert_eq!(
        (claim.direction, claim.axioms.as_slice()),
        (Direction::Progress, &[vec!["OneRead".to_owned()]][..])
    );
    assert_eq!(oracles.verify(claim, &Cancel::new()), Verification::Confirmed);
}

//! The lowering oracle: it raises no claim against the reference lowering, and one against every planted weakening.

use moire_generate::Profile;
use moire_generate::lowering::draw;
use moire_tile_ir::lowering::{Lowering, Weakening};
use moire_tile_ir::run::TileLaunch;
use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Plan, Source, Verification};
use moire_worker::oracle::{LOWERING, Oracles};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Number of drawn kernels.
const DRAWN: u64 = 400;

fn run(oracles: &Oracles, source: Source) -> ItemReport {
    let plan = Plan { oracles: vec![LOWERING.name.into()], ..Plan::default() };
    oracles.run(&Item { plan: Arc::new(plan), index: 0, source }, &Cancel::new())
}

fn text(oracles: &Oracles, text: &str) -> ItemReport {
    run(oracles, Source::Text(text.to_owned()))
}

fn word(report: &ItemReport) -> String {
    report.engines.first().map_or_else(|| format!("{:?}", report.abstentions), |e| e.verdict.clone())
}

fn weakened(weakening: Weakening) -> Oracles {
    Oracles::with_lowering(Lowering { weakened: Some(weakening), ..Lowering::default() })
}

/// Reads the kernels of the corpus for two tile blocks, by name.
fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/tile");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|e| e == "tile") {
            let text = std::fs::read_to_string(&path).expect("readable");
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.push((name, TileLaunch::row(2).note() + &text));
        }
    }
    all.sort();
    all
}

/// Kernels for two tile blocks that show weakenings which no kernel of the corpus shows.
const OWN: [(&str, &str); 7] = [
    // Each element stores its own value at its own address.
    (
        "numbers",
        "%step = iota : tile<2xi32>
  %wide = reshape %x : tile<ptr<i32>> -> tile<1xptr<i32>>
  %row = broadcast %wide : tile<1xptr<i32>> -> tile<2xptr<i32>>
  %place = offset %row, %step : tile<2xptr<i32>>, tile<2xi32> -> tile<2xptr<i32>>
  %t = store_ptr_tko relaxed device %place, %step : tile<2xptr<i32>>, tile<2xi32> -> token",
    ),
    // One read whose value is broadcast to two elements and stored by both.
    (
        "one_read",
        "if %first {
    %t1 = store_ptr_tko relaxed device %x, %one : tile<ptr<i32>>, tile<i32> -> token
  } else {
    %r, %t2 = load_ptr_tko relaxed device %x : tile<ptr<i32>> -> tile<i32>, token
    %r1 = reshape %r : tile<i32> -> tile<1xi32>
    %both = broadcast %r1 : tile<1xi32> -> tile<2xi32>
    %step = iota : tile<2xi32>
    %wide = reshape %out : tile<ptr<i32>> -> tile<1xptr<i32>>
    %row = broadcast %wide : tile<1xptr<i32>> -> tile<2xptr<i32>>
    %place = offset %row, %step : tile<2xptr<i32>>, tile<2xi32> -> tile<2xptr<i32>>
    %t3 = store_ptr_tko weak %place, %both : tile<2xptr<i32>>, tile<2xi32> -> token
  }",
    ),
    // A masked element stores nothing.
    (
        "masked",
        "%on = constant <i1: [1, 0]> : tile<2xi1>
  %r, %t0 = load_ptr_tko relaxed device %y : tile<ptr<i32>> -> tile<i32>, token
  %p = cmpi equal %r, %one, signed : tile<i32> -> tile<i1>
  if %p {
    %t1 = store_ptr_tko relaxed device %x, %two : tile<ptr<i32>>, tile<i32> -> token
  }",
    ),
    // Two compare-and-swaps, of which one fails.
    (
        "swaps",
        "%r, %t0 = atomic_cas_tko relaxed device %x, %zero, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %at = offset %out, %block : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %t1 = store_ptr_tko weak %at, %r : tile<ptr<i32>>, tile<i32> -> token
  %r2, %t2 = atomic_cas_tko relaxed device %y, %two, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token",
    ),
    // The yielded token depends on the value read, so waiting for the token means waiting for the value.
    (
        "choice",
        "if %first {
    %r, %t0 = load_ptr_tko relaxed device %x : tile<ptr<i32>> -> tile<i32>, token
    %p = cmpi equal %r, %one, signed : tile<i32> -> tile<i1>
    %new = store_ptr_tko weak %out1, %one : tile<ptr<i32>>, tile<i32> -> token
    %other = make_token : token
    %t = if %p -> (token) {
      yield %new : token
    } else {
      yield %other : token
    }
    %t1 = store_ptr_tko relaxed device %y, %one token=%t : tile<ptr<i32>>, tile<i32> -> token
    %t2 = store_ptr_tko weak %out, %r : tile<ptr<i32>>, tile<i32> -> token
  } else {
    %s, %t3 = load_ptr_tko relaxed device %y : tile<ptr<i32>> -> tile<i32>, token
    %t4 = store_ptr_tko relaxed device %x, %s : tile<ptr<i32>>, tile<i32> -> token
  }",
    ),
    // A spin loop that ends, and a read of the data it waited for.
    (
        "spin",
        "if %first {
    %t1 = store_ptr_tko weak %x, %one : tile<ptr<i32>>, tile<i32> -> token
    %t2 = store_ptr_tko release device %y, %one token=%t1 : tile<ptr<i32>>, tile<i32> -> token
  } else {
    %seen = loop : token {
      %r, %t3 = load_ptr_tko acquire device %y : tile<ptr<i32>> -> tile<i32>, token
      %p = cmpi equal %r, %one, signed : tile<i32> -> tile<i1>
      if %p {
        break %t3 : token
      }
      continue
    }
    %s, %t4 = load_ptr_tko weak %x token=%seen : tile<ptr<i32>> -> tile<i32>, token
    %t5 = store_ptr_tko weak %out, %s : tile<ptr<i32>>, tile<i32> -> token
  }",
    ),
    // Message passing: two elements of data, published by one flag.
    (
        "tiles",
        "%step = iota : tile<2xi32>
  %ones = constant <i32: 1> : tile<2xi32>
  %wide = reshape %x : tile<ptr<i32>> -> tile<1xptr<i32>>
  %row = broadcast %wide : tile<1xptr<i32>> -> tile<2xptr<i32>>
  %place = offset %row, %step : tile<2xptr<i32>>, tile<2xi32> -> tile<2xptr<i32>>
  if %first {
    %t1 = store_ptr_tko relaxed device %place, %ones : tile<2xptr<i32>>, tile<2xi32> -> token
    %t2 = store_ptr_tko release device %y, %one token=%t1 : tile<ptr<i32>>, tile<i32> -> token
  } else {
    %r, %t3 = load_ptr_tko acquire device %y : tile<ptr<i32>> -> tile<i32>, token
    %s, %t4 = load_ptr_tko relaxed device %place token=%t3 : tile<2xptr<i32>> -> tile<2xi32>, token
    %t5 = store_ptr_tko weak %out, %r : tile<ptr<i32>>, tile<i32> -> token
    %wout = reshape %out1 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %rout = broadcast %wout : tile<1xptr<i32>> -> tile<2xptr<i32>>
    %pout = offset %rout, %step : tile<2xptr<i32>>, tile<2xi32> -> tile<2xptr<i32>>
    %t6 = store_ptr_tko weak %pout, %s : tile<2xptr<i32>>, tile<2xi32> -> token
  }",
    ),
];

fn own() -> Vec<(String, String)> {
    let kernel = |(name, body): &(&str, &str)| {
        let text = format!(
            "entry @{name}(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %out: tile<ptr<i32>>) {{
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %two = constant <i32: 2> : tile<i32>
  %out1 = offset %out, %one : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %block, %block_y, %block_z = get_tile_block_id : tile<i32>
  %first = cmpi equal %block, %zero, signed : tile<i32> -> tile<i1>
  {body}
  return
}}
"
        );
        ((*name).to_owned(), TileLaunch::row(2).note() + &text)
    };
    OWN.iter().map(kernel).collect()
}

#[test]
fn named_kernels_raise_no_claim_for_any_number_of_threads() {
    let mut verdicts = BTreeMap::new();
    for (threads, turns) in [(1, false), (2, false), (2, true), (3, true)] {
        let oracles = Oracles::with_lowering(Lowering { threads, turns, weakened: None });
        for (name, kernel) in corpus().into_iter().chain(own()) {
            let report = text(&oracles, &kernel);
            assert!(report.claims.is_empty(), "{name}, {threads} threads: {:#?}", report.claims);
            *verdicts.entry(word(&report)).or_insert(0) += 1;
        }
    }
    println!("{verdicts:?}");
    let (clean, all) = (verdicts.get("clean").copied().unwrap_or(0), verdicts.values().sum::<u32>());
    assert!(
        clean * 2 > all && verdicts.keys().all(|v| ["clean", "racy"].contains(&v.as_str())),
        "{verdicts:?}"
    );
}

#[test]
fn drawn_kernels_raise_no_claim() {
    let oracles = Oracles::new();
    let mut verdicts = BTreeMap::new();
    for index in 0..DRAWN {
        let report =
            run(&oracles, Source::Generated { seed: 1, profile: Profile::TileIr.name().to_owned(), index });
        assert!(report.claims.is_empty(), "{index}: {}", report.claims[0].program);
        *verdicts.entry(word(&report)).or_insert(0u64) += 1;
    }
    println!("{verdicts:#?}");
    let clean = verdicts.get("clean").copied().unwrap_or(0);
    assert!(clean * 4 > DRAWN * 3, "{verdicts:#?}");
}

/// Finds the first kernel for which the oracle raises a claim against this weakening.
fn caught(weakening: Weakening) -> Option<(String, Claim)> {
    let oracles = weakened(weakening);
    let drawn = (0..DRAWN).map(|i| (format!("drawn {i}"), draw(1, i).text()));
    own().into_iter().chain(corpus()).chain(drawn).find_map(|(name, kernel)| {
        let claim = text(&oracles, &kernel).claims.into_iter().find(|c| c.direction == Direction::Subset)?;
        Some((name, claim))
    })
}

#[test]
fn every_planted_weakening_is_found() {
    let sound = Oracles::new();
    let mut missed = Vec::new();
    for weakening in Weakening::ALL {
        match caught(weakening) {
            Some((name, claim)) => {
                println!("{weakening:?}: {name}");
                assert!(claim.witness.contains("\"outcome\""), "{}", claim.program);
                let verdict = sound.verify(&claim, &Cancel::new());
                assert!(matches!(verdict, Verification::Refuted(_)), "{weakening:?}, {name}: {verdict:?}");
            }
            None => missed.push(weakening),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_claim_is_verified_and_minimised() {
    let oracles = weakened(Weakening::NoBarrier);
    let (_, tiles) = own().pop().expect("there are kernels");
    let claim = text(&oracles, &tiles).claims.pop().expect("a claim");
    assert_eq!(oracles.verify(&claim, &Cancel::new()), Verification::Confirmed);
    let small = oracles.minimise(&claim, Budget { candidates: 2_000 }, &Cancel::new(), &mut |_| {});
    assert!(small.normal && small.claim.program.len() < claim.program.len(), "{}", small.claim.program);
    assert_eq!(oracles.verify(&small.claim, &Cancel::new()), Verification::Confirmed);
    // The text of the claim is enough to find it again.
    assert_eq!(text(&oracles, &small.claim.program).claims, [small.claim]);
}

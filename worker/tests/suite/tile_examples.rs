//! Published examples of the Tile IR memory model, judged by the compiler oracle. Each is compiled, explored with its
//! PTX and judged; abstentions are named. If `tileiras` or `../shared/spec/examples-tile-ir` is missing, the test says
//! so and passes. The deleted spin loop (F4) is in `compiler.rs`.

use crate::outside::{beside, skipped};
use moire_tile_ir::run::TileLaunch;
use moire_worker::job::{Cancel, Engine, Item, ItemReport, Plan, Source};
use moire_worker::oracle::{COMPILER, Oracles, TILEIRAS};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

fn run(oracles: &Oracles, text: String, cells: &[String]) -> ItemReport {
    let plan = Plan { oracles: vec![COMPILER.name.into()], models: cells.to_vec(), ..Plan::default() };
    oracles.run(&Item { plan: Arc::new(plan), index: 0, source: Source::Text(text) }, &Cancel::new())
}

/// Returns the result of an example, in words.
fn class(report: &ItemReport) -> String {
    let verdicts = report.engines.iter().map(|e| e.verdict.clone());
    let claims = report.claims.iter().map(|c| c.direction.to_string());
    let abstained = report.abstentions.keys().map(|why| format!("abstained: {why}"));
    verdicts.chain(claims).chain(abstained).collect::<Vec<_>>().join("; ")
}

/// The launch of an example.
#[derive(Clone, Copy, Debug)]
enum Launch {
    /// One tile block, alone.
    Alone,
    /// Two tile blocks.
    Two,
    /// One tile block, and another one that stores 1 to its first parameter.
    Written,
    /// One tile block, with tiles of 256 elements cut to four.
    Narrow,
    /// Two tile blocks, with loops of 1024 rounds cut to two, for kernels made for hardware.
    Bounded,
}

use Launch::{Alone, Bounded, Narrow, Two, Written};

/// The examples: name, observation (with numbers from the digest's section on the compiler), launch, class. `clean` and
/// `discrepancy` are about final states. A kernel is `silent` if its blocks pass each other no value. It is `racy` if
/// it has a race under the weakest sensible reading, in which tokens order only accesses to one location.
const EXAMPLES: &[(&str, &str, Launch, &str)] = &[
    ("alias_st_rlx", "256 stores to a cell", Alone, CELLS),
    ("alias_st_rlx", "four stores to a cell", Narrow, "clean, silent"),
    ("corr_rlx_notok", "F2: two loads merged", Alone, "clean, silent"),
    ("corr_rlx_notok", "F2: two loads merged", Written, "clean"),
    ("corr_rlx_tok", "kept apart", Written, "clean"),
    ("corw_rlx_notok", "F2", Written, "clean"),
    ("cowr_rev_weak_tok", "token edge across threads", Alone, "clean, silent"),
    ("cowr_rev_weak_tok", "token edge across threads", Written, "racy"),
    ("cowr_rlx_notok", "F2: load before store", Alone, "clean, silent"),
    ("cowr_rlx_notok", "F2: load before store", Written, "clean"),
    ("cowr_rlx_tok", "kept in order", Written, "clean"),
    ("coww_rlx_notok", "F2: stores unordered", Alone, "clean, silent"),
    ("coww_rlx_notok", "F2: stores unordered", Written, "clean, silent"),
    ("iso_cas_acqrel_sys", "one compare-and-swap", Written, "clean"),
    ("join_rel", "F6: two tokens, one barrier", Alone, "clean, silent"),
    ("join_rel", "F6: two tokens, one barrier", Written, "racy"),
    ("lb_ra_notok", "load buffering", Two, "clean"),
    ("lb_ra_tok", "load buffering", Two, "clean"),
    ("lb_rlx_tok", "load buffering", Two, "clean"),
    ("lock_inc_tok", "a lock", Two, "racy"),
    ("mp_guarded_notok", "F3", Two, "racy"),
    ("mp_guarded_rlxdata_notok", "F3: relaxed data overtaken", Two, "clean"),
    ("mp_guarded_tok", "handed over by tokens", Two, "racy"),
    ("mp_ra_blk_tok", "scope too narrow", Two, "racy"),
    ("mp_rlx_tok", "relaxed flag", Two, "clean"),
    ("mpw_ra_ctrl_notok", "F3", Two, "racy"),
    ("mpw_ra_ctrl_tok", "handed over by tokens", Two, "racy"),
    ("mpw_ra_spin_tok", "a spin that is kept", Two, "racy"),
    ("oneread_bcast_rlx", "F1", Alone, "clean, silent"),
    ("oneread_bcast_rlx", "F1", Written, "discrepancy; subset"),
    ("oneread_if_barrier", "F1", Written, "discrepancy; subset"),
    ("oneread_if_rlx", "F1", Written, "discrepancy; subset"),
    ("oneread_sweep", "F1", Bounded, "discrepancy; subset"),
    ("oneread_toggle", "F1", Bounded, "discrepancy; subset"),
    ("rmw_bcast_acqrel", "an atomic is not replicated", Alone, "clean, silent"),
    ("rmw_bcast_acqrel", "an atomic is not replicated", Written, "clean"),
    ("sb_ra_tok", "store buffering", Two, "clean"),
    ("sb_rlx_notok", "store buffering", Two, "clean"),
];

/// The reason why the oracle abstains from one of them.
const CELLS: &str = "abstained: compiler: slice: more than 48 threads or 128 locations would be left";

/// Adds a block that stores to the kernel's first parameter; the first block does what the kernel did.
fn with_writer(text: &str) -> String {
    let (module, rest) = text.split_once("{\n").expect("a module");
    let (entry, rest) = rest.split_once("{\n").expect("a kernel");
    let (body, tail) = rest.rsplit_once("    return\n").expect("a kernel returns");
    format!(
        "{module}{{\n{entry}{{\n%own, %own_y, %own_z = get_tile_block_id : tile<i32>\n\
         %nought = constant <i32: 0> : tile<i32>\n%value = constant <i32: 1> : tile<i32>\n\
         %here = cmpi equal %own, %nought, signed : tile<i32> -> tile<i1>\nif %here {{\n{body}}} else {{\n\
         %written = store_ptr_tko relaxed device %arg0, %value : tile<ptr<i32>>, tile<i32> -> token\n}}\n\
         return\n{tail}"
    )
}

fn launched(text: &str, launch: Launch) -> String {
    let (blocks, text) = match launch {
        Alone => (1, text.to_owned()),
        Two => (2, text.to_owned()),
        Written => (2, with_writer(text)),
        Narrow => (1, text.replace("<256x", "<4x")),
        Bounded => (2, text.replace("constant <i32: 1024>", "constant <i32: 2>")),
    };
    TileLaunch::row(blocks).note() + &text
}

/// Finds the compiler. `None`, with a printed line, if it or the examples are missing.
fn oracles() -> Option<Oracles> {
    let oracles = Oracles::new();
    let here = oracles.capabilities().iter().any(|c| c == TILEIRAS.capability);
    if !here {
        skipped("tileiras");
    }
    here.then_some(oracles)
}

fn examples() -> Option<PathBuf> {
    beside("shared/spec/examples-tile-ir")
}

#[test]
fn each_example_has_the_expected_class() {
    let (Some(oracles), Some(folder)) = (oracles(), examples()) else { return };
    let listed = std::fs::read_dir(&folder).expect("readable").map(|e| e.expect("readable").path());
    let there: BTreeSet<String> = listed
        .filter(|p| p.extension().is_some_and(|e| e == "tile"))
        .filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned()))
        .collect();
    let named: BTreeSet<String> = EXAMPLES.iter().map(|e| e.0.to_owned()).collect();
    assert_eq!(there, named, "each example has a row");
    assert_eq!(named.len(), 30);
    let mut wrong = Vec::new();
    for (name, about, launch, wanted) in EXAMPLES {
        let text = std::fs::read_to_string(folder.join(format!("{name}.tile"))).expect("readable");
        let found = class(&run(&oracles, launched(&text, *launch), &[]));
        if found != *wanted {
            wrong.push(format!("{name} ({about}), {launch:?}: {found}, not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let abstained: BTreeSet<&str> =
        EXAMPLES.iter().filter(|e| e.3.starts_with("abstained")).map(|e| e.0).collect();
    assert_eq!(abstained.len(), 1, "{abstained:?}");
}

/// Without tokens, accesses to one location may be swapped, merged and dropped (F2); which of it happens depends on the
/// level (F7).
#[test]
fn changes_with_the_optimisation_level_are_not_bugs() {
    let (Some(oracles), Some(folder)) = (oracles(), examples()) else { return };
    for name in ["corr_rlx_notok", "cowr_rlx_notok", "coww_rlx_notok", "corw_rlx_notok"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.tile"))).expect("readable");
        for level in 0..4 {
            let cell = format!("{}:level={level}", TILEIRAS.capability);
            let report = run(&oracles, launched(&text, Written), &[cell]);
            assert!(class(&report).starts_with("clean"), "{name} at level {level}: {}", class(&report));
        }
    }
}

/// Kernels with an acquire whose value is not used (F5), and with an access without a token beside two joined ones
/// (F6).
const UNUSED: [&str; 2] = [
    "entry @f5(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %out: tile<ptr<i32>>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %block, %block_y, %block_z = get_tile_block_id : tile<i32>
  %first = cmpi equal %block, %zero, signed : tile<i32> -> tile<i1>
  if %first {
    %t1 = store_ptr_tko relaxed device %x, %one : tile<ptr<i32>>, tile<i32> -> token
    %t2 = store_ptr_tko release device %y, %one token=%t1 : tile<ptr<i32>>, tile<i32> -> token
  } else {
    %r3, %t3 = load_ptr_tko acquire device %y : tile<ptr<i32>> -> tile<i32>, token
    %r4, %t4 = load_ptr_tko relaxed device %x token=%t3 : tile<ptr<i32>> -> tile<i32>, token
    %t5 = store_ptr_tko weak %out, %r4 : tile<ptr<i32>>, tile<i32> -> token
  }
  return
}
",
    "entry @f6(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %z: tile<ptr<i32>>, %out: tile<ptr<i32>>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %out1 = offset %out, %one : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %block, %block_y, %block_z = get_tile_block_id : tile<i32>
  %first = cmpi equal %block, %zero, signed : tile<i32> -> tile<i1>
  if %first {
    %t1 = store_ptr_tko relaxed device %x, %one : tile<ptr<i32>>, tile<i32> -> token
    %t2 = store_ptr_tko relaxed device %z, %one : tile<ptr<i32>>, tile<i32> -> token
    %t3 = join_tokens %t1, %t2 : token
    %t4 = store_ptr_tko release device %y, %one token=%t3 : tile<ptr<i32>>, tile<i32> -> token
  } else {
    %r5, %t5 = load_ptr_tko acquire device %y : tile<ptr<i32>> -> tile<i32>, token
    %r6, %t6 = load_ptr_tko relaxed device %x token=%t5 : tile<ptr<i32>> -> tile<i32>, token
    %t7 = store_ptr_tko weak %out, %r5 : tile<ptr<i32>>, tile<i32> -> token
    %t8 = store_ptr_tko weak %out1, %r6 : tile<ptr<i32>>, tile<i32> -> token
  }
  return
}
",
];

#[test]
fn dropped_loads_and_spare_order_are_not_bugs() {
    let Some(oracles) = oracles() else { return };
    for text in UNUSED {
        let report = run(&oracles, TileLaunch::row(2).note() + text, &[]);
        assert_eq!(class(&report), "clean", "{report:#?}");
    }
}

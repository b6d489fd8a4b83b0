//! `worker/models/TRACE-TILE.md`: from every rule, table and example of the chapter on the memory model in the Tile IR
//! specification to the definitions of `tile-ir.cat` that state it and to kernels of `corpus/tile` with their verdicts.
//! Rows about threads of PTX beside tile blocks have programs of `corpus/litmus/tile`. `BLESS=1` writes the document;
//! the same test compares it.
//!
//! The rows are in this file, in our own words. Verdicts come from `corpus/tile/expected.csv`, which the tests of
//! `moire-lab` check. The tests fail for an empty cell, a name that no model defines, a missing kernel, a section,
//! check or switch without a row, and a check that no kernel needs and that `FOLLOW` does not list.

use moire_cat::vocabulary::{rels, sets};
use moire_cat::{CheckId, Model, Variants};
use moire_execution::leaf::LeafKey;
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use moire_worker::difference::tile::{Reach, launched};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A row: section, kind of text, the rule in our words, definitions, kernels.
struct Row(&'static str, Kind, &'static str, &'static str, &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rule,
    Table,
    Example,
    Wording,
    Reading,
}

use Kind::{Example, Reading, Rule, Table, Wording};

const ROWS: &[Row] = &[
    Row(
        "7.1",
        Rule,
        "a memory instruction makes an operation for each element it accesses, and none is atomic as a whole",
        "M R W",
        "whole twice_relaxed one_read",
    ),
    Row(
        "7.1",
        Rule,
        "the operations of one instruction are unordered, on purpose",
        "token po",
        "twice_weak twice_relaxed",
    ),
    Row(
        "7.1",
        Table,
        "a load reads and a store writes, one operation per element",
        "R W",
        "mp_all_relaxed_bare one_read negated",
    ),
    Row(
        "7.1",
        Table,
        "an atomic reads and writes each of its elements; the two belong together",
        "rmw",
        "add_device add_floats chain",
    ),
    Row(
        "7.1",
        Table,
        "a compare-and-swap writes if the comparison holds; whether it otherwise writes the old value back is CAS",
        "rmw",
        "cas_holds cas_fails cas_bare cas_token cas_store cas_narrow",
    ),
    Row(
        "7.1",
        Table,
        "an element that is masked off has no operation; what its instruction does to tokens is TOK",
        "token token-direct",
        "masked_all masked_one masked_block masked_joined",
    ),
    Row(
        "7.1",
        Table,
        "an access to a tile of a view is one to its elements, where the view says that they lie",
        "R W token",
        "view_mp view_mp_bare view_elements view_turned view_steps view_steps_token",
    ),
    Row(
        "7.1",
        Table,
        "... and one to a tile of a view that gathers is one to elements of the rows that its indices name, each time that one is named",
        "R W token",
        "gather_rows gather_twice gather_twice_relaxed",
    ),
    Row(
        "7.1",
        Table,
        "... also where an index comes from memory: the value says which elements are accessed, and which lie outside and have no operation",
        "R W addr ctrl",
        "gather_memory gather_memory_bare view_memory view_memory_store",
    ),
    Row(
        "7.1",
        Table,
        "a bit lies in a byte of its own, and of elements of four bits two lie in one byte; an access to both is one operation on the byte, so that \
         two conflict where their bytes do",
        "conflict",
        "bits_apart bits_true mp_bit nibbles_apart nibbles_same nibbles_same_relaxed nibbles_read",
    ),
    Row(
        "7.1",
        Rule,
        "an element outside the tensor of a view has no operation: a load gives padding, whatever the memory holds",
        "R W",
        "view_outside view_padding",
    ),
    Row(
        "7.1",
        Table,
        "a reduction into a view is an atomic without a result (13.3)",
        "rmw sr",
        "view_reduce view_reduce_narrow",
    ),
    Row(
        "7.1",
        Table,
        "an operation on multicast memory is one on each replica (13.5); of those of one instruction none comes first",
        "R W rmw token",
        "multimem_torn multimem_mp multimem_reduce multimem_weak multimem_offset multimem_memory multimem_floats",
    ),
    Row(
        "7.1",
        Table,
        "`memory_fence_alias_tko` (13.4) has no operation and hands its token on; what it orders further has two addresses",
        "token",
        "alias_handed",
    ),
    Row(
        "7.1",
        Table,
        "`gdc_wait_tko` and `gdc_launch_dependents_tko` (13.4) have no operation; in one grid they hand their tokens on",
        "token",
        "gdc_handed gdc_bare",
    ),
    Row(
        "7.1",
        Rule,
        "memory has a value at the start, written before everything",
        "IW",
        "sb_strong_token one_read",
    ),
    Row(
        "7.1",
        Wording,
        "the table announced there is empty in the editions of 13.1 and 13.2; 13.4 has one",
        "R W rmw",
        "cowr_relaxed_token add_device",
    ),
    Row(
        "7.2",
        Table,
        "tl_blk is the tile block, device the GPU, sys everything; a scope includes a block or does not",
        "sr",
        "mp_narrow add_narrow add_device",
    ),
    Row(
        "7.2",
        Rule,
        "a weak access has no scope: no other access to the location may happen at the same time, not even in the same block",
        "undefined-race sr",
        "cowr_weak_bare cowr_weak_token stores_weak stores_relaxed",
    ),
    Row(
        "7.2",
        Example,
        "elements of one weak store at one address are a race, those of a scoped one are not",
        "race conflict",
        "twice_weak twice_relaxed",
    ),
    Row(
        "7.3",
        Table,
        "weak, relaxed, acquire, release, acq_rel; of an atomic the read acquires and the write releases",
        "RLX ACQ REL strong",
        "mp_all_relaxed mp_relaxed_token lb_strong_token",
    ),
    Row(
        "7.3",
        Rule,
        "a release that an acquire observes on one location orders what is before it before what is behind the acquire",
        "release observation acquire sw",
        "mp_weak_token mp_all_relaxed mp_narrow",
    ),
    Row(
        "7.3",
        Reading,
        "... the releasing write itself, or a later strong one behind it on the location too: SW",
        "later-write earlier-read own-location",
        "later_store chain mp_relaxed_token",
    ),
    Row(
        "7.3",
        Reading,
        "... through chains of atomics, or directly: OBS",
        "observed observation",
        "chain later_store mp_weak_token",
    ),
    Row(
        "7.4",
        Rule,
        "accesses are morally strong if restricted program order relates them or their scopes include each other's block",
        "ms scoped",
        "add_device add_narrow cowr_weak_token",
    ),
    Row(
        "7.4",
        Reading,
        "restricted program order is named and not defined: RPO",
        "rpo",
        "corr_bare cowr_weak_bare mp_weak_token",
    ),
    Row(
        "7.4",
        Reading,
        "whether the same location means the same bytes or overlapping bytes is MS",
        "scoped same-range",
        "halves whole halves_block halves_token halves_weak",
    ),
    Row(
        "7.5",
        Rule,
        "instructions of a tile block are ordered by tokens and by nothing else",
        "token-order token",
        "coww_bare coww_token corr_bare corr_token",
    ),
    Row(
        "7.5",
        Rule,
        "control, data and address dependencies order nothing",
        "token addr data ctrl",
        "mp_weak_reader mp_relaxed_reader mp_relaxed_writer",
    ),
    Row("7.6", Rule, "program order is that of the instructions of a block", "po", "corr_bare coww_bare"),
    Row(
        "7.6",
        Rule,
        "the instruction that makes a token comes before those that wait for it, also through joins and instructions that pass tokens on",
        "token token-direct",
        "mp_weak_token masked_joined two_orders",
    ),
    Row(
        "7.6",
        Rule,
        "... through values that a loop carries from one round to the next",
        "token token-direct",
        "carried carried_new continue_twice loop_skipped",
    ),
    Row(
        "7.6",
        Rule,
        "... through values that a `break` gives, of the one that ended the loop; an `if` around one yields those of the arm that ran",
        "token token-direct",
        "break_results break_new_token leaves_with_results",
    ),
    Row(
        "7.6",
        Wording,
        "`waits for` is written in reverse: the earlier instruction stands first",
        "token-order",
        "cowr_weak_token coww_token",
    ),
    Row(
        "7.6",
        Reading,
        "the closure is over instructions, or over operations, literally: TOK",
        "token token-direct token-order",
        "masked_all masked_block masked_one",
    ),
    Row(
        "7.6",
        Reading,
        "of the tokens an `if` yields count those of the arm that ran, or those of both: TOKIF",
        "token",
        "if_bare if_token if_block if_other if_both",
    ),
    Row("7.6", Rule, "a read takes its value from one write to the location", "rf", "one_read halves_token"),
    Row(
        "7.6",
        Rule,
        "coherence relates writes that are morally strong or ordered by happens-before",
        "co all-related CoherenceTotal Coherence",
        "coww_handed coww_token coww_bare stores_relaxed",
    ),
    Row(
        "7.6",
        Reading,
        "... and leaves others unrelated, or relates all: CO; only undefined kernels show it",
        "all-related writes",
        "two_orders one_order two_orders_relaxed stores_weak",
    ),
    Row(
        "7.6",
        Rule,
        "nothing morally strong comes between the halves of an atomic; printed at the end of 7.6, meant for 7.8",
        "Atomicity",
        "add_device add_narrow cas_store",
    ),
    Row(
        "7.7",
        Wording,
        "published in no edition; derived relations are expected there, and are reconstructed",
        "fr com",
        "corr_token chain",
    ),
    Row(
        "7.8",
        Wording,
        "published in no edition, whereas its axioms are used elsewhere; they are reconstructed from the PTX ISA",
        "hb base program",
        "lb_strong_token mp_weak_token",
    ),
    Row(
        "7.8",
        Reading,
        "happens-before is restricted program order and synchronization, that behind an observation too, or of program order: HB",
        "hb base program",
        "isa2_relaxed mp_all_relaxed mp_weak_bare lb_strong_bare",
    ),
    Row(
        "7.8",
        Rule,
        "nothing happens before itself; a read sees nothing that happens after it, or was overwritten before it",
        "HappensBefore CausalityRF CausalityFR CausalityCO CausalityCORF",
        "future lb_strong_token mp_relaxed_token cowr_relaxed_token two_orders_relaxed",
    ),
    Row(
        "7.8",
        Reading,
        "one location is sequentially consistent in restricted program order, in program order, or not: SCL",
        "one-location ScPerLocation",
        "corr_token corr_bare cowr_relaxed_bare coww_bare",
    ),
    Row(
        "7.9",
        Rule,
        "no values out of thin air, informally: no value or access rests on itself",
        "NoThinAir addr data ctrl rmw-dep",
        "air_data air_condition",
    ),
    Row(
        "7.9",
        Rule,
        "an access rests on the conditions that decide whether it exists: those of a `continue` within its iteration, those of a `break` or `return` beyond its loop",
        "NoThinAir ctrl",
        "continue_masks return_exists",
    ),
    Row(
        "7.9",
        Reading,
        "... through atomics too, through restricted program order too: NTA",
        "thin-air NoThinAir",
        "lb_relaxed_token lb_relaxed_bare exchange_cycle",
    ),
    Row(
        "7.10",
        Rule,
        "a race: operations that overlap, one of them a write, neither ordered nor morally strong",
        "conflict race accesses undefined-race",
        "stores_weak mp_unguarded mp_narrow",
    ),
    Row(
        "7.10",
        Rule,
        "a race makes the whole program undefined",
        "undefined-race",
        "mp_unguarded race_behind_sb two_orders",
    ),
    Row(
        "7.10",
        Reading,
        "... a race of any execution, or of a sequentially consistent one: RACE",
        "not-sc all-related",
        "race_behind_sb race_behind_lb race_behind_cowr mp_weak_bare",
    ),
    Row(
        "7.11",
        Rule,
        "the model is weaker than that of PTX, and release and acquire patterns are those of PTX",
        "release acquire observation",
        "chain later_store sb_strong_token",
    ),
    Row(
        "7.11",
        Rule,
        "release and acquire work across the border, from threads of PTX to tile blocks and back, with fences of PTX too",
        "plain plain-order plain-release plain-acquire",
        "tile/mp-ptx-to-tile tile/mp-tile-to-ptx tile/mp-ptx-fence-to-tile tile/mp-tile-to-ptx-fence tile/isa2-across tile/chain-across",
    ),
    Row(
        "7.11",
        Rule,
        "a race between tile blocks and threads of PTX is undefined, like one between tile blocks",
        "undefined-race plain",
        "tile/race-across tile/race-across-store tile/mp-ptx-to-tile-bare tile/mp-tile-to-ptx-bare tile/mp-ptx-to-tile-narrow",
    ),
    Row(
        "7.11",
        Rule,
        "among themselves threads of PTX are as chapter 8 of the PTX ISA has them; they race as there",
        "plain-same plain-strong plain-location uniform-race mixed-race",
        "tile/corr-ptx tile/atomics-across tile/race-of-ptx tile/race-of-ptx-mixed",
    ),
    Row(
        "7.12.1",
        Example,
        "store buffering and load buffering are seen without tokens; with release, acquire and tokens only the first",
        "HappensBefore CausalityRF",
        "sb_relaxed_bare sb_relaxed_token sb_strong_bare sb_strong_token lb_relaxed_bare lb_relaxed_token lb_strong_bare lb_strong_token",
    ),
    Row(
        "7.12.2",
        Example,
        "two weak accesses of one block to one location without a token are a race, scoped ones are not and are unordered",
        "race rpo",
        "cowr_weak_bare cowr_weak_token cowr_relaxed_bare coww_bare",
    ),
    Row(
        "7.12.3",
        Example,
        "only tokens keep an access before a release or behind an acquire; a branch on the flag is not enough",
        "rpo sw",
        "mp_weak_token mp_weak_bare mp_weak_writer mp_weak_reader mp_relaxed_bare",
    ),
];

/// A part of the chapter without a row: the part, the reason, parameters and body of a kernel with it, and the refusal.
struct Open(&'static str, &'static str, &'static str, &'static str, &'static str);

const POINTER: &str = "%p: tile<ptr<i32>>";
const OPEN: &[Open] = &[
    Open(
        "7.1: views with extents or strides from memory",
        "refused by name",
        POINTER,
        "%i, %t = load_ptr_tko weak %p : tile<ptr<i32>> -> tile<i32>, token\n\
         %tv = make_tensor_view %p, shape = [%i], strides = [1] : tile<i32> -> tensor_view<?xi32, strides=[1]>",
        "extents or strides come from memory",
    ),
    Open(
        "7.1: half of a byte",
        "refused by name: no edition seen says what a write to one element of four bits does to the other",
        "%p: tile<ptr<f4E2M1FN>>, %q: tile<ptr<i32>>",
        "%zero = constant <i32: 0> : tile<i32>\n\
         %tv = make_tensor_view %p, shape = [2, 2], strides = [2, 1] : tensor_view<2x2xf4E2M1FN, strides=[2,1]>\n\
         %v = make_partition_view %tv : partition_view<tile=(2x1), tensor_view<2x2xf4E2M1FN, strides=[2,1]>>\n\
         %r, %s = load_view_tko weak %v[%zero, %zero] : partition_view<tile=(2x1), tensor_view<2x2xf4E2M1FN, strides=[2,1]>>, tile<i32> -> \
         tile<2x1xf4E2M1FN>, token",
        "half a byte",
    ),
    Open(
        "7.1: sums, minima and maxima of floats",
        "atomics and multicast loads add floats as bits, and say so; the least or greatest of several is refused by name",
        "%p: tile<ptr<f16, <multicast>>>, %q: tile<ptr<i32>>",
        "%zero = constant <i32: 0> : tile<i32>\n\
         %tv = make_tensor_view %p, shape = [4], strides = [1] : tile<ptr<f16, <multicast>>> -> tensor_view<4xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>\n\
         %v = make_partition_view %tv : partition_view<tile=(4), tensor_view<4xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>>\n\
         %r, %s = multimem_load_reduce_view_tko weak %v[%zero] attributes {reduction = #cuda_tile.multimem_reduction_kind<min>} : \
         partition_view<tile=(4), tensor_view<4xf16, strides=[1], #cuda_tile.ptr_attr<multicast>>>, tile<i32> -> tile<4xf16>, token",
        "a minimum or maximum of floats",
    ),
    Open(
        "7.1: one memory at two addresses",
        "parameters of a launch point to memory of their own, so a fence between aliases has nothing to order",
        "",
        "",
        "",
    ),
    Open(
        "7.1: grids before and behind",
        "a launch is one grid: `gdc_wait_tko` has nothing to wait for",
        "",
        "",
        "",
    ),
    Open(
        "7.1: `print_tko`",
        "not read; it has no operation and would hand its token on",
        POINTER,
        "%t = print_tko \"x\" -> token",
        "print_tko",
    ),
    Open(
        "7.2: other GPUs and the host",
        "a launch of a kernel is on one GPU, so device and sys include the same blocks",
        "",
        "",
        "",
    ),
];

const MODEL: &str = "tile-ir";

/// Checks that follow from others, each with the reason. They are kept because the reconstruction names them.
const FOLLOW: &[(&str, &str)] = &[
    (
        "HappensBefore",
        "a cycle through a release that was observed ends in a read of what happens after it, directly (CausalityRF) or \
         through atomics, whose writes cohere after the release (CausalityCORF)",
    ),
    ("CausalityCO", "Coherence says that coherence contains the opposite pair, and it has no cycles"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/tile")
}

fn model() -> Model {
    moire_models::load(MODEL, &Variants::new()).unwrap_or_else(|e| panic!("{e}"))
}

/// A row of the table of expectations.
struct Expected {
    kernel: String,
    blocks: u32,
    setting: String,
    question: String,
    verdict: String,
}

fn expectations() -> Vec<Expected> {
    let table = std::fs::read_to_string(folder().join("expected.csv")).expect("readable");
    let row = |line: &str| {
        let [kernel, blocks, setting, question, verdict] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("not five columns: {line}")
        };
        Expected {
            kernel: kernel.into(),
            blocks: blocks.parse().expect("a number"),
            setting: setting.into(),
            question: question.into(),
            verdict: verdict.into(),
        }
    };
    table.lines().skip(1).map(row).collect()
}

/// Returns whether a text names a switch as a word.
fn names(text: &str, switch: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == switch)
}

/// Lists the verdicts on a kernel by default, and under settings of the switches that the row names.
fn verdicts(kernel: &str, what: &str, all: &[Expected]) -> String {
    if kernel.contains('/') {
        return litmus_verdicts(kernel);
    }
    let own: Vec<&Expected> = all.iter().filter(|e| e.kernel == kernel).collect();
    let mut said: Vec<String> = Vec::new();
    for plain in own.iter().filter(|e| e.setting.is_empty()) {
        let mut words = format!("{} {}", plain.question, plain.verdict);
        for other in own.iter().filter(|e| e.question == plain.question && !e.setting.is_empty()) {
            if names(what, other.setting.split('=').next().unwrap_or_default()) {
                let _ = write!(words, " ({}: {})", other.setting, other.verdict);
            }
        }
        said.push(words);
    }
    assert!(!said.is_empty(), "{kernel} has no expectation");
    said.join("; ")
}

/// Finds a file of `corpus/litmus`, whose programs are named with their folder.
fn litmus(name: &str) -> PathBuf {
    folder().join("../litmus").join(format!("{name}.litmus"))
}

/// Reads the verdicts of the expectation beside a program.
fn litmus_verdicts(name: &str) -> String {
    let text = std::fs::read_to_string(litmus(name)).expect("readable");
    let mut out = String::new();
    for line in moire_program::text::expectations(&text) {
        let [spec, _, _, verdict] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not four words: {line}")
        };
        match spec.split_once(':') {
            None => out.push_str(verdict),
            Some((_, setting)) => {
                let _ = write!(out, " ({setting}: {verdict})");
            }
        }
    }
    out
}

fn document() -> String {
    let mut out = String::from(
        "# Tile IR: from the text to definitions to kernels\n\nEvery rule, table and example of the chapter on the memory \
         model of the Tile IR specification (7 up to 13.3, 8 since 13.4), in our own words;\n*reading* marks what the text \
         leaves open, with the switch of `tile-ir.cat` that stands for it, *wording* what is odd in the text itself. Definitions \
         are names of that file,\nbase sets and relations of the engine, or checks; behind each kernel of `corpus/tile` stand a \
         final state and what is said of it, under the default and under settings of\nthe switch named; programs with a folder are those of `corpus/litmus`. `BLESS=1 cargo test -p \
         moire-worker --test suite trace_tile` writes this file, the same test compares it.\n\n| section | what | in our words | \
         definitions | kernels |\n|---|---|---|---|---|\n",
    );
    let all = expectations();
    for Row(section, kind, what, definitions, kernels) in ROWS {
        let kind = format!("{kind:?}").to_lowercase();
        let definitions: Vec<String> = definitions.split(' ').map(|d| format!("`{d}`")).collect();
        let kernels: Vec<String> =
            kernels.split(' ').map(|k| format!("{k}: {}", verdicts(k, what, &all))).collect();
        let _ = writeln!(
            out,
            "| {section} | {kind} | {what} | {} | {} |",
            definitions.join(" "),
            kernels.join("<br>")
        );
    }
    out.push_str("\n## Checks that follow from others\n\n");
    for (check, why) in FOLLOW {
        let _ = writeln!(out, "- `{check}`: {why}.");
    }
    out.push_str("\n## Not modelled\n\n");
    for Open(what, why, ..) in OPEN {
        let _ = writeln!(out, "- {what}: {why}.");
    }
    out
}

#[test]
fn the_document_matches_rows_and_expectations() {
    let text = document();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/TRACE-TILE.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("the document can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{} is out of date; BLESS=1 writes:\n{text}", path.display());
}

#[test]
fn every_row_names_existing_definitions_and_kernels() {
    let model = model();
    let text = moire_models::FILES.iter().find(|(name, _)| *name == MODEL).expect("shipped").1;
    let base: BTreeSet<&str> = sets::ALL.iter().chain(rels::ALL).map(|(name, _)| *name).collect();
    for Row(section, _, what, definitions, kernels) in ROWS {
        for cell in [section, what, definitions, kernels] {
            assert!(!cell.trim().is_empty(), "{section}: an empty cell");
        }
        for name in definitions.split(' ') {
            let known = text.contains(&format!("let {name} "))
                || model.checks().iter().any(|c| c.name == name)
                || text.contains(&format!(" as {name}"))
                || (base.contains(name) && text.contains(name));
            assert!(known, "{section}: the model does not have `{name}`");
        }
        for name in kernels.split(' ') {
            let path = if name.contains('/') { litmus(name) } else { folder().join(format!("{name}.tile")) };
            assert!(path.is_file(), "{section}: no kernel {name}");
        }
    }
}

/// The parts without a row are refused. Once one of them is modelled, it needs a row.
#[test]
fn parts_that_are_not_modelled_are_refused_by_name() {
    for Open(what, _, params, body, wanted) in OPEN.iter().filter(|o| !o.2.is_empty()) {
        let text = format!("entry @k({params}) {{\n{body}\nreturn\n}}\n");
        let said = launched(&text, 1).map(drop);
        assert!(said.as_ref().is_err_and(|e| e.to_string().contains(wanted)), "{what}: {said:?}");
    }
}

/// Finds words such as `7.10.2` in a text.
fn cited(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|w| w.trim_matches('.'));
    words.filter(|w| w.starts_with("7.") && w.len() > 2).map(str::to_owned).collect()
}

#[test]
fn every_section_switch_check_and_kernel_has_a_row() {
    let sections: BTreeSet<&str> = ROWS.iter().map(|r| r.0).collect();
    let text = moire_models::FILES.iter().find(|(name, _)| *name == MODEL).expect("shipped").1;
    let mut wanted = cited(text);
    wanted.extend((1..=11).map(|n| format!("7.{n}")));
    wanted.extend((1..=3).map(|n| format!("7.12.{n}")));
    for section in wanted {
        assert!(sections.contains(section.as_str()), "{section} has no row");
    }
    let model = model();
    for switch in model.switches() {
        let reading = |r: &Row| r.1 != Wording && names(r.2, &switch.name);
        assert!(ROWS.iter().any(reading), "{} has no row", switch.name);
    }
    for check in model.checks() {
        assert!(ROWS.iter().any(|r| r.3.split(' ').any(|d| d == check.name)), "{} has no row", check.name);
    }
    let named: BTreeSet<&str> = ROWS.iter().flat_map(|r| r.4.split(' ')).collect();
    for expected in expectations() {
        assert!(named.contains(expected.kernel.as_str()), "{} is in no row", expected.kernel);
    }
    for kind in [Rule, Table, Example, Wording, Reading] {
        assert!(ROWS.iter().filter(|r| r.1 == kind).count() >= 3, "{kind:?}");
    }
}

fn program(kernel: &str, blocks: u32) -> Program {
    let text = std::fs::read_to_string(folder().join(format!("{kernel}.tile"))).expect("readable");
    launched(&text, blocks as usize).unwrap_or_else(|e| panic!("{kernel}: {e}"))
}

fn executions(program: &Program, model: &Model) -> BTreeSet<(LeafKey, BTreeSet<String>)> {
    let mut out = BTreeSet::new();
    let summary = explore(program, model, &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        out.insert((facts.key, facts.flags));
        ControlFlow::Continue(())
    });
    assert!(summary.is_ok_and(|s| s.bounded.is_none()), "{}", program.name);
    out
}

/// Lists readings in which a check may forbid more than under the default.
fn readings() -> Vec<Model> {
    let load = |setting: &str| {
        let pair = setting.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        moire_models::load(MODEL, &pair.into_iter().collect()).unwrap_or_else(|e| panic!("{e}"))
    };
    ["SCL=A", "SCL=0", "NTA=2", "HB=C"].into_iter().map(load).collect()
}

#[test]
fn every_check_is_needed_by_a_kernel_or_follows_from_others() {
    let programs: BTreeMap<String, u32> = expectations().into_iter().map(|e| (e.kernel, e.blocks)).collect();
    let mut programs: Vec<Program> =
        programs.iter().map(|(kernel, blocks)| program(kernel, *blocks)).collect();
    let beside = ROWS.iter().flat_map(|r| r.4.split(' ')).filter(|name| name.contains('/'));
    programs.extend(beside.map(|name| {
        let text = std::fs::read_to_string(litmus(name)).expect("readable");
        parse(&text, Format::Native).unwrap_or_else(|e| panic!("{name}: {e}"))
    }));
    let mut left: BTreeSet<String> = model().checks().iter().map(|c| c.name.clone()).collect();
    for model in readings() {
        for (c, check) in model.checks().iter().enumerate() {
            let weaker = model.without(CheckId(c));
            let needed = |p: &Program| executions(p, &model) != executions(p, &weaker);
            if left.contains(&check.name) && programs.iter().any(needed) {
                left.remove(&check.name);
            }
        }
    }
    let follow: BTreeSet<String> = FOLLOW.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(left, follow, "left: no kernel needs them");
}

#[test]
fn checks_that_follow_from_others_change_no_draft() {
    let drafts = Reach::shipped().drafts();
    let programs = drafts.iter().filter_map(|(_, draft)| launched(&draft.text().0, draft.0.len()).ok());
    let programs: Vec<Program> = programs.step_by(3).collect();
    assert!(programs.len() > 4_000, "{} programs", programs.len());
    for model in readings() {
        let without: Vec<Model> = (0..model.checks().len())
            .filter(|c| FOLLOW.iter().any(|(name, _)| model.checks()[*c].name == *name))
            .map(|c| model.without(CheckId(c)))
            .collect();
        assert_eq!(without.len(), FOLLOW.len());
        for program in &programs {
            let all = executions(program, &model);
            for weaker in &without {
                assert!(executions(program, weaker) == all, "{:?}", program.threads);
            }
        }
    }
}

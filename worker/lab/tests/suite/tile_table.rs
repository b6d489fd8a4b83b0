//! Kernels of `corpus/tile` launched under the Tile IR model: verdicts of both engines, under each switch.
//!
//! A row of `expected.csv` has five columns: kernel, number of tile blocks, a switch that is not at its default, a
//! final state (values of elements of parameters), and the verdict. The verdict is `allowed`, `forbidden` or
//! `undefined`. For an undefined kernel, `undefined and` is followed by the state's reachability in its executions.
//!
//! The rows are those of the verdict table of the memory model. Each switch that this table leaves out has at least
//! four more rows: some that the switch changes and some that it does not.

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, Verdict, judge};
use moire_lab::differential::{Comparison, compare};
use moire_naive::NaiveLimits;
use moire_program::ir::{CmpOp, Condition, Expr, Program, Quantifier, SymbolId, Term};
use moire_tile_ir::run::{TileLaunch, lower, tile_entry};
use moire_tile_ir::text::parse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/tile")
}

fn model(setting: &str) -> Model {
    let pairs = setting.split_whitespace().filter_map(|s| s.split_once('='));
    let variants: Variants = pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    moire_models::load("tile-ir", &variants).unwrap_or_else(|e| panic!("{e}"))
}

/// Reads a final state such as `x0=1 out1=0` over the parameters x, y and out.
fn question(text: &str) -> Expr {
    let term = |word: &str| {
        let (place, value) = word.split_once('=').expect("a place and a value");
        let (name, element) = place.split_at(place.find(|c: char| c.is_ascii_digit()).expect("an element"));
        let symbol = SymbolId(match name {
            "x" => 0,
            "y" => 1,
            _ => 2,
        });
        let offset = 4 * element.parse::<u32>().expect("a number");
        let memory = Term::Mem { symbol, offset, bytes: 4, thread: None };
        Expr::Cmp(CmpOp::Eq, memory, Term::Const(value.parse().expect("a number")))
    };
    Expr::And(text.split_whitespace().map(term).collect())
}

fn kernel(name: &str, blocks: u32) -> Program {
    let text = std::fs::read_to_string(folder().join(format!("{name}.tile"))).expect("readable");
    let module = parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let launch = TileLaunch::row(blocks);
    lower(tile_entry(&module, None).expect("one kernel"), &launch).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Returns whether the kernel is defined (has no undefined race), and whether the final state is allowed or forbidden.
fn verdict(program: &Program, model: &Model) -> (bool, &'static str) {
    let questions = Questions { witnesses: false, about: About::All };
    let judged = judge(program, model, &Limits::default(), questions);
    let odd = |v: &Verdict| !matches!(v, Verdict::Clean(_) | Verdict::Condition(_) | Verdict::Undefined);
    assert!(!judged.verdicts.iter().any(odd), "{}: {:?}", program.name, judged.verdicts);
    let reachable = judged.conditions.first().is_some_and(|c| c.reachable);
    let word = if reachable { "allowed" } else { "forbidden" };
    (!judged.verdicts.contains(&Verdict::Undefined), word)
}

#[test]
fn kernels_have_the_verdicts_of_the_table() {
    let table = std::fs::read_to_string(folder().join("expected.csv")).expect("readable");
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for line in table.lines().skip(1) {
        let [name, blocks, setting, asked, wanted] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("not five columns: {line}")
        };
        let mut program = kernel(name, blocks.parse().expect("a number"));
        // The final state may name elements that the kernel does not access.
        let out = &mut program.objects[2];
        out.bytes = out.bytes.max(8);
        let (quantifier, expr) = (Quantifier::Exists, question(asked));
        program.conditions.push(Condition { name: String::new(), quantifier, expr });
        let model = model(setting);
        let (defined, reachable) = verdict(&program, &model);
        let got = if defined { reachable.to_owned() } else { format!("undefined and {reachable}") };
        if got != wanted && (defined || wanted != "undefined") {
            wrong.push(format!("{line}: {got}\n{}", moire_program::text::print(&program)));
        }
        match compare(&program, &model, &NaiveLimits::default()) {
            Comparison::Same { .. } => {}
            other => wrong.push(format!("{line}: the engines: {other:?}")),
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows > 120, "only {rows} rows");
}

/// Reads the rows of one setting: verdict by kernel and final state.
fn answers(rows: &str, setting: &str) -> BTreeMap<(String, String), String> {
    let cells = rows.lines().skip(1).map(|l| l.split(',').collect::<Vec<_>>());
    let of = cells.filter(|c| c[2] == setting);
    of.map(|c| ((c[0].to_owned(), c[3].to_owned()), c[4].to_owned())).collect()
}

#[test]
fn every_switch_has_rows_it_changes_and_rows_it_does_not() {
    let table = std::fs::read_to_string(folder().join("expected.csv")).expect("readable");
    let plain = answers(&table, "");
    for switch in model("").switches() {
        let (mut same, mut changed) = (0, 0);
        for value in switch.values.iter().filter(|v| **v != switch.default) {
            for (row, says) in answers(&table, &format!("{}={value}", switch.name)) {
                let default = plain.get(&row).unwrap_or_else(|| panic!("{row:?} has no row of the default"));
                *if *default == says { &mut same } else { &mut changed } += 1;
            }
        }
        assert!(changed > 0 && same > 0, "{}: {changed} rows change, {same} do not", switch.name);
        let scarce = ["CAS", "TOK", "TOKIF", "MS", "CO", "RACE"].contains(&switch.name.as_str());
        assert!(!scarce || same + changed >= 4, "{}: {} rows", switch.name, same + changed);
    }
}

//! Models of herd in herd's own words, with the verdicts that its repository publishes, and both witnesses on them.
//!
//! The texts are read from a checkout of `herdtools7` that `MOIRE_HERD` names, or from `../shared/herdtools7`, if present:
//! `sc.cat`, `x86tso-mixed.cat`, `tso.cat` and `rc11.cat` of `herd/libdir`, the programs and kinds of `catalogue/x86_64`,
//! and the final states of `gen/tests/C`. The programs of these are named by their cycles; [`family`] writes them.

#![expect(clippy::print_stdout, reason = "tests")]

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, judge};
use moire_lab::differential::{Comparison, compare};
use moire_models::Beside;
use moire_naive::NaiveLimits;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn checkout() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/herdtools7");
    let path = std::env::var_os("MOIRE_HERD").map_or(beside, PathBuf::from);
    if path.join("herd/libdir").is_dir() {
        return Some(path);
    }
    println!("skipped: herdtools7 is not beside the checkout, and MOIRE_HERD names none");
    None
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A model of herd's library, unchanged, loaded as `moire check --model FILE` loads it.
fn model(herd: &Path, name: &str) -> Model {
    let path = herd.join("herd/libdir").join(name);
    let beside = Beside(|p: &Path| std::fs::read_to_string(p).ok());
    let model = moire_cat::load(path.to_str().expect("a name"), &read(&path), &beside, &Variants::new());
    model.unwrap_or_else(|e| panic!("{e}"))
}

fn program(text: &str) -> Program {
    parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Which conditions some execution satisfies; both witnesses must have the same executions.
fn reachable(text: &str, model: &Model) -> Vec<bool> {
    let program = program(text);
    let same = compare(&program, model, &NaiveLimits::default());
    assert!(matches!(same, Comparison::Same { .. }), "{}: {same:?}\n{text}", model.name());
    let questions = Questions { witnesses: false, about: About::Conditions };
    let judged = judge(&program, model, &Limits::default(), questions);
    assert_eq!(judged.summary.bounded, None);
    judged.conditions.iter().map(|c| c.reachable).collect()
}

/// A column of assembly for x86-64. Plain moves are weak accesses, `mfence` is `fence.sc`.
fn instruction(text: &str) -> String {
    let place = |t: &str| format!("[{}]", t.trim_matches(['(', ')']));
    match text.trim().split_once(' ') {
        None if text.trim().is_empty() => String::new(),
        None => {
            assert_eq!(text.trim(), "mfence");
            " fence.sc.sys;".into()
        }
        Some(("movl", operands)) => match operands.trim().split_once(',').expect("two operands") {
            (from, to) if from.starts_with('$') => format!(" st.weak.u32 {}, {};", place(to), &from[1..]),
            (from, to) => format!(" ld.weak.u32 {}, {};", to.replace("%e", "r"), place(from)),
        },
        Some(other) => panic!("{other:?} is not translated"),
    }
}

/// `0:rax=1` and `[x]=2` in our words.
fn condition(text: &str) -> String {
    let atom = |a: &str| {
        let (left, value) = a.trim().split_once('=').expect("an equation");
        let left = if left.starts_with('[') { left.to_owned() } else { format!("P{left}") };
        format!("{left} == {value}")
    };
    text.trim_matches(['(', ')']).split("/\\").map(atom).collect::<Vec<_>>().join(" /\\ ")
}

fn x86(text: &str) -> String {
    let body = text.split_once("}\n").expect("an initial state").1;
    let (table, wanted) = body.split_once("exists").expect("a condition");
    let mut threads: Vec<String> = Vec::new();
    for line in table.lines().skip(1) {
        for (t, cell) in line.trim_end().trim_end_matches(';').split('|').enumerate() {
            threads.resize(threads.len().max(t + 1), String::new());
            threads[t] += &instruction(cell);
        }
    }
    let mut out = "moire \"x86\"\n.global .b32 x;\n.global .b32 y;\n.global .b32 z;\n".to_owned();
    for (t, body) in threads.iter().enumerate() {
        let _ = writeln!(out, "P{t} (gpu 0, cta {t}) {{{body} }}");
    }
    out + &format!("exists ({})\n", condition(wanted.trim()))
}

#[test]
fn total_store_order() {
    let Some(herd) = checkout() else { return };
    let folder = herd.join("catalogue/x86_64/tests");
    let models = [model(&herd, "x86tso-mixed.cat"), model(&herd, "tso.cat")];
    let sc = model(&herd, "sc.cat");
    let mut asked = 0;
    for line in read(&folder.join("kinds.txt")).lines() {
        let [name, kind] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
        let text = x86(&read(&folder.join(format!("{name}.litmus"))));
        for model in &models {
            assert_eq!(reachable(&text, model), [kind == "Allow"], "{name} {}\n{text}", model.name());
        }
        // Each is a critical cycle: its end is not sequentially consistent.
        assert_eq!(reachable(&text, &sc), [false], "{name}\n{text}");
        asked += 1;
    }
    println!("{asked} programs for x86-64, under two models each, and under sc.cat");
    assert!(asked >= 28);
}

/// The states of `SB` that the manual of herd prints for `sc.cat`.
#[test]
fn sequential_consistency() {
    let Some(herd) = checkout() else { return };
    let manual = read(&herd.join("doc/herd.tex"));
    let told = manual.split("% herd7 -cat ./sc.cat SB.litmus").nth(1).expect("the manual runs SB");
    let told = told.split("\nNo").next().expect("a list of states");
    let states: BTreeSet<String> = told.lines().filter(|l| l.starts_with("0:")).map(str::to_owned).collect();
    let text = "moire \"SB\"\n.global .b32 x;\n.global .b32 y;\n\
        P0 (gpu 0, cta 0) { st.weak.u32 [x], 1; ld.weak.u32 EAX, [y]; }\n\
        P1 (gpu 0, cta 1) { st.weak.u32 [y], 1; ld.weak.u32 EAX, [x]; }\n";
    assert_eq!(states.len(), 3);
    assert_eq!(finals(text, &["0:EAX", "1:EAX"], &model(&herd, "sc.cat")), states);
}

/// The final states of some registers and locations, as herd prints them; values are at most 3.
fn finals(text: &str, of: &[&str], model: &Model) -> BTreeSet<String> {
    let combinations = 4usize.pow(u32::try_from(of.len()).expect("few"));
    let state = |n: usize| -> String {
        let value = |i: usize| (n >> (2 * i)) & 3;
        of.iter().enumerate().map(|(i, o)| format!(" {o}={};", value(i))).collect::<String>().trim().into()
    };
    let states: Vec<String> = (0..combinations).map(state).collect();
    let mut asked = text.to_owned();
    for s in &states {
        let _ = writeln!(asked, "exists ({})", condition(&s.trim_end_matches(';').replace(';', " /\\")));
    }
    let found = reachable(&asked, model);
    states.into_iter().zip(found).filter(|(_, found)| *found).map(|(state, _)| state).collect()
}

/// First and second access of each thread: kind, location, value that a store writes.
type Shape = [[(char, char, u32); 2]; 2];

/// The shape of a cycle by its name, and which of its threads the parts of the name are about.
fn family(name: &str) -> Shape {
    match name {
        "LB" => [[('R', 'x', 0), ('W', 'y', 1)], [('R', 'y', 0), ('W', 'x', 1)]],
        "MP" => [[('W', 'x', 1), ('W', 'y', 1)], [('R', 'y', 0), ('R', 'x', 0)]],
        "S" => [[('W', 'x', 2), ('W', 'y', 1)], [('R', 'y', 0), ('W', 'x', 1)]],
        "RR+RW" => [[('R', 'x', 0), ('R', 'y', 0)], [('R', 'y', 0), ('W', 'x', 1)]],
        "RR+WR" => [[('R', 'x', 0), ('R', 'y', 0)], [('W', 'y', 1), ('R', 'x', 0)]],
        "RW+WR" => [[('R', 'x', 0), ('W', 'y', 1)], [('W', 'y', 2), ('R', 'x', 0)]],
        other => panic!("the family {other} is not written"),
    }
}

/// The body of a thread. `how` says what stands for its first access: `fetch.add`, `rmw` (an exchange), `posW` (a load, then
/// a store) or nothing special. What it writes is 1 if nobody else writes the location, else 2.
fn thread(shape: &Shape, t: usize, how: &str) -> String {
    let mut regs = 0;
    let mut reg = || {
        regs += 1;
        format!("r{}", regs - 1)
    };
    let mut out = String::new();
    for (i, (kind, x, value)) in shape[t].into_iter().enumerate() {
        let shared = shape[1 - t].iter().any(|(k, l, _)| (*k, *l) == ('W', x));
        let own = if shared { 2 } else { 1 };
        let how = if i == 0 { how } else { "po" };
        out += &match (kind, how) {
            ('W', _) => format!(" st.relaxed.sys.u32 [{x}], {value};"),
            (_, "fetch.add") => format!(" atom.relaxed.sys.add.u32 {}, [{x}], {own};", reg()),
            (_, "rmw") => format!(" atom.relaxed.sys.exch.b32 {}, [{x}], {own};", reg()),
            (_, "posW") => {
                format!(" ld.relaxed.sys.u32 {}, [{x}]; st.relaxed.sys.u32 [{x}], {own};", reg())
            }
            _ => format!(" ld.relaxed.sys.u32 {}, [{x}];", reg()),
        };
    }
    out
}

fn c11(name: &str) -> String {
    let parts: Vec<&str> = name.split('+').collect();
    let family_parts = if parts[0].chars().all(|c| "RW".contains(c)) { 2 } else { 1 };
    let shape = family(&parts[..family_parts].join("+"));
    let mut how: Vec<&str> = parts[family_parts..].to_vec();
    // A plural is about both threads.
    if let [both] = how[..] {
        how = vec![both, both];
    }
    let mut out = "moire \"C\"\n.global .b32 x;\n.global .b32 y;\n".to_owned();
    for (t, how) in how.iter().enumerate() {
        let body = thread(&shape, t, how.split("rlxrlx").next().expect("a word"));
        let _ = writeln!(out, "P{t} (gpu 0, cta {t}) {{{body} }}");
    }
    out
}

#[test]
fn repaired_c11() {
    let Some(herd) = checkout() else { return };
    let model = model(&herd, "rc11.cat");
    let mut asked = 0;
    for entry in std::fs::read_dir(herd.join("gen/tests/C")).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".litmus.expected") else { continue };
        let told = read(&path);
        let lines = told.lines().skip(2).take_while(|l| !matches!(*l, "Ok" | "No"));
        let states: BTreeSet<String> = lines.map(|l| l.trim().to_owned()).collect();
        let first = states.first().expect("some state");
        let of: Vec<&str> = first.split_whitespace().filter_map(|e| Some(e.split_once('=')?.0)).collect();
        assert_eq!(finals(&c11(name), &of, &model), states, "{name}\n{}", c11(name));
        asked += 1;
    }
    println!("{asked} programs of C under rc11.cat: every final state");
    assert!(asked >= 20);
}

/// The guide's model of one line is sequential consistency, for programs of loads and stores without barriers.
#[test]
fn one_line_is_sequential_consistency() {
    let beside = Beside(|_: &Path| None);
    let text = "acyclic po | rf | co | fr as sc\n";
    let one = moire_cat::load("my.cat", text, &beside, &Variants::new()).expect("loads");
    let sc = moire_models::load("sc", &Variants::new()).expect("shipped");
    let questions = Questions { witnesses: false, about: About::Conditions };
    let (mut asked, mut forbidden) = (0, 0);
    for folder in ["2+2w", "iriw", "isa2", "lb", "mp", "r", "s", "sb"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus").join(folder);
        for entry in std::fs::read_dir(path).expect("the folder is there") {
            let path = entry.expect("readable").path();
            let program = program(&read(&path));
            let [a, b] = [&one, &sc].map(|m| judge(&program, m, &Limits::default(), questions));
            assert_eq!(a.conditions, b.conditions, "{}", path.display());
            let same = compare(&program, &one, &NaiveLimits::default());
            assert!(matches!(same, Comparison::Same { .. }), "{}: {same:?}", path.display());
            asked += 1;
            forbidden += a.conditions.iter().filter(|c| !c.reachable).count();
        }
    }
    println!("{asked} programs, {forbidden} conditions that sequential consistency forbids");
    assert!(asked > 20 && forbidden > 10);
}

//! `worker/models/DIFFERENCES-TILE.md`: the least kernel on which each setting of each switch of the Tile IR model
//! differs from the default, or the bound if there is none. `BLESS=1` writes the file; the same test compares it. Both
//! engines are compared on a sample of these kernels, with `MOIRE_TILE_EVERY=1` on all.

use moire_cat::Variants;
use moire_lab::differential::campaign::random_settings;
use moire_lab::differential::{Comparison, compare};
use moire_naive::NaiveLimits;
use moire_worker::difference::tile::{Difference, Finding, MODEL, Reach, Said, Size, launched, least};
use moire_worker::oracle::Oracles;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Pairs besides each setting and the default.
const PAIRS: &[(&str, &str)] = &[
    ("tile-ir:RPO=B", "tile-ir:RPO=C"),
    ("tile-ir:HB=B", "tile-ir:HB=C"),
    ("tile-ir:SCL=0", "tile-ir:SCL=B"),
    ("tile-ir:NTA=1", "tile-ir:NTA=2"),
];

/// Settings that no defined kernel separates from the default, each with the reason.
const NONE: &[(&str, &str)] = &[(
    "tile-ir:CO=total",
    "writes that are neither morally strong nor ordered, which is what it orders, are a race",
)];

/// Results beyond the bound of the test, each with the command that found it.
const FURTHER: &[(&str, &str)] =
    &[("moire models diff tile-ir tile-ir:CO=total --size 4", "no difference in 207963 kernels")];

fn pairs(oracles: &Oracles) -> Vec<(String, String)> {
    let model = oracles.model(MODEL).expect("the shipped model loads");
    let mut out = Vec::new();
    for switch in model.switches() {
        let others = switch.values.iter().filter(|v| **v != switch.default);
        out.extend(others.map(|v| (MODEL.to_owned(), format!("{MODEL}:{}={v}", switch.name))));
    }
    out.extend(PAIRS.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())));
    out
}

fn size((blocks, events, instructions): Size) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    [plural(blocks, "block"), plural(events, "memory event"), plural(instructions, "instruction")].join(", ")
}

fn answer(said: &Said) -> &'static str {
    if said.undefined { "undefined" } else { "defined" }
}

fn section(oracles: &Oracles, (a, b): &(String, String), d: &Difference) -> String {
    let mut out = format!("\n## {a} and {b}\n\n");
    let setting = b.split(':').nth(1).and_then(|s| s.split('=').next()).unwrap_or_default();
    let model = oracles.model(MODEL).expect("loaded before");
    let doc = model.switches().iter().find(|s| s.name == setting).map(|s| s.doc.clone());
    let _ = write!(out, "{setting}: {}.\n\n```\n{}```\n", doc.unwrap_or_default(), d.text);
    for (who, said, other) in [(a, &d.first, &d.second), (b, &d.second, &d.first)] {
        let _ = write!(out, "\n`{who}`: {}", answer(said));
        let alone: Vec<String> =
            said.outcomes.difference(&other.outcomes).map(|o| format!("- {o}")).collect();
        if !alone.is_empty() {
            let _ = write!(out, "; it alone has executions that end in\n\n{}", alone.join("\n"));
        }
        out.push('\n');
    }
    out
}

fn document(oracles: &Oracles) -> (String, Vec<((String, String), Finding)>) {
    let pairs = pairs(oracles);
    let mut names: Vec<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
    names.sort();
    names.dedup();
    let at = |name: &String| names.binary_search(&name).expect("collected above");
    let models: Vec<_> = names.iter().map(|n| oracles.model(n).expect("loads")).collect();
    let numbers: Vec<(usize, usize)> = pairs.iter().map(|(a, b)| (at(a), at(b))).collect();
    let reach = Reach::shipped();
    let found: Vec<_> = pairs.into_iter().zip(least(&models, &numbers, &reach)).collect();
    let mut out = format!(
        "# Where the readings of Tile IR differ\n\nFor each setting of a switch of `{MODEL}` the least kernel that is answered \
         otherwise than under the default: fewest tile\nblocks, then memory events, then instructions, then least text. An answer \
         is that a race leaves the kernel undefined, or the\nfinal states. `BLESS=1 cargo test -p moire-lab --test suite \
         tile_differences` writes this file, the same test compares it; `moire models\ndiff A B` finds the kernel of any pair. \
         Parameters point to memory of their own, zero at the start.\n\n| first | second | least difference |\n|---|---|---|\n"
    );
    for ((a, b), f) in &found {
        let cell = match (&f.least, &f.beside) {
            (Some(d), _) => size(d.size),
            (None, Some(d)) => {
                format!("none in {} kernels; other executions of an undefined one: {}", f.tried, size(d.size))
            }
            (None, None) => format!("none in {} kernels", f.tried),
        };
        let why = NONE.iter().find(|(setting, _)| setting == b).map(|(_, why)| format!("; {why}"));
        let gaps = f.unanswered.iter().map(|(why, n)| format!("; {n} not answered: {why}"));
        let _ = writeln!(
            out,
            "| `{a}` | `{b}` | {cell}{}{} |",
            why.unwrap_or_default(),
            gaps.collect::<String>()
        );
    }
    out += "\n## Kernels tried\n\nAll over each of these alphabets up to the size named in which every word is written and touched \
            twice.\n\n| alphabet | made of | blocks | memory events | instructions |\n|---|---|---|---|---|\n";
    for a in &reach.alphabets {
        let (blocks, events, instructions) = a.most;
        let _ = writeln!(out, "| {} | {} | {blocks} | {events} | {instructions} |", a.name, a.about);
    }
    for (command, says) in FURTHER {
        let _ = writeln!(out, "\n`{command}`: {says}.");
    }
    for (pair, f) in &found {
        if let Some(d) = f.least.as_ref().or(f.beside.as_ref()) {
            out += &section(oracles, pair, d);
        }
    }
    (out, found)
}

/// This test compares the engines on small kernels; other tests compare them on larger random ones.
#[test]
fn engines_agree_on_the_kernels_tried() {
    let every = std::env::var("MOIRE_TILE_EVERY").ok().and_then(|n| n.parse().ok()).unwrap_or(23);
    let oracles = Oracles::new();
    let plain = oracles.model(MODEL).expect("the shipped model loads");
    let mut models = vec![plain.clone()];
    let load = |v: &Variants| Arc::new(moire_models::load(MODEL, v).unwrap_or_else(|e| panic!("{e}")));
    models.extend(random_settings(&plain, 7, 12).iter().map(load));
    let drafts = Reach::shipped().drafts();
    let (mut compared, mut skipped) = (0, 0);
    for (n, (_, draft)) in drafts.iter().enumerate().step_by(every) {
        let text = draft.text().0;
        let program = launched(&text, draft.0.len()).unwrap_or_else(|e| panic!("{text}{e}"));
        for model in [&models[0], &models[1 + n / every % 12]] {
            match compare(&program, model, &NaiveLimits::default()) {
                Comparison::Same { .. } => compared += 1,
                Comparison::Skipped(_) => skipped += 1,
                other => panic!("{text}{:?}: {other:?}", model.variants()),
            }
        }
    }
    assert!(compared > 1_000 && skipped * 50 < compared, "{compared} compared, {skipped} skipped");
}

#[test]
fn the_table_of_differences_is_the_result_of_the_search() {
    let oracles = Oracles::new();
    let (text, found) = document(&oracles);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/DIFFERENCES-TILE.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("the document can be written");
    }
    for ((a, b), f) in &found {
        assert!(f.cut.is_none() && f.tried > 0 && f.unanswered.is_empty(), "{a} and {b}: {f:?}");
        let none = NONE.iter().any(|(setting, _)| setting == b);
        assert_eq!(f.least.is_none(), none, "{a} and {b}: {:?}", f.least);
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{} is out of date; BLESS=1 writes:\n{text}", path.display());
}

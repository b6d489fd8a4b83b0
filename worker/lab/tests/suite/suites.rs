//! The outside suites with published verdicts, read from `../shared/litmus` beside the checkout if present.
//!
//! Rows of files in `debated.csv` are left out; the reasons are in that file.

#![expect(clippy::print_stdout, reason = "tests")]

use moire_cat::Variants;
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, judge};
use moire_program::text::{Format, parse, print};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn shared(folder: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: {folder} is not beside the checkout");
    None
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).expect("readable");
    text.lines()
        .skip(1)
        .filter(|l| !l.is_empty())
        .map(|l| l.splitn(4, ',').map(str::to_owned).collect())
        .collect()
}

fn answer(judgement: &Judgement, property: &str) -> &'static str {
    let named = property.rsplit(':').next().unwrap_or(property);
    if property == "termination" {
        return if judgement.hang.is_some() { "FAIL" } else { "PASS" };
    }
    let condition = &judgement.conditions[0];
    match (named, condition.holds) {
        ("assert", true) => "VALID",
        ("assert", false) => "INVALID",
        ("permit" | "check", true) => "SAT",
        ("permit" | "check", false) => "UNSAT",
        (_, true) => "PASS",
        (_, false) => "FAIL",
    }
}

fn suite(folder: &Path, models: &[(&str, &str)]) -> (usize, Vec<String>) {
    let debated: BTreeSet<String> =
        rows(&folder.join("debated.csv")).into_iter().map(|r| r[0].clone()).collect();
    let mut judged: BTreeMap<(String, String, About), Judgement> = BTreeMap::new();
    let (mut count, mut wrong) = (0, Vec::new());
    let loaded: BTreeMap<&str, _> = models
        .iter()
        .map(|(_, ours)| (*ours, moire_models::load(ours, &Variants::new()).expect("loads")))
        .collect();
    for row in rows(&folder.join("expected.csv")) {
        let [file, model, property, expected] = &row[..] else { panic!("four columns: {row:?}") };
        if debated.contains(file) {
            continue;
        }
        for (theirs, ours) in models.iter().filter(|(theirs, _)| theirs == model) {
            let _ = theirs;
            let about = if property.ends_with("termination") { About::Hangs } else { About::Conditions };
            let judgement = judged.entry((file.clone(), (*ours).to_owned(), about)).or_insert_with(|| {
                let text = std::fs::read_to_string(folder.join(file)).expect("readable");
                let program =
                    parse(&text, Format::detect(file, &text)).unwrap_or_else(|e| panic!("{file}: {e}"));
                let again = parse(&print(&program), Format::Native)
                    .unwrap_or_else(|e| panic!("{file}: {e}\n{}", print(&program)));
                assert_eq!(again, program, "{file}: print, then parse");
                judge(&program, &loaded[ours], &Limits::default(), Questions { witnesses: false, about })
            });
            count += 1;
            let got = answer(judgement, property);
            if got != expected {
                wrong.push(format!(
                    "{ours} {file} {property}: expected {expected}, got {got} ({:?})",
                    judgement.verdicts
                ));
            }
        }
    }
    (count, wrong)
}

#[test]
fn dat3m_verdicts() {
    let Some(folder) = shared("litmus/dat3m-ptx") else { return };
    let models = [("ptx-v6.0", "ptx-6.0"), ("ptx-v7.5", "ptx-7.5"), ("ptx-v7.5", "ptx")];
    let (count, wrong) = suite(&folder, &models);
    assert!(wrong.is_empty(), "{} of {count} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 400, "only {count} rows");
}

#[test]
fn mixedproxy_verdicts() {
    let Some(folder) = shared("litmus/nvlabs-mixedproxy") else { return };
    let models = [("mixedproxy-alloy(ptx7.5)", "ptx-7.5"), ("mixedproxy-alloy(ptx7.5)", "ptx")];
    let (count, wrong) = suite(&folder, &models);
    assert!(wrong.is_empty(), "{} of {count} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 120, "only {count} rows");
}

#[test]
fn chapter_8_examples() {
    let Some(folder) = shared("ptx-lab/chapter8") else { return };
    for model in ["ptx-6.0", "ptx-7.5", "ptx"] {
        let loaded = moire_models::load(model, &Variants::new()).expect("loads");
        // A branch around nothing: a dependency by the letter of the instruction alone.
        let letter = Variants::from([("Q17".to_owned(), "A".to_owned())]);
        let by_letter = moire_models::load(model, &letter).expect("loads");
        for entry in std::fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("readable").path();
            let name = path.file_name().expect("named").to_string_lossy().into_owned();
            if model == "ptx-6.0" && name.contains("alias") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("readable");
            let program = parse(&text, Format::Dat3m).unwrap_or_else(|e| panic!("{name}: {e}"));
            let judgement = judge(
                &program,
                if name == "ctrl-reconv.litmus" { &by_letter } else { &loaded },
                &Limits::default(),
                Questions { witnesses: false, about: About::Conditions },
            );
            assert!(judgement.conditions[0].holds, "{model} {name}: {:?}", judgement.verdicts);
        }
    }
}

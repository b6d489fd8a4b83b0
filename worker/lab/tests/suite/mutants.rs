//! One mistake each in the synchronisation of our own clean programs: a mutant that is still clean is confirmed by the
//! enumerator or the operational engine. `moire bench mutants` tries ten thousand.

use moire_cat::Variants;
use moire_explore::Limits;
use moire_generate::numbers::Draw;
use moire_lab::mutants::{Fate, fate, is_clean};
use moire_naive::NaiveLimits;
use moire_program::mutate::{Mistake, mutants};
use moire_program::text::{Format, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Mutants tried of those there are, one in this many.
const SHARE: usize = 8;

fn texts(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            texts(&path, out);
        } else if path.extension().is_some_and(|e| e == "litmus") {
            out.push(path);
        }
    }
}

#[test]
fn clean_mutants_are_confirmed() {
    let model = moire_models::load("ptx", &Variants::new()).expect("a shipped model");
    let limits = Limits { leaves: 20_000, checks: 400_000, steps: 4_000_000, ..Limits::default() };
    let mut paths = Vec::new();
    texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus"), &mut paths);
    paths.sort();
    let mut draw = Draw::new(20);
    let (mut fates, mut kinds): (BTreeMap<&str, u32>, BTreeSet<Mistake>) = Default::default();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("the program can be read");
        let program =
            parse(&text, Format::detect(&path.to_string_lossy(), &text)).expect("the program is legal");
        if !is_clean(&program, &model, &limits) {
            continue;
        }
        for mutant in mutants(&program) {
            // The first of each kind, and a share of the others.
            if draw.below(SHARE) > 0 && kinds.contains(&mutant.mistake) {
                continue;
            }
            let found = fate(&mutant, &model, &limits, &NaiveLimits::default());
            assert!(!matches!(found, Fate::Different(_)), "{}: {mutant:?}: {found:?}", path.display());
            kinds.insert(mutant.mistake);
            *fates.entry(word(&found)).or_default() += 1;
        }
    }
    println!("{fates:?}");
    assert_eq!(kinds.len(), Mistake::ALL.len(), "every kind of mistake was tried");
    let of = |word: &str| fates.get(word).copied().unwrap_or(0);
    assert!(of("caught") > of("confirmed"), "most mistakes in our own programs are found: {fates:?}");
    assert!(50 * (of("unconfirmed") + of("undecided")) <= fates.values().sum(), "{fates:?}");
}

fn word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Illegal => "illegal",
        Fate::Caught(_) => "caught",
        Fate::Confirmed(_) => "confirmed",
        Fate::Unconfirmed(_) => "unconfirmed",
        Fate::Undecided(_) => "undecided",
        Fate::Different(_) => "different",
    }
}

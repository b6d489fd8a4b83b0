//! Compares the rules of tcgen05 with an outside witness: `tcgen05-lab/tcref.py`, a literal evaluation of the
//! documents.
//!
//! Its programs are translated to litmus text (`lab/translate.rs`). The explorer judges them with default switches,
//! under the profile `practice`, and with each switch flipped. The kinds of finding must be those of the script. Then
//! the same is done for mutants, which have one edit each.
//!
//! `MOIRE_LAB_MUTANTS=N` sets the number of mutants, `MOIRE_LAB_SEED` the first seed. `MOIRE_LAB_SHOW=NAME` prints the
//! programs of that name. If python3 or the suite is missing, the test says so and is skipped.

#[path = "lab/corpus.rs"]
mod corpus;
#[path = "lab/operate.rs"]
mod operate;
#[path = "lab/read.rs"]
mod read;
#[path = "lab/translate.rs"]
mod translate;

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, Verdict, judge};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use read::{LabProgram, programs};
use std::collections::{BTreeMap, BTreeSet};

/// Switches with different names in the script and here.
const SWITCHES: &[(&str, &str)] = &[("cQ5", "Q5"), ("cQ11", "Q11")];

/// Translates a setting of the script to our switches. `None` if we have no such switch.
fn setting(theirs: &str, model: &Model) -> Option<Variants> {
    let known = |name: &str| model.switches().iter().any(|s| s.name == name);
    let settings: Vec<(&str, &str)> = match theirs {
        "letter" => vec![],
        "practice" => ["Q5", "Q7", "Q10", "Q11", "Q15", "Q30"].iter().map(|q| (*q, "B")).collect(),
        other => vec![other.split_once('=')?],
    };
    let mut out = Variants::new();
    for (name, value) in settings {
        let core = SWITCHES.iter().find(|s| s.0 == name).map(|s| s.1.to_owned());
        let name = core.unwrap_or(format!("T{name}"));
        if !known(&name) && theirs != "practice" {
            return None;
        }
        if known(&name) {
            out.insert(name, value.to_owned());
        }
    }
    Some(out)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Finds the kinds of finding on a program, in the words of the script. The error is the reason for abstaining.
fn kinds(program: &Program, model: &Model) -> Result<BTreeSet<String>, String> {
    let limits = Limits { leaves: 20_000, ..Limits::default() };
    let judgement = judge(program, model, &limits, Questions { witnesses: false, about: About::All });
    let mut out = BTreeSet::new();
    for verdict in &judgement.verdicts {
        match verdict {
            Verdict::Clean(_) => {}
            Verdict::Abstained(why) => {
                return Err(why.split_once(": ").map_or(why.as_str(), |w| w.1).to_owned());
            }
            Verdict::Bounded(why) => return Err(format!("bounded: {why}")),
            other => drop(out.insert(other.word().to_owned())),
        }
    }
    Ok(out)
}

/// Whether script and engines differ for a known reason (see also `mbar-published` in `lib-ptx.cat`).
fn explained(setting: &str, lab: &BTreeSet<String>, ours: &BTreeSet<String>) -> bool {
    let with = |set: &BTreeSet<String>, kind: &str| {
        let mut set = set.clone();
        set.insert(kind.to_owned());
        set
    };
    // The script runs operations one after another. Here an arrival that is not ordered after the init may come before
    // it and be lost; then the wait hangs.
    let lost = lab.contains("lifetime") && with(lab, "hang") == *ours;
    // Failed polls are not events here. So a poll before the init that fails for ever is only a hang.
    let vain = ours.contains("hang") && with(ours, "lifetime") == *lab;
    // A collective operation that waits for ever counts as issued here; in the script it has not happened.
    let issued = lab.contains("hang") && ["lifetime", "protocol"].iter().any(|k| with(lab, k) == *ours);
    // If a read needs no proxy fence before a write, then neither does the write that the read observed (8.9.5:
    // observation, then proxy-preserved base causality). The script has no observation among ordinary accesses.
    let observed = setting == "cQ11=B" && with(ours, "race") == *lab;
    lost || vain || issued || observed
}

#[derive(Default)]
struct Tally {
    compared: usize,
    abstained: BTreeMap<String, usize>,
    unknown: BTreeSet<String>,
    wrong: Vec<String>,
}

fn compare(lab: &LabProgram, models: &mut BTreeMap<String, Option<Model>>, tally: &mut Tally) {
    let show = std::env::var("MOIRE_LAB_SHOW").is_ok_and(|n| n == lab.name);
    let text = match translate::translate(lab) {
        Ok(text) => text,
        Err(why) => return *tally.abstained.entry(why).or_default() += 1,
    };
    if show {
        eprintln!("{text}");
    }
    let program = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{}: {e}\n{text}", lab.name));
    let plain = moire_models::load("ptx", &Variants::new()).expect("the shipped model loads");
    let mut differences = BTreeMap::new();
    for (theirs, expected) in &lab.kinds {
        let load =
            || Some(moire_models::load("ptx", &setting(theirs, &plain)?).expect("the shipped model loads"));
        let Some(model) = models.entry(theirs.clone()).or_insert_with(load) else {
            tally.unknown.insert(theirs.clone());
            continue;
        };
        let found = match kinds(&program, model) {
            Ok(found) => found,
            Err(why) => {
                if show {
                    eprintln!("{theirs}: abstained: {why}");
                }
                return *tally.abstained.entry(why).or_default() += 1;
            }
        };
        tally.compared += 1;
        if show {
            eprintln!("{theirs}: lab {expected:?}, ours {found:?}");
        }
        if found != *expected && !explained(theirs, expected, &found) {
            differences.insert(theirs.clone(), format!("lab {expected:?}, ours {found:?}"));
        }
    }
    if !differences.is_empty() {
        let list: Vec<String> = differences.iter().map(|(k, v)| format!("  {k}: {v}")).collect();
        let first = list.first().cloned().unwrap_or_default();
        let all = if std::env::var_os("MOIRE_LAB_FULL").is_some() {
            format!("{}\n{text}", list.join("\n"))
        } else {
            first
        };
        tally.wrong.push(format!("{} {} {} ({} settings)\n{all}", lab.name, lab.half, lab.edit, list.len()));
    }
}

fn report(all: &[LabProgram]) {
    let (mut models, mut tally) = (BTreeMap::new(), Tally::default());
    for lab in all {
        compare(lab, &mut models, &mut tally);
    }
    let abstained: usize = tally.abstained.values().sum();
    eprintln!("{} verdicts compared, {} of {} programs abstained from", tally.compared, abstained, all.len());
    for (why, n) in &tally.abstained {
        eprintln!("  {n} {why}");
    }
    eprintln!("  no such switch: {}", tally.unknown.iter().cloned().collect::<Vec<_>>().join(", "));
    assert!(tally.compared > all.len(), "hardly anything was compared");
    assert!(tally.wrong.is_empty(), "{} programs differ:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
}

#[test]
fn programs_agree() {
    if let Some(all) = programs(0, 0) {
        report(&all);
    }
}

#[test]
fn the_corpus_has_the_bug_programs() {
    if let Some(all) = programs(0, 0) {
        let (wrong, held) = corpus::check(&all);
        eprintln!("{held} programs");
        assert!(
            held >= 200 && wrong.is_empty(),
            "{held} in the corpus; these differ from their translation (BLESS=1 rewrites them): {wrong:?}"
        );
    }
}

#[test]
fn mutants_agree() {
    let (seed, count) = (number("MOIRE_LAB_SEED").unwrap_or(1), number("MOIRE_LAB_MUTANTS").unwrap_or(300));
    if let Some(all) = programs(seed, count.max(1)) {
        report(&all);
    }
}

//! Compares lanes with an outside witness: `lanes-lab`, a machine that runs the lanes of a warp literally.
//!
//! Its rows of right answers and its random programs are written as litmus texts by `lanes_lab/driver.py`. The explorer judges
//! each with a thread for each lane and with few threads for a warp: it must find a race, a hang, a protocol error exactly
//! where the lab does, and race at the same lines. The lab waits for lanes that have not exited (EX=B).
//!
//! `MOIRE_LANES_LAB=N` compares N random programs, from seed `MOIRE_LANES_LAB_SEED`. If python3 or the lab is missing, the test
//! says so and is skipped.

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, Verdict, judge};
use moire_program::ir::Program;
use moire_program::lanes::{joined, literal};
use moire_program::text::{Format, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pairs of lines that race.
type Pairs = BTreeSet<(u32, u32)>;

/// A program of the lab.
struct Told {
    name: String,
    text: String,
    /// `race`, `hang`, `protocol`, `undefined`.
    words: BTreeSet<String>,
    /// None where they may depend on values that a race leaves open.
    pairs: Option<Pairs>,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn folder() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|a| a.join("shared/lanes-lab")).find(|p| p.is_dir())
}

/// What the driver prints with these words. None if there is no lab, or no python3.
fn told(words: &[&str]) -> Option<(Vec<Told>, BTreeMap<String, usize>)> {
    let Some(folder) = folder() else {
        eprintln!("skipped: no shared/lanes-lab");
        return None;
    };
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/lanes_lab/driver.py");
    let Ok(run) = Command::new("python3").arg(driver).arg(folder).args(words).output() else {
        eprintln!("skipped: no python3");
        return None;
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(read(&String::from_utf8(run.stdout).expect("text")))
}

/// The programs of an output, and why others have no translation.
fn read(output: &str) -> (Vec<Told>, BTreeMap<String, usize>) {
    let (mut programs, mut untold) = (Vec::new(), BTreeMap::new());
    for line in output.lines() {
        if let Some(why) = line.strip_prefix("- ") {
            *untold.entry(why.to_owned()).or_default() += 1;
        } else if let [name, words, pairs] = line.split(" |").collect::<Vec<_>>()[..]
            && let Some(name) = name.strip_prefix("@ ")
        {
            let words = words.split_whitespace().map(str::to_owned).collect();
            programs.push(Told { name: name.to_owned(), text: String::new(), words, pairs: lines(pairs) });
        } else if let Some(last) = programs.last_mut() {
            last.text += line;
            last.text += "\n";
        }
    }
    (programs, untold)
}

fn lines(pairs: &str) -> Option<Pairs> {
    let pair = |p: &str| {
        let (a, b) = p.split_once('-')?;
        Some((a.parse().ok()?, b.parse().ok()?))
    };
    pairs.split_whitespace().map(pair).collect()
}

/// The words of the lab for a judgement. The error is the reason why there is none.
fn words(judgement: &Judgement) -> Result<BTreeSet<String>, String> {
    let mut out = BTreeSet::new();
    for verdict in &judgement.verdicts {
        match verdict {
            Verdict::Clean(_) => {}
            Verdict::Bounded(why) | Verdict::Abstained(why) => return Err(why.clone()),
            other => drop(out.insert(other.word().to_owned())),
        }
    }
    // A wait that answers for an older phase is a race, said more exactly.
    out.remove("early-pass");
    Ok(out)
}

fn races(judgement: &Judgement) -> Pairs {
    let pair = |f: &moire_execution::leaf::Finding| {
        let mut lines: Vec<u32> = f.places.iter().map(|p| p.line).collect();
        lines.sort_unstable();
        Some((*lines.first()?, *lines.last()?))
    };
    judgement.findings.iter().filter(|f| f.flag.contains("race")).filter_map(pair).collect()
}

/// In what a judgement differs from the lab's.
fn difference(lab: &Told, program: &Program, model: &Model) -> Result<Option<String>, String> {
    let limits = Limits { steps: 200_000, ..Limits::default() };
    let found = judge(program, model, &limits, Questions { witnesses: false, about: About::All });
    let ours = words(&found)?;
    // Where the protocol is broken, races and hangs are those of lanes that arrive together.
    let broken = |words: &BTreeSet<String>| words.contains("protocol") || words.contains("undefined");
    if broken(&lab.words) && broken(&ours) {
        return Ok(None);
    }
    // Where a race leaves a value open that steers, the lab reads the newest write.
    let both_race = ours.contains("race") && lab.words.contains("race");
    if lab.pairs.is_none() && both_race {
        return Ok(None);
    }
    if ours != lab.words {
        return Ok(Some(format!("{ours:?} here, {:?} there", lab.words)));
    }
    let pairs = races(&found);
    let same = lab.pairs.as_ref().is_none_or(|theirs| *theirs == pairs);
    Ok((!same).then(|| format!("pairs {pairs:?} here, {:?} there", lab.pairs)))
}

/// Compares programs, prints the numbers, and fails where an answer differs.
fn compared(programs: &[Told], untold: &BTreeMap<String, usize>) {
    let exited = Variants::from([("EX".to_owned(), "B".to_owned())]);
    let model = moire_models::load("ptx", &exited).expect("the model loads");
    let (mut tally, mut skipped, mut wrong) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for lab in programs {
        let program = parse(&lab.text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{}", lab.text));
        for (how, program) in [("literal", literal(&program)), ("joined", joined(&program))] {
            match difference(lab, &program, &model) {
                Ok(None) => *tally.entry((how, lab.words.clone())).or_insert(0) += 1,
                Ok(Some(what)) => wrong.push(format!("{how} {}: {what}\n{}", lab.name, lab.text)),
                Err(why) => *skipped.entry((how, why)).or_insert(0) += 1,
            }
        }
    }
    eprintln!("agree: {tally:#?}\nno answer here: {skipped:#?}\nno translation: {untold:#?}");
    wrong.iter().take(10).for_each(|text| eprintln!("--- {text}"));
    let agree: i32 = tally.values().sum();
    assert!(wrong.is_empty(), "{} differ", wrong.len());
    assert!(agree > 0, "nothing was compared");
}

#[test]
fn the_rows_of_the_lab_have_the_lab_s_answers() {
    if let Some((rows, untold)) = told(&["rows"]) {
        assert_eq!(rows.len(), 28);
        compared(&rows, &untold);
    }
}

#[test]
fn random_programs_have_the_lab_s_answers() {
    let count = number("MOIRE_LANES_LAB").unwrap_or(150).to_string();
    let seed = number("MOIRE_LANES_LAB_SEED").unwrap_or(1).to_string();
    if let Some((programs, untold)) = told(&[&count, &seed]) {
        compared(&programs, &untold);
    }
}

//! Bug and ConSan programs of the lab (`tcgen05-lab`) in our corpus. Each text has our own sentence above it. Its
//! expectations are for default switches, for `practice`, and for each switch that changes the lab's verdict.

use super::read::LabProgram;
use super::{kinds, setting, translate};
use moire_cat::{Model, PROFILE, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, judge};
use moire_program::text::{Format, expecting, parse};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const SENTENCES: &str = include_str!("sentences.txt");

/// Returns the path in the corpus and the text of a program, if the corpus keeps it.
fn kept(lab: &LabProgram) -> Option<(PathBuf, String)> {
    let line = SENTENCES.lines().find(|l| l.split('|').next() == Some(&lab.name))?;
    let mut fields = line.split('|').skip(1);
    let (what, link) = (fields.next()?, fields.next());
    let half = lab.half.as_str();
    let same = what.ends_with("nothing is wrong");
    let folder = if link.is_some() { "bugs" } else { "consan" };
    let name = if link.is_some() { lab.name.clone() } else { lab.name.replace("row", "ConSan row ") };
    let mut text = match (half, same) {
        (_, true) | ("buggy", _) => format!("// {name}: {what}.\n"),
        _ => format!("// {name}, fixed; the mistake was: {what}.\n"),
    };
    if let Some(link) = link {
        let _ = writeln!(text, "// {link}");
    }
    let many = lab.agents.iter().filter(|a| a.size > 1);
    let many: Vec<String> = many.map(|a| format!("{} for {}", a.name.replace('@', "_"), a.size)).collect();
    if !many.is_empty() {
        let _ = writeln!(text, "// A thread stands for threads that move together: {}.", many.join(", "));
    }
    text += &translate::translate(lab).ok()?;
    Some((Path::new(folder).join(format!("{}-{half}.litmus", lab.name)), text))
}

/// Lists the settings that get a line of expectation.
fn specs(lab: &LabProgram, plain: &Model) -> Vec<String> {
    let letter = &lab.kinds["letter"];
    let mut out = vec!["ptx".to_owned(), format!("ptx:{PROFILE}=practice")];
    for (theirs, found) in lab.kinds.iter().filter(|k| k.0.contains('=')) {
        if let Some(ours) = setting(theirs, plain).filter(|_| found != letter) {
            let ours: Vec<String> = ours.iter().map(|(k, v)| format!("{k}={v}")).collect();
            out.push(format!("ptx:{}", ours.join(",")));
        }
    }
    out
}

fn expectation(lab: &LabProgram, text: &str, plain: &Model) -> String {
    let program = parse(text, Format::Native).unwrap_or_else(|e| panic!("{}: {e}", lab.name));
    let mut out = String::new();
    for spec in specs(lab, plain) {
        let settings = spec.split_once(':').map_or("", |s| s.1).split(',').filter_map(|s| s.split_once('='));
        let variants: Variants = settings.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let model = moire_models::load("ptx", &variants).expect("the shipped model loads");
        let questions = Questions { witnesses: false, about: About::All };
        let found = judge(&program, &model, &Limits::default(), questions);
        let words: BTreeSet<&str> = found.verdicts.iter().map(|v| v.word()).collect();
        let words: Vec<&str> = words.into_iter().collect();
        let _ =
            writeln!(out, "{spec} {} {} {}", found.summary.complete, found.summary.blocked, words.join(","));
    }
    out
}

/// Compares the corpus with the lab. Returns the files that differ and the number of programs. `BLESS` writes the
/// files.
pub(crate) fn check(all: &[LabProgram]) -> (Vec<String>, usize) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let plain = moire_models::load("ptx", &Variants::new()).expect("the shipped model loads");
    let (mut wrong, mut held) = (Vec::new(), 0);
    for lab in all {
        let Some((path, text)) = kept(lab) else { continue };
        let program = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{}: {e}\n{text}", lab.name));
        if kinds(&program, &plain).is_err() {
            continue;
        }
        held += 1;
        let path = corpus.join(path);
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("the corpus is writable");
            let answers = expectation(lab, &text, &plain);
            std::fs::write(&path, expecting(&text, &answers)).expect("the corpus is writable");
        }
        if expecting(&std::fs::read_to_string(&path).unwrap_or_default(), "") != text {
            wrong.push(path.display().to_string());
        }
    }
    (wrong, held)
}

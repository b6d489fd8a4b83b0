//! `worker/models/ATLAS.md`: the least program that separates the settings of each switch of tcgen05 and of
//! asynchronous synchronisation, or the bound if there is no such program. `BLESS=1` writes the file; the same test
//! compares it.

mod search;

use moire_cat::Model;
use moire_explore::judge::flag_verdict;
use moire_program::text::{expectations, expecting};
use moire_worker::oracle::Oracles;
use search::{GRAMMARS, Judged, Separation, separations};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Switches of the core model that need mbarriers or asynchronous copies; `DIFFERENCES.md` has the others.
const CORE: [&str; 4] = ["Q4", "Q8", "Q9", "Q13"];

/// Lists the name and value of each setting other than a default.
fn settings(ptx: &Model) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for switch in ptx.switches() {
        if switch.name.starts_with("TQ") || CORE.contains(&switch.name.as_str()) {
            let others = switch.values.iter().filter(|v| **v != switch.default);
            out.extend(others.map(|v| (switch.name.clone(), v.clone())));
        }
    }
    let number =
        |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().unwrap_or(0);
    out.sort_by_key(|(name, value)| (!name.starts_with('T'), number(name), value.clone()));
    out
}

fn words(judged: &Judged) -> String {
    let mut words = BTreeSet::new();
    for (blocked, flags) in judged {
        words.extend(blocked.then_some("hang"));
        words.extend(flags.iter().map(|f| flag_verdict(f).word()));
    }
    let words: Vec<&str> = words.into_iter().collect();
    if words.is_empty() { "clean".into() } else { words.join(" ") }
}

fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            walk(&path, out);
        } else if path.extension().is_some_and(|e| e == "litmus") {
            out.push(path);
        }
    }
}

/// Finds the shortest program of the corpus whose expectation separates the setting.
fn elsewhere(setting: &str) -> Option<String> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/litmus");
    let mut files = Vec::new();
    walk(&corpus, &mut files);
    let separates = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let answer = |spec: &str| {
            let line = expectations(&text).find_map(|l| l.strip_prefix(spec)?.strip_prefix(' '))?;
            line.split(' ').nth(2).map(str::to_owned)
        };
        answer(&format!("ptx:{setting}")).is_some_and(|a| Some(a) != answer("ptx"))
    };
    let length =
        |p: &PathBuf| std::fs::read_to_string(p).map_or(usize::MAX, |text| expecting(&text, "").len());
    let least = files.into_iter().filter(separates).min_by_key(|p| (length(p), p.clone()))?;
    Some(least.strip_prefix(&corpus).ok()?.display().to_string())
}

fn row(name: &str, value: &str, found: Option<&Separation>) -> String {
    let setting = format!("{name}={value}");
    match found {
        Some(s) => {
            let (threads, _, steps) = s.size;
            format!(
                "| {setting} | {} | {} | {threads} threads, {steps} steps ({}) |\n",
                words(&s.first),
                words(&s.second),
                s.grammar
            )
            .replace("1 threads", "1 thread")
        }
        None => {
            let other = elsewhere(&setting).map_or_else(
                || "none; no program of the corpus separates it either".to_owned(),
                |p| format!("none; of the corpus `{p}` separates it"),
            );
            format!("| {setting} | | | {other} |\n")
        }
    }
}

#[test]
fn the_atlas_is_the_result_of_the_search() {
    let oracles = Oracles::new();
    let ptx = oracles.model("ptx").expect("the shipped model loads");
    let settings = settings(&ptx);
    let models: Vec<Arc<Model>> = settings
        .iter()
        .map(|(name, value)| oracles.model(&format!("ptx:{name}={value}")).expect("loads"))
        .collect();
    let (found, tried) = separations(&ptx, &models);
    let mut text = format!(
        "# Atlas of readings\n\nFor each setting of a switch of `ptx` that is about tcgen05, mbarriers or asynchronous \
         copies: the least program that is\njudged otherwise than under the default. Least: fewest threads, then steps, then text, \
         among {tried} programs of the families\nbelow. `BLESS=1 cargo test -p moire-worker --test suite atlas` writes this file, \
         the same test compares it; `DIFFERENCES.md` has the\nother switches.\n\n| setting | by default | so set | least program |\n\
         |---|---|---|---|\n"
    );
    for ((name, value), found) in settings.iter().zip(&found) {
        text += &row(name, value, found.as_ref());
    }
    text += "\n## Families\n\nSteps are instructions, a wait with its loop and an arrival with its `mapa` counted once.\n\n\
             | family | its programs | steps |\n|---|---|---|\n";
    for grammar in GRAMMARS {
        let (least, most) = grammar.range();
        let _ = writeln!(text, "| {} | {} | {least} to {most} |", grammar.name, grammar.about);
    }
    for ((name, value), found) in settings.iter().zip(&found) {
        if let Some(s) = found {
            let _ = write!(text, "\n## {name}={value}\n\n```\n{}```\n", s.text);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/ATLAS.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("the document can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{} is out of date; BLESS=1 writes:\n{text}", path.display());
    // The search separates the readings that concern one CTA.
    for switch in ["TQ1", "TQ5", "TQ7", "TQ9", "TQ10", "TQ11", "TQ14", "TQ15", "TQ16"] {
        let separated = settings.iter().zip(&found).any(|((name, _), f)| name == switch && f.is_some());
        assert!(separated, "{switch} is not separated");
    }
}

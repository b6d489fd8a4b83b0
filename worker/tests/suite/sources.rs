//! The table from sections to definitions to programs (`worker/models/SOURCES.md`). No cell is empty, and every
//! definition and program exists. Every section that the models cite, and every check and switch of `ptx`, has a row.

use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Model, Variants};
use std::collections::BTreeSet;
use std::path::Path;

struct Row {
    section: String,
    rule: String,
    definitions: Vec<String>,
    programs: Vec<String>,
}

fn rows() -> Vec<Row> {
    let text = include_str!("../../models/SOURCES.md");
    let lines = text.lines().filter(|l| l.starts_with('|')).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [section, rule, definitions, programs] = cells[..] else { panic!("not four cells: {line}") };
        assert!(cells.iter().all(|c| !c.is_empty()), "an empty cell: {line}");
        Row {
            section: section.into(),
            rule: rule.into(),
            definitions: definitions.split_whitespace().map(|d| d.trim_matches('`').to_owned()).collect(),
            programs: programs.split(", ").map(str::to_owned).collect(),
        }
    };
    lines.map(row).collect()
}

fn shipped() -> Vec<Model> {
    moire_models::names()
        .map(|n| moire_models::load(n, &Variants::new()).unwrap_or_else(|e| panic!("{e}")))
        .collect()
}

#[test]
fn every_definition_and_program_exists() {
    let models = shipped();
    let texts: String = moire_models::FILES.iter().map(|(_, text)| *text).collect();
    let base: BTreeSet<&str> = sets::ALL.iter().chain(rels::ALL).map(|(name, _)| *name).collect();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/litmus");
    let rows = rows();
    assert!(rows.len() > 40, "only {} rows", rows.len());
    for row in &rows {
        for name in &row.definitions {
            let known = base.contains(name.as_str())
                || texts.contains(&format!("let {name}("))
                || models
                    .iter()
                    .any(|m| m.definition(name).is_some() || m.checks().iter().any(|c| c.name == *name));
            assert!(known, "{}: no model defines `{name}`", row.section);
        }
        for name in &row.programs {
            assert!(corpus.join(format!("{name}.litmus")).is_file(), "{}: no program {name}", row.section);
        }
    }
}

/// Finds words such as `8.10.2` in a text.
fn cited(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|w| w.trim_matches('.'));
    words.filter(|w| w.starts_with("8.") && w.len() > 2).map(str::to_owned).collect()
}

#[test]
fn every_cited_section_check_and_switch_has_a_row() {
    let rows = rows();
    let text = include_str!("../../models/SOURCES.md");
    let outside = text.split("## Not modelled").nth(1).expect("the table says what is left out");
    let mut known: BTreeSet<String> = rows.iter().flat_map(|r| cited(&r.section)).collect();
    known.extend(cited(outside));
    for (file, model) in moire_models::FILES {
        for section in cited(model) {
            assert!(known.contains(&section), "{file} cites {section}, which has no row");
        }
    }
    for model in shipped().iter().filter(|m| m.name().starts_with("ptx")) {
        for check in model.checks().iter().filter(|c| c.name != "CoherenceSeed") {
            let named = rows.iter().any(|r| r.definitions.contains(&check.name));
            assert!(named, "{} has no row", check.name);
        }
        for switch in model.switches() {
            let named = rows
                .iter()
                .any(|r| r.rule.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == switch.name));
            assert!(named, "{} has no row", switch.name);
        }
    }
}

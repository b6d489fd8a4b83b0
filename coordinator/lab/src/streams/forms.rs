//! Forms of instructions: a name of the book and a word that stands behind it.

use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_console::input::load_model;
use moire_execution::unmodelled;
use moire_isa::census::{Form, OWN, neighbours};
use moire_isa::entry_of;
use moire_program::ir::Program;
use moire_program::text::{Format, instruction, parse};
use std::collections::{BTreeMap, BTreeSet};

/// Names, each with its words; no word is the name itself.
pub(super) type Words = BTreeMap<String, BTreeSet<String>>;

/// How many programs have each form.
#[derive(Default)]
pub(super) struct Forms(BTreeMap<(String, String), u64>);

impl Forms {
    /// Counts a program once for each form it has.
    pub(super) fn add(&mut self, program: &Program) {
        for form in forms(program) {
            *self.0.entry(form).or_default() += 1;
        }
    }

    pub(super) fn count(&self, name: &str, word: &str) -> u64 {
        self.0.get(&(name.to_owned(), word.to_owned())).copied().unwrap_or(0)
    }
}

/// The forms of a program. What only litmus texts say is left out.
fn forms(program: &Program) -> BTreeSet<(String, String)> {
    let mut out = BTreeSet::new();
    for thread in &program.threads {
        for instr in &thread.body {
            let text = instruction(program, thread, instr);
            let bare = if text.starts_with('@') { text.split_once(' ').map_or("", |s| s.1) } else { &text };
            let head = bare.split(' ').next().unwrap_or_default();
            let Some((name, _)) = entry_of(head) else { continue };
            let words = head[name.len()..].split('.').filter(|word| !word.is_empty());
            out.extend(words.chain([""]).map(|word| (name.to_owned(), word.to_owned())));
        }
    }
    out
}

/// The forms near those of the census that litmus texts have and that an engine models.
pub(super) fn modelled() -> Result<Words> {
    let models = [load_model("ptx", &Variants::new())?, load_model("tile-ir", &Variants::new())?];
    let mut out = Words::new();
    let own = OWN.lines().filter_map(Form::of).filter(Form::accepted);
    for form in own {
        let near = neighbours(form.text);
        for text in near.iter().map(String::as_str).chain([form.text]) {
            for (name, word) in said(text, &models).into_iter().flatten() {
                out.entry(name).or_default().insert(word);
            }
        }
    }
    Ok(out)
}

/// The forms of an instruction, if a model has rules for it.
fn said(text: &str, models: &[Model]) -> Option<BTreeSet<(String, String)>> {
    let text = format!("moire \"form\"\n.global .b64 x[64];\nP (gpu 0, cta 0) {{\n{text};\n}}\n");
    let program = parse(&text, Format::Native).ok()?;
    models.iter().any(|model| unmodelled(&program, model).is_none()).then(|| forms(&program))
}

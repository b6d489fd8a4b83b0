//! Forms of instructions: a name of the book and a word that stands behind it.

use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_console::input::load_model;
use moire_execution::unmodelled;
use moire_generate::words::{head as name_of, others, with_head};
use moire_isa::census::{Declared, Form, OWN, neighbours};
use moire_isa::{Instr, entry_of};
use moire_program::ir::Program;
use moire_program::text::{Format, instruction, parse};
use moire_program::validate::validate;
use std::collections::{BTreeMap, BTreeSet};

/// Names, each with its words; no word is the name itself.
pub(super) type Words = BTreeMap<String, BTreeSet<String>>;

/// How many programs have each form, and a place where each name with its qualifiers stands.
#[derive(Default)]
pub(super) struct Forms {
    counts: BTreeMap<(String, String), u64>,
    places: BTreeMap<String, (Program, (usize, usize))>,
}

impl Forms {
    /// Counts a program once for each form it has.
    pub(super) fn add(&mut self, program: &Program) {
        for form in forms(program) {
            *self.counts.entry(form).or_default() += 1;
        }
        for (t, thread) in program.threads.iter().enumerate() {
            for (at, instr) in thread.body.iter().enumerate() {
                let head = name_of(&instruction(program, thread, instr)).to_owned();
                self.places.entry(head).or_insert_with(|| (program.clone(), (t, at)));
            }
        }
    }

    pub(super) fn count(&self, name: &str, word: &str) -> u64 {
        self.counts.get(&(name.to_owned(), word.to_owned())).copied().unwrap_or(0)
    }
}

/// The forms of a program. What only litmus texts say is left out.
fn forms(program: &Program) -> BTreeSet<(String, String)> {
    let mut out = BTreeSet::new();
    for thread in &program.threads {
        for instr in &thread.body {
            out.extend(of_head(name_of(&instruction(program, thread, instr))));
        }
    }
    out
}

/// The forms of a name with its qualifiers.
fn of_head(head: &str) -> Vec<(String, String)> {
    let Some((name, _)) = entry_of(head) else { return Vec::new() };
    let words = head[name.len()..].split('.').skip(1);
    words.chain([""]).map(|word| (name.to_owned(), word.to_owned())).collect()
}

/// The forms that litmus texts have and that an engine models: those near the census, and where it has no form of an entry, those
/// near what is drawn.
pub(super) fn modelled(drawn: &Forms) -> Result<Words> {
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
    let known: BTreeSet<String> = out.keys().cloned().collect();
    for (head, (program, place)) in &drawn.places {
        if of_head(head).first().is_none_or(|(name, _)| known.contains(name)) {
            continue;
        }
        let changed = others(head).into_iter().filter_map(|new| with_head(program, *place, &new));
        for program in changed.filter(|p| judged(p, &models)) {
            let thread = &program.threads[place.0];
            for (name, word) in of_head(name_of(&instruction(&program, thread, &thread.body[place.1]))) {
                out.entry(name).or_default().insert(word);
            }
        }
    }
    Ok(out)
}

/// The forms of an instruction, if a model has rules for it.
fn said(text: &str, models: &[Model]) -> Option<BTreeSet<(String, String)>> {
    Instr::read(text, &mut Declared::default()).ok()?;
    let text = format!("moire \"form\"\n.global .b64 x[64];\nP (gpu 0, cta 0) {{\n{text};\n}}\n");
    let program = parse(&text, Format::Native).ok()?;
    judged(&program, models).then(|| forms(&program))
}

/// Whether a model has rules for all of a program, and no value in it is taken for something else.
fn judged(program: &Program, models: &[Model]) -> bool {
    let floats = validate(program).iter().any(|d| d.rule == Some("float-arithmetic"));
    !floats && models.iter().any(|model| unmodelled(program, model).is_none())
}

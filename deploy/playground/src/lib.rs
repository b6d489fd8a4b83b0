//! `moire check` for a browser: a program in, verdicts, final states and pictures out.
//!
//! Contract: the same crates judge as on the command line, with the same limits; explanations have a number of steps instead of a time.
//! Nothing is read, and nothing leaves the page. [`exports`] is how JavaScript calls it; [`asked`] is the same for Rust.

pub mod exports;

use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_shown::picture::drawn;
use moire_shown::states::{BESIDE, States};
use moire_shown::text;
use moire_verdict::answer::Answer;
use moire_verdict::asked::Asked;
use moire_verdict::input::File;
use moire_verdict::judging::Judge;
use moire_verdict::kernel::{self, Wanted};
use moire_verdict::problems::problems;
use moire_verdict::question::{Library, Question, Quiet};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Steps of explanations: a few seconds in a browser.
const STEPS: u32 = 2_000;
/// As `moire check` has it: the bound is a count of steps that stands for this time.
const AFTER_FINDING: Duration = Duration::from_secs(10);
/// Executions of the list of final states.
const STATES: u64 = 100_000;

/// A program of the list of examples: its name and its text.
const EXAMPLES: [(&str, &str); 9] = [
    ("mp-weak.litmus", include_str!("../../../corpus/litmus/mp/mp-weak.litmus")),
    ("mp-rel-acq.litmus", include_str!("../../../corpus/litmus/mp/mp-rel-acq.litmus")),
    ("sb-relaxed.litmus", include_str!("../../../corpus/litmus/sb/sb-relaxed.litmus")),
    ("2+2w-relaxed.litmus", include_str!("../../../corpus/litmus/2+2w/2+2w-relaxed.litmus")),
    (
        "shuffle-orders-nothing.litmus",
        include_str!("../../../corpus/litmus/lanes/shuffle-orders-nothing.litmus"),
    ),
    ("missing-arrive.litmus", include_str!("../../../corpus/litmus/mbarrier/missing-arrive.litmus")),
    ("wrong-parity.litmus", include_str!("../../../corpus/litmus/mbarrier/wrong-parity.litmus")),
    ("mp-alias-no-fence.litmus", include_str!("../../../corpus/litmus/alias/mp-alias-no-fence.litmus")),
    ("chain.tile", include_str!("../../../corpus/tile/chain.tile")),
];

/// What is asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// The name of the program; its ending may say what it is.
    name: String,
    /// The program.
    text: String,
    /// The model, if not the usual one.
    model: Option<String>,
    /// The readings taken together, such as `practice`.
    profile: Option<String>,
    /// Switches of the model that are set.
    switches: Variants,
}

/// What is answered.
#[derive(Debug, Default, Serialize)]
pub struct Response {
    /// One for each kernel.
    answers: Vec<Shown>,
    /// The final states by model, of a litmus text.
    states: Option<String>,
    /// The model that judged.
    model: String,
    /// The models that there are.
    models: Vec<&'static str>,
    /// The profiles of the model.
    profiles: Vec<String>,
    /// The switches of the model.
    switches: Vec<Switch>,
    /// Names and texts to begin with.
    examples: &'static [(&'static str, &'static str)],
}

/// An answer.
#[derive(Debug, Serialize)]
struct Shown {
    /// The verdicts in a line.
    verdicts: String,
    /// The exit code of the command line: 0 is clean, 10 a finding, 11 incomplete, 2 no program.
    code: u8,
    /// What the terminal has.
    text: String,
    /// Pictures of the executions that decide, by what they show.
    pictures: Vec<(String, String)>,
    /// Patches that mend it.
    patches: Vec<String>,
    /// The lines that are named.
    lines: Vec<u32>,
}

/// A switch of the model.
#[derive(Debug, Serialize)]
struct Switch {
    name: String,
    values: Vec<String>,
    default: String,
    doc: String,
}

const LIBRARY: Library = Library { load, beside: |_| None };

fn load(name: &str, switches: &Variants) -> Result<Model> {
    Ok(moire_models::load(name, switches)?)
}

/// Answers a request.
///
/// # Errors
/// There is no such model or reading. What is wrong with the program is part of the response.
pub fn asked(request: &Request) -> Result<Response> {
    let name = if request.name.is_empty() { "program" } else { &request.name };
    let file = File::new(Path::new(name), name, request.text.as_bytes().to_vec(), None);
    let model = request.model.as_deref().unwrap_or_else(|| kernel::usual_model(&file));
    let question = Question {
        switches: request.switches.clone(),
        profile: request.profile.clone(),
        after_finding: AFTER_FINDING,
        ..Question::default()
    };
    let asked = Asked::new(&question, model, kernel::is_compiled(&file), LIBRARY)?;
    let entries = kernel::entries(&file);
    let launches = match entries.len() {
        0 | 1 => vec![Wanted::default()],
        _ => entries.into_iter().map(|e| Wanted { entry: Some(e), ..Wanted::default() }).collect(),
    };
    let judged = |launch| {
        let host = Quiet::new(STEPS, &|| false);
        Judge { question: &question, launch, asked: &asked, host: &host }.file(&file)
    };
    let plain = load(model, &Variants::new())?;
    Ok(Response {
        answers: launches.into_iter().map(|launch| shown(judged(launch))).collect(),
        states: states(&file, (model, &request.switches))?,
        model: model.to_owned(),
        models: moire_models::names().collect(),
        profiles: plain.profiles().iter().map(|p| p.name.clone()).collect(),
        switches: plain.switches().iter().map(switch).collect(),
        examples: &EXAMPLES,
    })
}

fn shown(mut answer: Answer) -> Shown {
    answer.problems = problems(&answer);
    let code = if answer.parts.is_empty() { 2 } else { moire_verdict::exit::worst(answer.codes(false)) };
    let patches = answer.parts.iter().filter_map(|p| p.advice.as_ref()?.patch.clone());
    Shown {
        verdicts: if answer.parts.is_empty() { "rejected".to_owned() } else { answer.verdicts.line() },
        code,
        text: text::page(&answer),
        pictures: drawn(&answer).into_iter().map(|d| (d.name, d.svg)).collect(),
        patches: patches.collect(),
        lines: answer.problems.iter().flat_map(|p| p.lines.clone()).collect(),
    }
}

fn switch(s: &moire_cat::Switch) -> Switch {
    Switch { name: s.name.clone(), values: s.values.clone(), default: s.default.clone(), doc: s.doc.clone() }
}

/// The final states of a litmus text under its model and beside it under the others of PTX.
fn states(file: &File, (model, switches): (&str, &Variants)) -> Result<Option<String>> {
    if kernel::is_module(file) {
        return Ok(None);
    }
    let Ok(source) = file.program() else { return Ok(None) };
    let mut models = vec![(model.to_owned(), load(model, switches)?)];
    for name in BESIDE.into_iter().filter(|name| *name != model && !kernel::has_blocks(file)) {
        models.push((name.to_owned(), load(name, &Variants::new())?));
    }
    let limits = Limits { leaves: STATES, ..Limits::default() };
    Ok(Some(States::of(&source.program, &models, &limits).text(&source.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_judged_and_shown() {
        for (name, text) in EXAMPLES {
            let request = Request { name: name.to_owned(), text: text.to_owned(), ..Request::default() };
            let response = asked(&request).expect("it is judged");
            let [answer] = &response.answers[..] else { panic!("{name}: one answer") };
            assert!([0, 10].contains(&answer.code), "{name}: {}", answer.text);
            assert_eq!(answer.code == 10, !answer.lines.is_empty(), "{name}: {}", answer.text);
            assert!(answer.text.contains(name), "{}", answer.text);
            assert_eq!(response.states.is_some(), name.ends_with(".litmus"), "{name}");
        }
    }

    #[test]
    fn readings_decide_and_what_is_no_program_has_its_line() {
        let message = EXAMPLES[0].1;
        let with = |request: Request| asked(&request).map(|r| (r.answers[0].code, r.answers[0].text.clone()));
        let text = |text: &str| Request { text: text.to_owned(), ..Request::default() };
        assert_eq!(with(text(message)).expect("judged").0, 10);
        let (code, said) =
            with(text("moire \"x\"\nP0 (gpu 0, cta 0) {\n  st.week [x], 1;\n}\n")).expect("judged");
        assert_eq!(code, 2);
        assert!(said.contains("st.week"), "{said}");
        assert!(asked(&Request { model: Some("none".to_owned()), ..text(message) }).is_err());
    }
}

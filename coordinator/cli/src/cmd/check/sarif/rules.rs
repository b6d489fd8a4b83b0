//! Rules with what `moire explain` says of them.

use crate::cmd::explain::{Help, help};
use moire_console::exit;
use moire_program::validate::{RuleKind, rule as of_text};
use moire_verdict::problem::Problem;
use moire_verdict::told;
use serde_json::{Value, json};

/// The name of the rule of a problem: its own if it is explained, else that of the verdict.
pub(super) fn id(problem: &Problem) -> &str {
    match told::rule(problem.name()) {
        _ if problem.letter => "contested",
        Some(told) => told.name,
        None => problem.verdict,
    }
}

/// The descriptor of a rule.
pub(super) fn rule(id: &str) -> Value {
    let Help { title, why, text, markdown } = help(id).unwrap_or_else(unread);
    let level = match of_text(id).map(|rule| rule.kind) {
        Some(RuleKind::Lint) => "warning",
        _ if matches!(id, "contested" | "bounded" | "abstained") => "warning",
        _ => "error",
    };
    json!({
        "id": id,
        "shortDescription": {"text": title},
        "fullDescription": {"text": why},
        "help": {"text": text, "markdown": markdown},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["concurrency"], "precision": "very-high", "problem.severity": level},
    })
}

/// What is told of a file that is not read.
fn unread() -> Help {
    let text = format!("The file is not there, or it is no text. The exit code is {}.", exit::USAGE);
    Help { title: "the file cannot be read".to_owned(), why: text.clone(), markdown: text.clone(), text }
}

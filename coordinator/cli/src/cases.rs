//! Results that are no answers of `moire check`: one case each, in the formats that all commands have.

use anyhow::Result;
use moire_console::output::Format;
use moire_coordinator::report::junit::{self, failed, skipped};
use moire_coordinator::report::sarif;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use serde_json::json;

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    Passed,
    Failed,
    /// There is no answer.
    Open,
}

/// A case: what it is about, how it ended, and why.
#[derive(Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) end: End,
    pub(crate) says: String,
}

/// Prints cases for other tools. `command` is the command that has them.
///
/// # Errors
/// A text cannot be written as XML.
pub(crate) fn print(format: Format, command: &str, cases: &[Case]) -> Result<()> {
    match format {
        Format::Text => {}
        Format::Json => {
            for Case { name, end, says } in cases {
                println!(
                    "{}",
                    json!({"version": 1, "kind": "case", "command": command, "name": name, "end": end, "says": says})
                );
            }
        }
        Format::Sarif => println!("{}", document(command, cases)),
        Format::Junit => {
            let mut suite = TestSuite::new(format!("moire {command}"));
            suite.add_test_cases(cases.iter().map(|c| TestCase::new(c.name.as_str(), status(c))));
            println!("{}", junit::document([suite])?);
        }
    }
    Ok(())
}

fn status(case: &Case) -> TestCaseStatus {
    match case.end {
        End::Passed => TestCaseStatus::success(),
        End::Failed => failed(NonSuccessKind::Failure, "failed", &case.says),
        End::Open => skipped("open", &case.says),
    }
}

fn document(command: &str, cases: &[Case]) -> serde_json::Value {
    let text = format!("a case of `moire {command}` failed, or has no answer");
    let rule = sarif::rule(command, &text, "The result says what was expected, or why there is no answer.");
    let wrong = cases.iter().filter(|c| c.end != End::Passed);
    let results = wrong.map(|c| {
        let level = if c.end == End::Failed { "error" } else { "warning" };
        json!({"ruleId": command, "level": level, "message": {"text": format!("{}: {}", c.name, c.says)},
            "locations": [{"logicalLocations": [{"fullyQualifiedName": c.name}]}]})
    });
    sarif::document(&[rule], &results.collect::<Vec<_>>())
}

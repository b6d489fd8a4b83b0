//! TIRx Harness: the kernels of `tirx-kernels`, each in a process of its own, and the modules that they are compiled to.

use super::{Rivals, Row, Said, Told, row, timed};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = include_str!("tirx.py");

/// Judges the kernels, and adds a row for each.
pub(super) fn rows(python: &Path, args: &Rivals, sentry: bool, rows: &mut Vec<Row>) -> Result<()> {
    let folder = args
        .keep
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("moire-rivals-{}", std::process::id())));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let script = folder.join("tirx.py");
    std::fs::write(&script, SCRIPT)?;
    let (names, _) = timed(command(python, &script, &[]), args.budget)?;
    let Some((0, names)) = names else {
        println!("TIRx Harness is left out: {} cannot name its kernels", python.display());
        return Ok(());
    };
    for name in names.iter().take(args.kernels) {
        let at = folder.to_string_lossy();
        let (ended, seconds) = timed(command(python, &script, &[name, &at]), args.budget)?;
        let out = ended.map_or_else(Vec::new, |(_, out)| out);
        let found = one(name, &folder, &out, seconds, args, sentry)?;
        found.print();
        rows.push(found);
    }
    if args.keep.is_none() {
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(())
}

fn command(python: &Path, script: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.arg(script).args(words);
    command
}

/// The row of a kernel: its last line is what the harness says, and the module is there if it could be compiled.
fn one(name: &str, folder: &Path, out: &[String], seconds: f64, args: &Rivals, sentry: bool) -> Result<Row> {
    let own =
        Told { said: out.last().map_or(Said::Open("no answer in time".into()), |line| said(line)), seconds };
    let module = folder.join(format!("{name}.ptx"));
    let label = format!("tirx-kernels/{name}");
    let mut found = if module.exists() {
        row(label, Some(true), &module, args, sentry)?
    } else {
        Row { name: label, right: Some(true), told: [None, None, None] }
    };
    found.told[2] = Some(own);
    Ok(found)
}

/// What a line of the script says. A review is an advice and no finding.
fn said(line: &str) -> Said {
    let told: Value = serde_json::from_str(line).unwrap_or_default();
    let Some(all) = told["said"].as_array() else { return Said::Open("no answer in time".into()) };
    let words: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    if words.contains(&"error") {
        Said::Wrong(words.join(", "))
    } else if words.iter().all(|w| ["clean", "review"].contains(w)) {
        Said::Clean
    } else {
        Said::Open(words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_is_incomplete_proves_nothing() {
        assert_eq!(said(r#"{"said":["clean","clean"]}"#), Said::Clean);
        assert_eq!(said(r#"{"said":["clean","incomplete"]}"#), Said::Open("clean, incomplete".into()));
        assert_eq!(said(r#"{"said":["error","clean"]}"#), Said::Wrong("error, clean".into()));
        assert_eq!(said(r#"{"kernel":"k"}"#), Said::Open("no answer in time".into()));
    }
}

//! What is wrong, as diagnostics.
//!
//! Contract: a diagnostic is a result of `moire check --format sarif` about the text itself: its place, its sentence, its related places.
//! Columns are counted in UTF-16 units, as editors count them.

use crate::cmd::check::Told;
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Position, Range,
    Uri,
};
use serde_json::Value;

/// A diagnostic, and the mend that goes with it: in words, and as a patch.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) diagnostic: Diagnostic,
    pub(super) mend: Option<(String, String)>,
}

/// What is shown of an answer, or of a judgement that failed.
pub(super) fn shown(
    told: std::thread::Result<anyhow::Result<Vec<Told>>>,
    uri: &Uri,
    text: &str,
) -> Vec<Shown> {
    let failed = |message: String| {
        let diagnostic = Diagnostic { source: Some("moire".to_owned()), message, ..Diagnostic::default() };
        vec![Shown { diagnostic, mend: None }]
    };
    match told {
        Ok(Ok(told)) => {
            let lines: Vec<&str> = text.lines().collect();
            let one =
                |told: Told| Shown { diagnostic: diagnostic(&told.result, &lines, uri), mend: told.mend };
            told.into_iter().map(one).collect()
        }
        Ok(Err(error)) => failed(format!("not judged: {error:#}")),
        Err(_) => {
            failed("not judged: a mistake of moire itself; `moire check` on the file says more".to_owned())
        }
    }
}

fn diagnostic(result: &Value, lines: &[&str], uri: &Uri) -> Diagnostic {
    let severity = match result["level"].as_str() {
        Some("error") => DiagnosticSeverity::ERROR,
        Some("warning") => DiagnosticSeverity::WARNING,
        _ => DiagnosticSeverity::INFORMATION,
    };
    let own = &result["locations"][0];
    let others = result["relatedLocations"].as_array().into_iter().flatten();
    // The first one is mostly the place itself.
    let others = others.filter(|other| other["physicalLocation"] != own["physicalLocation"]);
    let related = others.map(|other| DiagnosticRelatedInformation {
        location: Location { uri: uri.clone(), range: range(other, lines) },
        message: words(&other["message"]),
    });
    Diagnostic {
        range: range(own, lines),
        severity: Some(severity),
        code: result["ruleId"].as_str().map(|rule| NumberOrString::String(rule.to_owned())),
        source: Some("moire".to_owned()),
        message: words(&result["message"]),
        related_information: Some(related.collect()),
        ..Diagnostic::default()
    }
}

fn words(message: &Value) -> String {
    message["text"].as_str().unwrap_or_default().to_owned()
}

/// The range of a location; the first line where it names none.
fn range(location: &Value, lines: &[&str]) -> Range {
    let region = &location["physicalLocation"]["region"];
    let number = |name: &str| region[name].as_u64().and_then(|n| usize::try_from(n).ok());
    let line = number("startLine").unwrap_or(1).saturating_sub(1);
    let text = lines.get(line).copied().unwrap_or_default();
    let at = |column: usize| {
        let units: usize = text.chars().take(column.saturating_sub(1)).map(char::len_utf16).sum();
        Position { line: u32::try_from(line).unwrap_or(0), character: u32::try_from(units).unwrap_or(0) }
    };
    let begin = number("startColumn").unwrap_or(1);
    Range { start: at(begin), end: at(number("endColumn").unwrap_or(text.chars().count() + 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_those_of_editors() {
        let of = |region: Value| range(&json!({"physicalLocation": {"region": region}}), &["a", "𝄞 st.weak"]);
        let place = |line, from, to| Range::new(Position::new(line, from), Position::new(line, to));
        assert_eq!(of(json!({"startLine": 2, "startColumn": 3, "endColumn": 10})), place(1, 3, 10));
        assert_eq!(of(json!({"startLine": 2})), place(1, 0, 10));
        assert_eq!(of(Value::Null), place(0, 0, 1));
        assert_eq!(of(json!({"startLine": 9, "startColumn": 4})), place(8, 0, 0));
    }
}

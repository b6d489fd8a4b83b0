//! The report: one static HTML page that works offline, and JSON lines, one object per finding.
//!
//! Contract: pure text from records; findings come sorted by what changed, then by id, so equal stores give equal
//! reports. All text from records is escaped. Source: design section 7 (findings) and 9.

mod graph;

use moire_corpus::{Finding, FindingId, Since, Snapshot, compare};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Version of the JSON lines.
pub const JSON_VERSION: u32 = 1;

/// A report as text.
#[derive(Clone, Debug)]
pub struct Report {
    /// The page.
    pub html: String,
    /// One JSON object per line.
    pub json_lines: String,
    /// What the next report compares with; to be saved once both are written.
    pub snapshot: Snapshot,
}

/// Renders all findings as changed since `last`.
///
/// # Errors
/// A finding cannot be written as JSON.
pub fn render(
    findings: &[Finding],
    last: Option<&Snapshot>,
    at_ms: u64,
) -> Result<Report, serde_json::Error> {
    let since = compare(last, findings);
    let mut rows: Vec<(Since, &Finding)> =
        findings.iter().filter_map(|f| Some((*since.get(&f.id)?, f))).collect();
    rows.sort_by_key(|(s, f)| (*s, f.id));
    let mut json_lines = String::new();
    for (since, finding) in &rows {
        let line = serde_json::json!({ "version": JSON_VERSION, "since": since, "finding": finding });
        json_lines.push_str(&serde_json::to_string(&line)?);
        json_lines.push('\n');
    }
    let states: BTreeMap<FindingId, _> = findings.iter().map(|f| (f.id, f.state.clone())).collect();
    let snapshot = Snapshot { at_ms, findings: states, ..Snapshot::default() };
    Ok(Report { html: page(&rows, last.is_some()), json_lines, snapshot })
}

fn word(since: Since) -> &'static str {
    match since {
        Since::New => "new",
        Since::Still => "still",
        Since::Gone => "gone",
        Since::NotRetested => "not re-tested",
    }
}

const HEAD: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Moiré report</title><style>
:root{color-scheme:light dark;--line:#8888;--po:#888;--rf:#1a8f3c;--co:#b35c00;--fr:#c2255c;--sync:#2f6fde}
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
pre{overflow:auto;padding:.6rem;border:1px solid var(--line)}table{border-collapse:collapse}
td,th{padding:.2rem .8rem;border-bottom:1px solid var(--line);text-align:left}
article{border-top:2px solid var(--line);margin-top:2rem}svg{max-width:100%;height:auto}
svg text{fill:currentColor;font:12px ui-monospace,monospace}svg rect,svg>path{fill:none;stroke:currentColor}
svg .label{paint-order:stroke;stroke:Canvas;stroke-width:5px;text-anchor:middle}
svg>.po{stroke:var(--po)}svg>.rf{stroke:var(--rf)}svg>.co{stroke:var(--co)}svg>.fr{stroke:var(--fr)}svg>.sync{stroke:var(--sync)}
svg>.cycle{stroke-width:3}
</style></head><body><main><h1>Moiré report</h1>
"#;

fn page(rows: &[(Since, &Finding)], compared: bool) -> String {
    let mut out = HEAD.to_owned();
    let mut line = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a string takes all text");
    if !compared {
        line(format_args!("<p>First report of this store: everything open is new.</p>"));
    }
    line(format_args!(
        "<table><caption>Findings since the last report</caption><tr><th>Change<th>Findings</tr>"
    ));
    for kind in [Since::New, Since::Still, Since::Gone, Since::NotRetested] {
        let count = rows.iter().filter(|(s, _)| *s == kind).count();
        line(format_args!("<tr><td>{}<td>{count}</tr>", word(kind)));
    }
    line(format_args!("</table>"));
    for (since, f) in rows {
        let (id, oracle, rule) = (f.id.short(), escape(&f.oracle), escape(&f.rule));
        line(format_args!("<article id=\"f{id}\"><h2>{id}: {oracle} ({rule}), {}</h2>", word(*since)));
        let models: Vec<_> = f.models.iter().map(|m| escape(&m.name)).collect();
        line(format_args!(
            "<p>Models: {}. Seen {}, first in campaign {}.",
            models.join(", "),
            f.sightings(),
            escape(&f.campaign)
        ));
        if let Some(said) = f.allowed() {
            line(format_args!(" <b>{}</b>.", escape(&said)));
        }
        for set in &f.axioms {
            line(format_args!(" Admitted without: {}.", escape(&set.join(", "))));
        }
        line(format_args!("</p><h3>Program</h3><pre>{}</pre>", escape(&f.reduced)));
        match graph::svg(&f.witness, &format!("Execution of finding {id}")) {
            Some(svg) => line(format_args!("<h3>Witness</h3>{svg}")),
            None if !f.witness.is_empty() => {
                line(format_args!("<h3>Witness</h3><pre>{}</pre>", escape(&f.witness)))
            }
            None => {}
        }
        if !f.replay.is_empty() {
            line(format_args!("<h3>Replay</h3><pre>{}</pre>", escape(&f.replay)));
        }
        line(format_args!("</article>"));
    }
    line(format_args!("</main></body></html>\n"));
    out
}

/// Text for HTML, inside and outside of attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_escapes_draws_and_compares() {
        let witness = r#"{"events":[{"id":0,"thread":0,"index":0,"label":"st <x>","value":"1"},
            {"id":1,"thread":1,"index":0,"label":"ld x","value":"1"}],"edges":[{"kind":"rf","from":0,"to":1}]}"#;
        let finding = Finding { oracle: "<self>".into(), witness: witness.into(), ..Finding::default() };
        let first = render(std::slice::from_ref(&finding), None, 5).unwrap();
        assert!(first.html.contains("&lt;self&gt;") && first.html.contains("st &lt;x&gt;"));
        assert!(first.html.contains("class=\"rf\"") && !first.html.contains("http"));
        assert!(first.json_lines.contains(r#""since":"new""#) && first.json_lines.lines().count() == 1);
        let again = render(&[finding], Some(&first.snapshot), 6).unwrap();
        assert!(again.json_lines.contains(r#""since":"not-retested""#));
    }

    #[test]
    fn a_witness_that_is_no_graph_is_text() {
        for witness in ["", "{", "[]", r#"{"events":[]}"#, r#"{"events":[{"id":1}],"edges":[{"from":9}]}"#] {
            let _ = graph::svg(witness, "t");
        }
        assert!(graph::svg("nonsense", "t").is_none());
    }
}

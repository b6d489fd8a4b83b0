//! JSON lines: one object for the report, then one for each finding. `deploy/schema/findings.json` describes them.

use super::{Night, ReportError, Row, Table};
use moire_corpus::{Finding, Since};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;

/// Version of the lines. A version may add fields; only a new version removes a field or changes its meaning.
pub const VERSION: u32 = 2;

/// Writes the line of a finding.
pub(super) fn line(row: &Row<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    #[derive(Serialize)]
    struct Line<'a> {
        version: u32,
        kind: &'static str,
        since: Since,
        note: String,
        fails: bool,
        suppressed: bool,
        finding: &'a Finding,
    }
    let line = Line {
        version: VERSION,
        kind: "finding",
        since: row.since,
        note: row.note(),
        fails: row.fails(),
        suppressed: row.suppressed.is_some(),
        finding: row.finding,
    };
    serde_json::to_writer(&mut *out, &line)?;
    Ok(out.write_all(b"\n")?)
}

/// Writes the line of the report.
pub(super) fn head(night: &Night, table: &Table, out: &mut dyn Write) -> Result<(), ReportError> {
    let (counts, suppressed) = table.counts();
    let counts: BTreeMap<_, _> =
        counts.into_iter().map(|(since, n)| (json!(since).to_string().replace('"', ""), n)).collect();
    let head = json!({
        "version": VERSION,
        "kind": "night",
        "moire": env!("CARGO_PKG_VERSION"),
        "at_ms": night.at_ms,
        "previous_ms": night.last.as_ref().map(|s| s.at_ms),
        "counts": counts,
        "suppressed": suppressed,
        "fails": table.failing() > 0 || night.alarm(),
        "regressions": table.regressions,
        "campaigns": night.campaigns,
        "scores": night.scores,
        "losses": night.losses,
    });
    serde_json::to_writer(&mut *out, &head)?;
    Ok(out.write_all(b"\n")?)
}

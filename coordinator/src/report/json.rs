//! JSON lines: one object for the report, then one a finding. `schema.json` describes them.

use super::{Night, ReportError, Row, counts};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Version of the lines. Fields are added within one version, and removed or given another meaning in the next.
pub const VERSION: u32 = 2;

pub(super) fn lines(night: &Night, rows: &[Row<'_>]) -> Result<String, ReportError> {
    let mut out = serde_json::to_string(&head(night, rows))?;
    out.push('\n');
    for row in rows {
        let line = json!({
            "version": VERSION,
            "kind": "finding",
            "since": row.since,
            "note": row.note(),
            "fails": row.fails(),
            "suppressed": row.suppressed.is_some(),
            "finding": row.finding,
        });
        out.push_str(&serde_json::to_string(&line)?);
        out.push('\n');
    }
    Ok(out)
}

fn head(night: &Night, rows: &[Row<'_>]) -> Value {
    let (counts, suppressed) = counts(rows);
    let counts: BTreeMap<_, _> =
        counts.into_iter().map(|(since, n)| (json!(since).to_string().replace('"', ""), n)).collect();
    json!({
        "version": VERSION,
        "kind": "night",
        "moire": env!("CARGO_PKG_VERSION"),
        "at_ms": night.at_ms,
        "previous_ms": night.last.as_ref().map(|s| s.at_ms),
        "counts": counts,
        "suppressed": suppressed,
        "fails": rows.iter().any(Row::fails) || night.alarm(),
        "regressions": night.regressions(),
        "campaigns": night.campaigns,
        "scores": night.scores,
    })
}

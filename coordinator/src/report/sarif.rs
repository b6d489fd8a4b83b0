//! OASIS SARIF 2.1.0: parts shared by `moire check` and reports, and the report of a night.

use super::{DIFFERENCE, Night, Row, Table};
use moire_corpus::Since;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Makes a document of one run. `rules` are the reporting descriptors that its results name.
pub fn document(rules: &[Value], results: &[Value]) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "moire", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// Makes the descriptor of a rule without a page of its own.
pub fn rule(id: &str, title: &str, help: &str) -> Value {
    json!({"id": id, "shortDescription": {"text": title}, "fullDescription": {"text": title},
        "help": {"text": help, "markdown": help}})
}

/// What to do with a finding.
const HELP: &str = "The line `moire replay ..` of the result runs it again without a store; `moire findings show ID` shows it in full.";

/// Makes the report of a night: a rule for each oracle and direction, a result for each finding with its change since
/// the last report, and a result for each score that fails the night. If findings are left out, the properties of the
/// run say how many.
pub(super) fn night(night: &Night, table: &Table, rows: &[Row<'_>]) -> Value {
    let mut rules = BTreeMap::new();
    for (oracle, direction) in &table.rules {
        let (id, text) = (
            format!("{oracle}/{direction}"),
            format!("the rule of the oracle {oracle} ({direction}) is broken"),
        );
        let help = format!("Two descriptions that should agree do not. {HELP}");
        rules.insert(id.clone(), rule(&id, &text, &help));
    }
    let mut results: Vec<Value> = rows.iter().map(finding).collect();
    for score in night.scores.iter().filter(|s| s.grade == super::Grade::Alarm) {
        let id = format!("score/{}", score.name);
        let help = "Bugs are planted in engines and protocols, and a campaign of this length finds them. Real ones may be missed, too.";
        rules.insert(id.clone(), rule(&id, "planted bugs are missed", help));
        results.push(json!({"ruleId": id, "level": "error", "message": {"text": score.says}}));
    }
    let mut document = document(&rules.into_values().collect::<Vec<_>>(), &results);
    if table.len() > rows.len() {
        let left_out = table.len() - rows.len();
        document["runs"][0]["properties"] = json!({"findings": table.len(), "leftOut": left_out});
    }
    document
}

fn rule_of(row: &Row<'_>) -> String {
    format!("{}/{}", row.finding.oracle, row.finding.rule)
}

fn finding(row: &Row<'_>) -> Value {
    let f = row.finding;
    let level = match row.since {
        _ if f.rule == DIFFERENCE => "note",
        Since::Gone => "none",
        Since::Flaky | Since::NotRetested => "warning",
        Since::New | Since::Still => "error",
    };
    let kind = if level == "none" { "pass" } else { "fail" };
    let baseline = match row.since {
        Since::New => "new",
        Since::Still | Since::NotRetested => "unchanged",
        Since::Flaky => "updated",
        Since::Gone => "absent",
    };
    let said = f.allowed().map(|s| format!(": {s}")).unwrap_or_default();
    let note = row.note();
    let noted = if note.is_empty() { String::new() } else { format!(" ({note})") };
    let text = format!(
        "{} {} {}{said}{noted}\n\n{}\n\n{}",
        f.oracle,
        f.rule,
        row.models(),
        f.reduced.trim_end(),
        f.replay
    );
    let mut out = json!({
        "ruleId": rule_of(row),
        "level": level,
        "kind": kind,
        "message": {"text": text},
        "baselineState": baseline,
        "partialFingerprints": {"finding/v1": f.id},
        "locations": [{"logicalLocations": [{"name": f.id.short(), "fullyQualifiedName": format!("{}/{}", f.campaign, f.id)}]}],
        "occurrenceCount": f.count.max(1),
        "properties": {"since": row.since, "note": note, "state": f.state.words()},
    });
    if let Some(s) = row.suppressed {
        let why = format!("{} until {}: {}", s.owner, super::dates::day(s.until_ms), s.why);
        out["suppressions"] = json!([{"kind": "external", "status": "accepted", "justification": why}]);
    }
    out
}

//! Documents for code review: valid under the schema of the standard, within what GitHub publishes, and telling where and how.
//!
//! `MOIRE_SARIF_TOOL` names Microsoft's `Sarif.Multitool` (npm: `@microsoft/sarif-multitool`), which then looks at the documents, too.

use super::cli::moire;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// GitHub, "SARIF results exceed one or more limits": what is shown of a document. More than that is left out or refused.
const RUNS: usize = 20;
const RESULTS: usize = 5_000;
const RULES: usize = 25_000;
const TAGS: usize = 10;
const LOCATIONS: usize = 100;
const STEPS: usize = 1_000;
/// GitHub, "SARIF support for code scanning": most characters of the descriptions of a rule.
const WORDS: usize = 1_024;

const RACE: &str = include_str!("../../../../deploy/examples/message.litmus");
const HANG: &str =
    "moire \"h\"\nP0 (gpu 0, cta 0) {\n  bar.sync 1, 64;\n}\nP1 (gpu 0, cta 0) {\n  bar.arrive 2, 64;\n}\n";
const WRONG: &str = "moire \"c\"\n.global .b32 x;\nP0 (gpu 0, cta 0) {\n  ld.relaxed.gpu.u32 r0, [x];\n}\n~exists (P0:r0 == 0)\n";
const MODULE: &str = ".version 8.7\n.target sm_90a\n.address_size 64\n.file 1 \"handover.py\"\n.file 2 \"/usr/include/far.h\"\n\n\
    .visible .entry handover()\n.reqntid 64\n{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n.shared .align 4 .b32 word;\n\
    mov.u32 %r0, %tid.x;\nsetp.ne.u32 %p0, %r0, 0;\nsetp.ne.u32 %p1, %r0, 32;\n.loc 1 2 5\n\
    \t@!%p0 st.shared.b32 [word], 1;\n@%p1 bra DONE;\n.loc 2 7 1, function_name $I, inlined_at 1 3 1\n\
    ld.shared.b32 %r1, [word];\nDONE:\nret;\n}\n";
const SOURCE: &str = "def handover():\n    word = 1\n    read(word)\n";

/// Answers in a folder of these files.
fn check(files: &[(&str, &str)], words: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
    let out = moire(folder.path(), &[&["check", "--format", "sarif"], words].concat());
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(!text.contains(&*folder.path().to_string_lossy()), "no path of this machine: {text}");
    let document = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    valid(&document);
    document
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// What holds of every document.
fn valid(document: &Value) {
    let schema = include_str!("../../../tests/data/sarif-2.1.0.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let errors: Vec<String> =
        schema.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new(), "{document:#}");
    assert!(list(document, "runs").len() <= RUNS);
    let run = &document["runs"][0];
    let rules = list(&run["tool"]["driver"], "rules");
    assert!(rules.len() <= RULES && list(run, "results").len() <= RESULTS);
    let mut known = BTreeSet::new();
    for rule in rules {
        known.insert(rule["id"].as_str().unwrap());
        for (about, most) in [("shortDescription", WORDS), ("fullDescription", WORDS), ("help", usize::MAX)] {
            let text = rule[about]["text"].as_str().unwrap();
            assert!(!text.is_empty() && text.chars().count() <= most, "{rule:#}");
        }
        assert!(rule["help"]["markdown"].as_str().is_some_and(|t| !t.is_empty()), "{rule:#}");
        assert!(list(&rule["properties"], "tags").len() <= TAGS);
    }
    list(run, "results").iter().for_each(|result| fits(result, &known));
    multitool(document);
}

/// What holds of every result.
fn fits(result: &Value, known: &BTreeSet<&str>) {
    assert!(known.contains(result["ruleId"].as_str().unwrap()), "{result:#}");
    let (own, related) = (list(result, "locations"), list(result, "relatedLocations"));
    assert!(own.len() == 1 && own.len() + related.len() <= LOCATIONS, "{result:#}");
    let flows = list(result, "codeFlows").iter().flat_map(|f| list(f, "threadFlows"));
    let steps: Vec<&Value> = flows.flat_map(|f| list(f, "locations")).collect();
    assert!(steps.len() <= STEPS, "{result:#}");
    let order: BTreeSet<u64> = steps.iter().map(|s| s["executionOrder"].as_u64().unwrap()).collect();
    assert_eq!(order.len(), steps.len(), "one order of all events: {result:#}");
    for place in own.iter().chain(related).chain(steps.iter().map(|s| &s["location"])) {
        let place = &place["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        let relative = place["artifactLocation"]["uriBaseId"] == "SRCROOT" && !uri.starts_with('/');
        assert!(relative || uri.starts_with("file:///"), "{result:#}");
        if let Some(region) = place["region"].as_object() {
            let of = |name: &str| region[name].as_u64().unwrap();
            assert!(of("startLine") == of("endLine") && of("startColumn") < of("endColumn"), "{result:#}");
        }
    }
}

/// Asks Microsoft's tool, with its rules for GitHub.
fn multitool(document: &Value) {
    let Ok(tool) = std::env::var("MOIRE_SARIF_TOOL") else {
        return println!("skipped: MOIRE_SARIF_TOOL names no Sarif.Multitool");
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("moire.sarif");
    std::fs::write(&file, document.to_string()).unwrap();
    let out =
        Command::new(tool).arg("validate").arg(&file).args(["--rule-kind", "Sarif;Ghas"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("Analysis completed successfully") && !text.contains(": error "), "{text}");
}

/// The one result of a rule.
fn result<'v>(document: &'v Value, rule: &str) -> &'v Value {
    let mut own = list(&document["runs"][0], "results").iter().filter(|r| r["ruleId"] == rule);
    let one = own.next().unwrap_or_else(|| panic!("{rule}: {document:#}"));
    assert!(own.next().is_none(), "{rule}: {document:#}");
    one
}

/// File, line and columns of a place.
fn place(value: &Value) -> (&str, u64, u64, u64) {
    let (place, region) = (&value["physicalLocation"], &value["physicalLocation"]["region"]);
    let of = |name: &str| region[name].as_u64().unwrap_or_default();
    (place["artifactLocation"]["uri"].as_str().unwrap(), of("startLine"), of("startColumn"), of("endColumn"))
}

#[test]
fn a_race_has_both_accesses_and_the_execution() {
    let document = check(&[("message.litmus", RACE)], &["message.litmus"]);
    let race = result(&document, "race");
    assert_eq!(place(&race["locations"][0]), ("message.litmus", 6, 3, 25));
    let related: Vec<_> = list(race, "relatedLocations").iter().map(place).map(|p| (p.0, p.1)).collect();
    assert_eq!(related, [("message.litmus", 6), ("message.litmus", 14)]);
    let text = race["message"]["text"].as_str().unwrap();
    assert!(text.contains("write against read of `data`, line 6 of P0 and line 14 of P1"), "{text}");
    assert!(text.contains("; mend: add `fence.release.gpu`"), "{text}");
    let flows = list(&race["codeFlows"][0], "threadFlows");
    let named: Vec<&str> = flows.iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert_eq!(named, ["P0", "P1"]);
    let mut steps: Vec<(u64, u64, bool)> = Vec::new();
    for step in flows.iter().flat_map(|f| list(f, "locations")) {
        let order = step["executionOrder"].as_u64().unwrap();
        steps.push((order, place(&step["location"]).1, step["importance"] == "essential"));
    }
    steps.sort_unstable();
    let expected = [(1, 6, true), (2, 7, false), (3, 11, false), (4, 14, true)];
    assert_eq!(steps, expected, "the flag is read behind its write");
}

#[test]
fn a_hang_has_its_waits_and_a_condition_its_execution() {
    let files = [("h.litmus", HANG), ("c.litmus", WRONG), ("n.litmus", "moire \"t\"\nP0 {\n  st.weaj;\n}\n")];
    let document = check(&files, &["h.litmus", "c.litmus", "n.litmus", "absent.litmus"]);
    let hang = result(&document, "hang");
    assert_eq!(place(&hang["locations"][0]), ("h.litmus", 3, 3, 18));
    let waits = hang["relatedLocations"][0]["message"]["text"].as_str().unwrap();
    assert!(waits.starts_with("P0 waits for the barrier"), "{waits}");
    assert!(!list(hang, "codeFlows").is_empty(), "{hang:#}");
    let condition = result(&document, "condition");
    assert_eq!(condition["message"]["text"], "the condition of the text is not as stated");
    assert!(!list(condition, "codeFlows").is_empty(), "{condition:#}");
    assert_eq!(result(&document, "unread")["level"], "error");
}

#[test]
fn a_compiled_kernel_is_shown_in_its_source() {
    let files = [("k.ptx", MODULE), ("handover.py", SOURCE)];
    let race = |document: &Value| result(document, "race").clone();
    let here = race(&check(&files, &["k.ptx"]));
    assert_eq!(place(&here["locations"][0]), ("handover.py", 2, 5, 13));
    let related: Vec<_> = list(&here, "relatedLocations").iter().map(place).map(|p| (p.0, p.1)).collect();
    // What is inlined from elsewhere is shown at its call.
    assert_eq!(related, [("handover.py", 2), ("k.ptx", 17), ("handover.py", 3), ("k.ptx", 20)], "{here:#}");
    let alone = race(&check(&files[..1], &["k.ptx"]));
    assert_eq!(place(&alone["locations"][0]), ("k.ptx", 17, 2, 32), "the source is not there");
    assert_eq!(here["partialFingerprints"], alone["partialFingerprints"]);
}

#[test]
fn fingerprints_stay_while_lines_move() {
    let print = |name: &str, text: &str| {
        let document = check(&[(name, text)], &[name]);
        let print =
            result(&document, "race")["partialFingerprints"]["problem/v1"].as_str().unwrap().to_owned();
        assert!(print.len() == 32, "{print}");
        print
    };
    let moved = RACE.replacen("P0 ", "// a line\n// and one more\n\nP0 ", 1);
    assert_ne!(moved, RACE);
    assert_eq!(print("m.litmus", RACE), print("m.litmus", &moved));
    assert_ne!(print("m.litmus", RACE), print("m.litmus", &RACE.replace("data", "other")));
    let numbered = MODULE.replace("%r1", "%r3").replace(".loc 1 2 5", "// moved\n.loc 1 12 5");
    assert_eq!(print("k.ptx", MODULE), print("k.ptx", &numbered));
}

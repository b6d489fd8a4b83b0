//! Two nights over the same findings: the words for each finding in all five formats, and the validity of the formats.
//!
//! The coordinator, its service and the worker's lease loop are real; the engine is told what to find. SARIF and the
//! JSON lines are checked against their schemas. JUnit is checked against the rules of `junit-10.xsd`, and also against
//! the file itself if `xmllint` is installed.

use moire_coordinator::nightly::{self, NightPlan, Spool, Stop};
use moire_coordinator::report::{Findings, Grade, Night, Score};
use moire_coordinator::{Local, lease::Config, v1};
use moire_corpus::{Finding, Mark, Since, Store};
use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Reduced, Verification};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An engine that finds one claim for each word in `finds`, one per item, and answers verifications as `answers` says.
#[derive(Default)]
struct Told {
    finds: Vec<&'static str>,
    answers: BTreeMap<&'static str, &'static str>,
    asked: AtomicU64,
}

impl Engine for Told {
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }
    fn fingerprint(&self) -> String {
        "told-1".to_owned()
    }
    fn run(&self, item: &Item, _: &Cancel) -> ItemReport {
        let word = self.finds.get(usize::try_from(item.index).unwrap());
        let claims = word.map(|w| Claim {
            oracle: "told".to_owned(),
            direction: if *w == "differs" { Direction::Difference } else { Direction::Subset },
            program: format!("{w} <&> \"|\""),
            witness:
                r#"{"model":"sc","outcome":"r0 = 1","events":[{"id":0,"thread":"P0","label":"W x","value":1},
                {"id":1,"thread":"P1","label":"R x","value":1}],"edges":[{"kind":"rf","from":0,"to":1}]}"#
                    .to_owned(),
            axioms: vec![vec![(*w).to_owned()]],
            ..Claim::default()
        });
        ItemReport { claims: claims.into_iter().collect(), ..ItemReport::default() }
    }
    fn verify(&self, claim: &Claim, _: &Cancel) -> Verification {
        let word = claim.program.split(' ').next().unwrap();
        match self.answers.get(word).copied().unwrap_or("shows") {
            "holds" => Verification::Refuted("it holds".to_owned()),
            "silent" => Verification::Abstained("it needs a tool that is not here".to_owned()),
            "wavers" if self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => {
                Verification::Refuted("not this time".to_owned())
            }
            _ => Verification::Confirmed,
        }
    }
    fn minimise(&self, claim: &Claim, _: Budget, _: &Cancel, _: &mut dyn FnMut(&Claim)) -> Reduced {
        Reduced { claim: claim.clone(), tried: 1, normal: true }
    }
}

/// Connects a worker with this engine, runs a night, and records it.
async fn night(dir: &Path, engine: Told, programs: u64) -> Night {
    let local = Local::start(dir, "127.0.0.1:0".parse().unwrap(), Config::default()).await.unwrap();
    let options = moire_worker::Options { name: "w".to_owned(), threads: 2 };
    let (addr, engine) = (local.addr(), Arc::new(engine));
    let worker = tokio::spawn(async move { _ = moire_worker::work(addr, engine, options).await });
    let linked = moire_worker::link::Link::from(local.addr()).connect().await.unwrap();
    let mut client = v1::control_service_client::ControlServiceClient::new(linked);
    while client.get_status(v1::GetStatusRequest {}).await.unwrap().get_ref().workers == 0 {
        tokio::task::yield_now().await;
    }
    let campaign =
        v1::CampaignSpec { profile: "told".to_owned(), programs, seed: 1, ..v1::CampaignSpec::default() };
    let plan = NightPlan { campaigns: vec![campaign], runs: 4, retests: None };
    let go: Stop = Arc::new(|| None);
    let score = |s: &v1::CampaignStatus| {
        let says = format!("1 of 1 caught in {} programs", s.programs);
        vec![Score { name: "canaries".to_owned(), grade: Grade::Good, says }]
    };
    let place = tempfile::tempfile().unwrap();
    let (mut night, spool) = nightly::run(&mut client, &plan, &go, place, score, |_| {}).await.unwrap();
    kept(&mut night, &spool);
    nightly::close(&mut client, &night).await.unwrap();
    local.stop().await.unwrap();
    worker.abort();
    night
}

fn word(f: &Finding) -> &str {
    f.reduced.split(' ').next().unwrap()
}

/// Takes the findings into memory, and checks that a report from the file equals one from memory.
fn kept(night: &mut Night, spool: &Spool) {
    night.findings = spool.each().map(|f| f.unwrap().into_owned()).collect();
    let (mut from_file, mut from_memory) = (Vec::new(), Vec::new());
    let files = night.write(spool, &mut from_file).unwrap();
    assert_eq!(files, night.write(&night.findings, &mut from_memory).unwrap());
    assert_eq!(from_file, from_memory);
}

fn id(night: &Night, wanted: &str) -> String {
    night.findings.iter().find(|f| word(f) == wanted).unwrap().id.to_string()
}

fn said(night: &Night) -> BTreeMap<String, (Since, bool)> {
    night.rows().iter().map(|r| (word(r.finding).to_owned(), (r.since, r.fails()))).collect()
}

/// The change of each finding in the second night, and whether it fails the night.
const EXPECTED: [(&str, Since, bool); 8] = [
    ("back", Since::New, true),
    ("differs", Since::Still, false),
    ("fixed", Since::Gone, false),
    ("flaky", Since::Flaky, true),
    ("known", Since::Still, false),
    ("new", Since::New, true),
    ("still", Since::Still, false),
    ("untested", Since::NotRetested, false),
];

/// Runs two nights. Between them a person closes one finding, which comes back, and suppresses another.
async fn two_nights() -> Night {
    let dir = tempfile::tempdir().unwrap();
    let before = ["still", "fixed", "flaky", "untested", "differs", "known", "back"];
    let first = night(dir.path(), Told { finds: before.to_vec(), ..Told::default() }, 10).await;
    assert_eq!(first.rows().len(), before.len());
    assert!(first.rows().iter().all(|r| r.since == Since::New));
    let mut store = Store::open(dir.path(), moire_corpus::Options::default()).unwrap().0;
    let now = first.at_ms + 1;
    let until_ms = now + 86_400_000;
    store.mark(now, &id(&first, "known"), &Mark::Suppress { until_ms }, "a person", "known").unwrap();
    store.mark(now, &id(&first, "back"), &Mark::Fixed, "a person", "repaired").unwrap();
    let untested = store.named(&id(&first, "untested")).unwrap();
    drop(store);
    // The store counts milliseconds, and the second night must be later.
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let answers = BTreeMap::from([("fixed", "holds"), ("flaky", "wavers"), ("untested", "silent")]);
    let second = night(dir.path(), Told { finds: vec!["new"], answers, ..Told::default() }, 10).await;
    assert_eq!(id(&second, "untested"), untested.id.to_string());
    second
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_formats_show_the_changes_between_two_nights() {
    let night = two_nights().await;
    let expected: BTreeMap<_, _> = EXPECTED.iter().map(|(w, s, f)| ((*w).to_owned(), (*s, *f))).collect();
    assert_eq!(said(&night), expected);
    let files: BTreeMap<_, _> = night.files().unwrap().into_iter().collect();
    assert_eq!(files.len(), 5);
    json_lines(&night, &files["findings.jsonl"]);
    sarif(&night, &files["report.sarif"]);
    junit(&night, &files["junit.xml"]);
    markdown(&night, &files["summary.md"]);
    html(&night, &files["report.html"]);
    let fixed = night.findings.iter().find(|f| word(f) == "fixed").unwrap();
    assert_eq!(fixed.state, moire_corpus::FindingState::Fixed);
    assert_eq!(fixed.history[0].why, "did not show in 4 of 4 runs");
}

/// Checks the change that a format gives for each finding, by id.
fn check(night: &Night, said: &BTreeMap<String, String>) {
    let expected = EXPECTED.map(|(w, since, _)| (id(night, w)[..16].to_owned(), since.word().to_owned()));
    assert_eq!(*said, BTreeMap::from(expected));
}

fn valid(schema: &str, value: &Value) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new(), "{value:#}");
}

fn json_lines(night: &Night, text: &str) {
    let schema = include_str!("../../../deploy/schema/findings.json");
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    lines.iter().for_each(|line| valid(schema, line));
    let counts = serde_json::json!({"new": 2, "still": 2, "flaky": 1, "gone": 1, "not-retested": 1});
    assert_eq!(
        (&lines[0]["counts"], &lines[0]["suppressed"], &lines[0]["fails"]),
        (&counts, &1.into(), &true.into())
    );
    assert_eq!(lines[0]["regressions"], serde_json::json!({"held": 1, "untested": 0}));
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let said = lines[1..].iter().map(|l| {
        (text(&l["finding"]["id"])[..16].to_owned(), text(&l["since"]).replace("-retested", " re-tested"))
    });
    check(night, &said.collect());
    let note =
        |w: &str| lines[1..].iter().find(|l| l["finding"]["id"] == id(night, w)).map(|l| text(&l["note"]));
    assert_eq!(note("flaky").unwrap(), "showed in 2 of 4 runs");
    assert_eq!(note("untested").unwrap(), "it needs a tool that is not here");
    assert!(note("known").unwrap().contains("suppressed by a person until 20"));
    assert!(note("back").unwrap().ends_with("reopened by nightly: seen again"));
    // The schema refuses a line of a later version.
    let mut later = lines[1].clone();
    later["version"] = 3.into();
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert!(!jsonschema::is_valid(&schema, &later));
}

fn sarif(night: &Night, text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    valid(include_str!("../data/sarif-2.1.0.schema.json"), &document);
    let run = &document["runs"][0];
    let rules: BTreeSet<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["id"].as_str().unwrap())
        .collect();
    assert_eq!(rules, BTreeSet::from(["told/difference", "told/subset"]));
    let results = run["results"].as_array().unwrap();
    let said = results.iter().map(|r| {
        let id = r["partialFingerprints"]["finding/v1"].as_str().unwrap()[..16].to_owned();
        (id, r["properties"]["since"].as_str().unwrap().replace("-retested", " re-tested"))
    });
    check(night, &said.collect());
    let of =
        |w: &str| results.iter().find(|r| r["partialFingerprints"]["finding/v1"] == id(night, w)).unwrap();
    let state = |w: &str| of(w)["baselineState"].as_str().unwrap();
    let states = EXPECTED.map(|(w, ..)| state(w));
    let expected = ["new", "unchanged", "absent", "updated", "unchanged", "new", "unchanged", "unchanged"];
    assert_eq!(states, expected);
    assert!(results.iter().all(|r| rules.contains(r["ruleId"].as_str().unwrap())));
    assert_eq!(of("known")["suppressions"][0]["status"], "accepted");
    assert_eq!((&of("differs")["level"], &of("fixed")["kind"]), (&"note".into(), &"pass".into()));
    assert!(of("new")["message"]["text"].as_str().unwrap().contains("moire replay m1."));
}

/// The rules of `junit-10.xsd`: the attributes of each element, with required ones marked by `!`, and its children.
const XSD: [(&str, &[&str], &[&str]); 8] = [
    ("testsuites", &["name", "time", "tests", "failures", "errors"], &["testsuite"]),
    (
        "testsuite",
        &["!name", "!tests", "!failures", "!errors", "skipped", "time", "timestamp"],
        &["testcase", "properties", "system-out", "system-err"],
    ),
    (
        "testcase",
        &["!name", "classname", "time"],
        &["failure", "error", "skipped", "system-out", "system-err"],
    ),
    ("failure", &["type", "message"], &[]),
    ("error", &["type", "message"], &[]),
    ("skipped", &["type", "message"], &[]),
    ("system-out", &[], &[]),
    ("system-err", &[], &[]),
];

fn junit(night: &Night, text: &str) {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut path, mut said, mut name) = (vec![String::new()], BTreeMap::new(), String::new());
    loop {
        let (start, empty) = match reader.read_event().unwrap() {
            Event::Start(start) => (start, false),
            Event::Empty(start) => (start, true),
            Event::End(_) => {
                path.pop();
                continue;
            }
            Event::Eof => break,
            _ => continue,
        };
        let tag = String::from_utf8(start.name().as_ref().to_vec()).unwrap();
        let attributes: BTreeMap<String, String> = start
            .attributes()
            .map(Result::unwrap)
            .map(|a| {
                (
                    String::from_utf8(a.key.as_ref().to_vec()).unwrap(),
                    a.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap().into_owned(),
                )
            })
            .collect();
        let (_, known, _) = XSD.iter().find(|row| row.0 == tag).unwrap_or_else(|| panic!("<{tag}>"));
        let parent = XSD.iter().find(|row| row.0 == path.last().unwrap());
        assert!(parent.is_none_or(|p| p.2.contains(&tag.as_str())), "<{tag}> in {path:?}");
        for name in attributes.keys() {
            assert!(known.iter().any(|k| k.trim_start_matches('!') == name), "{name} of <{tag}>");
        }
        assert!(
            known.iter().all(|k| k.strip_prefix('!').is_none_or(|k| attributes.contains_key(k))),
            "<{tag}>"
        );
        match tag.as_str() {
            "testcase" if attributes["name"] != "canaries" => {
                name = attributes["name"][..16].to_owned();
                said.insert(name.clone(), "gone".to_owned());
            }
            "failure" => _ = said.insert(name.clone(), attributes["type"].clone()),
            "skipped" => {
                let title = attributes["message"].split([':', ';']).next().unwrap().to_owned();
                said.insert(name.clone(), title);
            }
            _ => {}
        }
        if !empty {
            path.push(tag);
        }
    }
    check(night, &said);
    for part in ["tests=\"9\"", "failures=\"4\"", "skipped=\"3\""] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("junit.xml"), text).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/junit-10.xsd");
    let mut lint = std::process::Command::new("xmllint");
    lint.arg("--noout").arg("--schema").arg(schema).arg(dir.path().join("junit.xml"));
    match lint.output() {
        Ok(out) => assert!(out.status.success(), "{}\n{text}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => println!("xmllint is not installed: JUnit is checked only against the rules in this test"),
    }
}

fn markdown(night: &Night, text: &str) {
    let mut said = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.split(" (").next().unwrap().to_owned();
        } else if let Some(row) = line.strip_prefix("- `") {
            said.insert(row[..16].to_owned(), section.clone());
        }
    }
    check(night, &said);
    for line in [
        "| new | 2 |",
        "| still | 2 |",
        "| flaky | 1 |",
        "| gone | 1 |",
        "| not re-tested | 1 |",
        "| suppressed | 1 |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("showed in 2 of 4 runs") && text.contains("it needs a tool that is not here"));
}

fn html(night: &Night, text: &str) {
    let mut said = BTreeMap::new();
    for item in text.split("<details class=\"finding\" id=\"f").skip(1) {
        let since = item.split("data-since=\"").nth(1).unwrap().split('"').next().unwrap();
        said.insert(item[..16].to_owned(), since.replace('-', " ").replace("re tested", "re-tested"));
        assert!(item.contains("<svg role=\"img\"") && item.contains("moire replay m1."));
        assert!(item.contains("&#60;&#38;&#62;"), "escaped: {item}");
    }
    check(night, &said);
    for outside in ["http:", "https:", "src=", "<link", "@import", "url("] {
        let found = text.match_indices(outside).filter(|(at, _)| !text[*at..].starts_with("url(#a)")).count();
        assert_eq!(found, 0, "{outside}: the page must work offline");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_that_is_stopped_says_so() {
    let dir = tempfile::tempdir().unwrap();
    night(dir.path(), Told { finds: vec!["still"], ..Told::default() }, 5).await;
    let local = Local::start(dir.path(), "127.0.0.1:0".parse().unwrap(), Config::default()).await.unwrap();
    let linked = moire_worker::link::Link::from(local.addr()).connect().await.unwrap();
    let mut client = v1::control_service_client::ControlServiceClient::new(linked);
    let campaign =
        v1::CampaignSpec { profile: "told".to_owned(), programs: 1_000_000, ..v1::CampaignSpec::default() };
    let plan = NightPlan { campaigns: vec![campaign], runs: 2, retests: Some(5) };
    let stop: Stop = Arc::new(|| Some("it was told to"));
    let none = |_: &v1::CampaignStatus| Vec::new();
    let place = || tempfile::tempfile().unwrap();
    let refused = nightly::run(&mut client, &plan, &stop, place(), none, |_| {}).await;
    let error = refused.err().unwrap();
    assert!(error.to_string().contains("no worker is connected"), "{error}");
    let options = moire_worker::Options { name: "w".to_owned(), threads: 1 };
    let addr = local.addr();
    let worker =
        tokio::spawn(async move { _ = moire_worker::work(addr, Arc::new(Told::default()), options).await });
    while client.get_status(v1::GetStatusRequest {}).await.unwrap().get_ref().workers == 0 {
        tokio::task::yield_now().await;
    }
    let (mut night, spool) = nightly::run(&mut client, &plan, &stop, place(), none, |_| {}).await.unwrap();
    kept(&mut night, &spool);
    local.stop().await.unwrap();
    worker.abort();
    assert!(night.campaigns.iter().any(|c| c.cut == "it was told to"), "{:?}", night.campaigns);
    let rows = night.rows();
    assert_eq!(
        (rows.len(), rows[0].since, rows[0].note().as_str()),
        (1, Since::NotRetested, "it was told to")
    );
}

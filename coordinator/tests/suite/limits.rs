//! Messages at and around every limit, in the encoding that takes most room, and stores whose records cannot be used: the
//! coordinator takes them or refuses them with a reason, and goes on; so does the next one on the same store.

use moire_coordinator::lease::WorkerId;
use moire_coordinator::v1::{
    self, explore_step::Step, from_worker::Message as Up, lease::Work, to_worker::Message as Down,
};
use moire_coordinator::{Error, Inline};
use moire_corpus::{Campaign, Options, VALUE_BYTES_MAX};
use std::path::Path;
use tonic::Code;

fn open(dir: &Path) -> Inline {
    let options = Options { reserve_bytes: 4096, cache_bytes: 1 << 20, ..Options::default() };
    Inline::open(dir, options).unwrap().0
}

fn hello() -> v1::Hello {
    v1::Hello { protocol: moire_proto::PROTOCOL, fingerprint: "f".repeat(64), ..v1::Hello::default() }
}

fn say(inline: &mut Inline, worker: WorkerId, message: Up) {
    inline.message(worker, v1::FromWorker { message: Some(message) });
}

/// A name of `bytes` bytes that takes most room as JSON: control characters, the first of them counting.
fn worst(n: usize, bytes: usize) -> String {
    let digit = |k: usize| char::from(1 + u8::try_from(n >> (3 * k) & 7).unwrap());
    (0..bytes).map(|k| if k < 6 { digit(k) } else { '\u{1}' }).collect()
}

/// What a hostile item is full of.
#[derive(Clone, Copy, Debug)]
enum Flood {
    Reasons,
    Canaries,
    Mutants,
    Classes,
    All,
}

fn claim(name: String) -> v1::Claim {
    v1::Claim { oracle: name, program: "moire \"x\"\n".to_owned(), ..v1::Claim::default() }
}

/// An item with 32 new names of this many bytes in each list of the flood.
fn item(index: u64, flood: Flood, bytes: usize) -> v1::ItemResult {
    let all = matches!(flood, Flood::All);
    let names = || (0..32).map(|k| worst(32 * usize::try_from(index).unwrap() + k, bytes));
    let mut item = v1::ItemResult { item: index, program: vec![1; 32], ..v1::ItemResult::default() };
    if all || matches!(flood, Flood::Reasons) {
        item.abstentions = names().map(|name| (name, u64::MAX)).collect();
    }
    if all || matches!(flood, Flood::Canaries) {
        item.canaries = names().map(|name| v1::Canary { name, caught: true }).collect();
    }
    if all || matches!(flood, Flood::Mutants) {
        let row = |name: String| v1::EngineResult {
            engine: format!("mutant/{name}"),
            verdict: "\u{2}".repeat(16),
            outcomes: vec![0; 32],
            leaves: vec![0; 32],
            executions: u64::MAX,
        };
        item.engines = names().map(row).collect();
    }
    if all || matches!(flood, Flood::Classes) {
        item.claims = names().map(claim).collect();
    }
    item
}

/// A worker that answers each lease on items with a flood, and refutes every claim. It comes again when it is sent away.
fn flood(inline: &mut Inline, flood: Flood, bytes: usize) -> v1::CampaignStatus {
    let mut worker = inline.hello(hello()).unwrap();
    say(inline, worker, Up::Credit(v1::Credit { leases: 8 }));
    for _ in 0..20_000 {
        inline.settle().unwrap();
        let status = inline.campaigns().unwrap().remove(0);
        if status.phase() == v1::CampaignPhase::Done {
            return status;
        }
        let before = inline.bad_messages();
        for message in inline.sent(worker).collect::<Vec<_>>() {
            let Some(Down::Lease(lease)) = message.message else { continue };
            let mut report = v1::Report { lease: lease.lease, epoch: lease.epoch, ..v1::Report::default() };
            match lease.work {
                Some(Work::Range(range)) => {
                    // A name that is too long is refused with the whole report, so in the end an honest one comes.
                    let bytes = if before > 3 { 16 } else { bytes };
                    report.items = (range.from..range.to).map(|i| item(i, flood, bytes)).collect();
                    report.done = true;
                }
                _ => {
                    let answer = v1::verify_result::Answer::Refuted.into();
                    report.verify = Some(v1::VerifyResult { answer, ..v1::VerifyResult::default() });
                }
            }
            say(inline, worker, Up::Report(report));
            say(inline, worker, Up::Credit(v1::Credit { leases: 1 }));
        }
        if inline.bad_messages() > before {
            worker = inline.hello(hello()).unwrap();
            say(inline, worker, Up::Credit(v1::Credit { leases: 8 }));
        }
    }
    panic!("the campaign does not end");
}

#[test]
fn no_report_is_too_much_for_the_record_of_its_campaign() {
    for kind in [Flood::Reasons, Flood::Canaries, Flood::Mutants, Flood::Classes, Flood::All] {
        for bytes in [16, 17, 100, 101] {
            let dir = tempfile::tempdir().unwrap();
            let mut inline = open(dir.path());
            let programs = 128;
            let spec = v1::CampaignSpec { name: "c".to_owned(), programs, ..v1::CampaignSpec::default() };
            inline.create(spec, false).unwrap();
            let end = flood(&mut inline, kind, bytes);
            assert_eq!(end.programs, programs, "{kind:?} {bytes}");
            inline.close().unwrap();
            let again = open(dir.path()).campaigns().unwrap().remove(0);
            assert_eq!((again.digest, again.programs), (end.digest, programs), "{kind:?} {bytes}");
        }
    }
}

/// A worker's words for a class of claims, or for what only the coordinator counts, are not taken for the coordinator's.
#[test]
fn a_reason_does_not_pass_for_the_coordinators_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut inline = open(dir.path());
    let spec = v1::CampaignSpec { name: "c".to_owned(), programs: 1, ..v1::CampaignSpec::default() };
    inline.create(spec, false).unwrap();
    let worker = inline.hello(hello()).unwrap();
    say(&mut inline, worker, Up::Credit(v1::Credit { leases: 1 }));
    inline.settle().unwrap();
    let sent: Vec<_> = inline.sent(worker).collect();
    let lease =
        sent.into_iter().find_map(|m| if let Some(Down::Lease(l)) = m.message { Some(l) } else { None });
    let lease = lease.unwrap();
    let words = ["quarantined", "refuted", "claims/fake/0123456789abcdef"];
    let abstentions = words.map(|word| (word.to_owned(), 100)).into();
    let items = vec![v1::ItemResult { program: vec![0; 32], abstentions, ..v1::ItemResult::default() }];
    let report =
        v1::Report { lease: lease.lease, epoch: lease.epoch, items, done: true, ..v1::Report::default() };
    say(&mut inline, worker, Up::Report(report));
    inline.settle().unwrap();
    let end = inline.campaigns().unwrap().remove(0);
    assert_eq!((end.phase(), end.quarantined, end.refuted), (v1::CampaignPhase::Done, 0, 0));
    assert_eq!((end.programs, moire_coordinator::judged(&end)), (1, 0));
    let counted = [("not judged by any engine", 1), ("other reasons", 300)];
    assert_eq!(end.abstentions, counted.map(|(why, n)| (why.to_owned(), n)).into());
}

#[test]
fn marks_fit_their_keys_or_are_refused() {
    const TREE: &str = "tree-made-up";
    let dir = tempfile::tempdir().unwrap();
    let mut inline = open(dir.path());
    let asked = v1::Exploration {
        program: "any".to_owned(),
        fingerprint: vec![7; 32],
        tree: TREE.to_owned(),
        ..v1::Exploration::default()
    };
    inline.explore(asked.clone()).unwrap();
    let (mut kept, mut refused) = (0, 0);
    for bytes in (470..=515).chain([2000]) {
        let worker = inline.hello(v1::Hello { capabilities: vec![TREE.to_owned()], ..hello() }).unwrap();
        say(&mut inline, worker, Up::Credit(v1::Credit { leases: 1 }));
        inline.settle().unwrap();
        let sent: Vec<_> = inline.sent(worker).collect();
        let lease = sent
            .iter()
            .find_map(|m| if let Some(Down::Lease(l)) = &m.message { Some(l.clone()) } else { None });
        let lease = lease.expect("the piece is free again");
        let before = inline.bad_messages();
        // The longest node there is, so that both key and value are at their limits.
        let path = vec![u32::MAX; moire_proto::NODE_MAX];
        let marks = [(worst(bytes, bytes), v1::Node { path })].into();
        let explored = Some(v1::Explored { complete: 1, marks, ..v1::Explored::default() });
        let step = Some(Step::Reached(v1::Node { path: vec![u32::try_from(bytes).unwrap()] }));
        let explore = Some(v1::ExploreStep { step, explored });
        let report = v1::Report { lease: lease.lease, epoch: lease.epoch, explore, ..v1::Report::default() };
        say(&mut inline, worker, Up::Report(report));
        inline.settle().unwrap();
        match inline.bad_messages() > before {
            true => refused += 1,
            false => kept += 1,
        }
        inline.gone(worker);
    }
    assert_eq!((kept, refused), (8, 39), "477 bytes are the most");
    inline.close().unwrap();
    let again = open(dir.path()).explore(asked).unwrap();
    assert_eq!((again.explored.unwrap().complete, again.failed.as_str()), (8, ""));
}

#[test]
fn a_campaign_that_would_outgrow_its_record_is_refused() {
    let (mut taken, mut refused) = (0, 0);
    for bytes in (60_000..VALUE_BYTES_MAX).step_by(97).chain([30_000, VALUE_BYTES_MAX - 1, 96_000]) {
        let dir = tempfile::tempdir().unwrap();
        let mut inline = open(dir.path());
        let words = |bytes: usize| {
            let whole = std::iter::repeat_n("n".repeat(500), bytes / 503);
            whole.chain(["n".repeat(bytes % 503)]).collect::<Vec<_>>()
        };
        let (oracles, needs) = (words(bytes / 2), words(bytes - bytes / 2));
        let spec = v1::CampaignSpec {
            name: "c".to_owned(),
            programs: 10,
            oracles,
            needs,
            ..v1::CampaignSpec::default()
        };
        match inline.create(spec, false) {
            Err(Error::Status(status)) => {
                assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
                refused += 1;
                continue;
            }
            created => created.unwrap(),
        };
        taken += 1;
        // The first worker's fingerprint goes into the record; each start makes its epoch longer.
        inline.hello(v1::Hello { fingerprint: "\u{1}".repeat(21), ..hello() }).unwrap();
        inline.settle().unwrap();
        let pause =
            v1::SetCampaignStateRequest { name: "c".to_owned(), phase: v1::CampaignPhase::Cancelled.into() };
        inline.set_state(&pause).unwrap();
        inline.close().unwrap();
        for _ in 0..3 {
            let mut again = open(dir.path());
            assert_eq!(again.campaigns().unwrap().len(), 1);
            again.close().unwrap();
        }
    }
    assert!(taken > 10 && refused > 10, "{taken} {refused}");
}

/// An export with these records, as `moire store import` takes it.
fn export(records: &[(Vec<u8>, String)]) -> String {
    let mut lines = vec!["{\"moire_export\":1}".to_owned()];
    let mut records = records.to_vec();
    records.sort();
    for (key, value) in &records {
        let key: String = key.iter().map(|b| format!("{b:02x}")).collect();
        let value = serde_json::to_string(value).unwrap();
        lines.push(format!("{{\"record\":{{\"key\":\"{key}\",\"value\":{{\"text\":{value}}}}}}}"));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let hash = blake3::hash(text.as_bytes());
    format!("{text}{{\"end\":{{\"lines\":{},\"blake3\":\"{hash}\"}}}}\n", lines.len())
}

/// Records that read well, and that no coordinator can go on with: it starts all the same, says so, and serves the rest.
#[test]
fn a_start_does_not_die_of_what_is_in_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = (dir.path().join("forged.jsonl"), dir.path().join("store"));
    let campaign = |name: &str, change: fn(&mut Campaign)| {
        let mut campaign = Campaign { name: name.to_owned(), epoch: 1, ..Campaign::default() };
        campaign.limits.programs = Some(10);
        change(&mut campaign);
        serde_json::to_string(&campaign).unwrap()
    };
    let full = |campaign: &mut Campaign| {
        campaign.epoch = 9;
        let size = serde_json::to_vec(&*campaign).unwrap().len();
        campaign.profile = "p".repeat(VALUE_BYTES_MAX - size);
    };
    let exploration = serde_json::to_string(&moire_corpus::Exploration::default()).unwrap();
    let records = [
        (b"c/good".to_vec(), campaign("good", |_| {})),
        (b"c/key".to_vec(), campaign("other", |_| {})),
        (b"c/last".to_vec(), campaign("last", |c| c.epoch = u32::MAX)),
        (b"c/full".to_vec(), campaign("full", full)),
        ([&b"x/"[..], &[1; 32]].concat(), exploration),
    ];
    std::fs::write(&file, export(&records)).unwrap();
    moire_corpus::import(&file, &store).unwrap();
    for _ in 0..2 {
        let mut inline = open(&store);
        inline.settle().unwrap();
        let names: Vec<_> = inline.campaigns().unwrap().into_iter().map(|c| c.spec.unwrap().name).collect();
        assert_eq!(names, ["good"]);
        assert!(inline.metrics().unwrap().contains("moire_set_aside 4\n"), "{}", inline.metrics().unwrap());
        let spec = v1::CampaignSpec { name: "full".to_owned(), ..v1::CampaignSpec::default() };
        let Err(Error::Status(status)) = inline.create(spec, true) else { panic!("it is set aside") };
        assert!(status.message().contains("set aside"), "{status:?}");
        inline.close().unwrap();
    }
}

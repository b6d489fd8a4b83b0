//! The oracles about devices, on stand-ins: drawn programs break no rule, a lie is claimed and seen again, and what is not
//! seen again is not refuted.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_gpu::{Sampled, StandIn};
use moire_proto::needs;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Plan, Source, Verification};
use moire_worker::oracle::{Host, Oracles, Processes, Within};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

const NAME: &str = "stand-in";

fn within(device: StandIn) -> Oracles {
    Oracles::with_device(Some(Arc::new(Within::new(device))))
}

fn honest() -> Oracles {
    within(StandIn::new(64))
}

fn lying() -> Oracles {
    within(StandIn::lying(64))
}

fn run(oracles: &Oracles, oracle: &str, source: Source, index: u64) -> ItemReport {
    let plan = Plan { oracles: vec![oracle.to_owned()], ..Plan::default() };
    oracles.run(&Item { plan: Arc::new(plan), index, source }, &Cancel::new())
}

fn drawn(oracles: &Oracles, index: u64) -> ItemReport {
    run(oracles, NAME, Source::Generated { seed: 21, profile: "core".into(), index }, index)
}

/// An exchange, and a store beside it.
const EXCHANGE: &str = "moire \"e\"\n.global .b32 x;\n\
    P0 (gpu 0, cta 0) { atom.relaxed.gpu.global.exch.b32 r0, [x], 1; }\n\
    P1 (gpu 0, cta 1) { st.relaxed.gpu.global.u32 [x], 2; ld.relaxed.gpu.global.u32 r1, [x]; }\n";

fn claimed() -> Claim {
    let mut report = run(&lying(), NAME, Source::Text(EXCHANGE.into()), 0);
    assert_eq!(report.claims.len(), 1, "{report:?}");
    report.claims.remove(0)
}

#[test]
fn drawn_programs_break_no_rule_and_are_not_silent() {
    let oracles = honest();
    let (mut judged, mut left) = (0, 0);
    for index in 0..128 {
        let report = drawn(&oracles, index);
        assert_eq!(report.claims, [], "item {index}");
        judged += report.engines.len();
        left += report.abstentions.len();
        assert_eq!(report.engines.len() + report.abstentions.len(), 1, "{report:?}");
        assert!(report.engines.iter().all(|row| needs::is_sampled(&row.engine) && row.executions > 100));
    }
    assert!(judged > 20 && left > 0, "{judged} judged, {left} left out");
    assert_eq!(drawn(&honest(), 3), drawn(&oracles, 3), "a stand-in depends on the program alone");
}

#[test]
fn a_lie_is_claimed_seen_again_and_reduced() {
    let oracles = lying();
    let claim = claimed();
    assert_eq!(claim.specs(), [NAME, "ptx"]);
    let record: Sampled = serde_json::from_str(&claim.witness).unwrap();
    assert_eq!((record.device.name.as_str(), record.against.as_str()), ("stand-in that lies", "ptx"));
    assert!(record.kernel.contains(".exch.b32"), "{}", record.kernel);
    let kept: u64 = record.seen.iter().map(|(_, n)| n).sum();
    assert!(record.seen[0].0.regs[0] & 0x40 > 0 && kept == record.samples, "{record:?}");
    assert_eq!(oracles.verify(&claim, &Cancel::new()), Verification::Confirmed);
    let reduced = oracles.minimise(&claim, Budget { candidates: 500 }, &Cancel::new(), &mut |_| {});
    assert!(reduced.normal && reduced.claim.program.len() < EXCHANGE.len(), "{}", reduced.claim.program);
    assert!(reduced.claim.axioms.is_empty(), "no check forbids a value that nobody wrote");
    assert_eq!(oracles.verify(&reduced.claim, &Cancel::new()), Verification::Confirmed);
}

#[test]
fn what_is_not_seen_again_is_not_refuted() {
    let claim = claimed();
    let says = |oracles: &Oracles, claim: &Claim| match oracles.verify(claim, &Cancel::new()) {
        Verification::Abstained(why) => why,
        other => panic!("{other:?}"),
    };
    assert!(says(&honest(), &claim).starts_with("not seen again in "));
    assert_eq!(says(&Oracles::new(), &claim), "no device here");
    // A claim about a device is not one that a stand-in can say anything about.
    let mut hardware = Claim { oracle: "device".into(), ..claim.clone() };
    assert_eq!(says(&lying(), &hardware), "no device here");
    hardware.oracle = NAME.into();
    hardware.models[0] = moire_worker::job::Side::of("device:sm=90");
    assert_eq!(says(&lying(), &hardware), "it was seen on device:sm=90, which is not here");
}

#[test]
fn a_stand_in_is_no_device() {
    let has = |oracles: &Oracles, name: &str| oracles.capabilities().iter().any(|c| c.starts_with(name));
    assert!(has(&honest(), NAME) && !has(&honest(), "device"));
    assert!(!has(&Oracles::new(), NAME));
    let report = run(&honest(), "device", Source::Text(EXCHANGE.into()), 0);
    assert_eq!(report.abstentions.into_keys().collect::<Vec<_>>(), ["device: no device here"]);
    assert!(report.engines.is_empty());
    // An item whose plan names no oracle is for nobody's device.
    let report = run(&lying(), "self", Source::Text(EXCHANGE.into()), 0);
    assert!(report.claims.is_empty() && !report.engines.iter().any(|row| needs::is_sampled(&row.engine)));
}

/// What the lane takes beside words of global memory, each as engines and the stand-in understand it.
#[test]
fn engines_and_the_stand_in_mean_the_same() {
    let one = |memory: &str, body: &str| format!("moire \"t\"\n{memory}\nP0 (gpu 0, cta 0) {{ {body} }}\n");
    let with = |first: String, place: &str, body: &str| format!("{first}P1 (gpu 0, {place}) {{ {body} }}\n");
    let programs = [
        // A negative word, in a register of 32 and of 64 bits.
        one(
            ".global .b32 x = 0x80000000;",
            ".reg r, q; ld.weak.global.s32 r, [x]; ld.weak.global.s32 q, [x]; add.u64 q, q, 0;",
        ),
        one(
            ".global .b16 x = 0x80ff;",
            ".reg s, u, h; ld.weak.global.s8 s, [x+1]; ld.weak.global.u8 u, [x+1]; ld.weak.global.s16 h, [x];",
        ),
        one(
            ".global .b64 x[2];",
            "st.weak.global.u64 [x+8], 3; ld.weak.global.b128 r, [x]; atom.relaxed.gpu.global.exch.b128 q, [x], r;",
        ),
        one(
            ".global .b32 x = 5;\n.global .b32 y;",
            ".reg p, a, b; ld.weak.global.u32 a, [x]; setp.gt.s32 p, a, 4; min.u32 b, a, 3; selp.b32 b, b, 9, p; \
             sub.u32 b, b, 4; shr.u32 b, b, 1; @p st.weak.global.u32 [y], b; @!p st.weak.global.u32 [x], 1; \
             ld.weak.global.u32 a, [y];",
        ),
        with(
            one(".shared .b32 x = 5;", "st.weak.shared.u32 [x], 1; bar.sync 0;"),
            "cta 0, warp 1",
            "bar.sync 0; ld.weak.shared.u32 r0, [x]; ld.weak.u32 r1, [x];",
        ),
        with(
            one(
                ".shared .b32 x = 5;\n.global .b32 y;",
                "st.weak.shared.u32 [x], 1; st.weak.global.u32 [y], 2;",
            ),
            "cta 1",
            "ld.weak.shared.u32 r0, [x]; st.weak.shared.u32 [x], 7;",
        ),
        with(
            one(
                ".global .b32 x;\n.global .b32 f;",
                "st.weak.global.u32 [x], 1; st.release.cluster.global.u32 [f], 1;",
            ),
            "cta 1",
            ".reg p, r0, r1; ld.acquire.cluster.global.u32 r0, [f]; setp.eq.u32 p, r0, 1; @p ld.weak.global.u32 r1, [x];",
        ),
    ];
    for text in programs {
        let report = run(&honest(), NAME, Source::Text(text.clone()), 0);
        let verdicts: Vec<_> = report.engines.iter().map(|row| row.verdict.as_str()).collect();
        assert_eq!((verdicts, report.claims.len()), (vec!["allowed"], 0), "{text}\n{report:?}");
    }
}

/// A process that prints the record of its batch as far as `bytes`, and dies.
fn dying(folder: &std::path::Path, bytes: &[u8]) -> Oracles {
    let record = folder.join("record");
    std::fs::write(&record, bytes).unwrap();
    let script = format!("cat {}; kill -9 $$", record.display());
    let args: Vec<OsString> = ["-c".into(), script.into()].into();
    let host = Processes::open(PathBuf::from("sh"), args, folder.to_path_buf()).unwrap();
    Oracles::with_device(Some(Arc::new(host)))
}

/// Notes the record of a batch of an honest stand-in.
#[derive(Debug)]
struct Noted(Within<StandIn>, std::sync::Mutex<Vec<u8>>);

impl Host for Noted {
    fn identity(&self) -> &moire_gpu::Identity {
        self.0.identity()
    }
    fn record(&self, request: &moire_gpu::Request, cancel: &Cancel) -> moire_worker::oracle::Recorded {
        let recorded = self.0.record(request, cancel);
        self.1.lock().unwrap().clone_from(&recorded.bytes);
        recorded
    }
}

#[test]
fn a_process_that_dies_loses_its_batch_and_nothing_else() {
    let noted = Arc::new(Noted(Within::new(StandIn::new(64)), std::sync::Mutex::default()));
    let whole = Oracles::with_device(Some(noted.clone()));
    let reports: Vec<ItemReport> = (0..64).map(|index| drawn(&whole, index)).collect();
    let record = noted.1.lock().unwrap().clone();
    let folder = tempfile::tempdir().unwrap();
    let died = dying(folder.path(), &record[..record.len() / 2]);
    let (mut same, mut lost) = (0, 0);
    for (index, before) in (0..).zip(&reports).filter(|(_, report)| !report.engines.is_empty()) {
        let report = drawn(&died, index);
        match report == *before {
            true => same += 1,
            false => {
                let why: Vec<_> = report.abstentions.keys().map(String::as_str).collect();
                assert_eq!(why, ["stand-in: its batch was lost: signal: 9 (SIGKILL)"]);
                assert!(report.engines.is_empty() && report.claims.is_empty());
                lost += 1;
            }
        }
    }
    assert!(same > 0 && lost > 0, "{same} as before, {lost} lost");
    // The next batch is asked of a new process; here that one prints the record of the other, which is believed of nothing.
    let report = drawn(&died, 70);
    assert!(report.engines.is_empty() && report.claims.is_empty(), "{report:?}");
}

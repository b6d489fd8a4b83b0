//! Properties of the readers of a worker that hold for any bytes: leases, bytecode, listings of NVIDIA's tools, records of a
//! device. Fuzzers try them on drawn bytes, and a test on all kept inputs.

use moire_gpu::{Lane, Replayer, STRATEGIES, Settings};
use moire_program::text::{Format, parse};
use moire_proto::v1::{self, lease::Work, to_worker::Message as Down};
use moire_tile_ir::bytecode::{read, write_numbered};
use moire_tile_ir::text::print;
use moire_tile_ir::verify;
use moire_toolchain::machine::{changes, of_machine, of_ptx, tally};
use moire_toolchain::{Version, listed};
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, Part, Parted, Plan, Source};
use moire_worker::oracle::Oracles;
use moire_worker::wire;
use prost::Message;
use std::sync::Arc;

/// Bytes are a message of a coordinator, or refused. Work on any lease ends soon once it is cancelled, and its answer is a
/// message again.
pub fn lease(bytes: &[u8]) {
    let Ok(message) = v1::ToWorker::decode(bytes) else { return };
    assert_eq!(v1::ToWorker::decode(&*message.encode_to_vec()).as_ref(), Ok(&message));
    let Some(Down::Lease(lease)) = message.message else { return };
    let (engine, cancel) = (Oracles::new(), Cancel::new());
    cancel.cancel();
    let plan = Arc::new(Plan::from(lease.plan.unwrap_or_default()));
    let item = |index, source| engine.run(&Item { plan: plan.clone(), index, source }, &cancel);
    match lease.work {
        Some(Work::Range(range)) => {
            let source = Source::Generated { seed: range.seed, profile: range.profile, index: range.from };
            wire::item_result(range.from, item(range.from, source)).encode_to_vec();
        }
        Some(Work::Replay(job)) => {
            _ = wire::item_result(0, item(0, Source::Text(job.program))).encode_to_vec()
        }
        Some(Work::Verify(claim)) => {
            let Ok(claim) =
                Claim::try_from(claim.clone()).inspect(|c| assert_eq!(v1::Claim::from(c.clone()), claim))
            else {
                return;
            };
            wire::verify_result(engine.verify(&claim, &cancel)).encode_to_vec();
        }
        Some(Work::Minimise(job)) => minimise(&engine, &cancel, job),
        Some(Work::Explore(job)) => {
            if let Ok((asked, piece)) = wire::explore_job(job) {
                wire::end(engine.explore(&asked, &piece, &cancel, &|step| _ = wire::step(step)))
                    .encode_to_vec();
            }
        }
        None => {}
    }
}

fn minimise(engine: &Oracles, cancel: &Cancel, job: v1::MinimiseJob) {
    let part = wire::part(&job);
    let Ok(claim) = Claim::try_from(job.claim.unwrap_or_default()) else { return };
    if let Some(part) = part {
        let small = match &part {
            Part::Try(range) => range.end - range.start <= 64,
            Part::Join(places) => places.len() <= 64,
        };
        if small && let Some(answer) = Parted::of(&claim, &part, |_| true) {
            wire::parted(answer).encode_to_vec();
        }
    }
    let reduced = engine.minimise(&claim, Budget { candidates: job.candidates.min(8) }, cancel, &mut |_| {});
    v1::Claim::from(reduced.claim).encode_to_vec();
}

/// Bytes are a module, or refused at a position. A module that is read can be verified and printed; if it can be written, it
/// is read again.
pub fn bytecode(bytes: &[u8]) {
    let Ok((module, version, numbering)) = read(bytes) else { return };
    verify(&module);
    print(&module);
    if let Ok(again) = write_numbered(&module, version, numbering) {
        assert!(read(&again).is_ok(), "{bytes:x?} became {again:x?}");
    }
}

/// Text is PTX and a listing of the disassembler, each with some steps, and a version or none. Every change is tallied.
pub fn listing(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Version::parse(&text);
    let (ptx, machine) = text.split_once('\0').unwrap_or((&text, &text));
    let ptx = of_ptx(ptx);
    for instructions in listed(machine).values() {
        let machine = of_machine(instructions);
        if let Some(changes) = changes(&ptx, &machine) {
            assert_eq!(tally(&changes).values().sum::<u64>(), changes.len() as u64);
        }
    }
}

/// A program that the lane takes.
const PROGRAM: &str = "moire \"p\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { red.relaxed.gpu.global.add.u32 [x], 1; }\n\
    P1 (gpu 0, cta 1) { red.relaxed.gpu.global.add.u32 [x], 2; }\nexists ([x] == 3)\n";

/// Bytes are a record of a device's launches, or refused. A lane on a record has samples, or a reason for having none.
pub fn launches(bytes: &[u8]) {
    let Ok(record) = Replayer::read(bytes) else { return };
    let program = parse(PROGRAM, Format::Native).expect("it reads");
    let settings = Settings { probability: 0.01, launches: STRATEGIES.len() as u32, seed: 1 };
    if let Ok(mut lane) = Lane::new(record, None, settings, 0)
        && let Ok(histogram) = lane.run(&program, 0)
    {
        moire_gpu::judge(&histogram, &histogram.0.keys().cloned().collect());
    }
}

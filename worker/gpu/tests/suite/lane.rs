//! The lane on its stand-in and on records: outcomes are counted, a device that fails is set aside, and NVIDIA's assembler,
//! where it is installed, takes the kernel of every drawn program.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_generate::{Profile, Stream};
use moire_gpu::*;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::collections::{BTreeMap, BTreeSet};

fn program(text: &str) -> Program {
    parse(text, Format::Native).unwrap()
}

fn mp() -> Program {
    program(
        "moire \"mp\"\n.global .b32 x;\n.global .b32 f;\n\
         P0 (gpu 0, cta 0) { st.weak.u32 [x], 1; fence.acq_rel.gpu; st.relaxed.gpu.u32 [f], 1; }\n\
         P1 (gpu 0, cta 1) { ld.relaxed.gpu.u32 r0, [f]; fence.acq_rel.gpu; ld.weak.u32 r1, [x]; }\n",
    )
}

fn settings() -> Settings {
    Settings { probability: 0.01, launches: 12, seed: 5 }
}

fn lane<D: Device>(device: D, folder: &std::path::Path) -> Result<Lane<D>, LaneError> {
    let lock = Locked::take(folder, &device.identity().uuid, 1_000)?;
    Lane::new(device, Some(lock), settings(), 1_000)
}

#[test]
fn the_stand_in_sees_what_is_sequentially_consistent_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut lane = lane(StandIn::new(500), folder.path()).unwrap();
    let histogram = lane.run(&mp(), 1_000).unwrap();
    let word = |n: u32| n.to_le_bytes().to_vec();
    let of = |f, x| Seen { regs: vec![f, x], memory: vec![word(1), word(1)] };
    let allowed: BTreeSet<Seen> = [of(0, 0), of(0, 1), of(1, 1)].into();
    let verdict = judge(&histogram, &allowed);
    assert_eq!((verdict.forbidden.len(), verdict.seen, verdict.unseen.len()), (0, 3, 0), "{verdict:?}");
    assert!(verdict.samples >= 3_000, "each of six strategies has its turn");
    // An outcome that is seen and not allowed refutes the model that forbids it.
    let strict = judge(&histogram, &[of(0, 0), of(1, 1)].into());
    assert_eq!(strict.forbidden.len(), 1);
}

#[test]
fn a_record_stands_for_its_device_and_for_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = Vec::new();
    let seen = {
        let mut lane = lane(Recorder::new(StandIn::new(100), &mut record).unwrap(), folder.path()).unwrap();
        lane.run(&mp(), 1_000).unwrap()
    };
    let replayed =
        lane(Replayer::read(record.as_slice()).unwrap(), folder.path()).unwrap().run(&mp(), 1_000).unwrap();
    assert_eq!(replayed, seen);
    let other = program("moire \"o\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { ld.weak.u32 r0, [x]; }\n");
    let refused = lane(Replayer::read(record.as_slice()).unwrap(), folder.path()).unwrap().run(&other, 1_000);
    assert!(matches!(refused, Err(LaneError::Device(DeviceError::OtherLaunch(1)))), "{refused:?}");
    for bad in [&b""[..], b"{}\n", b"\xff\n", &record[..record.len() / 2]] {
        assert!(Replayer::read(bad).is_err());
    }
}

/// A device that answers one launch wrongly, or not at all.
struct Broken {
    inner: StandIn,
    launches: u32,
    wrong: bool,
}

impl Device for Broken {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        self.launches += 1;
        match (self.launches, self.wrong) {
            // The probe after the twelve launches of the program.
            (14, true) => Ok(Histogram([(Seen::default(), 1)].into())),
            (3, false) => Err(DeviceError::Late(60)),
            _ => self.inner.run(batch),
        }
    }
}

#[test]
fn a_device_that_fails_is_set_aside_and_comes_back() {
    for wrong in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let broken = || Broken { inner: StandIn::new(20), launches: 0, wrong };
        let mut first = lane(broken(), folder.path()).unwrap();
        let answer = first.run(&mp(), 1_000);
        assert!(
            matches!((&answer, wrong), (Err(LaneError::Probe(_)), true) | (Err(LaneError::Device(_)), false)),
            "{answer:?}"
        );
        drop(first);
        let take = |now| Locked::take(folder.path(), "stand-in", now).map(drop);
        assert!(matches!(take(2_000), Err(LaneError::Aside(599))), "{:?}", take(2_000));
        assert!(take(700_000).is_ok());
    }
}

#[test]
fn a_device_is_for_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let held = Locked::take(folder.path(), "a/b", 0).unwrap();
    assert!(matches!(Locked::take(folder.path(), "a/b", 0), Err(LaneError::Busy { .. })));
    assert!(Locked::take(folder.path(), "other", 0).is_ok());
    drop(held);
    assert!(Locked::take(folder.path(), "a/b", 0).is_ok());
}

#[test]
fn what_the_lane_does_not_run_is_refused_by_name() {
    let refused = |text: &str| takes(&program(text)).unwrap_err().to_string();
    let shared = "moire \"s\"\n.shared .b32 x;\nP0 (gpu 0, cta 0) { st.weak.shared.u32 [x], 1; }\n";
    assert_eq!(refused(shared), "the GPU lane does not run shared and tensor memory");
    let two = "moire \"t\"\n.global .b32 x;\nP0 (gpu 1, cta 0) { st.weak.u32 [x], 1; }\n";
    assert_eq!(refused(two), "the GPU lane does not run threads outside one grid of one device");
}

/// On the device each CTA is alone, so what `.cluster` orders across CTAs here is not ordered there.
#[test]
fn what_reaches_another_cta_of_its_cluster_is_refused_by_name() {
    let across = |first: &str, second: &str, places: [&str; 2]| {
        program(&format!(
            "moire \"c\"\n.global .b32 x;\n.global .b32 f;\nP0 (gpu 0, {}) {{ {first} }}\nP1 (gpu 0, {}) {{ {second} }}\n",
            places[0], places[1]
        ))
    };
    let one = ["cluster 0, cta 0", "cluster 0, cta 1"];
    let write = "st.weak.u32 [x], 1; st.release.cluster.global.u32 [f], 1;";
    let reads = [
        "ld.acquire.cluster.global.u32 r0, [f];",
        "fence.acq_rel.cluster;",
        "atom.relaxed.cluster.global.add.u32 r0, [f], 1;",
        "st.relaxed.cluster.global.u32 [f], 2;",
    ];
    for read in reads {
        let why = takes(&across("ld.weak.u32 r0, [x];", read, one)).unwrap_err().to_string();
        assert_eq!(
            why,
            "the GPU lane does not run `.cluster` across CTAs, because it launches them without clusters"
        );
        assert!(kernel(&across(write, read, one), "sm_90").is_err());
    }
    // Within a CTA, or with CTAs that share no cluster, it reaches nobody else. Wider scopes reach them anyway.
    let alone = [["cluster 0, cta 0", "cluster 0, cta 0, warp 1"], ["cluster 0, cta 0", "cluster 1, cta 1"]];
    for places in alone {
        assert!(takes(&across(write, reads[0], places)).is_ok(), "{places:?}");
    }
    let wide = |text: &str| text.replace(".cluster", ".gpu");
    assert!(takes(&across(&wide(write), &wide(reads[0]), one)).is_ok());
}

#[test]
fn every_kernel_of_a_drawn_program_is_taken_by_the_assembler() {
    let tool = moire_toolchain::Ptxas::find(None).ok();
    if tool.is_none() {
        crate::outside::skipped("ptxas");
    }
    let (mut taken, mut refused) = (0, BTreeMap::new());
    let mut shown = BTreeSet::new();
    let stream = Stream::new(11, Profile::Core);
    for n in 0..800 {
        let program = stream.item(n);
        let kernel = match kernel(&program, "sm_90") {
            Ok(kernel) => kernel,
            Err(why) => {
                *refused.entry(why.to_string()).or_insert(0) += 1;
                continue;
            }
        };
        taken += 1;
        assert_eq!(observed(&program).len(), kernel.slots as usize);
        // The assembler takes tens of milliseconds for one.
        let Some(ptxas) = tool.as_ref().filter(|_| taken % 4 == 1) else { continue };
        let answer = ptxas.assemble(&kernel.text, "sm_90").unwrap();
        assert_eq!(answer.accepted(), Some(true), "{answer:?}\n{}", kernel.text);
        shown.insert(n);
    }
    println!("{taken} taken, {} assembled, refused: {refused:?}", shown.len());
    assert!(taken > 100, "{taken} {refused:?}");
}

#[test]
fn a_batch_is_its_programs_one_by_one() {
    let other = program("moire \"o\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { ld.weak.u32 r0, [x]; }\n");
    let request = |programs: &[(&Program, u64)]| {
        let mut request = Request { probability: 0.05, launches: 6, ..Request::default() };
        programs.iter().for_each(|(program, seed)| request.ask(program, *seed));
        request
    };
    let record = |request: &Request| {
        let mut out = Vec::new();
        request.run(StandIn::new(50), &mut out, || false).unwrap();
        out
    };
    let both = request(&[(&mp(), 5), (&other, 6)]);
    let (whole, alone) = (record(&both), record(&request(&[(&mp(), 5)])));
    assert!(whole.starts_with(&alone), "the part of a program is its record alone");
    let answers = |bytes: &[u8]| both.answers(bytes).unwrap().1;
    let seen = |answer: &Result<Histogram, LaneError>| answer.as_ref().map_or(0, Histogram::samples);
    let all = answers(&whole);
    assert!(seen(&all[0]) >= 300 && seen(&all[1]) >= 300);
    // Cut anywhere behind the first program, it answers for the first one and not for the second.
    for cut in [alone.len(), alone.len() + 7, whole.len() - 1] {
        let some = answers(&whole[..cut]);
        assert_eq!(some[0].as_ref().unwrap(), all[0].as_ref().unwrap(), "{cut}");
        assert!(matches!(some[1], Err(LaneError::Device(DeviceError::NotRecorded(_)))), "{:?}", some[1]);
    }
    // The record of another batch answers for nothing.
    let swapped = request(&[(&other, 6), (&mp(), 5)]);
    assert!(swapped.answers(&whole).unwrap().1.iter().all(Result::is_err));
    // A batch whose time is over begins no further program.
    let (mut out, mut asked) = (Vec::new(), 0);
    let late = || std::mem::replace(&mut asked, 1) > 0;
    both.run(StandIn::new(50), &mut out, late).unwrap();
    assert_eq!(out, alone);
}

#[test]
fn a_stand_in_that_lies_shows_what_nobody_wrote() {
    let program = program(
        "moire \"e\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { atom.relaxed.gpu.global.exch.b32 r0, [x], 1; }\n",
    );
    let kernel = kernel(&program, "sm_90").unwrap();
    let batch = Batch { program: &program, kernel: &kernel, strategy: &STRATEGIES[0], seed: 3 };
    let values = |mut device: StandIn| {
        let seen = device.run(&batch).unwrap();
        seen.0.into_keys().map(|s| s.regs[0]).collect::<Vec<_>>()
    };
    assert_eq!(values(StandIn::new(500)), [0]);
    assert_eq!(values(StandIn::lying(500)), [0, 0x40]);
}

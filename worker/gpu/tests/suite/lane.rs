//! The lane on its stand-in and on records: outcomes are counted, a device that fails is set aside, and NVIDIA's assembler,
//! where it is installed, takes the kernel of every drawn program.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_generate::{Profile, Stream};
use moire_gpu::*;
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};
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
    let refused = |text: &str| {
        let why = takes(&program(text)).unwrap_err().to_string();
        why.strip_prefix("the GPU lane does not run ").unwrap().to_owned()
    };
    let two = "moire \"t\"\n.global .b32 x;\nP0 (gpu 1, cta 0) { st.weak.u32 [x], 1; }\n";
    assert_eq!(refused(two), "threads outside one grid of one device");
    let one = |body: &str| {
        format!("moire \"o\"\n.global .b64 x;\n.shared .b64 m;\nP0 (gpu 0, cta 0) {{ .reg p, r; {body} }}\n")
    };
    for (body, why) in [
        ("ld.weak.u64 r, [x]; div.u64 r, r, 3;", "division"),
        ("ld.weak.u32 r, [x]; shl.b32 r, r, r;", "shifts by a value"),
        ("setp.eq.u32 p, 1, 2; @p bar.sync 0;", "barriers with a guard"),
        ("bar.sync 15;", "barriers other than `bar.sync` of all threads"),
        ("mbarrier.arrive.shared::cta.b64 _, [r];", "computed addresses"),
        ("setp.eq.u32 p, 1, 2; @p bra E; bar.sync 0; E:", "branches around barriers"),
        (
            "L: ld.weak.u64 r, [x]; setp.eq.u64 p, r, 0; @p bra L;",
            "loops of weak loads, which an assembler may do once for all",
        ),
        ("barrier.cluster.arrive;", "barriers of clusters at which not all threads arrive and wait in turns"),
        ("@p barrier.cluster.arrive; barrier.cluster.wait;", "barriers with a guard"),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [m], [x], 16, [m];",
            "accesses that are not aligned, or leave their object",
        ),
        ("bar.arrive 0, 64;", "barriers other than `bar.sync` of all threads"),
    ] {
        assert_eq!(refused(&one(body)), why, "{body}");
    }
    let wait = "moire \"w\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { bar.sync 0; }\nP1 (gpu 0, cta 0, warp 1) { bar.sync 1; }\n";
    assert_eq!(refused(wait), "threads of a CTA with different barriers");
}

/// CTAs of one cluster are launched as one, and `.cluster` reaches from one to another. Where there are others, it is refused.
#[test]
fn what_reaches_another_cta_of_its_cluster_is_launched_as_one() {
    let across = |first: &str, second: &str, places: [&str; 2]| {
        program(&format!(
            "moire \"c\"\n.global .b32 x;\n.global .b32 f;\nP0 (gpu 0, {}) {{ {first} }}\nP1 (gpu 0, {}) {{ {second} }}\n",
            places[0], places[1]
        ))
    };
    let of = |program: &Program| {
        kernel(program, "sm_90").map(|k| (k.cluster, k.text.contains(".reqnctapercluster 2, 1, 1")))
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
        let program = across("ld.weak.u32 r0, [x];", read, one);
        assert_eq!(of(&program).unwrap(), (true, true), "{read}");
        assert!(kernel(&program, "sm_80").is_err(), "it has no clusters");
    }
    // Within a CTA, or with CTAs that share no cluster, it reaches nobody else. Wider scopes reach them anyway.
    let alone = [["cluster 0, cta 0", "cluster 0, cta 0, warp 1"], ["cluster 0, cta 0", "cluster 1, cta 1"]];
    for places in alone {
        assert_eq!(of(&across(write, reads[0], places)).unwrap(), (false, false), "{places:?}");
    }
    let wide = |text: &str| text.replace(".cluster", ".gpu");
    assert_eq!(of(&across(&wide(write), &wide(reads[0]), one)).unwrap(), (false, false));
    // A third CTA outside the cluster, or a number that is left out.
    let third = print(&across(write, reads[0], one)) + "P2 (gpu 0, cluster 1, cta 2) { }\n";
    for text in [third, print(&across(write, reads[0], ["cluster 0, cta 0", "cluster 0, cta 2"]))] {
        let why = takes(&program(&text)).unwrap_err().to_string();
        assert!(why.ends_with("what reaches across CTAs, where not all CTAs are one cluster"), "{why}");
    }
}

/// What the stand-in sees of the registers of a program, and the kernel, which NVIDIA's assembler takes.
fn seen_of(text: &str) -> BTreeSet<Vec<u128>> {
    let program = program(text);
    let kernel = kernel(&program, "sm_90").unwrap();
    if let Ok(ptxas) = moire_toolchain::Ptxas::find(None) {
        let answer = ptxas.assemble(&kernel.text, "sm_90").unwrap();
        assert_eq!(answer.accepted(), Some(true), "{answer:?}\n{}", kernel.text);
    }
    let batch = Batch { program: &program, kernel: &kernel, strategy: &STRATEGIES[0], seed: 3 };
    StandIn::new(300).run(&batch).unwrap().0.into_keys().map(|seen| seen.regs).collect()
}

fn values<const N: usize, const M: usize>(all: [[u128; N]; M]) -> BTreeSet<Vec<u128>> {
    all.into_iter().map(Vec::from).collect()
}

#[test]
fn threads_of_a_cta_meet_at_barriers_and_share_memory() {
    let text = |meet: &str| {
        format!(
            "moire \"b\"\n.shared .b32 x = 5;\n.shared .b64 z[2];\nP0 (gpu 0, cta 0) {{ st.weak.shared.u32 [x], 1; {meet} \
             st.weak.u32 [z+8], 9; }}\nP1 (gpu 0, cta 0, warp 2) {{ {meet} ld.weak.shared.u32 r0, [x]; }}\n"
        )
    };
    assert_eq!(seen_of(&text("bar.sync 0;")), values([[1]]));
    assert_eq!(seen_of(&text("bar.sync 3; bar.sync 3;")), values([[1]]));
    assert_eq!(seen_of(&text("")), values([[1], [5]]));
    // Each CTA has its own.
    let two = "moire \"o\"\n.shared .b32 x = 5;\nP0 (gpu 0, cta 1) { st.weak.shared.u32 [x], 1; ld.weak.shared.u32 r0, [x]; }\n\
               P1 (gpu 0, cta 0) { ld.weak.shared.u32 r0, [x]; }\n";
    assert_eq!(seen_of(two), values([[1, 5]]));
    assert_eq!(copies(&program(two)), [(0, Some(1)), (0, Some(0))]);
}

/// A ring of one stage: what crosses an mbarrier has been written, whichever thread is first.
#[test]
fn threads_wait_at_mbarriers_and_reach_other_ctas() {
    let text = |cta: &str, place: &str, address: &str, map: &str, meet: &str| {
        format!(
            "moire \"m\"\n.shared .b64 m;\n.global .b32 x = 5;\nP0 (gpu 0, cluster 0, cta 0) {{ .reg p, r0; \
             mbarrier.init.shared::cta.b64 [m], 1; fence.mbarrier_init.release.cluster; {meet} \
             L: mbarrier.try_wait.parity.acquire.{cta}.shared::cta.b64 p, [m], 0; @!p bra L; \
             ld.weak.global.u32 r0, [x]; }}\n\
             P1 (gpu 0, cluster 0, {place}) {{ .reg a; {map} {meet} st.weak.global.u32 [x], 1; \
             mbarrier.arrive.release.{cta}.shared::{address} }}\n"
        )
    };
    let near = text("cta", "cta 0, warp 1", "cta.b64 _, [m];", "", "bar.sync 0;");
    let meet = "barrier.cluster.arrive; barrier.cluster.wait;";
    let far = text("cluster", "cta 1", "cluster.b64 _, [a];", "mapa.shared::cluster.u32 a, m, 0;", meet);
    for text in [near, far] {
        assert_eq!(seen_of(&text), values([[1]]), "{text}");
        assert!(may_hang(&program(&text)));
    }
}

#[test]
fn a_copy_is_waited_for_and_its_bytes_are_not_compared() {
    let text = "moire \"c\"\n.global .b8 g[16];\n.shared .b8 s[16];\n.shared .b64 m;\n.global .b32 y = 3;\n\
        P0 (gpu 0, cta 0) { .reg p, r0, r1; st.weak.global.b8 [g], 7; fence.proxy.async; \
        mbarrier.init.shared::cta.b64 [m], 1; mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [m], 16; \
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [m]; \
        L: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [m], 0; @!p bra L; \
        ld.weak.shared::cta.u8 r0, [s]; ld.weak.global.u32 r1, [y]; }\n";
    // No engine knows what a copy wrote.
    assert_eq!(seen_of(text), values([[0, 3]]));
    let never = text.replace("_, [m], 16;", "_, [m], 32;");
    let program = program(&never);
    let kernel = kernel(&program, "sm_90").unwrap();
    let batch = Batch { program: &program, kernel: &kernel, strategy: &STRATEGIES[0], seed: 3 };
    assert!(StandIn::new(1).run(&batch).is_err(), "bytes that nobody brings are waited for in vain");
}

#[test]
fn guards_decide_and_widths_are_those_of_the_registers() {
    let guarded = |guard: &str| {
        format!(
            "moire \"g\"\n.global .b32 x;\n.global .b32 y;\nP0 (gpu 0, cta 0) {{ .reg p, r0, r1; \
             ld.relaxed.gpu.global.u32 r0, [x]; setp.eq.u32 p, r0, 1; {guard} st.relaxed.gpu.global.u32 [y], 7; }}\n\
             P1 (gpu 0, cta 1) {{ .reg r1; st.relaxed.gpu.global.u32 [x], 1; ld.relaxed.gpu.global.u32 r1, [y]; }}\n"
        )
    };
    let all = |guard: &str| seen_of(&guarded(guard));
    assert_eq!(all("@p"), values([[0, 0], [1, 0], [1, 7]]));
    assert_eq!(all("@!p"), values([[0, 0], [0, 7], [1, 0]]));
    let narrow = "moire \"n\"\n.global .b16 x;\nP0 (gpu 0, cta 0) { .reg s, u, h; st.weak.global.u16 [x], 0x80ff; \
                  ld.weak.global.s8 s, [x+1]; ld.weak.global.u8 u, [x+1]; ld.weak.global.s16 h, [x]; }\n";
    assert_eq!(seen_of(narrow), values([[0xff80, 0x80, 0x80ff]]));
    let wide = "moire \"w\"\n.global .b64 x[2];\nP0 (gpu 0, cta 0) { .reg r, q; st.weak.global.u64 [x+8], 3; \
                ld.weak.global.b128 r, [x]; atom.relaxed.gpu.global.exch.b128 q, [x], r; }\n";
    assert_eq!(seen_of(wide), values([[3 << 64, 3 << 64]]));
    // A signed value fills its register, whatever its width.
    let signed = "moire \"s\"\n.global .b64 x;\nP0 (gpu 0, cta 0) { .reg r, q; st.weak.global.u32 [x], 0x80000000; \
                  ld.weak.global.s32 r, [x]; ld.weak.global.s32 q, [x]; add.u64 q, q, 0; }\n";
    assert_eq!(seen_of(signed), values([[0x8000_0000, 0xffff_ffff_8000_0000]]));
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

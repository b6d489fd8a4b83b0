//! Right sequences of machine code pass, and each loss planted in one of them is found. The sequences are those of `ptxas`,
//! without the instructions that only prepare operands.

use super::*;

/// PTX between the braces of a kernel, and machine code that does it.
const RIGHT: &[(&str, &str, &str)] = &[
    (
        "a release store",
        "st.global.u32 [m0], 1; st.release.gpu.global.u32 [m1], 2;",
        "STG.E desc[UR6][R2.64], R11; MEMBAR.ALL.GPU; STG.E.STRONG.GPU desc[UR6][R4.64], R13",
    ),
    (
        "an acquire load",
        "ld.acquire.sys.u32 r0, [m1]; ld.weak.global.u32 r1, [m0]; st.global.u32 [m2], r0; st.global.u32 [m2+4], r1;",
        "LD.E.STRONG.SYS R9, desc[UR6][R4.64]; CCTL.IVALL; LDG.E R7, desc[UR6][R2.64]; STG.E desc[UR6][R6.64], R9; STG.E desc[UR6][R6.64+0x4], R7",
    ),
    (
        "a fence between a store and a load",
        "st.relaxed.gpu.u32 [m0], 1; fence.sc.gpu; ld.relaxed.gpu.u32 r0, [m1]; st.global.u32 [m2], r0;",
        "STG.E.STRONG.GPU desc[UR6][R2.64], R9; MEMBAR.SC.GPU; CCTL.IVALL; LDG.E.STRONG.GPU R9, desc[UR6][R4.64]; STG.E desc[UR6][R6.64], R9",
    ),
    (
        "an atomic of both orders",
        "st.global.u32 [m0], 1; atom.acq_rel.gpu.global.exch.b32 r0, [m1], 5; ld.global.u32 r1, [m0+4]; st.global.u32 [m2], r0; st.global.u32 [m2+4], r1;",
        "STG.E desc[UR6][R2.64], R8; MEMBAR.ALL.GPU; ATOMG.E.EXCH.STRONG.GPU PT, R9, desc[UR6][R4.64], R8; CCTL.IVALL; LDG.E R8, desc[UR6][R2.64+0x4]; STG.E desc[UR6][R6.64], R9; STG.E desc[UR6][R6.64+0x4], R8",
    ),
    (
        "a barrier",
        "st.global.u32 [m0], 1; bar.sync 0; ld.global.u32 r1, [m1]; st.global.u32 [m2], r1;",
        "STG.E desc[UR6][R2.64], R8; BAR.SYNC.DEFER_BLOCKING 0x0; LDG.E R8, desc[UR6][R4.64]; STG.E desc[UR6][R6.64], R8",
    ),
    (
        "a source that is written once it has been read",
        "cp.async.bulk.global.shared::cta.bulk_group [m0], [s0], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; st.shared.u32 [s0], 1;",
        "UBLKCP.G.S [UR4], [UR8], UR9; UTMACMDFLUSH; DEPBAR.LE SB0, 0x0; STS [UR8], R0",
    ),
    (
        "a wait that acquires for the cluster",
        "L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [s0], 0; @!p bra L; ld.global.u32 r1, [m1]; st.global.u32 [m2], r1;",
        ".L_x_0:; SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R6; @P0 CCTL.IVALL; @!P0 BRA `(.L_x_0); LDG.E R8, desc[UR6][R4.64]; STG.E desc[UR6][R6.64], R8",
    ),
];

/// What ptxas may do, and does: PTX and machine code.
const LICENCES: &[(&str, &str, &str)] = &[
    (
        "an acquire of shared memory reads what is beside it, too",
        "ld.acquire.gpu.shared.u64 r0, [s0]; ld.shared.u64 r1, [s0+8]; st.global.u64 [m1], r0; st.global.u64 [m2], r1;",
        "LDS.128 R8, [UR4]; CCTL.IVALL; STG.E.64 desc[UR6][R4.64], R8; STG.E.64 desc[UR6][R6.64], R10",
    ),
    (
        "a release of shared memory writes what is beside it, too",
        "st.shared.u64 [s0], 0; st.release.gpu.shared.u64 [s0+8], 0;",
        "MEMBAR.ALL.GPU; STS.128 [UR4], RZ",
    ),
    (
        "a load overtakes a wait until sources have been read",
        "cp.async.bulk.wait_group.read 0; ld.shared.u32 r0, [s0+128]; st.global.u32 [m2], r0;",
        "LDS R5, [UR8+0x80]; DEPBAR.LE SB0, 0x0; STG.E desc[UR6][R6.64], R5",
    ),
    ("a dead load goes", "ld.relaxed.gpu.u32 r0, [m0];", ""),
    (
        "weak loads side by side are one",
        "ld.global.u32 r0, [m0]; ld.global.u32 r1, [m0+4]; st.global.u32 [m2], r0; st.global.u32 [m2+4], r1;",
        "LDG.E.64 R8, desc[UR6][R2.64]; STG.E.64 desc[UR6][R6.64], R8",
    ),
    (
        "a store that is written over goes",
        "st.relaxed.gpu.u32 [m0], 1; st.relaxed.gpu.u32 [m0], 2;",
        "STG.E.STRONG.GPU desc[UR6][R2.64], R9",
    ),
    (
        "a thread knows what it stored, though it acquires",
        "st.global.u32 [m0], 1; ld.acquire.gpu.u32 r0, [m1]; ld.global.u32 r1, [m0]; st.global.u32 [m2], r0; st.global.u32 [m2+4], r1;",
        "STG.E desc[UR6][R2.64], R9; LDG.E.STRONG.GPU R8, desc[UR6][R4.64]; CCTL.IVALL; STG.E desc[UR6][R6.64], R8; STG.E desc[UR6][R6.64+0x4], R9",
    ),
    (
        "what a load has read stays, though the thread acquires",
        "ld.global.u32 r1, [m0]; ld.acquire.gpu.u32 r0, [m1]; ld.global.u32 r2, [m0]; st.global.u32 [m2], r0; st.global.u32 [m2+4], r1; st.global.u32 [m2+8], r2;",
        "LDG.E R9, desc[UR6][R2.64]; LDG.E.STRONG.GPU R8, desc[UR6][R4.64]; CCTL.IVALL; STG.E desc[UR6][R6.64], R8; STG.E desc[UR6][R6.64+0x4], R9; STG.E desc[UR6][R6.64+0x8], R9",
    ),
    (
        "a weak wait ends at once",
        "L: ld.global.u32 r0, [m0]; setp.ne.u32 p, r0, 1; @p bra L; st.global.u32 [m2], r0;",
        "STG.E desc[UR6][R6.64], R8",
    ),
    (
        "relaxed stores to two places change places",
        "st.relaxed.gpu.u32 [m0], 1; st.relaxed.gpu.u32 [m1], 2;",
        "STG.E.STRONG.GPU desc[UR6][R4.64], R9; STG.E.STRONG.GPU desc[UR6][R2.64], R8",
    ),
    (
        "a load of tensor memory that is overwritten goes",
        "bar.sync 0; tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [r0]; tcgen05.wait::ld.sync.aligned; L: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [s0], 0; @!p bra L; tcgen05.fence::after_thread_sync; tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [r2]; tcgen05.wait::ld.sync.aligned; st.global.b32 [m2], r1;",
        "BAR.SYNC.DEFER_BLOCKING 0x0; SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0; @!P0 BRA `(.L_x_139); .L_x_140:; LDTM R5, tmem[URZ]; STG.E desc[UR6][R6.64], R5; EXIT; .L_x_139:; SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0; @!P0 BRA `(.L_x_139); BRA `(.L_x_140)",
    ),
    (
        "the warp elects a lane",
        "red.relaxed.gpu.global.add.u32 [m0], 1;",
        "S2R R0, SR_LANEID; VOTEU.ANY UR4, UPT, PT; UFLO.U32 UR8, UR4; ISETP.EQ.U32.AND P0, PT, R0, UR8, PT; @P0 REDG.E.ADD.STRONG.GPU desc[UR6][R2.64], R7",
    ),
];

/// What it may not do, with the loss.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("a volatile load is counted", "ld.volatile.u32 r0, [m0];", "", "lost"),
    (
        "a release and then an acquire end what a load knows",
        "ld.global.u32 r1, [m0]; st.release.gpu.u32 [m1], 1; ld.acquire.gpu.u32 r0, [m1]; ld.global.u32 r2, [m0]; st.global.u32 [m2], r0; st.global.u32 [m2+4], r1; st.global.u32 [m2+8], r2;",
        "LDG.E R9, desc[UR6][R2.64]; MEMBAR.ALL.GPU; STG.E.STRONG.GPU desc[UR6][R4.64], R10; LDG.E.STRONG.GPU R8, desc[UR6][R4.64]; CCTL.IVALL; STG.E desc[UR6][R6.64], R8; STG.E desc[UR6][R6.64+0x4], R9; STG.E desc[UR6][R6.64+0x8], R9",
        "lost",
    ),
    (
        "a strong wait stays",
        "L: ld.relaxed.gpu.u32 r0, [m0]; setp.ne.u32 p, r0, 1; @p bra L; st.global.u32 [m2], r0;",
        "STG.E desc[UR6][R6.64], R8",
        "lost",
    ),
    (
        "a write is not invented",
        "ld.relaxed.gpu.u32 r0, [m0]; st.global.u32 [m2], r0;",
        "LDG.E.STRONG.GPU R8, desc[UR6][R2.64]; STG.E desc[UR6][R2.64], R8; STG.E desc[UR6][R6.64], R8",
        "added",
    ),
    (
        "stores to one place keep their order",
        "st.relaxed.gpu.u32 [m0], 1; st.relaxed.sys.u32 [m0], 2; st.release.gpu.u32 [m1], 3;",
        "STG.E.STRONG.SYS desc[UR6][R2.64], R8; MEMBAR.ALL.GPU; STG.E.STRONG.GPU desc[UR6][R4.64], R9; STG.E.STRONG.GPU desc[UR6][R2.64], R8",
        "added",
    ),
    (
        "a release that writes what is beside it without a fence",
        "st.global.u32 [m0], 1; st.shared.u64 [s0], 0; st.release.gpu.shared.u64 [s0+8], 0;",
        "STG.E desc[UR6][R2.64], R9; STS.128 [UR4], RZ",
        "lost",
    ),
    (
        "a fence behind what it releases",
        "st.global.u32 [m0], 1; st.shared.u64 [s0], 0; st.release.gpu.shared.u64 [s0+8], 0;",
        "STG.E desc[UR6][R2.64], R9; STS.128 [UR4], RZ; MEMBAR.ALL.GPU",
        "lost",
    ),
    ("the wrong place", "st.relaxed.gpu.u32 [m0], 1;", "STG.E.STRONG.GPU desc[UR6][R4.64], R9", "moved"),
];

/// Registers of the sequences: R2 holds the address of m0, R4 that of m1, R6 that of m2, UR4 that of shared memory.
const READY: &[&str] = &[
    "LDC.64 R2, c[0x4][RZ]",
    "LDC.64 R4, c[0x4][0x8]",
    "LDC.64 R6, c[0x4][0x10]",
    "S2UR UR5, SR_CgaCtaId",
    "UMOV UR4, 0x400",
    "ULEA UR4, UR5, UR4, 0x18",
];

fn lines(machine: &str) -> Vec<String> {
    let body = machine.split(';').map(str::trim).filter(|l| !l.is_empty());
    READY.iter().copied().chain(body).chain(["EXIT"]).map(str::to_owned).collect()
}

fn judged(ptx: &str, machine: &[String]) -> Result<Option<Loss>, Unread> {
    let ptx = format!(".reg .b32 r0, r1, r2; .reg .pred p; {ptx} ret;");
    let (slots, shared) = (["m0", "m1", "m2"].map(str::to_owned), ["s0".to_owned()]);
    loss(&Ptx::read(&ptx, &shared), &Machine::read(machine, &slots, &BTreeMap::new()))
}

#[test]
fn right_sequences_pass() {
    for (what, ptx, machine) in RIGHT.iter().chain(LICENCES) {
        assert_eq!(judged(ptx, &lines(machine)), Ok(None), "{what}");
    }
}

#[test]
fn each_line_that_is_left_out_is_missed() {
    for (what, ptx, machine) in RIGHT {
        let all = lines(machine);
        for at in READY.len()..all.len() - 1 {
            let mut fewer = all.clone();
            let gone = fewer.remove(at);
            // Labels and jumps are no steps: without the jump back the path goes on too early, and is no other path.
            if gone.ends_with(':') || gone.contains("BRA") {
                continue;
            }
            let found = judged(ptx, &fewer).unwrap_or_else(|why| panic!("{what} without {gone}: {why}"));
            assert!(found.is_some(), "{what} without {gone}");
        }
    }
}

#[test]
fn each_weaker_line_is_missed() {
    let weaker = [
        (".STRONG.GPU", ""),
        (".STRONG.SYS", ".STRONG.GPU"),
        (".ALL.GPU", ".ALL.CTA"),
        (".SC.GPU", ".ALL.GPU"),
    ];
    let mut tried = 0;
    for (what, ptx, machine) in RIGHT {
        let all = lines(machine);
        for (at, line) in all.iter().enumerate() {
            for (strong, weak) in weaker.iter().filter(|(strong, _)| line.contains(strong)) {
                let mut other = all.clone();
                other[at] = line.replace(strong, weak);
                assert_eq!(judged(ptx, &other).unwrap().unwrap().how, "weakened", "{what}: {}", other[at]);
                tried += 1;
            }
        }
    }
    assert!(tried > 6, "{tried}");
}

#[test]
fn each_fence_that_moves_is_missed() {
    let mut tried = 0;
    for (what, ptx, machine) in RIGHT {
        let all = lines(machine);
        let order = |line: &String| ["MEMBAR", "CCTL", "BAR"].iter().any(|w| line.starts_with(w));
        for at in (READY.len()..all.len() - 1).filter(|at| order(&all[*at])) {
            for to in [at - 1, at + 1]
                .into_iter()
                .filter(|to| (READY.len()..all.len() - 1).contains(to) && !order(&all[*to]))
            {
                let mut other = all.clone();
                other.swap(at, to);
                assert!(judged(ptx, &other).unwrap().is_some(), "{what}: {} at {to}", all[at]);
                tried += 1;
            }
        }
    }
    assert!(tried > 6, "{tried}");
}

#[test]
fn what_is_wrong_is_named() {
    for (what, ptx, machine, how) in WRONG {
        let found = judged(ptx, &lines(machine)).unwrap().map(|loss| loss.how);
        assert_eq!(found, Some(*how), "{what}");
    }
}

#[test]
fn what_is_not_read_is_abstained_from_by_its_name() {
    let of = |ptx: &str, machine: &str| judged(ptx, &lines(machine)).unwrap_err().to_string();
    assert_eq!(of("wgmma.fence.sync.aligned;", ""), "wgmma.fence.sync.aligned is not read");
    assert_eq!(of("", "LDGFOO R2, [R4.64]"), "LDGFOO is not read");
}

#[test]
fn what_is_planted_is_missed() {
    let ptx =
        |body: &str| format!(".visible .entry k() {{ .reg .b32 r0, r1, r2; .reg .pred p; {body} ret; }}");
    let (slots, mut tried) = (["m0", "m1", "m2"].map(str::to_owned).to_vec(), [0; 3]);
    for (what, body, machine) in RIGHT {
        let (ptx, kernels) = (ptx(body), BTreeMap::from([("k".to_owned(), lines(machine))]));
        let code = Listing { kernels, slots: slots.clone() };
        for (planted, tried) in Planted::ALL.into_iter().zip(&mut tried) {
            let Some(wrong) = planted.put(&ptx, &code) else { continue };
            let found = losses(&ptx, &wrong, "sm_100a").pop().unwrap().unwrap();
            assert!(found.is_some(), "{what}: {planted:?} in {:?}", wrong.kernels);
            *tried += 1;
        }
        assert_eq!(Planted::Fence.put(&ptx.replace(" k()", " other()"), &code), None, "{what}");
    }
    assert!(tried.iter().all(|tried| *tried > 1), "{tried:?}");
}

//! Advice for kernels: a barrier that is missing goes into the kernel, at a line that all threads run.

use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_verdict::answer::Answer;
use moire_verdict::asked::Asked;
use moire_verdict::input::File;
use moire_verdict::judging::Judge;
use moire_verdict::kernel::Wanted;
use moire_verdict::question::{Library, Question, Quiet};
use std::path::Path;
use std::time::Duration;

/// Explanations that ask for time this often get no more.
const ASKED: u32 = 2_000;

fn load(name: &str, switches: &Variants) -> Result<Model> {
    Ok(moire_models::load(name, switches)?)
}

fn beside(_: &Path) -> Option<String> {
    None
}

fn judged(text: &str) -> Answer {
    let limits = Limits { checks: 10_000, ..Limits::default() };
    let after_finding = Duration::from_secs(10);
    let question = Question { limits, after_finding, ..Question::default() };
    let file = File::new(Path::new("k.ptx"), "k.ptx", text.as_bytes().to_vec(), None);
    let asked = Asked::new(&question, "ptx", true, Library { load, beside }).expect("the model loads");
    let host = Quiet::new(ASKED, &|| false);
    Judge { question: &question, launch: Wanted::default(), asked: &asked, host: &host }.file(&file)
}

/// The lines that the patch of a kernel adds, and the kernel with them.
fn patched(text: &str) -> (Vec<String>, String) {
    let answer = judged(text);
    let advice = answer.parts[0].advice.as_ref().expect("there is something wrong");
    let patch = advice.patch.as_ref().unwrap_or_else(|| panic!("{advice:?}"));
    let new = patch.lines().skip(2).filter_map(|l| l.strip_prefix('+')).map(str::to_owned).collect();
    let old: Vec<&str> = text.lines().collect();
    let (mut out, mut at) = (Vec::new(), 0);
    for line in patch.lines().skip(2) {
        if let Some(range) = line.strip_prefix("@@ -") {
            let start: usize = range.split([',', ' ']).next().and_then(|n| n.parse().ok()).expect("a line");
            out.extend(&old[at..start - 1]);
            at = start - 1;
        } else if let Some(new) = line.strip_prefix('+') {
            out.push(new);
        } else {
            out.extend(line.starts_with(' ').then_some(old[at]));
            at += 1;
        }
    }
    out.extend(&old[at..]);
    (new, out.join("\n") + "\n")
}

/// Each thread writes a word, and reads the word of the mirrored thread.
const MIRROR: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry mirror(.param .u64 out)
.reqntid 256
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 buf[1024];
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, buf;
    add.s32 %r3, %r2, %r1;
    st.shared.u32 [%r3], %r0;
    xor.b32 %r4, %r1, 1020;
    add.s32 %r4, %r2, %r4;
    ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %rd1, %r0, 4;
    add.s64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r5;
    ret;
}
";

#[test]
fn a_missing_barrier_of_many_warps_is_one_of_the_cta() {
    let (new, fixed) = patched(MIRROR);
    assert_eq!(new.iter().map(|l| l.trim()).collect::<Vec<_>>(), ["bar.sync 0;"]);
    let at = |word: &str| fixed.find(word).expect("it is there");
    assert!(at("st.shared") < at("bar.sync") && at("bar.sync") < at("ld.shared"), "{fixed}");
    assert_eq!(judged(&fixed).verdicts.words(), ["clean"], "{fixed}");
}

/// A sum of 64 words by a tree, without the barrier of the loop.
const TREE: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry tree(.param .u64 out)
.reqntid 64
{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 buf[256];
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, buf;
    add.s32 %r3, %r2, %r1;
    st.shared.u32 [%r3], %r0;
    bar.sync 0;
    mov.b32 %r4, 32;
LOOP:
    setp.ge.u32 %p0, %r0, %r4;
    @%p0 bra SKIP;
    shl.b32 %r5, %r4, 2;
    add.s32 %r6, %r3, %r5;
    ld.shared.u32 %r7, [%r6];
    ld.shared.u32 %r8, [%r3];
    add.s32 %r9, %r7, %r8;
    st.shared.u32 [%r3], %r9;
SKIP:
    shr.u32 %r4, %r4, 1;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra LOOP;
    setp.ne.u32 %p2, %r0, 0;
    @%p2 bra END;
    ld.shared.u32 %r10, [%r3];
    st.global.u32 [%rd0], %r10;
END:
    ret;
}
";

#[test]
fn no_barrier_stands_in_the_branch_of_a_tree() {
    let (_, fixed) = patched(TREE);
    let at = |word: &str| fixed.find(word).expect("it is there");
    let barrier = fixed.rfind("bar.sync").expect("it is there");
    assert!(at("LOOP:") < barrier && barrier < at("bra LOOP"), "{fixed}");
    assert!(barrier < at("@%p0 bra SKIP") || at("SKIP:") < barrier, "{fixed}");
    assert_eq!(judged(&fixed).verdicts.words(), ["clean"], "{fixed}");
}

/// Each thread swaps words with a mirrored one and writes again; then data decides.
const TWICE: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 in, .param .u64 out)
.reqntid 64
{
    .reg .pred %p<2>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 buf[256];
    ld.param.u64 %rd0, [in];
    ld.param.u64 %rd1, [out];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, buf;
    add.s32 %r3, %r2, %r1;
    xor.b32 %r4, %r1, 252;
    add.s32 %r4, %r2, %r4;
    st.shared.u32 [%r3], %r0;
    ld.shared.u32 %r5, [%r4];
    st.shared.u32 [%r3], %r5;
    ld.global.u32 %r6, [%rd0];
    setp.ne.u32 %p0, %r6, 0;
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd1, %rd2;
    @%p0 bra SKIP;
    st.global.u32 [%rd3], %r5;
SKIP:
    ret;
}
";

#[test]
fn a_kernel_gets_as_many_barriers_as_it_lacks() {
    let (new, fixed) = patched(TWICE);
    assert_eq!(new.iter().map(|l| l.trim()).collect::<Vec<_>>(), ["bar.sync 0;", "bar.sync 0;"]);
    let lines: Vec<&str> = fixed.lines().map(str::trim).collect();
    let at = |word: &str| lines.iter().position(|l| l.starts_with(word)).expect("it is there");
    assert_eq!([at("bar.sync") - at("st.shared"), at("ld.shared") - at("st.shared")], [1, 2], "{fixed}");
    assert_eq!(judged(&fixed).verdicts.words(), ["clean"], "{fixed}");
}

#[test]
fn no_barrier_stands_where_data_decides() {
    // The words meet in a branch that data decides: threads need not all come there.
    let mut text =
        TWICE.replace("    st.shared.u32 [%r3], %r5;\n", "").replace("    ld.shared.u32 %r5, [%r4];\n", "");
    text = text.replace("    st.shared.u32 [%r3], %r0;\n", "");
    text = text.replace(
        "    st.global.u32 [%rd3], %r5;\n",
        "    st.shared.u32 [%r3], %r0;\n    ld.shared.u32 %r5, [%r4];\n",
    );
    let answer = judged(&text);
    assert_eq!(answer.verdicts.words(), ["race"]);
    let advice = answer.parts[0].advice.as_ref().expect("there is something wrong");
    assert!(advice.patch.is_none() && advice.none.is_some(), "{advice:?}");
}

/// A flag between two CTAs, released for its own CTA only.
const NARROW: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry narrow(.param .u64 data)
.reqntid 32
{
    .reg .pred %p<3>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [data];
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra END;
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READ;
    st.global.u32 [%rd0], 1;
    st.release.cta.global.u32 [%rd0+128], 1;
    bra END;
READ:
    ld.acquire.gpu.global.u32 %r2, [%rd0+128];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra READ;
    ld.global.u32 %r3, [%rd0];
END:
    ret;
}
";

#[test]
fn edits_of_a_module_are_in_its_own_names() {
    let answer = judged(NARROW);
    let advice = answer.parts[0].advice.as_ref().expect("there is something wrong");
    let says = "write `st.release.gpu.global.u32 [%rd0+128], 1` instead of `st.release.cta.global.u32 [%rd0+128], 1` in line 18";
    assert_eq!(advice.edits, [says], "{advice:?}");
}

/// The lanes of one warp of two write a matrix and read words of it.
const MATRIX: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry matrix(.param .u64 out)
.reqntid 64
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 16 .b8 buf[512];
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, buf;
    shl.b32 %r2, %r0, 4;
    add.u32 %r3, %r1, %r2;
    shl.b32 %r4, %r0, 2;
    add.u32 %r5, %r1, %r4;
    setp.ge.u32 %p0, %r0, 32;
    @%p0 bra END;
    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3], {%r0, %r0, %r0, %r0};
    ld.shared.u32 %r6, [%r5];
    mul.wide.u32 %rd1, %r0, 4;
    add.s64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r6;
END:
    ret;
}
";

#[test]
fn lanes_of_one_warp_meet_where_other_warps_do_not_come() {
    let (new, fixed) = patched(MATRIX);
    assert!(new.len() == 1 && new[0].trim().starts_with("bar.warp.sync"), "{new:?}");
    assert_eq!(judged(&fixed).verdicts.words(), ["clean"], "{fixed}");
}

/// Two warps wait for the phase before the first, which is over, and read what a copy brings.
const EARLY: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry early(.param .u64 in, .param .u64 out)
.reqntid 64
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    .shared .align 128 .b8 buf[256];
    .shared .align 8 .b8 full[8];
    ld.param.u64 %rd0, [in];
    ld.param.u64 %rd1, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, buf;
    mov.u32 %r2, full;
    shl.b32 %r3, %r0, 2;
    add.u32 %r4, %r1, %r3;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.mbarrier_init.release.cluster;
READY:
    bar.sync 0;
    @%p0 bra LOOP;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [%r2], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 256, [%r2];
LOOP:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 1;
    @!%p1 bra LOOP;
    ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %rd3, %r0, 4;
    add.s64 %rd4, %rd1, %rd3;
    st.global.u32 [%rd4], %r5;
    ret;
}
";

#[test]
fn a_wait_of_a_module_gets_the_parity_of_the_phase() {
    let (new, fixed) = patched(EARLY);
    assert_eq!(
        new.iter().map(|l| l.trim()).collect::<Vec<_>>(),
        ["mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;"]
    );
    assert_eq!(judged(&fixed).verdicts.words(), ["clean"], "{fixed}");
}

/// Each thread clears a bin and counts in the bin that its data names.
const BINS: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry bins(.param .u64 in)
.reqntid 64
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 bins[256];
    ld.param.u64 %rd0, [in];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, bins;
    add.s32 %r3, %r2, %r1;
    mul.wide.u32 %rd1, %r0, 4;
    add.s64 %rd2, %rd0, %rd1;
    ld.global.u32 %r4, [%rd2];
    and.b32 %r5, %r4, 63;
    shl.b32 %r6, %r5, 2;
    add.s32 %r7, %r2, %r6;
    st.shared.u32 [%r3], 0;
    red.shared.add.u32 [%r7], 1;
    ret;
}
";

#[test]
fn updates_of_places_that_data_decides_come_behind_a_barrier() {
    let (new, fixed) = patched(BINS);
    assert_eq!(new.iter().map(|l| l.trim()).collect::<Vec<_>>(), ["bar.sync 0;"]);
    assert_eq!(judged(&fixed).verdicts.words(), ["clean"], "{fixed}");
}

/// The last CTA adds up what all have written, four at a time and then one at a time; no fence is behind its ticket.
const LAST: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry last(.param .u64 parts, .param .u64 ticket, .param .u64 sum)
.reqntid 1
{
    .reg .pred %p<5>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd0, [parts];
    ld.param.u64 %rd1, [ticket];
    ld.param.u64 %rd2, [sum];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %nctaid.x;
    mul.wide.u32 %rd3, %r0, 4;
    add.s64 %rd4, %rd0, %rd3;
    st.global.u32 [%rd4], %r0;
    fence.acq_rel.gpu;
    sub.u32 %r2, %r1, 1;
    atom.global.inc.u32 %r3, [%rd1], %r2;
    setp.ne.u32 %p0, %r3, %r2;
    @%p0 bra END;
    mov.u32 %r4, 0;
    mov.u32 %r5, %r1;
    setp.lt.u32 %p1, %r5, 4;
    @%p1 bra REST;
FOUR:
    ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd0];
    add.u32 %r4, %r4, %r6;
    add.u32 %r4, %r4, %r7;
    add.u32 %r4, %r4, %r8;
    add.u32 %r4, %r4, %r9;
    add.s64 %rd0, %rd0, 16;
    sub.u32 %r5, %r5, 4;
    setp.ge.u32 %p2, %r5, 4;
    @%p2 bra FOUR;
REST:
    setp.eq.u32 %p3, %r5, 0;
    @%p3 bra WRITE;
ONE:
    ld.global.u32 %r10, [%rd0];
    add.u32 %r4, %r4, %r10;
    add.s64 %rd0, %rd0, 4;
    sub.u32 %r5, %r5, 1;
    setp.ne.u32 %p4, %r5, 0;
    @%p4 bra ONE;
WRITE:
    st.global.u32 [%rd2], %r4;
END:
    ret;
}
";

#[test]
fn a_fence_holds_for_launches_that_read_elsewhere() {
    let (new, fixed) = patched(LAST);
    assert_eq!(new.iter().map(|l| l.trim()).collect::<Vec<_>>(), ["fence.acquire.gpu;"]);
    let at = |word: &str| fixed.find(word).expect("it is there");
    assert!(at("atom") < at("fence.acquire") && at("fence.acquire") < at("@%p0"), "{fixed}");
    assert_eq!(judged(&fixed).verdicts.words(), ["clean"], "{fixed}");
}

/// A loop at the start of a kernel, and one that nothing leads to.
#[test]
fn a_loop_that_nothing_leads_into_has_an_answer() {
    let head = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n.reqntid 32\n{\n    .reg .pred %p<2>;\n    \
         .reg .b32 %r<4>;\n    .reg .b64 %rd<2>;\n";
    let spins = "L:\n    ld.param.u64 %rd0, [out];\n    ld.acquire.gpu.global.u32 %r0, [%rd0];\n    setp.eq.u32 %p0, %r0, 0;\n    @%p0 bra L;\n    \
         ret;\n";
    let dead = "    ld.param.u64 %rd0, [out];\n    ret;\nL:\n    ld.acquire.gpu.global.u32 %r0, [%rd0];\n    setp.eq.u32 %p0, %r0, 0;\n    \
         @%p0 bra L;\n    ret;\n";
    for body in [spins, dead] {
        assert!(!judged(&format!("{head}{body}}}\n")).verdicts.words().is_empty(), "{body}");
    }
}

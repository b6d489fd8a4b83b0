//! Edits keep what the program is for: what hides a mistake is not offered, and what is right is.

use crate::shared::{Under, read};
use moire_mend::{Advice, Why, describe};
use moire_program::edit::{Added, Edit};
use moire_program::ir::{Op, Program};
use moire_program::text::print;

fn advice(text: &str) -> Result<(Program, Advice), Why> {
    let program = read(text);
    let advice = Under::new("ptx").mend(&program, None)?;
    Ok((program, advice))
}

/// A consumer waits for a product that nobody issues.
const NO_PRODUCT: &str = "moire \"no product\"
.tmem S[32];
.shared .b64 full;
m (gpu 0, cta 0, warp 0) {
  mbarrier.init.shared::cta.b64 [full], 1;
  fence.mbarrier_init.release.cluster;
  bar.sync 15;
}
c (gpu 0, cta 0, warp 4) {
  bar.sync 15;
L1:
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [full], 0;
  @!p bra L1;
  tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {d1}, [S];
  tcgen05.wait::ld.sync.aligned;
}
";

/// The writer forgets to arrive.
const NO_ARRIVAL: &str = "moire \"no arrival\"
.shared .b32 x;
.shared .b64 full;
m (gpu 0, cta 0, warp 0) {
  mbarrier.init.shared::cta.b64 [full], 1;
  fence.mbarrier_init.release.cluster;
  bar.sync 15;
  st.weak.shared::cta.b32 [x], 1;
}
c (gpu 0, cta 0, warp 4) {
  bar.sync 15;
L1:
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [full], 0;
  @!p bra L1;
  ld.weak.shared::cta.b32 r, [x];
}
";

#[test]
fn nobody_arrives_for_what_was_not_written() {
    assert_eq!(advice(NO_PRODUCT).err(), Some(Why::Nothing));
    let (program, advice) = advice(NO_ARRIVAL).expect("an arrival is missing");
    let words = describe(&program, &advice.steps);
    assert!(words[0].contains("mbarrier.arrive.release.cta"), "{words:?}");
    assert!(words.len() == 1 && words[0].contains("behind line 8"), "{words:?}");
}

/// The last CTA adds up what the others wrote, and no fence is around the ticket.
const TICKET: &str = "moire \"ticket\"
.global .b8 s[32];
.global .b32 sem;
t_0 (gpu 0, cta 0, warp 0) {
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait;
  st.weak.global.b32 [s], 1;
  atom.relaxed.gpu.global.add.u32 r, [sem], 1;
}
t_1 (gpu 0, cta 1, warp 0) {
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait;
  atom.relaxed.gpu.global.add.u32 r, [sem], 1;
  setp.ne.u32 p, r, 1;
  @p bra S2;
  ld.weak.global.b32 r0, [s];
S2:
}
";

#[test]
fn a_fence_is_not_narrower_than_the_update_beside_it() {
    let (_, advice) = advice(TICKET).expect("fences are missing");
    let text = print(&advice.program);
    assert!(text.contains("fence.release.gpu") && text.contains("fence.acquire.gpu"), "{text}");
}

/// An arrival at the mbarrier of the other CTA names the own one.
const OTHER_CTA: &str = include_str!("../../../../corpus/litmus/bugs/tvm-20074-buggy.litmus");
/// A relay arrives at the scope of the CTA for a product of a pair of CTAs.
const RELAY: &str = include_str!("../../../../corpus/litmus/bugs/quack-63-buggy.litmus");

#[test]
fn an_arrival_at_another_cta_is_of_the_cluster_and_stays_an_arrival() {
    let (_, other) = advice(OTHER_CTA).expect("the arrival goes to the wrong CTA");
    assert!(print(&other.program).contains("mbarrier.arrive.release.cluster.shared::cluster"));
    let commits = |p: &Program| print(p).matches("tcgen05.commit").count();
    if let Ok((program, relay)) = advice(RELAY) {
        assert_eq!(commits(&relay.program), commits(&program), "{:?}", describe(&program, &relay.steps));
    }
}

/// Each thread reads what its neighbour wrote.
const NEIGHBOUR: &str = "moire \"neighbour\"
.shared .b32 x;
.shared .b32 y;
P0 (gpu 0, cta 0, warp 0) {
  st.weak.shared::cta.u32 [x], 1;
  ld.weak.shared::cta.u32 r0, [y];
}
P1 (gpu 0, cta 0, warp 1) {
  st.weak.shared::cta.u32 [y], 1;
  ld.weak.shared::cta.u32 r0, [x];
}
";

#[test]
fn a_barrier_of_a_kernel_stands_at_one_line_of_all_its_threads() {
    let mut program = read(NEIGHBOUR);
    let lines: Vec<(u32, u32)> = program.threads[0].body.iter().map(|i| (i.line, i.column)).collect();
    for (instr, at) in program.threads[1].body.iter_mut().zip(lines) {
        (instr.line, instr.column) = at;
    }
    let advice = Under::new("ptx").mend(&program, None).expect("a barrier is missing");
    let [step] = advice.steps.as_slice() else { panic!("{:?}", describe(&program, &advice.steps)) };
    let threads: Vec<(usize, usize)> = step.iter().map(|e| (e.thread(), e.at())).collect();
    assert_eq!(threads, [(0, 1), (1, 1)]);
    let whole = |e: &Edit| matches!(e, Edit::Insert { what: Added::Plain(Op::Bar { count: None, .. }), .. });
    assert!(step.iter().all(whole), "{step:?}");
}

/// Warps exchange chunks of tensor memory in place: both read before one of them overwrites.
const EXCHANGE: &str = include_str!("../../../../corpus/litmus/bugs/tlx-1993-buggy.litmus");
/// Two of four waits pass at once.
const PARITIES: &str = include_str!("../../../../corpus/litmus/bugs/tilelang-2927-buggy.litmus");
/// A product of two CTAs takes what the other CTA wrote, and only the own CTA met.
const PEER: &str = include_str!("../../../../corpus/litmus/bugs/tlx-1553-buggy.litmus");

#[test]
fn who_exchanges_reads_first() {
    let (_, advice) = advice(EXCHANGE).expect("barriers are missing");
    let thread = |t: usize| -> Vec<String> {
        let body = &advice.program.threads[t].body;
        let word = |op: &Op| match op {
            Op::Bar { .. } => Some("bar".to_owned()),
            Op::Tcgen05(op) => Some(format!("{op:?}").split([' ', '(', '{']).next().unwrap_or("").to_owned()),
            _ => None,
        };
        body.iter().filter_map(|i| word(&i.op)).collect()
    };
    let meets = ["FenceBefore", "bar", "FenceAfter"];
    let own = [&["Load", "WaitLoad"][..], &meets, &["Store", "WaitStore"], &meets, &["Load"]].concat();
    assert_eq!((thread(0), thread(1)), (own.iter().map(|s| (*s).to_owned()).collect(), thread(0)));
}

#[test]
fn a_wait_that_passes_at_once_waits_for_the_other_parity() {
    let (program, advice) = advice(PARITIES).expect("parities are wrong");
    let words = describe(&program, &advice.steps);
    assert!(words.len() == 2 && words.iter().all(|w| w.contains("], 0` instead of")), "{words:?}");
}

#[test]
fn ctas_meet_behind_the_barrier_of_each() {
    let (program, advice) = advice(PEER).expect("a barrier of the cluster is missing");
    let words = describe(&program, &advice.steps);
    assert!(
        words.iter().all(|w| w.contains("barrier.cluster.") || w.contains("::after_thread")),
        "{words:?}"
    );
    assert!(words.iter().any(|w| w.contains("between lines 33 and 34 of w_1")), "{words:?}");
}

/// Two mbarriers are set up at one address.
const ONE_ADDRESS: &str = include_str!("../../../../corpus/litmus/bugs/tlx-462-buggy.litmus");
/// The memory of an mbarrier is used for another one, after its threads have met.
const REUSED: &str = "moire \"reused\"
.shared .b64 m;
t (gpu 0, cta 0, warp 0) {
  mbarrier.init.shared::cta.b64 [m], 1;
  bar.sync 0;
  mbarrier.init.shared::cta.b64 [m], 2;
}
u (gpu 0, cta 0, warp 1) {
  bar.sync 0;
}
";

#[test]
fn an_end_between_two_starts_hides_no_wrong_address() {
    assert_eq!(advice(ONE_ADDRESS).err(), Some(Why::Nothing));
    let (program, advice) = advice(REUSED).expect("an end is missing");
    let words = describe(&program, &advice.steps);
    assert!(words.len() == 1 && words[0].starts_with("add `mbarrier.inval"), "{words:?}");
}

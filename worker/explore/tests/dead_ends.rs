//! Few decisions must do: programs whose pending addresses once led to hundreds of thousands of dead ends, and threads that
//! wait for each other.

#![allow(clippy::unwrap_used, reason = "tests")]

use moire_cat::{Variants, builtin};
use moire_explore::explorer::LeafView;
use moire_explore::families::named;
use moire_explore::{Limits, Summary, explore};
use moire_program::text::{Format, parse};
use std::ops::ControlFlow;

/// A wide store through a computed address may land on every byte that is read before it.
const WIDE: &str = r#"moire "wide"
.global .b8 x[16];
.global .b8 y[16];
P0 (gpu 0, cta 0) {
  st.weak.global.u32 [y], 1;
  st.weak.global.u8 [x+1], 1;
  st.weak.global.u16 [y+2], 2;
  st.weak.global.u64 [x], 2;
}
P1 (gpu 0, cta 1) {
  ld.weak.global.v2.u64 {r0, r1}, [x];
  fence.acquire.gpu;
  xor.b64 r2, r0, r0;
  mov.u64 r3, y;
  add.u64 r3, r3, r2;
  st.weak.global.v2.u64 [r3], {3, 4};
  ld.weak.global.v2.u64 {r4, r5}, [y];
}
"#;

/// Reads stay open for writes that turn out to go elsewhere, in front of two spin loops.
const SPINS: &str = r#"moire "spins"
.global .b64 x;
.global .b64 y;
P0 (gpu 0, cta 0) {
  ld.weak.global.u32 r0, [y+4];
  xor.b64 r1, r0, r0;
  mov.u64 r2, x;
  add.u64 r2, r2, r1;
  st.release.cta.global.u64 [r2], 2;
  setp.eq.u64 r3, r0, 0;
  @!r3 st.weak.global.u64 [y], 1;
L0:
  atom.release.cluster.cas.b64 r4, [x], 0, 4;
  setp.ne.u64 r5, r4, 0;
  @r5 bra L0;
}
P1 (gpu 0, cta 1) {
  st.release.gpu.global.u64 [x], 1;
  ld.weak.global.u64 r0, [y];
L0:
  ld.weak.global.u64 r1, [y];
  setp.eq.u64 r2, r1, 0;
  @r2 bra L0;
}
P2 (gpu 0, cta 2) {
  ld.acquire.sys.global.u64 r0, [x];
  setp.eq.u64 r1, r0, 0;
  @r1 bra L0;
  ld.weak.global.u16 r2, [y];
L0:
  st.weak.global.u64 [x], 3;
}
"#;

fn within(text: &str, steps: u64) -> Summary {
    let model = builtin::load("ptx", &Variants::new()).unwrap();
    let program = parse(text, Format::Native).unwrap();
    let limits = Limits { steps, ..Limits::default() };
    let seen = &mut |_: &mut dyn LeafView| ControlFlow::Continue(());
    let summary = explore(&program, &model, &[], &limits, seen).unwrap();
    assert_eq!(summary.bounded, None, "{}: {summary:?}", program.name);
    assert!(summary.complete + summary.blocked > 0, "{}: {summary:?}", program.name);
    summary
}

#[test]
fn pending_addresses_cost_few_decisions() {
    for text in [WIDE, SPINS] {
        let summary = within(text, 3_000);
        assert!(summary.dead_ends < 10, "{summary:?}");
    }
}

/// A thread takes a write that ends its wait or goes on waiting, and waits only while that may lead somewhere: also in rings
/// of load buffering.
#[test]
fn awaits_cost_few_dead_ends() {
    for (name, n, most) in
        [("lbawait", 6, 0), ("seqlock", 2, 0), ("mpmc", 4, 7), ("ttas", 3, 160), ("ticket", 4, 190)]
    {
        let summary = within(&named(name).unwrap().text(n), 100_000);
        assert_eq!(summary.blocked, 0, "{name}({n}): {summary:?}");
        assert!(summary.dead_ends <= most, "{name}({n}): {summary:?}");
    }
}

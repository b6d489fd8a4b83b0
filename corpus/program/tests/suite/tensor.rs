//! Tensor-core instructions: cells and bytes compared with the published tables, texts, canonical form, reduction.

use moire_program::canon::canonical;
use moire_program::ir::*;
use moire_program::reduce::{Limits, minimise};
use moire_program::tensor::*;
use moire_program::text::{Format, Severity, parse, print};
use moire_program::validate::{Target, notation, targets, validate};

fn read(threads: &str) -> Result<Program, String> {
    let text = format!(
        "moire \"k\"\n.tmem t[128];\n.tmem u[64];\n.shared .b8 a[8192];\n.shared .b64 bar;\n.global .b8 g[256];\n{threads}\n"
    );
    parse(&text, Format::Native).map_err(|e| e.to_string())
}

fn program(threads: &str) -> Program {
    let program = read(threads).unwrap_or_else(|e| panic!("{threads}: {e}"));
    assert_eq!(parse(&print(&program), Format::Native).unwrap(), program);
    program
}

fn one(line: &str) -> Op {
    program(&format!("P0 (gpu 0, cta 0) {{ {line}; }}")).threads[0].body[0].op.clone()
}

fn touched(line: &str) -> Vec<Touch> {
    let Op::Tcgen05(op) = one(line) else { panic!("{line}") };
    touches(&op, None).unwrap()
}

fn shape(cells: &[Cells]) -> Vec<(u32, u32)> {
    let size = |c: &Cells| (c.lanes.end - c.lanes.start, c.columns.end - c.columns.start);
    cells.iter().map(size).collect()
}

/// Source: PTX ISA 9.2, 9.7.16.2.3 and the pages of tcgen05.ld and tcgen05.st.
#[test]
fn loads_and_stores_touch_lanes_by_columns() {
    for times in [1u8, 2, 4, 8, 16, 32, 64, 128] {
        let n = u32::from(times);
        let of = |s| shape(&moved(s, times, Some(64), false));
        assert_eq!(of(MoveShape::L32x32b), [(32, n)]);
        assert_eq!(of(MoveShape::L16x64b), [(16, 2 * n)]);
        assert_eq!(of(MoveShape::L16x128b), [(16, 4 * n)]);
        assert_eq!(of(MoveShape::L16x256b), [(16, 8 * n)]);
        assert_eq!(of(MoveShape::L16x32bx2), [(16, n), (16, n)]);
        assert_eq!(shape(&moved(MoveShape::L32x32b, times, None, true)), [(32, 2 * n)]);
    }
    let halves = touched("tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {r0, r1}, [t+lane 32+8], 16");
    assert_eq!((halves[0].usage, halves[0].addr.offset), (Usage::Read, 32 << 16 | 8));
    assert_eq!(halves[0].cells[1].columns, 16..18);
}

#[test]
fn copies_touch_the_cells_of_their_shape() {
    let of = |words: &str| {
        let all = touched(&format!("tcgen05.cp.cta_group::1.{words} [t], d"));
        assert_eq!((all.len(), all[0].usage), (1, Usage::Write));
        shape(&all[0].cells)
    };
    assert_eq!(of("128x256b"), [(128, 8)]);
    assert_eq!(of("4x256b"), [(4, 8)]);
    assert_eq!(of("128x128b"), [(128, 4)]);
    // A copy of 64 lanes goes to two pairs of warps, one of 32 lanes to four warps. Both fill 128 lanes.
    assert_eq!(of("64x128b.warpx2::02_13"), [(128, 4)]);
    assert_eq!(of("32x128b.warpx4"), [(128, 4)]);
    let bytes = |s| {
        let e = copied_extent(s);
        e.mn * e.k * e.bits / 8
    };
    let sources: Vec<u32> = [
        CopyShape::S128x256b,
        CopyShape::S4x256b,
        CopyShape::S128x128b,
        CopyShape::S64x128bPairs02And13,
        CopyShape::S32x128bAllWarps,
    ]
    .map(bytes)
    .to_vec();
    assert_eq!(sources, [4096, 128, 2048, 1024, 512]);
    assert_eq!(shape(&shifted()), [(32, 8)]);
}

#[test]
fn accumulators_follow_the_data_path_layouts() {
    let of = |group, ws, sparse, m| accumulator(group, ws, sparse, m, 64).map(|c| shape(&c));
    let half = Some(vec![(16, 64); 4]);
    assert_eq!(of(CtaGroup::Two, false, false, 256), Some(vec![(128, 64)]), "A");
    assert_eq!(of(CtaGroup::Two, false, false, 128), Some(vec![(128, 32)]), "B");
    assert_eq!(of(CtaGroup::Two, false, true, 128), half, "C");
    assert_eq!(of(CtaGroup::One, false, false, 128), Some(vec![(128, 64)]), "D");
    assert_eq!(of(CtaGroup::One, true, false, 64), Some(vec![(128, 32)]), "E");
    assert_eq!(of(CtaGroup::One, false, false, 64), half, "F");
    assert_eq!(of(CtaGroup::One, true, false, 32), Some(vec![(128, 16)]), "G");
    assert_eq!(of(CtaGroup::One, false, false, 256), None);
    assert_eq!(of(CtaGroup::Two, true, false, 128), None);
    // In every layout a CTA holds as many cells as it has elements.
    for (group, ws, sparse, m) in [
        (CtaGroup::Two, false, false, 256),
        (CtaGroup::Two, false, false, 128),
        (CtaGroup::Two, false, true, 128),
        (CtaGroup::One, false, false, 128),
        (CtaGroup::One, true, false, 64),
        (CtaGroup::One, false, false, 64),
        (CtaGroup::One, true, false, 32),
    ] {
        let cells = accumulator(group, ws, sparse, m, 64).unwrap();
        let count: u32 = cells.iter().map(Cells::count).sum();
        assert_eq!(count, u32::from(m) * 64 / u32::from(group.ctas()), "{group:?} {ws} {m}");
    }
}

#[test]
fn products_touch_all_their_operands() {
    let all = touched(
        "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [t], [u], desc(a, 4096), idesc(256, 128), [t+64], [t+68], p",
    );
    let uses: Vec<Usage> = all.iter().map(|t| t.usage).collect();
    assert_eq!(uses, [Usage::MaybeUpdate, Usage::Read, Usage::Read, Usage::Read]);
    assert!(all.iter().all(|t| t.pair));
    assert_eq!(shape(&all[0].cells), [(128, 128)]);
    assert_eq!(shape(&all[1].cells), [(128, 8)]);
    let written = touched("tcgen05.mma.cta_group::1.kind::f16 [t], d, d, idesc(64, 64), 0");
    assert_eq!((written[0].usage, written[0].pair), (Usage::Write, false));
    let Op::Tcgen05(packed) = one("tcgen05.mma.cta_group::1.kind::f16 [t], d, d, i, 1") else { panic!() };
    assert_eq!(touches(&packed, None), None);
    assert_eq!(touches(&packed, Some((128, 64))).unwrap()[0].usage, Usage::Update);
}

/// A typical descriptor of a kernel: no swizzle, 128 and 256 bytes between groups.
#[test]
fn packed_descriptors_name_bytes() {
    let plain = SharedMatrix::decode(0x0000_4010_0008_0000 | 0x1234).unwrap();
    assert_eq!((plain.start, plain.leading, plain.stride), (0x12340, 128, 256));
    assert_eq!(plain.swizzle, Swizzle::None);
    let a = factor_extent(MmaKind::F16, 128, false, Major::K);
    assert_eq!((a.k, a.bits), (16, 16));
    // 128 rows of 32 bytes without a gap.
    assert_eq!(plain.ranges(a), [0x12340..0x12340 + 4096]);
    // A gap between groups of eight rows.
    let wide = SharedMatrix { start: 0, leading: 128, stride: 512, ..plain };
    let gaps = wide.ranges(Extent { mn: 16, ..a });
    assert_eq!(gaps, [0..256, 512..768]);
    assert_eq!(SharedMatrix::decode(0x0000_0010_0008_0000), None, "the constant field is 0b001");
    assert_eq!(SharedMatrix::decode(3 << 61 | 1 << 46), None, "there is no such swizzle");
}

#[test]
fn swizzles_exchange_chunks_within_rows() {
    let rows = |swizzle, start| {
        let m = SharedMatrix { start, leading: 16, stride: 1024, base_offset: 0, absolute: false, swizzle };
        m.ranges(factor_extent(MmaKind::F16, 8, false, Major::K))
    };
    // Eight rows of 128 bytes, two chunks of each: row 0 stays in place, row 1 is rotated by one chunk, and so on.
    let first = rows(Swizzle::B128, 0);
    assert_eq!(first.iter().map(|r| r.end - r.start).sum::<u32>(), 256);
    assert_eq!(first[0], 0..32);
    assert!(first.contains(&(128..160)) && first.contains(&(256 + 32..256 + 64)));
    // All steps along a row together cover the whole tile, each byte once.
    for (swizzle, width) in
        [(Swizzle::B128, 128u32), (Swizzle::B64, 64), (Swizzle::B32, 32), (Swizzle::B128Atom32, 128)]
    {
        let mut bytes: Vec<u32> = (0..width).step_by(32).flat_map(|s| rows(swizzle, s)).flatten().collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..8 * width).collect::<Vec<_>>(), "{swizzle:?}");
    }
    let inside = SharedMatrix {
        start: 0,
        leading: 16,
        stride: 1024,
        base_offset: 1,
        absolute: false,
        swizzle: Swizzle::B128,
    };
    let more = inside.ranges(factor_extent(MmaKind::F16, 8, false, Major::K));
    assert_eq!(more, [0..1024], "whole rows where the pattern does not start");
}

#[test]
fn matrices_along_their_rows_have_the_same_bytes() {
    for swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128] {
        let row = if swizzle == Swizzle::None { 16 } else { [32, 64, 128][swizzle as usize - 1] };
        // 128 rows of 16-bit elements, 16 deep, atoms one after the other.
        let m = SharedMatrix {
            start: 0,
            leading: 8 * row,
            stride: 8 * row * (256 / row),
            base_offset: 0,
            absolute: false,
            swizzle,
        };
        let m = if swizzle == Swizzle::None { SharedMatrix { leading: 2048, stride: 128, ..m } } else { m };
        let ranges = m.ranges(factor_extent(MmaKind::F16, 128, false, Major::Mn));
        assert_eq!(ranges, [0..4096], "{swizzle:?}");
    }
}

#[test]
fn instruction_descriptors_hold_the_shape() {
    // The descriptor in the published modules: 128 rows, 64 columns, 32-bit accumulator.
    let f16 = InstructionDescriptor::decode(0x0810_0490, MmaKind::F16);
    assert_eq!((f16.m, f16.n, f16.sparse), (128, 64, false));
    assert_eq!((f16.a_major, f16.b_major), (Major::K, Major::K));
    let mx = InstructionDescriptor::decode(1 << 27 | 8 << 17 | 1 << 2 | 1 << 15, MmaKind::Mxf4);
    assert_eq!((mx.m, mx.n, mx.sparse, mx.a_major), (128, 64, true, Major::Mn));
}

#[test]
fn targets_have_every_instruction() {
    let all = program("P0 (gpu 0, cta 0) { ld.global.u32 r, [g]; }");
    assert_eq!(targets(&all).len(), Target::ALL.len());
    let none = program("P0 (gpu 0, cta 0) { tcgen05.fence::before_thread_sync; wgmma.fence.sync.aligned; }");
    assert_eq!(targets(&none), []);
    let errors: Vec<_> =
        validate(&none).into_iter().filter(|d| d.severity == Severity::Error).map(|d| d.rule).collect();
    assert_eq!(errors, [Some("target")]);
}

#[test]
fn a_kernel_has_one_kind_of_cta_group() {
    let mixed = |grid: &str| {
        program(&format!(
            "P0 (gpu 0, cta 0) {{ tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; }}\n\
             P1 (gpu 0{grid}, cta 1) {{ tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned; }}"
        ))
    };
    let wrong = |p: &Program| validate(p).iter().any(|d| d.rule == Some("cta-group"));
    assert!(wrong(&mixed("")));
    assert!(!wrong(&mixed(", grid 1")));
}

#[test]
fn addresses_are_in_the_space_of_their_instruction() {
    let wrong = |line: &str| {
        let p = read(&format!("P0 (gpu 0, cta 0) {{ {line}; }}"));
        p.map_or_else(
            |refused| {
                ["another state space", "not in tensor memory", "a register stands here"]
                    .iter()
                    .any(|w| refused.contains(w))
            },
            |p| validate(&p).iter().any(|d| d.rule == Some("state-space")),
        )
    };
    for (bad, good) in [
        ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [a]", "tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [t]"),
        (
            "tcgen05.cp.cta_group::1.128x128b [t], desc(g, 16)",
            "tcgen05.cp.cta_group::1.128x128b [t], desc(a, 16)",
        ),
        (
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 a, 32",
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 t, 32",
        ),
        ("cp.async.ca.shared.global [g], [g], 4", "cp.async.ca.shared.global [a], [g], 4"),
        (
            "cp.async.bulk.global.shared::cta.bulk_group [a], [a], 16",
            "cp.async.bulk.global.shared::cta.bulk_group [g], [a], 16",
        ),
        ("ld.u32 r, [t]", "ld.u32 r, [a]"),
    ] {
        assert!(wrong(bad), "{bad}");
        assert!(!wrong(good), "{good}");
    }
}

#[test]
fn our_own_notations_are_recognised() {
    for (ours, theirs) in [
        ("tcgen05.shift.cta_group::1.down [t]", "tcgen05.shift.cta_group::1.down [r]"),
        ("tcgen05.cp.cta_group::1.128x128b [r], desc(a, 16)", "tcgen05.cp.cta_group::1.128x128b [r], d"),
        (
            "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [tile(g, 16), {0}]",
            "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [g, {0}]",
        ),
        ("cp.async.ca.shared.global [a], [g], 4, @p", "cp.async.ca.shared.global [a], [g], 4, !p"),
    ] {
        assert!(notation(&one(ours)).is_some(), "{ours}");
        assert_eq!(notation(&one(theirs)), None, "{theirs}");
    }
}

#[test]
fn refusals_say_what_is_expected() {
    let refused = |line: &str, expected: &str| {
        let text = format!("moire \"k\" .tmem t[64]; .shared .b64 s; P0 (gpu 0, cta 0) {{ {line}; }}");
        let error = parse(&text, Format::Native).expect_err(line).to_string();
        assert!(error.contains(expected), "{line}: {error}");
    };
    refused("tcgen05.wiat::ld.sync.aligned", "did you mean `tcgen05.wait::ld`?");
    refused("tcgen05.wait::ld.sync", "needs .aligned");
    refused("tcgen05.cp.cta_group::1.64x128b [t], d", ".warpx2::02_13");
    refused("tcgen05.mma.kind::f16 [t], d, d, i, 1", "needs .cta_group::1 or .cta_group::2");
    refused("tcgen05.mma.cta_group::1.kind::f16 [t], s, d, i, 1", "desc(name, bytes)");
    refused("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [0]", "a number is an address in .local alone");
    refused("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [t+lane 128]", "out of range");
    refused("tcgen05.fence::after_thread_sync.sync", "is not a qualifier");
    refused("cp.async.bulk.shared::cta.global.bulk_group [s], [s], 16", "another state space");
    refused("fence.proxy.async::generic.acquire.cluster", ".sync_restrict");
    let declared =
        |text: &str| parse(&format!("moire \"k\" {text}"), Format::Native).expect_err(text).to_string();
    assert!(declared(".tmem t[48];").contains("multiples of 32"));
    assert!(declared(".tmem t[512]; .tmem u[32];").contains("512 are taken already"));
    assert!(declared(".tmem t[32]; .alias x = t;").contains("one name"));
    assert!(declared(".tmem t[32]; exists ([t] == 1)").contains("cannot read tensor memory"));
}

const PAIR: &str = "P0 (gpu 0, cta 0) {\n\
    ld.global.u32 junk, [g];\n\
    tcgen05.mma.cta_group::2.kind::f16.collector::a::fill [t], desc(a, 4096), desc(a+4096, 2048), idesc(256, 64), p;\n\
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], 3;\n}\n\
    P1 (gpu 0, cta 1) { tcgen05.ld.sync.aligned.32x32b.x8.b32 {v0, v1, v2, v3, v4, v5, v6, v7}, [u]; st.global.u32 [g+8], v3; }";

#[test]
fn canonical_form_renames_tensor_memory() {
    let first = program(PAIR);
    let other = PAIR.replace("[t]", "[u ]").replace("[u]", "[t]").replace("[u ]", "[u]").replace("v3", "w");
    let text = format!(
        "moire \"x\"\n.global .b8 g[256];\n.tmem t[64];\n.shared .b64 bar;\n.tmem u[128];\n.shared .b8 a[8192];\n{other}"
    );
    let second = parse(&text, Format::Native).unwrap();
    let (one, two) = (canonical(&first), canonical(&second));
    assert_eq!(one.text, two.text);
    assert_eq!(canonical(&one.program).id, one.id);
    let weaker = canonical(&program(&PAIR.replace("collector::a::fill", "collector::a::use")));
    assert_ne!(weaker.id, one.id);
    // A multicast mask names CTAs by rank, so the placement of the first CTA is part of the canonical form.
    let swapped = PAIR.replace("cta 0", "cta 7");
    assert_ne!(canonical(&program(&swapped)).id, one.id);
}

#[test]
fn reduction_drops_unneeded_instructions() {
    let kept = |p: &Program| {
        let ops = || p.threads.iter().flat_map(|t| &t.body).map(|i| &i.op);
        ops().any(|op| matches!(op, Op::Tcgen05(Tcgen05::Mma(_))))
            && ops().any(|op| matches!(op, Op::Tcgen05(Tcgen05::Load(_))))
    };
    let mut seen = 0;
    let found = minimise(
        &program(PAIR),
        |p| {
            seen += 1;
            assert_eq!(parse(&print(p), Format::Native).as_ref(), Ok(p), "{}", print(p));
            kept(p)
        },
        Limits::default(),
    );
    assert!(found.complete && seen > 10);
    let text = print(&found.program);
    assert!(!text.contains("commit") && !text.contains("ld.global") && !text.contains("collector"), "{text}");
    assert!(text.contains("32x32b.x1.b32 {") && text.contains("cta_group::1"), "{text}");
    assert_eq!(found.program.threads.iter().map(|t| t.body.len()).sum::<usize>(), 2, "{text}");
}

//! Tests of compiled kernels run thread by thread, and of cutting a pair, on small kernels in `data/simt` in the form that
//! compilers print.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_kernel::Refusal;
use moire_kernel::ptx;
use moire_kernel::simt::{Pair, slice, threads};
use moire_program::ir::{LoadOrder, Op, Operand, Program, StoreOrder, SymbolId, Thread, TileOp};
use moire_program::text::print;
use moire_program::validate::validate;
use moire_tile_ir::run::{TileLaunch, lower, tile_entry};
use moire_tile_ir::text as tile;
use std::path::Path;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/simt").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn compile(name: &str, blocks: u32, sizes: &[u32]) -> Result<Program, Refusal> {
    let module = ptx::parse(&read(&format!("{name}.ptx"))).unwrap_or_else(|e| panic!("{name}: {e}"));
    threads(&module.kernels[0], blocks, sizes)
}

fn compiled(name: &str, blocks: u32, sizes: &[u32]) -> Program {
    compile(name, blocks, sizes).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn pair(name: &str, blocks: u32) -> Pair {
    let module = tile::parse(&read(&format!("{name}.tile"))).unwrap_or_else(|e| panic!("{name}: {e}"));
    let source = lower(tile_entry(&module, None).unwrap(), &TileLaunch::row(blocks)).unwrap();
    let sizes: Vec<u32> = source.objects.iter().map(|o| o.bytes).collect();
    Pair { compiled: compiled(name, blocks, &sizes), source }
}

fn names(program: &Program) -> Vec<&str> {
    program.threads.iter().map(|t| t.name.as_str()).collect()
}

/// Checks that a program is valid, and that the text of a compiled program reads back.
fn sound(program: &Program) {
    let faults = validate(program);
    let severe = faults.iter().filter(|d| d.severity == moire_program::text::Severity::Error);
    assert_eq!(severe.count(), 0, "{faults:?}\n{}", print(program));
    reads_back(program);
}

fn reads_back(program: &Program) {
    if !program.threads.iter().flat_map(|t| &t.body).any(|i| matches!(i.op, Op::Tile(_))) {
        let again = moire_program::text::native::parse(&print(program)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(print(&again), print(program));
    }
}

/// Lanes 0 to 7 name rows of 16 bytes, here 32 apart. Lane t stores elements 2 (t mod 4) and 2 (t mod 4) + 1 of row t / 4.
#[test]
fn lanes_store_a_matrix_at_rows_that_other_lanes_name() {
    let program = compiled("matrix", 1, &[4]);
    sound(&program);
    for (lane, thread) in (0..).zip(&program.threads) {
        let stored = thread.body.iter().filter_map(|i| match &i.op {
            Op::Store { addr, ty, .. } if ty.bytes() == 2 => Some(addr.offset),
            _ => None,
        });
        let start = 16 + 32 * (lane / 4) + 4 * (lane % 4);
        assert_eq!(stored.collect::<Vec<i32>>(), [start, start + 2], "lane {lane}");
    }
    let text = read("matrix.ptx");
    let refused = |from: &str, to: &str| {
        let module = ptx::parse(&text.replace(from, to)).unwrap();
        assert_ne!(text, text.replace(from, to));
        match threads(&module.kernels[0], 1, &[4]) {
            Err(Refusal::Abstained { what, line: 21 }) => assert!(what.contains("stmatrix"), "{what}"),
            other => panic!("{to}: {other:?}"),
        }
    };
    refused("m8n8.x1.shared", "m8n8.x1.trans.shared");
    refused("stmatrix", "@%p1 stmatrix");
    // Rows whose addresses depend on memory, and rows of lanes that do not exist.
    let module = ptx::parse(&text.replace("and.b32 %r4, %r3, 224", "and.b32 %r4, %r2, 224")).unwrap();
    assert!(threads(&module.kernels[0], 1, &[4]).is_err());
    let module = ptx::parse(&text.replace(".reqntid 32", ".reqntid 6")).unwrap();
    assert!(threads(&module.kernels[0], 1, &[4]).is_ok(), "six lanes need rows 0 and 1 only");
}

#[test]
fn offsets_out_of_range_are_refused() {
    let refused = |file: &str, from: &str, to: &str| {
        let text = read(file).replace(from, to);
        assert_ne!(text, read(file), "{from}");
        let module = ptx::parse(&text).unwrap();
        assert!(matches!(threads(&module.kernels[0], 1, &[64]), Err(Refusal::Abstained { .. })), "{to}");
    };
    // The second element of the first lane would lie 2^31 bytes behind `here`.
    refused("matrix.ptx", "[%r6+16]", "[here+2147483646]");
    // The sum of both offsets wraps to -2.
    let far = "ld.shared.L1::evict_last.b16 %r7, [here+9223372036854775807+9223372036854775807]";
    assert!(ptx::parse(&read("matrix.ptx").replace("ld.shared.b16 %r7, [here+22]", far)).is_err());
}

#[test]
fn threads_have_the_place_of_their_cta_warp_and_lane() {
    let program = compiled("both", 2, &[4, 4, 4]);
    let places: Vec<_> =
        program.threads.iter().map(|t| (t.place.cluster, t.place.cta, t.place.lane())).collect();
    let want = |cta: u16, lane: u8| (cta / 2, cta, Some(lane));
    let all: Vec<_> = (0..4).flat_map(|cta| [want(cta, 0), want(cta, 1)]).collect();
    assert_eq!(places, all);
    let objects: Vec<&str> = program.objects.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(objects, ["arg0", "arg1", "arg2", "here"]);
    let wide = compiled("publish", 2, &[256, 4, 256]);
    let warps: Vec<u16> = wide.threads.iter().map(|t| t.place.warp).collect();
    assert_eq!(warps, [[0; 32], [1; 32], [0; 32], [1; 32]].concat());
}

#[test]
fn cluster_memory_and_barriers() {
    let mut program = compiled("both", 1, &[4, 4, 4]);
    sound(&program);
    program.threads.truncate(3);
    insta::assert_snapshot!("both", print(&program));
}

#[test]
fn a_loop_that_waits_stays_a_loop() {
    let program = compiled("wait", 2, &[256, 4, 256]);
    sound(&program);
    let last = program.threads.last().unwrap();
    let back =
        last.body.iter().enumerate().filter(|(at, i)| matches!(i.op, Op::Bra { target } if target <= *at));
    assert_eq!(back.count(), 1);
    let mut few = program.clone();
    few.threads = vec![program.threads[0].clone(), last.clone()];
    insta::assert_snapshot!("wait", print(&few));
}

#[test]
fn registers_written_under_a_predicate_hold_their_value() {
    let program = compiled("merge", 1, &[64, 64, 4]);
    // Registers of the engines have no fixed width, so the program is not valid PTX.
    reads_back(&program);
    insta::assert_snapshot!("merge", print(&program));
}

/// Runs one thread alone.
fn run(thread: &Thread, read: u128) -> Vec<(i32, u128)> {
    let mut regs = vec![0u128; thread.regs.len()];
    let (mut at, mut out) = (0, Vec::new());
    let cut = |v: u128, bytes: u32| if bytes >= 16 { v } else { v & ((1 << (8 * bytes)) - 1) };
    let signed = |v: u128, bytes: u32| {
        let shift = 128 - 8 * bytes.min(16);
        (v << shift).cast_signed() >> shift
    };
    while let Some(instr) = thread.body.get(at) {
        at += 1;
        let of = |o: Operand| match o {
            Operand::Reg(r) => regs[r.index()],
            Operand::Imm(v) => v.cast_unsigned(),
            Operand::Address(_) => panic!("an address"),
        };
        if instr.guard.is_some_and(|g| (regs[g.reg.index()] != 0) == g.negated) {
            continue;
        }
        match &instr.op {
            Op::Load { dst, ty, .. } => regs[dst[0].index()] = cut(read, ty.bytes()),
            Op::Store { src, ty, addr, .. } => {
                for (i, s) in (0i32..).zip(src) {
                    let Operand::Address(symbol) = addr.base else { panic!("an address from memory") };
                    let bytes = i32::try_from(ty.bytes()).unwrap();
                    let place = 100 * i32::from(symbol.0) + addr.offset + i * bytes;
                    out.push((place, cut(of(*s), ty.bytes())));
                }
            }
            Op::Mov { dst, ty, src } => regs[dst.index()] = cut(of(*src), ty.bytes()),
            Op::Alu { op, ty, dst, a, b } => {
                let n = ty.bytes();
                let (a, b) = (of(*a), of(*b));
                let result = match op {
                    moire_program::ir::AluOp::Add => a.wrapping_add(b),
                    moire_program::ir::AluOp::Sub => a.wrapping_sub(b),
                    moire_program::ir::AluOp::Mul => a.wrapping_mul(b),
                    moire_program::ir::AluOp::And => a & b,
                    moire_program::ir::AluOp::Or => a | b,
                    moire_program::ir::AluOp::Xor => a ^ b,
                    moire_program::ir::AluOp::Shl => a << b,
                    moire_program::ir::AluOp::Shr if matches!(ty, moire_program::ir::Ty::S(_)) => {
                        (signed(a, n) >> b).cast_unsigned()
                    }
                    moire_program::ir::AluOp::Shr => cut(a, n) >> b,
                    other => panic!("{other:?}"),
                };
                regs[dst.index()] = cut(result, n);
            }
            Op::Setp { op, ty, dst, a, b } => {
                let n = ty.bytes();
                let number = |v: u128| match ty {
                    moire_program::ir::Ty::S(_) => signed(v, n),
                    _ => cut(v, n).cast_signed(),
                };
                let (a, b) = (number(of(*a)), number(of(*b)));
                let holds = match op {
                    moire_program::ir::CmpOp::Eq => a == b,
                    moire_program::ir::CmpOp::Gt => a > b,
                    other => panic!("{other:?}"),
                };
                regs[dst.index()] = u128::from(holds);
            }
            Op::Selp { ty, dst, a, b, p } => {
                let one = if regs[p.index()] == 0 { *b } else { *a };
                regs[dst.index()] = cut(of(one), ty.bytes());
            }
            Op::Bra { target } => at = *target,
            other => panic!("{other:?}"),
        }
    }
    out
}

#[test]
fn residual_arithmetic_equals_that_of_the_kernel() {
    let program = compiled("merge", 1, &[64, 64, 4]);
    for read in [0u32, 1, 3, 4, 9, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_0001] {
        let x = read.cast_signed();
        let above = x > 3;
        let r1 = if above { 7 } else { 5 };
        let (p2, p3) = (x == 1 && above, x != 1 && above);
        let h = u16::try_from(!x.wrapping_mul(3).wrapping_add(r1).cast_unsigned() & 0xffff).unwrap();
        let wide = (i64::from(h) * -2).cast_unsigned();
        let mut want = Vec::new();
        if !above {
            want.push((4, 5));
        }
        want.push((100, u128::from(i64::from(x).cast_unsigned())));
        want.push((108, u128::from(wide & 0xffff_ffff)));
        want.push((112, u128::from(wide >> 32)));
        if !p2 {
            want.push((116, if p3 { u128::from(r1.cast_unsigned()) } else { 9 }));
        }
        want.extend([(120, 0), (120, 1)]);
        assert_eq!(run(&program.threads[0], u128::from(read)), want, "{read:#x}");
    }
}

#[test]
fn unknown_results_are_refused_only_if_they_are_needed() {
    let at =
        |text: &str| u32::try_from(text.lines().position(|l| l.contains("add.rn")).unwrap() + 1).unwrap();
    let Err(Refusal::Abstained { what, line }) = compile("floats", 1, &[16, 4, 4]) else {
        panic!("not refused")
    };
    assert_eq!((what.as_str(), line), ("`add.rn.f32` is not interpreted", at(&read("floats.ptx"))));
    let program = compiled("dropped", 1, &[16, 4, 4]);
    assert_eq!(program.threads[0].body.len(), 2);
}

#[test]
fn uninterpreted_instructions_are_refused_by_name() {
    for (instruction, name) in [
        ("mapa.shared::cluster.u32 %r1, %r2, 0;", "`mapa` is not interpreted"),
        ("elect.sync %r1|%p1, -1;", "elect.sync is not interpreted"),
        ("mbarrier.inval.shared.b64 [%r1];", "`mbarrier` is not interpreted"),
        ("trap;", "`trap` is not interpreted"),
        ("@%p1 bra $there; $there:", "a register that was never written is not interpreted"),
    ] {
        let text = read("dropped.ptx").replace(".reg .f32", ".reg .pred %p<3>; .reg .f32");
        let text = text.replace("\tret;", &format!("\t{instruction}\n\tret;"));
        let module = ptx::parse(&text).unwrap_or_else(|e| panic!("{instruction}: {e}"));
        let Err(Refusal::Abstained { what, .. }) = threads(&module.kernels[0], 1, &[16, 4, 4]) else {
            panic!("{instruction}")
        };
        assert_eq!(what, name);
    }
}

#[test]
fn too_many_threads_are_refused() {
    assert!(matches!(compile("publish", 65, &[256, 4, 256]), Err(Refusal::Bounded(_))));
    assert!(matches!(compile("publish", 0, &[256, 4, 256]), Err(Refusal::Bounded(_))));
}

#[test]
fn unused_strong_loads_stay() {
    let count = |text: &str| {
        let module = ptx::parse(text).unwrap();
        threads(&module.kernels[0], 1, &[16, 4, 4]).unwrap().threads[0].body.len()
    };
    let text = read("dropped.ptx").replace("st.global.f32 [%rd1+4], %f1;", "");
    assert_eq!(count(&text), 0);
    assert_eq!(count(&text.replace("ld.global.f32", "ld.relaxed.cta.global.f32")), 1);
    assert_eq!(count(&text.replace("ld.global.f32", "ld.volatile.global.f32")), 1);
}

#[test]
fn a_flag_and_a_tile() {
    let small = slice(&pair("publish", 2)).unwrap();
    sound(&small.compiled);
    assert_eq!(names(&small.source), ["B0", "B1"]);
    // The thread that sets the flag, two others of its block, and three that read it.
    assert!(small.compiled.threads.len() <= 6, "{:?}", names(&small.compiled));
    let release = |i: &Op| matches!(i, Op::Store { order: StoreOrder::Release(_), .. });
    let acquire = |i: &Op| matches!(i, Op::Load { order: LoadOrder::Acquire(_), .. });
    let body = |t: &Thread| t.body.iter().map(|i| i.op.clone()).collect::<Vec<Op>>();
    let all: Vec<Vec<Op>> = small.compiled.threads.iter().map(body).collect();
    assert_eq!(all.iter().filter(|b| b.iter().any(release)).count(), 1);
    assert_eq!(all.iter().filter(|b| b.iter().any(acquire)).count(), small.compiled.threads.len() / 2);
    assert!(all.iter().all(|b| b.iter().any(|i| matches!(i, Op::Bar { .. }))));
    insta::assert_snapshot!("publish", format!("{}\n{}", print(&small.source), print(&small.compiled)));
}

#[test]
fn one_value_for_a_tile() {
    let small = slice(&pair("share", 2)).unwrap();
    sound(&small.compiled);
    // Two threads read the value themselves. In the other block one thread stores and the others do nothing.
    assert_eq!(names(&small.compiled), ["c0t0", "c1t0", "c1t31"]);
    insta::assert_snapshot!("share", format!("{}\n{}", print(&small.source), print(&small.compiled)));
}

#[test]
fn threads_that_exchange_data_are_kept() {
    let small = slice(&pair("turn", 2)).unwrap();
    sound(&small.compiled);
    assert_eq!(names(&small.compiled), ["c0t0", "c0t7"]);
    insta::assert_snapshot!("turn", format!("{}\n{}", print(&small.source), print(&small.compiled)));
}

#[test]
fn first_and_last_of_many_equal_stores_are_kept() {
    let small = slice(&pair("narrow", 2)).unwrap();
    sound(&small.compiled);
    // Even threads store the first element, odd ones the second.
    assert_eq!(names(&small.compiled), ["c0t0", "c0t1", "c0t62", "c0t63", "c1t0"]);
}

#[test]
fn bits_of_an_address_in_shared_memory_are_known() {
    let program = compiled("narrow", 2, &[8, 4]);
    sound(&program);
    let here = |op: &Op| match op {
        Op::Load { addr, .. } | Op::Store { addr, .. } if addr.base == Operand::Address(SymbolId(2)) => {
            Some(addr.offset)
        }
        _ => None,
    };
    let thread = program.threads.iter().find(|t| t.name == "c1t0").unwrap();
    assert_eq!(thread.body.iter().filter_map(|i| here(&i.op)).collect::<Vec<i32>>(), [4, 4]);
}

#[test]
fn every_instruction_of_a_tile_block_keeps_an_element() {
    for name in ["publish", "share", "turn", "narrow"] {
        let (whole, small) = (pair(name, 2), slice(&pair(name, 2)).unwrap());
        let accesses = |p: &Program| -> Vec<usize> {
            let all = p.threads.iter().flat_map(|t| &t.body);
            all.filter_map(|i| {
                if let Op::Tile(TileOp::Access(a)) = &i.op { Some(a.elements.len()) } else { None }
            })
            .collect()
        };
        let (before, after) = (accesses(&whole.source), accesses(&small.source));
        assert_eq!(before.len(), after.len(), "{name}");
        assert!(after.iter().zip(&before).all(|(a, b)| (1..=*b).contains(a)), "{name}: {before:?} {after:?}");
        assert_eq!(whole.source.objects, small.source.objects, "{name}");
        assert_eq!(slice(&small).unwrap(), small, "{name}: a cut of a cut is the same");
    }
}

#[test]
fn addresses_from_memory_are_not_cut() {
    let module =
        ptx::parse(&read("dropped.ptx").replace("ld.global.f32 %f1, [%rd1]", "ld.global.b64 %rd1, [%rd1]"))
            .unwrap();
    let compiled = threads(&module.kernels[0], 1, &[16, 4, 4]);
    // The register is never written now.
    assert!(compiled.is_err());
    let text = read("dropped.ptx")
        .replace("ld.global.f32 %f1, [%rd1];", "ld.global.b64 %rd1, [%rd1]; mov.f32 %f1, 0f00000000;");
    let module = ptx::parse(&text).unwrap();
    let compiled = threads(&module.kernels[0], 1, &[16, 4, 4]).unwrap();
    let source = Program { threads: Vec::new(), ..compiled.clone() };
    assert!(matches!(slice(&Pair { source, compiled }), Err(Refusal::Abstained { .. })));
}

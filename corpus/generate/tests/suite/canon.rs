//! Canonical form: invariant under renaming, idempotent, and sensitive to changes of meaning.

use moire_generate::{Profile, Stream};
use moire_program::canon::canonical;
use moire_program::ir::{
    Expr, FenceOrder, ObjectId, Op, Operand, Program, Reg, RegInit, SymbolId, Term, ThreadId,
};
use moire_program::registers;
use moire_program::text::{Format, parse};
use proptest::prelude::*;

/// Permutes threads, objects, symbols and registers.
fn shuffle(program: &Program, seed: usize) -> Program {
    let n = program.threads.len();
    let turn = |i: usize, n: usize| (i + seed) % n;
    let order: Vec<usize> = (0..n).map(|i| turn(i, n)).collect();
    let objects = program.objects.len();
    let object = |o: ObjectId| ObjectId(((o.index() + seed) % objects) as u16);
    let symbols = program.symbols.len();
    // A name of several memories stands behind those that declare them.
    let several = program.symbols.iter().any(|s| !s.multimem.is_empty());
    let by = if several { 0 } else { seed * 3 };
    let symbol = |s: SymbolId| SymbolId(((s.index() + by) % symbols) as u16);
    let thread =
        |t: ThreadId| ThreadId(order.iter().position(|&o| o == t.index()).expect("a permutation") as u16);
    let reg = |t: usize, r: Reg| {
        let n = program.threads[t].regs.len();
        Reg(((r.index() + seed) % n) as u16)
    };
    let mut result = program.clone();
    for (i, o) in program.objects.iter().enumerate() {
        result.objects[object(ObjectId(i as u16)).index()] = o.clone();
    }
    for (i, s) in program.symbols.iter().enumerate() {
        let mut s = s.clone();
        s.object = object(s.object);
        s.multimem.iter_mut().for_each(|o| *o = object(*o));
        s.virt = symbol(s.virt);
        result.symbols[symbol(SymbolId(i as u16)).index()] = s;
    }
    result.threads = order
        .iter()
        .map(|&t| {
            let mut column = program.threads[t].clone();
            for (r, decl) in program.threads[t].regs.iter().enumerate() {
                let mut decl = decl.clone();
                if let RegInit::Address(s) = &mut decl.init {
                    *s = symbol(*s);
                }
                column.regs[reg(t, Reg(r as u16)).index()] = decl;
            }
            column.place.gpu = (column.place.gpu + 5) * u16::from(!column.place.host);
            column.place.cta = (column.place.cta + 3) * u16::from(!column.place.host);
            for instr in &mut column.body {
                if let Some(g) = &mut instr.guard {
                    g.reg = reg(t, g.reg);
                }
                registers::rewrite(&mut instr.op, &mut |r| reg(t, r), &mut |o| match o {
                    Operand::Reg(r) => Operand::Reg(reg(t, r)),
                    Operand::Address(s) => Operand::Address(symbol(s)),
                    imm => imm,
                });
            }
            column
        })
        .collect();
    let rename = |e: &mut Expr| {
        if let Expr::Cmp(_, a, _) = e {
            *a = match *a {
                Term::Reg(t, r) => Term::Reg(thread(t), reg(t.index(), r)),
                Term::Mem { symbol: s, offset, bytes, thread: t } => {
                    Term::Mem { symbol: symbol(s), offset, bytes, thread: t.map(thread) }
                }
                constant => constant,
            };
        }
    };
    for condition in &mut result.conditions {
        match &mut condition.expr {
            Expr::And(all) => {
                let turn = seed % all.len().max(1);
                all.rotate_left(turn);
                all.iter_mut().for_each(rename);
            }
            one => rename(one),
        }
    }
    result
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn renaming_keeps_the_canonical_text(seed in 0u64..50, index in 0u64..100_000, turn in 1usize..7) {
        let program = Stream::new(seed, Profile::Core).item(index);
        let one = canonical(&program);
        let two = canonical(&shuffle(&program, turn));
        prop_assert!(one.exact);
        prop_assert_eq!(&one.text, &two.text);
    }

    #[test]
    fn the_canonical_form_is_idempotent(seed in 0u64..50, index in 0u64..100_000) {
        let one = canonical(&Stream::new(seed, Profile::Core).item(index));
        let two = canonical(&one.program);
        prop_assert_eq!(&one.program, &two.program);
        prop_assert_eq!(one.id, two.id);
    }

    #[test]
    fn changing_a_fence_changes_the_id(seed in 0u64..50, index in 0u64..100_000) {
        let program = Stream::new(seed, Profile::Core).item(index);
        let mut other = program.clone();
        let mut changed = false;
        for instr in other.threads.iter_mut().flat_map(|t| &mut t.body) {
            if let Op::Fence { order, .. } = &mut instr.op {
                *order = if *order == FenceOrder::Sc { FenceOrder::AcqRel } else { FenceOrder::Sc };
                changed = true;
                break;
            }
        }
        prop_assert_eq!(changed, canonical(&program).id != canonical(&other).id);
    }
}

#[test]
fn only_copied_values_are_renamed() {
    let program = |first: i128, second: i128, add: bool| {
        let mut p = moire_generate::shapes::message_passing();
        p.conditions.clear();
        let mut values = [first, second].into_iter();
        for instr in p.threads.iter_mut().flat_map(|t| &mut t.body) {
            if let Op::Store { src, .. } = &mut instr.op {
                *src = vec![Operand::Imm(values.next().expect("two stores"))];
            }
            if let (true, Op::Load { dst, ty, .. }) = (add, &instr.op) {
                let (a, b) = (Operand::Reg(dst[0]), Operand::Imm(1));
                instr.op = Op::Alu { op: moire_program::ir::AluOp::Mul, ty: *ty, dst: dst[0], a, b };
            }
        }
        canonical(&p).id
    };
    assert_eq!(program(7, 9, false), program(2, 1, false));
    assert_ne!(program(7, 7, false), program(2, 1, false));
    assert_ne!(program(7, 9, true), program(2, 1, true));
}

#[test]
fn warps_that_touch_tensor_memory_keep_their_quarter_of_the_lanes() {
    let text = |first: u16, second: u16| {
        format!(
            "moire \"q\"\n.tmem t[32];\nA (gpu 0, cta 0, warp {first}) {{\n  .reg r0;\n  \
             tcgen05.ld.sync.aligned.32x32b.x1.b32 {{r0}}, [t+{}];\n}}\nB (gpu 0, cta 0, warp {second}) {{\n  bar.arrive 1, 64;\n}}\n",
            (u32::from(first) % 4) << 21,
        )
    };
    let read = |text: &str| parse(text, Format::Native).expect("the program is legal");
    let quarter = |program: &Program| {
        let mut all: Vec<u16> = canonical(program).program.threads.iter().map(|t| t.place.warp % 4).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(quarter(&read(&text(6, 3))), [2, 3]);
    assert_eq!(canonical(&read(&text(6, 3))).id, canonical(&read(&text(2, 7))).id);
    assert_ne!(canonical(&read(&text(6, 3))).id, canonical(&read(&text(5, 3))).id);
}

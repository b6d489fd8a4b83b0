//! Random Tile IR kernels: valid, readable, explorable, free of races if declared safe, and the same for ever. Their
//! reduction.

use moire_generate::{TILE_FINGERPRINT, TileDraw, tile_seed};
use moire_program::ir::{
    LoadOrder, Op as Code, Operand, Program, Scope as Reach, StoreOrder, TileAccess, TileElement, TileKind,
    TileOp,
};
use moire_tile_ir::reduce::size;
use moire_tile_ir::reduce::{tile_minimise, tile_smaller};
use moire_tile_ir::run::{TileLaunch, lower, tile_entry};
use moire_tile_ir::text::{parse, print};
use moire_tile_ir::{Function, Instr, IntegerOp, Module, Op, Order, Scalar, Scope, Type, Value, verify};
use std::collections::{BTreeMap, BTreeSet};

const TOTAL: u64 = 2_000;
const COUNT: usize = 2_000;

fn operations(function: &Function) -> Vec<&Instr> {
    let mut all = Vec::new();
    function.body.walk(&mut |instr| all.push(instr));
    all
}

fn memory(function: &Function) -> usize {
    operations(function).iter().filter(|i| i.op.memory()).count()
}

#[test]
fn kernels_are_valid_and_parse_back_and_can_be_lowered() {
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    for index in 0..TOTAL {
        let draw = tile_seed(7, index);
        let text = print(&draw.module);
        assert_eq!(verify(&draw.module), [], "{index}\n{text}");
        let again = parse(&text).unwrap_or_else(|e| panic!("{index}: {e}\n{text}"));
        assert_eq!(again, draw.module, "{text}");
        if let Err(why) = lower(tile_entry(&draw.module, None).unwrap(), &draw.launch) {
            *refusals.entry(why.to_string()).or_default() += 1;
            assert!(!draw.safe, "{why}\n{text}");
        }
        assert_eq!(tile_seed(7, index), draw);
        *sizes.entry(memory(&draw.module.functions[0])).or_default() += 1;
    }
    println!("{refusals:#?}\n{sizes:?}");
    assert!(refusals.values().sum::<usize>() * 50 <= COUNT, "{refusals:#?}");
    let large: usize = sizes.range(11..).map(|(_, n)| n).sum();
    assert!(large * 5 <= COUNT && *sizes.keys().last().unwrap() <= 12, "{sizes:?}");
}

/// A change of the stream must change `TILE_FINGERPRINT`: update both together.
#[test]
fn the_stream_has_not_changed() {
    let mut hasher = blake3::Hasher::new();
    for index in 0..300 {
        let draw = tile_seed(42, index);
        hasher.update(format!("{:?} {}\n{}", draw.launch, draw.safe, print(&draw.module)).as_bytes());
    }
    let hash = hasher.finalize().to_hex();
    assert_eq!((TILE_FINGERPRINT, &hash.as_str()[..16]), ("tile-6", "3796ec90e58e7b48"));
}

/// One access of a program.
struct Touch {
    thread: usize,
    line: u32,
    reads: bool,
    writes: bool,
    /// Strong, with a scope that includes all blocks.
    wide: bool,
    /// Symbol, offset and size of each element.
    places: BTreeSet<(u16, i32, u32)>,
    masked: bool,
}

fn wide_enough(access: &TileAccess) -> bool {
    let reach = match access.kind {
        TileKind::Load(LoadOrder::Relaxed(s) | LoadOrder::Acquire(s))
        | TileKind::Store(StoreOrder::Relaxed(s) | StoreOrder::Release(s))
        | TileKind::Rmw { scope: s, .. } => s,
        _ => return false,
    };
    matches!(reach, Reach::Gpu | Reach::Sys)
}

fn touches(program: &Program) -> Vec<Touch> {
    let mut all = Vec::new();
    for (thread, of) in program.threads.iter().enumerate() {
        for instr in &of.body {
            let Code::Tile(TileOp::Access(access)) = &instr.op else { continue };
            // An index from memory moves a tile in memory that all blocks access strongly.
            let place = |e: &TileElement| match e.addr.base {
                Operand::Address(symbol) => Some((symbol.0, e.addr.offset, access.ty.bytes())),
                Operand::Reg(_) => None,
                Operand::Imm(_) => panic!("{e:?} is no address of a parameter"),
            };
            all.push(Touch {
                thread,
                line: instr.line,
                reads: !matches!(access.kind, TileKind::Store(_)),
                writes: !matches!(access.kind, TileKind::Load(_)),
                wide: wide_enough(access),
                places: access.elements.iter().filter_map(place).collect(),
                masked: access.elements.iter().any(|e| e.mask.is_some()),
            });
        }
    }
    all
}

#[test]
fn blocks_of_safe_kernels_share_only_strong_accesses_and_communicate() {
    let (mut safe, mut across) = (0, 0);
    for index in 0..TOTAL {
        let draw = tile_seed(8, index);
        if !draw.safe {
            continue;
        }
        safe += 1;
        let program = lower(tile_entry(&draw.module, None).unwrap(), &draw.launch).unwrap();
        let all = touches(&program);
        let mut found = false;
        for a in &all {
            for b in all.iter().filter(|b| b.thread != a.thread && a.writes) {
                if a.places.is_disjoint(&b.places) {
                    continue;
                }
                assert!(a.wide && b.wide, "{index}\n{}", print(&draw.module));
                found |= b.reads && !(a.masked || b.masked);
            }
        }
        across += usize::from(found);
    }
    println!("safe {safe} of {TOTAL}, a value goes across in {across}");
    assert!(safe * 100 >= TOTAL * 70, "{safe}");
    // A kernel may communicate only through a masked access, a loop that waits, or a compare-and-swap.
    assert!(across * 100 >= usize::try_from(safe).unwrap() * 97, "{across} of {safe}");
}

/// Lines of strong scalar loads whose value flows into a tile-wide access, or decides whether one is executed.
fn used_wide(function: &Function) -> BTreeSet<u32> {
    let wide = |v: &Value| matches!(function.ty(*v), Some(Type::Tile(t)) if t.elements() > 32);
    let mut from: BTreeMap<Value, BTreeSet<u32>> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for instr in operations(function) {
        let op = &instr.op;
        let taint: BTreeSet<u32> =
            op.operands().iter().filter_map(|v| from.get(v)).flatten().copied().collect();
        let inside = op.blocks().into_iter().any(|block| {
            let mut any = false;
            block.walk(&mut |i| any |= i.op.memory() && i.op.operands().iter().any(wide));
            any
        });
        let here = op.memory() && op.operands().iter().any(wide);
        if here || inside {
            lines.extend(&taint);
        }
        if let Op::LoadPtr { pointers, access, .. } = op
            && access.order != Order::Weak
            && function.tile(*pointers).is_some_and(|t| t.shape.is_empty())
        {
            from.insert(instr.results[0], BTreeSet::from([instr.line]));
        } else if op.pure() && !taint.is_empty() {
            from.extend(instr.results.iter().map(|r| (*r, taint.clone())));
        }
    }
    lines
}

/// Whether some scalar load feeds a whole tile while another block writes the loaded place.
fn one_read(module: &Module, launch: &TileLaunch) -> bool {
    let module = parse(&print(module)).unwrap();
    let lines = used_wide(&module.functions[0]);
    let Ok(program) = lower(&module.functions[0], launch) else { return false };
    let all = touches(&program);
    let read = all.iter().filter(|a| lines.contains(&a.line));
    read.into_iter().any(|a| {
        all.iter().any(|b| b.thread != a.thread && b.writes && b.wide && !b.places.is_disjoint(&a.places))
    })
}

/// What a kernel as a whole has.
fn whole(draw: &TileDraw, out: &mut BTreeSet<&'static str>) {
    let function = &draw.module.functions[0];
    for (scalar, name) in [(Scalar::I64, "i64"), (Scalar::I1, "i1"), (Scalar::F4E2M1FN, "half bytes")] {
        if function.types.contains(&Type::pointer(scalar)) {
            out.insert(name);
        }
    }
    let moved =
        |program: &Program| program.threads.iter().flat_map(|t| &t.regs).any(|r| r.name.starts_with('a'));
    if lower(function, &draw.launch).is_ok_and(|program| moved(&program)) {
        out.insert("index from memory");
    }
}

fn features(draw: &TileDraw) -> BTreeSet<&'static str> {
    let function = &draw.module.functions[0];
    let mut out = BTreeSet::new();
    for instr in operations(function) {
        match &instr.op {
            Op::LoadPtr { .. } => out.insert("load"),
            Op::StorePtr { .. } => out.insert("store"),
            Op::AtomicRmw { .. } => out.insert("rmw"),
            Op::AtomicCas { .. } => out.insert("cas"),
            Op::LoadView { .. } => out.insert("load of a view"),
            Op::StoreView { .. } => out.insert("store to a view"),
            Op::AtomicRedView { .. } => out.insert("reduction into a view"),
            Op::JoinTokens(_) => out.insert("join"),
            Op::MakeToken => out.insert("make_token"),
            Op::For { inits, .. } => out.insert(if inits.is_empty() { "for" } else { "for with token" }),
            Op::If { .. } if !instr.results.is_empty() => out.insert("if with token"),
            Op::Loop { .. } if instr.results.len() > 1 => out.insert("loop with value"),
            Op::Loop { .. } => out.insert("loop"),
            Op::If { then, .. } if then.ops.iter().any(|i| matches!(i.op, Op::Continue(_))) => {
                out.insert("continue under a condition")
            }
            Op::Select { .. } => out.insert("select"),
            Op::Integer { op: IntegerOp::Sub(_), a, .. } if !function.tile(*a).unwrap().shape.is_empty() => {
                out.insert("reversed")
            }
            _ => false,
        };
        let Some(target) = instr.op.target() else { continue };
        let tile = match function.ty(target).unwrap() {
            Type::View(view) => {
                out.insert(match (&view.steps, view.sparse) {
                    (Some(_), _) => "view with steps",
                    (None, Some(_)) => "view of rows",
                    (None, None) => "view",
                });
                if view.padding.is_some() {
                    out.insert("padding");
                }
                if view.tensor.shape.contains(&None) {
                    out.insert("open extents");
                }
                view.loaded()
            }
            other => other.tile().unwrap().clone(),
        };
        out.insert(if tile.shape.is_empty() { "scalar" } else { "tile" });
        if tile.shape.len() > 1 {
            out.insert("two dimensions");
        }
        let (order, scope, mask) = match &instr.op {
            Op::LoadPtr { access, mask, .. } | Op::StorePtr { access, mask, .. } => {
                (access.order, access.scope, *mask)
            }
            Op::LoadView { access, .. } | Op::StoreView { access, .. } => (access.order, access.scope, None),
            Op::AtomicRedView { order, scope, .. } => (*order, Some(*scope), None),
            Op::AtomicRmw { order, scope, mask, .. } | Op::AtomicCas { order, scope, mask, .. } => {
                (*order, Some(*scope), *mask)
            }
            _ => panic!("not generated"),
        };
        out.insert(order.word());
        out.insert(scope.map_or("no scope", Scope::word));
        if mask.is_some() {
            out.insert("mask");
        }
        out.insert(if instr.op.token().is_some() { "token" } else { "no token" });
    }
    whole(draw, &mut out);
    out.insert(if draw.launch.grid[0] == 3 { "three blocks" } else { "two blocks" });
    if one_read(&draw.module, &draw.launch) {
        out.insert("one read for many");
    }
    if draw.safe {
        out.insert("safe");
    }
    out
}

#[test]
fn every_feature_a_compiler_may_see_is_drawn() {
    let mut histogram: BTreeMap<&str, usize> = BTreeMap::new();
    for index in 0..TOTAL {
        for feature in features(&tile_seed(9, index)) {
            *histogram.entry(feature).or_default() += 1;
        }
    }
    println!("{histogram:#?}");
    for (feature, percent) in [
        ("load", 80),
        ("store", 95),
        ("rmw", 15),
        ("cas", 5),
        ("scalar", 70),
        ("tile", 70),
        ("two dimensions", 3),
        ("relaxed", 60),
        ("acquire", 25),
        ("release", 25),
        ("acq_rel", 4),
        ("tl_blk", 1),
        ("device", 50),
        ("sys", 15),
        ("mask", 10),
        ("token", 60),
        ("no token", 90),
        ("join", 6),
        ("make_token", 5),
        ("if with token", 3),
        ("view", 12),
        ("view with steps", 3),
        ("open extents", 5),
        ("load of a view", 10),
        ("store to a view", 10),
        ("reduction into a view", 1),
        ("padding", 1),
        ("for", 2),
        ("for with token", 2),
        ("select", 10),
        ("reversed", 5),
        ("i64", 5),
        ("three blocks", 20),
        ("two blocks", 40),
        ("one read for many", 4),
        ("safe", 70),
    ] {
        let count = histogram.get(feature).copied().unwrap_or(0);
        assert!(count * 100 >= percent * COUNT, "{feature}: {count} of {TOTAL}\n{histogram:#?}");
    }
    for rare in [
        "loop",
        "loop with value",
        "continue under a condition",
        "view of rows",
        "index from memory",
        "i1",
        "half bytes",
    ] {
        assert!(histogram.contains_key(rare), "{rare}: {histogram:#?}");
    }
}

#[test]
fn smaller_kernels_are_valid_and_smaller() {
    let mut count = 0;
    for index in 0..150 {
        let draw = tile_seed(10, index);
        let start = (draw.module, draw.launch);
        let before = size(&start.0, &start.1);
        let all: Vec<_> = tile_smaller(&start).collect();
        assert!(!all.is_empty(), "{}", print(&start.0));
        for (module, launch) in &all {
            let text = print(module);
            assert_eq!(verify(module), [], "{text}");
            assert!(size(module, launch) < before, "{text}");
            assert_eq!(parse(&text).unwrap(), *module, "{text}");
        }
        let again: Vec<_> = tile_smaller(&start).collect();
        assert_eq!(all, again);
        count += all.len();
    }
    println!("{count} candidates");
}

#[test]
fn minimising_keeps_only_the_needed_operation() {
    let mut reduced = 0;
    for index in 0..800 {
        let draw = tile_seed(12, index);
        let has = |f: &Function| operations(f).iter().any(|i| matches!(i.op, Op::AtomicCas { .. }));
        if !has(&draw.module.functions[0]) {
            continue;
        }
        let start = (draw.module, draw.launch);
        let (module, launch) = tile_minimise(&start, 20_000, |(m, _)| has(&m.functions[0]));
        let function = &module.functions[0];
        let text = print(&module);
        assert_eq!(memory(function), 1, "{text}");
        assert_eq!((launch.grid, function.body.params.len()), ([1, 1, 1], 1), "{text}");
        // Two constants, the operation, and the return.
        assert_eq!(operations(function).len(), 4, "{text}");
        assert!(operations(function).iter().all(|i| i.op.token().is_none()), "{text}");
        reduced += 1;
    }
    assert!(reduced >= 20, "{reduced}");
}

#[test]
fn a_scalar_read_used_by_a_tile_is_minimised() {
    let mut reduced = 0;
    for index in 0..150 {
        let draw = tile_seed(15, index);
        if !draw.safe || !one_read(&draw.module, &draw.launch) {
            continue;
        }
        let start = (draw.module, draw.launch);
        let (module, _) = tile_minimise(&start, 20_000, |(m, l)| one_read(m, l));
        // The load, the write by another block, and the tile-wide use.
        assert!(memory(&module.functions[0]) <= 3, "{}", print(&module));
        reduced += 1;
    }
    assert!(reduced >= 3, "{reduced}");
}

#[test]
fn tidying_is_idempotent() {
    for index in 0..200 {
        let draw = tile_seed(13, index);
        let mut once = draw.module.functions[0].clone();
        once.tidy();
        let mut twice = once.clone();
        twice.tidy();
        assert_eq!(once, twice);
        assert_eq!(memory(&once), memory(&draw.module.functions[0]));
        for instr in operations(&once) {
            let mut op = instr.op.clone();
            let changed: Vec<Value> = op.operands_mut().into_iter().map(|v| *v).collect();
            assert_eq!(changed, instr.op.operands());
        }
    }
}

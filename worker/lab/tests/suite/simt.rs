//! Slices of a Tile IR kernel and of the PTX compiled from it, with few threads and locations. On the kept locations
//! the small programs have the outcomes of the large ones. The kernels are those of the tests of `slice`, on tiles of
//! few elements.

use moire_cat::{Model, Variants};
use moire_execution::leaf::LeafKind;
use moire_execution::leaf::instances;
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_kernel::ptx;
use moire_kernel::simt::{Pair, slice, threads};
use moire_program::ir::{Address, Op, Operand, Program, TileOp};
use moire_tile_ir::run::{TileLaunch, lower, tile_entry};
use moire_tile_ir::text as tile;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

/// Bytes of an object, by number and offset.
type Cells = BTreeSet<(u16, u32)>;

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/kernel/tests/data/simt");
    let path = folder.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reads a kernel and its compiled PTX, with changes to their texts.
fn pair(name: &str, source: &[(&str, &str)], compiled: &[(&str, &str)]) -> Pair {
    let change = |text: String, all: &[(&str, &str)]| all.iter().fold(text, |t, (a, b)| t.replace(a, b));
    let module =
        tile::parse(&change(read(&format!("{name}.tile")), source)).unwrap_or_else(|e| panic!("{e}"));
    let entry = tile_entry(&module, None).unwrap_or_else(|e| panic!("{e}"));
    let source = lower(entry, &TileLaunch::row(2)).unwrap_or_else(|e| panic!("{e}"));
    let sizes: Vec<u32> = source.objects.iter().map(|o| o.bytes).collect();
    let module =
        ptx::parse(&change(read(&format!("{name}.ptx")), compiled)).unwrap_or_else(|e| panic!("{e}"));
    let compiled = threads(&module.kernels[0], 2, &sizes).unwrap_or_else(|e| panic!("{e}"));
    Pair { source, compiled }
}

fn touched(program: &Program) -> Cells {
    let mut out = Cells::new();
    let mut add = |addr: Address, bytes: u32| {
        let Operand::Address(symbol) = addr.base else { panic!("an address from memory") };
        let from = u32::try_from(addr.offset).expect("offsets are not negative");
        out.extend((from..from + bytes).map(|at| (program.symbols[symbol.index()].object.0, at)));
    };
    for instr in program.threads.iter().flat_map(|t| &t.body) {
        match &instr.op {
            Op::Load { addr, ty, .. } | Op::Store { addr, ty, .. } | Op::Rmw { addr, ty, .. } => {
                add(*addr, ty.bytes());
            }
            Op::Tile(TileOp::Access(a)) => a.elements.iter().for_each(|e| add(e.addr, a.ty.bytes())),
            _ => {}
        }
    }
    out
}

fn outcomes(program: &Program, model: &Model, cells: &Cells) -> BTreeSet<Vec<u8>> {
    let places = instances(program);
    let at = |object: u16| places.iter().position(|i| i.object.0 == object).unwrap_or(usize::MAX);
    let places: Vec<(usize, u32)> = cells.iter().map(|(object, byte)| (at(*object), *byte)).collect();
    let mut out = BTreeSet::new();
    let summary = explore(program, model, &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        if leaf.kind() == LeafKind::Complete {
            let states = leaf.states();
            out.extend(
                states.iter().map(|s| places.iter().map(|(i, b)| s.memory[*i].get(*b)).collect::<Vec<u8>>()),
            );
        }
        ControlFlow::Continue(())
    });
    let summary = summary.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(summary.bounded, None);
    out
}

fn model(name: &str) -> Model {
    moire_models::load(name, &Variants::new()).unwrap_or_else(|e| panic!("{e}"))
}

/// Compares the outcomes of both programs of a pair, whole and cut. Returns the number of outcomes of the compiled one.
fn same(what: &str, whole: &Pair) -> usize {
    let small = slice(whole).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(small.compiled.threads.len() < whole.compiled.threads.len(), "{what}");
    let mut cells = touched(&small.compiled);
    cells.extend(touched(&small.source));
    // Only objects that both sides have.
    cells.retain(|(object, _)| usize::from(*object) < whole.source.objects.len());
    let (ptx, tiles) = (model("ptx"), model("tile-ir"));
    let compiled = outcomes(&small.compiled, &ptx, &cells);
    assert_eq!(compiled, outcomes(&whole.compiled, &ptx, &cells), "{what}: compiled");
    let source = outcomes(&small.source, &tiles, &cells);
    let large = outcomes(&whole.source, &tiles, &cells);
    assert!(large.is_subset(&source), "{what}: outcomes of the tile blocks are lost");
    compiled.len()
}

const FOUR: (&str, &str) = ("reqntid 64", "reqntid 4");
const RELAXED: [(&str, &str); 2] =
    [("st.global", "st.relaxed.gpu.global"), ("ld.global", "ld.relaxed.gpu.global")];

#[test]
fn a_flag_and_a_tile() {
    let tiles = [("64", "4"), ("63", "3")];
    let with = |more: &[(&str, &str)]| pair("publish", &tiles, &[&[FOUR], more].concat());
    let ordered = same("as it is", &with(&[]));
    assert!(ordered > 1);
    same("no barrier", &with(&[("bar.sync 0;", "")]));
    same("no release", &with(&[("st.release", "st.relaxed")]));
    let [a, b] = RELAXED;
    same("relaxed data", &with(&[a, b]));
    same("relaxed data, no barrier", &with(&[a, b, ("bar.sync 0;", "")]));
    same("relaxed data, no branch", &with(&[a, b, ("@%p3 bra $done;", "")]));
}

#[test]
fn one_value_for_a_tile() {
    let tiles = [("64", "8"), ("63", "7")];
    same("as it is", &pair("share", &tiles, &[("reqntid 32", "reqntid 4")]));
}

#[test]
fn elements_stored_by_several_threads() {
    let narrow = |threads: &str| pair("narrow", &[], &[("reqntid 64", threads)]);
    // Three threads store an element. The cut keeps two of them, which does not change the outcomes here.
    assert!(same("as it is", &narrow("reqntid 6")) > 1);
    same("a release", &pair("narrow", &[], &[("reqntid 64", "reqntid 6"), ("st.relaxed", "st.release")]));
}

#[test]
fn a_transposed_tile() {
    let tiles = [("8x", "4x"), ("<i32: 7>", "<i32: 3>")];
    let small = [("reqntid 8", "reqntid 4"), ("28", "12")];
    let with = |more: &[(&str, &str)]| pair("turn", &tiles, &[&small, more].concat());
    assert_eq!(same("as it is", &with(&[])), 1);
    let [a, b] = RELAXED;
    assert!(same("no barrier", &with(&[a, b, ("bar.sync 0;", "")])) > 1);
}

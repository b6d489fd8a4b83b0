//! Our verifier against NVIDIA's: files with one byte changed, or with types exchanged, are read, judged, and given to
//! the disassembler, which verifies what it reads. Without `tileirdisasm` the test says so and passes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod common;

use moire_program::text::tile::parse;
use moire_program::tile::{Elem, Module, Reason, Scalar, TensorView, Tile, TileView, Type, verify};
use moire_toolchain::run::{Limits, run};
use moire_toolchain::tile::{Bytecode, read, write};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

const TEXTS: [&str; 5] = [
    include_str!("data/tile-13.1.tile"),
    include_str!("data/tile-13.2.tile"),
    include_str!("data/tile-13.3.tile"),
    include_str!("data/tile-13.4.tile"),
    include_str!("data/tile-13.5.tile"),
];

/// Files tried; `MOIRE_TILE_FILES` says how many.
const FILES: u64 = 600;

/// Differences shown in full.
const SHOWN: usize = 40;

/// A number from a number.
fn mix(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// One function as a file of its newest version, with a byte of its function section changed: a table entry that no
/// operation uses is not looked at there.
fn changed(files: &[Vec<u8>], i: u64) -> Vec<u8> {
    let pick = |k: u64, n: usize| usize::try_from(mix(i * 7 + k) % n as u64).unwrap();
    let mut bytes = files[pick(0, files.len())].clone();
    // Header, number of the section, one or two bytes of length, alignment.
    let high = if bytes[13] & 0x80 != 0 { usize::from(bytes[14]) << 7 } else { 0 };
    let length = usize::from(bytes[13] & 0x7f) | high;
    let at = 16 + pick(1, length);
    let small = u8::try_from(pick(2, 24)).unwrap();
    bytes[at] = match pick(3, 3) {
        0 => bytes[at] ^ (1 << (small % 8)),
        1 => small,
        _ => bytes[at].wrapping_add(1 + small % 3),
    };
    bytes
}

/// Every function, as a module of its own.
fn functions() -> Vec<Module> {
    let modules = TEXTS.map(|text| parse(text).unwrap());
    let all = modules.into_iter().flat_map(|m| m.functions);
    all.map(|function| Module { name: String::new(), functions: vec![function] }).collect()
}

/// A type with other elements and other extents.
fn retyped(ty: &Type, scalar: &dyn Fn(Scalar) -> Scalar, extent: &dyn Fn(u32) -> u32) -> Type {
    match ty {
        Type::Tile(tile) => Type::Tile(Tile {
            elem: match tile.elem {
                Elem::Scalar(s) => Elem::Scalar(scalar(s)),
                Elem::Pointer { to, multicast } => Elem::Pointer { to: scalar(to), multicast },
            },
            shape: tile.shape.iter().map(|d| extent(*d)).collect(),
        }),
        Type::Tensor(tensor) => Type::Tensor(TensorView { elem: scalar(tensor.elem), ..tensor.clone() }),
        Type::View(view) => Type::View(TileView {
            tile: view.tile.iter().map(|d| extent(*d)).collect(),
            tensor: TensorView { elem: scalar(view.tensor.elem), ..view.tensor.clone() },
            ..view.clone()
        }),
        other => other.clone(),
    }
}

/// One function with a type of elements or an extent exchanged for another, everywhere or in one value.
fn exchanged(modules: &[Module], i: u64) -> Option<Vec<u8>> {
    let pick = |k: u64, n: usize| usize::try_from(mix(i * 11 + k) % n as u64).unwrap();
    let mut module = modules[pick(0, modules.len())].clone();
    let function = &mut module.functions[0];
    let count = function.types.len();
    let scalars = Scalar::ALL;
    let (from, to) = ([Scalar::I32, Scalar::F32, Scalar::I1][pick(1, 3)], scalars[pick(2, scalars.len())]);
    let (long, other) = ([8, 4, 2, 1][pick(3, 4)], [1, 2, 3, 4, 8, 16, 1024, 1 << 20][pick(4, 8)]);
    let what = pick(5, 3);
    let scalar = |s| if s == from && what != 1 { to } else { s };
    let extent = |d| if d == long && what != 0 { other } else { d };
    let only = (pick(6, 3) == 0).then(|| pick(7, count));
    for (at, ty) in function.types.iter_mut().enumerate() {
        if only.is_none_or(|only| only == at) {
            *ty = retyped(ty, &scalar, &extent);
        }
    }
    write(&module, Bytecode::V13_5).ok()
}

/// What both say of a file; nothing where the published verifier refuses what the one of 13.5 takes, or where the file
/// has what is not read here.
fn judge(tool: &Path, bytes: &[u8]) -> Option<(Result<(), String>, Result<(), String>)> {
    let ours = match read(bytes) {
        Err(e) if e.message.contains("not known here") || e.message.contains("not read here") => return None,
        Err(error) => Err(format!("read: {error}")),
        Ok((module, ..)) => match verify(&module).first() {
            Some(fault) if fault.reason == Reason::PaddedView => return None,
            Some(fault) => Err(format!("{:?}: {fault}", fault.reason)),
            None => Ok(()),
        },
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k.tileirbc");
    std::fs::write(&file, bytes).unwrap();
    let mut command = Command::new(tool);
    command.arg(&file);
    let out = run(command, Limits::default()).unwrap();
    let said = out.stderr.lines().take(3).collect::<Vec<_>>().join("\n");
    Some((ours, if out.status.success() { Ok(()) } else { Err(said) }))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|v| v.parse().ok())
}

/// Compares the answers for the files that `make` gives for as many numbers as `MOIRE_TILE_FILES` says.
fn agree(make: impl Fn(u64) -> Option<Vec<u8>> + Sync) {
    let Some((tool, newest)) = common::tile_disassembler() else { return };
    if newest < Bytecode::V13_5 {
        println!("skipped: tileirdisasm reads bytecode up to {newest}");
        return;
    }
    let start = number("MOIRE_TILE_START").unwrap_or(0);
    let items: Vec<u64> = (start..start + number("MOIRE_TILE_FILES").unwrap_or(FILES)).collect();
    let state = Mutex::new(([0; 2], Vec::new()));
    common::on_all(&items, |i| {
        let Some((ours, theirs)) = make(*i).and_then(|bytes| judge(&tool, &bytes)) else { return };
        let mut state = state.lock().unwrap();
        state.0[usize::from(ours.is_ok())] += 1;
        if ours.is_ok() != theirs.is_ok() {
            state.1.push(format!("{i}: ours {ours:?}, theirs {theirs:?}"));
        }
    });
    let (counts, wrong) = state.into_inner().unwrap();
    println!("{counts:?} refused and taken by ours");
    let shown: Vec<&String> = wrong.iter().take(SHOWN).collect();
    assert!(wrong.is_empty(), "{} differ: {shown:#?}", wrong.len());
    assert!(counts[0] > 0 && counts[1] > 0);
}

#[test]
fn one_byte_changed() {
    let files: Vec<Vec<u8>> = functions().iter().map(|m| write(m, Bytecode::V13_5).unwrap()).collect();
    agree(|i| Some(changed(&files, i)));
}

#[test]
fn types_exchanged() {
    let modules = functions();
    agree(|i| exchanged(&modules, i));
}

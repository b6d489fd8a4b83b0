//! Reads one instruction: dispatches on its mnemonic.

use super::access::{load, multimem, store, update};
use super::arithmetic::{arithmetic, branch, mov, selp, setp};
use super::book::book;
use super::collective::{matches, redux, shuffle, vote};
use super::control::{cluster_launch, elect, grid_dependency, ignored, wgmma};
use super::copy::{copy, remote};
use super::mbarrier::{mapa, mbarrier};
use super::proxy::tensormap;
use super::reader::Reader;
use super::sync::{barrier, fence, membar};
use super::tensor::tcgen05;
use super::tile::tile_block;
use crate::ir::*;
use crate::text::build::{Builder, ThreadBuilder};
use crate::text::print::ALU_OPS;
use crate::text::scan::{Parsed, Scan, Spot, closest};

/// Mnemonics that litmus texts and PTX modules share.
pub const CORE: [&str; 26] = [
    "ld",
    "st",
    "atom",
    "red",
    "multimem",
    "fence",
    "membar",
    "bar",
    "barrier",
    "mbarrier",
    "mapa",
    "tcgen05",
    "cp",
    "wgmma",
    "tensormap",
    "elect",
    "griddepcontrol",
    "clusterlaunchcontrol",
    "setmaxnreg",
    "nanosleep",
    "pmevent",
    "prefetch",
    "prefetchu",
    "bra",
    "ret",
    "exit",
];

/// Reads one instruction without its guard and its semicolon; PTX modules use it too. `text` is the mnemonic with its
/// qualifiers, already read: it starts at `at` and ends at the cursor.
pub fn instruction(
    scan: &mut Scan<'_>,
    builder: &Builder,
    thread: &mut ThreadBuilder,
    (at, spot): (usize, Spot),
    guard: Option<Guard>,
    text: &str,
) -> Parsed<()> {
    dispatch(&mut Reader { scan, builder, thread, at, spot, guard }, text)
}

fn dispatch(r: &mut Reader<'_, '_>, text: &str) -> Parsed<()> {
    if moire_isa::entry_of(text).is_some_and(|(_, entry)| TOLD.contains(&entry.tag)) {
        return book(r);
    }
    let parts: Vec<&str> = text.split('.').collect();
    let quals = &parts[1..];
    match parts[0] {
        "ld" => load(r, Proxy::Generic, quals),
        "tld" => load(r, Proxy::Texture, quals),
        "suld" => load(r, Proxy::Surface, quals),
        "ldc" | "cold" => load(r, Proxy::Constant, quals),
        "st" if quals.first() == Some(&"async") => remote(r, false, &quals[1..]),
        "st" => store(r, Proxy::Generic, quals),
        "sust" => store(r, Proxy::Surface, quals),
        "atom" => update(r, Proxy::Generic, false, quals),
        "suatom" => update(r, Proxy::Surface, false, quals),
        "red" if quals.first() == Some(&"async") => remote(r, true, &quals[1..]),
        "red" => update(r, Proxy::Generic, true, quals),
        "sured" => update(r, Proxy::Surface, true, quals),
        "multimem" => multimem(r, quals),
        "fence" => fence(r, quals),
        "membar" => membar(r, quals),
        "bar" => barrier(r, quals),
        "barrier" => {
            let quals: Vec<&str> = quals.iter().copied().filter(|w| *w != "aligned").collect();
            barrier(r, &quals)
        }
        "mbarrier" => mbarrier(r, quals),
        "mapa" => mapa(r, quals),
        "tcgen05" => tcgen05(r, quals),
        "cp" => copy(r, quals),
        "wgmma" => wgmma(r, quals),
        "tensormap" => tensormap(r, quals),
        "tile" => tile_block(r, quals),
        "elect" => elect(r, quals),
        "vote" => vote(r, quals),
        "shfl" => shuffle(r, quals),
        "match" => matches(r, quals),
        "redux" => redux(r, quals),
        "griddepcontrol" => grid_dependency(r, quals),
        "clusterlaunchcontrol" => cluster_launch(r, quals),
        name @ ("setmaxnreg" | "nanosleep" | "pmevent" | "prefetch" | "prefetchu") => ignored(r, name, quals),
        "bra" => branch(r),
        "exit" | "ret" => r.push(Op::Exit),
        "mov" => mov(r, quals),
        "setp" => setp(r, quals),
        "selp" => selp(r, quals),
        word => match ALU_OPS.iter().find(|(w, _)| *w == word) {
            Some((_, op)) => arithmetic(r, *op, quals),
            None => unknown(r, word),
        },
    }
}

fn unknown(r: &Reader<'_, '_>, word: &str) -> Parsed<()> {
    let mut known = CORE.to_vec();
    known.extend([
        "mov", "setp", "selp", "tld", "suld", "sust", "ldc", "tile", "vote", "shfl", "match", "redux",
    ]);
    known.extend(ALU_OPS.iter().map(|(w, _)| *w));
    let hint = closest(word, &known)
        .map_or_else(|| format!("known are {}", known.join(", ")), |k| format!("did you mean `{k}`?"));
    r.fail(format!("`{word}` is not an instruction this reader knows"), Some(hint))
}

//! Our verifier against NVIDIA's: files with one byte changed are read, judged, and given to the disassembler, which
//! verifies what it reads. Without `tileirdisasm` the test says so and passes.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_tile_ir::bytecode::{Bytecode, read, write};
use moire_tile_ir::text::parse;
use moire_tile_ir::{Reason, verify};
use moire_toolchain::run::{Limits, run};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;

const TEXTS: [&str; 5] = [
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.1.tile"),
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.2.tile"),
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.3.tile"),
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.4.tile"),
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.5.tile"),
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

#[test]
fn one_byte_changed() {
    let Some((tool, newest)) = crate::common::tile_disassembler() else { return };
    if newest < Bytecode::V13_5 {
        return crate::outside::skipped("a tileirdisasm that reads the newest bytecode");
    }
    let mut files = Vec::new();
    for text in TEXTS {
        let module = parse(text).unwrap();
        for function in &module.functions {
            let one = moire_tile_ir::Module { name: String::new(), functions: vec![function.clone()] };
            files.push(write(&one, Bytecode::V13_5).unwrap());
        }
    }
    let many = std::env::var("MOIRE_TILE_FILES").ok().and_then(|v| v.parse().ok()).unwrap_or(FILES);
    let start: u64 = std::env::var("MOIRE_TILE_START").ok().and_then(|v| v.parse().ok()).unwrap_or(0);
    let items: Vec<u64> = (start..start + many).collect();
    let state = Mutex::new((BTreeMap::<&str, usize>::new(), Vec::new()));
    crate::common::on_all(&items, |i| {
        let bytes = changed(&files, *i);
        let ours = match read(&bytes) {
            Err(error)
                if error.message.contains("not known here") || error.message.contains("not read here") =>
            {
                return;
            }
            Err(error) => Err(format!("read: {error}")),
            Ok((module, ..)) => match verify(&module).first() {
                // The published verifier refuses what the one of 13.5 takes.
                Some(fault) if fault.reason == Reason::PaddedView => return,
                Some(fault) => Err(format!("{:?}: {fault}", fault.reason)),
                None => Ok(moire_tile_ir::text::print(&module)),
            },
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("k.tileirbc");
        std::fs::write(&file, &bytes).unwrap();
        let mut command = Command::new(&tool);
        command.arg(&file);
        let out = run(command, Limits::default()).unwrap();
        let theirs = out.status.success();
        let mut state = state.lock().unwrap();
        let kind = match (&ours, theirs) {
            (Ok(_), true) => "taken by both",
            (Err(_), false) => "refused by both",
            (Ok(_), false) => "taken by ours only",
            (Err(_), true) => "taken by theirs only",
        };
        *state.0.entry(kind).or_default() += 1;
        if ours.is_ok() != theirs {
            let why = match &ours {
                Ok(_) => String::new(),
                Err(why) => why.clone(),
            };
            state.1.push(format!(
                "{i}: {kind}: {why}\n{}",
                out.stderr.lines().take(3).collect::<Vec<_>>().join("\n")
            ));
        }
    });
    let (counts, wrong) = state.into_inner().unwrap();
    println!("{counts:?}");
    let shown: Vec<&String> = wrong.iter().take(SHOWN).collect();
    assert!(wrong.is_empty(), "{} differ: {shown:#?}", wrong.len());
}

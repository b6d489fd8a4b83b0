//! Bytecode written and read: the published files byte by byte, every operation at every version, and malformed bytes.
//! The published files lie outside of this repository; where they are missing the test says so and passes.

use moire_tile_ir::bytecode::{Bytecode, Item, Numbering, WriteError, read, write, write_numbered};
use moire_tile_ir::text::{parse, print};
use moire_tile_ir::{Block, Convert, Module, Op, Value, verify};
use proptest::prelude::*;

/// Every operation, with and without its optional parts, by the version that it needs.
const EVERYTHING: [&str; 5] = [
    include_str!("../data/tile-13.1.tile"),
    include_str!("../data/tile-13.2.tile"),
    include_str!("../data/tile-13.3.tile"),
    include_str!("../data/tile-13.4.tile"),
    include_str!("../data/tile-13.5.tile"),
];

fn everything(version: Bytecode) -> Module {
    let text = EVERYTHING[usize::from(version.minor()) - 1];
    let module = parse(text).unwrap_or_else(|e| panic!("{version}: {e}"));
    assert_eq!(verify(&module), [], "{version}");
    module
}

/// The bytecode has no name for the module.
fn nameless(module: &Module) -> Module {
    Module { name: String::new(), ..module.clone() }
}

#[test]
fn published_files_are_reproduced() {
    let Some(folder) = crate::texts::outside("spec/examples-tile-ir") else { return };
    let (mut count, mut as_usual) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "tileirbc") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let text = parse(&std::fs::read_to_string(path.with_extension("tile")).unwrap()).unwrap();
        let (module, version, numbering) = read(&bytes).unwrap();
        assert_eq!((&module, version), (&nameless(&text), Bytecode::V13_1), "{}", path.display());
        assert_eq!(write_numbered(&text, version, numbering).unwrap(), bytes, "{}", path.display());
        // Some kernels number the type of a broadcast before that of what is broadcast.
        let orders = [Numbering::usual(&text), broadcasts_first(&text)];
        let same = orders.map(|order| write_numbered(&text, version, order).unwrap() == bytes);
        assert!(same[0] || same[1], "{}", path.display());
        count += 1;
        as_usual += usize::from(same[0]);
    }
    assert_eq!((count, as_usual), (30, 27));
}

fn broadcasts_first(module: &Module) -> Numbering {
    fn each(block: &Block, found: &mut Vec<Value>) {
        for instr in &block.ops {
            if matches!(instr.op, Op::Convert { to: Convert::Broadcast, .. }) {
                found.extend(&instr.results);
            }
            instr.op.blocks().into_iter().for_each(|inner| each(inner, found));
        }
    }
    let mut numbering = Numbering::usual(module);
    for function in &module.functions {
        let mut found = Vec::new();
        each(&function.body, &mut found);
        let types = found.into_iter().map(|v| Item::Type(function.ty(v).unwrap().clone()));
        numbering.types.extend(types.collect::<Vec<_>>());
    }
    numbering
}

#[test]
fn what_is_written_is_read() {
    for oldest in Bytecode::ALL {
        let module = everything(oldest);
        for version in Bytecode::ALL {
            let written = write(&module, version);
            if version < oldest {
                assert!(matches!(written, Err(WriteError::Version { .. })), "{oldest} as {version}");
                continue;
            }
            let bytes = written.unwrap();
            let (again, found, numbering) =
                read(&bytes).unwrap_or_else(|e| panic!("{oldest} as {version}: {e}"));
            assert_eq!(print(&again), print(&nameless(&module)), "{oldest} as {version}");
            assert_eq!((again, found), (nameless(&module), version));
            assert_eq!(write_numbered(&module, version, numbering).unwrap(), bytes);
        }
    }
}

/// Where NVIDIA's disassembler is, `moire-toolchain` asks it about these bytes. Elsewhere they must not change.
#[test]
fn the_layout_has_not_changed() {
    let digest = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |n, b| (n ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let digests = Bytecode::ALL.map(|version| digest(&write(&everything(version), version).unwrap()));
    let known = [
        0xa5b7_d2ac_f97e_3f26,
        0xa112_58b6_f04c_d1ef,
        0x3955_3881_0ea9_cca4,
        0x80f1_9a55_7f7e_d29c,
        0xa7bb_3934_1a19_bc53,
    ];
    assert_eq!(digests, known, "{digests:#018x?}");
}

#[test]
fn modules_that_no_text_gives_are_refused() {
    let mut module = parse("entry @k(%a: tile<i32>) { %0 = make_token : token return }").unwrap();
    module.functions[0].types.pop();
    assert!(matches!(write(&module, Bytecode::V13_5), Err(WriteError::Malformed(..))));
    let wide = "entry @k() { %0 = constant <f8E8M0FNU: 0x7F> : tile<f8E8M0FNU> return }";
    assert!(matches!(write(&parse(wide).unwrap(), Bytecode::V13_1), Err(WriteError::Version { .. })));
    assert!(write(&parse(wide).unwrap(), Bytecode::V13_2).is_ok());
    assert_eq!(Numbering::usual(&Module::default()).types.len(), 7);
}

#[test]
fn what_ends_a_block_has_no_results() {
    let mut bytes = write(&parse("entry @k() { return }").unwrap(), Bytecode::V13_1).unwrap();
    let end = bytes.windows(3).position(|w| w == [0x5C, 0, 0]).expect("a return");
    bytes[end + 1] = 1;
    let why = read(&bytes).unwrap_err().to_string();
    assert!(why.ends_with("`return` has 0 results, not 1"), "{why}");
}

fn survive(bytes: &[u8]) -> bool {
    let Ok((module, version, numbering)) = read(bytes) else { return false };
    verify(&module);
    print(&module);
    if let Ok(again) = write_numbered(&module, version, numbering) {
        assert!(read(&again).is_ok(), "{bytes:x?} became {again:x?}");
    }
    true
}

#[test]
fn short_and_foreign_files_are_refused() {
    let bytes = write(&everything(Bytecode::V13_5), Bytecode::V13_5).unwrap();
    for n in 0..bytes.len() {
        assert!(read(&bytes[..n]).is_err(), "{n} bytes");
    }
    let error = |at: usize, byte: u8| {
        let mut changed = bytes.clone();
        changed[at] = byte;
        read(&changed).unwrap_err().to_string()
    };
    assert_eq!(error(0, 0), "at offset 0: this is no Tile IR bytecode");
    assert_eq!(error(9, 9), "at offset 8: version 13.9 is not known here");
    assert_eq!(error(12, 0x99), "at offset 12: section 25 is not known here");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 16, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn changed_files(which in 0..5usize, edits in proptest::collection::vec((0.0..1.0f64, any::<u8>(), 0..3u8), 1..5)) {
        let version = Bytecode::ALL[which];
        let mut bytes = write(&everything(version), version).unwrap();
        for (at, byte, kind) in edits {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place")]
            let at = (bytes.len() as f64 * at) as usize;
            match kind {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                _ => bytes.insert(at, byte),
            }
        }
        survive(&bytes);
    }

    #[test]
    fn any_bytes(mut tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = b"\x7fTileIR\x00\x0d\x03\x00\x00".to_vec();
        survive(&tail);
        bytes.append(&mut tail);
        survive(&bytes);
    }
}

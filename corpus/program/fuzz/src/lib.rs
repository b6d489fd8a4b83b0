//! What holds of any bytes given to the readers of programs; fuzzers try it, and a test has it of all inputs that are kept.

use moire_kernel::ptx;
use moire_kernel::simt;
use moire_kernel::specialise::{self as kernel, Launch};
use moire_program::canon::canonical;
use moire_program::ir::Program;
use moire_program::limits::TEXT_BYTES;
use moire_program::text::{Format, decode, parse, print};
use moire_program::validate::validate;
use moire_tile_ir::run::{self as tile_run, TileLaunch, tile_entry};
use moire_tile_ir::text as tile;
use moire_tile_ir::{Reason, verify};
use std::collections::BTreeMap;

const FORMATS: [Format; 3] = [Format::Native, Format::Dat3m, Format::MixedProxy];
/// Threads and instructions of a program whose canonical form is looked at: it takes a while.
const SMALL: (usize, usize) = (4, 64);

/// Bytes are a program in one of the formats, or refused at a place in the text; what is read prints and reads back.
pub fn read(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let Ok(text) = decode(rest) else { return };
    match parse(text, FORMATS[usize::from(*first) % FORMATS.len()]) {
        Err(error) => assert!(error.0.line as usize <= text.lines().count() + 1, "{error}"),
        Ok(program) => whole(&program),
    }
}

/// A program prints, reads back and is judged by the static rules.
fn whole(program: &Program) {
    validate(program);
    let printed = print(program);
    if printed.len() > TEXT_BYTES {
        return;
    }
    let again = parse(&printed, Format::Native).unwrap_or_else(|e| panic!("{printed}\nis refused: {e}"));
    assert_eq!(print(&again), printed);
    let (threads, instructions) = (program.threads.len(), program.threads.iter().map(|t| t.body.len()));
    if threads <= SMALL.0 && instructions.sum::<usize>() <= SMALL.1 {
        assert_eq!(canonical(&again).id, canonical(program).id);
    }
}

/// Bytes are a PTX module or refused; a kernel of one is run ahead, warp by warp and lane by lane, or refused by name.
pub fn ptx(bytes: &[u8]) {
    let Ok(text) = decode(bytes) else { return };
    let Ok(module) = ptx::parse(text) else { return };
    for kernel in &module.kernels {
        let errors = kernel.rejected(&module);
        assert!(errors.iter().all(|e| !e.message.is_empty()));
        let Ok(launch) = Launch::of(kernel, None, kernel.threads.or(Some([32, 1, 1])), None, BTreeMap::new())
        else {
            continue;
        };
        if errors.is_empty()
            && let Ok(lowered) = kernel::lower(kernel, &launch)
        {
            print(&lowered.program);
        }
        if errors.is_empty()
            && let Ok(program) = simt::threads(kernel, 1, &vec![64; kernel.params.len()])
        {
            print(&program);
        }
    }
}

/// Bytes are a Tile IR module or refused with the rule; what is read prints and reads back, and a verified kernel is
/// launched or refused by name.
pub fn tile(bytes: &[u8]) {
    let Ok(text) = decode(bytes) else { return };
    let module = match tile::parse(text) {
        Ok(module) => module,
        Err(error) => {
            assert!(error.0.line >= 1 && error.0.column >= 1 && !error.0.message.is_empty(), "{error:?}");
            assert!(error.0.rule.and_then(Reason::named).is_some(), "{error:?}");
            return;
        }
    };
    let printed = tile::print(&module);
    if printed.len() <= TEXT_BYTES {
        let again = tile::parse(&printed).unwrap_or_else(|e| panic!("{printed}\nis refused: {e}"));
        assert_eq!(again, module, "{printed}");
    }
    if verify(&module).is_empty()
        && let Ok(kernel) = tile_entry(&module, None)
    {
        let launch = TileLaunch::noted(text).unwrap_or_else(|| TileLaunch::row(1));
        if let Ok(program) = tile_run::lower(kernel, &launch) {
            whole(&program);
        }
    }
}

//! Any bytes are a program in one of the formats, or refused at a place in the text; what is read prints and reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use moire_program::canon::canonical;
use moire_program::text::{Format, decode, parse, print};
use moire_program::validate::validate;

const FORMATS: [Format; 3] = [Format::Native, Format::Dat3m, Format::MixedProxy];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let Ok(text) = decode(rest) else { return };
    match parse(text, FORMATS[usize::from(*first) % 3]) {
        Err(error) => assert!(error.0.line as usize <= text.lines().count() + 1, "{error}"),
        Ok(program) => {
            validate(&program);
            let printed = print(&program);
            let again = parse(&printed, Format::Native).expect("what is printed is read");
            assert_eq!(print(&again), printed);
            assert_eq!(canonical(&again).id, canonical(&program).id);
        }
    }
});

//! Any pair of key and value is a record of the key's kind, or refused with the key and a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|pair: (&[u8], &[u8])| {
    if let Err(error) = moire_corpus::check_record(pair.0, pair.1) {
        assert!(error.to_string().starts_with("record "));
    }
});

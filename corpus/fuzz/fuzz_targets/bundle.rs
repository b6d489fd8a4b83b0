//! Any bytes are refused, or a bundle that reads the same after it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use moire_corpus::bundle;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = bundle::read(bytes)
        && let Ok(written) = bundle::write(&read)
    {
        assert_eq!(bundle::read(&written).ok(), Some(read));
    }
});

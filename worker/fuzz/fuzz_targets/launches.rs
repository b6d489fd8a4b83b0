//! See the function of this name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| moire_worker_fuzz::launches(bytes));

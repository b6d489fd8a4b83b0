//! Any bytes are a log with some number of intact commits; more bytes behind them take none away.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let commits = moire_corpus::scan_log(bytes);
    let longer = [bytes, &b"MoFr\x10\0\0\0torn"[..]].concat();
    assert!(moire_corpus::scan_log(&longer) >= commits);
});

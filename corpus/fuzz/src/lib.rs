//! What holds of any bytes given to the readers of the store; fuzzers try it, and a test has it of all inputs that are kept.

use moire_corpus::{bundle, check_export, check_record, scan_log};

/// Bytes are a log with some number of intact commits; more bytes behind them take none away.
pub fn log(bytes: &[u8]) {
    let commits = scan_log(bytes);
    let longer = [bytes, &b"MoFr\x10\0\0\0torn"[..]].concat();
    assert!(scan_log(&longer) >= commits);
}

/// Bytes are refused, or a bundle that reads the same after it is written.
pub fn bundle(bytes: &[u8]) {
    if let Ok(read) = bundle::read(bytes)
        && let Ok(written) = bundle::write(&read)
    {
        assert_eq!(bundle::read(&written).ok(), Some(read));
    }
}

/// A pair of key and value, the key as long as the first byte says, is a record of the key's kind, or refused with the key
/// and a reason.
pub fn record(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(*length).min(rest.len()));
    if let Err(error) = check_record(key, value) {
        assert!(error.to_string().starts_with("record "), "{error}");
    }
}

/// Bytes are an export, or refused with the line.
pub fn export(bytes: &[u8]) {
    if let Err(error) = check_export(bytes) {
        assert!(error.to_string().contains("export line "), "{error}");
    }
}

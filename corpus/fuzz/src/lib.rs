//! Properties of the store's readers that hold for any bytes. Fuzzers try to break them; a test checks them on all kept
//! inputs.

use moire_corpus::{bundle, check_export, check_record, scan_log};

/// Any bytes are a log with some number of intact commits. Appending bytes never lowers that number.
pub fn log(bytes: &[u8]) {
    let commits = scan_log(bytes);
    let longer = [bytes, &b"MoFr\x10\0\0\0torn"[..]].concat();
    assert!(scan_log(&longer) >= commits);
}

/// Any bytes are refused, or are a bundle that is equal after writing and reading it.
pub fn bundle(bytes: &[u8]) {
    if let Ok(read) = bundle::read(bytes)
        && let Ok(written) = bundle::write(&read)
    {
        assert_eq!(bundle::read(&written).ok(), Some(read));
    }
}

/// Any key and value are a record of the key's kind, or are refused with the key and a reason. The first byte is the length
/// of the key.
pub fn record(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(*length).min(rest.len()));
    if let Err(error) = check_record(key, value) {
        assert!(error.to_string().starts_with("record "), "{error}");
    }
}

/// Any bytes are an export, or are refused with the number of a line.
pub fn export(bytes: &[u8]) {
    if let Err(error) = check_export(bytes) {
        assert!(error.to_string().contains("export line "), "{error}");
    }
}

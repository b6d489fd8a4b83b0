//! One operation on a pair of the store: a key, and its new value.
//!
//! Invariant: key and value are within the limits of the log. An operation is made only by [`Op::new`], which checks them.
//! So whatever is appended to the log can be read from it again, and no record that is too large stops the process.

/// Largest value of one record; larger parts go to bundle files.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Longest key of one record.
pub(crate) const KEY_BYTES_MAX: usize = 512;
/// Longest part of a key that a message shows.
const SHOWN_BYTES_MAX: usize = 100;

/// A key or a value that is over its limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} has {size} bytes, the limit is {limit}")]
pub(crate) struct OverLimit {
    /// The record, or its key.
    pub(crate) what: String,
    /// Its size.
    pub(crate) size: usize,
    /// The limit.
    pub(crate) limit: usize,
}

/// A key, and its new value (`None`: removed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Op {
    /// An operation within the limits.
    ///
    /// # Errors
    /// Key or value are larger than the log takes.
    pub(crate) fn new(key: Vec<u8>, value: Option<Vec<u8>>) -> Result<Self, OverLimit> {
        let shown = key[..key.len().min(SHOWN_BYTES_MAX)].escape_ascii();
        if key.len() > KEY_BYTES_MAX {
            let (what, size) = (format!("the key {shown}.."), key.len());
            return Err(OverLimit { what, size, limit: KEY_BYTES_MAX });
        }
        let size = value.as_ref().map_or(0, Vec::len);
        if size > VALUE_BYTES_MAX {
            return Err(OverLimit { what: format!("record {shown}"), size, limit: VALUE_BYTES_MAX });
        }
        Ok(Self { key, value })
    }
    /// The key.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }
    /// The new value; `None`: the record is removed.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }
    /// Key and value.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Option<Vec<u8>>) {
        (self.key, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_a_limit_is_no_operation() {
        let made = |key: usize, value: usize| Op::new(vec![b'k'; key], Some(vec![0; value]));
        for (key, value) in [(0, 0), (KEY_BYTES_MAX, 0), (1, VALUE_BYTES_MAX)] {
            assert!(made(key, value).is_ok(), "{key} {value}");
        }
        let long = made(KEY_BYTES_MAX + 1, 0).unwrap_err();
        assert_eq!((long.size, long.limit), (KEY_BYTES_MAX + 1, KEY_BYTES_MAX));
        assert!(long.to_string().len() < 200, "{long}");
        let large = made(1, VALUE_BYTES_MAX + 1).unwrap_err();
        assert_eq!(large.to_string(), "record k has 65537 bytes, the limit is 65536");
    }
}

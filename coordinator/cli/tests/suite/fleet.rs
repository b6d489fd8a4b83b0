//! Processes that end with the test.

use std::process::Child;

/// Processes that are killed when this is dropped.
pub(crate) struct Fleet(pub(crate) Vec<Child>);

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

//! A value made from files, and made again when they change.
//!
//! Contract: files that changed and make no sense leave the value as it was, with one line in the log a cause; half of a
//! pair that was replaced is such a case, and the next look sees the other half.

use crate::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_millis(500);

/// The size and time of each file, by which a change is seen without reading the files.
type Stamps = Vec<Option<(SystemTime, u64)>>;

struct State<T> {
    value: Arc<T>,
    stamps: Stamps,
    looked: Instant,
    complaint: String,
}

/// A value made from files, and made again when they change.
pub(crate) struct Watched<T> {
    files: Vec<PathBuf>,
    make: fn(&[PathBuf]) -> Result<T, Error>,
    state: Mutex<State<T>>,
}

fn stamps(files: &[PathBuf]) -> Stamps {
    let stamp = |file: &PathBuf| {
        let data = std::fs::metadata(file).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    files.iter().map(stamp).collect()
}

impl<T> Watched<T> {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// Whatever `make` says of them.
    pub(super) fn new(files: Vec<PathBuf>, make: fn(&[PathBuf]) -> Result<T, Error>) -> Result<Self, Error> {
        let stamps = stamps(&files);
        let value = Arc::new(make(&files)?);
        let state = State { value, stamps, looked: Instant::now(), complaint: String::new() };
        Ok(Self { files, make, state: Mutex::new(state) })
    }

    /// The value of the files as they are, or as they last made sense.
    pub(super) fn current(&self) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() < LOOK {
            return state.value.clone();
        }
        state.looked = Instant::now();
        let now = stamps(&self.files);
        if now != state.stamps {
            match (self.make)(&self.files) {
                Ok(value) => {
                    tracing::info!(file = %self.files[0].display(), "read again");
                    (state.value, state.stamps) = (Arc::new(value), now);
                    state.complaint.clear();
                }
                Err(error) if state.complaint != error.to_string() => {
                    tracing::error!(%error, "changed and not usable; what was there before stays in force");
                    state.complaint = error.to_string();
                }
                Err(_) => {}
            }
        }
        state.value.clone()
    }
}

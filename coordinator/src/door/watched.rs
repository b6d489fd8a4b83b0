//! A value that is made from files, and made again when they change.
//!
//! Contract: while changed files cannot be used, the last good value stays, and the log has one line for each cause. That
//! covers a pair of files of which only one has been replaced so far: a later look sees both. A value that is *closed* is
//! another matter: while its files cannot be used it is the one that lets nobody in.

use crate::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_millis(500);

/// The size and time of each file, by which a change is seen without reading the files.
type Stamps = Vec<Option<(SystemTime, u64)>>;

/// The last good value, and what was last seen of its files.
struct Loaded<T> {
    value: Arc<T>,
    stamps: Stamps,
    looked: Instant,
    complaint: String,
}

/// A value made from files, and made again when they change.
pub(crate) struct Watched<T> {
    files: Vec<PathBuf>,
    make: fn(&[PathBuf]) -> Result<T, Error>,
    /// The value while the files cannot be used; without it, the last good one.
    closed: Option<fn() -> T>,
    loaded: Mutex<Loaded<T>>,
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
        let loaded = Loaded { value, stamps, looked: Instant::now(), complaint: String::new() };
        Ok(Self { files, make, closed: None, loaded: Mutex::new(loaded) })
    }

    /// The same, with a value that holds while the files cannot be used.
    pub(super) fn or_closed(self, closed: fn() -> T) -> Self {
        Self { closed: Some(closed), ..self }
    }

    /// The value of the files as they are, or as they last could be used.
    pub(super) fn current(&self) -> Arc<T> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.looked.elapsed() < LOOK {
            return loaded.value.clone();
        }
        loaded.looked = Instant::now();
        let now = stamps(&self.files);
        if now != loaded.stamps {
            match (self.make)(&self.files) {
                Ok(value) => {
                    tracing::info!(file = %self.files[0].display(), "read again");
                    (loaded.value, loaded.stamps) = (Arc::new(value), now);
                    loaded.complaint.clear();
                }
                Err(error) => {
                    let stays = if self.closed.is_some() {
                        "nobody is let in"
                    } else {
                        "the last good one stays in force"
                    };
                    if loaded.complaint != error.to_string() {
                        tracing::error!(%error, "changed and not usable: {stays}");
                        loaded.complaint = error.to_string();
                    }
                    if let Some(closed) = self.closed {
                        loaded.value = Arc::new(closed());
                    }
                }
            }
        }
        loaded.value.clone()
    }
}

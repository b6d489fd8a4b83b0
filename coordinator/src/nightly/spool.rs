//! The findings of a night, kept in a file. A report reads them one by one, so memory holds only a number for each.

use crate::report::{Findings, ReportError};
use moire_corpus::{Finding, FindingId};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

/// A spool that is being filled.
pub(super) struct Filling {
    out: BufWriter<File>,
    ends: Vec<u64>,
}

/// The findings of a night, in a file.
pub struct Spool {
    file: Mutex<File>,
    /// The offset at which each record ends.
    ends: Vec<u64>,
}

impl Filling {
    /// Starts to fill `file`, which must be empty and also open for reading.
    pub(super) fn new(file: File) -> Self {
        Self { out: BufWriter::new(file), ends: Vec::new() }
    }
    pub(super) fn push(&mut self, finding: &Finding) -> io::Result<()> {
        let json = serde_json::to_vec(finding)?;
        self.out.write_all(&json)?;
        self.ends.push(self.ends.last().unwrap_or(&0) + json.len() as u64);
        Ok(())
    }
    pub(super) fn done(self) -> io::Result<Spool> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Spool { file: Mutex::new(file), ends: self.ends })
    }
}

impl Spool {
    fn read(&self, place: usize) -> Result<Finding, ReportError> {
        let from = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        let length = usize::try_from(self.ends[place] - from).map_err(io::Error::other)?;
        let mut json = vec![0; length];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut json)?;
        drop(file);
        Ok(serde_json::from_slice(&json)?)
    }
}

impl Findings for Spool {
    fn each(&self) -> Box<dyn Iterator<Item = Result<Cow<'_, Finding>, ReportError>> + '_> {
        Box::new((0..self.ends.len()).map(|place| self.read(place).map(Cow::Owned)))
    }
    fn at(&self, place: usize, id: &FindingId) -> Result<Cow<'_, Finding>, ReportError> {
        match place < self.ends.len() {
            true => self.read(place).map(Cow::Owned),
            false => Err(ReportError::Gone(*id)),
        }
    }
}

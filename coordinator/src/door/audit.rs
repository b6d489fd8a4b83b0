//! The audit log: who made which call, in which role, when, and with which answer.
//!
//! Contract:
//!
//! * The log is JSON lines in `audit.jsonl`. Each line is handed to the operating system at once; it is not synced to disk.
//! * A file has at most [`FILE_BYTES_MAX`]. At most [`KEPT`] older files are kept; `audit.jsonl.1` is the newest of them.
//! * At most [`REFUSALS_MAX`] refusals of one peer have a line in one minute, so that nobody can flush the log with them.
//!   The next line says how many were left out.
//! * A line that cannot be written is counted as left out, and the log of the process says so.

use crate::clock::unix_ms;
use serde::Serialize;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Name of the file.
const FILE: &str = "audit.jsonl";
/// Largest file; then a new one is begun.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// Number of older files kept.
const KEPT: u32 = 4;
/// Most refusals of one peer that have a line of their own in one minute.
const REFUSALS_MAX: u32 = 30;
/// Length of such a minute.
const WINDOW: Duration = Duration::from_mins(1);
/// Most peers whose refusals are counted in one minute; those of further peers have no line.
const PEERS_MAX: usize = 4096;

/// One line.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Entry {
    /// Name of the token's holder; empty: unknown.
    pub(crate) who: String,
    /// Its role.
    pub(crate) role: &'static str,
    /// Address of the peer.
    pub(crate) peer: String,
    /// Start of the BLAKE3 of its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<String>,
    /// The call.
    pub(crate) what: String,
    /// The subject: a campaign, a finding, a worker's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) about: String,
    /// `ok`, or why not.
    pub(crate) answer: String,
}

#[derive(Serialize)]
struct AuditLine<'a> {
    at_ms: u64,
    #[serde(flatten)]
    entry: &'a Entry,
    /// Refusals without a line since the last one.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

struct AuditFile {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    limit: u64,
    refusals: HashMap<IpAddr, u32>,
    since: Instant,
    left_out: u64,
    failing: bool,
}

/// The audit log; none without a folder for it.
pub(crate) struct Audit(Option<Mutex<AuditFile>>);

impl Audit {
    /// A log in this folder, which must exist.
    pub(crate) fn new(folder: &Path) -> Self {
        Self::limited(folder, FILE_BYTES_MAX)
    }
    fn limited(folder: &Path, limit: u64) -> Self {
        let path = folder.join(FILE);
        let (refusals, since) = (HashMap::new(), Instant::now());
        let writer =
            AuditFile { path, file: None, bytes: 0, limit, refusals, since, left_out: 0, failing: false };
        Self(Some(Mutex::new(writer)))
    }
    /// No log: only this machine can connect.
    pub(crate) fn none() -> Self {
        Self(None)
    }
    /// Notes a call that passed, whatever its answer.
    pub(crate) fn granted(&self, entry: &Entry) {
        if let Some(writer) = &self.0 {
            writer.lock().unwrap_or_else(PoisonError::into_inner).write(entry);
        }
    }
    /// Notes a call of this peer that was refused.
    pub(crate) fn refused(&self, peer: IpAddr, entry: &Entry) {
        let Some(writer) = &self.0 else { return };
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.room(peer) {
            writer.write(entry);
        } else {
            writer.left_out += 1;
        }
    }
}

impl AuditFile {
    /// Whether another refusal of this peer has a line.
    fn room(&mut self, peer: IpAddr) -> bool {
        if self.since.elapsed() > WINDOW {
            self.refusals.clear();
            self.since = Instant::now();
        }
        if self.refusals.len() >= PEERS_MAX && !self.refusals.contains_key(&peer) {
            return false;
        }
        let count = self.refusals.entry(peer).or_default();
        *count += 1;
        *count <= REFUSALS_MAX
    }

    fn write(&mut self, entry: &Entry) {
        let line = AuditLine { at_ms: unix_ms(), entry, left_out: self.left_out };
        let written = serde_json::to_vec(&line).map_err(std::io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            self.append(&text)
        });
        match written {
            Ok(()) => (self.left_out, self.failing) = (0, false),
            Err(error) => {
                self.file = None;
                self.left_out += 1;
                if !self.failing {
                    tracing::error!(%error, file = %self.path.display(), "the audit log cannot be written");
                }
                self.failing = true;
            }
        }
    }

    fn append(&mut self, text: &[u8]) -> std::io::Result<()> {
        if self.file.is_none() {
            let file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            self.bytes = file.metadata()?.len();
            self.file = Some(file);
        }
        if self.bytes > 0 && self.bytes + text.len() as u64 > self.limit {
            self.rotate()?;
        }
        let Some(file) = &mut self.file else { return Err(std::io::ErrorKind::NotFound.into()) };
        file.write_all(text)?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Begins a new file and removes the oldest.
    fn rotate(&mut self) -> std::io::Result<()> {
        let old = |n: u32| PathBuf::from(format!("{}.{n}", self.path.display()));
        for n in (1..KEPT).rev() {
            if old(n).exists() {
                std::fs::rename(old(n), old(n + 1))?;
            }
        }
        std::fs::rename(&self.path, old(1))?;
        self.file = Some(OpenOptions::new().create(true).append(true).open(&self.path)?);
        self.bytes = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    #[test]
    fn files_stay_bounded_and_the_youngest_lines_stay() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::limited(dir.path(), 1_000);
        for n in 0..100 {
            audit.granted(&Entry { who: "w".to_owned(), about: n.to_string(), ..Entry::default() });
        }
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(u32::try_from(names.len()), Ok(KEPT + 1), "{names:?}");
        for name in &names {
            assert!(std::fs::metadata(dir.path().join(name)).unwrap().len() <= 1_000);
        }
        assert_eq!(lines(&dir.path().join(FILE)).last().unwrap()["about"], "99");
        let again = Audit::limited(dir.path(), 1_000);
        again.granted(&Entry { about: "100".to_owned(), ..Entry::default() });
        assert_eq!(lines(&dir.path().join(FILE)).last().unwrap()["about"], "100", "a restart appends");
    }

    #[test]
    fn refusals_do_not_wash_it_out() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::new(dir.path());
        let peer = |n: u32| IpAddr::V4(n.into());
        for _ in 0..100 {
            audit.refused(peer(1), &Entry::default());
        }
        audit.refused(peer(2), &Entry::default());
        let lines = lines(&dir.path().join(FILE));
        assert_eq!(u32::try_from(lines.len()), Ok(REFUSALS_MAX + 1));
        assert_eq!(lines.last().unwrap()["left_out"], 100 - REFUSALS_MAX);
    }
}

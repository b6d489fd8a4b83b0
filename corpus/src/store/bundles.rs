//! Content-addressed files of a store: bundles, and the snapshots of reports.

use super::Store;
use super::keys::parse;
use crate::error::{StoreError, io_error};
use crate::hash::Hash;
use crate::night::Snapshot;
use crate::op::Op;
use crate::{bundle, failpoints, files};
use std::io;

/// Most findings of a snapshot in one file. Each has an id and a state, so the file stays below the limit of a bundle.
const SNAPSHOT_FINDINGS: usize = 40_000;

impl Store {
    /// Stores bytes under their hash; durable when it returns.
    pub fn put_bundle(&mut self, bytes: &[u8]) -> Result<Hash, StoreError> {
        if bytes.len() > bundle::BYTES_MAX {
            let (what, size) = ("a bundle".to_owned(), bytes.len());
            return Err(StoreError::TooLarge { what, size, limit: bundle::BYTES_MAX });
        }
        files::put_bundle(self.dir(), bytes).map_err(io_error("storing a bundle"))
    }
    /// The bytes of a stored bundle; `None` when there is no such file.
    pub fn bundle(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        let path = files::bundle_path(self.dir(), hash);
        match files::read_bounded(&path, bundle::BYTES_MAX as u64) {
            Ok(bytes) if Hash::of(&bytes) == *hash => Ok(Some(bytes)),
            Ok(_) => Err(StoreError::Decode {
                key: format!("bundle {hash}"),
                reason: "its hash differs".to_owned(),
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(io_error("reading a bundle")(e)),
        }
    }

    /// Stores the snapshot of a report.
    pub fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let text = |part: &Snapshot| serde_json::to_vec(part).map_err(|e| StoreError::Invalid(e.to_string()));
        let mut rest = snapshot.findings.iter();
        let mut part = || rest.by_ref().take(SNAPSHOT_FINDINGS).map(|(id, s)| (*id, s.clone())).collect();
        let (at_ms, counters) = (snapshot.at_ms, snapshot.counters.clone());
        let mut head = Snapshot { at_ms, counters, findings: part(), ..Snapshot::default() };
        loop {
            let part = Snapshot { at_ms, findings: part(), ..Snapshot::default() };
            if part.findings.is_empty() {
                break;
            }
            head.parts.push(self.put_bundle(&text(&part)?)?);
        }
        let hash = self.put_bundle(&text(&head)?)?;
        failpoints::hit(failpoints::SNAPSHOT).map_err(io_error("storing a snapshot"))?;
        let key = [&b"t/"[..], &snapshot.at_ms.to_be_bytes()].concat();
        self.pairs.commit(vec![Op::new(key, Some(format!("\"{hash}\"").into_bytes()))?])
    }
    /// The snapshot of the last report.
    pub fn last_snapshot(&self) -> Result<Option<Snapshot>, StoreError> {
        let last = self.records::<Hash>(b"t/").last().transpose()?;
        let Some(hash) = last else { return Ok(None) };
        let Some(mut snapshot) = self.snapshot_part(&hash)? else { return Ok(None) };
        for part in std::mem::take(&mut snapshot.parts) {
            let lost =
                || StoreError::Decode { key: format!("bundle {part}"), reason: "there is none".to_owned() };
            snapshot.findings.extend(self.snapshot_part(&part)?.ok_or_else(lost)?.findings);
        }
        Ok(Some(snapshot))
    }
    fn snapshot_part(&self, hash: &Hash) -> Result<Option<Snapshot>, StoreError> {
        let key = format!("bundle {hash}");
        self.bundle(hash)?.map(|bytes| parse(key.as_bytes(), &bytes)).transpose()
    }
}

//! Losses: what a store had, and has no more.
//!
//! Contract: a loss is written to the file `LOSSES` before the log is repaired or written to, so that no crash makes it
//! silent. It stays there, and every opening reports it, until an operator acknowledges it with a reason. Then it stays as
//! history.
//!
//! Damage inside the log is seen by its checksums. A log that is missing, cut or replaced is seen by its traces: the tip,
//! a file with the place of the last acknowledged commit, and the marker and the files of the index. The tip is written after
//! each commit and is not synced, so it is at or before the end of the log, never behind it.

use crate::files::{self, INDEX, LOG};
use crate::index;
use crate::log::Place;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Name of the list of losses.
const LOSSES: &str = "LOSSES";
/// Largest list that is read.
const LOSSES_BYTES_MAX: u64 = 1 << 20;
/// Most losses in the list; the last of them says that there were more.
const LOSSES_MAX: usize = 500;
/// Longest reason of an acknowledgement, and longest name of a person, in characters.
const WORDS_MAX: usize = 200;
/// Name of the file with the tip.
const TIP: &str = "tip";
const TIP_MAGIC: &[u8; 8] = b"MOIRETIP";
const TIP_BYTES: usize = 36;

/// Something that a store had, and has no more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Loss {
    /// What was lost, one sentence.
    pub what: String,
    /// Copies of the damaged files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<PathBuf>,
    /// Who acknowledged it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<String>,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.what)?;
        for path in &self.kept {
            write!(f, "; kept: {}", path.display())?;
        }
        self.acknowledged.iter().try_for_each(|who| write!(f, " (acknowledged by {who})"))
    }
}

/// The losses of a store, as its list has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses(Vec<Loss>);

impl Losses {
    /// Reads the list. A list that cannot be read is itself a loss.
    pub(crate) fn read(dir: &Path) -> io::Result<Self> {
        let bytes = match files::read_bounded(&dir.join(LOSSES), LOSSES_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Vec::new(),
            Err(e) => return Err(e),
        };
        let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let read: Result<Vec<Loss>, _> = lines.map(serde_json::from_slice).collect();
        Ok(match read {
            Ok(all) if !all.is_empty() => Self(all),
            _ => Self(vec![Loss {
                what: "the list of earlier losses cannot be read".to_owned(),
                ..Loss::default()
            }]),
        })
    }
    /// All of them, oldest first.
    pub(crate) fn all(&self) -> &[Loss] {
        &self.0
    }
    /// Adds a loss; durable when this returns. One that the list already ends with is not added twice.
    pub(crate) fn add(&mut self, dir: &Path, loss: Loss) -> io::Result<()> {
        let same = |known: &Loss| known.acknowledged.is_none() && known.what == loss.what;
        if self.0.last().is_some_and(same) {
            return Ok(());
        }
        self.0.push(loss);
        if self.0.len() > LOSSES_MAX {
            self.0.truncate(LOSSES_MAX - 1);
            self.0.push(Loss {
                what: "there were more losses than the list takes".to_owned(),
                ..Loss::default()
            });
        }
        self.write(dir)
    }
    /// Notes that somebody knows of all of them; returns how many are new to that. Durable when this returns.
    pub(crate) fn acknowledge(&mut self, dir: &Path, who: &str, why: &str) -> io::Result<usize> {
        let words =
            |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_MAX).collect();
        let (who, why): (String, String) = (words(who), words(why));
        let mut count = 0;
        for loss in self.0.iter_mut().filter(|loss| loss.acknowledged.is_none()) {
            loss.acknowledged = Some(format!("{who}: {why}"));
            count += 1;
        }
        if count > 0 {
            self.write(dir)?;
        }
        Ok(count)
    }
    fn write(&self, dir: &Path) -> io::Result<()> {
        let mut text = Vec::new();
        for loss in &self.0 {
            serde_json::to_writer(&mut text, loss).map_err(io::Error::from)?;
            text.push(b'\n');
        }
        files::write_atomically(&dir.join(LOSSES), &text)
    }
    /// Copies the list into another store's directory.
    pub(crate) fn copy(&self, to: &Path) -> io::Result<()> {
        if self.0.is_empty() { Ok(()) } else { self.write(to) }
    }
}

/// The file with the place of the last acknowledged commit. It is a trace, not a promise: if it cannot be written, nothing
/// else fails.
pub(crate) struct Tip(Option<File>);

impl Tip {
    pub(crate) fn open(dir: &Path) -> Self {
        Self(OpenOptions::new().write(true).create(true).truncate(false).open(dir.join(TIP)).ok())
    }
    pub(crate) fn set(&mut self, place: Place) {
        let Some(file) = &mut self.0 else { return };
        let mut bytes = TIP_MAGIC.to_vec();
        for number in [place.generation, place.sequence, place.len] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&bytes));
        if written.is_err() {
            self.0 = None;
        }
    }
    fn read(dir: &Path) -> Option<Place> {
        let bytes = files::read_bounded(&dir.join(TIP), TIP_BYTES as u64).ok()?;
        let (body, crc) = bytes.split_at_checked(TIP_BYTES - 4)?;
        let numbers = body.strip_prefix(TIP_MAGIC)?;
        let number = |n: usize| Some(u64::from_le_bytes(numbers.get(8 * n..8 * n + 8)?.try_into().ok()?));
        let good = crc32c::crc32c(body).to_le_bytes() == crc;
        good.then_some(())?;
        Some(Place { generation: number(0)?, sequence: number(1)?, len: number(2)? })
    }
}

/// What an earlier process left beside the log, by which a loss of the log itself is seen.
pub(crate) struct Traces {
    tip: Option<Place>,
    /// Generation and length that the marker of the index names.
    marker: Option<(u64, u64)>,
    index: bool,
}

impl Traces {
    pub(crate) fn read(dir: &Path) -> Self {
        Self { tip: Tip::read(dir), marker: index::marked(dir), index: dir.join(INDEX).exists() }
    }
    /// The generation of the log they are of.
    pub(crate) fn generation(&self) -> u64 {
        let tip = self.tip.map_or(0, |tip| tip.generation);
        tip.max(self.marker.map_or(0, |marker| marker.0))
    }
    /// The loss, if there is no log.
    pub(crate) fn without_log(&self) -> Option<String> {
        let known = self.tip.map(|tip| format!("had {} commits", tip.sequence));
        let known = known.or_else(|| self.marker.map(|(_, len)| format!("had {len} bytes")));
        let known = known.or_else(|| self.index.then(|| "was not empty".to_owned()))?;
        Some(format!("the log {LOG} is missing; it {known}"))
    }
    /// The loss, if a log with this last commit and `frames` intact commits is less than it was. `damaged`: stretches that
    /// are no commit.
    pub(crate) fn missing(&self, last: Place, frames: u64, damaged: u64) -> Option<String> {
        let newest = self.generation();
        // A header that cannot be read says no generation.
        let last = Place { generation: if last.generation == 0 { newest } else { last.generation }, ..last };
        if newest > last.generation {
            return Some(format!(
                "the log is not the one that was written last: it has generation {}, and there was {newest}",
                last.generation
            ));
        }
        let tip = self.tip.filter(|tip| tip.generation == last.generation);
        let sequence = tip.map_or(0, |tip| tip.sequence).max(last.sequence);
        let marked = self.marker.filter(|(generation, _)| *generation == last.generation);
        let cut = marked.map_or(0, |(_, len)| len.saturating_sub(last.len));
        match sequence.saturating_sub(frames) {
            0 if damaged > 0 => Some(format!("the log was damaged; all of its {frames} commits are there")),
            0 if cut > 0 => Some(format!("the log was cut: its last {cut} bytes are missing")),
            0 => None,
            lost if damaged > 0 => {
                Some(format!("the log was damaged: {lost} of {sequence} commits are missing"))
            }
            lost => Some(format!("the log was cut: {lost} of {sequence} commits are missing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_stay_until_somebody_knows_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let mut losses = Losses::read(dir.path()).unwrap();
        assert!(losses.all().is_empty());
        let loss = |what: &str| Loss { what: what.to_owned(), ..Loss::default() };
        for what in ["one", "one", "two"] {
            losses.add(dir.path(), loss(what)).unwrap();
        }
        let mut again = Losses::read(dir.path()).unwrap();
        assert_eq!(again.all(), [loss("one"), loss("two")]);
        assert_eq!(again.acknowledge(dir.path(), "me", "old disk\n").unwrap(), 2);
        assert_eq!(again.acknowledge(dir.path(), "me", "again").unwrap(), 0);
        again.add(dir.path(), loss("two")).unwrap();
        let last = Losses::read(dir.path()).unwrap();
        assert_eq!(last.all().iter().filter(|l| l.acknowledged.is_none()).count(), 1);
        assert_eq!(last.all()[0].to_string(), "one (acknowledged by me: old disk )");
        std::fs::write(dir.path().join(LOSSES), "what?").unwrap();
        assert!(Losses::read(dir.path()).unwrap().all()[0].what.contains("cannot be read"));
        std::fs::write(dir.path().join(LOSSES), "").unwrap();
        assert_eq!(Losses::read(dir.path()).unwrap().all().len(), 1, "an empty list is none");
    }

    #[test]
    fn the_list_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let mut losses = Losses(vec![Loss { what: "x".repeat(1000), ..Loss::default() }; LOSSES_MAX]);
        for n in 0..3 {
            losses.add(dir.path(), Loss { what: n.to_string(), ..Loss::default() }).unwrap();
        }
        let read = Losses::read(dir.path()).unwrap();
        assert_eq!(read.all().len(), LOSSES_MAX);
        assert!(read.all().last().unwrap().what.contains("more losses"));
    }

    #[test]
    fn a_tip_is_read_as_it_was_written_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { generation: 3, sequence: 70, len: 9_000 };
        let mut tip = Tip::open(dir.path());
        tip.set(Place { sequence: 69, ..place });
        tip.set(place);
        assert_eq!(Tip::read(dir.path()), Some(place));
        let bytes = std::fs::read(dir.path().join(TIP)).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(dir.path().join(TIP), damaged).unwrap();
            assert_eq!(Tip::read(dir.path()), None, "byte {at}");
        }
        std::fs::write(dir.path().join(TIP), &bytes[..20]).unwrap();
        assert_eq!(Tip::read(dir.path()), None);
    }

    #[test]
    fn a_log_that_is_less_than_it_was_is_missed() {
        let at = |generation, sequence, len| Place { generation, sequence, len };
        let traces = |tip, marker| Traces { tip, marker, index: true };
        let whole = traces(Some(at(1, 10, 500)), Some((1, 500)));
        assert_eq!(whole.missing(at(1, 10, 500), 10, 0), None);
        assert_eq!(whole.missing(at(1, 12, 700), 12, 0), None, "the tip may be behind");
        assert_eq!(
            whole.missing(at(2, 3, 100), 3, 0),
            None,
            "compacted, and killed before the tip was written"
        );
        for (last, frames, damaged) in [(at(1, 9, 450), 9, 0), (at(1, 10, 500), 9, 1), (at(1, 0, 24), 0, 1)] {
            assert!(whole.missing(last, frames, damaged).is_some(), "{last:?}");
        }
        assert!(traces(Some(at(2, 1, 50)), None).missing(at(1, 10, 500), 10, 0).is_some(), "an older log");
        assert!(
            traces(None, Some((1, 500))).missing(at(1, 9, 450), 9, 0).is_some(),
            "cut at a commit, no tip"
        );
        assert_eq!(traces(None, None).missing(at(1, 9, 450), 9, 0), None);
        assert!(traces(None, None).missing(at(1, 9, 450), 8, 1).is_some());
    }
}

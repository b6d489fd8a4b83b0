//! The log: frames of key-value operations, the truth of the store.
//!
//! Header (24 bytes): `MOIRELOG`, version u32, generation u64, crc32c u32 of the bytes before it. Frame:
//! `MoFr`, payload length u32, crc32c u32 (of sequence and payload), sequence u64, payload. Payload: per operation
//! key length u16, key, value length u32 (`u32::MAX` = removed), value. Little endian. A frame is one commit:
//! whole or absent. Replay is idempotent, because an operation states the new value of a key.
//!
//! After damage the scan tries every later frame mark. Their checksums come from one pass over the image
//! ([`Checksums`]), so that an image full of marks with large lengths costs no more than linear time.

use crate::failpoints;
use crate::files::{self, sync_dir};
use crate::op::{KEY_BYTES_MAX, Op, VALUE_BYTES_MAX};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Format version of the store directory, its log and its exports.
pub const FORMAT: u32 = 1;
/// Largest batch of one commit.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest log, room for about two million findings. The log is compacted before it grows beyond this; a larger file is
/// not read.
pub const LOG_BYTES_MAX: u64 = 4 << 30;

/// Key, and its new value (`None`: removed), inside a log image.
pub(crate) type OpRef<'a> = (&'a [u8], Option<&'a [u8]>);

const MAGIC: &[u8; 8] = b"MOIRELOG";
const FRAME: &[u8; 4] = b"MoFr";
pub(crate) const HEADER_BYTES: usize = 24;
pub(crate) const FRAME_BYTES: usize = 20;
/// Largest sequence number. No log has so many commits, so a larger number is damage.
const SEQUENCE_MAX: u64 = 1 << 48;

/// The place of a commit: in which log, which one, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) generation: u64,
    pub(crate) sequence: u64,
    pub(crate) len: u64,
}

/// The content of a log's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Good { generation: u64 },
    Version(u32),
    Damaged,
}

pub(crate) struct Frame {
    pub(crate) sequence: u64,
    pub(crate) payload: Range<usize>,
}

/// A log image, read without trusting it.
pub(crate) struct Scan {
    pub(crate) header: Header,
    pub(crate) frames: Vec<Frame>,
    /// Bytes that belong to no intact frame, with intact frames after them.
    pub(crate) damaged: Vec<Range<usize>>,
    /// End of the last intact frame: what follows is a torn tail.
    pub(crate) end: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn header(bytes: &[u8]) -> Header {
    let checked = || {
        let (version, generation, crc) = (word(bytes, 8)?, long(bytes, 12)?, word(bytes, 20)?);
        (bytes.starts_with(MAGIC) && crc32c::crc32c(&bytes[..20]) == crc).then_some((version, generation))
    };
    match checked() {
        Some((FORMAT, generation)) => Header::Good { generation },
        Some((version, _)) => Header::Version(version),
        None => Header::Damaged,
    }
}

/// Product of two polynomials modulo that of crc32c; bit 31 is the coefficient of 1.
fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = if b & 1 == 1 { b >> 1 ^ 0x82f6_3b78 } else { b >> 1 };
    }
    product
}

/// Checksums of any range of an image, from those of its beginnings: crc(AB) = crc(A) x^(8 |B|) + crc(B).
struct Checksums<'a> {
    bytes: &'a [u8],
    /// x^(8 2^k), for lengths up to a frame's.
    powers: [u32; 32],
    /// crc32c of the first 0, `STEP`, 2 `STEP`, ... bytes.
    prefix: Vec<u32>,
}

impl<'a> Checksums<'a> {
    const STEP: usize = 1024;

    fn of(bytes: &'a [u8]) -> Self {
        let mut powers = [1 << 23; 32];
        for k in 1..powers.len() {
            powers[k] = multiply(powers[k - 1], powers[k - 1]);
        }
        let mut prefix = vec![0];
        let mut sum = 0;
        for step in bytes.chunks_exact(Self::STEP) {
            sum = crc32c::crc32c_append(sum, step);
            prefix.push(sum);
        }
        Self { bytes, powers, prefix }
    }

    fn up_to(&self, end: usize) -> u32 {
        let from = end / Self::STEP;
        crc32c::crc32c_append(self.prefix[from], &self.bytes[from * Self::STEP..end])
    }

    fn range(&self, range: Range<usize>) -> u32 {
        let mut before = self.up_to(range.start);
        for (k, power) in self.powers.iter().enumerate() {
            if range.len() >> k & 1 == 1 {
                before = multiply(*power, before);
            }
        }
        before ^ self.up_to(range.end)
    }
}

/// The frame at `at`, later than `sequence`, if there is an intact one.
fn frame(bytes: &[u8], at: usize, sequence: u64, sums: Option<&Checksums<'_>>) -> Option<Frame> {
    if bytes.get(at..at + 4)? != FRAME {
        return None;
    }
    let (len, crc, found) = (word(bytes, at + 4)? as usize, word(bytes, at + 8)?, long(bytes, at + 12)?);
    let payload = at + FRAME_BYTES..(at + FRAME_BYTES).checked_add(len)?;
    if len > BATCH_BYTES_MAX || payload.end > bytes.len() || found <= sequence || found > SEQUENCE_MAX {
        return None;
    }
    let checked = at + 12..payload.end;
    let sum = match sums {
        Some(sums) => sums.range(checked),
        None => crc32c::crc32c(&bytes[checked]),
    };
    (sum == crc).then_some(Frame { sequence: found, payload })
}

/// Reads every intact frame; after damage, goes on at the next intact one.
pub(crate) fn scan(bytes: &[u8]) -> Scan {
    let mut scan = Scan { header: header(bytes), frames: Vec::new(), damaged: Vec::new(), end: 0 };
    let mut at = HEADER_BYTES.min(bytes.len());
    scan.end = at;
    let mut sequence = 0;
    let mut sums = None;
    while at < bytes.len() {
        match frame(bytes, at, sequence, sums.as_ref()) {
            Some(found) => {
                if scan.end < at {
                    scan.damaged.push(scan.end..at);
                }
                sequence = found.sequence;
                at = found.payload.end;
                scan.end = at;
                scan.frames.push(found);
            }
            None => {
                sums.get_or_insert_with(|| Checksums::of(bytes));
                let next = bytes[at + 1..].windows(4).position(|w| w == FRAME);
                at = next.map_or(bytes.len(), |skip| at + 1 + skip);
            }
        }
    }
    scan
}

/// The payloads of intact frames that follow each other; `None`: something else is there.
pub(crate) fn frames(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let (mut at, mut sequence, mut payloads) = (0, 0, Vec::new());
    while at < bytes.len() {
        let Frame { sequence: found, payload } = frame(bytes, at, sequence, None)?;
        (at, sequence) = (payload.end, found);
        payloads.push(payload);
    }
    Some(payloads)
}

/// Reads a log image as recovery would and returns how many frames are intact (entry point of the fuzz target).
pub fn scan_log(bytes: &[u8]) -> usize {
    scan(bytes).frames.iter().filter(|f| decode(&bytes[f.payload.clone()]).is_some()).count()
}

/// A log that was read from its first byte to its last, and is intact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intact {
    pub(crate) generation: u64,
    /// Of the last frame.
    pub(crate) sequence: u64,
    pub(crate) frames: u64,
    pub(crate) len: u64,
}

/// Reads a log frame by frame, in the memory of one frame; `each` gets the place and the operations of each payload. `None`:
/// the log is damaged somewhere, and [`scan`] finds its intact frames.
pub(crate) fn intact(path: &Path, each: impl FnMut(u64, &[OpRef<'_>])) -> io::Result<Option<Intact>> {
    intact_first(path, u64::MAX, each)
}

/// [`intact`] of the first bytes of a log.
fn intact_first(
    path: &Path,
    bytes: u64,
    mut each: impl FnMut(u64, &[OpRef<'_>]),
) -> io::Result<Option<Intact>> {
    let mut file = io::BufReader::with_capacity(1 << 20, File::open(path)?.take(bytes));
    let mut head = [0; HEADER_BYTES];
    let whole = |read: io::Result<()>| match read {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    };
    if !whole(file.read_exact(&mut head))? {
        return Ok(None);
    }
    let Header::Good { generation } = header(&head) else { return Ok(None) };
    let mut found = Intact { generation, sequence: 0, frames: 0, len: HEADER_BYTES as u64 };
    let mut bytes = Vec::new();
    while !file.fill_buf()?.is_empty() {
        bytes.resize(FRAME_BYTES, 0);
        if !whole(file.read_exact(&mut bytes))? {
            return Ok(None);
        }
        let len = word(&bytes, 4).map_or(usize::MAX, |len| len as usize);
        if !bytes.starts_with(FRAME) || len > BATCH_BYTES_MAX {
            return Ok(None);
        }
        bytes.resize(FRAME_BYTES + len, 0);
        if !whole(file.read_exact(&mut bytes[FRAME_BYTES..]))? {
            return Ok(None);
        }
        let Some(read) = frame(&bytes, 0, found.sequence, None) else { return Ok(None) };
        let Some(ops) = decode(&bytes[read.payload]) else { return Ok(None) };
        each(found.len + FRAME_BYTES as u64, &ops);
        found.sequence = read.sequence;
        found.frames += 1;
        found.len += bytes.len() as u64;
    }
    Ok(Some(found))
}

/// Places of the live records of an intact log, by key. The values stay on disk.
pub(crate) struct Live {
    file: File,
    at: BTreeMap<Vec<u8>, (u64, usize)>,
}

impl Live {
    /// `None`: the log is not intact.
    pub(crate) fn of(path: &Path) -> io::Result<Option<(Intact, Self)>> {
        Self::of_first(path, u64::MAX)
    }
    /// The same of the first bytes of a log.
    pub(crate) fn of_first(path: &Path, bytes: u64) -> io::Result<Option<(Intact, Self)>> {
        let mut at = BTreeMap::new();
        let read = intact_first(path, bytes, |payload, ops| {
            let mut offset = payload;
            for (key, value) in ops {
                offset += 2 + key.len() as u64 + 4;
                match value {
                    Some(value) => {
                        at.insert(key.to_vec(), (offset, value.len()));
                        offset += value.len() as u64;
                    }
                    None => drop(at.remove(*key)),
                }
            }
        })?;
        let file = File::open(path)?;
        Ok(read.map(|read| (read, Self { file, at })))
    }
    /// The records in key order, as operations that write them.
    pub(crate) fn records(&self) -> impl Iterator<Item = io::Result<Op>> {
        self.at.iter().map(|(key, (offset, len))| {
            let mut value = vec![0; *len];
            let mut file = &self.file;
            file.seek(SeekFrom::Start(*offset))?;
            file.read_exact(&mut value)?;
            Op::new(key.clone(), Some(value)).map_err(io::Error::other)
        })
    }
}

/// The operations of a payload; `None` when it is not one.
pub(crate) fn decode(payload: &[u8]) -> Option<Vec<OpRef<'_>>> {
    let mut ops = Vec::new();
    let mut at = 0;
    while at < payload.len() {
        let key_len = usize::from(u16::from_le_bytes(payload.get(at..at + 2)?.try_into().ok()?));
        let key = payload.get(at + 2..at + 2 + key_len)?;
        at += 2 + key_len;
        let len = word(payload, at)?;
        at += 4;
        let value = if len == u32::MAX {
            None
        } else {
            let value = payload.get(at..at.checked_add(len as usize)?)?;
            at += value.len();
            Some(value)
        };
        if key.len() > KEY_BYTES_MAX || value.is_some_and(|v| v.len() > VALUE_BYTES_MAX) {
            return None;
        }
        ops.push((key, value));
    }
    Some(ops)
}

/// Writes operations as a payload.
pub(crate) fn encode(ops: &[Op]) -> Vec<u8> {
    let mut out = Vec::new();
    for op in ops {
        let len = u16::try_from(op.key().len()).expect("an operation has a key of at most KEY_BYTES_MAX");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(op.key());
        match op.value() {
            None => out.extend_from_slice(&u32::MAX.to_le_bytes()),
            Some(value) => {
                let len = u32::try_from(value.len()).expect("and a value of at most VALUE_BYTES_MAX");
                out.extend_from_slice(&len.to_le_bytes());
                out.extend_from_slice(value);
            }
        }
    }
    out
}

pub(crate) fn header_bytes(generation: u64) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&generation.to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out
}

pub(crate) fn frame_bytes(sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut checked = sequence.to_le_bytes().to_vec();
    checked.extend_from_slice(payload);
    let mut out = FRAME.to_vec();
    out.extend_from_slice(&u32::try_from(payload.len()).expect("at most BATCH_BYTES_MAX").to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(&checked).to_le_bytes());
    out.extend_from_slice(&checked);
    out
}

/// The log, open for appending. It is locked as long as it is open, beside the lock file, which somebody may remove.
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    /// Bytes that are synced; the file's length except inside [`Log::append`].
    pub(crate) len: u64,
    pub(crate) sequence: u64,
    pub(crate) generation: u64,
}

impl Log {
    pub(crate) fn open(path: &Path, generation: u64, sequence: u64, len: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Self::locked(path, file, Place { generation, sequence, len })
    }

    /// An open file that is, or will be, the log at `path`; locked from here on.
    pub(crate) fn locked(path: &Path, file: File, place: Place) -> io::Result<Self> {
        if !files::wait_for(|| file.try_lock())? {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process writes it"));
        }
        let Place { generation, sequence, len } = place;
        Ok(Self { path: path.to_owned(), file, len, sequence, generation })
    }

    /// Whether the file at the path of the log is still this one, with the length that it was left with.
    pub(crate) fn is_ours(&self) -> io::Result<bool> {
        let there = match std::fs::metadata(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            there => there?,
        };
        Ok(there.len() == self.len && files::same(&there, &self.file.metadata()?))
    }

    /// Appends one frame and syncs it. After an error the caller must call [`Log::rewind`] or stop writing.
    pub(crate) fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        if self.sequence == SEQUENCE_MAX {
            return Err(io::Error::other("the log has its last commit: compact the store"));
        }
        let bytes = frame_bytes(self.sequence + 1, payload);
        failpoints::hit(failpoints::APPEND_BEFORE)?;
        self.file.seek(SeekFrom::Start(self.len))?;
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.file.write_all(first)?;
        failpoints::hit(failpoints::APPEND_HALF)?;
        self.file.write_all(second)?;
        failpoints::hit(failpoints::APPEND_AFTER)?;
        self.file.sync_data()?;
        self.len += bytes.len() as u64;
        self.sequence += 1;
        Ok(())
    }

    /// Cuts off what a failed append left.
    pub(crate) fn rewind(&mut self) -> io::Result<()> {
        self.file.set_len(self.len)?;
        self.file.sync_all()
    }
}

/// Writes a whole new log beside `path` and puts it in place: old or new, never a mixture. Returns its length and last sequence.
pub(crate) fn replace(
    path: &Path,
    generation: u64,
    payloads: impl Iterator<Item = io::Result<Vec<u8>>>,
) -> io::Result<(u64, u64)> {
    failpoints::hit(failpoints::COMPACT_TEMP)?;
    let mut len = HEADER_BYTES as u64;
    let mut sequence = 0;
    let fill = |file| {
        let mut out = io::BufWriter::new(file);
        out.write_all(&header_bytes(generation))?;
        for payload in payloads {
            sequence += 1;
            let bytes = frame_bytes(sequence, &payload?);
            out.write_all(&bytes)?;
            len += bytes.len() as u64;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)
    };
    files::replace(&path.with_extension("tmp"), path, fill, failpoints::COMPACT_RENAME)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))?;
    Ok((len, sequence))
}

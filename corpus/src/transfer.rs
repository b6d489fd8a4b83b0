//! Export, import, backup.
//!
//! An export is JSON lines: a header, every record in key order, every bundle by hash, and a last line with the
//! count and the BLAKE3 of all before it. The same content gives the same bytes. A backup is a copy of the log
//! and the bundles that opens as a store. An import is checked to its end, written beside its place and then renamed, so a
//! store is imported whole or not at all.

use crate::bundle;
use crate::check::check_record;
use crate::error::StoreError;
use crate::files::{self, BUNDLES, FORMAT_FILE, LOG};
use crate::hash::Hash;
use crate::log::{BATCH_BYTES_MAX, FORMAT, LOG_BYTES_MAX};
use crate::op::Op;
use crate::pairs::Options;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Longest line of an export: a bundle of escaped bytes.
const LINE_BYTES_MAX: u64 = 6 * bundle::BYTES_MAX as u64 + 1024;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum BundleLine {
    MoireExport(u32),
    Record { key: String, value: Bytes },
    Bundle(Bytes),
    End { lines: u64, blake3: Hash },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Bytes {
    Text(String),
    Hex(String),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| (b as char).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pairs = text.as_bytes().chunks_exact(2);
    let even = pairs.remainder().is_empty();
    pairs.map(|p| Some(digit(p[0])? << 4 | digit(p[1])?)).collect::<Option<_>>().filter(|_| even)
}

impl Bytes {
    fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|e| Self::Hex(hex(e.as_bytes())), Self::Text)
    }
    fn bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.into_bytes()),
            Self::Hex(text) => unhex(&text),
        }
    }
}

fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { what, source }
}

struct BundleWriter {
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    lines: u64,
}

impl BundleWriter {
    fn line(&mut self, line: &BundleLine) -> Result<(), StoreError> {
        let mut text = serde_json::to_vec(line).map_err(|e| StoreError::Invalid(e.to_string()))?;
        text.push(b'\n');
        self.hasher.update(&text);
        self.lines += 1;
        self.out.write_all(&text).map_err(io_error("writing the export"))
    }
}

/// Writes everything to one file; it is complete or absent.
pub fn export(store: &Store, out: &Path) -> Result<(), StoreError> {
    let temp = out.with_extension("tmp");
    let written = export_to(store, &temp).and_then(|()| {
        fs::rename(&temp, out).map_err(io_error("renaming the export"))?;
        files::sync_dir(folder(out)).map_err(io_error("renaming the export"))
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&temp);
    })
}

fn export_to(store: &Store, path: &Path) -> Result<(), StoreError> {
    let file = File::create(path).map_err(io_error("creating the export"))?;
    let mut writer = BundleWriter { out: BufWriter::new(file), hasher: blake3::Hasher::new(), lines: 0 };
    writer.line(&BundleLine::MoireExport(FORMAT))?;
    for pair in store.pairs().scan(b"") {
        let (key, value) = pair?;
        writer.line(&BundleLine::Record { key: hex(&key), value: Bytes::of(value) })?;
    }
    for (hash, _) in files::bundles(store.dir()).map_err(io_error("listing bundles"))? {
        if let Some(bytes) = store.bundle(&hash)? {
            writer.line(&BundleLine::Bundle(Bytes::of(bytes)))?;
        }
    }
    let blake3 = Hash(*writer.hasher.finalize().as_bytes());
    writer.line(&BundleLine::End { lines: writer.lines, blake3 })?;
    let file = writer.out.into_inner().map_err(|e| io_error("writing the export")(e.into_error()))?;
    file.sync_all().map_err(io_error("syncing the export"))
}

/// Copies the store into the new directory `out`, which then opens as a store.
pub fn backup(store: &Store, out: &Path) -> Result<(), StoreError> {
    let what = "writing the backup";
    if out.join(LOG).exists() || out.join(FORMAT_FILE).exists() {
        return Err(StoreError::Invalid(format!("{} already holds a store", out.display())));
    }
    fs::create_dir_all(out.join(BUNDLES)).map_err(io_error(what))?;
    for (hash, path) in files::bundles(store.dir()).map_err(io_error("listing bundles"))? {
        let bytes = match files::read_bounded(&path, bundle::BYTES_MAX as u64) {
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => continue,
            read => read.map_err(io_error("reading a bundle"))?,
        };
        if Hash::of(&bytes) == hash {
            files::put_bundle(out, &bytes).map_err(io_error(what))?;
        }
    }
    store.pairs().copy_losses(out).map_err(io_error(what))?;
    let log = store.dir().join(LOG);
    let bytes = files::read_bounded(&log, LOG_BYTES_MAX).map_err(io_error("reading the log"))?;
    files::write_atomically(&out.join(LOG), &bytes).map_err(io_error(what))?;
    let format = format!("moire-store {FORMAT}\n");
    files::write_atomically(&out.join(FORMAT_FILE), format.as_bytes()).map_err(io_error(what))
}

/// The folder a path is in.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn malformed(number: u64, why: impl std::fmt::Display) -> StoreError {
    StoreError::Invalid(format!("export line {number}: {why}"))
}

/// The export in a file.
fn open(path: &Path) -> Result<BufReader<File>, StoreError> {
    File::open(path).map(BufReader::new).map_err(io_error("opening the export"))
}

/// Checks the whole export: header, every line, count and hash at the end.
fn check(
    mut reader: impl BufRead,
    mut each: impl FnMut(u64, BundleLine) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut hasher = blake3::Hasher::new();
    for number in 1.. {
        let mut text = Vec::new();
        let mut line = (&mut reader).take(LINE_BYTES_MAX);
        line.read_until(b'\n', &mut text).map_err(io_error("reading the export"))?;
        if text.last() != Some(&b'\n') {
            return Err(malformed(number, "the file is cut off, or the line is too long"));
        }
        let line: BundleLine = serde_json::from_slice(&text).map_err(|e| malformed(number, e))?;
        match line {
            BundleLine::MoireExport(FORMAT) if number == 1 => {}
            BundleLine::MoireExport(found) if number == 1 => {
                return Err(malformed(
                    1,
                    format!(
                        "format {found}, this version knows {FORMAT}: use the moire that wrote it or a later one"
                    ),
                ));
            }
            _ if number == 1 => return Err(malformed(1, "expected the header of an export")),
            BundleLine::End { lines, blake3 } => {
                let good = lines == number - 1 && blake3.0 == *hasher.finalize().as_bytes();
                return if good { Ok(()) } else { Err(malformed(number, "the checksum does not match")) };
            }
            line => each(number, line)?,
        }
        hasher.update(&text);
    }
    Ok(())
}

/// The record of a line, checked, as the operation that writes it.
fn record(number: u64, key: &str, value: Bytes) -> Result<Op, StoreError> {
    let (Some(key), Some(value)) = (unhex(key), value.bytes()) else {
        return Err(malformed(number, "not a record"));
    };
    check_record(&key, &value).map_err(|e| malformed(number, e))?;
    Op::new(key, Some(value)).map_err(|e| malformed(number, e))
}

/// The bundle of a line, checked.
fn content(number: u64, content: Bytes) -> Result<Vec<u8>, StoreError> {
    let bytes = content.bytes().filter(|b| b.len() <= bundle::BYTES_MAX);
    bytes.ok_or_else(|| malformed(number, "not a bundle, or too large"))
}

/// Checks an export as an import would: every record is readable, comes once and in key order. Writes nothing.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn check_export(export: impl BufRead) -> Result<(), StoreError> {
    let mut last: Option<Vec<u8>> = None;
    check(export, |number, line| match line {
        BundleLine::Record { key, value } => {
            let (key, _) = record(number, &key, value)?.into_parts();
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Err(malformed(number, "the records are not in key order"));
            }
            last = Some(key);
            Ok(())
        }
        BundleLine::Bundle(bytes) => content(number, bytes).map(drop),
        _ => Err(malformed(number, "unexpected line")),
    })
}

fn write_content(file: &Path, store: &mut Store) -> Result<(), StoreError> {
    let mut ops: Vec<Op> = Vec::new();
    let mut bytes = 0;
    check(open(file)?, |number, line| match line {
        BundleLine::Record { key, value } => {
            let op = record(number, &key, value)?;
            bytes += op.key().len() + op.value().map_or(0, <[u8]>::len) + 8;
            ops.push(op);
            if bytes > BATCH_BYTES_MAX / 4 {
                bytes = 0;
                store.pairs_mut().commit(std::mem::take(&mut ops))?;
            }
            Ok(())
        }
        BundleLine::Bundle(bytes) => store.put_bundle(&content(number, bytes)?).map(drop),
        _ => Err(malformed(number, "unexpected line")),
    })?;
    store.pairs_mut().commit(ops)
}

/// Makes a new store in `dir`, which is absent or empty, from an export.
pub fn import(file: &Path, dir: &Path) -> Result<(), StoreError> {
    let what = "importing";
    if dir.exists() && fs::read_dir(dir).map_err(io_error(what))?.next().is_some() {
        return Err(StoreError::Invalid(format!("{} is not empty: import into a new store", dir.display())));
    }
    check_export(open(file)?)?;
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".importing");
    let temp = dir.with_file_name(name);
    if temp.exists() {
        let text =
            format!("{} is there from an import that was interrupted: remove it and retry", temp.display());
        return Err(StoreError::Invalid(text));
    }
    let fill = || {
        let (mut store, _) = Store::open(&temp, Options::default())
            .map_err(|e| StoreError::Invalid(format!("cannot create the store: {e}")))?;
        write_content(file, &mut store)?;
        drop(store);
        fs::rename(&temp, dir).map_err(io_error(what))?;
        files::sync_dir(folder(dir)).map_err(io_error(what))
    };
    fill().inspect_err(|_| {
        let _ = fs::remove_dir_all(&temp);
    })
}

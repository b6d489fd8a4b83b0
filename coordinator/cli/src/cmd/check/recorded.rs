//! The launches of a record that `moire record` wrote, as they are judged.

use anyhow::{Context, Result, anyhow, bail};
use moire_console::bounded;
use moire_console::input::{File, read_file};
use moire_kernel::specialise::{About, Actual};
use moire_record::{LAUNCHES, Launch, MARK, Map, NOTES, Pointer};
use moire_verdict::kernel::{Recorded, Wanted};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most launches of one record.
const LAUNCHED: usize = 1 << 14;
/// The largest parameter whose bytes are a number.
const NUMBER: u32 = 8;

/// Whether a folder is a record.
pub(super) fn is_record(path: &Path) -> bool {
    path.join(MARK).is_file()
}

/// Whether a file is a launch of a record.
pub(super) fn is_launch(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "json") && record_of(path).is_some()
}

/// The record that a launch is in.
fn record_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|f| f.ends_with(LAUNCHES))?;
    let record = folder.parent()?;
    is_record(record).then(|| record.to_owned())
}

/// The files of the launches, by name, and what the record says it has not.
pub(super) fn launches(record: &Path) -> Result<(Vec<PathBuf>, Vec<String>)> {
    let folder = record.join(LAUNCHES);
    let mut out = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        out.extend(path.extension().is_some_and(|e| e == "json").then_some(path));
        if out.len() > LAUNCHED {
            bail!("{}: more than {LAUNCHED} launches", folder.display());
        }
    }
    out.sort();
    let notes = bounded::read_to_string(record.join(NOTES)).unwrap_or_default();
    Ok((out, notes.lines().map(str::to_owned).collect()))
}

/// What is asked about a launch: its module, and how it was launched. None if the record has no text of its module.
pub(super) fn read(path: &Path) -> Result<Option<(File, Wanted)>> {
    let name = path.display();
    let text = bounded::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let launch = Launch::read(&text).map_err(|e| anyhow!("{name} is no launch: {e}"))?;
    let record = record_of(path).with_context(|| format!("{name} is in no record"))?;
    let module = Path::new(&launch.module);
    if module.components().any(|c| !matches!(c, std::path::Component::Normal(_))) {
        bail!("{name}: the module is not in the record");
    }
    if module.extension().is_none_or(|e| e != "ptx") {
        return Ok(None);
    }
    let file = read_file(&record.join(module))?;
    Ok(Some((file, wanted(&launch, path))))
}

fn wanted(launch: &Launch, path: &Path) -> Wanted {
    let Launch { grid, block, cluster, .. } = *launch;
    let entry = Some(launch.entry.clone());
    let mut out = Recorded { grid, block, cluster, file: path.display().to_string(), ..Recorded::default() };
    if launch.missing.is_some() {
        let grid = out.fits().then_some(grid);
        return Wanted { grid, block: Some(block), cluster, entry, ..Wanted::default() };
    }
    for (index, param) in (0..).zip(&launch.params) {
        let bytes = param.content().unwrap_or_default();
        let place = |p: &Pointer| ((index, p.at), (p.memory, p.offset));
        out.actual.pointers.extend(param.pointers.iter().map(place));
        if !param.pointers.is_empty() && param.size == NUMBER {
            continue;
        }
        match param.size <= NUMBER {
            true => drop(out.params.insert(index, bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))),
            false => drop(out.actual.bytes.insert(index, bytes)),
        }
    }
    out.actual.maps = maps(launch);
    out.taken = taken(launch, &out.actual);
    Wanted { entry, recorded: Some(out), ..Wanted::default() }
}

/// The tensor maps, each with the first one that is equal to it.
fn maps(launch: &Launch) -> BTreeMap<(u16, u32), About> {
    let all = || (0..).zip(&launch.params).flat_map(|(n, p)| p.maps.iter().map(move |m| ((n, m.at), m)));
    let about = |place: (u16, u32), map: &Map| {
        let same =
            |other: &Map| other.over.is_some() && (&other.encode, other.over) == (&map.encode, map.over);
        let like = all().find(|(_, other)| same(other)).map_or(place, |first| first.0);
        About { like, tensor: tensor(map) }
    };
    all().map(|(place, map)| (place, about(place, map))).collect()
}

/// The bytes that a tensor map is about.
fn tensor(map: &Map) -> Option<(u16, u64, u64)> {
    let (encode, over) = (map.encode.as_ref()?, map.over?);
    // By `CUtensorMapDataType`; packed elements count as a byte each, which is more than they have.
    let element = match encode.element {
        1 | 6 | 9 => 2,
        2 | 3 | 7 | 10..=12 => 4,
        4 | 5 | 8 => 8,
        _ => 1,
    };
    let steps = [element].into_iter().chain(encode.strides.iter().copied());
    let rows = encode.sizes.iter().zip(steps).map(|(size, step)| size.saturating_sub(1).saturating_mul(step));
    let bytes = rows.fold(element, u64::saturating_add);
    Some((over.memory, over.offset, over.offset.saturating_add(bytes)))
}

/// What the record says beside numbers, in words.
fn taken(launch: &Launch, actual: &Actual) -> Vec<String> {
    let mut memories: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for ((index, at), (memory, offset)) in &actual.pointers {
        let place = if *at == 0 { index.to_string() } else { format!("{index}+{at}") };
        memories.entry(*memory).or_default().push(format!("{place} at {offset}"));
    }
    let shared = memories.into_values().filter(|all| all.len() > 1);
    let mut out: Vec<String> = shared
        .map(|all| {
            format!("the pointers in parameters {} are into one allocation (the record)", all.join(", "))
        })
        .collect();
    let same = actual.maps.iter().filter(|(place, about)| **place != about.like);
    out.extend(same.map(|(place, about)| {
        format!("the tensor maps in parameters {} and {} are equal (the record)", about.like.0, place.0)
    }));
    if !launch.attributes.is_empty() {
        out.push(format!("the launch has the attributes {} (the record)", launch.attributes.join(", ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_record::{Encode, Param};

    fn map(offset: u64, boxes: i64) -> Param {
        let encode = Encode {
            element: 6,
            sizes: vec![64, 8],
            strides: vec![256],
            boxes: vec![boxes, 8],
            ..Encode::default()
        };
        let over = Some(Pointer { at: 0, memory: 4, offset });
        Param {
            size: 128,
            bytes: Some("00".repeat(128)),
            maps: vec![Map { at: 0, encode: Some(encode), over }],
            ..Param::default()
        }
    }

    #[test]
    fn a_launch_is_asked_about_as_it_was() {
        let pointer = |memory, offset| Param {
            size: 8,
            bytes: Some("00".repeat(8)),
            pointers: vec![Pointer { at: 0, memory, offset }],
            ..Param::default()
        };
        let number = Param { size: 4, bytes: Some("00010000".into()), ..Param::default() };
        let params = vec![pointer(0, 0), number, pointer(0, 512), map(0, 8), map(0, 16), map(0, 8)];
        let launch = Launch { grid: [2, 1, 1], block: [64, 1, 1], params, ..Launch::default() };
        let found = wanted(&launch, Path::new("r/launches/k.json")).recorded.unwrap();
        assert_eq!((found.grid, found.params), ([2, 1, 1], BTreeMap::from([(1, 256)])));
        assert_eq!(found.actual.pointers[&(2, 0)], (0, 512));
        let like: Vec<_> = found.actual.maps.values().map(|m| m.like.0).collect();
        assert_eq!(like, [3, 4, 3]);
        assert_eq!(found.actual.maps[&(3, 0)].tensor, Some((4, 0, 7 * 256 + 63 * 2 + 2)));
        assert_eq!(found.taken.len(), 2, "{:?}", found.taken);
    }
}

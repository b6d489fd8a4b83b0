//! Lays out the memory of the residual program: bytes that all accesses treat alike become one place.
//!
//! Footprints of warps are scattered (swizzled tiles, one word for each lane). Two bytes that the same accesses touch are
//! in the same races. All such bytes form a *class* and are laid out next to each other. Classes are ordered so that the
//! bytes of a copy or a product are consecutive again. An ordinary access of data touches one byte for the whole class.
//! Barriers, and words that decide something, keep their place and size. All CTAs of the launch have one layout.
//!
//! Ordinary accesses of places that only one warp touches, or that no warp writes, are dropped, because no race can involve
//! them. So the program has a few events for each tile instead of one for each lane.

use crate::Refusal;
use crate::specialise::item::{Item, Placed};
use crate::specialise::residual::Names;
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::*;
use moire_program::limits::{OBJECT_BYTES, OBJECTS};
use std::cell::Cell;
use std::collections::BTreeMap;

/// A run of bytes, and its place in the residual program.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    object: ObjectId,
    at: u32,
    bytes: u32,
    /// Whether several warps or an asynchronous access touch it, and one of them writes.
    contested: bool,
}

/// The layout of the memory of the program.
pub(crate) struct Layout {
    pieces: BTreeMap<Mem, Vec<Piece>>,
    /// An object with places that no other access touches, and its next free byte.
    aside: Option<(ObjectId, Cell<u32>)>,
    pub(crate) objects: Vec<Object>,
}

/// All touches of an item.
fn touches(warp: usize, item: &Item) -> impl Iterator<Item = Used<'_>> {
    let (many, one, writes) = match item {
        Item::Op { touches, .. } => (touches.as_slice(), None, true),
        Item::Data { touch, write, .. } => (&[][..], Some(touch), *write),
        _ => (&[][..], None, false),
    };
    many.iter().chain(one).map(move |touch| Used { touch, warp, writes: writes && touch.kind.may_write() })
}

/// A copy or a product whose bytes stay together if that can be: whether it is a product, size and first byte. A product can be
/// written as several, so copies come first.
type Whole = (bool, std::cmp::Reverse<u64>, u64);

/// A run of bytes between two cuts, with the accesses that touch it.
struct Run {
    start: u64,
    end: u64,
    /// The sum of the names of all accesses to it. Bytes with the same accesses have equal sums.
    name: u128,
    /// Copies and products that touch it, copies first and larger ones first.
    group: Vec<Whole>,
    fixed: bool,
    /// Whether a `cp.async` touches it; such a copy has at least four bytes.
    small: bool,
    contested: bool,
}

/// A touch, its warp, and whether it may write.
struct Used<'t> {
    touch: &'t Touch,
    warp: usize,
    writes: bool,
}

/// A number for an access, mixed so well that sums of such numbers differ for different sets of accesses.
fn mixed(n: u64) -> u128 {
    let mut z = u128::from(n).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    z = (z ^ z >> 63).wrapping_mul(0xbf58_476d_1ce4_e5b9_94d0_49bb_1331_11eb);
    z ^ z >> 59
}

impl Layout {
    pub(crate) fn new(names: &Names<'_>, traces: &[&[Placed]]) -> Result<Layout, Refusal> {
        let mut by_domain: BTreeMap<Mem, Vec<Used<'_>>> = BTreeMap::new();
        for (warp, trace) in traces.iter().enumerate() {
            for used in trace.iter().flat_map(|p| touches(warp, &p.item)) {
                by_domain.entry(used.touch.mem.domain()).or_default().push(used);
            }
        }
        let mut layout = Layout { pieces: BTreeMap::new(), aside: None, objects: Vec::new() };
        for (mem, all) in by_domain {
            let (runs, fixed) = (runs(&all), fixed(&all));
            layout.place(mem, runs, &fixed, names)?;
        }
        Ok(layout)
    }

    fn object(&mut self, name: String, mem: Mem, bytes: u32) -> Result<ObjectId, Refusal> {
        if bytes > OBJECT_BYTES {
            let text =
                format!("{bytes} bytes of memory that accesses distinguish are more than {OBJECT_BYTES}");
            return Err(Refusal::Bounded(text));
        }
        let space = if mem.cta().is_some() { Space::SharedCta } else { Space::Global };
        let mut unique = name.clone();
        for n in 2.. {
            if !self.objects.iter().any(|o| o.name == unique) {
                break;
            }
            unique = format!("{name}_{n}");
        }
        let id = self.next()?;
        self.objects.push(Object { name: unique, space, bytes, init: Content::default() });
        Ok(id)
    }

    /// The number of the next object.
    fn next(&self) -> Result<ObjectId, Refusal> {
        if self.objects.len() >= OBJECTS {
            return Err(Refusal::Bounded("too many memory objects".into()));
        }
        Ok(ObjectId::at(self.objects.len()))
    }

    /// Gives each word and barrier outside tiles its own object. Lays out all other bytes by class.
    fn place(
        &mut self,
        mem: Mem,
        runs: Vec<Run>,
        fixed: &[(u64, u64)],
        names: &Names<'_>,
    ) -> Result<(), Refusal> {
        let mut pieces: Vec<Piece> = Vec::new();
        let inside = |r: &Run, f: &(u64, u64)| r.fixed && f.0 <= r.start && r.end <= f.1;
        // A word inside a tile stays in the tile.
        let tiled = |f: &&(u64, u64)| runs.iter().any(|r| inside(r, f) && !r.group.is_empty());
        for (start, end) in fixed.iter().filter(|f| !tiled(f)) {
            let name = match mem {
                Mem::Shared(_) | Mem::Copy(..) => {
                    let (name, from) = names.shared(mem, short(*start)?);
                    let offset = short(*start)? - from;
                    if offset == 0 { name } else { format!("{name}_{offset}") }
                }
                Mem::Param(n) => format!("{}_{start}", names.param(n)),
                Mem::Variable(n) => format!("global{n}_{start}"),
                Mem::Choice(warp, n) => format!("choice{warp}_{n}"),
                _ => format!("global_{start}"),
            };
            let object = self.object(name, mem, short(end - start)?)?;
            for run in runs.iter().filter(|r| r.fixed && *start <= r.start && r.end <= *end) {
                let (at, bytes) = (short(run.start - start)?, short(run.end - run.start)?);
                let contested = run.contested;
                pieces.push(Piece { start: run.start, end: run.end, object, at, bytes, contested });
            }
        }
        let mut rest: Vec<&Run> =
            runs.iter().filter(|r| !pieces.iter().any(|p| p.start <= r.start && r.end <= p.end)).collect();
        rest.sort_by(|a, b| {
            let order = a.group.cmp(&b.group).then(b.fixed.cmp(&a.fixed));
            order
                .then(if a.fixed { a.start.cmp(&b.start) } else { a.name.cmp(&b.name) })
                .then(a.start.cmp(&b.start))
        });
        if !rest.is_empty() {
            let name = match mem {
                Mem::Shared(_) | Mem::Copy(..) => "tiles".to_owned(),
                Mem::Lanes(_) => "lanes".to_owned(),
                Mem::Mark(_, n) => format!("marks{n}"),
                Mem::Param(n) | Mem::Along(n, ..) => names.param(n),
                Mem::Variable(n) => format!("global{n}"),
                Mem::Absolute => "global".to_owned(),
                Mem::Boxes(n) => format!("tensor{n}"),
                Mem::Choice(warp, n) => format!("choice{warp}_{n}"),
            };
            self.lay_out(mem, name, &rest, &mut pieces)?;
        }
        pieces.sort_by_key(|p| p.start);
        self.pieces.insert(mem, pieces);
        Ok(())
    }

    /// Makes a piece of each class: all its bytes if it is fixed or a copy or a product touches it, four bytes if a
    /// `cp.async` does, otherwise one byte.
    fn lay_out(
        &mut self,
        mem: Mem,
        name: String,
        rest: &[&Run],
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Refusal> {
        let object = self.next()?;
        let mut at: u64 = 0;
        for class in rest.chunk_by(|a, b| a.name == b.name && !a.fixed && !b.fixed) {
            let asynchronous = !class[0].group.is_empty() || class[0].fixed;
            let small = !asynchronous && class[0].small;
            let bytes = match small {
                true => 4,
                false if asynchronous => class.iter().map(|r| r.end - r.start).sum(),
                false => 1,
            };
            at = if small { at.next_multiple_of(4) } else { at };
            let (from, length) = (short(at)?, short(bytes)?);
            pieces.extend(class.iter().map(|r| Piece {
                start: r.start,
                end: r.end,
                object,
                at: from,
                bytes: length,
                contested: r.contested,
            }));
            at += bytes;
        }
        let made = self.object(name, mem, short(at)?)?;
        debug_assert_eq!(made, object, "objects are made in order");
        Ok(())
    }

    /// Makes places that no other access touches, four bytes each.
    pub(crate) fn make_room(&mut self, places: usize) -> Result<(), Refusal> {
        if places > 0 {
            let bytes = short(places as u64 * 4)?;
            let object = self.object("aside".to_owned(), Mem::Shared(0), bytes)?;
            self.aside = Some((object, Cell::new(0)));
        }
        Ok(())
    }

    /// The next place that no other access touches.
    pub(crate) fn aside(&self) -> Result<(ObjectId, u32, u32), Refusal> {
        let Some((object, next)) = &self.aside else {
            return Err(Refusal::Bounded("too many copies that only read".into()));
        };
        Ok((*object, next.replace(next.get().saturating_add(4)), 4))
    }

    /// The places of a touch: object, first byte, length. Neighbouring places of one object are joined.
    pub(crate) fn find(&self, touch: &Touch) -> Vec<(ObjectId, u32, u32)> {
        let mut out: Vec<(ObjectId, u32, u32)> = self.classes_of(touch);
        out.sort_unstable();
        let mut joined: Vec<(ObjectId, u32, u32)> = Vec::new();
        for (object, at, bytes) in out {
            match joined.last_mut() {
                Some(last) if last.0 == object && last.1 + last.2 == at => last.2 += bytes,
                _ => joined.push((object, at, bytes)),
            }
        }
        joined
    }

    /// The places of a touch that may be in a race.
    pub(crate) fn contested(&self, touch: &Touch) -> Vec<(ObjectId, u32, u32)> {
        self.classes(touch, true)
    }

    fn classes_of(&self, touch: &Touch) -> Vec<(ObjectId, u32, u32)> {
        self.classes(touch, false)
    }

    pub(crate) fn classes(&self, touch: &Touch, contested: bool) -> Vec<(ObjectId, u32, u32)> {
        let Some(pieces) = self.pieces.get(&touch.mem.domain()) else { return Vec::new() };
        let mut out = Vec::new();
        for (start, end) in &touch.ranges {
            let first = pieces.partition_point(|p| p.end <= *start);
            let inside = pieces[first..].iter().take_while(|p| p.start < *end);
            out.extend(inside.filter(|p| !contested || p.contested).map(|p| (p.object, p.at, p.bytes)));
        }
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// Narrows a number of bytes.
fn short(n: u64) -> Result<u32, Refusal> {
    u32::try_from(n).map_err(|_| {
        Refusal::Bounded(format!(
            "{n} bytes of memory that accesses distinguish are more than {OBJECT_BYTES}"
        ))
    })
}

/// The runs of barriers and words, each starting at a multiple of eight bytes. Overlapping runs are joined.
fn fixed(all: &[Used<'_>]) -> Vec<(u64, u64)> {
    let kept = all.iter().map(|u| u.touch).filter(|t| t.kind.fixed());
    let mut found: Vec<(u64, u64)> = kept.flat_map(|t| t.ranges.iter().map(|r| (r.0 & !7, r.1))).collect();
    found.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (start, end) in found {
        match out.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

/// The accesses that touch the current byte while memory is swept from low to high addresses.
#[derive(Default)]
struct Here {
    name: u128,
    touched: i64,
    fixed: i64,
    copies: i64,
    small: i64,
    writes: i64,
    warps: BTreeMap<usize, i64>,
}

impl Here {
    fn pass(&mut self, used: &Used<'_>, n: u64, sign: i64) {
        let one = |yes: bool| if yes { sign } else { 0 };
        let kind = used.touch.kind;
        let name = mixed(n);
        self.name = if sign > 0 { self.name.wrapping_add(name) } else { self.name.wrapping_sub(name) };
        self.touched += sign;
        self.fixed += one(kind.fixed());
        self.copies += one(kind.asynchronous());
        self.small += one(matches!(kind, Kind::Small { .. }));
        self.writes += one(used.writes);
        let count = self.warps.entry(used.warp).or_default();
        *count += sign;
        if *count == 0 {
            self.warps.remove(&used.warp);
        }
    }
}

/// Cuts memory at the start and the end of every access.
fn runs(all: &[Used<'_>]) -> Vec<Run> {
    let mut ends: Vec<(u64, i64, usize)> = Vec::new();
    for (n, used) in all.iter().enumerate() {
        for (start, end) in used.touch.ranges.iter().filter(|r| r.0 < r.1) {
            ends.extend([(*start, 1, n), (*end, -1, n)]);
        }
    }
    ends.sort_unstable();
    let mut here = Here::default();
    let mut out = Vec::new();
    let mut copies: BTreeMap<Whole, i64> = BTreeMap::new();
    for (i, (at, sign, n)) in ends.iter().enumerate() {
        let used = &all[*n];
        here.pass(used, *n as u64, *sign);
        if used.touch.kind.together() {
            let product = used.touch.kind == Kind::Matrix;
            let first = used.touch.ranges.first().map_or(0, |r| r.0);
            let key = (product, std::cmp::Reverse(used.touch.bytes()), first);
            let count = copies.entry(key).or_default();
            *count += sign;
            if *count == 0 {
                copies.remove(&key);
            }
        }
        let Some((end, ..)) = ends.get(i + 1).filter(|e| e.0 > *at && here.touched > 0) else { continue };
        let contested = here.writes > 0 && (here.copies > 0 || here.warps.len() > 1);
        let group = copies.keys().copied().collect();
        let (name, fixed, small) = (here.name, here.fixed > 0, here.small > 0);
        out.push(Run { start: *at, end: *end, name, group, fixed, small, contested });
    }
    out
}

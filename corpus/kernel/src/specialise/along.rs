//! Accesses whose addresses grow with the rounds of a loop, in one memory that is the same in each round.
//!
//! In a launch of any size (`periods`) a warp accesses `offset + turn * t + size * u` behind a parameter, for each `t < u` inside
//! the loop, and for no `t` outside of it. The residual program has each access once, at one place. What is right is any map
//! from addresses to places, the same for all accesses: two that touch one byte touch one place, so each race of the kernel is
//! one of the program. The map may put different bytes into one place; then a race may be found that is none, and there is no
//! proof. It is made in two steps, and both hold for each `u`:
//!
//! 1. *Parts.* Accesses that grow alike have a least and a last byte that are linear in `u`. Those whose bytes are apart for every
//!    `u` are in different parts of the memory.
//! 2. *Remainders.* In a part all growth is a multiple of `grain`, but for one multiple of `u` that all of them share. So the
//!    remainder of an address by `grain` is the same in each round, and tells addresses apart that may not be the same byte.
//!    What grows with `u` alone, and alike everywhere, keeps its address.
//!
//! A memory that nothing writes has no races, and keeps the offsets. A word that decides something, a load on a promise, and an
//! access that is followed by its address are refused in a memory with such accesses that something writes.

use super::actual::Actual;
use super::every::{touches, touches_mut};
use super::item::Trace;
use super::known::line::{Cone, Line};
use super::known::value::Lanes;
use super::residual::apart::{Same, uses};
use super::step::place::SOMEWHERE;
use super::touch::{Mem, Spread, Touch};
use crate::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// Places of parts start at multiples of it.
const ALIGNED: i128 = 1 << 12;

/// A number that is linear in `u`: what it is for 0, and the growth.
type Linear = (i128, i128);

/// Accesses that grow alike: their growth, and the bytes of the first round.
#[derive(Clone, Copy, Debug)]
struct Alike {
    line: Line,
    cone: Cone,
    start: i128,
    end: i128,
}

impl Alike {
    /// The least byte, and the end, in all rounds.
    fn reach(&self) -> (Linear, Linear) {
        let (turn, size) = (i128::from(self.line.turn), i128::from(self.line.size));
        let last = |at: i128| (at - turn, size + turn);
        match self.cone {
            Cone::Outside => ((self.start, size), (self.end, size)),
            Cone::Inside if turn < 0 => (last(self.start), (self.end, size)),
            Cone::Inside => ((self.start, size), last(self.end)),
        }
    }

    /// Whether no byte of one is one of the other, for any `u` for which both are there.
    fn is_apart(&self, other: &Alike) -> bool {
        let first = i128::from([self.cone, other.cone].contains(&Cone::Inside));
        let below = |a: Linear, b: Linear| a.0 + a.1 * first <= b.0 + b.1 * first && a.1 <= b.1;
        let (own, theirs) = (self.reach(), other.reach());
        below(own.1, theirs.0) || below(theirs.1, own.0)
    }
}

/// Accesses that may meet.
struct Part {
    /// What the growth is a multiple of; 0 if there is none.
    grain: i128,
    /// The offset from which remainders are taken, and where it is put.
    from: i128,
    to: i128,
}

impl Part {
    fn new(members: &[Alike], to: i128) -> Part {
        let all = members.iter();
        let size = members.first().map_or(0, |a| i128::from(a.line.size));
        let grain = all.clone().fold(0, |g, a| {
            let own = common(g, i128::from(a.line.turn));
            common(own, i128::from(a.line.size) - size)
        });
        let from = all.map(|a| a.start).min().unwrap_or(0).div_euclid(16) * 16;
        Part { grain, from, to }
    }

    /// How many places it has.
    fn bytes(&self, members: &[Alike]) -> i128 {
        let end = members.iter().map(|a| a.end).max().unwrap_or(0);
        if self.grain == 0 { end - self.from } else { self.grain }
    }

    /// Where a run of bytes is put: one or two runs.
    fn put(&self, start: i128, end: i128) -> Vec<(i128, i128)> {
        if self.grain == 0 {
            return vec![(start - self.from + self.to, end - self.from + self.to)];
        }
        if end - start >= self.grain {
            return vec![(self.to, self.to + self.grain)];
        }
        let first = (start - self.from).rem_euclid(self.grain);
        let over = (first + end - start - self.grain).max(0);
        let all = [(first, first + end - start - over), (0, over)];
        all.into_iter().filter(|r| r.0 < r.1).map(|r| (r.0 + self.to, r.1 + self.to)).collect()
    }
}

/// The greatest common divisor.
fn common(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { common(b, a % b) }
}

/// Puts what grows into the memories of parameters.
pub(super) fn fold(traces: &mut [Trace], actual: &Actual) -> Result<(), Refusal> {
    let all = |traces: &[Trace]| -> BTreeSet<Mem> {
        traces.iter().flat_map(|t| &t.items).flat_map(|p| touches(&p.item)).map(|t| t.mem).collect()
    };
    let param = |mem: &Mem| if let Mem::Along(n, ..) = mem { Some(*n) } else { None };
    let grown: BTreeSet<u16> = all(traces).iter().filter_map(param).collect();
    if !grown.is_empty() && !actual.maps.is_empty() {
        let what = "addresses that grow, beside tensors whose bytes are known".to_owned();
        return Err(Refusal::Abstained { what, line: 0 });
    }
    grown.into_iter().try_for_each(|n| memory(n, traces))
}

/// The growth of accesses to the memory of a parameter.
fn growth(n: u16, mem: Mem) -> Option<(Line, Cone)> {
    match mem {
        Mem::Param(m) if n == m => Some((Line::default(), Cone::Outside)),
        Mem::Along(m, line, cone) if n == m => Some((line, cone)),
        _ => None,
    }
}

/// Puts all that touches the memory of a parameter into it.
fn memory(n: u16, traces: &mut [Trace]) -> Result<(), Refusal> {
    let mut alike: BTreeMap<(Line, Cone), Alike> = BTreeMap::new();
    let (mut written, mut kept, mut somewhere) = (None, None, false);
    for placed in traces.iter().flat_map(|t| &t.items) {
        for (touch, writes) in uses(&placed.item) {
            let Some((line, cone)) = growth(n, touch.mem) else { continue };
            written = written.or(writes.then_some(placed.line));
            kept = kept.or(touch.kind.fixed().then_some(placed.line));
            somewhere |= touch.ranges.iter().any(|r| r.0 == SOMEWHERE);
            for (start, end) in touch.ranges.iter().map(run) {
                let one = alike.entry((line, cone)).or_insert(Alike { line, cone, start, end });
                (one.start, one.end) = (one.start.min(start), one.end.max(end));
            }
        }
    }
    if let Some(line) = written.filter(|_| kept.is_some() || followed(n, traces)) {
        let what = "a memory with words that decide something, or loads on a promise, and stores or loads at places that grow";
        return Err(Refusal::Abstained { what: what.into(), line: kept.unwrap_or(line) });
    }
    let parts = if written.is_none() || somewhere { BTreeMap::new() } else { parts(&alike) };
    for placed in traces.iter_mut().flat_map(|t| &mut t.items) {
        let line = placed.line;
        for touch in touches_mut(&mut placed.item) {
            let Some(of) = growth(n, touch.mem) else { continue };
            let grows = touch.mem != Mem::Param(n);
            touch.mem = Mem::Param(n);
            match parts.get(&of) {
                Some(part) => put(touch, part, line)?,
                None if somewhere && grows => {
                    (touch.ranges, touch.by) = (vec![(SOMEWHERE, SOMEWHERE + touch.bytes())], Vec::new());
                }
                None => {}
            }
        }
    }
    Ok(())
}

/// Whether something in the memory of a parameter is followed by its address.
fn followed(n: u16, traces: &[Trace]) -> bool {
    traces.iter().any(|t| {
        let all = t.asked.iter().chain(&t.opaque).map(|a| a.0);
        let all = all.chain(t.numbers.iter().map(|a| a.0.0)).chain(t.promised.iter().map(|a| a.0));
        let mut all = all.chain(t.relaxed.iter().copied()).chain(t.ticketed.iter().map(|a| a.0));
        all.any(|mem| growth(n, mem).is_some())
    })
}

/// A run of bytes as numbers with a sign.
fn run((start, end): &(u64, u64)) -> (i128, i128) {
    let from = i128::from(start.cast_signed());
    (from, from + i128::from(end.wrapping_sub(*start)))
}

/// The part of all that grows alike.
fn parts(all: &BTreeMap<(Line, Cone), Alike>) -> BTreeMap<(Line, Cone), Part> {
    let each: Vec<Alike> = all.values().copied().collect();
    let mut same = Same::new(each.len());
    for (n, one) in each.iter().enumerate() {
        each.iter().take(n).enumerate().filter(|o| !one.is_apart(o.1)).for_each(|o| same.join(n, o.0));
    }
    let firsts: Vec<usize> = (0..each.len()).map(|n| same.first(n)).collect();
    let (mut out, mut next) = (BTreeMap::new(), 0);
    for first in firsts.iter().copied().collect::<BTreeSet<_>>() {
        let inside = || each.iter().zip(&firsts).filter(|e| *e.1 == first).map(|e| *e.0);
        let members: Vec<Alike> = inside().collect();
        let part = Part::new(&members, next);
        next += (part.bytes(&members) + ALIGNED).div_euclid(ALIGNED) * ALIGNED;
        out.extend(inside().map(|a| ((a.line, a.cone), Part { ..part })));
    }
    out
}

/// Puts a touch where its part is.
fn put(touch: &mut Touch, part: &Part, line: u32) -> Result<(), Refusal> {
    let whole = touch.kind.together();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (start, end) in touch.ranges.iter().map(run) {
        let runs = part.put(start, end);
        let kept = matches!(runs.as_slice(), [one] if one.1 - one.0 == end - start);
        for (from, to) in runs {
            let (Ok(from), Ok(to)) = (u64::try_from(from), u64::try_from(to)) else {
                return Err(Refusal::Bounded("addresses that grow by too much".to_owned()));
            };
            ranges.push((from, to));
        }
        if whole && !kept {
            let what = "a copy of more bytes than its address grows by";
            return Err(Refusal::Abstained { what: what.into(), line });
        }
    }
    let by: Option<Vec<Spread>> = touch.by.iter().map(|one| spread(one, part)).collect();
    (touch.ranges, touch.by) = (ranges, by.unwrap_or_default());
    touch.join();
    Ok(())
}

/// Which lanes touch what there, if the bytes of each lane stay together.
fn spread(one: &Spread, part: &Part) -> Option<Spread> {
    let mut at = [None; 32];
    for (lane, at) in at.iter_mut().enumerate().filter(|l| one.mask >> l.0 & 1 == 1) {
        let (start, end) = run(&(one.at.get(lane), one.at.get(lane).wrapping_add(one.bytes)));
        match part.put(start, end)[..] {
            [(from, to)] if to - from == end - start => *at = Some(u64::try_from(from).ok()?),
            _ => return None,
        }
    }
    Some(Spread { at: Lanes::from_fn(|lane| at[lane].unwrap_or(0)), ..*one })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the accesses that grow alike, for a number of periods.
    fn bytes(of: &Alike, u: i128) -> Vec<(i128, i128)> {
        let rounds = if of.cone == Cone::Inside { 0..u } else { 0..1 };
        let real = |t: i128, at: i128| at + i128::from(of.line.turn) * t + i128::from(of.line.size) * u;
        rounds.flat_map(|t| (of.start..of.end).map(move |at| (real(t, at), at))).collect()
    }

    #[test]
    fn a_byte_has_one_place() {
        let lines = [(0, 0), (8, 0), (12, 0), (8, 4), (-8, 8), (0, 4), (0, 12), (4, -4)];
        let each: Vec<Alike> = lines
            .into_iter()
            .flat_map(|(turn, size)| [0, 6, 40].map(|start| (Line { turn, size }, start)))
            .map(|(line, start)| {
                let cone = if line.turn == 0 { Cone::Outside } else { Cone::Inside };
                Alike { line, cone, start, end: start + 6 }
            })
            .collect();
        for (n, one) in each.iter().enumerate() {
            for other in &each[n..] {
                let mut all: BTreeMap<(Line, Cone), Alike> = BTreeMap::new();
                for a in [one, other] {
                    let both = all.entry((a.line, a.cone)).or_insert(*a);
                    (both.start, both.end) = (both.start.min(a.start), both.end.max(a.end));
                }
                let places = parts(&all);
                let place = |a: &Alike, at: i128| places[&(a.line, a.cone)].put(at, at + 1);
                for u in 0..5 {
                    for ((a, x), (b, y)) in
                        bytes(one, u).iter().flat_map(|a| bytes(other, u).into_iter().map(move |b| (*a, b)))
                    {
                        let same = place(one, x) == place(other, y);
                        assert!(a != b || same, "{one:?} {other:?} {u}: byte {a} at {x} and {y}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_that_grow_apart_are_in_parts_of_their_own() {
        let row = |n: i64, width: i128| Alike {
            line: Line { turn: 0, size: 16 * n },
            cone: Cone::Outside,
            start: 128 * i128::from(n),
            end: 128 * i128::from(n) + width,
        };
        assert!(row(0, 128).is_apart(&row(1, 128)) && row(2, 128).is_apart(&row(1, 128)));
        assert!(!row(0, 129).is_apart(&row(1, 128)));
    }
}

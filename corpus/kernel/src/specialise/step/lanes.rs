//! Evaluates exchanges between the lanes of a warp: shuffles, votes, matches, reductions.

use super::Step;
use crate::ptx::Plain;
use crate::specialise::known::alu::{self, Int};
use crate::specialise::known::value::{Lanes, Val, lanes};

pub(super) fn shuffled(step: &Step<'_, '_>, words: &[&str], plain: &Plain) -> Option<Vec<Val>> {
    let source = step.arg(plain.args.get(1)?);
    let Val::Known(by) = step.arg(plain.args.get(2)?) else { return None };
    let Val::Known(clamp) = step.arg(plain.args.get(3)?) else { return None };
    let mode = *words.get(2)?;
    // The lane that the value comes from, and whether it is in range: otherwise the lane keeps its own.
    let source_of = |l: usize| -> (usize, bool) {
        let (b, c) = (by.get(l), clamp.get(l));
        let (segment, bound) = (c >> 8 & 31, c & 31);
        let lane = l as u64;
        let most = (lane & segment) | (bound & !segment & 31);
        let j = match mode {
            "idx" => (lane & segment) | (b & !segment & 31),
            "bfly" => lane ^ (b & 31),
            "down" => lane + (b & 31),
            _ => lane.wrapping_sub(b & 31),
        };
        let inside = if mode == "up" { j < 32 && j >= most } else { j <= most && j < 32 };
        (usize::try_from(j).ok().filter(|_| inside).unwrap_or(l), inside)
    };
    let from = |l: usize| source_of(l).0;
    let value = match &source {
        Val::Known(s) => Val::Known(Lanes::from_fn(|l| s.get(from(l)))),
        Val::Based(b, s) => Val::Based(*b, Lanes::from_fn(|l| s.get(from(l)))),
        Val::Unknown(_) => return None,
    };
    let all = lanes(step.mask).all(|l| step.mask >> from(l) & 1 == 1);
    let inside = Lanes::from_fn(|l| u64::from(source_of(l).1));
    all.then(|| vec![value, Val::Known(inside)])
}

pub(super) fn voted(step: &Step<'_, '_>, words: &[&str], plain: &Plain) -> Option<Vec<Val>> {
    if words[0] == "activemask" {
        return Some(vec![Val::same(u64::from(step.mask))]);
    }
    let Val::Known(v) = step.arg(plain.args.get(1)?) else { return None };
    let truth = v.truth(step.mask);
    // If a named lane is not active here, it contributes a value from elsewhere, which is unknown.
    let members = step.arg(plain.args.get(2)?);
    let named = members.known().and_then(|m| m.one(step.mask))? & 0xffff_ffff;
    if words.contains(&"sync") && named & u64::from(step.warp.here.lanes) != u64::from(step.mask) {
        return None;
    }
    let value = match (words[0], words.get(2).copied()?) {
        ("vote", "all") => u64::from(truth == step.mask),
        ("vote", "any") => u64::from(truth != 0),
        ("vote", "uni") => u64::from(truth == step.mask || truth == 0),
        ("vote", "ballot") => u64::from(truth),
        ("match", _) if words.get(1) == Some(&"any") => {
            let alike = |l: usize, o: usize| if v.get(o) == v.get(l) { 1 << o } else { 0 };
            let with = |l: usize| lanes(step.mask).fold(0, |m, o| m | alike(l, o));
            return Some(vec![Val::Known(Lanes::from_fn(with))]);
        }
        ("match", _) => {
            let all = v.one(step.mask).is_some();
            let found = Val::same(if all { u64::from(step.mask) } else { 0 });
            return Some(vec![found, Val::same(u64::from(all))]);
        }
        ("redux", name) => {
            let t = Int::of(crate::ptx::type_of(words.last()?)?)?;
            let mut all = lanes(step.mask).map(|l| v.get(l));
            let first = all.next()?;
            all.try_fold(first, |a, b| alu::two(name, t, a, b))?
        }
        _ => return None,
    };
    Some(vec![Val::same(value)])
}

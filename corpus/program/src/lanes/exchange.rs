//! Values that lanes exchange: what the lanes of a part may give and get together.
//!
//! A joined thread votes with the predicate of each lane, and all get one answer. Elsewhere it gives one value, so its
//! lanes must have one. A shuffle among the lanes of one part is moves between their registers: it waits for nobody, since
//! a thread that is alone in the mask is never kept waiting. Any other exchange whose result differs by lane puts lanes
//! apart. Values that came from strong reads are no matter for this: they put lanes apart before ([`super::values`]).

use super::part::{Apart, Done, SomeLanes, State, agreed};
use super::value::{Known, Val};
use crate::ir::{Collective, Exchange, Shuffle};

/// Passes if the lanes of a part may execute an exchange together.
pub(super) fn check(part: &SomeLanes<'_>, state: &State, collective: &Collective) -> Done<()> {
    if !part.several() || matches!(collective.form, Exchange::Vote(_)) {
        return Ok(());
    }
    if sources(part, state, collective).is_some() {
        return Ok(());
    }
    let one = |n: usize| part.operand(state, collective.from[n]).one();
    let whole = one(1).is_some_and(|clamp| clamp.number >> 8 & 31 == 0);
    match collective.form {
        Exchange::MatchAny => return Err(Apart::All),
        Exchange::Shuffle(way) if way != Shuffle::Index || !whole => return Err(Apart::All),
        _ => {}
    }
    agreed(&part.operand(state, collective.from[0]))?;
    agreed(&part.operand(state, collective.src))
}

/// The lane, as a position in the part, whose value each lane gets, and whether that is the one it asked for: of a shuffle
/// in which all lanes of the mask that there are belong to the part.
pub(super) fn sources(
    part: &SomeLanes<'_>,
    state: &State,
    collective: &Collective,
) -> Option<Vec<(usize, bool)>> {
    let Exchange::Shuffle(way) = collective.form else { return None };
    let Val::Known(masks) = part.operand(state, collective.mask) else { return None };
    let own = part.lanes.iter().fold(0u128, |all, lane| all | 1 << lane);
    let inside = masks.iter().all(|m| m.base.is_none() && m.number & u128::from(part.warp()) == own);
    let (Val::Known(by), Val::Known(clamp)) =
        (part.operand(state, collective.from[0]), part.operand(state, collective.from[1]))
    else {
        return None;
    };
    let of = |n: usize| source(way, part.lanes[n].into(), number(by[n])?, number(clamp[n])?);
    let at =
        |(lane, asked): (u32, bool)| Some((part.lanes.iter().position(|l| u32::from(*l) == lane)?, asked));
    (0..part.lanes.len()).map(|n| of(n).and_then(at)).collect::<Option<_>>().filter(|_| inside)
}

fn number(known: Known) -> Option<u32> {
    u32::try_from(known.number & u128::from(u32::MAX)).ok().filter(|_| known.base.is_none())
}

/// The lane whose value a lane gets, by the pseudo code of the page of `shfl.sync` (PTX ISA 9.2, 9.7.9.6).
fn source(way: Shuffle, lane: u32, by: u32, clamp: u32) -> Option<(u32, bool)> {
    let (by, most, segment) = (by & 31, clamp & 31, clamp >> 8 & 31);
    let last = (lane & segment) | (most & !segment);
    let (from, inside) = match way {
        Shuffle::Up => (lane.wrapping_sub(by), lane.checked_sub(by).is_some_and(|from| from >= last)),
        Shuffle::Down => (lane + by, lane + by <= last),
        Shuffle::Butterfly => (lane ^ by, lane ^ by <= last),
        Shuffle::Index => {
            let from = (lane & segment) | (by & !segment);
            (from, from <= last)
        }
    };
    Some((if inside { from } else { lane }, inside))
}

/// What an exchange leaves in the registers that it writes.
pub(super) fn result(part: &SomeLanes<'_>, state: &State, collective: &Collective) -> Val {
    match sources(part, state, collective) {
        Some(_) if part.several() => Val::mixed(&[&part.operand(state, collective.src), &Val::Each]),
        _ => Val::Same,
    }
}

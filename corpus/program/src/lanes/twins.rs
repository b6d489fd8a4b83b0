//! Twins instead of conflicts: lanes that are taken out of a part so that every conflict inside it has two threads.
//!
//! Two lanes of a part that touch a common byte, one writing, race unless something orders them. A joined thread has one
//! program order, so the race is not there. But the lanes of a part are alike: what orders instruction k of one lane and
//! instruction l of another orders them for any two lanes. So one pair of lanes in two threads is enough for each
//! pair of instructions, and of what lanes it is does not matter, as long as they touch a common byte. Each twin is a
//! lane that the rest lacks. Where addresses are constants, all pairs of lanes are looked at; an address that all lanes
//! share makes any two lanes conflict, or a lane with any other; else any two lanes might, and each is a twin.
//! Two strong accesses do not race.

use super::part::Part;
use super::planted::Planted;
use super::sites::{Site, overlap};

/// The lanes of a part that are threads of their own; all others are one thread.
pub(super) fn twins(part: &Part<'_>, sites: &[Site]) -> Vec<u8> {
    let mut out = Vec::new();
    if part.has(Planted::NoTwins) || !part.several() {
        return out;
    }
    for (n, a) in sites.iter().enumerate() {
        for b in &sites[n..] {
            if !may_race(part, a, b) {
                continue;
            }
            let Some(pairs) = conflicts(part, a, b) else { return part.lanes.clone() };
            let apart = |(i, j): &(u8, u8)| out.contains(i) || out.contains(j);
            if let Some((i, _)) = pairs.first()
                && !pairs.iter().any(apart)
                && !(part.has(Planted::FirstTwin) && !out.is_empty())
            {
                out.push(if part.has(Planted::FirstTwin) { part.lanes[0] } else { *i });
            }
        }
    }
    out
}

fn may_race(part: &Part<'_>, a: &Site, b: &Site) -> bool {
    let kind = match part.bug {
        Some(Planted::OnlyWrites) => a.writes && b.writes,
        Some(Planted::OnlyReads) => a.writes != b.writes,
        _ => a.writes || b.writes,
    };
    kind && !(a.strong && b.strong) && !(part.has(Planted::NotItself) && a.pc == b.pc)
}

/// The pairs of different lanes that conflict at two sites, first lanes first. None if that is not known.
fn conflicts(part: &Part<'_>, a: &Site, b: &Site) -> Option<Vec<(u8, u8)>> {
    let lanes = &part.lanes;
    let pairs =
        || (0..lanes.len()).flat_map(|i| (0..lanes.len()).map(move |j| (i, j))).filter(|(i, j)| i != j);
    // Whichever lane the other address belongs to, the shared one belongs to all others.
    let any = a.at.uniform() || b.at.uniform();
    let holds = |(i, j): (usize, usize)| overlap(part.program, (a, i), (b, j)).or(any.then_some(true));
    let mut out = Vec::new();
    for (i, j) in pairs() {
        if holds((i, j))? {
            out.push((lanes[i], lanes[j]));
        }
    }
    Some(out)
}

//! Twins instead of conflicts: lanes that are taken out of a part so that every conflict inside it has two threads.
//!
//! Two lanes of a part that touch a common byte, one writing, race unless something orders them. A joined thread has one
//! program order, so the race is not there. But the lanes of a part are alike: what orders instruction k of one lane and
//! instruction l of another orders them for any two lanes. So for each pair of instructions that conflict in some two
//! lanes it is enough that two such lanes are in different threads. One lane apart from the rest mostly does it; else the
//! lanes are shared out among few threads. Where addresses are constants, all pairs of lanes are looked at; an address that
//! all lanes share makes a lane conflict with any other; else any two lanes might, and each is a thread. Two strong
//! accesses do not race. To share a part out among more threads than that is never wrong.

use super::part::SomeLanes;
use super::planted::Planted;
use super::sites::{Site, overlap};

/// Most accesses of a thread whose places differ by lane.
const ACCESSES: usize = 200;

/// Most pairs of accesses of two lanes that are compared; a few seconds. A part with more has a thread a lane, and no engine
/// takes so many events.
const PAIRS: usize = 1 << 29;

/// Pairs of lanes, as positions in the part, of which one must be in two threads.
type Wanted = Vec<(usize, usize)>;

/// The lanes of a part by thread; one group if none conflict.
pub(super) fn groups(part: &SomeLanes<'_>, sites: &[Site]) -> Vec<Vec<u8>> {
    let lanes = &part.lanes;
    let Some(wanted) = wanted(part, sites) else { return lanes.iter().map(|l| vec![*l]).collect() };
    let colours = coloured(part, &wanted);
    let most = colours.iter().max().map_or(0, |c| c + 1);
    let of = |c| (0..lanes.len()).filter(|i| colours[*i] == c).map(|i| lanes[i]).collect();
    let groups = (0..most).map(of).filter(|group: &Vec<u8>| !group.is_empty());
    groups.flat_map(|group| short(&group, sites)).collect()
}

/// Fewer lanes a thread, where so many accesses of a thread would be more events than an engine takes.
fn short(group: &[u8], sites: &[Site]) -> Vec<Vec<u8>> {
    let each = sites.iter().filter(|s| s.at.differs()).count();
    let most = ACCESSES.checked_div(each).map_or(group.len(), |most| most.max(1));
    group.chunks(most).map(<[u8]>::to_vec).collect()
}

/// The conflicts of each pair of sites. None if it is not known which lanes conflict.
fn wanted(part: &SomeLanes<'_>, sites: &[Site]) -> Option<Vec<Wanted>> {
    let mut out: Vec<Wanted> = Vec::new();
    if part.has(Planted::NoTwins) || !part.several() {
        return Some(out);
    }
    if (sites.len() * part.lanes.len()).saturating_pow(2) > PAIRS {
        return None;
    }
    for (n, a) in sites.iter().enumerate() {
        for b in sites[n..].iter().filter(|b| may_race(part, a, b)) {
            let pairs = conflicts(part, a, b)?;
            if !pairs.is_empty() && !out.contains(&pairs) {
                out.push(pairs);
            }
        }
    }
    Some(out)
}

fn may_race(part: &SomeLanes<'_>, a: &Site, b: &Site) -> bool {
    let kind = match part.bug {
        Some(Planted::OnlyWrites) => a.writes && b.writes,
        Some(Planted::OnlyReads) => a.writes != b.writes,
        _ => a.writes || b.writes,
    };
    kind && !(a.strong && b.strong) && !(part.has(Planted::NotItself) && a.pc == b.pc)
}

/// The pairs of different lanes that conflict at two sites. None if that is not known.
fn conflicts(part: &SomeLanes<'_>, a: &Site, b: &Site) -> Option<Wanted> {
    let lanes = part.lanes.len();
    // Whichever lane the other address belongs to, the shared one belongs to all others.
    let any = a.at.uniform() || b.at.uniform();
    let holds = |(i, j): (usize, usize)| overlap(part.program, (a, i), (b, j)).or(any.then_some(true));
    let mut out = Vec::new();
    for pair in (0..lanes).flat_map(|i| (0..lanes).map(move |j| (i, j))).filter(|(i, j)| i != j) {
        if holds(pair)? {
            out.push(pair);
        }
    }
    Some(out)
}

/// A number for each lane, so that of each list some two lanes have different ones: of one lane apart from all others, if
/// that is enough, else few numbers.
fn coloured(part: &SomeLanes<'_>, wanted: &[Wanted]) -> Vec<usize> {
    let lanes = part.lanes.len();
    let open = |colours: &[usize]| {
        wanted.iter().filter(|pairs| !pairs.iter().any(|(i, j)| colours[*i] != colours[*j])).count()
    };
    let one = |lane: usize| (0..lanes).map(|i| usize::from(i != lane)).collect::<Vec<usize>>();
    if wanted.is_empty() {
        return vec![0; lanes];
    }
    if part.has(Planted::FirstTwin) {
        return one(0);
    }
    (0..lanes).map(one).find(|c| open(c) == 0).unwrap_or_else(|| greedy(lanes, &open))
}

/// Gives one lane after another the number that leaves least open, a new one where no other helps.
fn greedy(lanes: usize, open: &impl Fn(&[usize]) -> usize) -> Vec<usize> {
    let mut colours = vec![0; lanes];
    let mut most = 0;
    while open(&colours) > 0 {
        let moves = (0..lanes).flat_map(|lane| (0..=most + 1).map(move |c| (lane, c)));
        let after = |(lane, c): &(usize, usize)| {
            let mut new = colours.clone();
            new[*lane] = *c;
            (open(&new), *c, *lane)
        };
        let Some((lane, c)) = moves.min_by_key(after) else { break };
        if open(&colours) <= after(&(lane, c)).0 {
            return (0..lanes).collect();
        }
        colours[lane] = c;
        most = most.max(c);
    }
    colours
}

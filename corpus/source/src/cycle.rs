//! Critical cycles: threads that communicate in a circle, and the order that is just enough to forbid it.
//!
//! A cycle is a list of segments, one a thread, joined by the communications rf, fr and co, as in diy (Alglave, Maranget, Sarkar,
//! Sewell, "Fences in weak memory models", 2010). It changes its location inside a segment of two locations.
//!
//! What forbids it, under `rc11-scoped` as under `ptx`: let a *handover* be rf from one segment of two accesses to another, perhaps
//! through updates of other threads. Handovers that synchronise, release to acquire, make chains of segments. One chain and one
//! other communication is forbidden by coherence. A circle of handovers has one to spare. Where several chains meet, each needs
//! one sequentially consistent fence, which orders it with the others.

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// Read.
    R,
    /// Write.
    W,
}

/// The part of a cycle that one thread contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// One access.
    One(Dir),
    /// Two accesses in program order; the flag is true if both are to one location.
    Two(Dir, Dir, bool),
    /// A read-modify-write, which reads what comes before it and is read by what comes behind.
    Update,
}

impl Segment {
    /// The access that the communication before it reaches.
    pub fn first(self) -> Dir {
        match self {
            Segment::One(d) | Segment::Two(d, _, _) => d,
            Segment::Update => Dir::R,
        }
    }

    /// The access from which the communication behind it goes out.
    pub fn last(self) -> Dir {
        match self {
            Segment::One(d) | Segment::Two(_, d, _) => d,
            Segment::Update => Dir::W,
        }
    }
}

/// A cycle of segments.
pub type Skeleton = Vec<Segment>;

/// Whether the segments can be joined to a cycle.
pub fn is_cycle(cycle: &[Segment]) -> bool {
    let n = cycle.len();
    let joined = (0..n).all(|i| (cycle[i].last(), cycle[(i + 1) % n].first()) != (Dir::R, Dir::R));
    let moves = cycle.iter().filter(|s| matches!(s, Segment::Two(_, _, false))).count();
    let stays = cycle.iter().filter(|s| matches!(s, Segment::Two(_, _, true))).count();
    // After a single change of location the cycle cannot close. A cycle of single accesses has no program order.
    joined && moves != 1 && (moves > 0 || stays > 0) && (moves > 0 || stays == 1)
}

/// An access of a cycle, its location, and the value that it writes or must read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The segment.
    pub thread: usize,
    /// What it does. An update writes.
    pub dir: Dir,
    /// The location.
    pub location: usize,
    /// The value that it writes or must read; an update reads the value before.
    pub value: u64,
}

/// Assigns locations and values along the cycle, and says how many locations there are. The location changes at each
/// `Two(.., false)`. The writes of a location
/// count up from 1, and a read sees the latest write before it. In a one-location cycle the count starts after its only
/// program-order edge.
pub fn points(skeleton: &[Segment]) -> (Vec<Point>, usize) {
    let n = skeleton.len();
    let pivot = skeleton.iter().position(|s| matches!(s, Segment::Two(_, _, false)));
    let one_place = pivot.is_none();
    let start = pivot.or_else(|| skeleton.iter().position(|s| matches!(s, Segment::Two(..)))).unwrap_or(0);
    let moves = skeleton.iter().filter(|s| matches!(s, Segment::Two(_, _, false))).count().max(1);
    let mut points = Vec::new();
    let (mut location, mut value) = (0, 0);
    let mut see = |thread, dir, location, value: &mut u64| {
        if dir == Dir::W {
            *value += 1;
        }
        points.push(Point { thread, dir, location, value: *value });
    };
    // The walk starts after the pivot's program-order edge and ends before it.
    see(start, skeleton[start].last(), location, &mut value);
    for k in 1..n {
        let thread = (start + k) % n;
        match skeleton[thread] {
            Segment::One(d) => see(thread, d, location, &mut value),
            Segment::Update => see(thread, Dir::W, location, &mut value),
            Segment::Two(a, b, same) => {
                see(thread, a, location, &mut value);
                if !same {
                    location += 1;
                    value = 0;
                }
                see(thread, b, location, &mut value);
            }
        }
    }
    if one_place || matches!(skeleton[start], Segment::Two(..)) {
        see(start, skeleton[start].first(), location, &mut value);
        // The walk began with the pivot's second access and ended with its first: restore program order.
        let last = points.len() - 1;
        points.swap(0, last);
    }
    (points, moves)
}

/// The order that a segment needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Its first access reads what was released.
    pub acquires: bool,
    /// Its second access is read by what acquires.
    pub releases: bool,
    /// A sequentially consistent fence stands between its accesses.
    pub sequence: bool,
}

/// The order that forbids a cycle and of which nothing is to spare, by segment. `below` draws a number.
pub fn needs(cycle: &[Segment], below: &mut dyn FnMut(usize) -> usize) -> Vec<Need> {
    let mut out = vec![Need::default(); cycle.len()];
    let twos: Vec<usize> = (0..cycle.len()).filter(|i| matches!(cycle[*i], Segment::Two(..))).collect();
    let next = |n: usize| twos[(n + 1) % twos.len()];
    let mut handed: Vec<bool> = (0..twos.len()).map(|n| hands_over(cycle, twos[n], next(n))).collect();
    if !handed.contains(&false) {
        let spare = below(handed.len());
        handed[spare] = false;
    }
    for (n, _) in handed.iter().enumerate().filter(|(_, handed)| **handed) {
        out[twos[n]].releases = true;
        out[next(n)].acquires = true;
    }
    let ends: Vec<usize> = (0..handed.len()).filter(|n| !handed[*n]).collect();
    if ends.len() > 1 {
        for (k, end) in ends.iter().enumerate() {
            let before = ends[(k + ends.len() - 1) % ends.len()];
            let length = (end + twos.len() - before - 1) % twos.len() + 1;
            let at = twos[(before + 1 + below(length)) % twos.len()];
            out[at].sequence = true;
        }
    }
    out
}

/// Whether a segment is read by another one, directly or through updates alone.
fn hands_over(cycle: &[Segment], from: usize, to: usize) -> bool {
    let between = (1..=cycle.len()).map(|k| (from + k) % cycle.len()).take_while(|i| *i != to);
    let mut updates = between.map(|i| cycle[i]);
    cycle[from].last() == Dir::W && cycle[to].first() == Dir::R && updates.all(|s| s == Segment::Update)
}

/// Draws a cycle of two to four threads: one in six is load buffering, on which models and explorers differ most; the others are
/// segments, drawn until they form one, at most 64 times.
pub fn drawn(below: &mut dyn FnMut(usize) -> usize) -> Skeleton {
    let threads = [2, 2, 3, 3, 3, 4][below(6)];
    if below(6) == 0 {
        return vec![Segment::Two(Dir::R, Dir::W, false); threads];
    }
    for _ in 0..64 {
        let mut cycle = Skeleton::new();
        for _ in 0..threads {
            let dirs = [Dir::R, Dir::W];
            let (a, b) = (dirs[below(2)], dirs[below(2)]);
            cycle.push(match below(12) {
                0 | 1 if threads > 2 => Segment::One(a),
                2 if threads > 2 => Segment::Update,
                3 => Segment::Two(a, b, true),
                _ => Segment::Two(a, b, false),
            });
        }
        if is_cycle(&cycle) && cycle.iter().any(|s| matches!(s, Segment::Two(_, _, false))) {
            return cycle;
        }
    }
    vec![Segment::Two(Dir::R, Dir::W, false); 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dir::{R, W};

    fn words(cycle: &[Segment]) -> Vec<String> {
        let word = |n: &Need| {
            [(n.acquires, "a"), (n.releases, "r"), (n.sequence, "s")]
                .map(|(is, w)| if is { w } else { "" })
                .concat()
        };
        needs(cycle, &mut |_| 0).iter().map(word).collect()
    }

    #[test]
    fn classic_tests_need_what_is_known() {
        let two = |a, b| Segment::Two(a, b, false);
        let one = Segment::One;
        assert_eq!(words(&[two(W, W), two(R, R)]), ["r", "a"], "MP");
        assert_eq!(words(&[two(W, R), two(W, R)]), ["s", "s"], "SB");
        assert_eq!(words(&[two(R, W), two(R, W)]), ["a", "r"], "LB");
        assert_eq!(words(&[two(W, W), two(R, W)]), ["r", "a"], "S");
        assert_eq!(words(&[two(W, W), two(W, R)]), ["s", "s"], "R");
        assert_eq!(words(&[two(W, W), two(W, W)]), ["s", "s"], "2+2W");
        assert_eq!(words(&[one(W), two(R, W), two(R, R)]), ["", "r", "a"], "WRC");
        assert_eq!(words(&[two(W, W), two(R, W), two(R, R)]), ["r", "ar", "a"], "ISA2");
        assert_eq!(words(&[one(W), two(R, R), one(W), two(R, R)]), ["", "s", "", "s"], "IRIW");
        assert_eq!(words(&[two(W, W), Segment::Update, two(R, R)]), ["r", "", "a"], "a release sequence");
        assert_eq!(words(&[two(W, W), two(R, R), two(W, R)]), ["rs", "a", "s"], "two chains");
    }

    #[test]
    fn an_update_reads_what_its_writer_wrote() {
        let (points, locations) =
            points(&[Segment::Two(W, W, false), Segment::Update, Segment::Two(R, R, false)]);
        let of = |thread| {
            points.iter().filter(|p| p.thread == thread).map(|p| (p.location, p.value)).collect::<Vec<_>>()
        };
        assert_eq!(
            (locations, of(0), of(1), of(2)),
            (2, vec![(1, 1), (0, 1)], vec![(0, 2)], vec![(0, 2), (1, 0)])
        );
    }

    #[test]
    fn drawn_cycles_are_cycles() {
        let mut n = 7usize;
        let mut below = |most: usize| {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (n >> 33) % most
        };
        for _ in 0..1000 {
            let cycle = drawn(&mut below);
            assert!(
                is_cycle(&cycle) && needs(&cycle, &mut below).iter().any(|n| *n != Need::default()),
                "{cycle:?}"
            );
        }
    }
}

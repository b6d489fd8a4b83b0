//! Shapes drawn from bytes.
//!
//! A guided one is a cycle with just the order that forbids it ([`moire_source::cycle`]), under a scope that includes all threads. A few
//! have one order or scope less. They lie on the border between allowed and forbidden, where a missing rule shows. The others are
//! annotated freely; most of them use one scope throughout, because then the annotations interact.

use super::{
    Annotation, Between, Dir, Mark, Meeting, Peek, SCOPES, Segment, Skeleton, Stand, between, build,
    is_cycle, stand,
};
use crate::numbers::Choose;
use arbitrary::{Result, Unstructured};
use moire_program::ir::{FenceOrder, Program, Scope, Space, Ty};
use moire_source::cycle::{self, Need, Point};

/// Dependencies of the second access on the first, and last what is none: a branch around nothing.
const DEPENDENCIES: [Between; 5] =
    [Between::Data, Between::Data, Between::Addr, Between::Ctrl, Between::Past];

/// A shape annotated freely.
pub fn draw(u: &mut Unstructured<'_>) -> Result<Program> {
    let skeleton = draw_skeleton(u)?;
    let base = *u.choose(&SCOPES)?;
    let free = Free { base, steady: u.ratio(2u8, 3u8)?, fences: u.ratio(1u8, 2u8)? };
    let segments = skeleton.iter().map(|_| free.draw(u)).collect::<Result<_>>()?;
    Ok(build(&skeleton, &Annotation::new(segments, stand(u128::from(u.int_in_range(0..=4u8)?)))))
}

/// A cycle with just the order that forbids it.
pub fn guided(u: &mut Unstructured<'_>) -> Result<Program> {
    let mut skeleton = cycle::drawn(&mut |n| u.below(n));
    let depends =
        skeleton.iter().all(|s| matches!(s, Segment::Two(Dir::R, Dir::W, _))) && u.ratio(1u8, 5u8)?;
    if depends && u.ratio(2u8, 3u8)? {
        skeleton.insert(u.below(skeleton.len()), Segment::Update);
    }
    let mut needs = cycle::needs(&skeleton, &mut |n| u.below(n));
    let scope = *u.choose(&SCOPES)?;
    let handover = skeleton.len() == 2 && needs.iter().all(|n| !n.sequence && n.acquires != n.releases);
    let meets =
        handover && skeleton.iter().all(|s| matches!(s, Segment::Two(_, _, false))) && u.ratio(1u8, 2u8)?;
    if meets {
        return met(u, skeleton, &needs);
    }
    let direct = skeleton.iter().all(|s| matches!(s, Segment::Two(..)));
    let slip = if u.ratio(1u8, 48u8)? { Some(u.below(needs.len())) } else { None };
    if let Some(at) = slip {
        needs[at] = Need::default();
    }
    let pen = Pen { scope, direct, depends };
    let segments =
        skeleton.iter().zip(&needs).map(|(s, need)| pen.segment(u, *s, *need)).collect::<Result<_>>()?;
    let segments = waiting(u, &skeleton, seen(&skeleton, segments))?;
    let mut all = Annotation::new(segments, if u.ratio(1u8, 48u8)? { Stand::Sys } else { widest(u, scope)? });
    words(u, &mut all)?;
    peeks(u, &mut all)?;
    Ok(build(&skeleton, &all))
}

/// Lets a thread read once more, sometimes.
fn peeks(u: &mut Unstructured<'_>, all: &mut Annotation) -> Result<()> {
    if u.ratio(1u8, 24u8)? {
        let global = all.spaces == (Space::Global, Space::Global);
        let peek = if global && u.ratio(1u8, 2u8)? { Peek::Surface } else { Peek::Half };
        all.peek = Some((u.below(all.segments.len()), peek));
    }
    Ok(())
}

/// Two threads that meet at a barrier instead of handing over.
fn met(u: &mut Unstructured<'_>, mut skeleton: Skeleton, needs: &[Need]) -> Result<Program> {
    if needs.first().is_some_and(|n| n.acquires) {
        skeleton.rotate_left(1);
    }
    let meeting = *u.choose(&[Meeting::Cta, Meeting::Cluster])?;
    let stand = if meeting == Meeting::Cta || u.ratio(1u8, 3u8)? { Stand::Cta } else { Stand::Cluster };
    let pen = Pen { scope: Scope::Cluster, direct: true, depends: false };
    let mut segments = Vec::new();
    for segment in &skeleton {
        segments.push(pen.segment(u, *segment, Need::default())?);
    }
    let segments = seen(&skeleton, segments);
    let mut all = Annotation { meeting: Some(meeting), ..Annotation::new(segments, stand) };
    words(u, &mut all)?;
    Ok(build(&skeleton, &all))
}

/// The marks without each maximum after which a greater value is written: nobody sees in which order it was.
fn seen(skeleton: &[Segment], mut marks: Vec<(Mark, Between, Mark)>) -> Vec<(Mark, Between, Mark)> {
    let (points, _) = cycle::points(skeleton);
    for (t, (first, _, second)) in marks.iter_mut().enumerate() {
        let own = points.iter().filter(|p| p.thread == t);
        for (point, mark) in own.zip([first, second]) {
            let exceeded = points.iter().any(|p| p.location == point.location && p.value > point.value);
            if let (true, Mark::Red(scope)) = (exceeded, *mark) {
                *mark = Mark::Relaxed(scope);
            }
        }
    }
    marks
}

/// The marks with loops that wait for the value of a location's only write, seldom for one that another may overwrite before it is
/// seen. Threads that all wait for each other would hang.
fn waiting(
    u: &mut Unstructured<'_>,
    skeleton: &[Segment],
    mut marks: Vec<(Mark, Between, Mark)>,
) -> Result<Vec<(Mark, Between, Mark)>> {
    let (points, _) = cycle::points(skeleton);
    let only = |p: &Point| points.iter().filter(|q| q.location == p.location && q.dir == Dir::W).count() == 1;
    if skeleton.iter().all(|s| (s.first(), s.last()) == (Dir::R, Dir::W)) {
        return Ok(marks);
    }
    for (t, (first, _, _)) in marks.iter_mut().enumerate() {
        let read = points.iter().find(|p| p.thread == t).filter(|p| p.dir == Dir::R && p.value > 0);
        let waits = match *first {
            Mark::Sync(scope) => Some(Mark::Await(scope, true)),
            Mark::Relaxed(scope) => Some(Mark::Await(scope, false)),
            _ => None,
        };
        if let (Some(point), Some(waits)) = (read, waits)
            && u.ratio(if only(point) { 20u8 } else { 3 }, 24u8)?
        {
            *first = waits;
        }
    }
    Ok(marks)
}

/// Draws the type and the spaces of all accesses.
fn words(u: &mut Unstructured<'_>, all: &mut Annotation) -> Result<()> {
    // Values that others depend on become addresses.
    if all.segments.iter().all(|(_, gap, _)| !gap.depends()) {
        all.ty = *u.choose(&[Ty::U(64), Ty::U(32), Ty::U(32), Ty::B(32), Ty::S(32), Ty::B(64), Ty::S(64)])?;
    }
    let aliased = |m: &Mark| matches!(m, Mark::Alias | Mark::Surface);
    if all.segments.iter().any(|(a, _, b)| aliased(a) || aliased(b)) {
        return Ok(());
    }
    all.spaces = match u.int_in_range(0..=7u8)? {
        0 | 1 if all.stand == Stand::Cta => (Space::SharedCta, Space::SharedCta),
        2 => (Space::Global, Space::Generic),
        _ => all.spaces,
    };
    Ok(())
}

/// How the orders of a guided cycle are written.
struct Pen {
    scope: Scope,
    /// There are no threads of one access, whose neighbours have to be strong.
    direct: bool,
    /// Dependencies stand in the place of orders.
    depends: bool,
}

impl Pen {
    fn segment(
        &self,
        u: &mut Unstructured<'_>,
        segment: Segment,
        need: Need,
    ) -> Result<(Mark, Between, Mark)> {
        let Segment::Two(a, b, _) = segment else {
            return Ok((
                self.strong(u, segment.first(), segment == Segment::Update)?,
                Between::Plain,
                Mark::Weak,
            ));
        };
        if self.depends {
            return Ok((
                Mark::Relaxed(self.scope),
                *u.choose(&DEPENDENCIES[..4])?,
                self.strong(u, b, false)?,
            ));
        }
        let (first, second) = (self.mark(u, a, need.acquires)?, self.mark(u, b, need.releases)?);
        if need.sequence {
            return Ok((first, Between::Fence(FenceOrder::Sc, self.scope), second));
        }
        let fences = u.ratio(1u8, 2u8)?;
        if self.direct && need.acquires && !need.releases && u.ratio(1u8, 8u8)? {
            let (fence, mark) =
                *u.choose(&[(Between::ProxyAlias, Mark::Alias), (Between::ProxySurface, Mark::Surface)])?;
            return Ok((self.synchronising(u)?, fence, mark));
        }
        if self.direct && need.releases && !need.acquires && u.ratio(1u8, 16u8)? {
            return Ok((Mark::Surface, Between::ProxySurface, self.synchronising(u)?));
        }
        if need == Need::default() {
            return Ok((first, Between::Plain, second));
        }
        if fences {
            let least = match (need.acquires, need.releases) {
                (true, false) => FenceOrder::Acquire,
                (false, true) => FenceOrder::Release,
                _ => FenceOrder::AcqRel,
            };
            let order = *u.choose(&[least, least, FenceOrder::AcqRel, FenceOrder::Sc])?;
            // What a `red` reads is not acquired.
            let unread = a == Dir::R && need.acquires && u.ratio(1u8, 24u8)?;
            let first = if unread { Mark::Red(self.scope) } else { first };
            return Ok((first, Between::Fence(order, self.scope), second));
        }
        let first = if need.acquires { self.synchronising(u)? } else { first };
        let second = if need.releases { self.synchronising(u)? } else { second };
        // A dependency beside the order changes nothing that is allowed.
        let depends = a == Dir::R && !need.sequence && u.ratio(1u8, 2u8)?;
        let gap = if depends { *u.choose(&DEPENDENCIES)? } else { Between::Plain };
        Ok((first, gap, second))
    }

    /// An access that is not ordered by itself; weak only where nothing else reads or writes in between.
    fn mark(&self, u: &mut Unstructured<'_>, dir: Dir, handed: bool) -> Result<Mark> {
        if self.direct && !handed && u.ratio(1u8, 4u8)? {
            return Ok(Mark::Weak);
        }
        self.strong(u, dir, false)
    }

    fn strong(&self, u: &mut Unstructured<'_>, dir: Dir, update: bool) -> Result<Mark> {
        let relaxed = Mark::Relaxed(self.scope);
        Ok(match (update, dir) {
            // What an exchange writes depends on nothing that it reads.
            (true, _) if self.depends => Mark::Atom(self.scope, false),
            (true, _) => *u.choose(&[relaxed, relaxed, Mark::Sync(self.scope)])?,
            (false, Dir::R) => *u.choose(&[relaxed, relaxed, Mark::Atom(self.scope, false)])?,
            (false, Dir::W) => {
                *u.choose(&[relaxed, relaxed, Mark::Atom(self.scope, false), Mark::Red(self.scope)])?
            }
        })
    }

    fn synchronising(&self, u: &mut Unstructured<'_>) -> Result<Mark> {
        let sync = Mark::Sync(self.scope);
        Ok(*u.choose(&[
            sync,
            sync,
            sync,
            Mark::Atom(self.scope, true),
            Mark::Atom(self.scope, true),
            Mark::Twice(self.scope),
        ])?)
    }
}

/// Places as far apart as a scope reaches, most of the time.
fn widest(u: &mut Unstructured<'_>, scope: Scope) -> Result<Stand> {
    let far = match scope {
        Scope::Cta => Stand::Cta,
        Scope::Cluster => Stand::Cluster,
        Scope::Gpu => *u.choose(&[Stand::Gpu, Stand::Split])?,
        Scope::Sys => Stand::Sys,
    };
    if u.ratio(3u8, 4u8)? { Ok(far) } else { within(u, scope) }
}

/// The choices that all free annotations of one shape share.
struct Free {
    base: Scope,
    /// Every access has scope `base`.
    steady: bool,
    fences: bool,
}

impl Free {
    fn draw(&self, u: &mut Unstructured<'_>) -> Result<(Mark, Between, Mark)> {
        let (first, second) = (self.mark(u)?, self.mark(u)?);
        let gap = match u.int_in_range(0..=31u8)? {
            0..=11 if self.fences => between(u128::from(u.int_in_range(0..=15u8)?)),
            12..=17 => Between::Data,
            18..=20 => Between::Addr,
            21..=24 => Between::Ctrl,
            25 => Between::ProxyAlias,
            _ => Between::Plain,
        };
        Ok((first, gap, second))
    }

    fn mark(&self, u: &mut Unstructured<'_>) -> Result<Mark> {
        let scope = if self.steady { self.base } else { *u.choose(&SCOPES)? };
        Ok(match u.int_in_range(0..=15u8)? {
            0..=5 => Mark::Relaxed(scope),
            6..=8 => Mark::Sync(scope),
            9 | 10 => Mark::Weak,
            11 | 12 => Mark::Atom(scope, u.arbitrary()?),
            13 => Mark::Red(scope),
            14 => Mark::Volatile,
            _ => Mark::Alias,
        })
    }
}

/// Places that all lie within `scope` of each other.
fn within(u: &mut Unstructured<'_>, scope: Scope) -> Result<Stand> {
    let fits: &[Stand] = match scope {
        Scope::Cta => &[Stand::Cta],
        Scope::Cluster => &[Stand::Cluster, Stand::Cta],
        Scope::Gpu => &[Stand::Gpu, Stand::Split, Stand::Cluster, Stand::Cta],
        Scope::Sys => &[Stand::Sys, Stand::Gpu, Stand::Split, Stand::Cluster, Stand::Cta],
    };
    u.choose(fits).copied()
}

/// Draws a cycle of two to four threads: draws segments until they form one, at most 64 times.
fn draw_skeleton(u: &mut Unstructured<'_>) -> Result<Skeleton> {
    let threads = *u.choose(&[2usize, 2, 3, 3, 3, 4])?;
    // Models and explorers differ most on load buffering, which is rare among all cycles.
    if u.ratio(1u8, 5u8)? {
        return Ok(vec![Segment::Two(Dir::R, Dir::W, false); threads]);
    }
    for _ in 0..64 {
        let mut cycle = Skeleton::new();
        for _ in 0..threads {
            let (a, b) = (*u.choose(&[Dir::R, Dir::W])?, *u.choose(&[Dir::R, Dir::W])?);
            cycle.push(match u.int_in_range(0..=9u8)? {
                0 | 1 if threads > 2 => Segment::One(a),
                2 => Segment::Two(a, b, true),
                _ => Segment::Two(a, b, false),
            });
        }
        if is_cycle(&cycle) {
            return Ok(cycle);
        }
    }
    Ok(load_buffering())
}

fn load_buffering() -> Skeleton {
    vec![Segment::Two(Dir::R, Dir::W, false), Segment::Two(Dir::R, Dir::W, false)]
}

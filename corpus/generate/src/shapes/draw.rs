//! Shapes drawn from bytes.
//!
//! Two thirds are annotated freely; most of them use one scope throughout, because then the annotations interact. In the
//! other third every edge except perhaps one is ordered sufficiently, under a scope that includes all threads. These lie
//! on the border between allowed and forbidden, where a missing rule shows.

use super::{
    Annotation, Between, Dir, Mark, SCOPES, Segment, Skeleton, Stand, between, build, is_cycle, stand,
};
use arbitrary::{Result, Unstructured};
use moire_program::ir::{FenceOrder, Program, Scope};

/// A shape drawn from bytes.
pub fn draw(u: &mut Unstructured<'_>) -> Result<Program> {
    let skeleton = draw_skeleton(u)?;
    let base = *u.choose(&SCOPES)?;
    let careful = u.ratio(1u8, 3u8)?;
    let free = Free { base, steady: careful || u.ratio(2u8, 3u8)?, fences: u.ratio(1u8, 2u8)? };
    // The one segment annotated freely; about half the time there is none.
    let slip = u.int_in_range(0..=2 * skeleton.len() - 1)?;
    let mut segments = Vec::new();
    for (n, segment) in skeleton.iter().enumerate() {
        segments.push(if careful && n != slip { sufficient(u, *segment, base)? } else { free.draw(u)? });
    }
    let stand = if careful { within(u, base)? } else { stand(u128::from(u.int_in_range(0..=4u8)?)) };
    Ok(build(&skeleton, &Annotation { segments, stand }))
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

/// Marks and an order that suffice to order a segment's two accesses for all threads within `scope`.
fn sufficient(u: &mut Unstructured<'_>, segment: Segment, scope: Scope) -> Result<(Mark, Between, Mark)> {
    let strong = [Mark::Relaxed(scope), Mark::Relaxed(scope), Mark::Atom(scope, false), Mark::Red(scope)];
    let mut mark = || u.choose(&strong).copied();
    let (first, second) = (mark()?, mark()?);
    let Segment::Two(a, b, _) = segment else { return Ok((first, Between::Plain, second)) };
    let way = u.int_in_range(0..=3u8)?;
    Ok(match (a, b, way) {
        (Dir::R, Dir::W, 0 | 1) => {
            (Mark::Relaxed(scope), *u.choose(&[Between::Data, Between::Data, Between::Ctrl])?, second)
        }
        (Dir::W, Dir::R, _) => (first, Between::Fence(FenceOrder::Sc, scope), second),
        (_, _, 2) => {
            let acquires = if a == Dir::R { Mark::Sync(scope) } else { first };
            let releases = if b == Dir::W { Mark::Sync(scope) } else { second };
            (acquires, Between::Plain, releases)
        }
        (Dir::R, Dir::R, _) => (first, fence(u, FenceOrder::Acquire, scope)?, second),
        (Dir::W, Dir::W, _) => (first, fence(u, FenceOrder::Release, scope)?, second),
        (Dir::R, Dir::W, _) => (first, fence(u, FenceOrder::AcqRel, scope)?, second),
    })
}

fn fence(u: &mut Unstructured<'_>, least: FenceOrder, scope: Scope) -> Result<Between> {
    Ok(Between::Fence(*u.choose(&[least, FenceOrder::AcqRel, FenceOrder::Sc])?, scope))
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

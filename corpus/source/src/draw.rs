//! Draws source programs: critical cycles that are just forbidden, and small programs of random steps.
//!
//! Five in six are cycles ([`crate::cycle`]) with no order to spare: a compiler that loses one lets the cycle happen. How an order is
//! written is drawn: an access, a read-modify-write, a compare-exchange, a fence; and so are width, space, scope and places. In a
//! few of them one order or scope is less than is needed, or accesses are not atomic where a guard keeps them from a race. The
//! others are unguided. Every drawn program is valid; some have a race and say nothing about a compiler.

use crate::cycle::{self, Dir, Need, Point, Segment};
use crate::syntax::{Access, Exchange, Object, Order, Register, Source, Space, Step, Thread, Update, Value};
use arbitrary::{Result, Unstructured};
use moire_program::ir::{AtomOp, Placement, Scope};

/// Bytes that one program may consume.
pub const BYTES: usize = 1024;

/// A read or a write: object, and the value that a write writes.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Reads.
    R(usize),
    /// Writes the value.
    W(usize, u64),
    /// Adds 1.
    A(usize),
    /// A compare-exchange with a value that no object ever holds, so it fails.
    C(usize),
}

use Act::{A, C, R, W};

/// How the accesses of a program are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Accesses,
    Updates,
    Fences,
    Mixed,
}

/// What is the same for all accesses of a program.
struct Scheme {
    style: Style,
    scope: Scope,
    bits: u8,
    /// Some accesses have another scope.
    scopes_vary: bool,
    /// Other scopes are wider ones.
    guided: bool,
    volatile: bool,
}

/// Draws a program.
///
/// # Errors
/// Never, in fact: when the bytes run out, every choice takes its first value.
pub fn draw(u: &mut Unstructured<'_>) -> Result<Source> {
    let guided = u.ratio(5u8, 6u8)?;
    let scheme = Scheme {
        guided,
        style: *u.choose(&[Style::Accesses, Style::Updates, Style::Updates, Style::Fences, Style::Mixed])?,
        scope: *u.choose(&[Scope::Gpu, Scope::Gpu, Scope::Cta, Scope::Sys, Scope::Cluster])?,
        bits: *u.choose(&[32, 32, 32, 32, 64, 64, 16, 8, 128])?,
        scopes_vary: u.ratio(1u8, 10u8)?,
        volatile: u.ratio(1u8, 20u8)?,
    };
    let mut source = if guided { guided_cycle(u, &scheme)? } else { random(u, &scheme)? };
    let fits = u.ratio(if guided { 39u8 } else { 7u8 }, if guided { 40u8 } else { 8u8 })?;
    places(u, &scheme, fits, &mut source)?;
    Ok(source)
}

fn objects(u: &mut Unstructured<'_>, scheme: &Scheme, n: usize) -> Result<Vec<Object>> {
    let mut out = Vec::new();
    for o in 0..n {
        let space = match u.int_in_range(0..=15u8)? {
            0 | 1 => Space::Generic,
            // Shared memory is of one CTA, where a wider scope adds nothing.
            2..=6 if scheme.scope == Scope::Cta => Space::Shared,
            _ => Space::Global,
        };
        out.push(Object { name: format!("x{o}"), space, bits: scheme.bits, init: 0 });
    }
    Ok(out)
}

/// A program under construction.
struct Build<'s, 'u, 'b> {
    u: &'u mut Unstructured<'b>,
    scheme: &'s Scheme,
    registers: Vec<Register>,
}

/// A critical cycle with just the order that it needs.
fn guided_cycle(u: &mut Unstructured<'_>, scheme: &Scheme) -> Result<Source> {
    let skeleton = cycle::drawn(&mut |n| below(u, n));
    let mut needs = cycle::needs(&skeleton, &mut |n| below(u, n));
    let (points, locations) = cycle::points(&skeleton);
    // An update of a part of a word becomes a loop. Four threads of loops take seconds to explore and tell no more than three.
    let bits = if skeleton.len() > 3 { scheme.bits.max(32) } else { scheme.bits };
    let scheme = &Scheme { bits, ..*scheme };
    let objects = objects(u, scheme, locations)?;
    let calm =
        needs.iter().all(|n| !n.sequence) && skeleton.iter().all(|s| matches!(s, Segment::Two(_, _, false)));
    let plain = calm && u.ratio(1u8, 6u8)?;
    if u.ratio(1u8, 40u8)? {
        let slip = below(u, needs.len());
        needs[slip] = Need::default();
    }
    // Without a fence every access of a cycle of several chains is sequentially consistent; or those of some chains, if nothing
    // stands between these.
    let accesses = matches!(scheme.style, Style::Accesses | Style::Updates) && u.ratio(1u8, 2u8)?;
    let all = accesses && needs.iter().any(|n| n.sequence);
    let direct = skeleton.iter().all(|s| matches!(s, Segment::Two(..)));
    let mut threads = Vec::new();
    for (t, need) in needs.iter().enumerate() {
        let mine: Vec<Point> = points.iter().filter(|p| p.thread == t).copied().collect();
        let mut build = Build { u, scheme, registers: Vec::new() };
        let alone = *need == Need { sequence: true, ..Need::default() };
        let sequential = all || direct && alone && build.u.ratio(1u8, 4u8)?;
        let mut body = build.segment(skeleton[t], &mine, *need, sequential)?;
        if plain {
            build.guarded(&mut body, &mine, *need);
        }
        let registers = build.registers;
        threads.push(Thread { place: Placement::default(), registers, body });
    }
    Ok(Source { name: "cycle".to_owned(), objects, threads, condition: None })
}

/// A number below `n`; the least when the bytes run out.
fn below(u: &mut Unstructured<'_>, n: usize) -> usize {
    u.int_in_range(0..=n.saturating_sub(1)).unwrap_or(0)
}

fn random(u: &mut Unstructured<'_>, scheme: &Scheme) -> Result<Source> {
    let count = u.int_in_range(2..=3usize)?;
    let objects = objects(u, scheme, count)?;
    let mut threads = Vec::new();
    for _ in 0..u.int_in_range(2..=3usize)? {
        let mut build = Build { u, scheme, registers: Vec::new() };
        let mut body = Vec::new();
        for n in 0..build.u.int_in_range(1..=3usize)? {
            let o = build.u.int_in_range(0..=count - 1)?;
            let value = build.u.int_in_range(1..=2u64)?;
            let act = *build.u.choose(&[R(o), R(o), W(o, value), W(o, value), A(o), C(o)])?;
            if n > 0 && build.u.ratio(1u8, 4u8)? {
                body.push(build.fence()?);
            }
            let step = build.act(act, n > 0)?;
            body.push(step);
        }
        build.guard(&mut body)?;
        let registers = build.registers;
        threads.push(Thread { place: Placement::default(), registers, body });
    }
    Ok(Source { name: "random".to_owned(), objects, threads, condition: None })
}

impl Build<'_, '_, '_> {
    fn register(&mut self) -> usize {
        let name = format!("r{}", self.registers.len());
        self.registers.push(Register { name, bits: self.scheme.bits });
        self.registers.len() - 1
    }

    fn scope(&mut self) -> Result<Scope> {
        if self.scheme.scopes_vary && self.u.ratio(1u8, 3u8)? {
            let other = *self.u.choose(&[Scope::Cta, Scope::Gpu, Scope::Sys])?;
            return Ok(if self.scheme.guided { other.max(self.scheme.scope) } else { other });
        }
        Ok(self.scheme.scope)
    }

    fn fence(&mut self) -> Result<Step> {
        let order = *self.u.choose(&[Order::AcqRel, Order::SeqCst, Order::Acquire, Order::Release])?;
        Ok(Step::Fence { order, scope: self.scope()? })
    }

    /// An order of a read-modify-write.
    fn any_order(&mut self) -> Result<Order> {
        Ok(*self.u.choose(&Order::ALL)?)
    }

    /// A step for an access of the shape. `later`: it is not the first step of its thread.
    fn act(&mut self, act: Act, later: bool) -> Result<Step> {
        let updates = match self.scheme.style {
            Style::Updates => self.u.ratio(3u8, 4u8)?,
            Style::Mixed => self.u.ratio(1u8, 3u8)?,
            Style::Accesses | Style::Fences => false,
        };
        // Only loads, stores and exchanges of 128 bits are atomic.
        let wide = self.scheme.bits == 128;
        match act {
            R(object) if updates && !wide => self.update(Some(AtomOp::Add), object, Value::Number(0)),
            W(object, n) if updates => self.update(None, object, Value::Number(n)),
            A(object) if wide => self.update(None, object, Value::Number(1)),
            A(object) => {
                let op = *self.u.choose(&[AtomOp::Add, AtomOp::Add, AtomOp::Or, AtomOp::Xor, AtomOp::Max])?;
                self.update(Some(op), object, Value::Number(1))
            }
            C(object) => self.cas(object),
            R(object) => {
                let access = self.access(&[Order::Relaxed, Order::Acquire, Order::SeqCst])?;
                Ok(Step::Load { dst: self.register(), object, access })
            }
            W(object, n) => {
                let access = self.access(&[Order::Relaxed, Order::Release, Order::SeqCst])?;
                // A value that was loaded is a dependency that no compiler may remove.
                let copies = later && !self.registers.is_empty() && self.u.ratio(1u8, 8u8)?;
                let value = if copies { Value::Register(0) } else { Value::Number(n) };
                Ok(Step::Store { object, value, access })
            }
        }
    }

    fn access(&mut self, orders: &[Order; 3]) -> Result<Access> {
        let order =
            if self.scheme.style == Style::Fences { Order::Relaxed } else { *self.u.choose(orders)? };
        let volatile = self.scheme.volatile && self.u.ratio(1u8, 2u8)?;
        Ok(Access::Atomic { order, scope: self.scope()?, volatile })
    }

    /// An exchange without `op`.
    fn update(&mut self, op: Option<AtomOp>, object: usize, value: Value) -> Result<Step> {
        let (order, scope) = (self.any_order()?, self.scope()?);
        let used = op == Some(AtomOp::Add) || self.u.ratio(2u8, 3u8)?;
        let dst = used.then(|| self.register());
        Ok(Step::Update(Update { dst, op: op.unwrap_or(AtomOp::Exch), object, value, order, scope }))
    }

    fn cas(&mut self, object: usize) -> Result<Step> {
        let success = self.any_order()?;
        let mut failure = *self.u.choose(&[Order::Acquire, Order::Relaxed, Order::SeqCst])?;
        if self.scheme.bits == 128 {
            // Both orders of a compare-exchange of 128 bits must read alike, or it cannot be lowered.
            failure = match success {
                Order::SeqCst => Order::SeqCst,
                order if order.acquires() => Order::Acquire,
                _ => Order::Relaxed,
            };
        }
        let scope = self.scope()?;
        let (expected, desired) = (*self.u.choose(&[7, 7, 0, 1])?, Value::Number(2));
        Ok(Step::Cas(Exchange { dst: self.register(), object, expected, desired, success, failure, scope }))
    }

    /// The thread of a segment. `all`: each access is sequentially consistent.
    fn segment(&mut self, segment: Segment, points: &[Point], need: Need, all: bool) -> Result<Vec<Step>> {
        if segment == Segment::Update {
            let Point { location, value, .. } = points[0];
            let step = match self.scheme.bits {
                128 => self.updating(None, location, value, Order::Relaxed)?,
                _ => self.updating(Some(AtomOp::Add), location, 1, Order::Relaxed)?,
            };
            return Ok(vec![step]);
        }
        let strongest = if all { Order::SeqCst } else { Order::Relaxed };
        let [first, second] = points else { return Ok(vec![self.point(&points[0], strongest)?]) };
        if all {
            return Ok(vec![self.point(first, strongest)?, self.point(second, strongest)?]);
        }
        // What an access does not say, the fence says.
        let fences = need.sequence
            || match self.scheme.style {
                Style::Fences => true,
                Style::Mixed => self.u.ratio(1u8, 2u8)?,
                Style::Accesses | Style::Updates => false,
            };
        let (acquires, releases) = (need.acquires && !fences, need.releases && !fences);
        let order = |is, order| if is { order } else { Order::Relaxed };
        let mut body = vec![self.point(first, order(acquires, Order::Acquire))?];
        if fences && need != Need::default() {
            let order = self.least(need)?;
            let scope = self.scope()?;
            body.push(Step::Fence { order, scope });
        }
        body.push(self.point(second, order(releases, Order::Release))?);
        Ok(body)
    }

    /// The order of a fence that suffices, mostly the least.
    fn least(&mut self, need: Need) -> Result<Order> {
        let more = self.u.ratio(1u8, 8u8)?;
        Ok(match need {
            Need { sequence: true, .. } => Order::SeqCst,
            Need { acquires: true, releases: true, .. } => Order::AcqRel,
            _ if more => *self.u.choose(&[Order::AcqRel, Order::SeqCst])?,
            Need { acquires: true, .. } => Order::Acquire,
            _ => Order::Release,
        })
    }

    /// An access of a cycle, with this order or a little more.
    fn point(&mut self, point: &Point, order: Order) -> Result<Step> {
        let updates = match self.scheme.style {
            Style::Updates => self.u.ratio(3u8, 4u8)?,
            Style::Mixed => self.u.ratio(1u8, 3u8)?,
            Style::Accesses | Style::Fences => self.u.ratio(1u8, 16u8)?,
        };
        let object = point.location;
        let wide = self.scheme.bits == 128;
        match point.dir {
            Dir::R if updates && self.u.ratio(1u8, 3u8)? => self.failing(object, order),
            Dir::R if updates && self.u.ratio(1u8, 3u8)? => self.swap(object, (point.value, 3), order),
            Dir::R if updates && !wide => self.updating(Some(AtomOp::Add), object, 0, order),
            Dir::R => {
                let access = self.atomic(order)?;
                Ok(Step::Load { dst: self.register(), object, access })
            }
            Dir::W if updates && point.value == 1 && self.u.ratio(1u8, 4u8)? => {
                self.swap(object, (0, 1), order)
            }
            Dir::W if updates && point.value == 1 && !wide => {
                let op =
                    *self.u.choose(&[AtomOp::Add, AtomOp::Or, AtomOp::Xor, AtomOp::Max, AtomOp::Exch])?;
                self.updating(Some(op), object, 1, order)
            }
            Dir::W if updates => self.updating(None, object, point.value, order),
            Dir::W => {
                let access = self.atomic(order)?;
                Ok(Step::Store { object, value: Value::Number(point.value), access })
            }
        }
    }

    /// An access of this order, or a sequentially consistent one.
    fn atomic(&mut self, order: Order) -> Result<Access> {
        let stronger = order != Order::Relaxed && self.u.ratio(1u8, 6u8)?;
        let order = if stronger { Order::SeqCst } else { order };
        let volatile = self.scheme.volatile && self.u.ratio(1u8, 2u8)?;
        Ok(Access::Atomic { order, scope: self.scope()?, volatile })
    }

    /// This order of an update or a compare-exchange, or a stronger one.
    fn at_least(&mut self, order: Order) -> Result<Order> {
        let stronger = order != Order::Relaxed && self.u.ratio(3u8, 8u8)?;
        Ok(if stronger {
            *self.u.choose(&[Order::AcqRel, Order::AcqRel, Order::SeqCst])?.max(&order)
        } else {
            order
        })
    }

    /// An update; an exchange without `op`. Its result is used if it reads for others.
    fn updating(&mut self, op: Option<AtomOp>, object: usize, value: u64, order: Order) -> Result<Step> {
        let used = value == 0 || order.acquires() || self.u.ratio(2u8, 3u8)?;
        let (order, scope, value) = (self.at_least(order)?, self.scope()?, Value::Number(value));
        let dst = used.then(|| self.register());
        Ok(Step::Update(Update { dst, op: op.unwrap_or(AtomOp::Exch), object, value, order, scope }))
    }

    /// A read by a compare-exchange that fails.
    fn failing(&mut self, object: usize, failure: Order) -> Result<Step> {
        let alike = self.scheme.bits == 128;
        let success = match failure {
            Order::Relaxed if !alike => *self.u.choose(&[Order::Relaxed, Order::Release])?,
            Order::Acquire if !alike => *self.u.choose(&Order::ALL)?,
            order => order,
        };
        let (scope, desired) = (self.scope()?, Value::Number(2));
        Ok(Step::Cas(Exchange {
            dst: self.register(),
            object,
            expected: 7,
            desired,
            success,
            failure,
            scope,
        }))
    }

    /// An exchange of one value for another, by a compare-exchange whose failure orders nothing.
    fn swap(&mut self, object: usize, (expected, desired): (u64, u64), order: Order) -> Result<Step> {
        let success = self.at_least(order)?;
        let alike = self.scheme.bits == 128 && success.acquires();
        let failure = match (alike, success) {
            (false, _) => Order::Relaxed,
            (true, Order::SeqCst) => Order::SeqCst,
            (true, _) => Order::Acquire,
        };
        let (scope, desired) = (self.scope()?, Value::Number(desired));
        Ok(Step::Cas(Exchange { dst: self.register(), object, expected, desired, success, failure, scope }))
    }

    /// Makes the accesses at the ends of a chain plain. A guard keeps each from running before the handover.
    fn guarded(&mut self, body: &mut Vec<Step>, points: &[Point], need: Need) {
        let plain = |step: &mut Step| match step {
            Step::Load { access, .. } | Step::Store { access, .. } => *access = Access::Plain,
            Step::Update(_) | Step::Cas(_) | Step::Fence { .. } | Step::If { .. } => {}
        };
        if let (false, Some(first)) = (need.acquires, body.first_mut()) {
            plain(first);
            return;
        }
        let (Some(register), Some(mut last)) = (body.first().and_then(Step::dst), body.pop()) else { return };
        if !need.releases {
            plain(&mut last);
        }
        body.push(Step::If { register, equals: points[0].value, then: vec![last] });
    }

    /// Makes the last step of a thread run only if its first read saw 1, and an access that is not atomic.
    fn guard(&mut self, body: &mut Vec<Step>) -> Result<()> {
        let first = body.first().and_then(Step::dst);
        let (Some(register), true) = (first, body.len() > 1) else {
            return self.unguarded(body);
        };
        if !self.u.ratio(1u8, 6u8)? {
            return Ok(());
        }
        let Some(mut last) = body.pop() else { return Ok(()) };
        if let Step::Load { access, .. } | Step::Store { access, .. } = &mut last {
            *access = Access::Plain;
        }
        body.push(Step::If { register, equals: 1, then: vec![last] });
        Ok(())
    }

    /// Makes the first of several writes one that is not atomic.
    fn unguarded(&mut self, body: &mut [Step]) -> Result<()> {
        if let [Step::Store { access, .. }, _, ..] = body
            && self.u.ratio(1u8, 6u8)?
        {
            *access = Access::Plain;
        }
        Ok(())
    }
}

/// Places threads so that the usual scope of the program includes them, most of the time.
fn places(u: &mut Unstructured<'_>, scheme: &Scheme, fits: bool, source: &mut Source) -> Result<()> {
    let spread =
        if fits { scheme.scope } else { *u.choose(&[Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys])? };
    let together = u.ratio(1u8, 5u8)?;
    for (t, thread) in source.threads.iter_mut().enumerate() {
        let n = u16::try_from(t).unwrap_or(0);
        let n = if together { n.min(1) } else { n };
        thread.place = match spread {
            Scope::Cta => Placement::default(),
            Scope::Cluster => Placement { cta: n, ..Placement::default() },
            Scope::Gpu => Placement { cluster: n, cta: n, ..Placement::default() },
            Scope::Sys => Placement { gpu: n % 2, cluster: n, cta: n, ..Placement::default() },
        };
    }
    Ok(())
}

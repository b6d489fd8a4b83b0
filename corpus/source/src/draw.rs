//! Draws source programs: shapes that tell mappings of compilers apart, and small programs of random steps.
//!
//! A shape is a classic litmus test as a list of reads and writes; orders, scopes, fences and read-modify-writes are drawn.
//! `CAS` reads by a compare-exchange that fails. Every drawn program is valid; a quarter or so has a race and says nothing
//! about a compiler.

use crate::syntax::{Access, Exchange, Object, Order, Register, Source, Space, Step, Thread, Update, Value};
use arbitrary::{Result, Unstructured};
use moire_program::ir::{AtomOp, Placement, Scope};

/// Bytes that one program may consume.
pub const BYTES: usize = 1024;

/// A read or a write of a shape: object, and the value that a write writes.
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

/// The shapes with their names.
const SHAPES: [(&str, &[&[Act]]); 13] = [
    ("mp", &[&[W(0, 1), W(1, 1)], &[R(1), R(0)]]),
    ("sb", &[&[W(0, 1), R(1)], &[W(1, 1), R(0)]]),
    ("lb", &[&[R(0), W(1, 1)], &[R(1), W(0, 1)]]),
    ("s", &[&[W(0, 2), W(1, 1)], &[R(1), W(0, 1)]]),
    ("r", &[&[W(0, 1), W(1, 1)], &[W(1, 2), R(0)]]),
    ("2+2w", &[&[W(0, 1), W(1, 2)], &[W(1, 1), W(0, 2)]]),
    ("wrc", &[&[W(0, 1)], &[R(0), W(1, 1)], &[R(1), R(0)]]),
    ("rwc", &[&[W(0, 1)], &[R(0), R(1)], &[W(1, 1), R(0)]]),
    ("isa2", &[&[W(0, 1), W(1, 1)], &[R(1), W(2, 1)], &[R(2), R(0)]]),
    ("iriw", &[&[W(0, 1)], &[W(1, 1)], &[R(0), R(1)], &[R(1), R(0)]]),
    ("rmw-sequence", &[&[W(0, 1), W(1, 1)], &[A(1)], &[R(1), R(0)]]),
    ("cas-fails", &[&[W(0, 1), W(1, 1)], &[C(1), R(0)]]),
    ("counter", &[&[A(0)], &[A(0)]]),
];

/// How the accesses of a shape are ordered.
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
    volatile: bool,
}

/// Draws a program.
///
/// # Errors
/// Never, in fact: when the bytes run out, every choice takes its first value.
pub fn draw(u: &mut Unstructured<'_>) -> Result<Source> {
    let scheme = Scheme {
        style: *u.choose(&[Style::Accesses, Style::Accesses, Style::Updates, Style::Fences, Style::Mixed])?,
        scope: *u.choose(&[Scope::Gpu, Scope::Gpu, Scope::Cta, Scope::Sys, Scope::Cluster])?,
        bits: *u.choose(&[32, 32, 32, 32, 64, 64, 16, 8, 128])?,
        scopes_vary: u.ratio(1u8, 10u8)?,
        volatile: u.ratio(1u8, 20u8)?,
    };
    let mut source = if u.ratio(3u8, 5u8)? {
        let (name, acts) = u.choose(&SHAPES)?;
        shape(u, &scheme, name, acts)?
    } else {
        random(u, &scheme)?
    };
    places(u, &scheme, &mut source)?;
    Ok(source)
}

fn objects(u: &mut Unstructured<'_>, scheme: &Scheme, n: usize) -> Result<Vec<Object>> {
    let mut out = Vec::new();
    for o in 0..n {
        let space = match u.int_in_range(0..=15u8)? {
            0 => Space::Generic,
            // Shared memory is of one CTA, where a wider scope adds nothing.
            1 if scheme.scope == Scope::Cta => Space::Shared,
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

fn shape(u: &mut Unstructured<'_>, scheme: &Scheme, name: &str, all: &[&[Act]]) -> Result<Source> {
    let mut used: Vec<usize> = all.iter().flat_map(|t| t.iter().map(object)).collect();
    used.sort_unstable();
    used.dedup();
    let objects = objects(u, scheme, used.len())?;
    let mut threads = Vec::new();
    for acts in all {
        let mut build = Build { u, scheme, registers: Vec::new() };
        let mut body = Vec::new();
        for (n, act) in acts.iter().enumerate() {
            if n > 0 && matches!(scheme.style, Style::Fences | Style::Mixed) && build.u.ratio(4u8, 5u8)? {
                body.push(build.fence()?);
            }
            let step = build.act(*act, n > 0)?;
            body.push(step);
        }
        build.guard(&mut body)?;
        let registers = build.registers;
        threads.push(Thread { place: Placement::default(), registers, body });
    }
    Ok(Source { name: name.to_owned(), objects, threads, condition: None })
}

fn object(act: &Act) -> usize {
    match act {
        R(o) | W(o, _) | A(o) | C(o) => *o,
    }
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
            return Ok(*self.u.choose(&[Scope::Cta, Scope::Gpu, Scope::Sys])?);
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
fn places(u: &mut Unstructured<'_>, scheme: &Scheme, source: &mut Source) -> Result<()> {
    let fits = u.ratio(7u8, 8u8)?;
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

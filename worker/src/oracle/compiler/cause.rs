//! Causes of a forbidden final state: changes of the kernel under which the state would be allowed; and of a lost or found end.
//!
//! Three changes are tried of a forbidden state.
//!
//! - *One read becomes several*: each user of a scalar load gets its own read, as when every thread reads for itself. To add
//!   few reads, users whose cells end with the same content share a read first; then users at the same place in their
//!   tiles, as threads have them; then each user has its own.
//! - *One write becomes several*: each strong store stores each element twice, as when several threads store one element of
//!   a tile with fewer elements than threads.
//! - *Both*: the two together, or each block without a read-modify-write twice, as when a thread stores what it read itself.
//!
//! If the weakest reading allows the final state of the changed kernel, that change is the cause, and findings with this
//! cause are one class.
//!
//! Known of `tileiras` 13.5: a scalar read whose value is used by a whole tile becomes one read for each thread, so one
//! value becomes several. An element of a tile with fewer elements than threads is stored by several threads, so a store
//! of another block can come between. A load that is masked off is dropped with the order that its token hands on; only
//! the reading `TOK=A` forbids this, and the text can be read as `TOK=B`.

use moire_execution::leaf::{Witness, WitnessEvent};
use moire_program::ir::{
    Content, Instr, Label, Op, Operand, Program, Reg, RegDecl, StoreOrder, Thread, TileAccess, TileElement,
    TileKind, TileOp, TileToken, Value,
};
use moire_program::registers::uses;
use std::collections::{BTreeMap, BTreeSet};

/// One read became several.
pub(super) const ONE_READ: &str = "OneRead";

/// One write became several.
pub(super) const ONE_WRITE: &str = "OneWrite";

/// Both of these.
pub(super) const ONE_OF_EACH: &str = "OneRead and OneWrite";

/// A loop that never ends is gone.
pub(super) const ENDLESS: &str = "endless";

/// Whether two threads of a CTA have read different values at one place, in one instruction where lines are known. What then hangs may
/// hang because the threads go different ways.
pub(super) fn divided(program: &Program, witness: &Witness) -> bool {
    let reads: Vec<&WitnessEvent> = witness.events.iter().filter(|e| e.kind == "R").collect();
    let alike = |a: &WitnessEvent, b: &WitnessEvent| {
        let place = |e: &WitnessEvent| program.threads.get(usize::from(e.event.thread)).map(|t| &t.place);
        let (Some(here), Some(there)) = (place(a), place(b)) else { return false };
        a.event.thread != b.event.thread
            && here.same_cta(there)
            && (&a.location, a.line) == (&b.location, b.line)
            && a.value != b.value
    };
    reads.iter().enumerate().any(|(n, a)| reads[n + 1..].iter().any(|b| alike(a, b)))
}

/// The specification leaves open whether an instruction whose elements are all masked off passes order on. In this
/// reading it does.
pub(super) const HANDED: &str = "TOK=A";
/// In this reading it does not.
pub(super) const UNHANDED: &str = "TOK=B";

/// Most reads that one load becomes.
const MAX_COPIES: usize = 8;

/// The users of a load that share a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// Those whose cells end with the same content.
    Content,
    /// Those at the same place in their instructions.
    Place,
    /// None.
    Nothing,
}

impl Share {
    /// Every way, the one that adds the fewest reads first.
    pub(super) const ALL: [Share; 3] = [Share::Content, Share::Place, Share::Nothing];
}

/// The program with more reads for each scalar load that has several kinds of users; `None` where there is none.
pub(super) fn split(source: &Program, memory: &[Content], share: Share) -> Option<Program> {
    let cells = Cells { source, memory, share };
    let mut program = source.clone();
    let mut changed = false;
    for thread in &mut program.threads {
        let loads: Vec<usize> = (0..thread.body.len()).filter(|at| scalar(thread, *at).is_some()).collect();
        // From the back, because inserted instructions then move no load that is still to be split.
        for at in loads.into_iter().rev() {
            changed |= split_load(thread, at, &cells);
        }
    }
    changed.then_some(program)
}

/// The program in which each strong store writes each of its elements twice; `None` without strong stores. A doubled weak
/// store would race with itself, and no read can count how often it was made.
pub(super) fn repeated(source: &Program) -> Option<Program> {
    let mut program = source.clone();
    let mut changed = false;
    for instr in program.threads.iter_mut().flat_map(|t| &mut t.body) {
        if let Op::Tile(TileOp::Access(access)) = &mut instr.op
            && let TileKind::Store(StoreOrder::Relaxed(_) | StoreOrder::Release(_)) = access.kind
        {
            access.elements.extend(access.elements.clone());
            changed = true;
        }
    }
    changed.then_some(program)
}

/// The program in which each block that updates nothing runs twice; `None` where there is none. As in [`repeated`], weak stores
/// are made once.
pub(super) fn twins(source: &Program) -> Option<Program> {
    let updates = |instr: &Instr| access(instr).is_some_and(|a| matches!(a.kind, TileKind::Rmw { .. }));
    let mut program = source.clone();
    for thread in source.threads.iter().filter(|t| !t.body.iter().any(updates)) {
        let mut twin = Thread { name: format!("{}-again", thread.name), ..thread.clone() };
        for instr in &mut twin.body {
            if let Op::Tile(TileOp::Access(access)) = &mut instr.op
                && access.kind == TileKind::Store(StoreOrder::Weak)
            {
                access.elements.clear();
            }
        }
        program.threads.push(twin);
    }
    (program.threads.len() > source.threads.len()).then_some(program)
}

fn access(instr: &Instr) -> Option<&TileAccess> {
    if let Op::Tile(TileOp::Access(access)) = &instr.op { Some(access) } else { None }
}

/// The register of a load of one element.
fn scalar(thread: &Thread, at: usize) -> Option<Reg> {
    let access = access(thread.body.get(at)?)?;
    let (TileKind::Load(_), [one]) = (access.kind, access.elements.as_slice()) else { return None };
    one.dst
}

fn arithmetic(op: &Op) -> bool {
    matches!(op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. })
}

fn register(operand: &mut Operand) -> Option<&mut Reg> {
    if let Operand::Reg(r) = operand { Some(r) } else { None }
}

/// Registers of an element.
fn operands(element: &mut TileElement) -> impl Iterator<Item = &mut Reg> {
    let (a, b) = (element.a.as_mut().and_then(register), element.b.as_mut().and_then(register));
    [a, b, element.mask.as_mut()].into_iter().flatten()
}

/// Registers of arithmetic.
fn named(op: &mut Op) -> impl Iterator<Item = &mut Reg> {
    let (dst, sources, when) = if let Op::Mov { dst, src, .. } = op {
        (Some(dst), [Some(src), None], None)
    } else if let Op::Alu { dst, a, b, .. } | Op::Setp { dst, a, b, .. } = op {
        (Some(dst), [Some(a), Some(b)], None)
    } else if let Op::Selp { dst, a, b, p, .. } = op {
        (Some(dst), [Some(a), Some(b)], Some(p))
    } else {
        (None, [None, None], None)
    };
    let [a, b] = sources.map(|o| o.and_then(register));
    [dst, a, b, when].into_iter().flatten()
}

/// The users of a scalar load: the arithmetic that depends on it, and the elements of accesses that use the results.
struct Users {
    reached: BTreeSet<Reg>,
    arithmetic: Vec<usize>,
    elements: Vec<(usize, usize)>,
}

fn users(thread: &Thread, at: usize, dst: Reg) -> Users {
    let mut out = Users { reached: BTreeSet::from([dst]), arithmetic: Vec::new(), elements: Vec::new() };
    for (n, instr) in thread.body.iter().enumerate().skip(at + 1) {
        if arithmetic(&instr.op) {
            let (reads, writes) = uses(&instr.op);
            if reads.iter().chain(instr.guard.iter().map(|g| &g.reg)).any(|r| out.reached.contains(r)) {
                out.reached.extend(writes);
                out.arithmetic.push(n);
            }
        }
        for (e, element) in access(instr).into_iter().flat_map(|a| a.elements.iter().enumerate()) {
            if operands(&mut element.clone()).any(|r| out.reached.contains(r)) {
                out.elements.push((n, e));
            }
        }
    }
    out
}

/// The memory of a final state.
struct Cells<'a> {
    source: &'a Program,
    memory: &'a [Content],
    share: Share,
}

impl Cells<'_> {
    /// Users with equal keys share a read.
    fn key(&self, thread: &Thread, user: (usize, usize)) -> (Option<Value>, usize, usize) {
        match self.share {
            Share::Content => (self.content(thread, user), 0, 0),
            Share::Place => (None, user.1, 0),
            Share::Nothing => (None, user.1, user.0),
        }
    }

    /// The memory at the address of an element; `None` if the address is not known.
    fn content(&self, thread: &Thread, (at, element): (usize, usize)) -> Option<Value> {
        let access = access(thread.body.get(at)?)?;
        let addr = access.elements.get(element)?.addr;
        let Operand::Address(symbol) = addr.base else { return None };
        let object = self.source.symbols.get(symbol.index())?.object;
        let from = u32::try_from(addr.offset).ok()?;
        let inside = from.checked_add(access.ty.bytes())? <= self.source.objects.get(object.index())?.bytes;
        inside.then(|| self.memory.get(object.index()).map(|m| m.value(from, access.ty.bytes())))?
    }
}

/// Splits a load: groups of users that do not share a read get their own. Returns whether there are such groups.
fn split_load(thread: &mut Thread, at: usize, cells: &Cells<'_>) -> bool {
    let Some(dst) = scalar(thread, at) else { return false };
    let users = users(thread, at, dst);
    let mut groups: BTreeMap<_, Vec<(usize, usize)>> = BTreeMap::new();
    for user in &users.elements {
        groups.entry(cells.key(thread, *user)).or_default().push(*user);
    }
    let copies = groups.len().min(MAX_COPIES);
    let mut before: BTreeMap<usize, Vec<Instr>> = BTreeMap::new();
    for (copy, group) in groups.into_values().enumerate().take(MAX_COPIES).skip(1) {
        let mut names: BTreeMap<Reg, Reg> = BTreeMap::new();
        for reg in &users.reached {
            let Some(decl) = thread.regs.get(reg.index()).cloned() else { return false };
            let Ok(number) = u16::try_from(thread.regs.len()) else { return false };
            thread.regs.push(RegDecl { name: format!("{}_{copy}", decl.name), ..decl });
            names.insert(*reg, Reg(number));
        }
        let renamed = |r: &mut Reg| *r = names.get(r).copied().unwrap_or(*r);
        if let Some(Op::Tile(TileOp::Access(load))) = thread.body.get_mut(at).map(|i| &mut i.op)
            && let Some(mut element) = load.elements.first().cloned()
        {
            element.dst.iter_mut().for_each(renamed);
            load.elements.push(element);
        }
        for n in &users.arithmetic {
            let mut instr = thread.body[*n].clone();
            named(&mut instr.op).for_each(renamed);
            instr.guard.iter_mut().for_each(|g| renamed(&mut g.reg));
            before.entry(*n).or_default().push(instr);
        }
        for (n, e) in group {
            if let Some(Op::Tile(TileOp::Access(user))) = thread.body.get_mut(n).map(|i| &mut i.op)
                && let Some(element) = user.elements.get_mut(e)
            {
                operands(element).for_each(renamed);
            }
        }
    }
    insert(thread, &before);
    copies > 1
}

/// Puts instructions in front of others.
fn insert(thread: &mut Thread, before: &BTreeMap<usize, Vec<Instr>>) {
    let shifted = |at: usize| at + before.range(..at).map(|(_, all)| all.len()).sum::<usize>();
    thread.labels.iter_mut().for_each(|Label { at, .. }| *at = shifted(*at));
    let mut body = Vec::new();
    for (n, mut instr) in std::mem::take(&mut thread.body).into_iter().enumerate() {
        body.extend(before.get(&n).into_iter().flatten().cloned());
        if let Op::Bra { target } = &mut instr.op {
            *target = shifted(*target);
        }
        body.push(instr);
    }
    thread.body = body;
}

/// The program in which tokens that an `if` chooses order nothing; `None` if no token is chosen. In our reading a chosen
/// token depends on its condition; a compiler may know the condition.
pub(super) fn unchosen(source: &Program) -> Option<Program> {
    let mut program = source.clone();
    let mut changed = false;
    for instr in program.threads.iter_mut().flat_map(|t| &mut t.body) {
        if let Op::Tile(TileOp::Token(token)) = &mut instr.op
            && let TileToken::Choose { dst, .. } = *token
        {
            *token = TileToken::Join { dst, from: Vec::new() };
            changed = true;
        }
    }
    changed.then_some(program)
}

//! The class of a finding: what the compiler lost, found by giving it back.
//!
//! The PTX is explored again with each instruction at the scope that the program asks for, then also of the order. An
//! instruction that has what was asked for stays as it is, so it is not to blame for another one. If the forbidden final
//! state or the race is gone under wider scopes alone, a scope was lost; if it takes orders, or `fence.sc` before each
//! instruction, an order was. The instruction is the first one that suffices alone, or the first kind of which all together
//! do. Where several kinds are needed, each was lost and is found alone in other programs: it is the first of them.

use super::judge::Asked;
use crate::oracle::refine::Judged;
use moire_program::edit::retarget;
use moire_program::ir::{
    self, FenceOrder, Instr, LoadOrder, Op, Operand, Program, RmwOrder, Scope, StoreOrder, Ty,
};
use moire_program::{barrier_op, jump_op, register_op, unit_op};
use moire_source::{Access, Order, Step, Thread};
use std::collections::BTreeMap;

/// What is given back to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gift {
    Scope,
    Order,
}

/// The class of code that accesses an object with several sizes.
pub(super) const MIXED: &str = "mixed-size";
/// The class of code with a weak access where the thread has atomic ones only.
pub(super) const WEAK: &str = "weak-access";

/// The class of code in which an update is no longer one.
const UPDATE: &str = "update-lost";

/// The class of code whose threads do what one thread of the program does, and do not meet.
const BARRIER: &str = "barrier-lost";

/// The class of code that updates what the program only loads.
const WRITTEN: &str = "load-updates";

/// The class of code that ends as the published mapping of the program does: the two models differ, whatever a compiler does.
pub(super) const MODELS: &str = "models";

/// The class of a race that nothing explains: all that the program asks for is there.
pub(super) const RACE: &str = "race";

/// What a program asks of the accesses of a thread to an object, or of its fences, together.
#[derive(Clone, Copy, Debug)]
struct Need {
    acquires: bool,
    releases: bool,
    sc: bool,
    scope: Scope,
}

impl Need {
    fn new(order: Order, scope: Scope) -> Need {
        Need { acquires: order.acquires(), releases: order.releases(), sc: order == Order::SeqCst, scope }
    }

    fn and(self, other: Need) -> Need {
        Need {
            acquires: self.acquires || other.acquires,
            releases: self.releases || other.releases,
            sc: self.sc || other.sc,
            scope: self.scope.max(other.scope),
        }
    }

    /// What a step asks of an access.
    fn of(step: &Step) -> Option<Need> {
        Some(match step {
            Step::Load { access: Access::Atomic { order, scope, .. }, .. }
            | Step::Store { access: Access::Atomic { order, scope, .. }, .. }
            | Step::Fence { order, scope } => Need::new(*order, *scope),
            Step::Update(u) => Need::new(u.order, u.scope),
            Step::Cas(c) => Need::new(c.success, c.scope).and(Need::new(c.failure, c.scope)),
            Step::Load { .. } | Step::Store { .. } | Step::If { .. } => return None,
        })
    }
}

/// What the program asks of an instruction of a thread: of the access that it is, where the PTX has as many accesses to the object
/// as the program; else of all of them; of its fences and what has a `fence.sc` in front.
fn need(asked: &Asked<'_>, (thread, at): (usize, usize)) -> Option<Need> {
    let body = &asked.compiled.program.threads[thread].body;
    let (op, steps) = (&body[at].op, steps(asked, thread));
    let object = object(asked, op);
    let fence = matches!(op, Op::Fence { .. });
    let of = |step: &&Step| {
        let fences = matches!(step, Step::Fence { .. }) || Need::of(step).is_some_and(|need| need.sc);
        if fence { fences } else { object.is_some() && step.object() == object }
    };
    let own: Vec<&Step> = steps.into_iter().filter(of).collect();
    let same = (0..body.len()).filter(|n| object.is_some() && self::object(asked, &body[*n].op) == object);
    let same: Vec<usize> = same.collect();
    let place = same.iter().position(|n| *n == at).filter(|_| same.len() == own.len());
    match place.and_then(|n| own.get(n)) {
        Some(step) => Need::of(step),
        None => own.into_iter().filter_map(Need::of).reduce(Need::and),
    }
}

/// What a thread of the PTX does in the program.
fn steps<'a>(asked: &'a Asked<'_>, thread: usize) -> Vec<&'a Step> {
    let own = asked.compiled.parts.get(thread).and_then(|t| asked.source.threads.get(*t));
    own.map(Thread::steps).unwrap_or_default()
}

/// Of what nothing explains: threads that are one in the program are not ordered, or something else.
fn unexplained(asked: &Asked<'_>, otherwise: &str) -> Vec<String> {
    let several = asked.compiled.parts.len() > asked.source.threads.len();
    vec![if several { BARRIER } else { otherwise }.to_owned()]
}

/// The object of the program that an instruction accesses.
fn object(asked: &Asked<'_>, op: &Op) -> Option<usize> {
    let Operand::Address(symbol) = op.place()?.1.base else { return None };
    let name = &asked.compiled.program.symbols.get(symbol.index())?.name;
    asked.source.objects.iter().position(|o| o.name == *name)
}

/// The class, and the instructions that are to blame. What is wrong although each object has accesses of one size is not for
/// their sizes. With `whole` races count, too.
pub(super) fn class(asked: &Asked<'_>, judged: &Judged, whole: bool) -> Vec<String> {
    let Some(program) = of_one_size(&asked.compiled.program) else { return of(asked, judged) };
    let mut compiled = asked.compiled.clone();
    compiled.program = program;
    let alike = asked.with(&compiled);
    match alike.search(&compiled.program, whole) {
        Ok(seen) if seen.judged.direction().is_some() => of(&alike, &seen.judged),
        Ok(_) | Err(_) => vec![MIXED.to_owned()],
    }
}

fn of(asked: &Asked<'_>, judged: &Judged) -> Vec<String> {
    match judged {
        Judged::Beyond(outcome) if asked.is_mapped(&asked.compiled.state(&outcome.memory)) => {
            vec![MODELS.to_owned()]
        }
        Judged::Beyond(_) => beyond(asked),
        Judged::Undefined => vec![MIXED.to_owned()],
        Judged::Race => race(asked),
        Judged::Racy | Judged::Agrees(_) | Judged::Contested(..) | Judged::Progress(_) => Vec::new(),
    }
}

fn race(asked: &Asked<'_>) -> Vec<String> {
    if !weak_on_atomic(asked).is_empty() && agrees(asked, &strong(asked), true) {
        return vec![WEAK.to_owned()];
    }
    if loading(asked).is_some_and(|loads| agrees(asked, &loads, true)) {
        return vec![WRITTEN.to_owned()];
    }
    let otherwise = if has_more_weak(asked) { WEAK } else { RACE };
    lost(asked, true).unwrap_or_else(|| unexplained(asked, otherwise))
}

fn beyond(asked: &Asked<'_>) -> Vec<String> {
    if let Some(lost) = lost(asked, false) {
        return lost;
    }
    if loses_update(asked) {
        return vec![UPDATE.to_owned()];
    }
    if !weak_on_atomic(asked).is_empty() && agrees(asked, &strong(asked), false) {
        return vec![WEAK.to_owned()];
    }
    let orders = |program: &Program| agrees(asked, &fenced(program), false);
    let weak = !weak_on_atomic(asked).is_empty();
    // A `seq_cst` operation may have lost its scope, too.
    if orders(&asked.compiled.program) || !weak && orders(&strong(asked)) {
        let what = if lacks_fences(asked) { "fence" } else { "seq_cst" };
        return vec!["order-lost".to_owned(), what.to_owned()];
    }
    if weak { vec![WEAK.to_owned()] } else { unexplained(asked, "value") }
}

/// What was lost, and the kinds of instructions that are to blame. With `whole` races have to be gone, too.
fn lost(asked: &Asked<'_>, whole: bool) -> Option<Vec<String>> {
    let gifts = [(Gift::Scope, "scope-lost"), (Gift::Order, "order-lost")];
    gifts.into_iter().find_map(|(gift, word)| {
        let kind = blamed(asked, gift, whole)?;
        Some(vec![word.to_owned(), kind.to_owned()])
    })
}

/// The kind of instruction that lost it, if giving it back to all instructions helps.
fn blamed(asked: &Asked<'_>, gift: Gift, whole: bool) -> Option<&'static str> {
    let program = &asked.compiled.program;
    let op = |(t, at): &(usize, usize)| &program.threads[*t].body[*at].op;
    let mut all: Vec<(usize, usize)> =
        places(program).into_iter().filter(|place| given(asked, *place, gift) != *op(place)).collect();
    // A stronger fence may stand in for an access beside it, so accesses come first.
    all.sort_by_key(|place| matches!(op(place), Op::Fence { .. }));
    let name = |place: &(usize, usize)| mnemonic(op(place));
    let suffices = |some: &[(usize, usize)]| suffices(asked, some, gift, whole);
    if all.is_empty() || !suffices(&all) {
        return None;
    }
    let of = |kinds: &[&str]| -> Vec<(usize, usize)> {
        all.iter().filter(|place| kinds.contains(&name(place))).copied().collect()
    };
    let mut kinds: Vec<&str> = all.iter().map(name).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.len() == 1 {
        return kinds.first().copied();
    }
    let one = all.iter().find(|place| suffices(&[**place])).map(name);
    let one = one.or_else(|| kinds.iter().find(|kind| suffices(&of(&[**kind]))).copied());
    for kind in kinds.clone().into_iter().filter(|_| one.is_none()) {
        let rest: Vec<&str> = kinds.iter().filter(|k| **k != kind).copied().collect();
        if suffices(&of(&rest)) {
            kinds = rest;
        }
    }
    one.or_else(|| kinds.first().copied())
}

/// Whether a thread has fewer updates of an object in the PTX than in the program.
fn loses_update(asked: &Asked<'_>) -> bool {
    let updates =
        |step: &Step| matches!(step, Step::Update(_) | Step::Cas(_)).then(|| step.object()).flatten();
    asked.source.threads.iter().zip(&asked.compiled.program.threads).any(|(source, thread)| {
        let wanted: Vec<usize> = source.steps().into_iter().filter_map(updates).collect();
        let is = |o: usize, i: &Instr| matches!(i.op, Op::Rmw { .. }) && object(asked, &i.op) == Some(o);
        let kept = |o: usize| thread.body.iter().filter(|i| is(o, i)).count();
        wanted.iter().any(|o| kept(*o) < wanted.iter().filter(|w| *w == o).count())
    })
}

/// The PTX with loads for the updates of objects that their thread only loads in the program; `None` if there are none.
fn loading(asked: &Asked<'_>) -> Option<Program> {
    let only_read = |t: usize, o: usize| {
        let steps = steps(asked, t);
        let own: Vec<&&Step> = steps.iter().filter(|step| step.object() == Some(o)).collect();
        !own.is_empty() && own.iter().all(|step| matches!(step, Step::Load { .. }))
    };
    let mut out = asked.compiled.program.clone();
    for (t, thread) in out.threads.iter_mut().enumerate() {
        for instr in &mut thread.body {
            let reads = object(asked, &instr.op).is_some_and(|o| only_read(t, o));
            if let Some(load) = load_of(&instr.op).filter(|_| reads) {
                instr.op = load;
            }
        }
    }
    (out != asked.compiled.program).then_some(out)
}

/// The load that an update does.
fn load_of(op: &Op) -> Option<Op> {
    let Op::Rmw { order, scope, proxy, space, ty, dst, addr, .. } = op else { return None };
    let order = match order {
        RmwOrder::Acquire | RmwOrder::AcqRel | RmwOrder::SeqCst => LoadOrder::Acquire(*scope),
        RmwOrder::Relaxed | RmwOrder::Release => LoadOrder::Relaxed(*scope),
    };
    let (proxy, space, ty, addr) = (*proxy, *space, *ty, *addr);
    Some(Op::Load { order, proxy, space, ty, dst: vec![(*dst)?], addr })
}

/// Whether a thread has more weak accesses to an object in the PTX than the program has plain ones.
fn has_more_weak(asked: &Asked<'_>) -> bool {
    asked.compiled.program.threads.iter().enumerate().any(|(t, thread)| {
        let weak: Vec<usize> =
            thread.body.iter().filter(|i| is_weak(&i.op)).filter_map(|i| object(asked, &i.op)).collect();
        let plain = |o: usize| {
            let steps = steps(asked, t);
            steps.iter().filter(|step| step.object() == Some(o) && Need::of(step).is_none()).count()
        };
        weak.iter().any(|o| weak.iter().filter(|w| *w == o).count() > plain(*o))
    })
}

fn is_weak(op: &Op) -> bool {
    matches!(op, Op::Load { order: LoadOrder::Weak, .. } | Op::Store { order: StoreOrder::Weak, .. })
}

/// The program with all accesses to an object as wide as the widest; `None` if they are. An object stands alone in its word, and
/// what is beside it is zero and stays so.
fn of_one_size(program: &Program) -> Option<Program> {
    let mut widest = BTreeMap::new();
    for instr in program.threads.iter().flat_map(|t| &t.body) {
        if let Some((base, ty)) = accessed(&instr.op) {
            let most = widest.entry(base).or_insert(ty);
            *most = if ty.bytes() > most.bytes() { ty } else { *most };
        }
    }
    let mut out = program.clone();
    for instr in out.threads.iter_mut().flat_map(|t| &mut t.body) {
        let Some(most) = accessed(&instr.op).and_then(|(base, _)| widest.get(&base)) else { continue };
        if let Op::Load { ty, .. } | Op::Store { ty, .. } | Op::Rmw { ty, .. } = &mut instr.op
            && ty.bytes() < most.bytes()
        {
            *ty = *most;
        }
    }
    (out != *program).then_some(out)
}

/// Where an access is, and its type.
fn accessed(op: &Op) -> Option<(Operand, Ty)> {
    let (Op::Load { ty, addr, .. } | Op::Store { ty, addr, .. } | Op::Rmw { ty, addr, .. }) = op else {
        return None;
    };
    Some((addr.base, *ty))
}

/// Whether a thread has fewer fences than the program asks for.
fn lacks_fences(asked: &Asked<'_>) -> bool {
    let is = |instr: &&Instr| matches!(instr.op, Op::Fence { .. });
    asked.source.threads.iter().zip(&asked.compiled.program.threads).any(|(source, thread)| {
        let wanted = source.steps().into_iter().filter(|step| matches!(step, Step::Fence { .. })).count();
        thread.body.iter().filter(is).count() < wanted
    })
}

/// Whether what is lost is there once the instructions of other threads than this one are stronger.
pub(super) fn helps_elsewhere(asked: &Asked<'_>, thread: usize) -> bool {
    let others: Vec<_> =
        places(&asked.compiled.program).into_iter().filter(|place| place.0 != thread).collect();
    suffices(asked, &others, Gift::Order, true)
}

fn places(program: &Program) -> Vec<(usize, usize)> {
    let of = |(t, thread): (usize, &moire_program::ir::Thread)| {
        let own = thread.body.iter().enumerate().filter(|(_, i)| !mnemonic(&i.op).is_empty());
        own.map(|(at, _)| (t, at)).collect::<Vec<_>>()
    };
    program.threads.iter().enumerate().flat_map(of).collect()
}

/// The program with the widest `fence.sc` before each access that orders anything. Orders of fences are many, so a fence that
/// is there is widened.
fn fenced(program: &Program) -> Program {
    let mut out = program.clone();
    for thread in &mut out.threads {
        let mut at = vec![0; thread.body.len() + 1];
        let mut body = Vec::new();
        for (n, instr) in thread.body.drain(..).enumerate() {
            at[n] = body.len();
            let widest = Op::Fence { order: FenceOrder::Sc, scope: Scope::Sys };
            match body.last_mut().map(|before: &mut Instr| &mut before.op) {
                _ if mnemonic(&instr.op).is_empty() || matches!(instr.op, Op::Fence { .. }) => {}
                Some(before @ Op::Fence { .. }) => *before = widest,
                Some(_) | None => body.push(Instr::new(widest)),
            }
            body.push(instr);
        }
        if let Some(end) = at.last_mut() {
            *end = body.len();
        }
        thread.labels.clear();
        thread.body = body;
        retarget(thread, |old| at.get(old).copied().unwrap_or(old));
    }
    out
}

/// Whether the forbidden final states, and with `whole` races, are gone once these instructions are as was asked for.
fn suffices(asked: &Asked<'_>, places: &[(usize, usize)], gift: Gift, whole: bool) -> bool {
    let mut stronger = asked.compiled.program.clone();
    for (t, at) in places {
        stronger.threads[*t].body[*at].op = given(asked, (*t, *at), gift);
    }
    agrees(asked, &stronger, whole)
}

/// An instruction as was asked for.
fn given(asked: &Asked<'_>, (thread, at): (usize, usize), gift: Gift) -> Op {
    let mut op = asked.compiled.program.threads[thread].body[at].op.clone();
    if let Some(need) = need(asked, (thread, at)) {
        strengthen(&mut op, gift, need);
    }
    op
}

/// Whether this form of the PTX has no forbidden final states, and with `whole` no races.
fn agrees(asked: &Asked<'_>, program: &Program, whole: bool) -> bool {
    asked.search(program, whole).is_ok_and(|seen| matches!(seen.judged, Judged::Agrees(_)))
}

/// The PTX with all that was asked for, and no weak access to what is atomic.
fn strong(asked: &Asked<'_>) -> Program {
    let mut out = asked.compiled.program.clone();
    for (t, at) in weak_on_atomic(asked) {
        match out.threads[t].body[at].op.order_mut() {
            Some(ir::Order::Load(order)) => *order = LoadOrder::Relaxed(Scope::Cta),
            Some(ir::Order::Store(order)) => *order = StoreOrder::Relaxed(Scope::Cta),
            Some(ir::Order::Update(_) | ir::Order::Reduction(_) | ir::Order::Fence(_)) => {}
            Some(ir::Order::Flag(_)) | None => {}
        }
    }
    for (t, at) in places(&out) {
        if let Some(need) = need(asked, (t, at)) {
            strengthen(&mut out.threads[t].body[at].op, Gift::Order, need);
        }
    }
    out
}

fn strengthen(op: &mut Op, gift: Gift, need: Need) {
    let whole = gift == Gift::Order;
    let plain = matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Fence { .. });
    if let Some(scope) = op.scope_mut().filter(|_| plain) {
        *scope = need.scope.max(*scope);
    }
    match op.order_mut().filter(|_| plain && whole) {
        Some(ir::Order::Load(order)) if need.acquires => {
            *order = match *order {
                LoadOrder::Relaxed(scope) => LoadOrder::Acquire(scope),
                LoadOrder::Volatile => LoadOrder::Acquire(Scope::Sys),
                other => other,
            };
        }
        Some(ir::Order::Store(order)) if need.releases => {
            *order = match *order {
                StoreOrder::Relaxed(scope) => StoreOrder::Release(scope),
                StoreOrder::Volatile => StoreOrder::Release(Scope::Sys),
                other => other,
            };
        }
        Some(ir::Order::Update(order) | ir::Order::Reduction(order)) => {
            let acquires = need.acquires || matches!(order, RmwOrder::Acquire | RmwOrder::AcqRel);
            let releases = need.releases || matches!(order, RmwOrder::Release | RmwOrder::AcqRel);
            *order = match (acquires, releases) {
                (true, true) => RmwOrder::AcqRel,
                (true, false) => RmwOrder::Acquire,
                (false, true) => RmwOrder::Release,
                (false, false) => *order,
            };
        }
        Some(ir::Order::Fence(order)) => {
            let acquires = need.acquires || !matches!(order, FenceOrder::Release);
            let releases = need.releases || !matches!(order, FenceOrder::Acquire);
            *order = match (acquires, releases) {
                _ if need.sc || *order == FenceOrder::Sc => FenceOrder::Sc,
                (true, true) => FenceOrder::AcqRel,
                (false, _) => FenceOrder::Release,
                (true, false) => FenceOrder::Acquire,
            };
        }
        Some(ir::Order::Load(_) | ir::Order::Store(_) | ir::Order::Flag(_)) | None => {}
    }
    if let Op::Rmw { red, .. } = op {
        *red &= !(whole && need.acquires);
    }
}

/// The mnemonic of an instruction that orders anything; empty for others.
fn mnemonic(op: &Op) -> &'static str {
    use moire_program::ir::AtomOp;
    match op {
        Op::Load { order: LoadOrder::Weak, .. } | Op::Store { order: StoreOrder::Weak, .. } => "",
        Op::Load { .. } => "ld",
        Op::Store { .. } => "st",
        Op::Rmw { red: true, .. } => "red",
        Op::Rmw { op: AtomOp::Cas, .. } => "atom.cas",
        Op::Rmw { op: AtomOp::Exch, .. } => "atom.exch",
        Op::Rmw { .. } => "atom",
        Op::Fence { .. } => "fence",
        // Compilers write no others for source programs.
        Op::MultimemLoad { .. }
        | Op::MultimemStore { .. }
        | Op::MultimemRed { .. }
        | Op::Mbarrier(_)
        | Op::Tile(_) => "",
        Op::ProxyFence(_) | Op::MbarrierInitFence | Op::ProxyOrder(_) | Op::Control(_) => "",
        register_op!() | barrier_op!() | unit_op!() | jump_op!() => "",
        Op::Book(_) => "",
    }
}

/// The weak accesses of the PTX to objects that the thread accesses only atomically in the program: thread and place.
fn weak_on_atomic(asked: &Asked<'_>) -> Vec<(usize, usize)> {
    let atomic = |t: usize, object: usize| {
        let steps = steps(asked, t);
        steps.iter().all(|step| step.object() != Some(object) || Need::of(step).is_some())
    };
    let weak = |t: usize, op: &Op| is_weak(op) && object(asked, op).is_some_and(|o| atomic(t, o));
    let of = |(t, thread): (usize, &ir::Thread)| {
        let own = thread.body.iter().enumerate().filter(|(_, i)| weak(t, &i.op));
        own.map(|(at, _)| (t, at)).collect::<Vec<_>>()
    };
    asked.compiled.program.threads.iter().enumerate().flat_map(of).collect()
}

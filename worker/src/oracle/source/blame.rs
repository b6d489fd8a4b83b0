//! The class of a finding: what the compiler lost, found by giving it back.
//!
//! The PTX is explored again with all its instructions at the widest scope, then also with the strongest orders. If the
//! forbidden final state or the race is gone under wider scopes alone, a scope was lost; if it takes orders, or `fence.sc`
//! before each instruction, an order was. The instruction is the first one that suffices alone, or the first kind of which all
//! together do. Where no kind does, it is the kinds of which none can be left out.

use super::judge::Asked;
use crate::oracle::refine::Judged;
use moire_program::edit::retarget;
use moire_program::ir::{FenceOrder, Instr, LoadOrder, Op, Order, Program, RmwOrder, Scope, StoreOrder};
use moire_program::{barrier_op, jump_op, register_op, unit_op};
use moire_source::{Access, Space, Step};
use std::collections::BTreeSet;

/// What is given back to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gift {
    Scope,
    Order,
}

/// Stands between the kinds of instructions that are to blame together.
pub(super) const AND: &str = " and ";

/// The class, and the instructions that are to blame.
pub(super) fn class(asked: &Asked<'_>, judged: &Judged) -> Vec<String> {
    match judged {
        Judged::Beyond(_) => beyond(asked),
        Judged::Undefined => vec!["mixed-size".to_owned()],
        Judged::Race if weak_on_atomic(asked) => vec!["weak-access".to_owned()],
        Judged::Race => lost(asked, true).unwrap_or_else(|| vec!["race".to_owned()]),
        Judged::Racy | Judged::Agrees(_) | Judged::Contested(..) | Judged::Progress(_) => Vec::new(),
    }
}

fn beyond(asked: &Asked<'_>) -> Vec<String> {
    if let Some(lost) = lost(asked, false) {
        return lost;
    }
    let fenced = fenced(&asked.compiled.program);
    if asked.search(&fenced, false).is_ok_and(|seen| matches!(seen.judged, Judged::Agrees(_))) {
        return vec!["order-lost".to_owned(), "seq_cst".to_owned()];
    }
    vec![if weak_on_atomic(asked) { "weak-access" } else { "value" }.to_owned()]
}

/// What was lost, and the kinds of instructions that are to blame. With `whole` races have to be gone, too.
fn lost(asked: &Asked<'_>, whole: bool) -> Option<Vec<String>> {
    let all: Vec<(usize, usize)> = places(&asked.compiled.program);
    let name = |(t, at): &(usize, usize)| mnemonic(&asked.compiled.program.threads[*t].body[*at].op);
    let suffices = |some: &[(usize, usize)], gift| suffices(asked, some, gift, whole);
    let gifts = [(Gift::Scope, "scope-lost"), (Gift::Order, "order-lost")];
    let (gift, word) = gifts.into_iter().find(|(gift, _)| suffices(&all, *gift))?;
    let of = |kinds: &[&str]| -> Vec<(usize, usize)> {
        all.iter().filter(|place| kinds.contains(&name(place))).copied().collect()
    };
    let mut kinds: Vec<&str> = all.iter().map(name).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let one = all.iter().find(|place| suffices(&[**place], gift)).map(name);
    let one = one.or_else(|| kinds.iter().find(|kind| suffices(&of(&[**kind]), gift)).copied());
    if let Some(kind) = one {
        kinds = vec![kind];
    }
    for kind in kinds.clone().into_iter().filter(|_| one.is_none()) {
        let rest: Vec<&str> = kinds.iter().filter(|k| **k != kind).copied().collect();
        if suffices(&of(&rest), gift) {
            kinds = rest;
        }
    }
    Some(vec![word.to_owned(), kinds.join(AND)])
}

/// Whether what is lost is there once the instructions of other threads than this one are stronger.
pub(super) fn helps_elsewhere(asked: &Asked<'_>, thread: usize) -> bool {
    let others: Vec<_> =
        places(&asked.compiled.program).into_iter().filter(|place| place.0 != thread).collect();
    suffices(asked, &others, Gift::Order, true)
}

/// Whether what is to blame for one claim is all, or a part, of what is for another.
pub(super) fn within(new: &[Vec<String>], old: &[Vec<String>]) -> bool {
    match (new, old) {
        ([word, kinds], [old_word, old_kinds]) if word == old_word => {
            let of = |set: &[String]| -> BTreeSet<String> {
                set.iter().flat_map(|kinds| kinds.split(AND).map(str::to_owned)).collect()
            };
            of(kinds).is_subset(&of(old_kinds))
        }
        _ => new == old,
    }
}

fn places(program: &Program) -> Vec<(usize, usize)> {
    let of = |(t, thread): (usize, &moire_program::ir::Thread)| {
        let own = thread.body.iter().enumerate().filter(|(_, i)| !mnemonic(&i.op).is_empty());
        own.map(|(at, _)| (t, at)).collect::<Vec<_>>()
    };
    program.threads.iter().enumerate().flat_map(of).collect()
}

/// The program with the widest `fence.sc` before each instruction that orders anything.
fn fenced(program: &Program) -> Program {
    let mut out = program.clone();
    for thread in &mut out.threads {
        let mut at = vec![0; thread.body.len() + 1];
        let mut body = Vec::new();
        for (n, instr) in thread.body.drain(..).enumerate() {
            at[n] = body.len();
            if !mnemonic(&instr.op).is_empty() {
                body.push(Instr::new(Op::Fence { order: FenceOrder::Sc, scope: Scope::Sys }));
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

/// Whether the forbidden final states, and with `whole` races, are gone once these instructions are stronger.
fn suffices(asked: &Asked<'_>, places: &[(usize, usize)], gift: Gift, whole: bool) -> bool {
    let mut stronger = asked.compiled.program.clone();
    for (t, at) in places {
        strengthen(&mut stronger.threads[*t].body[*at].op, gift);
    }
    asked.search(&stronger, whole).is_ok_and(|seen| matches!(seen.judged, Judged::Agrees(_)))
}

fn strengthen(op: &mut Op, gift: Gift) {
    let whole = gift == Gift::Order;
    let plain = matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Fence { .. });
    if let Some(scope) = op.scope_mut().filter(|_| plain) {
        *scope = Scope::Sys;
    }
    match op.order_mut().filter(|_| plain && whole) {
        Some(Order::Load(order @ (LoadOrder::Relaxed(_) | LoadOrder::Volatile))) => {
            *order = LoadOrder::Acquire(Scope::Sys);
        }
        Some(Order::Store(order @ (StoreOrder::Relaxed(_) | StoreOrder::Volatile))) => {
            *order = StoreOrder::Release(Scope::Sys);
        }
        Some(Order::Update(order) | Order::Reduction(order)) => *order = RmwOrder::AcqRel,
        Some(Order::Fence(order)) => *order = FenceOrder::Sc,
        Some(Order::Load(_) | Order::Store(_) | Order::Flag(_)) | None => {}
    }
    if let Op::Rmw { red, .. } = op {
        *red &= !whole;
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

/// Whether the PTX has a weak access to an object whose accesses in the program are all atomic.
fn weak_on_atomic(asked: &Asked<'_>) -> bool {
    let mut plain = vec![false; asked.source.objects.len()];
    let mut todo: Vec<&Step> = asked.source.threads.iter().flat_map(|t| &t.body).collect();
    while let Some(step) = todo.pop() {
        match step {
            Step::If { then, .. } => todo.extend(then),
            Step::Load { object, access: Access::Plain, .. }
            | Step::Store { object, access: Access::Plain, .. } => plain[*object] = true,
            _ => {}
        }
    }
    let named =
        |name: &str| asked.source.objects.iter().position(|o| o.name == name && o.space != Space::Shared);
    let program = &asked.compiled.program;
    program.threads.iter().flat_map(|t| &t.body).any(|instr| {
        let weak = matches!(
            instr.op,
            Op::Load { order: LoadOrder::Weak, .. } | Op::Store { order: StoreOrder::Weak, .. }
        );
        let place = instr.op.place().map(|(_, address)| address.base);
        let symbol = match place {
            Some(moire_program::ir::Operand::Address(s)) => program.symbols.get(s.index()),
            _ => None,
        };
        weak && symbol.and_then(|s| named(&s.name)).is_some_and(|o| !plain[o])
    })
}

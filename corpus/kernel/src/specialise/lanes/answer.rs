//! Lanes that ask together and may get different answers.
//!
//! Lanes that read one flag, or try one phase, by one instruction may see different things. The items of a warp have one
//! answer for all of them. That says enough if the answer steers nothing: whatever it is, the lanes do the same, but for
//! waits for what was asked. Such are a loop that only waits, a try whose answer spares a later wait, and an answer that
//! nobody uses. Here both ways of a branch are walked side by side. Where they do different things, or an answer is an
//! operand, the items rely on one answer for all.

use crate::specialise::item::{Item, Placed};
use crate::specialise::touch::Mem;
use moire_program::ir::*;
use moire_program::registers::{only_registers, uses};
use std::collections::{BTreeMap, BTreeSet};

/// Most pairs of places that are compared for one branch.
const PAIRS: usize = 4_096;

/// The lines at which an answer that several lanes get together steers them.
pub(in crate::specialise) fn steered(items: &[Placed]) -> BTreeSet<u32> {
    let open = open(items);
    if open.is_empty() {
        return BTreeSet::new();
    }
    let walk = Walk { items, labels: labels(items) };
    let shared = |p: &Placed| p.lanes.count_ones() > 1;
    let all = items.iter().enumerate().filter(|(_, p)| shared(p));
    all.filter(|(at, p)| walk.is_steered(*at, p, &open)).map(|(_, p)| p.line).collect()
}

/// The registers whose value is an answer that several lanes got together, or computed from one.
fn open(items: &[Placed]) -> BTreeSet<Reg> {
    let mut out = BTreeSet::new();
    loop {
        let before = out.len();
        for placed in items {
            let Item::Op { op, .. } = &placed.item else { continue };
            let (reads, writes) = uses(op);
            if asks(placed) || only_registers(op) && reads.iter().any(|r| out.contains(r)) {
                out.extend(writes);
            }
        }
        if out.len() == before {
            return out;
        }
    }
}

/// Whether several lanes ask together for what others do. A choice is another assumption.
fn asks(placed: &Placed) -> bool {
    let Item::Op { op, touches } = &placed.item else { return false };
    let chosen = touches.iter().any(|t| matches!(t.mem, Mem::Choice(..)));
    op.is_strong_read() && !chosen && placed.lanes.count_ones() > 1
}

fn labels(items: &[Placed]) -> BTreeMap<u32, usize> {
    let of = |(at, p): (usize, &Placed)| if let Item::Label(l) = p.item { Some((l, at)) } else { None };
    items.iter().enumerate().filter_map(of).collect()
}

/// Two places in the items of a warp, walked side by side.
struct Walk<'w> {
    items: &'w [Placed],
    labels: BTreeMap<u32, usize>,
}

impl Walk<'_> {
    fn is_steered(&self, at: usize, placed: &Placed, open: &BTreeSet<Reg>) -> bool {
        match &placed.item {
            Item::Branch { reg, to } if open.contains(reg) => !self.is_alike(at, self.to(*to), at + 1),
            Item::Op { op, .. } if !only_registers(op) => uses(op).0.iter().any(|r| open.contains(r)),
            _ => false,
        }
    }

    fn to(&self, label: u32) -> usize {
        self.labels.get(&label).copied().unwrap_or(self.items.len())
    }

    /// Whether both ways of the branch at `from` do the same, but for waits.
    fn is_alike(&self, from: usize, yes: usize, no: usize) -> bool {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![(yes, no)]);
        while let Some((a, b)) = todo.pop() {
            let (a, b) = (self.next(a), self.next(b));
            if a == b || !seen.insert((a, b)) {
                continue;
            }
            if seen.len() > PAIRS {
                return false;
            }
            match (self.same(a, b), self.waited_out(a, from), self.waited_out(b, from)) {
                (Some(ways), ..) => todo.extend(ways),
                (None, Some(a), _) => todo.push((a, b)),
                (None, None, Some(b)) => todo.push((a, b)),
                (None, None, None) => return false,
            }
        }
        true
    }

    /// The next item that is no label and no jump.
    fn next(&self, mut at: usize) -> usize {
        for _ in 0..self.items.len() {
            at = match self.items.get(at).map(|p| &p.item) {
                Some(Item::Label(_)) => at + 1,
                Some(Item::Jump(to)) => self.to(*to),
                _ => return at,
            };
        }
        at
    }

    /// Where two items that do the same go on.
    fn same(&self, a: usize, b: usize) -> Option<Vec<(usize, usize)>> {
        let (x, y) = (self.items.get(a)?, self.items.get(b)?);
        if (x.line, x.lanes) != (y.line, y.lanes) {
            return None;
        }
        let on = (a + 1, b + 1);
        match (&x.item, &y.item) {
            (Item::Op { op: o, touches: t }, Item::Op { op: p, touches: u }) => {
                (std::mem::discriminant(&**o) == std::mem::discriminant(&**p) && t == u).then(|| vec![on])
            }
            (Item::Data { write: v, manner: m, touch: t }, Item::Data { write: w, manner: n, touch: u }) => {
                ((v, m, t) == (w, n, u)).then(|| vec![on])
            }
            (Item::Branch { to: s, .. }, Item::Branch { to: t, .. }) => {
                Some(vec![on, (self.to(*s), self.to(*t))])
            }
            (Item::Others { mask: m, to: s }, Item::Others { mask: n, to: t }) if m == n => {
                Some(vec![on, (self.to(*s), self.to(*t))])
            }
            (Item::Exit, Item::Exit) => Some(if x.mask.is_some() { vec![on] } else { Vec::new() }),
            (Item::Met(_), Item::Met(_)) => Some(vec![on]),
            _ => None,
        }
    }

    /// Where a loop that starts at `at` and only waits is left: by the branch `from` itself, or for the same thing.
    fn waited_out(&self, at: usize, from: usize) -> Option<usize> {
        let branch = self.spins(at)?;
        let Item::Branch { to, .. } = &self.items[branch].item else { return None };
        let [yes, no] = [self.next(self.to(*to)), self.next(branch + 1)];
        let again = |way: usize| way == at || self.spins(way) == Some(branch);
        let exit = match (again(yes), again(no)) {
            (true, false) => no,
            (false, true) => yes,
            _ => return None,
        };
        let asked = self.asked(at, branch);
        (branch == from || asked.is_some() && asked == self.asked_before(from)).then_some(exit)
    }

    /// The branch that items which only read and compute lead to.
    fn spins(&self, at: usize) -> Option<usize> {
        let mut at = self.next(at);
        for _ in 0..self.items.len() {
            match &self.items.get(at)?.item {
                Item::Branch { .. } => return Some(at),
                Item::Op { op, .. } if is_idle(op) => at = self.next(at + 1),
                _ => return None,
            }
        }
        None
    }

    /// What is asked for from a place to a branch.
    fn asked(&self, at: usize, branch: usize) -> Option<String> {
        let mut at = self.next(at);
        while at != branch {
            if asks(self.items.get(at)?) {
                return Some(self.question(at));
            }
            at = self.next(at + 1);
        }
        None
    }

    /// What is asked for last before a branch.
    fn asked_before(&self, branch: usize) -> Option<String> {
        let straight = |p: &&Placed| matches!(&p.item, Item::Op { .. });
        let last =
            (0..branch).rev().take_while(|at| straight(&&self.items[*at])).find(|at| asks(&self.items[*at]));
        last.map(|at| self.question(at))
    }

    /// An object and what is asked about it.
    fn question(&self, at: usize) -> String {
        let Item::Op { op, touches } = &self.items[at].item else { return String::new() };
        if let Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(wait), .. }) = &**op {
            format!("{:?} {:?} {:?}", touches, wait.phase, wait.parity)
        } else {
            format!("{touches:?}")
        }
    }
}

/// Whether an instruction only reads what others do, or computes in registers.
fn is_idle(op: &Op) -> bool {
    let reads = matches!(op, Op::Load { .. } | Op::Mbarrier(_)) && op.is_strong_read();
    reads
        || matches!(op, Op::Fence { .. } | Op::ProxyFence(_))
        || (only_registers(op) && !matches!(op, Op::Control(_)))
}

//! The order in which conflicting accesses run, in all executions of a program, and whether edits keep it.
//!
//! The order is text of the model language over the base relations that every engine supplies ([`text`]). A pair has the
//! roles of its accesses, because one instruction may read here and write there. The rule is in the header of the crate.

use moire_cat::Model;
use moire_execution::leaf::{LeafKind, Outcome, Place};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_program::ir::{Factor, Op, Operand, Program, Quantifier, Reg, Tcgen05, ThreadId};
use moire_program::lanes::reduced;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Most outcomes that are compared.
const OUTCOMES: usize = 4_096;
/// Start of the names of the flags.
const PREFIX: &str = "mend-";
/// Names of flags, three each: accesses that conflict, those of them of which the first ran before the second, and those of
/// which the first was issued before the second ran.
const FLAGS: [[&str; 3]; 4] = [
    ["mend-write-read", "mend-write-before-read", "mend-write-issued-read"],
    ["mend-read-write", "mend-read-before-write", "mend-read-issued-write"],
    ["mend-write-write", "mend-write-before-write", "mend-write-issued-write"],
    ["mend-tensor", "mend-tensor-before", "mend-tensor-issued"],
];

/// The model language text that adds the order to the model in `file`, which stands beside it or is shipped.
pub fn text(file: &str) -> String {
    let pairs = ["[W]; loc; [R]", "[R]; loc; [W]", "[W]; loc; [W]", "tc-conflict"];
    let mut out = format!(
        "\"The order of execution\"\ninclude \"{file}\"\nlet mend-strong = [W & (RLX | REL)]; (rf & ext); [R & (RLX | ACQ)]\n\
         let mend-ran = (po | issue | tc-tracked | copy-tracked | mbar-sync | syncbar | sync_cluster | sync_warp | sync_api | mend-strong)+\n\
         let mend-began = mend-ran | issue^-1; mend-ran\nlet mend-access = M \\ IW\n"
    );
    for ([pair, before, issued], relation) in FLAGS.iter().zip(pairs) {
        let set = if relation == "tc-conflict" { "_ * _" } else { "mend-access * mend-access" };
        out += &format!(
            "let {pair}s = (({relation}) & ({set})) \\ id\nflag ~empty {pair}s as {pair}\n\
             flag ~empty {pair}s & mend-ran as {before}\nflag ~empty {pair}s & mend-began as {issued}\n"
        );
    }
    out
}

/// The roles of the accesses of a pair: the position in [`FLAGS`], tensor memory split by what its instructions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Roles {
    WriteRead,
    ReadWrite,
    WriteWrite,
}

type Pair = (Roles, Place, Place);

/// The order of execution of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Conflicting pairs, each with the number of executions that have it, of those in which the first ran before, and of
    /// those in which it was issued before.
    pairs: BTreeMap<Pair, [u64; 3]>,
    /// What executions without a flag end with.
    outcomes: BTreeSet<Outcome>,
}

impl Orders {
    /// The order of `program` under a model with [`text`]. The lines of its instructions are positions in `base`. None if it is
    /// not explored to the end. Also the checks that it took.
    pub fn of(program: &Program, base: &Program, order: &Model, limits: &Limits) -> (Option<Self>, u64) {
        let mut out = Orders::default();
        let mut over = false;
        let few = reduced(program);
        let own = |(t, r): (ThreadId, Reg)| (ThreadId::at(few.first[t.index()]), r);
        let observed: Vec<(ThreadId, Reg)> =
            moire_execution::leaf::observed_registers(program).into_iter().map(own).collect();
        let explored = explore(&few.program, order, &[], limits, &mut |leaf: &mut dyn LeafView| {
            out.add(base, &few.of, leaf);
            if leaf.kind() == LeafKind::Complete && leaf.flags().iter().all(|f| f.starts_with(PREFIX)) {
                out.outcomes.extend(leaf.states().iter().map(|s| s.outcome(&observed)));
            }
            over = out.outcomes.len() > OUTCOMES;
            if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match explored {
            Ok(summary) => ((summary.bounded.is_none() && !over).then_some(out), summary.checks),
            Err(_) => (None, 0),
        }
    }

    /// Adds the pairs of an execution, whose threads are these of the text. Where several stand for a warp, a pair ran in
    /// order only if it did in each of them.
    fn add(&mut self, base: &Program, of: &[usize], leaf: &dyn LeafView) {
        let text =
            |p: Place| Place { thread: u16::try_from(of[usize::from(p.thread)]).unwrap_or(p.thread), ..p };
        let mut seen: BTreeMap<Pair, [bool; 3]> = BTreeMap::new();
        for (kind, names) in FLAGS.iter().enumerate() {
            for (n, name) in names.iter().enumerate() {
                for (a, b) in leaf.pairs(name) {
                    let roles = match kind {
                        0 => Some(Roles::WriteRead),
                        1 => Some(Roles::ReadWrite),
                        2 => Some(Roles::WriteWrite),
                        _ => tensor_roles(base, text(a), text(b)),
                    };
                    if let Some(roles) = roles {
                        seen.entry((roles, a, b)).or_default()[n] = true;
                    }
                }
            }
        }
        let mut here: BTreeMap<Pair, [bool; 3]> = BTreeMap::new();
        for ((roles, a, b), [all, ran, issued]) in seen {
            let has = here.entry((roles, text(a), text(b))).or_insert([all, true, true]);
            *has = [has[0] || all, has[1] && ran, has[2] && issued];
        }
        for (pair, has) in here {
            let count = self.pairs.entry(pair).or_default();
            count.iter_mut().zip(has).for_each(|(count, has)| *count += u64::from(has));
        }
    }

    fn forced(&self, pair: &Pair) -> bool {
        self.pairs.get(pair).is_some_and(|[all, ran, _]| all == ran)
    }

    /// Whether the first was issued before the second ran, in every execution.
    fn issued(&self, pair: &Pair) -> bool {
        self.pairs.get(pair).is_some_and(|[all, _, issued]| all == issued)
    }

    /// Whether edits that lead from this order to `after` are acceptable for `program`.
    pub fn keeps(&self, after: &Orders, program: &Program) -> bool {
        let kept = self.pairs.keys().filter(|p| self.forced(p)).all(|p| after.forced(p));
        let states = program.conditions.iter().any(|c| c.quantifier != Quantifier::Exists);
        let new = after.pairs.keys().filter(|p| after.forced(p) && !self.forced(p));
        let mut new = new.filter(|p| self.pairs.contains_key(*p));
        kept && self.outcomes.is_subset(&after.outcomes)
            && (states || new.all(|(roles, a, b)| self.wanted(*roles, *a, *b)))
    }

    /// Whether `after` forces every order that this one forces, and has no new outcome.
    pub fn loosens(&self, after: &Orders, _: &Program) -> bool {
        let kept = self.pairs.keys().filter(|p| self.forced(p)).all(|p| after.forced(p));
        kept && after.outcomes.is_subset(&self.outcomes)
    }

    /// Whether `a` should run before `b`, which were not ordered.
    fn wanted(&self, roles: Roles, a: Place, b: Place) -> bool {
        let turned = match roles {
            Roles::WriteWrite => Roles::WriteWrite,
            Roles::WriteRead => Roles::ReadWrite,
            Roles::ReadWrite => Roles::WriteRead,
        };
        match (self.issued(&(roles, a, b)), self.issued(&(turned, b, a))) {
            (true, false) => return true,
            (false, true) => return false,
            _ => {}
        }
        let (write, read, write_first) = match roles {
            Roles::WriteWrite => return true,
            Roles::WriteRead => (a, b, true),
            Roles::ReadWrite => (b, a, false),
        };
        let earlier = self.pairs.keys().filter(|(roles, w, r)| {
            *roles == Roles::WriteRead
                && *r == read
                && *w != write
                && self.forced(&(Roles::WriteRead, *w, read))
                && self.forced(&(Roles::WriteWrite, *w, write))
        });
        let earlier: Vec<Place> = earlier.map(|p| p.1).collect();
        if earlier.is_empty() {
            return write_first != self.crossed(write, read);
        }
        let taken = self.pairs.keys().any(|(roles, w, r)| {
            *roles == Roles::WriteRead
                && earlier.contains(w)
                && r.thread == read.thread
                && r.line < read.line
                && self.forced(&(Roles::WriteRead, *w, *r))
                && self.forced(&(Roles::ReadWrite, *r, write))
        });
        let later = self.pairs.keys().any(|(roles, w, r)| {
            *roles == Roles::WriteRead
                && *w == write
                && r.thread == read.thread
                && r.line > read.line
                && self.forced(&(Roles::WriteRead, write, *r))
        });
        match (taken, later) {
            (false, _) => !write_first,
            (true, false) => write_first,
            (true, true) => true,
        }
    }

    /// Whether the thread of the read overwrites behind it what the thread of the write read before. Not both of two such threads
    /// can read what the other one writes, but both can read what was there.
    fn crossed(&self, write: Place, read: Place) -> bool {
        self.pairs.keys().any(|(roles, w, r)| {
            *roles == Roles::WriteRead
                && (w.thread, r.thread) == (read.thread, write.thread)
                && read.line < w.line
                && r.line < write.line
                && !self.forced(&(Roles::WriteRead, *w, *r))
                && !self.forced(&(Roles::ReadWrite, *r, *w))
        })
    }
}

/// The roles of two instructions at tensor memory. None where one of them both reads and writes there.
fn tensor_roles(program: &Program, a: Place, b: Place) -> Option<Roles> {
    let (x, y) = (op(program, a)?, op(program, b)?);
    match (reads_tensor(x, y), reads_tensor(y, x)) {
        (true, false) => Some(Roles::ReadWrite),
        (false, true) => Some(Roles::WriteRead),
        (false, false) => Some(Roles::WriteWrite),
        (true, true) => None,
    }
}

fn op(program: &Program, place: Place) -> Option<&Op> {
    let at = usize::try_from(place.line).ok()?.checked_sub(1)?;
    program.threads.get(usize::from(place.thread))?.body.get(at).map(|i| &i.op)
}

/// Whether an instruction only reads what it shares with the other one: a load, or a product whose first factor is in
/// columns that the other names and whose accumulator is not.
fn reads_tensor(op: &Op, other: &Op) -> bool {
    let Op::Tcgen05(Tcgen05::Mma(mma)) = op else { return matches!(op, Op::Tcgen05(Tcgen05::Load(_))) };
    let named = target(other);
    let a = match &mma.a {
        Factor::Tensor(addr) => Some(addr.base),
        Factor::Shared(_) => None,
    };
    named.is_some() && a == named && Some(mma.d.base) != named
}

/// The base of the columns that an instruction writes.
fn target(op: &Op) -> Option<Operand> {
    let Op::Tcgen05(op) = op else { return None };
    match op {
        Tcgen05::Store(store) => Some(store.addr.base),
        Tcgen05::Copy { dst, .. } => Some(dst.base),
        Tcgen05::Mma(mma) => Some(mma.d.base),
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => None,
        Tcgen05::Load(_) | Tcgen05::Shift { .. } | Tcgen05::WaitLoad | Tcgen05::WaitStore => None,
        Tcgen05::Commit(_) | Tcgen05::FenceBefore | Tcgen05::FenceAfter => None,
    }
}

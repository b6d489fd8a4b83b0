//! The state of a thread that is run on its own: the program around it, and how far one path has come.

use super::arith::low;
use super::event::{Event, Path, Stop, UNKNOWN};
use super::exchange::Pool;
use super::flow::Flow;
use super::lanes::Lanes;
use super::motion::Fleet;
use super::pairs::Events;
use super::space::Memory;
use super::tags::bit;
use moire_cat::vocabulary::sets;
use moire_program::ir::{Address, Operand, Program, Reg, Scope};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Values a cell may hold, by cell.
pub(super) type Domain = Vec<BTreeSet<u128>>;

/// Settings of the model and limits that decide which paths there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// A 128-bit load or store is one operation.
    pub(super) wide_whole: bool,
    /// A failed `cas` writes the old value back.
    pub(super) failed_cas_writes: bool,
    /// Whether a token that an `if` yields stands for the tokens of both arms (switch TOKIF=B).
    pub(super) both_arms: bool,
    /// A product does nothing in lanes of the accumulator that are masked off.
    pub(super) masks: bool,
    /// Backward jumps of one instruction.
    pub(super) loop_bound: u32,
    /// Paths of one thread.
    pub(super) paths: usize,
}

/// All paths of one thread, and the events of those that were cut at the loop bound.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) paths: Vec<Path>,
    pub(super) cut: Vec<Vec<Rc<Event>>>,
}

impl Paths {
    /// The events of each path. What a path writes before it is cut may be read elsewhere, and by the paths that end.
    pub(super) fn events(&self) -> impl Iterator<Item = &Vec<Rc<Event>>> {
        self.paths.iter().map(|path| &path.events).chain(&self.cut)
    }
}

/// At a loop head: events so far, the next number, live registers.
pub(super) type Visit = (usize, u16, Vec<(Reg, u128)>);

/// Events that a token stands for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    pub(super) ever: Events,
    pub(super) nearest: Events,
    /// Reads that decided which token it is.
    pub(super) chosen_by: Events,
}

impl Before {
    pub(super) fn and(self, other: Before) -> Before {
        Before {
            ever: self.ever | other.ever,
            nearest: self.nearest | other.nearest,
            chosen_by: self.chosen_by | other.chosen_by,
        }
    }
}

/// A path that is not at its end yet.
#[derive(Clone)]
pub(super) struct State {
    pub(super) pc: usize,
    pub(super) regs: Vec<(u128, Events)>,
    pub(super) events: Vec<Rc<Event>>,
    pub(super) next: u16,
    pub(super) control: Events,
    /// See [`Runner::hold`].
    pub(super) held: Events,
    /// Branches still open: reads they depend on, where they meet.
    pub(super) open: Vec<(Events, usize)>,
    /// By loop head: the latest visit.
    pub(super) seen: BTreeMap<usize, Visit>,
    pub(super) jumps: BTreeMap<usize, u32>,
    pub(super) instructions: usize,
    pub(super) lanes: Lanes,
    /// Whether the current instruction runs for some lanes only; the others join again behind it.
    pub(super) aside: bool,
    pub(super) fleet: Fleet,
    pub(super) flags: BTreeSet<&'static str>,
    /// Loads from tensor memory by number, with their registers that have not been read yet.
    pub(super) unread: Vec<(usize, Vec<Reg>)>,
    pub(super) tokens: BTreeMap<Reg, Before>,
}

/// Runs one thread.
pub(super) struct Runner<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a Memory<'a>,
    pub(super) thread: usize,
    pub(super) flow: &'a Flow,
    pub(super) domain: &'a Domain,
    /// What threads give at exchanges.
    pub(super) pool: &'a Pool,
    pub(super) rules: Rules,
}

impl Runner<'_> {
    pub(super) fn operand(&self, s: &State, o: Operand) -> (u128, Events) {
        match o {
            Operand::Reg(r) => {
                let (value, deps) = s.regs[r.index()];
                (s.lanes.of_register(r).unwrap_or(value), deps)
            }
            Operand::Imm(v) => (u128::from_ne_bytes(v.to_ne_bytes()), 0),
            Operand::Address(symbol) => (self.memory.base(symbol, self.thread), 0),
        }
    }

    /// An event at this point of the path.
    pub(super) fn event(&self, s: &State, tags: u128, scope: Option<Scope>) -> Event {
        let scope_tag = scope.map_or(0, |scope| {
            bit(match scope {
                Scope::Cta => sets::CTA,
                Scope::Cluster => sets::CLUSTER,
                Scope::Gpu => sets::GPU,
                Scope::Sys => sets::SYS,
            })
        });
        let host = if self.program.threads[self.thread].place.host { bit(sets::HOST) } else { 0 };
        Event {
            pc: s.pc,
            index: 0,
            tags: tags | bit(sets::ANY) | scope_tag | host,
            scope,
            range: None,
            cells: Vec::new(),
            reads_first: None,
            piece: None,
            address: 0,
            data: 0,
            control: s.control,
            nearby: s.open.iter().fold(0, |all, (deps, _)| all | deps),
            held: s.held,
            barrier: None,
            count: None,
            effect: None,
            seizes: None,
            home: None,
            lanes: s.lanes.active,
            arms: s.lanes.arms(),
            motion: None,
            sphere: None,
            turn: s.instructions,
            token: 0,
            token_nearest: 0,
        }
    }

    /// Appends an event; returns its position in the path.
    pub(super) fn push(s: &mut State, mut e: Event) -> usize {
        e.index = s.next;
        s.next += 1;
        s.events.push(Rc::new(e));
        s.events.len() - 1
    }

    pub(super) fn end(&self, mut s: State, stop: Stop, out: &mut Paths) {
        if stop == Stop::Done && self.program.launched {
            let exit = self.event(&s, bit(sets::EXIT), None);
            Self::push(&mut s, exit);
        }
        let regs = s.regs.into_iter().map(|r| if r.1 & UNKNOWN == 0 { r.0 } else { 0 }).collect();
        let (events, flags) = (s.events, s.flags);
        out.paths.push(Path { events, control: s.control, held: s.held, regs, flags, stop, next: s.next });
    }

    /// The address an operand gives.
    pub(super) fn address(&self, s: &State, addr: &Address) -> u128 {
        let offset = u128::from_ne_bytes(i128::from(addr.offset).to_ne_bytes());
        low(self.operand(s, addr.base).0.wrapping_add(offset), 64)
    }
}

//! What all steps of a run share: the program, the readings, the records and the findings.

use crate::carrier::{Carrier, Carriers, Own, row};
use crate::finding::{Condition, FINDINGS, Finding, Kind, Stop};
use crate::flow::Flows;
use crate::forget::Needs;
use crate::layout::{Layout, Span};
use crate::planted::Planted;
use crate::record::{Key, Object, Universe, What};
use crate::rows::{self, Rows, both};
use crate::schedule::Schedule;
use crate::settings::Settings;
use crate::state::{Mbarrier, State, ThreadState};
use crate::trips::{Classes, Loops};
use crate::value::Val;
use moire_program::ir::{Address, Instr, Op, Operand, Program, RegInit};
use std::collections::BTreeSet;
use std::rc::Rc;

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// `dealloc` and `relinquish` of a pair wait for the other CTA.
    pub(crate) together: bool,
    /// Every instance of a copy is a record of its own: for programs without free loops.
    pub(crate) instances: bool,
    /// The rule that is weakened.
    pub(crate) planted: Option<Planted>,
    /// Completions are steps of their own, and each thread may run at any time.
    pub(crate) every_order: bool,
    /// The schedule, unless every order is tried.
    pub(crate) schedule: Schedule,
}

pub(crate) struct Engine<'a> {
    pub(crate) program: &'a Program,
    pub(crate) settings: &'a Settings,
    pub(crate) mode: Mode,
    pub(crate) layout: &'a Layout,
    pub(crate) flows: &'a Flows,
    pub(crate) loops: &'a Loops,
    pub(crate) universe: Universe,
    pub(crate) carriers: Carriers,
    pub(crate) findings: BTreeSet<Finding>,
    /// Mbarriers that some instruction invalidates may be invalidated.
    pub(crate) invalidates: bool,
    /// Threads that waited at each mbarrier so far, and threads that arrived.
    pub(crate) waiters: BTreeSet<(Object, usize)>,
    pub(crate) arrivers: BTreeSet<(Object, usize)>,
    /// What must be known before records can be dropped. None while a first run learns which there are.
    pub(crate) needs: Option<Rc<Needs>>,
    /// Instructions executed.
    pub(crate) steps: u64,
    /// A thread that waits has done something since this was last asked: it arrived, or called another CTA.
    pub(crate) arrived: bool,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        program: &'a Program,
        settings: &'a Settings,
        mode: Mode,
        (layout, flows, loops): (&'a Layout, &'a Flows, &'a Loops),
        words: usize,
    ) -> Self {
        let all = || program.threads.iter().flat_map(|t| &t.body);
        let invalidates = all().any(
            |i| matches!(&i.op, Op::Mbarrier(m) if matches!(m.op, moire_program::ir::MbarrierOp::Inval)),
        );
        Engine {
            program,
            settings,
            mode,
            layout,
            flows,
            loops,
            universe: Universe::new(words, layout.ctas.len()),
            carriers: Carriers::new(layout.ctas.len(), program.threads.len()),
            findings: BTreeSet::new(),
            invalidates,
            waiters: BTreeSet::new(),
            arrivers: BTreeSet::new(),
            needs: None,
            steps: 0,
            arrived: false,
        }
    }

    /// The state before the first instruction.
    pub(crate) fn start(&mut self) -> Result<State, Stop> {
        let threads = self.program.threads.iter().enumerate().map(|(t, thread)| ThreadState {
            pc: 0,
            regs: thread
                .regs
                .iter()
                .map(|r| match &r.init {
                    RegInit::Value(value) => Val::Known(*value),
                    RegInit::Address(symbol) => Val::Known(self.layout.address(*symbol, t)),
                    RegInit::Lane if thread.place.several() && thread.place.joined => Val::Lane,
                    RegInit::Lane if thread.place.several() => Val::Unknown,
                    RegInit::Lane => Val::Known(u128::from(thread.place.lane().unwrap_or(0))),
                })
                .collect(),
            active: thread.place.lanes(),
            arms: Vec::new(),
            exited: false,
            held: false,
            met: false,
            loads: Vec::new(),
            products: Default::default(),
            copies: 0,
            allocations: 0,
            awaits: false,
            inside: Vec::new(),
        });
        let mut state = State {
            threads: threads.collect(),
            mbarriers: Default::default(),
            meetings: Default::default(),
            clusters: Default::default(),
            columns: Vec::new(),
            calls: Default::default(),
            suspects: BTreeSet::new(),
            relinquished: BTreeSet::new(),
            contents: Default::default(),
            live: vec![0; self.universe.words],
            rows: Rows::new(self.universe.words),
            classes: Classes::new(self.loops),
            demoted: BTreeSet::new(),
            waited: None,
            doubtful: false,
            pending: Vec::new(),
        };
        if self.program.launched {
            for cta in 0..self.layout.ctas.len() {
                let started = self.fact(usize::MAX, What::Started(cta), 0)?;
                rows::insert(&mut state.live, started);
                for t in &self.layout.ctas[cta] {
                    state.rows.set(self.carriers.thread(*t) + row::FACTS, started);
                }
            }
        }
        Ok(state)
    }

    /// The record of a fact, without an instance number.
    pub(crate) fn fact(&mut self, thread: usize, what: What, line: u32) -> Result<usize, Stop> {
        self.record(Key { thread, what, instance: 0 }, line)
    }

    pub(crate) fn record(&mut self, key: Key, line: u32) -> Result<usize, Stop> {
        self.universe.number(key, line, self.layout, self.settings)
    }

    /// How much the run has learnt beside its state; none of it is ever forgotten.
    pub(crate) fn learnt(&self) -> [usize; 4] {
        [self.universe.keys.len(), self.findings.len(), self.waiters.len(), self.arrivers.len()]
    }

    /// Whether a bug is planted.
    pub(crate) fn has(&self, planted: Planted) -> bool {
        self.mode.planted == Some(planted)
    }

    fn add(&mut self, finding: Finding) {
        debug_assert!(!finding.text.is_empty(), "a finding says what it is");
        let new = || self.findings.iter().all(|f| f.kind != finding.kind);
        if self.findings.len() < FINDINGS || new() {
            self.findings.insert(finding);
        }
    }

    /// Adds a finding about instructions.
    pub(crate) fn find(&mut self, kind: Kind, text: String, places: Vec<(usize, u32)>) {
        self.add(Finding { kind, condition: None, text, places });
    }

    /// Adds the violation of a condition.
    pub(crate) fn broken(&mut self, condition: Condition, text: String, places: Vec<(usize, u32)>) {
        let unchecked = match condition {
            Condition::Observed => Planted::Unobserved,
            Condition::Lapped => Planted::Lapped,
            Condition::Generation => Planted::Generations,
            Condition::Expected => Planted::Expected,
            Condition::Passed => Planted::Passed,
        };
        if self.has(unchecked) {
            return;
        }
        let kind = Kind::Protocol;
        self.add(Finding { kind, condition: Some(condition), text, places });
    }

    /// The name of an object with its CTA.
    pub(crate) fn name_of(&self, span: &Span) -> String {
        let copy = self.layout.copies[span.copy];
        let name = &self.program.objects[copy.object].name;
        let cta = match copy.cta {
            Some(cta) if self.layout.ctas.len() > 1 => format!("@cta{}", self.place(cta)),
            _ => String::new(),
        };
        let offset = if span.offset > 0 { format!("+{}", span.offset) } else { String::new() };
        format!("{name}{cta}{offset}")
    }

    pub(crate) fn name_of_object(&self, object: Object) -> String {
        self.name_of(&Span { copy: object.copy, offset: object.offset, bytes: 8 })
    }

    /// The number that the text gives a CTA.
    pub(crate) fn place(&self, cta: usize) -> u16 {
        self.program.threads[self.layout.ctas[cta][0]].place.cta
    }

    pub(crate) fn thread_name(&self, thread: usize) -> &str {
        &self.program.threads[thread].name
    }
}

/// One instruction of one thread.
#[derive(Clone, Copy)]
pub(crate) struct At<'p> {
    pub(crate) thread: usize,
    pub(crate) cta: usize,
    pub(crate) instr: &'p Instr,
    /// Lanes that execute it.
    pub(crate) lanes: u32,
}

impl At<'_> {
    pub(crate) fn line(&self) -> u32 {
        self.instr.line
    }

    pub(crate) fn place(&self) -> (usize, u32) {
        (self.thread, self.instr.line)
    }

    pub(crate) fn abstain(&self, what: impl Into<String>) -> Stop {
        Stop::abstain(what, self.instr.line)
    }
}

/// The value of an operand.
pub(crate) fn operand(e: &Engine<'_>, s: &State, thread: usize, operand: Operand) -> Val {
    match operand {
        Operand::Reg(reg) => s.threads[thread].regs[reg.index()],
        Operand::Imm(value) => Val::Known(value.cast_unsigned()),
        Operand::Address(symbol) => Val::Known(e.layout.address(symbol, thread)),
    }
}

/// The value of an operand that must be known.
pub(crate) fn known(e: &Engine<'_>, s: &State, at: At<'_>, of: Operand) -> Result<u128, Stop> {
    let value = operand(e, s, at.thread, of).known();
    value.ok_or_else(|| at.abstain("an operand that comes from memory or differs among lanes"))
}

/// An address that must be known.
pub(crate) fn address(e: &Engine<'_>, s: &State, at: At<'_>, of: &Address) -> Result<u128, Stop> {
    let base = known(e, s, at, of.base)?;
    let sum = base.wrapping_add(i128::from(of.offset).cast_unsigned());
    Ok(crate::value::low(sum, 64))
}

/// The bytes that an address names; they must be there.
pub(crate) fn span(e: &Engine<'_>, s: &State, at: At<'_>, of: &Address, bytes: u32) -> Result<Span, Stop> {
    let value = address(e, s, at, of)?;
    let span = e.layout.locate(value, bytes);
    span.ok_or_else(|| at.abstain("an address outside every object"))
}

/// The mbarrier that an address names.
pub(crate) fn object(e: &Engine<'_>, s: &State, at: At<'_>, of: &Address) -> Result<Object, Stop> {
    let value = address(e, s, at, of)?;
    object_at(e, at, value)
}

/// The mbarrier at an address.
pub(crate) fn object_at(e: &Engine<'_>, at: At<'_>, value: u128) -> Result<Object, Stop> {
    let span = e.layout.locate(value, 8).filter(|span| span.offset % 8 == 0);
    let span = span.filter(|span| e.layout.owner(span).is_some());
    let span = span.ok_or_else(|| at.abstain("an mbarrier outside shared memory, or not aligned"))?;
    Ok(Object { copy: span.copy, offset: span.offset })
}

/// The CTA an mbarrier belongs to.
pub(crate) fn home(e: &Engine<'_>, object: Object) -> usize {
    debug_assert!(e.layout.copies[object.copy].cta.is_some(), "an mbarrier is in shared memory");
    e.layout.copies[object.copy].cta.unwrap_or(0)
}

/// Makes a record stand for a new instance: nothing knows it any more.
pub(crate) fn renew(s: &mut State, record: usize) {
    debug_assert!(record < 64 * s.live.len(), "a record has a bit");
    if rows::has(&s.live, record) {
        forget(s, record);
    }
    rows::insert(&mut s.live, record);
}

fn forget(s: &mut State, record: usize) {
    s.rows.forget_bit(record);
    s.pending.iter_mut().for_each(|(_, vector)| vector.forget_bit(record));
}

/// Removes a record.
pub(crate) fn drop_record(s: &mut State, record: usize) {
    if rows::has(&s.live, record) {
        forget(s, record);
        s.live[record / 64] &= !(1 << (record % 64));
    }
}

/// Removes records.
pub(crate) fn drop_records(s: &mut State, set: &[u64]) {
    if !rows::meet(set, &s.live) {
        return;
    }
    s.rows.forget_all(set);
    s.pending.iter_mut().for_each(|(_, vector)| vector.forget_all(set));
    s.live.iter_mut().zip(set).for_each(|(live, gone)| *live &= !gone);
}

/// Makes a record stand for what another one stands for, too: both are known where each of them is.
pub(crate) fn join(s: &mut State, record: usize, other: usize) {
    s.rows.meet_bit(record, other);
    s.pending.iter_mut().for_each(|(_, vector)| vector.meet_bit(record, other));
}

/// What was known of a record is known of another one that takes its place.
pub(crate) fn rename(s: &mut State, from: usize, to: usize) {
    debug_assert!(rows::has(&s.live, from), "what stands for nothing takes no place");
    s.rows.rename_bit(from, to);
    s.pending.iter_mut().for_each(|(_, vector)| vector.rename_bit(from, to));
    s.live[from / 64] &= !(1 << (from % 64));
    rows::insert(&mut s.live, to);
}

/// Whether a thread knows a record in a row of its vector.
pub(crate) fn knows(e: &Engine<'_>, s: &State, thread: usize, row: usize, record: usize) -> bool {
    s.rows.has(e.carriers.thread(thread) + row, record)
}

/// What a thread hands on at an ordinary operation: the rows of a vector one after another.
pub(crate) fn published(e: &Engine<'_>, s: &State, thread: usize) -> Rows {
    let (first, count, words) = (e.carriers.thread(thread), e.carriers.vector(), s.rows.words);
    debug_assert_eq!(words, e.universe.words, "rows are as wide as there are records");
    let mut out = Rows::new(words);
    for at in 0..count {
        out.add(at, &s.rows.get(first + at));
    }
    out.add(row::ORDERED, &s.rows.get(e.carriers.own(thread, Own::Before)));
    if e.settings.bare_waits || e.has(Planted::FreeBefore) {
        out.add(row::ORDERED, &s.rows.get(e.carriers.own(thread, Own::Waited)));
    }
    out.add(row::ISSUED, &s.rows.get(e.carriers.own(thread, Own::IssuedBefore)));
    if e.settings.lanes_order_life {
        out.add(row::MET, &both(&s.rows.get(first + row::BASE), &e.universe.sets.lives));
    }
    out
}

/// Adds a vector to the rows of a carrier.
pub(crate) fn deliver(e: &mut Engine<'_>, s: &mut State, carrier: Carrier, vector: &Rows) {
    debug_assert_eq!(vector.words, s.rows.words, "vectors of one run are equally wide");
    let first = e.carriers.first(carrier);
    for at in 0..e.carriers.vector() {
        s.rows.add(first + at, &vector.get(at));
    }
}

/// A vector of a carrier.
pub(crate) fn vector(e: &Engine<'_>, s: &State, first: usize) -> Rows {
    let mut out = Rows::new(s.rows.words);
    for at in 0..e.carriers.vector() {
        out.add(at, &s.rows.get(first + at));
    }
    out
}

/// Empties a vector.
pub(crate) fn empty(e: &Engine<'_>, s: &mut State, first: usize) {
    let none = vec![0; s.rows.words];
    for at in 0..e.carriers.vector() {
        s.rows.replace(first + at, &none);
    }
}

/// How a vector reaches a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// The order of tensor memory passes.
    pub(crate) ordered: bool,
    /// The levels pass.
    pub(crate) levels: bool,
    /// Of the order of tensor memory, what is complete passes.
    pub(crate) completed: bool,
    /// Of the levels, the life of mbarriers passes.
    pub(crate) met: bool,
}

/// Adds a vector to what a thread knows.
pub(crate) fn learn(e: &Engine<'_>, s: &mut State, thread: usize, vector: &Rows, reach: Reach) {
    debug_assert!(!s.threads[thread].exited, "who has exited learns nothing");
    debug_assert_eq!(vector.words, s.rows.words, "vectors of one run are equally wide");
    let first = e.carriers.thread(thread);
    s.rows.add(first + row::FACTS, &vector.get(row::FACTS));
    if reach.ordered {
        s.rows.add(first + row::ORDERED, &vector.get(row::ORDERED));
        s.rows.add(first + row::ISSUED, &vector.get(row::ISSUED));
    }
    if reach.completed {
        s.rows.add(first + row::ORDERED, &vector.get(row::ORDERED));
    }
    if reach.met {
        s.rows.add(first + row::MET, &vector.get(row::MET));
    }
    if reach.levels {
        for at in row::BASE..e.carriers.vector() {
            s.rows.add(first + at, &vector.get(at));
        }
    }
}

/// A new mbarrier.
pub(crate) fn fresh_mbarrier(count: u32) -> Mbarrier {
    Mbarrier { valid: true, count, pending: count, tx: 0, phase: 0, observed_by_all: false }
}

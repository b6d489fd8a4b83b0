//! Exchanges among threads of one warp, and elections: a path for each answer that the other threads may bring about.
//!
//! What each thread gives at an exchange is collected from its paths, round by round, as values of memory are. A path assumes who
//! comes and what they give, which `barriers` compares with the generation that is formed.

use super::arith::{alu, low};
use super::event::{Barrier, Refusal, Stop};
use super::lanes::bits;
use super::pairs::Events;
use super::state::{Paths, Runner, State};
use super::tags::bit;
use moire_cat::vocabulary::sets;
use moire_execution::leaf::flag;
use moire_program::ir::{
    AluOp, AtomOp, Collective, Control, Exchange, Instr, Op, Operand, Shuffle, Tcgen05, Thread, Vote,
};
use std::collections::{BTreeMap, BTreeSet};

/// Why lanes meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Election,
    Values(Exchange),
    /// The whole warp executes the instruction of this name.
    Whole(&'static str),
}

/// Which exchange: its form and its mask.
pub(super) type Circle = (Form, u32);

/// What the lanes of one thread give: these lanes, those whose predicate holds, a value, and where a shuffle takes its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gift {
    pub(super) lanes: u32,
    pub(super) votes: u32,
    pub(super) value: u32,
    pub(super) from: [u32; 2],
}

/// What a thread may give at an exchange, by thread.
pub(super) type Pool = BTreeMap<(usize, Circle), BTreeSet<Gift>>;

/// The answer of an exchange: a value, a second predicate, and whether the value is that of a lane which is not there.
pub(super) type Answer = (u32, bool, bool);

/// Whether a thread is one of those that meet.
pub(super) fn takes_part(thread: &Thread, (form, mask): Circle) -> bool {
    let has = |name: &str| thread.body.iter().any(|i| i.op.extended() == Some(name));
    match form {
        Form::Whole(name) => has(name),
        Form::Election | Form::Values(_) => thread.place.mask == 0 || thread.place.mask & mask != 0,
    }
}

/// Other threads of the warp that take part.
fn others(run: &Runner<'_>, circle: Circle) -> Vec<usize> {
    let own = &run.program.threads[run.thread].place;
    let near = |t: &usize| {
        let place = &run.program.threads[*t].place;
        *t != run.thread && run.memory.cta[*t] == run.memory.cta[run.thread] && place.warp == own.warp
    };
    let named = |t: &usize| {
        let thread = &run.program.threads[*t];
        thread.place.mask != 0 && takes_part(thread, circle)
    };
    (0..run.program.threads.len()).filter(|t| own.mask != 0 && near(t) && named(t)).collect()
}

/// Whether an instruction is an election in which other threads take part.
pub(super) fn waits(run: &Runner<'_>, s: &State, op: &Op) -> bool {
    matches!(op, Op::Control(Control::Elect { mask, .. })
        if !others(run, (Form::Election, narrow(run.operand(s, *mask).0))).is_empty())
}

fn narrow(value: u128) -> u32 {
    u32::try_from(low(value, 32)).unwrap_or(0)
}

/// Adds the paths on which an exchange is passed, one for each answer, and the one on which it never is.
pub(super) fn exchange(
    run: &Runner<'_>,
    mut s: State,
    instr: &Instr,
    todo: &mut Vec<State>,
    out: &mut Paths,
) -> Result<(), Refusal> {
    let (circle, gift, data) = mine(run, &s, instr)?;
    let placed = run.program.threads[run.thread].place.mask != 0;
    if placed && s.lanes.active & !circle.1 != 0 {
        s.flags.insert(flag::MASK);
    }
    let others = others(run, circle);
    let outside = placed && s.lanes.active & circle.1 == 0;
    if others.is_empty() || outside {
        let (value, second, nobody) = answer(circle, &gift, &[gift]);
        return hand_back(s, instr, ((value, second, nobody && !outside), data), todo);
    }
    let all = others.len() + 1;
    if s.lanes.others_to_run() {
        return Err(Refusal::Unsupported("a wait in one of two arms".into()));
    }
    let mut companies: Vec<Vec<Gift>> = vec![vec![gift]];
    for other in others {
        let gifts: Vec<Gift> = run.pool.get(&(other, circle)).into_iter().flatten().copied().collect();
        let with = |c: &Vec<Gift>| -> Vec<Vec<Gift>> {
            gifts.iter().map(|g| c.iter().copied().chain([*g]).collect()).collect()
        };
        let more: Vec<Vec<Gift>> = companies.iter().flat_map(with).collect();
        companies.extend(more);
        if companies.len() > run.rules.paths {
            return Err(Refusal::TooMany("ways to take part in an exchange"));
        }
    }
    // Where nobody gives the value because somebody has exited, there is no path: the program is refused by the explorer.
    let given = |c: &Vec<Gift>| Some(answer(circle, &gift, c)).filter(|a| !a.2 || c.len() == all);
    let answers: BTreeSet<Answer> = companies.iter().filter_map(given).collect();
    let arrival = |s: &mut State, answer: Answer| {
        let mut e = run.event(s, bit(sets::B) | bit(sets::COLLECTIVE), None);
        e.data = data;
        e.barrier = Some(Barrier::Exchange { circle, gift, answer });
        Runner::push(s, e);
    };
    let mut stuck = s.clone();
    arrival(&mut stuck, (0, false, false));
    run.end(stuck, Stop::AtBarrier, out);
    for answer in answers {
        let mut next = s.clone();
        arrival(&mut next, answer);
        hand_back(next, instr, (answer, data), todo)?;
    }
    Ok(())
}

/// Waits for the other threads of the warp that have the instruction, which the whole warp executes (`.sync.aligned`).
pub(super) fn whole(run: &Runner<'_>, s: &mut State, instr: &Instr, out: &mut Paths) -> Result<(), Refusal> {
    let single =
        |op: &Tcgen05| op.by_one_thread() || matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter);
    let whole = matches!(&instr.op, Op::Tcgen05(op) if !single(op)) || matches!(instr.op, Op::Wgmma(_));
    let name = instr.op.extended().filter(|_| whole);
    let Some(circle) = name.map(|name| (Form::Whole(name), u32::MAX)) else { return Ok(()) };
    if run.program.threads[run.thread].place.mask == 0 || others(run, circle).is_empty() {
        return Ok(());
    }
    if s.lanes.others_to_run() {
        return Err(Refusal::Unsupported("a wait in one of two arms".into()));
    }
    let gift = Gift { lanes: s.lanes.active, votes: 0, value: 0, from: [0; 2] };
    let mut e = run.event(s, bit(sets::B) | bit(sets::COLLECTIVE), None);
    e.barrier = Some(Barrier::Exchange { circle, gift, answer: (0, false, false) });
    Runner::push(s, e);
    run.end(s.clone(), Stop::AtBarrier, out);
    s.instructions += 1;
    Ok(())
}

/// What the active lanes give.
fn mine(run: &Runner<'_>, s: &State, instr: &Instr) -> Result<(Circle, Gift, Events), Refusal> {
    let lanes = s.lanes.active;
    let mut gift = Gift { lanes, votes: 0, value: 0, from: [0; 2] };
    if let Op::Control(Control::Elect { mask, .. }) = &instr.op {
        let (mask, data) = run.operand(s, *mask);
        return Ok(((Form::Election, narrow(mask)), gift, data));
    }
    let Op::Control(Control::Collective(c)) = &instr.op else {
        return Err(Refusal::Unsupported("this exchange".into()));
    };
    let ((value, a), (mask, b)) = (run.operand(s, c.src), run.operand(s, c.mask));
    let (by, clamp) = (run.operand(s, c.from[0]), run.operand(s, c.from[1]));
    (gift.value, gift.from) = (narrow(value), [narrow(by.0), narrow(clamp.0)]);
    gift.votes = votes(run, s, c);
    if lanes.count_ones() > 1 && lane_by_lane(c.form, gift.from) {
        return Err(Refusal::Unsupported("an exchange that differs among lanes of a thread".into()));
    }
    Ok(((Form::Values(c.form), narrow(mask)), gift, a | b | by.1 | clamp.1))
}

fn votes(run: &Runner<'_>, s: &State, c: &Collective) -> u32 {
    let value = |lane: usize| match c.src {
        Operand::Reg(r) => s.lanes.columns.get(&r).map_or(s.regs[r.index()].0, |column| column[lane]),
        other => run.operand(s, other).0,
    };
    bits(s.lanes.active).filter(|lane| (value(*lane) != 0) != c.negated).fold(0, |all, lane| all | 1 << lane)
}

/// Whether the lanes of one thread may get different answers.
fn lane_by_lane(form: Exchange, from: [u32; 2]) -> bool {
    match form {
        Exchange::MatchAny => true,
        Exchange::Shuffle(way) => way != Shuffle::Index || from[1] & 0x1f00 != 0,
        _ => false,
    }
}

/// The next state of a thread that has its answer.
fn hand_back(
    mut s: State,
    instr: &Instr,
    ((value, second, nobody), data): (Answer, Events),
    todo: &mut Vec<State>,
) -> Result<(), Refusal> {
    if nobody {
        return Err(Refusal::Unsupported("a shuffle from a lane that does not take part".into()));
    }
    let first = s.lanes.lane();
    let mut set = |reg: moire_program::ir::Reg, value: u128| {
        s.regs[reg.index()] = (value, data);
        s.lanes.assigned(reg);
    };
    if let Op::Control(Control::Collective(c)) = &instr.op {
        set(c.dst, u128::from(value));
        c.pred.iter().for_each(|p| set(*p, u128::from(second)));
    } else if let Op::Control(Control::Elect { dst, pred, .. }) = &instr.op {
        dst.iter().for_each(|d| set(*d, u128::from(value)));
        set(*pred, u128::from(first == value));
        if s.lanes.active.count_ones() > 1 {
            s.lanes.columns.insert(*pred, (0..32).map(|lane| u128::from(lane == value)).collect());
        }
    }
    s.pc += 1;
    todo.push(s);
    Ok(())
}

/// What the lane that is first among those of `own` gets, if these take part.
pub(super) fn answer((form, mask): Circle, own: &Gift, all: &[Gift]) -> Answer {
    let given: BTreeMap<usize, (bool, u32)> = all
        .iter()
        .flat_map(|g| bits(g.lanes & mask).map(|lane| (lane, (g.votes >> lane & 1 == 1, g.value))))
        .collect();
    let set = |wanted: &dyn Fn(&(bool, u32)) -> bool| {
        given.iter().filter(|(_, g)| wanted(g)).fold(0u32, |mask, (lane, _)| mask | 1 << lane)
    };
    let everybody = set(&|_| true);
    let equal = set(&|g| g.1 == own.value);
    let plain = |value: u32| (value, false, false);
    match form {
        Form::Whole(_) => plain(0),
        Form::Election => plain(given.keys().next().map_or(32, |lane| u32::try_from(*lane).unwrap_or(32))),
        Form::Values(Exchange::Vote(vote)) => {
            let yes = set(&|g| g.0);
            plain(match vote {
                Vote::Ballot => yes,
                Vote::Any => u32::from(yes > 0),
                Vote::All => u32::from(yes == everybody),
                Vote::Uni => u32::from(yes == 0 || yes == everybody),
            })
        }
        Form::Values(Exchange::MatchAny) => plain(equal),
        Form::Values(Exchange::MatchAll) if equal == everybody => (everybody, true, false),
        Form::Values(Exchange::MatchAll) => plain(0),
        Form::Values(Exchange::Reduce(op, ty)) => {
            let values = given.values().map(|g| u128::from(g.1));
            plain(values.reduce(|a, b| alu(folding(op), ty, a, b)).map_or(0, narrow))
        }
        Form::Values(Exchange::Shuffle(way)) => {
            let lane = own.lanes.trailing_zeros().cast_signed();
            let (source, inside) = source(way, lane, own.from);
            let there = usize::try_from(if inside { source } else { lane }).ok().and_then(|j| given.get(&j));
            (there.map_or(0, |g| g.1), inside, there.is_none())
        }
    }
}

/// The lane a shuffle takes its value from, and whether it lies within the segment (9.7.9.6).
fn source(way: Shuffle, lane: i32, from: [u32; 2]) -> (i32, bool) {
    let [b, c] = from.map(u32::cast_signed);
    let (distance, clamp, segment) = (b & 0x1f, c & 0x1f, c >> 8 & 0x1f);
    let bound = (lane & segment) | (clamp & !segment);
    match way {
        Shuffle::Up => (lane - distance, lane - distance >= bound),
        Shuffle::Down => (lane + distance, lane + distance <= bound),
        Shuffle::Butterfly => (lane ^ distance, lane ^ distance <= bound),
        Shuffle::Index => {
            let j = (lane & segment) | (distance & !segment);
            (j, j <= bound)
        }
    }
}

fn folding(op: AtomOp) -> AluOp {
    match op {
        AtomOp::Min => AluOp::Min,
        AtomOp::Max => AluOp::Max,
        AtomOp::And => AluOp::And,
        AtomOp::Or => AluOp::Or,
        AtomOp::Xor => AluOp::Xor,
        _ => AluOp::Add,
    }
}

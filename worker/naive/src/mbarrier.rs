//! Mbarrier instructions of one thread: every answer a wait could give, every phase an arrival could report.
//!
//! Which answers fit together is decided by `history`. (PTX ISA 9.2, 9.7.13.15, layout v0.)

use super::arith::low;
use super::deed::{Count, Deed};
use super::event::{Event, Refusal};
use super::state::{Runner, State};
use super::tags::bit;
use moire_cat::vocabulary::sets;
use moire_execution::leaf::flag;
use moire_program::ir::{
    Instr, MBARRIER_BYTES, MBARRIER_COUNT, Mbarrier, MbarrierOp, Op, Operand, Scope, Space,
};

/// One continuation for each value the instruction could return.
pub(super) fn mbarrier(
    run: &Runner<'_>,
    s: State,
    instr: &Instr,
    todo: &mut Vec<State>,
) -> Result<(), Refusal> {
    let Op::Mbarrier(m) = &instr.op else { return Ok(()) };
    let wild = || Refusal::Unsupported(format!("mbarrier at {:?} in thread {}", m.addr, run.thread));
    let (base, address) = run.operand(&s, m.addr.base);
    let offset = u128::from_ne_bytes(i128::from(m.addr.offset).to_ne_bytes());
    let range = run.memory.resolve(low(base.wrapping_add(offset), 64), MBARRIER_BYTES).ok_or_else(wild)?;
    let home = run.memory.instances[range.instance].cta.ok_or_else(wild)?;
    if range.offset % MBARRIER_BYTES != 0 {
        return Err(wild());
    }
    let data = m.operands().iter().fold(0, |d, o| d | run.operand(&s, *o).1);
    let (mut deeds, mut wrong) = deeds(run, &s, m);
    let lanes = s.lanes.active.count_ones();
    for deed in &mut deeds {
        deed.repeated(lanes);
    }
    if lanes > 1 && matches!(m.op, MbarrierOp::Init { .. } | MbarrierOp::Inval) {
        wrong = Some(flag::REPEATED);
    }
    if home != run.memory.cta[run.thread] && !reaches_others(m) {
        wrong = Some(flag::TARGET);
        // The instruction does not reach an object in another CTA, so nothing arrives there.
        for deed in &mut deeds {
            if let Deed::Add { arrivals, tx, drops, .. } = deed {
                (*arrivals, *tx, *drops) = (0, 0, false);
            }
        }
    }
    let (tags, scope) = tags(m, &deeds[0]);
    for deed in deeds {
        let mut next = s.clone();
        let mut e: Event = run.event(&next, tags | bit(sets::MBAR), scope);
        (e.range, e.address, e.data) = (Some(range), address, data);
        e.count = Some(Count { object: (range.instance, range.offset), deed: deed.clone(), wrong });
        let at = Runner::push(&mut next, e);
        if let Some(dst) = m.dst() {
            let value = match deed {
                Deed::Ask { answer, .. } => u128::from(answer),
                Deed::Add { reported, .. } => reported.unwrap_or(0),
                Deed::Init(_) | Deed::Inval => 0,
            };
            next.regs[dst.index()] = (value, super::pairs::one(at));
            next.lanes.assigned(dst);
        }
        next.pc += 1;
        todo.push(next);
    }
    Ok(())
}

fn deeds(run: &Runner<'_>, s: &State, m: &Mbarrier) -> (Vec<Deed>, Option<&'static str>) {
    let value = |o: Operand| low(run.operand(s, o).0, 32);
    let mut wrong = None;
    let mut within = |v: u128, least: u128| {
        if !(least..=u128::from(MBARRIER_COUNT)).contains(&v) {
            wrong = Some(flag::RANGE);
        }
        u64::try_from(v.clamp(least, u128::from(MBARRIER_COUNT))).unwrap_or(0)
    };
    let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    let plain = |tx| Deed::Add { arrivals: 0, tx, drops: false, must_not_complete: false, reported: None };
    let deeds = match &m.op {
        MbarrierOp::Init { count } => vec![Deed::Init(within(value(*count), 1))],
        MbarrierOp::Inval => vec![Deed::Inval],
        MbarrierOp::ExpectTx { bytes, .. } => vec![plain(signed(within(value(*bytes), 0)))],
        MbarrierOp::CompleteTx { bytes, .. } => vec![plain(-signed(within(value(*bytes), 0)))],
        MbarrierOp::Arrive(a) => {
            let arrivals = a.count.map_or(1, |c| within(value(c), 1));
            let tx = a.tx.map_or(0, |t| signed(within(value(t), 0)));
            let add = |reported| Deed::Add {
                arrivals,
                tx,
                drops: a.drop,
                must_not_complete: a.no_complete,
                reported,
            };
            match a.dst {
                None => vec![add(None)],
                Some(_) => (0..=most_phases(run)).map(|k| add(Some(k))).collect(),
            }
        }
        MbarrierOp::Wait(w) => {
            let odd = value(w.phase) & 1 == 1;
            [false, true].map(|answer| Deed::Ask { odd, answer }).to_vec()
        }
    };
    (deeds, wrong)
}

/// An upper bound on the phases of each mbarrier of the program.
fn most_phases(run: &Runner<'_>) -> u128 {
    let mut most = 0;
    for thread in &run.program.threads {
        let adds = |i: &&Instr| {
            matches!(&i.op, Op::Mbarrier(m) if !matches!(m.op, MbarrierOp::Wait(_)))
                || super::copies::reports(&i.op)
        };
        let jumps = thread.body.iter().enumerate();
        let loops = jumps.filter(|(pc, i)| matches!(i.op, Op::Bra { target } if target <= *pc)).count();
        let rounds = u32::try_from(loops).unwrap_or(u32::MAX).min(3);
        let times = u128::from(run.rules.loop_bound + 1).pow(rounds);
        most += thread.body.iter().filter(adds).count() as u128 * times;
    }
    most
}

/// Whether the form may name an object of another CTA.
fn reaches_others(m: &Mbarrier) -> bool {
    let sink = match &m.op {
        MbarrierOp::Arrive(a) => a.dst.is_none(),
        MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => true,
        MbarrierOp::Init { .. } | MbarrierOp::Inval | MbarrierOp::Wait(_) => false,
    };
    sink && matches!(m.space, Space::Generic | Space::SharedCluster)
}

fn tags(m: &Mbarrier, deed: &Deed) -> (u128, Option<Scope>) {
    let relaxed = bit(sets::RLX);
    match &m.op {
        MbarrierOp::Init { .. } => (bit(sets::MBAR_INIT), None),
        MbarrierOp::Inval => (bit(sets::MBAR_INVAL), None),
        MbarrierOp::Arrive(a) => {
            let expects = matches!(deed, Deed::Add { tx, .. } if *tx > 0);
            let order = if a.relaxed { relaxed } else { bit(sets::REL) };
            let expect = if expects { bit(sets::MBAR_EXPECT) } else { 0 };
            (bit(sets::MBAR_ARRIVE) | expect | order, Some(a.scope))
        }
        MbarrierOp::ExpectTx { scope, .. } => (bit(sets::MBAR_EXPECT) | relaxed, Some(*scope)),
        MbarrierOp::CompleteTx { scope, .. } => (bit(sets::MBAR_COMPLETE) | relaxed, Some(*scope)),
        MbarrierOp::Wait(w) => {
            let order = if w.relaxed { relaxed } else { bit(sets::ACQ) };
            (bit(sets::MBAR_WAIT) | order, Some(w.scope))
        }
    }
}

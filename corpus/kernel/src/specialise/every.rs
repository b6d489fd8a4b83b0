//! Launches of every size: the values of a parameter for which a loop of the kernel runs any number of times.
//!
//! Two launches tell which loops a parameter decides, and what it needs for one more round (`grain`). The sizes are then
//! split: the first few are launches of their own (`singles`). All others are `base + r * grain + u * step` with
//! `u >= 0`, a *class* for each `r`, where `step` is `grain` as often as a period has rounds. Where a round takes few units, as
//! after a compiler has unrolled a loop, there is a class for each unit instead. Each class is run ahead once
//! for all `u` (`periods`), and its residual program has a `repeat`. The least period for which that succeeds is taken. Its
//! length, and how many rounds stand before and behind it, are tried: only the run ahead decides whether they do. A
//! parameter from which addresses are computed starts where rows do not overlap (`sweep`).
//!
//! What a launch of every size touches in global memory at addresses that grow has a place in it (`along`). If the growth is not
//! the same each time, it is any place: any byte behind the parameter, any box of the tensor map.

use super::budget::Budget;
use super::coverage::Coverage;
use super::item::{Item, Trace};
use super::known::heap::Heap;
use super::known::line::Reach;
use super::known::strides::strides;
use super::launch::Launch;
use super::need::Stopped;
use super::plan::{Growths, Plan, Planted};
use super::residual::apart::uses;
use super::step::copies::SOME_BOX;
use super::step::place::SOMEWHERE;
use super::sweep::APART;
use super::touch::{Mem, Touch};
use super::{Apart, Grid, Reading, STEPS, ahead, parted, survey};
use crate::Refusal;
use crate::ptx::Kernel;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Values that are compared to find the loops that a parameter decides.
const COMPARED: [(u64, u64); 3] = [(8, 16), (128, 256), (1024, 2048)];
/// Periods that are tried, in rounds.
const PERIODS: [u32; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16];
/// Rounds before the period from which growth is taken, and behind the last period, that are tried.
const AROUND: [(u32, u32); 3] = [(1, 2), (2, 4), (4, 8)];

/// Most units of a round that are told apart.
const UNITS: u64 = 8;
/// The work of all runs ahead.
const WORK: u64 = STEPS / 2 * 3;

/// The launches of a kernel with every value of a parameter that a grain divides.
#[derive(Clone, Debug)]
pub struct Every {
    /// The parameter, and the first byte of the field.
    pub place: (u16, u32),
    /// The values are its multiples.
    pub grain: u64,
    /// What one more period takes.
    pub step: u64,
    /// Lines of the loops that the parameter decides: the first one and that of the last branch back.
    pub loops: BTreeSet<(u32, u32)>,
    /// The values below those of the classes.
    pub singles: Vec<u64>,
    /// The least value of each class, and the programs of all its values up to the largest one.
    pub classes: Vec<(u64, Apart)>,
    /// The largest value for which no number overflows its register.
    pub most: u64,
}

impl Every {
    /// The least value of the class of a value, if it is in one.
    pub fn base(&self, value: u64) -> Option<u64> {
        let of = |base: &u64| value >= *base && (value - base).is_multiple_of(self.step);
        self.classes.iter().map(|class| class.0).find(of).filter(|_| value <= self.most)
    }
}

/// The loops that a parameter decides, by their first statements, with how many more rounds a grain is, and the grain.
struct Decided {
    grain: u64,
    rounds: BTreeMap<usize, u32>,
}

/// The launches with every value of a parameter. None if it decides no loop.
///
/// # Errors
/// Why the loop is not one period that is repeated.
pub fn every(kernel: &Kernel, launch: &Launch, place: (u16, u32)) -> Result<Option<Every>, Refusal> {
    planted(kernel, launch, place, None)
}

/// Whether addresses of global memory are computed from a parameter.
pub fn decides_addresses(kernel: &Kernel, place: (u16, u32)) -> bool {
    strides(kernel).contains(&place)
}

fn planted(
    kernel: &Kernel,
    launch: &Launch,
    place: (u16, u32),
    planted: Option<Planted>,
) -> Result<Option<Every>, Refusal> {
    let of = Of { kernel, launch, place, budget: Budget::new(WORK), planted, stored: RefCell::default() };
    let Some(decided) = of.decided() else { return Ok(None) };
    // The refusal that came last in its run is the one to tell.
    let mut told: (u64, Option<Refusal>) = (0, None);
    for around in AROUND {
        for period in PERIODS {
            let left = of.budget.left();
            match of.classes(&decided, period, around) {
                Ok(found) => return Ok(Some(found)),
                Err(why) => {
                    let work = left - of.budget.left();
                    told = if told.1.is_none() || work > told.0 { (work, Some(why)) } else { told };
                }
            }
        }
    }
    told.1.map_or(Ok(None), Err)
}

/// The sizes that are tried: the rounds of a period, and of those before it.
struct Sizes<'d> {
    decided: &'d Decided,
    period: u32,
    first: u32,
    /// How registers grow is known.
    known: bool,
    growths: &'d Rc<RefCell<Growths>>,
}

impl Sizes<'_> {
    /// What one more period takes.
    fn step(&self) -> u64 {
        self.decided.grain * u64::from(self.period)
    }

    /// The values are its multiples.
    fn unit(&self) -> u64 {
        if self.decided.grain <= UNITS { 1 } else { self.decided.grain }
    }

    fn plan(&self, of: &Of<'_>, base: u64) -> Result<Plan, Refusal> {
        let period = self.period;
        Ok(Plan {
            place: of.place,
            base,
            step: i64::try_from(self.step()).map_err(|_| too_large())?,
            first: self.first,
            growths: Rc::clone(self.growths),
            known: self.known,
            rounds: self.decided.rounds.iter().map(|(head, n)| (*head, n * period)).collect(),
            reach: Reach::default(),
            planted: of.planted,
        })
    }
}

fn too_large() -> Refusal {
    Refusal::Bounded("a size that is too large".to_owned())
}

/// A kernel, a launch of it, and the parameter.
struct Of<'k> {
    kernel: &'k Kernel,
    launch: &'k Launch,
    place: (u16, u32),
    budget: Budget,
    planted: Option<Planted>,
    /// What warps store, once a class has been run ahead.
    stored: RefCell<Heap>,
}

impl Of<'_> {
    fn with(&self, value: u64) -> Launch {
        self.launch.with(self.kernel, self.place, value)
    }

    /// The most passes of each loop that does not wait, with a value.
    fn passes(&self, value: u64) -> Option<BTreeMap<usize, u32>> {
        match survey(self.kernel, &self.with(value), &self.budget, false) {
            Ok(Coverage { met, .. }) => {
                Some(met.passes.into_iter().filter(|(head, _)| !met.waits.contains(head)).collect())
            }
            Err(Stopped { .. }) => None,
        }
    }

    fn decided(&self) -> Option<Decided> {
        COMPARED.into_iter().find_map(|(less, more)| {
            let (few, many) = (self.passes(less)?, self.passes(more)?);
            let grown = |(head, n): (&usize, &u32)| {
                let more = n.saturating_sub(*few.get(head)?);
                (more > 0).then_some((*head, more))
            };
            let grown: BTreeMap<usize, u32> = many.iter().filter_map(grown).collect();
            let least = *grown.values().min()?;
            let whole =
                (more - less).is_multiple_of(u64::from(least)) && grown.values().all(|n| n % least == 0);
            let rounds = grown.iter().map(|(head, n)| (*head, n / least)).collect();
            whole.then(|| Decided { grain: (more - less) / u64::from(least), rounds })
        })
    }

    /// All classes with a period of so many rounds. One launch that is large enough shows how registers grow; with that, smaller ones
    /// are enough to run the period. If not, larger ones show it for themselves.
    fn classes(&self, decided: &Decided, period: u32, around: (u32, u32)) -> Result<Every, Refusal> {
        let growths = Rc::default();
        let sizes = |first: u32, known: bool| Sizes { decided, period, first, known, growths: &growths };
        let shows = sizes(around.0, false);
        self.class(&shows.plan(self, self.least(&shows, around.1))?)?;
        let known = self.all_classes(&sizes(around.0, true), around.1);
        known.or_else(|_| self.all_classes(&shows, around.1))
    }

    /// The least value of all classes.
    fn least(&self, sizes: &Sizes<'_>, behind: u32) -> u64 {
        let Decided { grain, .. } = sizes.decided;
        let rounds = sizes.first + behind + if sizes.known { 0 } else { sizes.period };
        let apart = if decides_addresses(self.kernel, self.place) { APART } else { 0 };
        let unit = sizes.unit();
        (grain * u64::from(rounds)).max(apart).max(unit).next_multiple_of(unit)
    }

    fn all_classes(&self, sizes: &Sizes<'_>, behind: u32) -> Result<Every, Refusal> {
        let (place, rounds, unit) = (self.place, &sizes.decided.rounds, sizes.unit());
        let step = sizes.step();
        let left_out = u64::from(self.planted == Some(Planted::LeavesOut) && sizes.period > 1);
        let least = self.least(sizes, behind);
        let apart = if decides_addresses(self.kernel, place) { APART } else { unit };
        let (mut classes, mut most) = (Vec::new(), u64::MAX);
        for n in 0..step / unit - left_out {
            let base = least + unit * n;
            let plan = sizes.plan(self, base)?;
            classes.push((base, self.class(&plan)?));
            let reach = plan.reach.most().ok_or_else(too_large)?;
            most = most.min(step.saturating_mul(reach).saturating_add(base));
        }
        let line = |pc: usize| self.kernel.body.get(pc).map_or(0, |s| s.line);
        let spans = super::known::loops::spans(self.kernel);
        let last = |head: &usize| line(spans.get(head).copied().unwrap_or(*head));
        let loops = rounds.keys().map(|head| (line(*head), last(head))).collect();
        let singles = (apart.div_ceil(unit)..least / unit).map(|n| unit * n).collect();
        Ok(Every { place, grain: unit, step, loops, classes, most, singles })
    }

    fn class(&self, plan: &Plan) -> Result<Apart, Refusal> {
        let (launch, named) = (self.with(plan.base), RefCell::default());
        let reading = Reading { plan: Some(plan), stored: Some(&self.stored), ..Reading::default() };
        let grids = [Grid::alone(self.kernel, &launch)];
        parted(&grids, ahead(&grids, &self.budget, &named, reading)?)
    }
}

/// Puts all that touches a memory into one place, if the place of a box or of a copy there is another one each time. What
/// nothing writes needs no such place: each copy gets one of its own.
pub(super) fn one_place(traces: &mut [Trace]) -> Result<(), Refusal> {
    let any = |t: &&Touch| somewhere(t.mem).is_some_and(|at| t.ranges.iter().any(|r| r.0 == at));
    let items = || traces.iter().flat_map(|t| &t.items);
    let memories: BTreeSet<Mem> = items().flat_map(|p| touches(&p.item)).filter(any).map(|t| t.mem).collect();
    let written: BTreeSet<Mem> =
        items().flat_map(|p| uses(&p.item)).filter(|u| u.1).map(|u| u.0.mem).collect();
    let mut number = 0;
    for placed in traces.iter_mut().flat_map(|t| &mut t.items) {
        let line = placed.line;
        for touch in touches_mut(&mut placed.item).iter_mut().filter(|t| memories.contains(&t.mem)) {
            let Some(at) = somewhere(touch.mem) else { continue };
            if !written.contains(&touch.mem) {
                number += 1;
                touch
                    .ranges
                    .iter_mut()
                    .filter(|r| r.0 == at)
                    .for_each(|r| *r = (at + (number << 20), r.1 + (number << 20)));
                continue;
            }
            if touch.kind.fixed() {
                let what =
                    "a word that decides something, in a memory that is copied at another place each time";
                return Err(Refusal::Abstained { what: what.into(), line });
            }
            (touch.ranges, touch.by) = (vec![(at, at + touch.bytes().min(1 << 20))], Vec::new());
        }
    }
    Ok(())
}

/// The place in a memory of what has another one each time.
fn somewhere(mem: Mem) -> Option<u64> {
    match mem {
        Mem::Boxes(_) => Some(SOME_BOX),
        Mem::Param(_) => Some(SOMEWHERE),
        _ => None,
    }
}

pub(super) fn touches(item: &Item) -> &[Touch] {
    match item {
        Item::Op { touches, .. } => touches,
        Item::Data { touch, .. } => std::slice::from_ref(touch),
        _ => &[],
    }
}

pub(super) fn touches_mut(item: &mut Item) -> &mut [Touch] {
    match item {
        Item::Op { touches, .. } => touches,
        Item::Data { touch, .. } => std::slice::from_mut(touch),
        _ => &mut [],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx;
    use crate::specialise::{entry, lower_apart};
    use moire_program::ir::{Op, Program};
    use moire_program::loops::unroll;
    use moire_program::text::instruction;

    const RINGS: [&str; 6] = [
        include_str!("../../../ptx/every-modulo.ptx"),
        include_str!("../../../ptx/ring.ptx"),
        include_str!("../../../ptx/every-ring.ptx"),
        include_str!("../../../ptx/every-ring-parity.ptx"),
        include_str!("../../../ptx/every-ring-release.ptx"),
        include_str!("../../../ptx/every-ring-tail.ptx"),
    ];

    /// The instructions of each thread. Places are numbered as they appear, because a layout may order them in another way;
    /// which byte behind a parameter is copied is left out.
    fn instructions(program: &Program) -> Vec<Vec<String>> {
        let mut places: Vec<String> = Vec::new();
        let mut number = |text: String| {
            let Some((before, rest)) = text.split_once('[') else { return text };
            let mut out = before.to_owned();
            for part in rest.split('[') {
                let (place, after) = part.split_once(']').unwrap_or((part, ""));
                let place = if place.starts_with("param") { "param" } else { place };
                let at = places.iter().position(|known| known == place);
                places.extend(at.is_none().then(|| place.to_owned()));
                out += &format!("[{}]{after}", at.unwrap_or(places.len() - 1));
            }
            out
        };
        let one = |thread: &moire_program::ir::Thread| {
            let text = |i: &moire_program::ir::Instr| match i.op {
                Op::Bra { target } => format!("{:?} {target}", i.guard),
                _ => instruction(program, thread, i),
            };
            thread.body.iter().map(|i| number(text(i))).collect()
        };
        program.threads.iter().map(one).collect()
    }

    /// The first value for which the classes and the single values differ from a launch with that value.
    fn differs(text: &str, bug: Option<Planted>) -> Option<u64> {
        let module = ptx::parse(text).expect("a module");
        let kernel = entry(&module, None).expect("a kernel");
        let launch = Launch::of(kernel, None, None, None, BTreeMap::new()).expect("a launch");
        let found = planted(kernel, &launch, (0, 0), bug).expect("a period").expect("a loop");
        let most = found.classes.iter().map(|c| c.0).max().unwrap_or(0) + 3 * found.step;
        (1..=most / found.grain).map(|n| n * found.grain).find(|value| {
            if found.singles.contains(value) {
                return false;
            }
            let periods = |base: u64| {
                (*value >= base && (value - base).is_multiple_of(found.step))
                    .then(|| (value - base) / found.step)
            };
            let Some((n, apart)) =
                found.classes.iter().find_map(|(base, apart)| Some((periods(*base)?, apart)))
            else {
                return true;
            };
            let counts = BTreeMap::from([(
                super::super::PERIODS.to_owned(),
                vec![u32::try_from(n).expect("few periods")],
            )]);
            let mut all: Vec<_> = apart
                .parts
                .iter()
                .map(|p| instructions(&unroll(&p.program, &counts).expect("loops")))
                .collect();
            let own = lower_apart(kernel, &launch.with(kernel, (0, 0), *value)).expect("a launch");
            let mut own: Vec<_> = own.parts.iter().map(|p| instructions(&p.program)).collect();
            if n == 0 {
                // What only a period shares with another warp is left out of a launch that has none.
                let plain = |text: &String| !text.contains(" data, [");
                all.iter_mut().chain(&mut own).flatten().for_each(|thread| thread.retain(plain));
            }
            all != own
        })
    }

    #[test]
    fn a_class_is_what_each_of_its_launches_is() {
        for text in RINGS {
            assert_eq!(differs(text, None), None);
        }
    }

    #[test]
    fn planted_bugs_are_found() {
        for bug in [Planted::ShortPeriod, Planted::LeavesLate, Planted::LeavesOut] {
            assert!(differs(RINGS[2], Some(bug)).is_some(), "{bug:?}");
        }
    }

    #[test]
    fn what_grows_in_another_way_is_refused() {
        // The stage is that of the round after, and twice as far each time.
        let text = RINGS[2].replace("add.s32 %r11, %r6, 1;", "mad.lo.s32 %r11, %r6, %r5, 1;");
        let module = ptx::parse(&text).expect("a module");
        let kernel = entry(&module, None).expect("a kernel");
        let launch = Launch::of(kernel, None, None, None, BTreeMap::new()).expect("a launch");
        assert!(every(kernel, &launch, (0, 0)).map_or(true, |found| found.is_none()));
    }
}

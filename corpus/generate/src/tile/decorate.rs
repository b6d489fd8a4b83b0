//! Turns skeletons into plans: adds parameters, shapes of accesses, orders, tokens, masks, and control flow.

use super::plan::{
    Access, BlockStep, Combine, HALF, Kind, Mapping, Mask, Param, Plan, Role, STRIDE, Shown, Source, THREADS,
    Turn, Via, Wait, Where,
};
use super::shapes::{self, Event};
use super::{Dice, TileKnobs};
use moire_tile_ir::{AtomicMode, Order, Predicate, Scalar, Scope};

/// Modes of atomics on integers.
const MODES: &[AtomicMode] = &[
    AtomicMode::Add,
    AtomicMode::Add,
    AtomicMode::Xchg,
    AtomicMode::Xchg,
    AtomicMode::And,
    AtomicMode::Or,
    AtomicMode::Xor,
    AtomicMode::Max,
    AtomicMode::Min,
    AtomicMode::UMax,
    AtomicMode::UMin,
];

/// Typical strength of the accesses of one kernel.
#[derive(Clone, Copy)]
struct Style {
    /// Percent of accesses that acquire or release instead of being relaxed.
    sync: u8,
    scopes: &'static [Scope],
}

/// How tiles of a large kernel differ from one another. Two of these at once would connect all elements: then no small
/// subset could represent the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twist {
    Plain,
    Reversed,
    /// Some tiles have half the elements.
    Halves,
    /// Some tiles have two dimensions.
    Square,
}

/// The state of drawing one kernel.
struct Draw<'k> {
    knobs: &'k TileKnobs,
    style: Style,
    width: u32,
    twist: Twist,
    params: Vec<Param>,
    /// Parameter and first element of each place.
    places: Vec<(usize, u32)>,
    uniform: bool,
    /// Memory instructions so far.
    spent: usize,
    value: u64,
}

/// Draws the plan of a kernel.
pub(super) fn plan(dice: &mut Dice<'_, '_>, knobs: &TileKnobs) -> Plan {
    if knobs.bound_percent > 0 && dice.percent(knobs.bound_percent) {
        return if dice.percent(50) { published(dice, knobs) } else { chosen(dice, knobs) };
    }
    let handed = dice.percent(knobs.handed_percent);
    let uniform = !handed && dice.percent(knobs.uniform_percent);
    let mut draw = Draw::new(dice, knobs, uniform);
    if handed {
        return draw.handed(dice);
    }
    let mut skeleton = match (uniform, dice.percent(55)) {
        (true, _) => vec![shapes::uniform(dice)],
        (false, true) => shapes::shape(dice),
        (false, false) => shapes::free(dice),
    };
    draw.fit(&mut skeleton);
    let blocks = if uniform { dice.of(&[2, 2, 3]) } else { u32::try_from(skeleton.len()).unwrap_or(2) };
    let bodies = skeleton.iter().zip(0..).map(|(events, block)| {
        let mut steps = draw.sequence(dice, events, 0);
        draw.extra(dice, &mut steps, block * STRIDE);
        steps
    });
    let bodies = bodies.collect();
    let mut plan = Plan { params: draw.params.clone(), blocks, bodies, nested: dice.percent(50), safe: true };
    if !plan.communicates() {
        draw.connect(dice, &mut plan);
    }
    if dice.percent(8) {
        spin(&mut plan);
    } else if dice.percent(knobs.tries_percent) {
        tries(dice, &mut plan);
    }
    plan
}

/// Widest tiles that overlap in every way. In a wider tile each element interacts only with itself or one other, and a few
/// elements represent all.
const SMALL: u32 = 8;

impl<'k> Draw<'k> {
    fn new(dice: &mut Dice<'_, '_>, knobs: &'k TileKnobs, uniform: bool) -> Self {
        let elem = dice.of(&knobs.elems);
        let width = dice.of(&knobs.widths).clamp(2, 256);
        let together = dice.percent(30);
        let apart = dice.of(if width > SMALL { &[1, 1, 2] } else { &[1, 1, 2, 4] });
        let apart = if width <= SMALL && dice.percent(25) { 1 } else { apart * width };
        let places = (0..3u32).map(|n| if together { (0, n * apart) } else { (n as usize, 0) }).collect();
        let shared = if together { 1 } else { 3 };
        let mut params = vec![Param { elem, role: Role::Shared }; shared];
        // Sometimes the last parameter has another type.
        let wide = knobs.elems.contains(&Scalar::I64) && dice.percent(5);
        if let (true, Some(last)) = (wide && shared > 1, params.last_mut()) {
            last.elem = Scalar::I64;
        }
        params.push(Param { elem, role: Role::Private });
        params.push(Param { elem, role: Role::ReadOnly });
        let style = Style {
            sync: dice.of(&[0, 0, 50, 50, 100]),
            scopes: dice.of::<&'static [Scope]>(&[
                &[Scope::Device],
                &[Scope::Device],
                &[Scope::System],
                &[Scope::Device, Scope::Device, Scope::System],
            ]),
        };
        let mut twists = vec![Twist::Plain, Twist::Plain, Twist::Plain, Twist::Reversed, Twist::Reversed];
        if width <= THREADS {
            twists.extend([Twist::Halves, Twist::Square]);
        }
        let twist = dice.of(&twists);
        Draw { knobs, style, width, twist, params, places, uniform, spent: 0, value: 0 }
    }

    /// Drops events until the skeleton fits in `memory_max`.
    fn fit(&mut self, skeleton: &mut [Vec<Event>]) {
        let cost = |s: &[Vec<Event>]| s.iter().flatten().map(|e| if e.write { 1 } else { 2 }).sum::<usize>();
        while cost(skeleton) > self.knobs.memory_max {
            match skeleton.iter_mut().filter(|b| b.len() > 1).max_by_key(|b| b.len()) {
                Some(longest) => drop(longest.pop()),
                None => break,
            }
        }
        self.spent = cost(skeleton);
    }

    fn affords(&mut self, more: usize) -> bool {
        let fits = self.spent + more <= self.knobs.memory_max;
        self.spent += if fits { more } else { 0 };
        fits
    }

    fn constant(&mut self, dice: &mut Dice<'_, '_>) -> u64 {
        self.value = self.value % 5 + 1;
        if dice.percent(80) { self.value } else { u64::from(dice.below(3)) }
    }

    /// A scalar at a place.
    fn scalar(&self, place: usize) -> Where {
        let (param, at) = self.places.get(place).copied().unwrap_or((0, 0));
        Where { param, at, width: 0, mapping: Mapping::InOrder, turn: Turn::Fixed, step: 0, square: false }
    }

    /// Draws the elements of an event's place and their order.
    fn place(&self, dice: &mut Dice<'_, '_>, place: usize) -> Where {
        let turn = if self.uniform {
            dice.of(&[Turn::Own, Turn::Other, Turn::Other, Turn::Fixed])
        } else {
            Turn::Fixed
        };
        let w = self.width;
        let spot = Where { turn, ..self.scalar(place) };
        if !dice.percent(self.knobs.wide_percent) {
            let further = [0, 0, 0, 0, 0, 1, w / 2, w - 1];
            return Where { at: spot.at + dice.of(&further), ..spot };
        }
        let halves = self.percent(Twist::Halves, 15);
        let width = if dice.percent(halves) { (w / 2).max(2) } else { w };
        let mapping = self.mapping(dice);
        Where { width, mapping, square: width >= 8 && dice.percent(self.percent(Twist::Square, 6)), ..spot }
    }

    /// Percent of tiles that differ from the others in this way: `small` in small kernels; in large kernels 40 if it is the
    /// kernel's twist, otherwise 0.
    fn percent(&self, twist: Twist, small: u8) -> u8 {
        match (self.width > SMALL, self.twist == twist) {
            (false, _) => small,
            (true, true) => 40,
            (true, false) => 0,
        }
    }

    fn mapping(&self, dice: &mut Dice<'_, '_>) -> Mapping {
        if self.width > SMALL {
            let reversed = dice.percent(self.percent(Twist::Reversed, 0));
            return if reversed { Mapping::Reversed } else { Mapping::InOrder };
        }
        let k = dice.of(&[1, 2, self.width / 2]);
        let usual = [Mapping::InOrder; 5];
        let rare = [
            Mapping::Reversed,
            Mapping::Reversed,
            Mapping::Shifted(k),
            Mapping::Rotated(k),
            Mapping::Spread,
            Mapping::Pairs,
            Mapping::One,
        ];
        if dice.percent(75) { dice.of(&usual) } else { dice.of(&rare) }
    }

    fn mask(&self, dice: &mut Dice<'_, '_>, width: u32) -> Mask {
        let percent = if width == 0 { self.knobs.mask_percent / 3 } else { self.knobs.mask_percent };
        if !dice.percent(percent) {
            return Mask::All;
        }
        let half = dice.of(&[1, width / 2, width.max(1) - 1]);
        let value = u64::from(dice.below(3));
        match (width, dice.below(8)) {
            (_, 0) => Mask::On,
            (_, 1) => Mask::Off,
            (_, 2 | 3) => Mask::Read(0, value),
            (0, _) => Mask::Read(1, value),
            (_, 4 | 5) if width <= SMALL || self.twist == Twist::Plain => Mask::Odd,
            _ => Mask::Below(half.max(1)),
        }
    }

    fn wait(&self, dice: &mut Dice<'_, '_>) -> Wait {
        if !dice.percent(self.knobs.token_percent) {
            return if dice.percent(15) { Wait::New } else { Wait::Nothing };
        }
        let earlier = u8::try_from(dice.below(3)).unwrap_or(0);
        dice.of(&[
            Wait::Last,
            Wait::Last,
            Wait::Last,
            Wait::Last,
            Wait::Joined(2),
            Wait::Joined(4),
            Wait::Earlier(earlier),
        ])
    }

    fn source(&mut self, dice: &mut Dice<'_, '_>, width: u32) -> Source {
        let constant = self.constant(dice);
        if dice.percent(self.knobs.data_percent) {
            let which = u8::try_from(dice.of(&[0, 0, 0, 1])).unwrap_or(0);
            return Source::Read(which, combine(dice), constant);
        }
        match (self.uniform, width) {
            (true, _) if dice.percent(60) => Source::Block(constant),
            (_, 0) => Source::Constant(constant),
            // If values decide something, a few elements of a large tile represent all only if all are equal.
            _ if self.counts(width) && dice.percent(30) => Source::Counted(constant),
            _ => Source::Constant(constant),
        }
    }

    /// Whether the elements of a tile of this width may be stored different values.
    fn counts(&self, width: u32) -> bool {
        width <= SMALL || (self.knobs.atomic_percent == 0 && self.knobs.mask_percent == 0)
    }

    fn shown(&self, dice: &mut Dice<'_, '_>, width: u32) -> Shown {
        let constant = u64::from(1 + dice.below(3));
        // The width in which a scalar is stored is drawn separately from how it is stored.
        let wide = if width == 0 && dice.percent(15) { self.width } else { width };
        match dice.below(10) {
            0 => Shown::Combined(combine(dice), constant, wide),
            1 => Shown::Chosen(constant, wide),
            _ if wide != width => Shown::Spread(wide),
            _ => Shown::Plain,
        }
    }

    fn scope(&self, dice: &mut Dice<'_, '_>) -> Option<Scope> {
        Some(dice.of(self.style.scopes))
    }

    /// Draws an access to memory that blocks share.
    fn access(&mut self, dice: &mut Dice<'_, '_>, event: Event) -> Access {
        let place = self.place(dice, event.place);
        let elem = self.params.get(place.param).map_or(Scalar::I32, |p| p.elem);
        let shown = self.shown(dice, place.width);
        let atomic = elem.bits() >= 32
            && dice.percent(self.knobs.atomic_percent)
            && self.affords(usize::from(event.write));
        let source = self.source(dice, place.width);
        let kind = match (atomic, event.write) {
            (false, false) => Kind::Load(shown),
            (false, true) => Kind::Store(source),
            (true, _) if dice.percent(25) => Kind::Cas(u64::from(dice.below(2)), source, shown),
            (true, _) => Kind::Rmw(dice.of(MODES), source, shown),
        };
        let sync = dice.percent(self.style.sync);
        let order = match kind {
            _ if !sync => Order::Relaxed,
            Kind::Load(_) => Order::Acquire,
            Kind::Store(_) => Order::Release,
            _ => dice.of(&[Order::AcqRel, Order::AcqRel, Order::Acquire, Order::Release]),
        };
        let (mask, wait, via) = (self.mask(dice, place.width), self.wait(dice), self.via(dice));
        let mut access = Access { kind, place, via, order, scope: self.scope(dice), mask, wait };
        // The masked-off part of the tile lies outside its tensor.
        if access.through_view() && dice.percent(15) {
            access.mask = Mask::Below(dice.of(&[1, place.width / 2, place.width - 1]).max(1));
        }
        access
    }

    fn via(&self, dice: &mut Dice<'_, '_>) -> Via {
        if !dice.percent(self.knobs.view_percent) {
            return Via::Pointers;
        }
        if dice.percent(self.knobs.rows_percent) {
            return Via::Rows;
        }
        Via::View {
            open: dice.percent(30),
            strided: dice.percent(20),
            moved: dice.percent(self.knobs.moved_percent),
        }
    }

    fn sequence(&mut self, dice: &mut Dice<'_, '_>, events: &[Event], depth: u32) -> Vec<BlockStep> {
        let Some((first, rest)) = events.split_first() else { return Vec::new() };
        let access = self.access(dice, *first);
        let scalar = access.reads() && access.place.width == 0;
        if dice.percent(self.knobs.for_percent) {
            return self.repeated(dice, access, rest, depth);
        }
        let mut steps = vec![BlockStep::Access(access)];
        if scalar && depth < 2 && dice.percent(self.knobs.if_percent) {
            steps.extend(self.guarded(dice, rest, depth));
        } else {
            steps.extend(self.sequence(dice, rest, depth));
        }
        steps
    }

    /// Draws an `if` around all following events or around the next one.
    fn guarded(&mut self, dice: &mut Dice<'_, '_>, rest: &[Event], depth: u32) -> Vec<BlockStep> {
        let inside = if dice.percent(60) { rest.len() } else { rest.len().min(1) };
        let (inner, outer) = rest.split_at(inside);
        let marks = dice.percent(if inner.is_empty() { 100 } else { 30 }) && self.affords(2);
        let then = self.sequence(dice, inner, depth + 1);
        let other = dice.percent(40);
        let otherwise = match inner.first() {
            Some(event) if other && dice.percent(50) && self.affords(2) => {
                Some(vec![BlockStep::Access(self.access(dice, *event))])
            }
            _ if other || marks => Some(Vec::new()),
            _ => None,
        };
        let step = BlockStep::If {
            read: 0,
            predicate: dice.of(&[
                Predicate::Equal,
                Predicate::Equal,
                Predicate::NotEqual,
                Predicate::Greater,
            ]),
            with: u64::from(dice.below(3)),
            then,
            otherwise,
            yields: dice.percent(40),
            marks: marks.then_some(if dice.percent(70) { self.width } else { 0 }),
        };
        let mut steps = vec![step];
        steps.extend(self.sequence(dice, outer, depth));
        steps
    }

    fn repeated(
        &mut self,
        dice: &mut Dice<'_, '_>,
        mut access: Access,
        rest: &[Event],
        depth: u32,
    ) -> Vec<BlockStep> {
        let (inner, outer) = rest.split_at(usize::from(!rest.is_empty() && dice.percent(40)));
        let width = access.place.width;
        access.place.step = dice.of(if width > SMALL { &[0, 0] } else { &[0, 1] });
        if dice.percent(33) {
            access.place.step = width;
        }
        let mut body = vec![BlockStep::Access(access)];
        if access.reads() && width == 0 && dice.percent(self.knobs.skip_percent) {
            body.push(BlockStep::Skip { with: u64::from(dice.below(3)), twice: dice.percent(50) });
        }
        for event in inner {
            let mut second = self.access(dice, *event);
            second.place.step = dice.of(&[0, access.place.step]);
            body.push(BlockStep::Access(second));
        }
        let turns = dice.of(&[2, 2, 3]);
        let mut steps = vec![BlockStep::For { turns, body, carries: dice.percent(60) }];
        steps.extend(self.sequence(dice, outer, depth));
        steps
    }

    /// Adds accesses that are not in the skeleton: to memory of the block itself, and to memory that is never written.
    fn extra(&mut self, dice: &mut Dice<'_, '_>, steps: &mut Vec<BlockStep>, from: u32) {
        if dice.percent(35) && self.affords(3) {
            let at = dice.below(u32::try_from(steps.len() + 1).unwrap_or(1)) as usize;
            let store = self.private(dice, true, from);
            let load = self.private(dice, false, from);
            let (first, second) = if dice.percent(80) { (store, load) } else { (load, store) };
            insert(dice, steps, at, first);
            let at = at + 1 + dice.below(2) as usize;
            insert(dice, steps, at, second);
        }
        if dice.percent(8) && self.affords(2) {
            let mut access = self.access(dice, Event { write: false, place: 0 });
            access.place.param =
                self.params.iter().position(|p| p.role == Role::ReadOnly).unwrap_or_default();
            access.kind = Kind::Load(self.shown(dice, access.place.width));
            (access.order, access.scope) = (Order::Weak, None);
            steps.insert(0, BlockStep::Access(access));
        }
        self.halves(dice, steps, from);
    }

    /// Adds a store and a load of elements of four bits, which belong to this block.
    fn halves(&mut self, dice: &mut Dice<'_, '_>, steps: &mut Vec<BlockStep>, from: u32) {
        if !dice.percent(self.knobs.half_percent) || !self.affords(3) {
            return;
        }
        let param = self.params.iter().position(|p| p.elem == HALF).unwrap_or_else(|| {
            self.params.push(Param { elem: HALF, role: Role::Private });
            self.params.len() - 1
        });
        let turn = if self.uniform { Turn::Own } else { Turn::Fixed };
        let place = Where { param, at: from, width: self.width, turn, ..self.scalar(0) };
        let via = Via::View { open: dice.percent(30), strided: false, moved: false };
        let source = Source::Counted(self.constant(dice));
        for kind in [Kind::Store(source), Kind::Load(Shown::Plain)] {
            let (order, scope, mask) = (Order::Weak, None, Mask::All);
            let access = Access { kind, place, via, order, scope, mask, wait: self.wait(dice) };
            steps.push(BlockStep::Access(access));
        }
    }

    /// Draws an access to memory of this block alone; its part of the parameter starts at `from`.
    fn private(&mut self, dice: &mut Dice<'_, '_>, write: bool, from: u32) -> BlockStep {
        let mut access = self.access(dice, Event { write, place: 0 });
        let place = &mut access.place;
        place.param = self.params.iter().position(|p| p.role == Role::Private).unwrap_or_default();
        place.at = place.at % self.width + from;
        place.turn = if self.uniform { Turn::Own } else { Turn::Fixed };
        if !place.mapping.injective() {
            place.mapping = Mapping::Reversed;
        }
        if matches!(access.mask, Mask::Off | Mask::Read(..)) {
            access.mask = Mask::All;
        }
        let atomic = matches!(access.kind, Kind::Rmw(..) | Kind::Cas(..));
        if !atomic && dice.percent(60) {
            (access.order, access.scope) = (Order::Weak, None);
        } else if dice.percent(50) {
            access.scope = Some(Scope::TileBlock);
        }
        if dice.percent(15) {
            return BlockStep::For { turns: 2, body: vec![BlockStep::Access(access)], carries: false };
        }
        BlockStep::Access(access)
    }

    /// Adds a write by the first block and a read of it by the last.
    fn connect(&mut self, dice: &mut Dice<'_, '_>, plan: &mut Plan) {
        let turned = |turn| if plan.uniform() { turn } else { Turn::Fixed };
        let spot = Where { turn: turned(Turn::Own), ..self.scalar(0) };
        let wide = dice.percent(self.knobs.wide_percent);
        let width = if wide { self.width } else { 0 };
        let (order, scope, mask) = (Order::Relaxed, self.scope(dice), Mask::All);
        let value = Source::Constant(self.constant(dice));
        let write = Kind::Store(value);
        let (place, via) = (Where { width, ..spot }, self.via(dice));
        let write = Access { kind: write, place, via, order, scope, mask, wait: self.wait(dice) };
        let order = if dice.percent(self.style.sync) { Order::Acquire } else { Order::Relaxed };
        let place = Where { turn: turned(Turn::Other), ..spot };
        let kind = Kind::Load(self.shown(dice, 0));
        let read = Access { kind, place, via, order, scope, mask, wait: self.wait(dice) };
        let last = plan.bodies.len() - 1;
        plan.bodies[0].push(BlockStep::Access(write));
        plan.bodies[last].push(BlockStep::Access(read));
    }

    /// Draws a plan that hands over weak data behind a flag.
    fn handed(&mut self, dice: &mut Dice<'_, '_>) -> Plan {
        self.params[0].role = Role::Shared;
        let data = self.params.len();
        let elem = self.params[0].elem;
        self.params.push(Param { elem, role: Role::Handed });
        let flag = Where { param: 0, at: 0, ..self.scalar(0) };
        let width = if dice.percent(60) { self.width } else { 0 };
        let place = Where { param: data, width, ..flag };
        let (weak, scope, mask) = (Order::Weak, None, Mask::All);
        let source = if width > 0 { Source::Counted(1) } else { Source::Constant(1) };
        let (kind, via) = (Kind::Store(source), self.via(dice));
        let store = Access { kind, place, via, order: weak, scope, mask, wait: Wait::Nothing };
        let wait = Wait::Last;
        let flagged = Access {
            kind: Kind::Store(Source::Constant(1)),
            place: flag,
            via: Via::Pointers,
            order: Order::Release,
            scope: self.scope(dice),
            mask,
            wait,
        };
        let seen = Access {
            kind: Kind::Load(self.shown(dice, 0)),
            order: Order::Acquire,
            wait: Wait::Nothing,
            ..flagged
        };
        let mapping = dice.of(&[Mapping::InOrder, Mapping::Reversed, Mapping::Pairs]);
        let load =
            Access { kind: Kind::Load(Shown::Plain), place: Where { mapping, ..place }, wait, ..store };
        let guarded = BlockStep::If {
            read: 0,
            predicate: Predicate::Equal,
            with: 1,
            then: vec![BlockStep::Access(load)],
            otherwise: None,
            yields: false,
            marks: None,
        };
        let bodies = vec![
            vec![BlockStep::Access(store), BlockStep::Access(flagged)],
            vec![BlockStep::Access(seen), guarded],
        ];
        Plan { params: self.params.clone(), blocks: 2, bodies, nested: dice.percent(50), safe: false }
    }
}

/// Draws a plan that publishes a tile by a flag. Nothing but the token lets the other block's tile wait for the flag: what it has
/// read is shown at the end.
fn published(dice: &mut Dice<'_, '_>, knobs: &TileKnobs) -> Plan {
    let draw = Draw::new(dice, knobs, false);
    let (flag, tile) = (draw.scalar(0), Where { width: draw.width, ..draw.scalar(1) });
    let mut access = |kind, place: Where, order, wait| {
        let via = if place.width > 0 { draw.via(dice) } else { Via::Pointers };
        BlockStep::Access(Access { kind, place, via, order, scope: draw.scope(dice), mask: Mask::All, wait })
    };
    let store = Kind::Store(Source::Constant(1));
    let first = vec![
        access(store, tile, Order::Relaxed, Wait::Nothing),
        access(store, flag, Order::Release, Wait::Last),
    ];
    let second = vec![
        access(Kind::Load(Shown::Later), flag, Order::Acquire, Wait::Nothing),
        access(Kind::Load(Shown::Later), tile, Order::Relaxed, Wait::Last),
        BlockStep::Show(1),
        BlockStep::Show(0),
    ];
    pair(dice, &draw, [first, second])
}

/// Draws load buffering in which a store waits for a token that the value read has chosen.
fn chosen(dice: &mut Dice<'_, '_>, knobs: &TileKnobs) -> Plan {
    let draw = Draw::new(dice, knobs, false);
    let mut access = |kind, place, wait| {
        let (via, order, mask) = (Via::Pointers, Order::Relaxed, Mask::All);
        BlockStep::Access(Access { kind, place, via, order, scope: draw.scope(dice), mask, wait })
    };
    let (load, constant) = (Kind::Load(Shown::Plain), Kind::Store(Source::Constant(1)));
    let copied = Kind::Store(Source::Read(0, Combine::Or, 0));
    let choice = BlockStep::If {
        read: 0,
        predicate: Predicate::Equal,
        with: 1,
        then: Vec::new(),
        otherwise: Some(vec![BlockStep::Fresh]),
        yields: true,
        marks: None,
    };
    let first = vec![
        access(load, draw.scalar(0), Wait::Nothing),
        choice,
        access(constant, draw.scalar(1), Wait::Last),
    ];
    let second =
        vec![access(load, draw.scalar(1), Wait::Nothing), access(copied, draw.scalar(0), Wait::Nothing)];
    pair(dice, &draw, [first, second])
}

/// A plan of two blocks.
fn pair(dice: &mut Dice<'_, '_>, draw: &Draw<'_>, bodies: [Vec<BlockStep>; 2]) -> Plan {
    let (params, bodies) = (draw.params.clone(), bodies.into());
    Plan { params, blocks: 2, bodies, nested: dice.percent(50), safe: true }
}

/// Inserts a step at `at`, or into the `if` that stands there.
fn insert(dice: &mut Dice<'_, '_>, steps: &mut Vec<BlockStep>, at: usize, step: BlockStep) {
    let inside = dice.percent(60);
    match steps.get_mut(at) {
        Some(BlockStep::If { then, .. }) if inside => {
            let at = dice.below(2) as usize;
            then.insert(at.min(then.len()), step);
        }
        _ => steps.insert(at.min(steps.len()), step),
    }
}

fn combine(dice: &mut Dice<'_, '_>) -> Combine {
    dice.of(&[
        Combine::Not,
        Combine::Not,
        Combine::Add,
        Combine::Add,
        Combine::Xor,
        Combine::And,
        Combine::Or,
    ])
}

/// Turns a load into a loop that waits for the value another block stores, if the parameter has no other write.
fn spin(plan: &mut Plan) {
    let mut stored = Vec::new();
    for (block, body) in plan.bodies.iter().enumerate() {
        for step in body {
            let BlockStep::Access(access) = step else { continue };
            if let (Kind::Store(Source::Constant(value @ 1..)), Mask::All) = (access.kind, access.mask) {
                stored.push((block, access.place, value));
            }
        }
    }
    let writes: Vec<usize> = plan.bodies.iter().map(|body| written(body)).collect::<Vec<_>>().concat();
    stored.retain(|(_, place, _)| writes.iter().filter(|w| **w == place.param).count() == 1);
    let blocks = plan.blocks;
    for (block, body) in plan.bodies.iter_mut().enumerate() {
        for step in body {
            let BlockStep::Access(access) = &*step else { continue };
            let plain = access.place.width == 0 && access.mask == Mask::All && access.order != Order::Weak;
            let (Kind::Load(_), true) = (access.kind, plain) else { continue };
            let at = access.place.elements(0, blocks);
            let from = stored.iter().find(|(by, place, _)| {
                *by != block && at.iter().all(|e| place.elements(0, blocks).contains(e))
            });
            if let Some((_, _, value)) = from {
                *step = BlockStep::Spin(*access, *value);
                return;
            }
        }
    }
}

/// Turns a strong scalar load of some block into a loop with its result.
fn tries(dice: &mut Dice<'_, '_>, plan: &mut Plan) {
    for step in plan.bodies.iter_mut().flatten() {
        let BlockStep::Access(access) = &*step else { continue };
        let plain = access.place.width == 0 && access.mask == Mask::All && access.order != Order::Weak;
        if plain && matches!(access.kind, Kind::Load(_)) {
            *step = BlockStep::Tries(*access, u64::from(dice.below(3)));
            return;
        }
    }
}

/// The parameter of each write.
fn written(steps: &[BlockStep]) -> Vec<usize> {
    let of = |step: &BlockStep| match step {
        BlockStep::Access(access) if access.writes() => vec![access.place.param],
        BlockStep::Access(_) | BlockStep::Spin(..) | BlockStep::Tries(..) => Vec::new(),
        BlockStep::Skip { .. } | BlockStep::Show(_) | BlockStep::Fresh => Vec::new(),
        BlockStep::If { then, otherwise, .. } => {
            [written(then), written(otherwise.as_deref().unwrap_or_default())].concat()
        }
        BlockStep::For { body, .. } => written(body),
    };
    steps.iter().flat_map(of).collect()
}

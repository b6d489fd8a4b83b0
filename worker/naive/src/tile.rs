//! Tile blocks: an event for each element that is not masked off, and what tokens stand for.
//!
//! On a path all values are known, so a token is a set of events of the path: those of all instructions it goes back to,
//! and those of the nearest ones. If a value decided which token it is, an instruction that waits for it waits for that
//! value, too. (Tile IR specification, chapter 7.)

use super::access::Piece;
use super::event::{Refusal, UNKNOWN};
use super::pairs::{EVENTS, Events, one};
use super::state::{Before, Runner, State};
use super::tags::{bit, load_tags, store_tags};
use moire_cat::vocabulary::sets;
use moire_program::ir::{
    Operand, Proxy, Reg, RmwOrder, Space, TileAccess, TileElement, TileKind, TileOp, TileToken,
};

/// An element that takes part.
struct Active<'a> {
    element: &'a TileElement,
    number: usize,
    piece: Piece,
    address: Events,
    /// Reads that decide whether it does.
    exists: Events,
}

fn before(s: &State, token: Reg) -> Before {
    s.tokens.get(&token).copied().unwrap_or_default()
}

/// One continuation for each combination of values read.
pub(super) fn tile(
    run: &Runner<'_>,
    mut s: State,
    op: &TileOp,
    todo: &mut Vec<State>,
) -> Result<(), Refusal> {
    match op {
        TileOp::Access(access) => return tile_access(run, s, access, todo),
        TileOp::Token(token) => tile_token(run, &mut s, token),
    }
    s.pc += 1;
    todo.push(s);
    Ok(())
}

fn tile_token(run: &Runner<'_>, s: &mut State, token: &TileToken) {
    let (dst, made) = match token {
        TileToken::Join { dst, from } => {
            (*dst, from.iter().fold(Before::default(), |all, t| all.and(before(s, *t))))
        }
        TileToken::Choose { dst, when, yes, no } => {
            let (yes, no) = (before(s, *yes), before(s, *no));
            let (value, deps) = run.operand(s, Operand::Reg(*when));
            let mut taken = if value == 0 { no } else { yes };
            taken.chosen_by |= deps;
            (*dst, if run.rules.both_arms { yes.and(no) } else { taken })
        }
    };
    s.regs[dst.index()] = (0, 0);
    s.tokens.insert(dst, made);
}

/// The elements whose masks are not zero.
fn active<'a>(
    run: &Runner<'_>,
    s: &State,
    access: &'a TileAccess,
    wait: Before,
) -> Result<Vec<Active<'a>>, Refusal> {
    let mut out = Vec::new();
    for (number, element) in access.elements.iter().enumerate() {
        let (mask, decided) = element.mask.map_or((1, 0), |m| run.operand(s, Operand::Reg(m)));
        if mask == 0 {
            continue;
        }
        let (mut pieces, address) = run.pieces(s, access.ty, 1, element.addr, true, false)?;
        let (Some(piece), true) = (pieces.pop(), pieces.is_empty()) else {
            return Err(Refusal::Unsupported("an element of two pieces".into()));
        };
        if run.program.objects[run.memory.instances[piece.range.instance].object.index()].space
            == Space::SharedCta
        {
            return Err(Refusal::Unsupported("a tile in shared memory".into()));
        }
        out.push(Active { element, number, piece, address, exists: decided | wait.chosen_by });
    }
    Ok(out)
}

fn tile_access(
    run: &Runner<'_>,
    s: State,
    access: &TileAccess,
    todo: &mut Vec<State>,
) -> Result<(), Refusal> {
    let wait = access.after.map_or_else(Before::default, |t| before(&s, t));
    let active = active(run, &s, access, wait)?;
    let reads = !matches!(access.kind, TileKind::Store(_));
    let mut choices: Vec<Vec<Vec<u128>>> = vec![vec![]];
    for element in active.iter().filter(|_| reads) {
        let values = run.candidates(&element.piece);
        let longer = choices
            .iter()
            .flat_map(|c| values.iter().map(|v| c.iter().cloned().chain([v.clone()]).collect()));
        choices = longer.collect();
        if choices.len() > run.rules.paths {
            return Err(Refusal::TooMany("values of a read"));
        }
    }
    for values in choices {
        let mut next = s.clone();
        tile_perform(run, &mut next, access, &active, wait, &values)?;
        next.pc += 1;
        todo.push(next);
    }
    Ok(())
}

fn tile_perform(
    run: &Runner<'_>,
    s: &mut State,
    access: &TileAccess,
    active: &[Active<'_>],
    wait: Before,
    values: &[Vec<u128>],
) -> Result<(), Refusal> {
    let first = s.events.len();
    let mut results: Vec<(Reg, (u128, Events))> = Vec::new();
    let mut turn = active.iter().zip(0..).peekable();
    for (number, element) in access.elements.iter().enumerate() {
        let (_, decided) = element.mask.map_or((1, 0), |m| run.operand(s, Operand::Reg(m)));
        let (padding, padded) = match (access.kind, element.a) {
            (TileKind::Load(_), Some(a)) => run.operand(s, a),
            (TileKind::Load(_) | TileKind::Store(_) | TileKind::Rmw { .. }, _) => (0, 0),
        };
        let pads = !matches!(access.kind, TileKind::Load(_)) || element.a.is_some();
        let Some((active, n)) = turn.next_if(|(a, _)| a.number == number) else {
            s.next += if matches!(access.kind, TileKind::Rmw { .. }) { 2 } else { 1 };
            let unknown = if pads { 0 } else { UNKNOWN };
            let deps = decided | wait.chosen_by | padded | unknown;
            results.extend(element.dst.map(|dst| (dst, (padding, deps))));
            continue;
        };
        // An element has two events at most.
        if s.events.len() + 2 > EVENTS {
            return Err(Refusal::TooMany("events of a thread"));
        }
        let content = values.get(n).map(Vec::as_slice);
        let seen = tile_element(run, s, access, active, wait, content)?;
        let deps = seen.1 | active.exists | padded;
        results.extend(element.dst.map(|dst| (dst, (seen.0, deps))));
    }
    for (dst, state) in results {
        s.regs[dst.index()] = state;
    }
    let own = (first..s.events.len()).fold(0, |all, i| all | one(i));
    if let Some(token) = access.token {
        s.regs[token.index()] = (0, 0);
        s.tokens.insert(token, Before { ever: wait.ever | own, nearest: own, ..wait });
    }
    Ok(())
}

/// The events of one element; what was read, and the event.
fn tile_element(
    run: &Runner<'_>,
    s: &mut State,
    access: &TileAccess,
    active: &Active<'_>,
    wait: Before,
    content: Option<&[u128]>,
) -> Result<(u128, Events), Refusal> {
    let memory = bit(sets::M) | bit(sets::TILE) | super::tags::proxy_tag(Proxy::Generic);
    let event = |s: &State, tags, scope| {
        let mut e = run.event(s, memory | tags, scope);
        (e.address, e.piece) = (active.address, Some((s.instructions, active.number)));
        (e.control, e.nearby) = (e.control | active.exists, e.nearby | active.exists);
        (e.token, e.token_nearest) = (wait.ever, wait.nearest);
        e
    };
    let operand = |s: &State, o: Option<Operand>| o.map_or((0, 0), |o| run.operand(s, o));
    let read = |s: &mut State, tags, scope| {
        let mut e = event(s, tags | bit(sets::R), scope);
        let content = content.unwrap_or(&[]);
        e.range = Some(active.piece.range);
        e.cells = active.piece.cells().iter().copied().zip(content.iter().copied()).collect();
        let value = run.whole(&active.piece, content);
        (value, Runner::push(s, e))
    };
    match access.kind {
        TileKind::Load(order) => {
            let (tags, scope) = load_tags(order);
            let (value, at) = read(s, tags, scope);
            Ok((value.unwrap_or(0), one(at)))
        }
        TileKind::Store(order) => {
            let (tags, scope) = store_tags(order);
            let (value, data) = operand(s, active.element.a);
            let mut e = event(s, tags | bit(sets::W), scope);
            e.data = data;
            run.place(&mut e, &active.piece, Some(value));
            Runner::push(s, e);
            Ok((0, 0))
        }
        TileKind::Rmw { op, order, scope } => {
            let (acquires, releases) = match order {
                RmwOrder::Relaxed => (false, false),
                RmwOrder::Acquire => (true, false),
                RmwOrder::Release => (false, true),
                RmwOrder::AcqRel | RmwOrder::SeqCst => (true, true),
            };
            let tag = |strong: bool, set| bit(sets::ATOM) | bit(if strong { set } else { sets::RLX });
            let (old, at) = read(s, tag(acquires, sets::ACQ), Some(scope));
            let old = old.unwrap_or(0);
            let ((a, da), (b, db)) = (operand(s, active.element.a), operand(s, active.element.b));
            match run.replaced(op, access.ty, (old, a, b)) {
                None => s.next += 1,
                Some(new) => {
                    let mut e = event(s, tag(releases, sets::REL) | bit(sets::W), Some(scope));
                    e.data = da | db;
                    e.reads_first = Some((at, op != moire_program::ir::AtomOp::Exch));
                    run.place(&mut e, &active.piece, Some(new));
                    Runner::push(s, e);
                }
            }
            Ok((old, one(at)))
        }
    }
}

//! Tile blocks: one event an element, and tokens.
//!
//! Tile IR specification, chapter 7: an instruction waits for what its token stands for and makes a token that stands
//! for itself and for all that (7.6). A token is kept as two sets of events: *all* of them, and *direct*, those of the
//! instructions that made the tokens it is joined of; masked-off elements are in neither, so that an instruction without
//! events still hands on what it waited for in the first and nothing in the second. Both follow the executed path: what
//! an `if` yields is known when its condition is, unless both arms count (`TOKIF=B`). An instruction whose token or mask
//! is not known yet may still come, like one whose address is pending. A choice of tokens is thus a dependency of what
//! waits for it: a reading of ours, since a token is a value and values do not justify themselves (7.9).

use super::event::deps::{Deps, THREAD_EVENTS};
use super::event::labels::{load_labels, rmw_labels, store_labels};
use super::event::{Emitted, Kind};
use super::event::{Mate, TokenInfo};
use super::machine::Machine;
use super::rmw;
use super::rmw::{Update, Written};
use super::token::Token;
use super::trace::{RegState, TraceEnd, View};

use moire_cat::vocabulary::sets;
use moire_program::ir::*;

/// Whether an element has its event, and the reads that decide it.
#[derive(Clone, Copy)]
struct Existence {
    runs: Option<bool>,
    deps: Deps,
}

/// What all elements of an instruction share.
struct Common<'i> {
    instr: &'i Instr,
    pc: usize,
    access: &'i TileAccess,
    wait: Token,
}

/// Bytes of an element.
fn bytes(access: &TileAccess) -> u32 {
    access.ty.bytes()
}

fn token<V: View>(m: &Machine<'_, V>, reg: Reg) -> Token {
    m.tokens.get(&reg).copied().unwrap_or_default()
}

fn set_token<V: View>(m: &mut Machine<'_, V>, reg: Reg, token: Token) {
    m.regs[reg.index()] = RegState { value: Some(0), deps: Deps::NONE };
    m.tokens.insert(reg, token);
}

pub(crate) fn tile<V: View>(
    m: &mut Machine<'_, V>,
    op: &TileOp,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    match op {
        TileOp::Access(access) => tile_access(m, access, instr, pc),
        TileOp::Token(TileToken::Join { dst, from }) => {
            let all = from.iter().fold(Token::default(), |t, r| t.with(token(m, *r)));
            set_token(m, *dst, all);
            Ok(())
        }
        TileOp::Token(TileToken::Choose { dst, when, yes, no }) => {
            let (yes, no) = (token(m, *yes), token(m, *no));
            let chosen = if m.front.both_arms {
                yes.with(no)
            } else {
                let when = m.operand(Operand::Reg(*when));
                let arm = match when.value {
                    Some(0) => no,
                    Some(_) => yes,
                    None => Token { pending: true, ..Token::default() },
                };
                Token { deps: arm.deps.with(when.deps), ..arm }
            };
            set_token(m, *dst, chosen);
            Ok(())
        }
    }
}

fn tile_access<V: View>(
    m: &mut Machine<'_, V>,
    access: &TileAccess,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    if m.events.len() + 2 * access.elements.len() > THREAD_EVENTS - 8 {
        let what = format!("a tile block with more than {} events", THREAD_EVENTS - 8);
        return Err(TraceEnd::Unsupported(what, instr.line));
    }
    let wait = access.after.map_or_else(Token::default, |r| token(m, r));
    let common = Common { instr, pc, access, wait };
    let first = m.events.len();
    for element in &access.elements {
        match access.kind {
            TileKind::Load(order) => tile_load(m, &common, order, element)?,
            TileKind::Store(order) => tile_store(m, &common, order, element)?,
            TileKind::Rmw { op, order, scope } => tile_rmw(m, &common, (op, order, scope), element)?,
        }
    }
    let made = (first..m.events.len()).filter_map(|i| u16::try_from(i).ok());
    let own = made.fold(Deps::NONE, |d, i| d.with(Deps::of(i)));
    if let Some(token) = access.token {
        set_token(m, token, Token { all: wait.all.with(own), direct: own, ..wait });
    }
    Ok(())
}

fn decide<V: View>(m: &Machine<'_, V>, common: &Common<'_>, element: &TileElement) -> Existence {
    let mask = element.mask.map(|r| m.operand(Operand::Reg(r)));
    let deps = common.wait.deps.with(mask.map_or(Deps::NONE, |m| m.deps));
    let masked = mask.map_or(Some(true), |m| m.value.map(|v| v != 0));
    let runs = if common.wait.pending && masked != Some(false) { None } else { masked };
    Existence { runs, deps }
}

/// An event of an element, its address resolved where that can be asked.
fn tile_event<V: View>(
    m: &mut Machine<'_, V>,
    common: &Common<'_>,
    kind: Kind,
    (labels, scope): (u128, Option<Scope>),
    element: &TileElement,
    existence: Existence,
) -> Result<Emitted, TraceEnd> {
    let tile = 1 << sets::TILE;
    let mut event = m.blank(common.instr, common.pc, kind, labels | tile, scope);
    let base = m.address(&element.addr);
    event.needs.addr = base.deps;
    event.needs.ctrl = event.needs.ctrl.with(existence.deps);
    event.needs.ctrl_reconv = event.needs.ctrl_reconv.with(existence.deps);
    event.token = TokenInfo { all: common.wait.all, direct: common.wait.direct };
    let found = m.access(common.instr, Space::Global, base, 0, bytes(common.access));
    event.access = match existence.runs {
        Some(true) => found?,
        // Nothing is wrong with the address of an element that is masked off.
        _ => found.unwrap_or_default(),
    };
    Ok(event)
}

/// What an element leaves in its register.
fn tile_result<V: View>(
    m: &mut Machine<'_, V>,
    common: &Common<'_>,
    element: &TileElement,
    existence: Existence,
    (index, read): (u16, Option<Value>),
) {
    let Some(dst) = element.dst else { return };
    let off = existence.runs == Some(false);
    let padding = match (common.access.kind, element.a) {
        (TileKind::Load(_), Some(padding)) => m.operand(padding),
        (TileKind::Load(_), None) if off => RegState { value: None, deps: Deps::UNKNOWN },
        (TileKind::Load(_), None) | (TileKind::Store(_) | TileKind::Rmw { .. }, _) => {
            RegState { value: Some(0), deps: Deps::NONE }
        }
    };
    // The element depends on its padding even if it is not masked off, so its value is not used before the padding is known.
    let waits = padding.value.is_none() && !padding.deps.unknown();
    let value = match existence.runs {
        Some(true) => read.filter(|_| !waits),
        Some(false) => padding.value,
        None => None,
    };
    let seen = if off { Deps::NONE } else { Deps::of(index) };
    let deps = seen.with(existence.deps).with(padding.deps);
    let unknown = existence.runs == Some(true) && m.view.unknown(index);
    m.regs[dst.index()] = RegState { value, deps: if unknown { deps.with(Deps::UNKNOWN) } else { deps } };
}

fn tile_load<V: View>(
    m: &mut Machine<'_, V>,
    common: &Common<'_>,
    order: LoadOrder,
    element: &TileElement,
) -> Result<(), TraceEnd> {
    let existence = decide(m, common, element);
    let labels = load_labels(order, Proxy::Generic);
    let event = tile_event(m, common, Kind::Read, labels, element, existence)?;
    let (index, known) = (event.index, existence.runs == Some(true) && event.access.is_some());
    let value = if known { m.view.read(index) } else { None };
    m.events.push(known.then_some(event));
    tile_result(m, common, element, existence, (index, value));
    Ok(())
}

/// Places a write, one that may come, or nothing.
fn tile_write<V: View>(m: &mut Machine<'_, V>, event: Emitted, existence: Existence) {
    match existence.runs {
        Some(false) => m.events.push(None),
        runs => m.write(event, runs == Some(true)),
    }
}

fn tile_store<V: View>(
    m: &mut Machine<'_, V>,
    common: &Common<'_>,
    order: StoreOrder,
    element: &TileElement,
) -> Result<(), TraceEnd> {
    let existence = decide(m, common, element);
    let labels = store_labels(order, Proxy::Generic);
    let mut event = tile_event(m, common, Kind::Write, labels, element, existence)?;
    let source = element.a.map_or_else(RegState::default, |a| m.operand(a));
    event.needs.data = source.deps;
    event.value = source.value.map(|v| moire_execution::leaf::truncate(v, bytes(common.access) * 8));
    if source.deps.unknown() {
        event.value = Some(0);
    }
    tile_write(m, event, existence);
    Ok(())
}

fn tile_rmw<V: View>(
    m: &mut Machine<'_, V>,
    common: &Common<'_>,
    (op, order, scope): (AtomOp, RmwOrder, Scope),
    element: &TileElement,
) -> Result<(), TraceEnd> {
    let existence = decide(m, common, element);
    let labels = rmw_labels(order, scope, Proxy::Generic, false);
    let (a, b) = (element.a.unwrap_or(Operand::Imm(0)), element.b);
    let update = Update { labels, scope, space: Space::Global, op, ty: common.access.ty, a, b };
    let read = tile_event(m, common, Kind::Read, (labels.0, Some(scope)), element, existence)?;
    let (index, known) = (read.index, existence.runs == Some(true) && read.access.is_some());
    let old = if known { m.view.read(index) } else { None };
    m.events.push(known.then_some(read));
    let mut write = tile_event(m, common, Kind::Write, (labels.1, Some(scope)), element, existence)?;
    let (a, b) = (m.operand(a), b.map(|b| m.operand(b)));
    write.mate = Some(Mate { read: index, uses_value: op != AtomOp::Exch });
    write.needs.data = a.deps.with(b.map_or(Deps::NONE, |b| b.deps));
    if op != AtomOp::Exch {
        write.needs.data = write.needs.data.with(Deps::of(index));
    }
    let mut existence = existence;
    match rmw::written(m, &update, old, a, b, bytes(common.access)) {
        Written::Nothing => existence.runs = Some(false),
        Written::Pending if op == AtomOp::Cas && !m.front.cas_writes_back => {
            existence.runs = existence.runs.filter(|runs| !runs);
        }
        Written::Pending => {}
        Written::Value(v) => write.value = Some(v),
    }
    tile_write(m, write, existence);
    tile_result(m, common, element, decide(m, common, element), (index, old));
    Ok(())
}

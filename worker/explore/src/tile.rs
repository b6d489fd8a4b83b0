//! Tile blocks: one event an element, and tokens.
//!
//! Tile IR specification, chapter 7: an instruction waits for what its token stands for and makes a token that stands
//! for itself and for all that (7.6). A token is kept as two sets of events: *all* of them, and *direct*, those of the
//! instructions that made the tokens it is joined of; masked-off elements are in neither, so that an instruction without
//! events still hands on what it waited for in the first and nothing in the second. Both follow the executed path: what
//! an `if` yields is known when its condition is, unless both arms count (`TOKIF=B`). An instruction whose token or mask
//! is not known yet may still come, like one whose address is pending. A choice of tokens is thus a dependency of what
//! waits for it: a reading of ours, since a token is a value and values do not justify themselves (7.9).

use crate::event::*;
use crate::interp::{Machine, RegState, TraceEnd, View};
use crate::rmw::{Update, Written};
use crate::unknown::{mark, marked};
use moire_cat::vocabulary::{rels, sets};
use moire_program::ir::*;

/// What a token stands for, and on what it depends which one it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Token {
    all: Deps,
    direct: Deps,
    deps: Deps,
    pending: bool,
}

impl Token {
    fn with(self, other: Token) -> Token {
        Token {
            all: join(self.all, other.all),
            direct: join(self.direct, other.direct),
            deps: join(self.deps, other.deps),
            pending: self.pending || other.pending,
        }
    }
}

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

/// Token order of two events.
pub(crate) fn relate(x: &Emitted, y: &Emitted, put: &mut impl FnMut(usize, bool)) {
    put(rels::TOKEN, has_dep(&y.token, x.index));
    put(rels::TOKEN_DIRECT, has_dep(&y.token_direct, x.index));
}

impl<V: View> Machine<'_, V> {
    fn token(&self, reg: Reg) -> Token {
        self.tokens.get(&reg).copied().unwrap_or_default()
    }

    fn set_token(&mut self, reg: Reg, token: Token) {
        self.regs[reg.index()] = RegState { value: Some(0), deps: [0; 4] };
        self.tokens.insert(reg, token);
    }

    pub(crate) fn tile(&mut self, op: &TileOp, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        match op {
            TileOp::Access(access) => self.tile_access(access, instr, pc),
            TileOp::Token(TileToken::Join { dst, from }) => {
                let all = from.iter().fold(Token::default(), |t, r| t.with(self.token(*r)));
                self.set_token(*dst, all);
                Ok(())
            }
            TileOp::Token(TileToken::Choose { dst, when, yes, no }) => {
                let (yes, no) = (self.token(*yes), self.token(*no));
                let chosen = if self.front.both_arms {
                    yes.with(no)
                } else {
                    let when = self.operand(Operand::Reg(*when));
                    let arm = match when.value {
                        Some(0) => no,
                        Some(_) => yes,
                        None => Token { pending: true, ..Token::default() },
                    };
                    Token { deps: join(arm.deps, when.deps), ..arm }
                };
                self.set_token(*dst, chosen);
                Ok(())
            }
        }
    }

    fn tile_access(&mut self, access: &TileAccess, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        if self.events.len() + 2 * access.elements.len() > THREAD_EVENTS - 8 {
            let what = format!("a tile block with more than {} events", THREAD_EVENTS - 8);
            return Err(TraceEnd::Unsupported(what, instr.line));
        }
        let wait = access.after.map_or_else(Token::default, |r| self.token(r));
        let common = Common { instr, pc, access, wait };
        let first = self.events.len();
        for element in &access.elements {
            match access.kind {
                TileKind::Load(order) => self.tile_load(&common, order, element)?,
                TileKind::Store(order) => self.tile_store(&common, order, element)?,
                TileKind::Rmw { op, order, scope } => self.tile_rmw(&common, (op, order, scope), element)?,
            }
        }
        let made = (first..self.events.len()).filter_map(|i| u16::try_from(i).ok());
        let own = made.fold([0; 4], |d, i| join(d, dep(i)));
        if let Some(token) = access.token {
            self.set_token(token, Token { all: join(wait.all, own), direct: own, ..wait });
        }
        Ok(())
    }

    fn existence(&self, common: &Common<'_>, element: &TileElement) -> Existence {
        let mask = element.mask.map(|r| self.operand(Operand::Reg(r)));
        let deps = join(common.wait.deps, mask.map_or([0; 4], |m| m.deps));
        let masked = mask.map_or(Some(true), |m| m.value.map(|v| v != 0));
        let runs = if common.wait.pending && masked != Some(false) { None } else { masked };
        Existence { runs, deps }
    }

    /// An event of an element, its address resolved where that can be asked.
    fn tile_event(
        &mut self,
        common: &Common<'_>,
        kind: Kind,
        (labels, scope): (u128, Option<Scope>),
        element: &TileElement,
        existence: Existence,
    ) -> Result<Emitted, TraceEnd> {
        let tile = 1 << sets::TILE;
        let mut event = self.blank(common.instr, common.pc, kind, labels | tile, scope);
        let base = self.address(&element.addr);
        event.addr = base.deps;
        event.ctrl = join(event.ctrl, existence.deps);
        event.ctrl_reconv = join(event.ctrl_reconv, existence.deps);
        (event.token, event.token_direct) = (common.wait.all, common.wait.direct);
        let found = self.access(common.instr, Space::Global, base, 0, bytes(common.access));
        event.access = match existence.runs {
            Some(true) => found?,
            // Nothing is wrong with the address of an element that is masked off.
            _ => found.unwrap_or_default(),
        };
        Ok(event)
    }

    /// What an element leaves in its register.
    fn tile_result(
        &mut self,
        common: &Common<'_>,
        element: &TileElement,
        existence: Existence,
        (index, read): (u16, Option<Value>),
    ) {
        let Some(dst) = element.dst else { return };
        let off = existence.runs == Some(false);
        let padding = match (common.access.kind, element.a) {
            (TileKind::Load(_), Some(padding)) => self.operand(padding),
            (TileKind::Load(_), None) if off => RegState { value: None, deps: mark() },
            _ => RegState { value: Some(0), deps: [0; 4] },
        };
        let value = match existence.runs {
            Some(true) => read,
            Some(false) => padding.value,
            None => None,
        };
        let seen = if off { [0; 4] } else { dep(index) };
        let deps = join(join(seen, existence.deps), padding.deps);
        let unknown = existence.runs == Some(true) && self.view.unknown(index);
        self.regs[dst.index()] = RegState { value, deps: if unknown { join(deps, mark()) } else { deps } };
    }

    fn tile_load(
        &mut self,
        common: &Common<'_>,
        order: LoadOrder,
        element: &TileElement,
    ) -> Result<(), TraceEnd> {
        let existence = self.existence(common, element);
        let labels = load_labels(order, Proxy::Generic);
        let event = self.tile_event(common, Kind::Read, labels, element, existence)?;
        let (index, known) = (event.index, existence.runs == Some(true) && event.access.is_some());
        let value = if known { self.view.read(index) } else { None };
        self.events.push(known.then_some(event));
        self.tile_result(common, element, existence, (index, value));
        Ok(())
    }

    /// Places a write, one that may come, or nothing.
    fn tile_write(&mut self, event: Emitted, existence: Existence) {
        match existence.runs {
            Some(false) => self.events.push(None),
            runs => self.write(event, runs == Some(true)),
        }
    }

    fn tile_store(
        &mut self,
        common: &Common<'_>,
        order: StoreOrder,
        element: &TileElement,
    ) -> Result<(), TraceEnd> {
        let existence = self.existence(common, element);
        let labels = store_labels(order, Proxy::Generic);
        let mut event = self.tile_event(common, Kind::Write, labels, element, existence)?;
        let source = element.a.map_or_else(RegState::default, |a| self.operand(a));
        event.data = source.deps;
        event.value = source.value.map(|v| crate::leaf::truncate(v, bytes(common.access) * 8));
        if marked(&source.deps) {
            event.value = Some(0);
        }
        self.tile_write(event, existence);
        Ok(())
    }

    fn tile_rmw(
        &mut self,
        common: &Common<'_>,
        (op, order, scope): (AtomOp, RmwOrder, Scope),
        element: &TileElement,
    ) -> Result<(), TraceEnd> {
        let existence = self.existence(common, element);
        let labels = rmw_labels(order, scope, Proxy::Generic, false);
        let (a, b) = (element.a.unwrap_or(Operand::Imm(0)), element.b);
        let update = Update { labels, scope, space: Space::Global, op, ty: common.access.ty, a, b };
        let read = self.tile_event(common, Kind::Read, (labels.0, Some(scope)), element, existence)?;
        let (index, known) = (read.index, existence.runs == Some(true) && read.access.is_some());
        let old = if known { self.view.read(index) } else { None };
        self.events.push(known.then_some(read));
        let mut write = self.tile_event(common, Kind::Write, (labels.1, Some(scope)), element, existence)?;
        let (a, b) = (self.operand(a), b.map(|b| self.operand(b)));
        write.mate = Some(index);
        write.rmw_dep = op != AtomOp::Exch;
        write.data = join(a.deps, b.map_or([0; 4], |b| b.deps));
        if write.rmw_dep {
            write.data = join(write.data, dep(index));
        }
        let mut existence = existence;
        match self.written(&update, old, a, b, bytes(common.access)) {
            Written::Nothing => existence.runs = Some(false),
            Written::Pending if op == AtomOp::Cas && !self.front.cas_writes_back => {
                existence.runs = existence.runs.filter(|runs| !runs);
            }
            Written::Pending => {}
            Written::Value(v) => write.value = Some(v),
        }
        self.tile_write(write, existence);
        self.tile_result(common, element, self.existence(common, element), (index, old));
        Ok(())
    }
}

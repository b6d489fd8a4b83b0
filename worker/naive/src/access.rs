//! Memory instructions of one thread: scalar pieces, the values a read may return, the write half of an atomic.
//!
//! Elements of vectors and the halves of packed values are scalar operations in unspecified order (PTX ISA 9.2, 8.2.4
//! and 8.2.5); so are the locations behind a multimem address (8.2.3).

use super::arith::{atomic, bits, low};
use super::event::{Event, Refusal, UNKNOWN, VEIL};
use super::pairs::{Events, one};
use super::space::Range;
use super::state::{Runner, State};
use super::tags::{bit, proxy_tag, read_tags};
use moire_cat::vocabulary::sets;
use moire_program::ir::{Address, AtomOp, Instr, ObjectId, Op, Operand, Proxy, RmwOrder, Ty};

/// A scalar piece of an access: its range and its cells.
pub(super) struct Piece {
    pub(super) range: Range,
    cells: Vec<usize>,
}

impl Piece {
    /// The cells, in order.
    pub(super) fn cells(&self) -> &[usize] {
        &self.cells
    }
}

impl Runner<'_> {
    /// Makes the event an access to a piece that writes this value; `None` is unknown data.
    pub(super) fn place(&self, e: &mut Event, piece: &Piece, value: Option<u128>) {
        e.range = Some(piece.range);
        for cell in &piece.cells {
            let part = self.memory.cells[*cell];
            let shift = 8 * (part.first - piece.range.offset);
            e.cells.push((*cell, value.map_or(VEIL, |v| low(v >> shift, 8 * part.bytes))));
        }
        if value.is_none() {
            e.data |= UNKNOWN;
        }
    }

    /// The value of a piece whose cells hold this; `None` for unknown data.
    pub(super) fn whole(&self, piece: &Piece, content: &[u128]) -> Option<u128> {
        let mut value = 0;
        for (cell, held) in piece.cells.iter().zip(content) {
            let part = self.memory.cells[*cell];
            if *held == VEIL {
                return None;
            }
            value |= held << (8 * (part.first - piece.range.offset));
        }
        Some(value)
    }

    /// The scalar values of one element.
    pub(super) fn split(&self, ty: Ty, rmw: bool, value: u128) -> Vec<u128> {
        let width = bits(ty);
        if ty.packed() || (width == 128 && !rmw && !self.rules.wide_whole) {
            vec![low(value, width / 2), low(value >> (width / 2), width / 2)]
        } else {
            vec![low(value, width)]
        }
    }

    /// The scalar accesses of an instruction in order, and what their address depends on.
    pub(super) fn pieces(
        &self,
        s: &State,
        ty: Ty,
        elements: usize,
        addr: Address,
        rmw: bool,
        multimem: bool,
    ) -> Result<(Vec<Piece>, Events), Refusal> {
        let per_element = self.split(ty, rmw, 0).len();
        let bytes = ty.bytes() / u32::try_from(per_element).unwrap_or(1);
        let wild = || Refusal::Unsupported("an address outside every object, or not aligned,".to_owned());
        let mut out = Vec::new();
        let deps = match addr.base {
            Operand::Reg(r) => s.regs[r.index()].1,
            Operand::Imm(_) | Operand::Address(_) => 0,
        };
        let offset = i128::from(addr.offset);
        let offset = u128::from_ne_bytes(offset.to_ne_bytes());
        for i in 0..elements * per_element {
            let step = u32::try_from(i).unwrap_or(0) * bytes;
            let virtual_address = self.operand(s, addr.base).0.wrapping_add(offset);
            let virtual_address = low(virtual_address, 64) + u128::from(step);
            let range = self.memory.resolve(virtual_address, bytes).ok_or_else(wild)?;
            let mut ranges = vec![range];
            if multimem {
                let symbol = self.program.symbols.iter().enumerate().find(|(k, _)| *k == range.virt.index());
                let more: Vec<ObjectId> = symbol.map(|(_, s)| s.multimem.clone()).unwrap_or_default();
                for object in more {
                    let twin =
                        self.memory.named(range.virt, object, self.thread, i64::from(range.offset), bytes);
                    ranges.push(twin.ok_or_else(wild)?);
                }
            }
            for range in ranges {
                let cells = self.memory.cells_of(&range).ok_or_else(wild)?;
                out.push(Piece { range, cells });
            }
        }
        Ok((out, deps))
    }

    /// Values a piece may have when read.
    pub(super) fn candidates(&self, piece: &Piece) -> Vec<Vec<u128>> {
        let mut contents = vec![vec![]];
        for cell in &piece.cells {
            let longer = contents.iter().flat_map(|c: &Vec<u128>| {
                self.domain[*cell].iter().map(move |d| c.iter().copied().chain([*d]).collect())
            });
            contents = longer.collect();
        }
        contents
    }

    /// Loads and atomics: one continuation for each combination of values read.
    pub(super) fn read(&self, s: State, instr: &Instr, todo: &mut Vec<State>) -> Result<(), Refusal> {
        let (ty, elements, addr, rmw, multimem) = if let Op::Load { ty, dst, addr, .. } = &instr.op {
            (*ty, dst.len(), *addr, false, false)
        } else if let Op::Rmw { ty, addr, .. } = &instr.op {
            (*ty, 1, *addr, true, false)
        } else if let Op::MultimemLoad { ty, addr, .. } | Op::MultimemRed { ty, addr, .. } = &instr.op {
            (*ty, 1, *addr, true, true)
        } else {
            return Err(Refusal::Unsupported(format!("a read by {:?}", instr.op)));
        };
        let (pieces, address) = self.pieces(&s, ty, elements, addr, rmw, multimem)?;
        let mut choices: Vec<Vec<Vec<u128>>> = vec![vec![]];
        for piece in &pieces {
            let values = self.candidates(piece);
            let longer = choices.iter().flat_map(|c| {
                values.iter().map(move |v| {
                    let mut c = c.clone();
                    c.push(v.clone());
                    c
                })
            });
            choices = longer.collect();
            if choices.len() > self.rules.paths {
                return Err(Refusal::TooMany("values of a read"));
            }
        }
        for values in choices {
            let mut next = s.clone();
            self.perform(&mut next, instr, &pieces, address, &values)?;
            next.pc += 1;
            todo.push(next);
        }
        Ok(())
    }

    pub(super) fn perform(
        &self,
        s: &mut State,
        instr: &Instr,
        pieces: &[Piece],
        address: Events,
        contents: &[Vec<u128>],
    ) -> Result<(), Refusal> {
        let mut reads = Vec::new();
        let known: Vec<Option<u128>> =
            pieces.iter().zip(contents).map(|(p, content)| self.whole(p, content)).collect();
        let veil = |some: &[Option<u128>]| if some.iter().all(Option::is_some) { 0 } else { UNKNOWN };
        let values: Vec<u128> = known.iter().map(|v| v.unwrap_or(0)).collect();
        for (i, (piece, content)) in pieces.iter().zip(contents).enumerate() {
            let (tags, scope) = read_tags(&instr.op);
            let mut e = self.event(s, tags | bit(sets::R) | bit(sets::M), scope);
            (e.address, e.piece) = (address, Some((s.instructions, i)));
            e.range = Some(piece.range);
            e.cells = piece.cells.iter().copied().zip(content.iter().copied()).collect();
            let read = Self::push(s, e);
            reads.push(read);
            self.store_back(s, instr, piece, (read, i, known[i]), address)?;
        }
        let all = reads.iter().fold(veil(&known), |deps, r| deps | one(*r));
        super::operands::written(&instr.op).into_iter().for_each(|r| s.lanes.assigned(r));
        if let Op::Load { ty, dst, .. } = &instr.op {
            let per = pieces.len() / dst.len();
            for (i, reg) in dst.iter().enumerate() {
                let value = widen(*ty, join(*ty, &values[i * per..(i + 1) * per]));
                let unknown = veil(&known[i * per..(i + 1) * per]);
                let deps = reads[i * per..(i + 1) * per].iter().fold(unknown, |d, r| d | one(*r));
                s.regs[reg.index()] = (value, deps);
            }
        } else if let Op::Rmw { ty, dst: Some(dst), .. } = &instr.op {
            s.regs[dst.index()] = (widen(*ty, join(*ty, &values)), all);
        } else if let Op::MultimemLoad { op, ty, dst, .. } = &instr.op {
            let mut value = values[0];
            for v in &values[1..] {
                value = atomic(*op, *ty, value, *v).ok_or_else(|| Refusal::Unsupported(format!("{op:?}")))?;
            }
            s.regs[dst.index()] = (value, all);
        }
        Ok(())
    }

    /// The value an atomic stores, given the old value and its operands; `None` if it stores nothing.
    pub(super) fn replaced(&self, op: AtomOp, ty: Ty, (old, a, b): (u128, u128, u128)) -> Option<u128> {
        if op != AtomOp::Cas {
            return atomic(op, ty, old, a);
        }
        match (low(old, bits(ty)) == low(a, bits(ty)), self.rules.failed_cas_writes) {
            (true, _) => Some(low(b, bits(ty))),
            (false, true) => Some(old),
            (false, false) => None,
        }
    }

    /// Appends the write half of an atomic, if it writes.
    pub(super) fn store_back(
        &self,
        s: &mut State,
        instr: &Instr,
        piece: &Piece,
        (read, i, old): (usize, usize, Option<u128>),
        address: Events,
    ) -> Result<(), Refusal> {
        let (op, ty, order, scope, a, b, red, proxy) =
            if let Op::Rmw { op, ty, order, scope, a, b, red, proxy, .. } = &instr.op {
                (*op, *ty, *order, *scope, *a, *b, *red, *proxy)
            } else if let Op::MultimemRed { op, ty, order, scope, src, .. } = &instr.op {
                (*op, *ty, *order, *scope, *src, None, true, Proxy::Generic)
            } else {
                return Ok(());
            };
        let part = if ty.packed() { Ty::U(16) } else { ty };
        let (a, mut data) = self.operand(s, a);
        let a = self.split(ty, true, a).get(i % 2).copied().unwrap_or(a);
        let veiled = data & UNKNOWN != 0 || (old.is_none() && op != AtomOp::Exch);
        if veiled && op == AtomOp::Cas {
            return Err(Refusal::Unsupported("a comparison with unknown data".into()));
        }
        let old = old.unwrap_or(0);
        let new = if veiled {
            Some(0)
        } else if op == AtomOp::Cas {
            let (b, deps) = b.map_or((0, 0), |b| self.operand(s, b));
            data |= deps;
            self.replaced(op, part, (old, a, b))
        } else {
            self.replaced(op, part, (old, a, 0))
        };
        let Some(new) = new else {
            s.next += 1;
            return Ok(());
        };
        let order = match order {
            RmwOrder::Release | RmwOrder::AcqRel => bit(sets::REL),
            RmwOrder::SeqCst => bit(sets::REL) | bit(sets::SCA),
            RmwOrder::Relaxed | RmwOrder::Acquire => bit(sets::RLX),
        };
        let kind = bit(if red { sets::RED } else { sets::ATOM });
        let tags = order | kind | proxy_tag(proxy) | bit(sets::W) | bit(sets::M);
        let mut e = self.event(s, tags, Some(scope));
        (e.address, e.data, e.piece) = (address, data, Some((s.instructions, i)));
        e.reads_first = Some((read, op != AtomOp::Exch));
        self.place(&mut e, piece, (!veiled).then_some(new));
        Self::push(s, e);
        Ok(())
    }
}

fn join(ty: Ty, parts: &[u128]) -> u128 {
    let width = bits(ty) / u32::try_from(parts.len()).unwrap_or(1);
    parts.iter().rev().fold(0, |value, part| if width >= 128 { *part } else { value << width | part })
}

/// Signed values fill 64-bit registers (9.7.9: `ld` sign-extends to the destination).
fn widen(ty: Ty, value: u128) -> u128 {
    let width = bits(ty);
    let negative = matches!(ty, Ty::S(_)) && width < 64 && value >> (width - 1) & 1 == 1;
    if negative { low(value | (u128::MAX << width), 64) } else { value }
}

//! Lowers tokens that a condition chose to predicates.
//!
//! An access that waits for such a token waits for the value that chose it (Tile IR specification 7.9, as `tile-ir.cat`
//! reads it). PTX has no tokens. So each such token gets a register that is always zero and depends on those values, and
//! an access that waits for the token is predicated on the register being zero.

use super::{Done, fresh, not_lowered};
use moire_program::ir::{AluOp, CmpOp, Instr, Op, Operand, Reg, Thread, TileAccess, TileOp, TileToken, Ty};
use std::collections::{BTreeMap, BTreeSet};

const WIDE: Ty = Ty::U(64);

/// Moves every wait for a chosen token into the masks of the access that waits.
pub(super) fn resolved(thread: &Thread) -> Done<Thread> {
    let chosen = chosen(thread);
    if chosen.is_empty() {
        return Ok(thread.clone());
    }
    let mut made = Made { out: Thread { body: Vec::new(), ..thread.clone() }, beside: BTreeMap::new() };
    for token in chosen {
        let beside = fresh(&mut made.out.regs, "d")?;
        made.beside.insert(token, beside);
    }
    let written = written(thread);
    let mut starts = Vec::new();
    for instr in &thread.body {
        starts.push(made.out.body.len());
        made.instr(instr, &written)?;
    }
    starts.push(made.out.body.len());
    retarget(&mut made.out, &starts)?;
    Ok(made.out)
}

/// Updates labels and branches after instruction `i` has moved to `starts[i]`.
fn retarget(thread: &mut Thread, starts: &[usize]) -> Done<()> {
    let moved = |at: usize| starts.get(at).copied().ok_or_else(|| not_lowered("a branch to nowhere", 0));
    for label in &mut thread.labels {
        label.at = moved(label.at)?;
    }
    for instr in &mut thread.body {
        if let Op::Bra { target } = &mut instr.op {
            *target = moved(*target)?;
        }
    }
    Ok(())
}

/// All registers that are written.
fn written(thread: &Thread) -> BTreeSet<Reg> {
    let mut out = BTreeSet::new();
    for instr in &thread.body {
        if let Op::Mov { dst, .. } | Op::Alu { dst, .. } | Op::Setp { dst, .. } | Op::Selp { dst, .. } =
            &instr.op
        {
            out.insert(*dst);
        } else if let Op::Tile(TileOp::Access(access)) = &instr.op {
            out.extend(access.elements.iter().filter_map(|e| e.dst));
        }
    }
    out
}

/// Tokens that may depend on a condition with an unknown value.
fn chosen(thread: &Thread) -> BTreeSet<Reg> {
    let written = written(thread);
    let mut out = BTreeSet::new();
    loop {
        let before = out.len();
        for instr in &thread.body {
            let Op::Tile(op) = &instr.op else { continue };
            let hangs = match op {
                TileOp::Access(access) => access.after.is_some_and(|t| out.contains(&t)),
                TileOp::Token(TileToken::Join { from, .. }) => from.iter().any(|t| out.contains(t)),
                TileOp::Token(TileToken::Choose { when, yes, no, .. }) => {
                    written.contains(when) || out.contains(yes) || out.contains(no)
                }
            };
            out.extend(op.token().filter(|_| hangs));
        }
        if out.len() == before {
            return out;
        }
    }
}

struct Made {
    out: Thread,
    /// For each token, the zero register that depends on the values that chose it.
    beside: BTreeMap<Reg, Reg>,
}

impl Made {
    fn push(&mut self, op: Op, line: u32) {
        self.out.body.push(Instr { line, ..Instr::new(op) });
    }

    fn instr(&mut self, instr: &Instr, written: &BTreeSet<Reg>) -> Done<()> {
        let line = instr.line;
        let Op::Tile(op) = &instr.op else {
            self.out.body.push(instr.clone());
            return Ok(());
        };
        match op {
            TileOp::Access(access) => {
                let access = self.access(access, line)?;
                self.push(Op::Tile(TileOp::Access(Box::new(access))), line);
                return Ok(());
            }
            TileOp::Token(TileToken::Join { dst, from }) => {
                let from: Vec<Operand> = from.iter().filter_map(|t| self.of(*t)).collect();
                self.gather(*dst, from, line)?;
            }
            TileOp::Token(TileToken::Choose { dst, when, yes, no }) => {
                let mut from: Vec<Operand> = [*yes, *no].iter().filter_map(|t| self.of(*t)).collect();
                if written.contains(when) {
                    let zero = fresh(&mut self.out.regs, "d")?;
                    let (a, b) = (Operand::Reg(*when), Operand::Imm(0));
                    self.push(Op::Alu { op: AluOp::And, ty: WIDE, dst: zero, a, b }, line);
                    from.push(Operand::Reg(zero));
                }
                self.gather(*dst, from, line)?;
            }
        }
        self.out.body.push(instr.clone());
        Ok(())
    }

    fn of(&self, token: Reg) -> Option<Operand> {
        self.beside.get(&token).copied().map(Operand::Reg)
    }

    /// Computes the zero register of a token from the registers `from`.
    fn gather(&mut self, token: Reg, from: Vec<Operand>, line: u32) -> Done<()> {
        let Some(dst) = self.beside.get(&token).copied() else { return Ok(()) };
        let mut all = Operand::Imm(0);
        for b in from {
            let joined = fresh(&mut self.out.regs, "d")?;
            self.push(Op::Alu { op: AluOp::Or, ty: WIDE, dst: joined, a: all, b }, line);
            all = Operand::Reg(joined);
        }
        self.push(Op::Mov { ty: WIDE, dst, src: all }, line);
        Ok(())
    }

    fn access(&mut self, access: &TileAccess, line: u32) -> Done<TileAccess> {
        let mut access = access.clone();
        let Some(waits) = access.after.and_then(|t| self.of(t)) else { return Ok(access) };
        let (known, ty) = (fresh(&mut self.out.regs, "p")?, Ty::U(8));
        let b = Operand::Imm(0);
        self.push(Op::Setp { op: CmpOp::Eq, ty: WIDE, dst: known, a: waits, b }, line);
        let mut masks: BTreeMap<Reg, Reg> = BTreeMap::new();
        for element in &mut access.elements {
            element.mask = Some(match element.mask {
                None => known,
                Some(mask) => match masks.get(&mask) {
                    Some(both) => *both,
                    None => {
                        let dst = fresh(&mut self.out.regs, "p")?;
                        let (a, b) = (Operand::Reg(mask), Operand::Reg(known));
                        self.push(Op::Alu { op: AluOp::And, ty, dst, a, b }, line);
                        masks.insert(mask, dst);
                        dst
                    }
                },
            });
        }
        if let Some(token) = access.token {
            self.gather(token, vec![waits], line)?;
        }
        Ok(access)
    }
}

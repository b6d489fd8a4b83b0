//! Calls of functions of the module: the body of the function is read again in place of the call.
//!
//! PTX ISA 9.2, 7.1 and 9.7.14.5. Registers and labels of the function are local to its braces, so each copy has its own.
//! `ret` becomes a branch behind the copy. Parameters are no memory: each part of one that is stored becomes a register,
//! and a load of exactly that part reads it. What is loaded in other parts stays a load, whose value is not known.
//!
//! A call stays a call if its function has no body here, calls itself, or has something that is not read.

use super::body::Body;
use super::module::{Statement, What};
use super::variable::{element, extent};
use moire_isa::kinds::Num;
use moire_isa::operand::{Class, List, Packed};
use moire_isa::{self as isa, Instr, Mov, OF_CALLS, Spelling, Value};
use moire_program::ir::{Guard, Reg, Ty};
use moire_program::limits::{INSTRUCTIONS, REGISTERS};
use moire_program::text::scan::{Parsed, Spot};
use std::collections::BTreeMap;

/// Most calls that are inlined in one kernel.
const CALLS: usize = 1_024;
/// Most bytes of functions that are read for one kernel.
const BYTES: usize = 1 << 22;
/// Deepest nesting of calls.
const DEPTH: usize = 32;

/// The calls of a kernel.
#[derive(Default)]
pub(super) struct Calls {
    /// The functions that are being read, innermost last.
    frames: Vec<Frame>,
    inlined: usize,
    bytes: usize,
    /// Parameters declared so far.
    params: usize,
    /// By parameter, first byte and size, the register of a part.
    parts: BTreeMap<(usize, i64, u32), Reg>,
}

/// A function that is being read.
struct Frame {
    name: String,
    /// Statements that return.
    returns: Vec<usize>,
}

/// A call of a function with a body.
struct Call {
    name: String,
    /// By name of the function's parameter, the parameter that the caller declared.
    params: BTreeMap<String, usize>,
}

impl Calls {
    /// Whether a function is being read. If so, the statement that comes next returns from it.
    pub(super) fn returns(&mut self, statement: usize) -> bool {
        self.frames.last_mut().is_some_and(|frame| {
            frame.returns.push(statement);
            true
        })
    }

    /// Whether statements of a function are read.
    pub(super) fn inside(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Forgets the parts that overlap some bytes of a parameter, other than exactly these.
    fn overwrite(&mut self, param: usize, at: i64, bytes: u32) {
        let end = at.saturating_add(i64::from(bytes));
        self.parts.retain(|(p, start, size), _| {
            let apart = start.saturating_add(i64::from(*size)) <= at || end <= *start;
            *p != param || apart || (*start, *size) == (at, bytes)
        });
    }
}

impl Body<'_, '_> {
    /// `.param .align 8 .b8 name[16];`: a parameter of a call.
    pub(super) fn parameter(&mut self) -> Parsed<()> {
        let start = self.scan.at;
        let read = element(self.scan).and_then(|_| {
            let name = self.scan.name("the name of a parameter")?.to_owned();
            extent(self.scan)?;
            Ok(name)
        });
        match (read, self.scopes.last_mut()) {
            (Ok(name), Some(scope)) if self.scan.peek(";") => {
                scope.params.insert(name, self.calls.params);
                self.calls.params += 1;
            }
            _ => {
                self.scan.at = start;
                let end = self.scan.rest().find(';').unwrap_or(0);
                self.scan.at += end;
            }
        }
        self.scan.expect(";")
    }

    pub(super) fn param(&self, name: &str) -> Option<usize> {
        self.scopes.iter().rev().find_map(|scope| scope.params.get(name).copied())
    }

    /// Reads a call from behind its mnemonic to its semicolon, if its function can be inlined; otherwise reads nothing.
    pub(super) fn call(&mut self, guard: Option<Guard>, spot: Spot) -> bool {
        let start = self.scan.clone();
        if let Some(call) = self.called() {
            let behind = self.scan.clone();
            let counts = (self.kernel.body.len(), self.kernel.tables.len(), self.thread.thread.body.len());
            if self.inline(call, guard, spot).is_ok() {
                *self.scan = behind;
                return true;
            }
            self.kernel.body.truncate(counts.0);
            self.kernel.tables.truncate(counts.1);
            self.thread.thread.body.truncate(counts.2);
        }
        // The call may write its results, and what was read of the function is gone.
        self.calls.parts.clear();
        *self.scan = start;
        false
    }

    /// `(r), f, (a, b)` up to the semicolon.
    fn called(&mut self) -> Option<Call> {
        let results = if self.scan.take("(") { self.passed()? } else { Vec::new() };
        if !results.is_empty() && !self.scan.take(",") {
            return None;
        }
        let name = self.scan.name("a function").ok()?.to_owned();
        let params = if self.scan.take(",") {
            if !self.scan.take("(") {
                return None;
            }
            self.passed()?
        } else {
            Vec::new()
        };
        let function = self.functions.get(&name).filter(|_| self.scan.peek(";"))?;
        if (results.len(), params.len()) != (function.results.len(), function.params.len()) {
            return None;
        }
        let formals = function.results.iter().chain(&function.params).cloned();
        let params = formals.zip(results.into_iter().chain(params)).collect();
        Some(Call { name, params })
    }

    /// Parameters up to a closing parenthesis.
    fn passed(&mut self) -> Option<Vec<usize>> {
        let mut out = Vec::new();
        while !self.scan.take(")") {
            let name = self.scan.name("a parameter").ok()?;
            out.push(self.param(name)?);
            if !self.scan.take(",") && !self.scan.peek(")") {
                return None;
            }
        }
        Some(out)
    }

    fn inline(&mut self, call: Call, guard: Option<Guard>, spot: Spot) -> Parsed<()> {
        let functions = self.functions;
        let Some(function) = functions.get(&call.name) else { return Ok(()) };
        let bytes = function.body.1 - function.body.0;
        let again = self.calls.frames.iter().any(|f| f.name == call.name);
        // The rest of the kernel needs room, too.
        let full = self.calls.inlined == CALLS
            || self.calls.bytes + bytes > BYTES
            || self.kernel.body.len() > INSTRUCTIONS / 2
            || self.thread.thread.regs.len() > REGISTERS / 2;
        if again || full || self.calls.frames.len() == DEPTH {
            return Err(self.scan.error(format!("`{}` is not inlined here", call.name), None));
        }
        self.calls.inlined += 1;
        self.calls.bytes += bytes;
        let first = self.kernel.body.len();
        // Those for which the guard does not hold go on behind the copy.
        if let Some(Guard { reg, negated }) = guard {
            let skips = Some(Guard { reg, negated: !negated });
            let what = What::Branch { target: usize::MAX };
            self.kernel.body.push(Statement { guard: skips, line: spot.line, what });
        }
        let returns = guard.map(|_| first).into_iter().collect();
        self.calls.frames.push(Frame { name: call.name, returns });
        let outer = (
            std::mem::take(&mut self.scopes),
            std::mem::take(&mut self.tables),
            std::mem::take(&mut self.indexed),
        );
        self.scan.at = function.body.0;
        let read = self.block(call.params);
        for _ in 0..self.scopes.len() {
            self.thread.close();
        }
        (self.scopes, self.tables, self.indexed) = outer;
        let frame = self.calls.frames.pop();
        read?;
        let behind = self.kernel.body.len();
        for at in frame.into_iter().flat_map(|f| f.returns) {
            if let Some(statement) = self.kernel.body.get_mut(at) {
                statement.what = What::Branch { target: behind };
            }
        }
        Ok(())
    }

    /// The moves that an access to a parameter of a call amounts to, if it is one.
    pub(super) fn moves(&mut self, instr: &Instr) -> Parsed<Option<Vec<What>>> {
        let (loads, place, values, bytes) = if let Instr::Ld(ld) = instr {
            (true, ld.addr.address, &ld.dst.items, ld.ty.bits() / 8)
        } else if let Instr::St(st) = instr {
            (false, st.addr, &st.src.items, st.ty.bits() / 8)
        } else {
            return Ok(None);
        };
        let Value::Symbol(index @ OF_CALLS.., _) = place.base else { return Ok(None) };
        let (param, at, bytes) = ((index - OF_CALLS) as usize, place.offset, u32::from(bytes));
        let ty = match bytes {
            2 => Some((Ty::B(16), Num::B16)),
            4 => Some((Ty::B(32), Num::B32)),
            8 => Some((Ty::B(64), Num::B64)),
            _ => None,
        };
        let place = |n: i64| at.saturating_add(n.saturating_mul(i64::from(bytes)));
        let mut out = Vec::new();
        for (n, value) in (0i64..).zip(values) {
            let at = place(n);
            if !loads {
                self.calls.overwrite(param, at, bytes);
            }
            let part = match (self.calls.parts.get(&(param, at, bytes)), ty) {
                (Some(part), _) => *part,
                (None, Some((ty, _))) if !loads => {
                    let part = self.part(ty)?;
                    self.calls.parts.insert((param, at, bytes), part);
                    part
                }
                (None, _) if loads => return Ok(None),
                (None, _) => continue,
            };
            let Some((_, ty)) = ty else { return Ok(None) };
            let part = Value::Reg(isa::Reg { index: part.0.into(), class: Class::default() });
            let (dst, a) = if loads { (*value, part) } else { (part, *value) };
            let one = |value| Packed(List { items: vec![value], braced: false });
            let mov = Mov { ty, dst: one(dst), a: one(a), spelling: Spelling::default() };
            out.push(What::Plain(Box::new(Instr::Mov(mov))));
        }
        Ok(Some(out))
    }

    /// A new register for a part of a parameter.
    pub(super) fn part(&mut self, ty: Ty) -> Parsed<Reg> {
        let mut name = format!("%param{}", self.thread.thread.regs.len());
        while self.thread.known(&name).is_some() {
            name.push('_');
        }
        self.thread.declare(self.scan, &name, None, ty)?;
        self.thread.known(&name).ok_or_else(|| self.scan.error(format!("`{name}` is not declared"), None))
    }
}

//! Reads one instruction with the book: what the names of a kernel stand for, and where its text ends.

use super::body::Body;
use super::module::Variable;
use moire_isa::kinds::Space;
use moire_isa::operand::{Class, Known, Reg};
use moire_isa::{Env, Instr, OF_CALLS, Value};
use moire_program::ir::{self, Ty};
use moire_program::text::scan::Parsed;

/// Symbols from here on are names that the kernel does not declare: functions, and what other modules define.
pub(super) const OUTSIDE: u32 = 1 << 16;

/// How a register is declared.
fn class(ty: Ty) -> Class {
    let (bits, float, integer) = match ty {
        Ty::Pred => (1, false, false),
        Ty::B(n) => (u16::from(n), false, false),
        Ty::U(n) | Ty::S(n) => (u16::from(n), false, true),
        Ty::F(n) => (u16::from(n), n >= 32, false),
        Ty::F16x2 | Ty::Bf16x2 => (32, false, false),
    };
    Class { bits, float, integer }
}

impl Body<'_, '_> {
    /// Reads the instruction that starts at `at`, up to its semicolon.
    pub(super) fn by_the_book(&mut self, at: usize) -> Parsed<Instr> {
        let source = self.scan.source;
        let end = at + length(&source[at..]);
        let read = Instr::read(&source[at..end], self);
        let mut instr = read.map_err(|why| self.scan.error_at(at + why.at, why.message, why.hint))?;
        self.scan.at = end;
        if let Instr::Ld(ld) = &mut instr {
            let ty = Ty::B(u8::try_from(ld.ty.bits()).unwrap_or(64));
            self.wanted(&mut ld.dst.items, ty)?;
        }
        Ok(instr)
    }

    /// Puts a register of its own in place of each sink: an element that nobody wants is loaded all the same.
    fn wanted(&mut self, items: &mut [Value], ty: Ty) -> Parsed<()> {
        for item in items.iter_mut().filter(|item| **item == Value::Sink) {
            let reg = self.part(ty)?;
            *item = Value::Reg(Reg { index: reg.0.into(), class: class(ty) });
        }
        Ok(())
    }

    /// The name of a symbol of [`OUTSIDE`], or of a label.
    pub(super) fn name_of(&self, index: u32) -> &str {
        self.kernel.names.get(index as usize).map_or("", String::as_str)
    }

    fn register(&mut self, name: &str) -> Option<Known> {
        let ir::Reg(index) = self.thread.find(self.scan, name).ok()??;
        let ty = self.thread.types.get(usize::from(index)).copied()?;
        Some(Known::Reg(Reg { index: index.into(), class: class(ty) }))
    }

    fn home(&self, symbol: ir::SymbolId) -> Option<Space> {
        match self.kernel.variables.get(symbol.index())? {
            Variable::Shared { .. } => Some(Space::SharedCta),
            Variable::Local { .. } => Some(Space::Local),
            Variable::Param(_) => Some(Space::Param),
            Variable::Global => None,
        }
    }
}

impl Env for Body<'_, '_> {
    fn resolve(&mut self, name: &str) -> Option<Known> {
        if let Some(param) = self.param(name).and_then(|n| u32::try_from(n).ok()) {
            return Some(Known::Symbol(OF_CALLS + param, None));
        }
        if let Some(symbol) = self.builder.symbol(name) {
            return Some(Known::Symbol(symbol.0.into(), self.home(symbol)));
        }
        // Of `.reg .v4 .s32 abcd` the elements are declared behind it, `abcd.x` first.
        if let Some(Known::Reg(first)) = self.register(&format!("{name}.x")) {
            let count = if self.register(&format!("{name}.z")).is_some() { 4 } else { 2 };
            return Some(Known::Vector(first, count));
        }
        let declared = if self.functions.contains_key(name) { None } else { self.register(name) };
        match declared {
            None if !name.starts_with('%') => Some(Known::Symbol(OUTSIDE + self.label(name), None)),
            declared => declared,
        }
    }

    fn label(&mut self, name: &str) -> u32 {
        let names = &mut self.kernel.names;
        let at = *self.named.entry(name.to_owned()).or_insert_with(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }
}

/// Bytes up to the semicolon of an instruction, or to a brace that is not its own. Comments may hold either.
fn length(text: &str) -> usize {
    let (bytes, mut at, mut depth) = (text.as_bytes(), 0, 0usize);
    while let Some(byte) = bytes.get(at) {
        let ends = match (byte, bytes.get(at + 1)) {
            (b'/', Some(b'/')) => Some("\n"),
            (b'/', Some(b'*')) => Some("*/"),
            (b';', _) => return at,
            (b'{', _) => {
                depth += 1;
                None
            }
            (b'}', _) if depth == 0 => return at,
            (b'}', _) => {
                depth -= 1;
                None
            }
            _ => None,
        };
        at += match ends {
            Some(end) => text[at..].find(end).map_or(text.len() - at, |n| n + end.len()),
            None => 1,
        };
    }
    text.len()
}

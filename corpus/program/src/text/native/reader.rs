//! A cursor over one instruction: reads the operands that instructions share, refuses the instruction, or adds it to its
//! thread. The files beside this one have a function for each instruction.

use crate::ir::*;
use crate::text::build::{Builder, ThreadBuilder};
use crate::text::scan::{Parsed, Scan, Spot};

/// The state of reading one instruction.
pub(super) struct Reader<'r, 's> {
    pub(super) scan: &'r mut Scan<'s>,
    /// Memory declared before the threads.
    pub(super) builder: &'r Builder,
    /// The thread to which the instruction is added.
    pub(super) thread: &'r mut ThreadBuilder,
    /// The byte at which the instruction starts, for errors.
    pub(super) at: usize,
    /// The same position as line and column, stored with the instruction.
    pub(super) spot: Spot,
    pub(super) guard: Option<Guard>,
}

impl Reader<'_, '_> {
    /// Refuses the instruction, with an error at its start.
    pub(super) fn fail<T>(&self, message: String, hint: Option<String>) -> Parsed<T> {
        Err(self.scan.error_at(self.at, message, hint))
    }

    /// Adds the finished instruction to the thread.
    pub(super) fn push(&mut self, op: Op) -> Parsed<()> {
        self.thread.push(self.scan, self.spot, self.guard, op)
    }

    /// Reads a register.
    pub(super) fn reg(&mut self) -> Parsed<Reg> {
        register(self.scan, self.builder, self.thread)
    }

    /// Reads a number, the name of memory, or a register.
    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        if self.scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Ok(Operand::Imm(self.scan.number()?));
        }
        let name = self.scan.name("a register, a number or a name")?.to_owned();
        if let Some(symbol) = self.builder.symbol(&name) {
            return Ok(Operand::Address(symbol));
        }
        Ok(Operand::Reg(self.thread.reg(self.scan, &name)?))
    }

    /// Reads `[base]` or `[base+n]`.
    pub(super) fn address(&mut self) -> Parsed<Address> {
        self.scan.expect("[")?;
        let base = self.operand()?;
        let offset = self.offset()?;
        self.scan.expect("]")?;
        Ok(Address { base, offset })
    }

    /// Reads `+n` or `-n` after a base; 0 if neither is there.
    pub(super) fn offset(&mut self) -> Parsed<i32> {
        let signed = self.scan.peek("-");
        let offset = if self.scan.take("+") || signed { self.scan.number()? } else { 0 };
        match i32::try_from(offset) {
            Ok(offset) => Ok(offset),
            Err(_) => self.fail(format!("the offset {offset} does not fit 32 bits"), None),
        }
    }

    /// Reads a number between `least` and `most`, both included. `what` begins the message: "a lane of".
    pub(super) fn range(&mut self, what: &str, least: i128, most: i128) -> Parsed<i128> {
        self.scan.rest();
        let at = self.scan.at;
        let n = self.scan.number()?;
        if (least..=most).contains(&n) {
            return Ok(n);
        }
        let hint = format!("it is between {least} and {most}");
        Err(self.scan.error_at(at, format!("{what} {n} is out of range"), Some(hint)))
    }

    /// Takes `name(`, the start of a notation such as `desc(x, 16)`, if it comes next.
    pub(super) fn call(&mut self, name: &str) -> bool {
        let mut ahead = self.scan.clone();
        let hit = ahead.keyword(name) && ahead.take("(");
        if hit {
            *self.scan = ahead;
        }
        hit
    }
}

/// Reads a register. Memory and registers share one name space.
pub(super) fn register(scan: &mut Scan<'_>, builder: &Builder, thread: &mut ThreadBuilder) -> Parsed<Reg> {
    scan.rest();
    let at = scan.at;
    let name = scan.name("a register")?.to_owned();
    if builder.symbol(&name).is_some() {
        return Err(scan.error_at(at, format!("`{name}` is memory, not a register"), None));
    }
    thread.reg(scan, &name)
}

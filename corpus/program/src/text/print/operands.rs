//! Prints operands: registers, addresses, descriptors, vectors.

use crate::ir::*;

/// The program and the thread whose names an instruction can mention.
pub(super) struct Printer<'a> {
    pub(super) program: &'a Program,
    pub(super) thread: &'a Thread,
}

impl Printer<'_> {
    pub(super) fn reg(&self, reg: Reg) -> &str {
        &self.thread.regs[reg.index()].name
    }

    pub(super) fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Reg(r) => self.reg(r).to_owned(),
            Operand::Imm(v) => v.to_string(),
            Operand::Address(s) => self.program.symbols[s.index()].name.clone(),
        }
    }

    pub(super) fn book(&self, book: &Book) -> String {
        let symbol = |s: SymbolId| self.program.symbols[s.index()].name.clone();
        book.print(&|reg| self.reg(reg).to_owned(), &symbol)
    }

    pub(super) fn address(&self, address: &Address) -> String {
        let base = self.operand(address.base);
        match address.offset {
            0 => format!("[{base}]"),
            n => format!("[{base}+{n}]"),
        }
    }

    pub(super) fn vector<T: Copy>(&self, items: &[T], show: impl Fn(T) -> String) -> (String, String) {
        let all: Vec<String> = items.iter().map(|i| show(*i)).collect();
        if all.len() == 1 {
            (String::new(), all[0].clone())
        } else {
            (format!(".v{}", all.len()), format!("{{{}}}", all.join(", ")))
        }
    }

    pub(super) fn tensor_address(&self, address: &Address) -> String {
        let base = self.operand(address.base);
        let (lane, column) = (address.offset >> 16, address.offset & 0xffff);
        match address.offset {
            0 => format!("[{base}]"),
            n if !(0..128).contains(&lane) => format!("[{base}+{n}]"),
            _ if lane == 0 => format!("[{base}+{column}]"),
            _ if column == 0 => format!("[{base}+lane {lane}]"),
            _ => format!("[{base}+lane {lane}+{column}]"),
        }
    }

    /// `name(x+offset, bytes)`
    pub(super) fn bytes_of(&self, name: &str, addr: &Address, bytes: u32) -> String {
        let base = self.operand(addr.base);
        let offset = if addr.offset == 0 { String::new() } else { format!("+{}", addr.offset) };
        format!("{name}({base}{offset}, {bytes})")
    }

    pub(super) fn descriptor(&self, descriptor: &Descriptor) -> String {
        match descriptor {
            Descriptor::Packed(operand) => self.operand(*operand),
            Descriptor::Range { addr, bytes } => self.bytes_of("desc", addr, *bytes),
        }
    }

    pub(super) fn braces(&self, regs: &[Reg]) -> String {
        let all: Vec<&str> = regs.iter().map(|r| self.reg(*r)).collect();
        format!("{{{}}}", all.join(", "))
    }

    pub(super) fn enable_input(&self, input: EnableInput) -> String {
        match input {
            EnableInput::Always(on) => u8::from(on).to_string(),
            EnableInput::When(guard) => {
                format!("{}{}", if guard.negated { "!" } else { "" }, self.reg(guard.reg))
            }
        }
    }

    /// `, operand`, if there is one.
    pub(super) fn more(&self, operand: Option<Operand>) -> String {
        operand.map_or(String::new(), |o| format!(", {}", self.operand(o)))
    }
}

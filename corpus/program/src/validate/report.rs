//! The report to which all rules add remarks. Each remark gets the severity of its rule.

use super::rules::{RuleKind, rule};
use crate::ir::{Instr, Program, Thread};
use crate::text::{Diagnostic, Severity, instruction};

/// A program under validation and the remarks about it so far.
pub(super) struct Report<'p> {
    pub(super) program: &'p Program,
    /// The remarks, in the order in which they were found.
    pub(super) out: Vec<Diagnostic>,
}

impl<'p> Report<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        Report { program, out: Vec::new() }
    }

    /// Adds a remark about one instruction and quotes its text.
    pub(super) fn at(
        &mut self,
        id: &'static str,
        thread: &Thread,
        instr: &Instr,
        what: &str,
        hint: Option<String>,
    ) {
        let text = instruction(self.program, thread, instr);
        self.push(id, (instr.line, instr.column), format!("`{text}`: {what}"), hint);
    }

    /// Says of a remark how many other threads it is true of.
    pub(super) fn again(&mut self, remark: usize, more: usize) {
        let Some(one) = self.out.get_mut(remark) else { return };
        let end = one.message.find(" (and in ").unwrap_or(one.message.len());
        one.message.truncate(end);
        one.message += &format!(" (and in {more} other thread{})", if more == 1 { "" } else { "s" });
    }

    /// Adds a remark that concerns no single instruction.
    pub(super) fn about(&mut self, id: &'static str, what: String, hint: Option<String>) {
        self.push(id, (0, 0), what, hint);
    }

    fn push(&mut self, id: &'static str, (line, column): (u32, u32), message: String, hint: Option<String>) {
        let severity = match rule(id).map(|r| r.kind) {
            Some(RuleKind::PtxasEqual | RuleKind::Unclear) => Severity::Error,
            _ => Severity::Warning,
        };
        self.out.push(Diagnostic { line, column, message, hint, severity, rule: Some(id) });
    }
}

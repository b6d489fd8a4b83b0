//! Applies the static rules to a kernel, for the target of its module.

use super::module::{Kernel, Module};
use moire_program::text::{Diagnostic, Severity};
use moire_program::validate::{Target, targets, validate};

impl Kernel {
    /// All errors of the static rules, which agree with the assembler, for the target of the module.
    pub fn rejected(&self, module: &Module) -> Vec<Diagnostic> {
        let error = |line: u32, column: u32, message: String, rule: Option<&'static str>| Diagnostic {
            line,
            column,
            message,
            hint: None,
            severity: Severity::Error,
            rule,
        };
        let mut out = validate(&self.program);
        out.retain(|d| d.severity == Severity::Error);
        let known = Target::ALL.into_iter().find(|t| t.name() == module.target);
        if let Some(target) = known {
            let mut alone = self.program.clone();
            for instr in self.program.threads.iter().flat_map(|t| &t.body) {
                if let Some(thread) = alone.threads.first_mut() {
                    thread.body = vec![instr.clone()];
                }
                if !targets(&alone).contains(&target) {
                    let name = instr.op.extended().unwrap_or("this instruction");
                    let message = format!("the target {} has no such {name}", target.name());
                    out.push(error(instr.line, instr.column, message, Some("target")));
                    break;
                }
            }
        }
        out.sort_by_key(|d| (d.line, d.column));
        out
    }
}

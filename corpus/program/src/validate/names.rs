//! Lint: names that are declared and never used.

use super::report::Report;
use crate::ir::*;

pub(super) fn check(report: &mut Report<'_>) {
    let program = report.program;
    let mut used = vec![false; program.symbols.len()];
    for thread in &program.threads {
        for reg in &thread.regs {
            if let RegInit::Address(symbol) = reg.init {
                used[symbol.index()] = true;
            }
        }
        for instr in &thread.body {
            let mut op = instr.op.clone();
            crate::registers::rewrite(&mut op, &mut |r| r, &mut |operand| {
                if let Operand::Address(symbol) = operand {
                    used[symbol.index()] = true;
                }
                operand
            });
        }
    }
    let exprs = program.filter.iter().chain(program.conditions.iter().map(|c| &c.expr));
    for expr in exprs {
        super::condition::terms(expr, &mut |term| {
            if let Term::Mem { symbol, .. } = term {
                used[symbol.index()] = true;
            }
        });
    }
    for (i, symbol) in program.symbols.iter().enumerate() {
        let object = |s: &Symbol| s.object == symbol.object || s.multimem.contains(&symbol.object);
        let defines = symbol.virt.index() == i && program.objects[symbol.object.index()].name == symbol.name;
        let needed = defines && program.symbols.iter().zip(&used).any(|(s, used)| *used && object(s));
        if !used[i] && !needed {
            report.about("unused-name", format!("`{}` is declared and never used", symbol.name), None);
        }
    }
}
